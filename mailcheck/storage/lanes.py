"""Where blocking work runs: a lane takes a call and gives a Deferred of its result."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

Result = TypeVar("Result")


class Lane(Protocol):
    """Runs calls away from the reactor, or at once where a test wants no threads."""

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call; the Deferred fires in the reactor's thread."""

    def start(self) -> None:
        """Make ready to run calls."""

    def stop(self) -> None:
        """Run what was given, then take no more."""


class DirectLane:
    """Runs calls at once: for the command line, and for tests without threads."""

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call now."""
        return maybeDeferred(call)

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""


class ThreadLane:
    """A lane of threads of its own; with one thread, calls run in order."""

    def __init__(self, reactor: IReactorFromThreads, name: str, threads: int) -> None:
        self._reactor = reactor
        self._pool = ThreadPool(minthreads=1, maxthreads=threads, name=name)

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call in the next free thread."""
        return deferToThreadPool(self._reactor, self._pool, call)

    def start(self) -> None:
        """Start the threads."""
        self._pool.start()

    def stop(self) -> None:
        """Wait for running calls and end the threads."""
        self._pool.stop()
