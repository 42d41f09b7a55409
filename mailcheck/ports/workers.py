"""Work of which others do a part: threads, child processes, or other daemons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from mailcheck.core.instants import Instant

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

Result = TypeVar("Result")


class Worker(Protocol):
    """Runs blocking work away from the reactor."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call; the Deferred fires in the reactor's thread.

        A worker may be another process: a call that can be pickled can run in any.

        :param owner: the account that the work is for. Where calls wait, owners take turns.
        """

    def start(self) -> None:
        """Make ready to run calls."""

    def stop(self) -> Deferred[None] | None:
        """Run what was given, then take no more; fires when that is done."""


class Lease(Struct, frozen=True):
    """The right to do a job: ``holder`` has it until ``until``, then another one may take over."""

    holder: str
    until: Instant
