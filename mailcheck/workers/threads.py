"""Workers of threads: for work that waits for the disk, or computes outside the interpreter."""

import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

Result = TypeVar("Result")


class ThreadWorker:
    """A worker of threads of its own; with one thread, calls run in order.

    :param niceness: of the threads; only Linux has it for threads.
    """

    def __init__(
        self, reactor: IReactorFromThreads, name: str, threads: int, niceness: int = 0
    ) -> None:
        self._reactor = reactor
        self._pool = ThreadPool(minthreads=1, maxthreads=threads, name=name)
        if niceness and sys.platform == "linux":
            self._pool.threadFactory = cast(Any, partial(_NiceThread, niceness))

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call in the next free thread; calls wait in order, whoever their owner is."""
        return deferToThreadPool(self._reactor, self._pool, call)

    def start(self) -> None:
        """Start the threads."""
        self._pool.start()

    def stop(self) -> None:
        """Wait for running calls and end the threads."""
        self._pool.stop()


class _NiceThread(threading.Thread):
    """A thread that leaves the processor to the others of its process."""

    def __init__(self, niceness: int, **given: Any) -> None:
        super().__init__(**given)
        self._niceness = niceness

    def run(self) -> None:
        """Run as any thread, but nicer."""
        thread = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread) + self._niceness
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
        super().run()
