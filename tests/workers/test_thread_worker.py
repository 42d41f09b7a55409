"""Threads that are nicer than the rest of their process."""

import os
import sys
import threading
from typing import Any, cast

import pytest
import pytest_twisted
from twisted.internet.interfaces import IReactorFromThreads

from mailcheck.workers.threads import ThreadWorker


def niceness() -> int:
    """Give that of the thread that asks."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process is nice as a whole")
@pytest_twisted.ensureDeferred
async def test_nice_threads() -> None:
    """Its threads leave the processor to the thread of the reactor, which stays as it is."""
    from twisted.internet import reactor

    threads = cast(IReactorFromThreads, cast(Any, reactor))
    before = niceness()
    for given, expected in ((5, min(19, before + 5)), (0, before)):
        worker = ThreadWorker(threads, "nice", 2, given)
        worker.start()
        assert await worker.run(niceness) == expected
        worker.stop()
    assert niceness() == before
