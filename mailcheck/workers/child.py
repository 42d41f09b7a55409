"""The main program of a `ProcessWorker`'s child. It answers calls until its pipe is closed.

It imports the modules that its calls need, and no Twisted.
"""

import os
import pickle
import resource
import signal
import struct
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from mailcheck.core.errors import ExpectedFailure

REQUESTS, ANSWERS, ERRORS = 0, 1, 2
"""File descriptors of the child."""

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end or reload the daemon. Its children ignore them."""

LENGTH = struct.Struct(">Q")
"""The length in bytes that precedes each frame."""


OOM_SCORE = "500"
"""Half of what makes a process the first to be ended, so that other programs' wishes count."""


def load(*modules: str) -> None:
    """Import modules that later calls need."""
    for module in modules:
        import_module(module)


def may_lower_priority() -> bool:
    """Return whether the kernel lets a thread of this process change its own priority.

    A seccomp filter may deny it. To find out, set the current priority again.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    except OSError:
        return False
    return True


def lower_priority(steps: int) -> None:
    """Lower the priority of the calling thread, if the kernel permits it.

    On Linux each thread has its own priority. Elsewhere the priority of the process changes.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + steps)


def end_first() -> None:
    """Let the kernel end this process before the daemon if there is too little memory (Linux).

    The daemon starts another one, and only the mail that it was reading is affected.
    """
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, "ascii")


def limit_memory(size: int) -> None:
    """Limit the address space of the process, in bytes, unless it has a lower limit already.

    More than that is a `MemoryError`. Some systems, such as macOS, refuse the limit.
    """
    _, lower = resource.getrlimit(resource.RLIMIT_AS)
    size = size if lower == resource.RLIM_INFINITY else min(size, lower)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main() -> None:
    """Answer calls until the parent closes the pipe or ends."""
    # Ctrl-C in a terminal is sent to the whole process group, but the parent ends its children in
    # order. The parent has blocked these signals until here.
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    requests, answers = os.fdopen(REQUESTS, "rb"), os.fdopen(ANSWERS, "wb")
    # Accidental output must not be mixed with answers.
    sys.stdout = sys.stderr
    while (call := _read_call(requests)) is not None:
        answer = _pickled(_answer_to(call))
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _read_call(requests: BinaryIO) -> bytes | None:
    header = requests.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    call = requests.read(length)
    return call if len(call) == length else None


def _answer_to(pickled_call: bytes) -> Any:
    try:
        # Only the parent process can write to this pipe.
        call = pickle.loads(pickled_call)  # noqa: S301
        return call()
    except ExpectedFailure as failure:
        return failure
    except Exception:
        return _failure()


def _failure(error: Exception | None = None) -> Any:
    """Return the error with its traceback. The import is here since few processes need it."""
    from twisted.python.failure import Failure

    return Failure(error)


def _pickled(answer: Any) -> bytes:
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        problem = RuntimeError(f"the answer cannot be pickled: {error!r}: {answer!r:.200}")
        return pickle.dumps(_failure(problem), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
