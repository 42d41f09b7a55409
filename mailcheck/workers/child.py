"""What runs in the process of a `ProcessWorker`: takes calls and answers until its pipe ends.

It imports what its calls are made of, and no Twisted.
"""

import os
import pickle
import signal
import struct
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO

from mailcheck.core.errors import ExpectedFailure

REQUESTS, ANSWERS, ERRORS = 0, 1, 2
"""The child's file descriptors."""

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals by which a daemon is told to end, or to read again: its children leave them to it."""

LENGTH = struct.Struct(">Q")
"""Each frame is led by its length in bytes."""


def load(*modules: str) -> None:
    """Import what later calls are made of."""
    for module in modules:
        import_module(module)


def may_lower_priority() -> bool:
    """Return whether the kernel lets a thread of this process change its own priority.

    A filter of system calls may refuse it. The test sets the present priority once more.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    except OSError:
        return False
    return True


def lower_priority(steps: int) -> None:
    """Lower the priority of the calling thread, where the kernel permits it.

    Linux has a priority for each thread; elsewhere it is that of the process.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + steps)


def main() -> None:
    """Serve calls until the parent closes the pipe, or is gone."""
    # A Ctrl-C in a terminal reaches the whole group; the parent ends us in order. Until here
    # such signals were held.
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    requests, answers = os.fdopen(REQUESTS, "rb"), os.fdopen(ANSWERS, "wb")
    # Nothing that is printed by accident may get among the answers.
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
        # Nobody but the parent, who started us, can write to this pipe.
        call = pickle.loads(pickled_call)  # noqa: S301
        return call()
    except ExpectedFailure as failure:
        return failure
    except Exception:
        return _failure()


def _failure(error: Exception | None = None) -> Any:
    """Give the error with where it came from. Imported here: few processes ever need it."""
    from twisted.python.failure import Failure

    return Failure(error)


def _pickled(answer: Any) -> bytes:
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        problem = RuntimeError(f"an answer can't be sent: {error!r}: {answer!r:.200}")
        return pickle.dumps(_failure(problem), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
