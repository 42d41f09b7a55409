"""A worker that is a process of its own: for work that would hold the interpreter's lock.

Calls and what they give are pickled, so a call is a function of a module with
its arguments (`functools.partial`). One call runs at a time, in order. A child
that dies takes no answer with it that was given: the calls under way fail, and
the next one gets a new child.
"""

import pickle
import struct
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ProcessDone, ProcessExitedAlready
from twisted.internet.interfaces import IReactorProcess
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import StoreUnavailable, WorkerDied

Result = TypeVar("Result")

LENGTH = struct.Struct(">Q")
"""Each frame is led by its length in bytes."""

CHILD = "mailcheck.workers.child"

MAX_DIRECT = 65_536
"""Octets that are worth a try to write at once: as many as a pipe holds."""

REQUESTS, ANSWERS, ERRORS = 0, 1, 2
"""The child's file descriptors."""


class ProcessWorker:
    """Runs calls in a child process.

    :param prepare: is run first in each child, before any call.
    """

    _log = Logger()

    def __init__(
        self, reactor: IReactorProcess, name: str, prepare: Callable[[], object] | None = None
    ) -> None:
        self._reactor = reactor
        self._name = name
        self._prepare = prepare
        self._child: _Child | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Start the child ahead of the first call."""
        self._living_child()

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run the call in the child; it, and what it gives or raises, can be pickled.

        :raises WorkerDied: the child has died.
        :raises StoreUnavailable: the worker has been stopped.
        """
        if self._is_stopped:
            return fail(StoreUnavailable(f"the {self._name} process has been stopped"))
        return self._living_child().ask(call)

    def stop(self) -> Deferred[None]:
        """Let the child finish what it has, and end; fires when it has ended."""
        self._is_stopped = True
        return succeed(None) if self._child is None else self._child.finish()

    def kill(self) -> None:
        """End the child at once: the calls under way fail, and the next one gets a new child."""
        if self._child is not None:
            self._child.kill()

    def _living_child(self) -> "_Child":
        if self._child is None or self._child.has_ended:
            child = self._child = _Child(self._name)
            self._reactor.spawnProcess(
                child,
                sys.executable,
                [sys.executable, "-m", CHILD, self._name],
                env=None,
                childFDs={REQUESTS: "w", ANSWERS: "r", ERRORS: "r"},
            )
            if self._prepare is not None:
                child.ask(self._prepare).addErrback(self._log_unprepared)
        return self._child

    def _log_unprepared(self, failure: Failure) -> None:
        if not failure.check(WorkerDied):
            self._log.failure("the {name} process was not prepared", failure, name=self._name)


class _Child(ProcessProtocol):
    """The parent's end of one child."""

    _log = Logger()
    transport: Any  # an IProcessTransport with its pipes, as POSIX reactors have it

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: deque[Deferred[Any]] = deque()
        self._pieces: list[bytes] = []
        self._size = 0
        self._wanted = LENGTH.size
        self._is_direct = False
        self.has_ended = False
        self._when_ended: Deferred[None] = Deferred()

    def ask(self, call: Callable[[], Any]) -> Deferred[Any]:
        request = pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
        self._send(LENGTH.pack(len(request)), request)
        answer: Deferred[Any] = Deferred()
        self._asked.append(answer)
        return answer

    def _send(self, length: bytes, request: bytes) -> None:
        """Write a frame, at once where the pipe takes it.

        Through the pipe's own buffer it would wait for the reactor's next round,
        which changes what is watched four times for it.
        """
        pipe = self.transport.pipes.get(REQUESTS)
        # When all that was sent has been answered nothing waits in the buffer.
        is_direct = pipe is not None and (self._is_direct or not self._asked)
        self._is_direct = is_direct and len(request) <= MAX_DIRECT
        if not self._is_direct:
            # Two writes: to put a large mail behind its length would copy it once more.
            self.transport.writeToChild(REQUESTS, length)
            self.transport.writeToChild(REQUESTS, request)
            return
        frame = length + request
        sent = pipe.writeSomeData(frame)
        if sent != len(frame):
            self._is_direct = False
            rest = frame[sent:] if isinstance(sent, int) else frame
            self.transport.writeToChild(REQUESTS, rest)

    def finish(self) -> Deferred[None]:
        if not self.has_ended:
            self.transport.closeChildFD(REQUESTS)
        return self._when_ended

    def kill(self) -> None:
        # One that has ended already fails its calls by itself.
        with suppress(ProcessExitedAlready):
            self.transport.signalProcess("KILL")

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Collect answers; log what the child has to complain about."""
        if childFD != ANSWERS:
            text = data.decode("utf-8", "replace").rstrip()
            self._log.warn("{name} process: {text}", name=self._name, text=text)
            return
        self._pieces.append(data)
        self._size += len(data)
        # Joined once for the length of a frame, and once when all of it is there.
        while self._size >= self._wanted:
            received = b"".join(self._pieces)
            end = LENGTH.size + LENGTH.unpack_from(received)[0]
            if self._size < end:
                self._pieces, self._wanted = [received], end
                return
            self._pieces, self._wanted = [received[end:]], LENGTH.size
            self._size -= end
            self._answer(received[LENGTH.size : end])

    def processEnded(self, reason: Failure) -> None:
        """Fail the calls that will get no answer."""
        self.has_ended = True
        if not reason.check(ProcessDone):
            self._log.error("{name} process: {why}", name=self._name, why=reason.getErrorMessage())
        while self._asked:
            self._asked.popleft().errback(WorkerDied(f"the {self._name} process has died"))
        self._when_ended.callback(None)

    def _answer(self, pickled: bytes) -> None:
        # Nobody but our own child, started by us, can write to this pipe.
        asked = self._asked.popleft()
        try:
            answer = pickle.loads(pickled)  # noqa: S301
        except Exception:
            answer = Failure()
        if isinstance(answer, Failure):
            asked.errback(answer)
        else:
            asked.callback(answer)
