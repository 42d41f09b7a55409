"""A worker that is a process of its own: for work that would hold the interpreter's lock.

Calls and what they give are pickled, so a call is a function of a module with
its arguments (`functools.partial`), or a method of what can be pickled. One
call runs at a time, in order. A child that dies takes no answer with it that
was given: the calls under way fail, and the next one gets a new child. So it
is with one that does not answer in time.
"""

import copyreg
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from types import MethodType
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ProcessDone, ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable, WorkerDied, WorkTooSlow
from mailcheck.workers.child import ANSWERS, ENDINGS, ERRORS, LENGTH, REQUESTS

Result = TypeVar("Result")

CHILD = "mailcheck.workers.child"

MAX_DIRECT = 65_536
"""Octets that are worth a try to write at once: as many as a pipe holds."""

LAST_GRACE = 1.5
"""Seconds for a child that was killed to be gone: one that waits for a disk that hangs is not."""

LOOK = 1.0
"""Seconds between looks at a child that owes an answer."""

PICKLED_BY = {
    kind: reduce for kind, reduce in copyreg.dispatch_table.items() if kind is not MethodType
}
"""How kinds of values are pickled: methods as Python does it. Twisted has a way of its own for
them, and is loaded where that is unpickled."""


class ProcessWorker:
    """Runs calls in a child process.

    :param longest: seconds that a call may take, from when the one before it was answered;
        a child that takes longer is killed. Seconds in which this process was held up itself,
        and read no answer, are not counted.
    :param prepare: is run first in each child, before any call.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        name: str,
        longest: float | None = None,
        *prepare: Callable[[], object],
    ) -> None:
        self._reactor = reactor
        self.name = name
        self._prepare = prepare
        self._longest = longest
        self._child: _Child | None = None
        self._is_stopped = False
        self._deaths: list[str] = []
        self._unprepared = ""

    @property
    def pid(self) -> int | None:
        """The process id of the child, or None before its first start."""
        pid: int | None = None if self._child is None else self._child.transport.pid
        return pid

    def start(self) -> None:
        """Start the child ahead of the first call."""
        self._living_child()

    @property
    def silence(self) -> float:
        """Say for how many seconds an answer has been due; zero where none is."""
        return 0.0 if self._child is None else self._child.silence

    @property
    def subject(self) -> str:
        """The name of the process for people."""
        return f"{self.name} process"

    @property
    def problem(self) -> str:
        """The problem of the child; empty if it is well.

        The death of a child is a problem until its successor has answered a `ping`.
        """
        return self._deaths[-1] if self._deaths else self._unprepared

    @property
    def can_work(self) -> bool:
        """Whether calls are worth a try: no two children have died in a row."""
        return not self._unprepared and len(self._deaths) < 2

    def ping(self) -> None:
        """Ask for an answer, unless one is due: `silence` and `problem` show the result.

        Start a successor of a child that has died.
        """
        if self._child is not None and not self._is_stopped and not self._child.silence:
            self._living_child().ask(int).addCallbacks(self._forget_deaths, lambda _: None)

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call in the child; it, and what it gives or raises, can be pickled.

        Calls of all owners run in one order.

        :raises WorkTooSlow: the call took longer than it may.
        :raises WorkerDied: the child has died.
        :raises StoreUnavailable: the worker has been stopped; or the child was killed since it
            took too long, and does not end: nobody knows what it does yet.
        """
        if self._is_stopped:
            return fail(StoreUnavailable(f"the {self.name} process has been stopped"))
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
            child = self._child = _Child(self.name, self._reactor, self._longest, self._note_death)
            self._unprepared = ""
            with _endings_held():
                self._reactor.spawnProcess(
                    child,
                    sys.executable,
                    [sys.executable, "-m", CHILD, self.name],
                    env=None,
                    childFDs={REQUESTS: "w", ANSWERS: "r", ERRORS: "r"},
                )
            for call in self._prepare:
                child.ask(call).addErrback(self._log_unprepared)
        return self._child

    def _log_unprepared(self, failure: Failure) -> None:
        if not failure.check(WorkerDied):
            self._unprepared = "it was not prepared: the log has the cause"
            self._log.failure("the {name} process was not prepared", failure, name=self.name)

    def _note_death(self, how: str) -> None:
        # Neither the end of the daemon nor a child that the daemon closes is a death.
        if not self._is_stopped:
            self._deaths = [*self._deaths[-1:], how]

    def _forget_deaths(self, _: object) -> None:
        self._deaths = []


