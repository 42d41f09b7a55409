"""Workers that run calls in threads, for I/O and for computation outside the interpreter lock."""

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from mailcheck.workers.child import lower_priority

Result = TypeVar("Result")


class ThreadWorker:
    """A worker with its own threads. With one thread, calls run in order.

    :param make_thread: creates a thread, with the arguments of `threading.Thread`.
    """

    def __init__(
        self,
        reactor: IReactorFromThreads,
        name: str,
        threads: int,
        make_thread: Callable[..., threading.Thread] = threading.Thread,
    ) -> None:
        self.subject = f"{name} threads"
        self._reactor = reactor
        self._pool = ThreadPool(minthreads=1, maxthreads=threads, name=name)
        self._pool.threadFactory = cast(Any, make_thread)

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call in the next free thread. The calls of all owners wait in one queue."""
        return deferToThreadPool(self._reactor, self._pool, call)

    def start(self) -> None:
        """Start the threads."""
        self._pool.start()

    def stop(self) -> None:
        """Wait for running calls and end the threads."""
        self._pool.stop()

    silence = 0.0
    """Seconds for which an answer has been due. Always zero, since threads have no timeout."""

    @property
    def problem(self) -> str:
        """The problem of the threads, or an empty text if all of them are alive.

        A dead thread still gets its share of the calls, which are never answered.
        """
        threads = self._pool.threads if self._pool.started else []
        dead = sum(not thread.is_alive() for thread in threads)
        return f"{dead} of {len(threads)} have died: restart the daemon" if dead else ""

    @property
    def can_work(self) -> bool:
        """Whether all threads are alive."""
        return not self.problem

    def ping(self) -> None:
        """Do nothing: dead threads are detected without a call."""


def nice_threads(niceness: int) -> Callable[..., threading.Thread]:
    """Return a function that creates threads of a lower priority, if the system supports it."""
    return partial(_NiceThread, niceness) if sys.platform == "linux" else threading.Thread


class _NiceThread(threading.Thread):
    """A thread with a lower priority than the other threads of its process."""

    def __init__(self, niceness: int, **given: Any) -> None:
        super().__init__(**given)
        self._niceness = niceness

    def run(self) -> None:
        """Lower the priority, then run the thread."""
        lower_priority(self._niceness)
        super().run()
