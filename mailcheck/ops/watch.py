"""Periodic checks of the disk, the database, blocklists and resolvers; each change is logged."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.memory.instruments import Conditions

INTERVAL = 10.0
"""Seconds between checks."""

MEBIBYTE = 1024 * 1024

DISK = "disk"
FULL_DISK = "it is full, or nearly so: mail is refused"
LISTS = "blocklists"
DATABASE = "database"

State = tuple[str, str]
"""The subject of a check, and its problem; empty if there is none."""

Look = Callable[[], Iterable[State]]


class KnownHealth(Protocol):
    """The known health of blocklists."""

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Return the results of a list's last self-test; empty before the first one."""


class Watch(Struct, frozen=True, eq=False):
    """Records the results of quick checks."""

    conditions: Conditions
    looks: Sequence[Look]

    async def look(self) -> None:
        """Run all checks once."""
        for look in self.looks:
            for subject, problem in look():
                self.conditions.set(subject, problem)


def look_at_disk(free_bytes: Callable[[], int | None], least_free: Callable[[], int]) -> Look:
    """Return a check whether there is space for mail."""

    def look() -> Iterable[State]:
        min_free = least_free()
        try:
            free = free_bytes()
        except StoreUnavailable as failure:
            return [(DISK, str(failure))]
        if free is None or free >= max(min_free, 1):
            return [(DISK, "")]
        if not free:
            return [(DISK, FULL_DISK)]
        left, wanted = free // MEBIBYTE, min_free // MEBIBYTE
        return [(DISK, f"{left} MiB are free, of {wanted} MiB that mail must leave: refused")]

    return look


def look_at_damage(damage: Callable[[], str]) -> Look:
    """Return a check whether a damaged page of the database was found.

    The daemon stays ready, because the test write reads the pages that every call reads.
    """
    return lambda: [(DATABASE, damage())]


def look_at_lists(catalogue: Catalogue, health: KnownHealth) -> Look:
    """Return a check of the last self-test of each list.

    If most lists fail, the resolver is the cause, and one sentence says so.
    """

    def look() -> Iterable[State]:
        tested = {
            blocklist.zone: found
            for blocklist in catalogue.blocklists
            if (found := health.of(blocklist))
        }
        reasons = {
            zone: dict.fromkeys(
                found_zone.reason
                for found_zone in found
                if found_zone.status is HealthStatus.UNHEALTHY
            )
            for zone, found in tested.items()
        }
        failing = sum(map(bool, reasons.values()))
        if failing > len(tested) / 2:
            yield LISTS, f"{failing} of {len(tested)} fail their self-test: ask another resolver"
            return
        yield LISTS, ""
        for zone, sick in reasons.items():
            yield f"blocklist {zone}", "; ".join(sick)

    return look


def look_at_resolvers(servers: Sequence[str], silent: Callable[[], Iterable[str]]) -> Look:
    """Return a check for resolvers that stopped answering; ``servers`` are all resolvers."""

    def look() -> Iterable[State]:
        down = set(silent())
        for server in servers:
            yield f"resolver {server}", "it does not answer" if server in down else ""

    return look