@contextmanager
def _endings_held() -> Iterator[None]:
    """Have a child begin without them: one that comes before it can ignore it would end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Child(ProcessProtocol):
    """The parent's end of one child."""

    _log = Logger()
    transport: Any  # an IProcessTransport with its pipes, as POSIX reactors have it

    def __init__(
        self,
        name: str,
        reactor: Any,
        longest: float | None,
        note_death: Callable[[str], None],
    ) -> None:
        self._name = name
        self._reactor = reactor
        self._longest = longest
        self._note_death = note_death
        self._silent_since = 0.0
        self._timer: IDelayedCall | None = None
        self._asked: deque[Deferred[Any]] = deque()
        self._received = bytearray()
        self._is_direct = False
        self._is_too_slow = False
        self.has_ended = False
        self._when_ended: Deferred[None] = Deferred()

    def ask(self, call: Callable[[], Any]) -> Deferred[Any]:
        request = _pickled(call)
        self._send(LENGTH.pack(len(request)), request)
        answer: Deferred[Any] = Deferred()
        if not self._asked:
            self._silent_since = self._reactor.seconds()
        self._asked.append(answer)
        if self._timer is None:
            self._timer = self._reactor.callLater(LOOK, self._look)
        return answer

    @property
    def silence(self) -> float:
        if not self._asked or self._timer is None:
            return 0.0
        # After the next look was due it is we who were held up, and have not listened.
        listened_until: float = min(self._reactor.seconds(), self._timer.getTime())
        return listened_until - self._silent_since

    def _look(self) -> None:
        """Kill a child that owes an answer for too long; look again later at one that does not.

        So there is one timer for many calls, and none where none is asked.
        """
        assert self._timer is not None
        due, self._timer = self._timer.getTime(), None
        if not self._asked:
            return
        now = self._reactor.seconds()
        self._silent_since = min(self._silent_since + now - due, now)
        left = LOOK
        if self._longest is not None:
            left = min(LOOK, self._silent_since + self._longest - now)
        if left > 0:
            self._timer = self._reactor.callLater(left, self._look)
            return
        self._log.error(
            "{name} process: no answer for {seconds} s, it is replaced",
            name=self._name,
            seconds=self._longest,
        )
        self._is_too_slow = True
        self.kill()
        self._timer = self._reactor.callLater(LAST_GRACE, self._abandon)

    def _abandon(self) -> None:
        self._timer = None
        self._log.error("{name} process: it does not end", name=self._name)
        self.has_ended = True
        self._note_death("it does not answer, and does not end")
        problem = f"the {self._name} process does not answer, and does not end"
        while self._asked:
            self._asked.popleft().errback(StoreUnavailable(problem))

    def _send(self, length: bytes, request: bytes) -> None:
        """Write a frame, at once where the pipe takes it.

        Through the pipe's own buffer it would wait for the reactor's next round,
        which changes what is watched four times for it.
        """
        pipe = self.transport.pipes.get(REQUESTS)
        # When all that was sent has been answered nothing waits in the buffer.
        is_direct = pipe is not None and (self._is_direct or not self._asked)
        # A large mail that waits in the buffer alone is not copied there.
        first, rest = (length, request) if len(request) > MAX_DIRECT else (length + request, b"")
        if is_direct:
            sent = pipe.writeSomeData(first)
            first = first[sent:] if isinstance(sent, int) else first
        self._is_direct = is_direct and not (first or rest)
        for waiting in filter(None, (first, rest)):
            self.transport.writeToChild(REQUESTS, waiting)

    def finish(self) -> Deferred[None]:
        if not self.has_ended:
            self.transport.closeChildFD(REQUESTS)
            if self._longest is not None:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = self._reactor.callLater(self._longest, self._end)
        return self._when_ended

    def _end(self) -> None:
        self._timer = None
        self.kill()

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
        # Each piece is put where it belongs as it comes, and unpickled from there: twenty
        # megabytes that are copied twice more, when the last one is there, hold everybody up.
        received = self._received
        received += data
        while len(received) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(received)[0]
            if len(received) < end:
                return
            with memoryview(received) as view, view[LENGTH.size : end] as pickled:
                answer = _unpickled(pickled)
            del received[:end]
            self._answer(answer)

    def processEnded(self, reason: Failure) -> None:
        """Fail the calls that will get no answer."""
        if not self.has_ended:
            self._note_death(f"it has died: {_ending_of(reason)}")
        self.has_ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not reason.check(ProcessDone):
            self._log.error("{name} process: {why}", name=self._name, why=reason.getErrorMessage())
        if self._is_too_slow and self._asked:
            # The child was at the first of its calls; the others may be tried again.
            problem = f"it took the {self._name} process longer than {self._longest:g} seconds"
            self._asked.popleft().errback(WorkTooSlow(problem))
        while self._asked:
            self._asked.popleft().errback(WorkerDied(f"the {self._name} process has died"))
        self._when_ended.callback(None)

    def _answer(self, answer: Any) -> None:
        asked = self._asked.popleft()
        self._silent_since = self._reactor.seconds()
        if isinstance(answer, ExpectedFailure | Failure):
            asked.errback(answer)
        else:
            asked.callback(answer)


def _ending_of(reason: Failure) -> str:
    signal_number: int | None = getattr(reason.value, "signal", None)
    if signal_number:
        return f"signal {signal_number}"
    return f"exit status {getattr(reason.value, 'exitCode', None)}"


def _pickled(call: Callable[[], Any]) -> bytes:
    request = BytesIO()
    pickler = pickle.Pickler(request, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = PICKLED_BY
    pickler.dump(call)
    return request.getvalue()


def _unpickled(answer: memoryview) -> Any:
    # Nobody but our own child, started by us, can write to its pipe.
    try:
        return pickle.loads(answer)  # noqa: S301
    except Exception:
        return Failure()
