"""Threads with a lower priority than the rest of their process."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
import pytest_twisted
from twisted.internet.interfaces import IReactorFromThreads

from mailcheck.workers.threads import ThreadWorker, nice_threads
from tests.servers.programs import find_program


def niceness() -> int:
    """Return the priority of the calling thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process is nice as a whole")
@pytest_twisted.ensureDeferred
async def test_nice_threads() -> None:
    """The worker's threads have a lower priority. The reactor's thread keeps its own."""
    from twisted.internet import reactor

    threads = cast(IReactorFromThreads, cast(Any, reactor))
    before = niceness()
    for given, expected in ((5, min(19, before + 5)), (0, before)):
        worker = ThreadWorker(threads, "nice", 2, nice_threads(given))
        worker.start()
        assert await worker.run(niceness) == expected
        worker.stop()
    assert niceness() == before


UNIT = """
SystemCallFilter=@system-service
SystemCallFilter=~@resources
"""

REFUSED = """
import os
from mailcheck.workers.child import lower_priority, may_lower_priority
before = os.getpriority(os.PRIO_PROCESS, 0)
print(may_lower_priority())
lower_priority(5)
print(os.getpriority(os.PRIO_PROCESS, 0) == before)
"""


@pytest.mark.interop
@pytest.mark.skipif(sys.platform != "linux", reason="other systems filter no calls")
def test_a_lower_priority_is_optional(tmp_path: Path) -> None:
    """If the kernel denies a lower priority, the work runs at the normal one."""
    find_program("systemd-analyze", package="systemd")
    unit = tmp_path / "small.service"
    unit.write_text(UNIT)
    root = Path(__file__).parents[2]
    sandbox = [str(root / "tests" / "servers" / "unit_sandbox.py"), str(unit)]
    for wrapper, said in (([], ["True", "False"]), (sandbox, ["False", "True"])):
        command = [sys.executable, *wrapper, *([sys.executable] if wrapper else []), "-c", REFUSED]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        assert done.stdout.split() == said


class _Mortal(threading.Thread):
    """A thread that dies before its first call."""

    made: ClassVar[list[threading.Thread]] = []

    def start(self) -> None:
        """Store the thread, so that a test can wait for its end."""
        self.made.append(self)
        super().start()

    def run(self) -> None:
        """End at once."""


@pytest_twisted.ensureDeferred
async def test_a_thread_that_has_died() -> None:
    """A dead thread is reported, because some calls may get no result."""
    from twisted.internet import reactor

    worker = ThreadWorker(cast(IReactorFromThreads, cast(Any, reactor)), "mortal", 2)
    assert (worker.problem, worker.can_work) == ("", True)
    worker.start()
    await worker.run(int)
    assert (worker.problem, worker.can_work) == ("", True)
    worker.stop()
    worker = ThreadWorker(cast(IReactorFromThreads, cast(Any, reactor)), "mortal", 2, _Mortal)
    worker.start()
    for thread in _Mortal.made:
        thread.join()
    assert worker.subject == "mortal threads"
    assert worker.problem == "1 of 1 have died: restart the daemon"
    assert not worker.can_work
    worker.stop()
