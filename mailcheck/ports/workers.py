"""Protocols for work that runs in threads, child processes or other daemons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from mailcheck.core.instants import Instant

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

Result = TypeVar("Result")


class Worker(Protocol):
    """Runs blocking work outside the reactor's thread."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call. The Deferred fires in the reactor's thread.

        A worker may be another process, which needs calls that can be pickled.

        :param owner: the account that the work is for. Waiting owners take turns.
        """

    def start(self) -> None:
        """Prepare for calls."""

    def stop(self) -> Deferred[None] | None:
        """Finish the calls that were queued and reject new ones. Fires when that is done."""


class Lease(Struct, frozen=True):
    """A time-limited lock of a job. After ``until``, another holder may take it over."""

    holder: str
    until: Instant
