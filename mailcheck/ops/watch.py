"""Looking, again and again, at what the daemon stands on, so that each change is told."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.dnsbl.health import HealthStatus, ZoneHealth
from mailcheck.core.conditions import Conditions
from mailcheck.core.errors import StoreUnavailable

INTERVAL = 10.0
"""Seconds between looks."""

MEBIBYTE = 1024 * 1024

State = tuple[str, str]
"""What was looked at, and what is wrong with it; empty where nothing is."""

Look = Callable[[], Iterable[State]]


class KnownHealth(Protocol):
    """What is known of the health of blocklists."""

    def of(self, blocklist: Blocklist) -> tuple[ZoneHealth, ...]:
        """Give what the last self-test of a list has found; nothing before its first."""


class Watch:
    """Notes how the store is, by asking it, and what quick looks find."""

    def __init__(
        self,
        conditions: Conditions,
        store_answers: Callable[[], Awaitable[bool]],
        looks: Sequence[Look],
    ) -> None:
        self._conditions = conditions
        self._store_answers = store_answers
        self._looks = looks

    async def look(self) -> None:
        """Look at everything once."""
        for look in self._looks:
            for subject, problem in look():
                self._conditions.set(subject, problem)
        answers = await self._store_answers()
        self._conditions.set("store", "" if answers else "it does not answer")


def look_at_disk(free_bytes: Callable[[], int | None], min_free: int) -> Look:
    """Look whether there is room for mail."""

    def look() -> Iterable[State]:
        try:
            free = free_bytes()
        except StoreUnavailable as failure:
            return [("disk", str(failure))]
        if free is None or free >= min_free:
            return [("disk", "")]
        left, wanted = free // MEBIBYTE, min_free // MEBIBYTE
        return [("disk", f"{left} MiB are free, of {wanted} MiB that mail must leave: refused")]

    return look


def look_at_lists(blocklists: Sequence[Blocklist], health: KnownHealth) -> Look:
    """Look at what the last self-test of each list has found."""

    def look() -> Iterable[State]:
        for blocklist in blocklists:
            sick = [one for one in health.of(blocklist) if one.status is HealthStatus.SICK]
            yield f"blocklist {blocklist.zone}", "; ".join(one.reason for one in sick)

    return look


def look_at_resolvers(servers: Sequence[str], silent: Callable[[], Iterable[str]]) -> Look:
    """Look which resolvers have fallen silent; ``servers`` are all there are."""

    def look() -> Iterable[State]:
        down = set(silent())
        for server in servers:
            yield f"resolver {server}", "it does not answer" if server in down else ""

    return look
