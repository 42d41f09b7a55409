"""What runs in the process of a `ProcessWorker`: takes calls and answers until its pipe ends."""

import os
import pickle
import signal
import sys
from typing import Any, BinaryIO

from twisted.python.failure import Failure

from mailcheck.workers.process import ANSWERS, LENGTH, REQUESTS


def main() -> None:
    """Serve calls until the parent closes the pipe, or is gone."""
    # A Ctrl-C in a terminal reaches the whole group; the parent ends us in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
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
    except Exception:
        return Failure()


def _pickled(answer: Any) -> bytes:
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        problem = RuntimeError(f"an answer can't be sent: {error!r}: {answer!r:.200}")
        return pickle.dumps(Failure(problem), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
