"""Looking, again and again, at what the daemon stands on, so that each change is told."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.instruments import Conditions

INTERVAL = 10.0
"""Seconds between looks."""

MEBIBYTE = 1024 * 1024

DISK = "disk"
LISTS = "blocklists"
DATABASE = "database"

State = tuple[str, str]
"""What was looked at, and what is wrong with it; empty where nothing is."""

Look = Callable[[], Iterable[State]]


class KnownHealth(Protocol):
    """What is known of the health of blocklists."""

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Give what the last self-test of a list has found; nothing before its first."""


class Watch:
    """Notes what quick looks find."""

    def __init__(self, conditions: Conditions, looks: Sequence[Look]) -> None:
        self._conditions = conditions
        self._looks = looks

    async def look(self) -> None:
        """Look at everything once."""
        for look in self._looks:
            for subject, problem in look():
                self._conditions.set(subject, problem)


def look_at_disk(free_bytes: Callable[[], int | None], min_free: int) -> Look:
    """Look whether there is room for mail."""

    def look() -> Iterable[State]:
        try:
            free = free_bytes()
        except StoreUnavailable as failure:
            return [(DISK, str(failure))]
        if free is None or free >= max(min_free, 1):
            return [(DISK, "")]
        if not free:
            return [(DISK, "it is full, or nearly so: mail is refused")]
        left, wanted = free // MEBIBYTE, min_free // MEBIBYTE
        return [(DISK, f"{left} MiB are free, of {wanted} MiB that mail must leave: refused")]

    return look


def look_at_damage(damage: Callable[[], str]) -> Look:
    """Look whether a damaged page of the database was met.

    The daemon stays ready: what the heartbeat reads is what every call reads.
    """
    return lambda: [(DATABASE, damage())]


def look_at_lists(blocklists: Sequence[Blocklist], health: KnownHealth) -> Look:
    """Look at what the last self-test of each list has found.

    Where most of them fail, the resolver is at fault, and one sentence says so.
    """

    def look() -> Iterable[State]:
        tested = {one.zone: found for one in blocklists if (found := health.of(one))}
        reasons = {
            zone: dict.fromkeys(one.reason for one in found if one.status is HealthStatus.UNHEALTHY)
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
    """Look which resolvers have fallen silent; ``servers`` are all there are."""

    def look() -> Iterable[State]:
        down = set(silent())
        for server in servers:
            yield f"resolver {server}", "it does not answer" if server in down else ""

    return look
