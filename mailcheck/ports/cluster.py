"""State that all daemons share: in this process, in the database or in Redis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from mailcheck.core.client_limits import Window
from mailcheck.core.keys import Key

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

Subject = TypeVar("Subject")

KNOWN_DOMAINS = 10_000
"""Domains of which a `SelectorStore` knows selectors."""

KNOWN_SELECTORS = 8
"""Selectors of a domain that it knows; few, as keys are changed."""


class Hit(Struct, frozen=True):
    """``amount`` requests of a subject, in windows given as (window, index, limit).

    With an ``amount`` of 0 it is a look: nothing is counted.
    """

    subject: Key
    windows: tuple[tuple[Window, int, int], ...]
    amount: int = 1


class RateCounters(Protocol):
    """Counts requests in fixed windows, for this daemon or for all of them."""

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests; gives for each hit, and each of its windows, the count with it.

        A hit is really counted, in all of its windows, only where none goes over
        its limit: all or none.
        """


class Notifications(Protocol[Subject]):
    """Tells all daemons of something that has come or moved: a hint, never data.

    A hint may be lost: who waits for it looks again where that may have happened.
    """

    def publish(self, subject: Subject) -> None:
        """Tell who listens, here at once and elsewhere soon, what to look at."""

    def listen(self, heard: Callable[[Subject], None]) -> None:
        """Call ``heard`` for every hint from now on."""


class OwnerSemaphore(Protocol):
    """Places that an owner may hold only so many of at a time, in this daemon or in all."""

    def held(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Have a place while the block runs.

        :raises NoPermit: the owner has all of its places taken.
        """


class Memory(Protocol):
    """Texts kept for a while by their names, in this daemon or for all of them.

    Any of them may be forgotten early: who needs it finds it out again.
    """

    def recall(self, name: Key) -> Deferred[str | None]:
        """Give what is kept under a name."""

    def keep(self, name: Key, text: str, milliseconds: int) -> Deferred[None]:
        """Keep a text so long, in place of the one that was there."""

    def acquire(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Take work on, for so long; false while another daemon has it."""

    def release(self, work: Key) -> Deferred[None]:
        """End a claim early."""


class SelectorStore(Protocol):
    """Keeps which selectors domains sign with: the newest of each, and of the newest domains."""

    def note_selectors(self, pairs: Sequence[tuple[str, str]]) -> Deferred[bool]:
        """Note domains and selectors, oldest first; false where that can't be done now."""

    def selectors_of(self, domain: str) -> Deferred[tuple[str, ...]]:
        """Give the selectors of a domain, the newest first."""
