"""The state of a daemon without Redis after a restart."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twisted.internet.task import Clock

from mailcheck.assembly.checks import CheckRuntime, Checks, Resolvers, build_checks
from mailcheck.assembly.runtime import stored_state
from mailcheck.cluster.local import LocalCluster
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.clock_and_randomness import clock_and_randomness_of
from tests.fakes.fake_hosts import FakeHosts
from tests.house import config_in_memory, result_of, run
from tests.web.checking import zone_with

SIGNED = (("DKIM-Signature", "v=1; a=rsa-sha256; d=good.example; s=june; b=AA=="),)


@contextmanager
def daemon(path: Path, clock: Clock) -> Iterator[Checks]:
    """Run the checks of a daemon on a file."""
    engine = SqliteEngine(str(path), DirectWorker(), DirectWorker())
    engine.open()
    zone = zone_with({})
    clock_and_randomness = clock_and_randomness_of(clock)
    yield build_checks(
        CheckRuntime(
            config_in_memory(),
            clock_and_randomness,
            Resolvers(zone, zone, zone),
            FakeHosts(),
            LocalCluster(clock),
            stored_state(engine, clock_and_randomness.now),
        )
    )
    result_of(engine.close())


def test_a_restart_keeps_the_state(tmp_path: Path) -> None:
    """The counts of list queries, the health of lists, and selectors survive a restart."""
    clock = Clock()
    path = tmp_path / "mail.db"
    with daemon(path, clock) as before:
        lists = before.catalogue.blocklists
        run(before.health.refresh())
        run(before.budgets.take([(lists[0], 5)]))
        before.selectors.learn(SIGNED)
        run(before.selectors.save())
        asked = run(before.budgets.asked_today(lists))
        found = [before.health.of(one) for one in lists]
        assert sum(asked.values()) > len(lists)
        assert any(found)
    clock.advance(60)
    with daemon(path, clock) as after:
        assert run(after.budgets.asked_today(lists)) == asked
        assert run(after.selectors.of("good.example")) == ("june",)
        run(after.health.refresh())
        assert after.health.tested_at == before.health.tested_at
        assert [after.health.of(one) for one in lists] == found
        assert run(after.budgets.asked_today(lists)) == asked
