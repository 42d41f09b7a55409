"""Workers of threads: for work that waits for the disk."""

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

Result = TypeVar("Result")


class ThreadWorker:
    """A worker of threads of its own; with one thread, calls run in order."""

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
