"""Conditions of the daemon are checked periodically, and each change is reported once."""

from collections.abc import Sequence

from mailcheck.checks.dnsbl.catalogue import (
    Blocklist,
    TargetKind,
    packaged_catalogue_text,
    parse_catalogue,
)
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.memory.instruments import Conditions
from mailcheck.dns.servers import Server, ServerRotation
from mailcheck.ops.watch import (
    MEBIBYTE,
    Look,
    Watch,
    look_at_disk,
    look_at_lists,
    look_at_resolvers,
)
from tests.house import run
from tests.table import rows


def problems(looks: Sequence[Look]) -> dict[str, str]:
    """Check once, and return the problems."""
    conditions = Conditions()
    run(Watch(conditions, looks).look())
    return {subject: problem for subject, problem in conditions.problems.items() if problem}


@rows(
    (10 * MEBIBYTE, {}),
    (None, {}),
    (2 * MEBIBYTE, {"disk": "2 MiB are free, of 10 MiB that mail must leave: refused"}),
)
def test_disk(free: int | None, wrong: dict[str, str]) -> None:
    """Low disk space is reported. The space of a database server is unknown."""
    assert problems([look_at_disk(lambda: free, lambda: 10 * MEBIBYTE)]) == wrong


def test_a_disk_that_cannot_be_read() -> None:
    """A disk that cannot be read is reported with the reason."""

    def fail() -> int:
        raise StoreUnavailable("no such folder")

    assert problems([look_at_disk(fail, lambda: 1)]) == {"disk": "no such folder"}


class OneSick:
    """A self-test in which one list fails two kinds of test, and one list did not answer."""

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Return the results."""
        status = {
            "zen.spamhaus.org": HealthStatus.UNHEALTHY,
            "bl.spamcop.net": HealthStatus.UNREACHABLE,
        }.get(blocklist.zone, HealthStatus.HEALTHY)
        kinds = (TargetKind.IPV4, TargetKind.IPV6)
        return tuple(ZoneHealth(kind, status, "it lists everything") for kind in kinds)


class MostSick:
    """A self-test by a resolver that denies every name; the last list is not tested yet."""

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Return the results."""
        if blocklist.zone == "multi.uribl.com":
            return ()
        return (ZoneHealth(TargetKind.IPV4, HealthStatus.UNHEALTHY, "its test entry is missing"),)


def test_lists() -> None:
    """A list that failed its self-test is reported; a single timeout is not."""
    lists = parse_catalogue(packaged_catalogue_text())
    assert problems([look_at_lists(lists, OneSick())]) == {
        "blocklist zen.spamhaus.org": "it lists everything"
    }


def test_most_lists() -> None:
    """If most lists fail, the resolver is reported instead of each list."""
    lists = parse_catalogue(packaged_catalogue_text())
    count = len(lists.blocklists) - 1
    assert problems([look_at_lists(lists, MostSick())]) == {
        "blocklists": f"{count} of {count} fail their self-test: ask another resolver"
    }


def test_resolvers() -> None:
    """A resolver that does not answer is reported until it does."""
    dead, living = Server("192.0.2.1"), Server("192.0.2.2")
    rotation = ServerRotation([dead, living])
    look = look_at_resolvers(
        [dead.host, living.host], lambda: [server.host for server in rotation.unresponsive]
    )
    assert problems([look]) == {}
    rotation.note_failure(dead, 0.0, is_unreachable=True)
    assert problems([look]) == {"resolver 192.0.2.1": "it does not answer"}
    rotation.note_answer(dead)
    assert problems([look]) == {}
