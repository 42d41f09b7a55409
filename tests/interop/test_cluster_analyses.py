"""Deliverability tests on several daemons: each is analysed once, also after a crash."""

import contextlib
import os
import re
import signal
import smtplib
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailcheck.core.instants import SECOND
from mailcheck.dns.servers import Server
from mailcheck.operations.deliverability.run_test_checks import LEASE
from tests.end_to_end.test_deliverability_crash import MAIL, RECORDS, generate, send, verdict
from tests.fakes.memory_zone import MemoryZone
from tests.interop.test_cluster import options_of
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon
from tests.servers.holding_name_server import running_holding_name_server
from tests.servers.name_server import running_name_server
from tests.servers.postgresql import TEMPLATE, PostgresqlServer
from tests.servers.redis import running_redis

TAKEN_OVER = 40.0
"""Seconds until another daemon has completed the tests of a dead one."""

ANALYSED = re.compile(r'mailcheck_analyses_total\{outcome="(\w+)"\} (\d+)')

pytestmark = pytest.mark.end_to_end


@contextlib.contextmanager
def stopped(daemon: Daemon) -> Iterator[None]:
    """Stop a daemon until the context ends."""
    os.killpg(daemon.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(daemon.process.pid, signal.SIGCONT)


def address_of(server: Server) -> str:
    """Return the address of a name server for `[dns] resolvers`."""
    return f"{server.host}:{server.port}"


class Two:
    """Two daemons on one database, one of which can be prevented from finishing analyses."""

    def __init__(
        self, folder: Path, postgresql: PostgresqlServer, redis_url: str, names: Server
    ) -> None:
        self.names = names
        self._postgresql = postgresql
        self._database = f"analyses_{os.getpid()}_{time.monotonic_ns()}"
        url = postgresql.make_database(self._database, TEMPLATE)
        self.options: dict[str, Any] = {
            **options_of(url, None),
            "cluster_redis": redis_url,
            "dns_resolvers": [address_of(names)],
            "dns_allow_special_use": True,
            "network_allow_private": True,
        }
        self._metrics = dict(zip(("one", "other"), free_ports(2), strict=True))
        self._folder = folder

    def running(self, name: str, **options: Any) -> contextlib.AbstractContextManager[Daemon]:
        """Run one of them until the context ends; the second needs the first one's key."""
        listen = f"{HOST}:{self._metrics[name]}"
        return running_daemon(
            self._folder / name, **{**self.options, "ops_listen": [listen], **options}
        )

    def analysed(self, name: str) -> dict[str, int]:
        """Return the number of a daemon's finished analyses, by outcome."""
        url = f"http://{HOST}:{self._metrics[name]}/metrics"
        text = urllib.request.urlopen(url, timeout=60).read().decode()
        return {outcome: int(count) for outcome, count in ANALYSED.findall(text)}

    def attempts(self) -> list[int]:
        """Return how often the analysis of each test was begun, from the database."""
        sql = "SELECT attempts FROM deliverability_test WHERE state <> 'pending' ORDER BY attempts"
        return [attempts for (attempts,) in self._postgresql.run(sql, self._database)]

    def let_leases_end(self) -> None:
        """Let the leases of all tests expire; the clock of the database counts."""
        sql = f"UPDATE deliverability_test SET lease_until = lease_until - {LEASE}"
        self._postgresql.run(sql, self._database)


@pytest.fixture
def two(tmp_path: Path, postgresql_server: PostgresqlServer) -> Iterator[Two]:
    """Daemons whose name server knows the sender of all mails."""
    with running_redis() as redis, running_name_server(MemoryZone(RECORDS)) as names:
        yield Two(tmp_path, postgresql_server, redis.url, names)


def test_each_test_is_analysed_once(two: Two) -> None:
    """Mail arrives at both daemons, both are notified of tests, and one analyses each of them."""
    with two.running("one") as one, two.running("other", accounts_bootstrap_key=one.key) as other:
        tests = [generate(one) for _ in range(24)]
        for number, test in enumerate(tests):
            send((one, other)[number % 2], test["email"])
        verdicts = [verdict((other, one)[n % 2], test["testId"]) for n, test in enumerate(tests)]
        assert all(found == verdicts[0] for found in verdicts)
        counts = [two.analysed(name) for name in ("one", "other")]
        assert sum(count.get("completed", 0) for count in counts) == len(tests)
        assert set(counts[0]) | set(counts[1]) == {"completed"}
        assert two.attempts() == [1] * len(tests)


def test_a_daemon_dies_with_tests(two: Two) -> None:
    """Its tests move to the other daemon within 40 s, waits there get the reports, and no test is
    analysed twice.
    """
    with (
        running_holding_name_server(two.names, ["."]) as held,
        two.running("one", dns_resolvers=[address_of(held.server)]) as dying,
        two.running("other", accounts_bootstrap_key=dying.key) as heir,
    ):
        held.release()
        tests = [generate(dying) for _ in range(4)]
        own = generate(heir)
        held.hold()  # its analyses wait for DNS answers from now on
        with stopped(heir):  # otherwise it would take some of them
            with smtplib.SMTP(HOST, dying.smtp_port, "good.test") as client:
                client.sendmail("ann@good.test", [test["email"] for test in tests], MAIL)
            dying.wait_until(lambda: two.attempts() == [1] * len(tests))
            dying.kill()
            two.let_leases_end()
        began = time.monotonic() - LEASE / SECOND
        send(heir, own["email"])
        expected = verdict(heir, own["testId"])
        waits = [heir.ask("GET", f"/test/{test['testId']}/wait?timeout=60") for test in tests]
        reports = [wait.answer().json for wait in waits]
        assert time.monotonic() - began < TAKEN_OVER
        assert {report["status"] for report in reports} == {"completed"}
        assert [verdict(heir, test["testId"]) for test in tests] == [expected] * len(tests)
        # Begun twice, once by the dead daemon, which completed none of them.
        assert two.analysed("other") == {"completed": len(tests) + 1}
        assert two.attempts() == [1] + [2] * len(tests)
