"""Protocols for state that all daemons share: in one process, in the database or in Redis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from mailcheck.core.memory.client_limits import Window
from mailcheck.core.memory.keys import Key

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

Subject = TypeVar("Subject")

KNOWN_DOMAINS = 10_000
"""Maximum number of domains in a `SelectorStore`."""

KNOWN_SELECTORS = 8
"""Maximum number of selectors of a domain in it. Few, since keys are rotated."""


class Hit(Struct, frozen=True):
    """``amount`` requests of a subject, in windows given as (window, index, limit).

    An ``amount`` of 0 reads the counts without counting.
    """

    subject: Key
    windows: tuple[tuple[Window, int, int], ...]
    amount: int = 1


class RateCounters(Protocol):
    """Counters of requests in fixed windows, for this daemon or for all daemons."""

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests. Fires with the counts after it for each window of each hit.

        A hit is counted in all of its windows, or in none if one of them would exceed its limit.
        """


class Notifications(Protocol[Subject]):
    """Publish/subscribe for subjects that have changed. A notification is a hint without data.

    Notifications may be lost. Subscribers must then read the state again.
    """

    def publish(self, subject: Subject) -> None:
        """Notify listeners of a subject, in this daemon at once and in others soon."""

    def listen(self, heard: Callable[[Subject], None]) -> None:
        """Call ``heard`` for every notification from now on."""


class OwnerSemaphore(Protocol):
    """A semaphore with a number of permits for each owner, in this daemon or in all daemons.

    ``per_owner`` is that number, which a reload of the configuration may change.
    """

    per_owner: int

    def held(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Hold a permit while the block runs.

        :raises NoPermit: the owner holds the maximum number of permits.
        """


class Memory(Protocol):
    """A cache of texts by name, with locks, in this daemon or for all daemons.

    A text may be evicted early; callers must then compute it again.
    """

    def recall(self, name: Key) -> Deferred[str | None]:
        """Return the text for a name, or `None`."""

    def keep(self, name: Key, text: str, milliseconds: int) -> Deferred[bool]:
        """Store a text for a time, in place of any earlier one.

        Fires with false if only this daemon has it, because the shared memory is unavailable.
        """

    def acquire(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Acquire a lock for a time. Fires with false while another daemon holds it."""

    def release(self, work: Key) -> Deferred[None]:
        """Release a lock early."""


class SelectorStore(Protocol):
    """The newest DKIM selectors of the domains that were seen last."""

    def note_selectors(self, pairs: Sequence[tuple[str, str]]) -> Deferred[bool]:
        """Store domains and selectors, oldest first. Fires with false if that is impossible now."""

    def selectors_of(self, domain: str) -> Deferred[tuple[str, ...]]:
        """Return the selectors of a domain, the newest first."""
