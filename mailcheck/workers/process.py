"""A worker that runs calls in a child process, for work that would hold the interpreter lock.

Calls and results are pickled, so a call is a module-level function with its
arguments (`functools.partial`) or a method of an object that can be pickled. Calls run one
at a time, in order. If the child dies, the calls under way fail and the next call
starts a new child. A child that does not answer in time is killed.
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
"""Maximum octets to write to the pipe at once: the capacity of a pipe."""

LAST_GRACE = 1.5
"""Seconds to wait for the end of a killed child. A child may hang in a disk wait."""

LOOK = 1.0
"""Seconds between checks of a child that owes an answer."""

PICKLED_BY = {
    kind: reduce for kind, reduce in copyreg.dispatch_table.items() if kind is not MethodType
}
"""Pickling functions by type. Methods are pickled as Python does it: Twisted registers its own
function for them, and unpickling with that would import Twisted in the child."""


class ProcessWorker:
    """Runs calls in a child process.

    :param longest: timeout in seconds for a call, counted from the answer to the one before. A
        child that takes longer is killed. Time during which this process was blocked itself and
        read no answers is not counted.
    :param prepare: calls that run first in each new child.
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
        """The process id of the child, or `None` before its first start."""
        pid: int | None = None if self._child is None else self._child.transport.pid
        return pid

    def start(self) -> None:
        """Start the child before the first call."""
        self._living_child()

    @property
    def silence(self) -> float:
        """Seconds for which an answer has been due; zero if none is due."""
        return 0.0 if self._child is None else self._child.silence

    @property
    def subject(self) -> str:
        """The name of the process in messages."""
        return f"{self.name} process"

    @property
    def problem(self) -> str:
        """The problem of the child, or an empty text.

        The death of a child is a problem until its successor has answered a `ping`.
        """
        return self._deaths[-1] if self._deaths else self._unprepared

    @property
    def can_work(self) -> bool:
        """Whether calls may succeed: no two children have died in a row."""
        return not self._unprepared and len(self._deaths) < 2

    def ping(self) -> None:
        """Send an empty call unless an answer is due. `silence` and `problem` show the result.

        Start a successor of a child that has died.
        """
        if self._child is not None and not self._is_stopped and not self._child.silence:
            self._living_child().ask(int).addCallbacks(self._forget_deaths, lambda _: None)

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run the call in the child. The call, its result and its exceptions must be picklable.

        The calls of all owners run in one queue.

        :raises WorkTooSlow: the call exceeded the timeout.
        :raises WorkerDied: the child has died.
        :raises StoreUnavailable: the worker was stopped, or the child was killed after a timeout
            and has not ended yet. The effects of the call are unknown then.
        """
        if self._is_stopped:
            return fail(StoreUnavailable(f"the {self.name} process has been stopped"))
        return self._living_child().ask(call)

    def stop(self) -> Deferred[None]:
        """Let the child finish its calls and end. Fires when it has ended."""
        self._is_stopped = True
        return succeed(None) if self._child is None else self._child.finish()

    def kill(self) -> None:
        """Kill the child. The calls under way fail, and the next call starts a new child."""
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
        # The end of a child while the worker stops is not a failure.
        if not self._is_stopped:
            self._deaths = [*self._deaths[-1:], how]

    def _forget_deaths(self, _: object) -> None:
        self._deaths = []


@contextmanager
def _endings_held() -> Iterator[None]:
    """Block these signals for a new child until it ignores them, since they would end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Child(ProcessProtocol):
    """The parent's protocol of one child."""

    _log = Logger()
    transport: Any  # an IProcessTransport with its pipes, as of POSIX reactors

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
        if REQUESTS not in self.transport.pipes:
            # The pipe of a child that dies is closed before its end is reported.
            return fail(self._death())
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
        # If the timer is overdue, this process was blocked and has not read answers.
        listened_until: float = min(self._reactor.seconds(), self._timer.getTime())
        return listened_until - self._silent_since

    def _look(self) -> None:
        """Kill a child whose answer is overdue; otherwise schedule the next check.

        One timer serves all calls. It is not set while no answer is due.
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
        """Write a frame, directly to the pipe if possible.

        The buffer of the transport would be written in the next reactor iteration,
        and costs four changes of the watched descriptors.
        """
        pipe = self.transport.pipes.get(REQUESTS)
        # If all requests are answered, the buffer is empty.
        is_direct = pipe is not None and (self._is_direct or not self._asked)
        # A large mail is written separately, to avoid copying it.
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
        # A child that has ended fails its calls by itself.
        with suppress(ProcessExitedAlready):
            self.transport.signalProcess("KILL")

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Collect answers, and log the error output of the child."""
        if childFD != ANSWERS:
            text = data.decode("utf-8", "replace").rstrip()
            self._log.warn("{name} process: {text}", name=self._name, text=text)
            return
        # Data is appended as it arrives and unpickled in place. Joining 20 megabytes at the end
        # would copy them twice more and block the reactor.
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
        """Fail the calls without an answer."""
        if not self.has_ended:
            self._note_death(f"it has died: {_ending_of(reason)}")
        self.has_ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not reason.check(ProcessDone):
            self._log.error("{name} process: {why}", name=self._name, why=reason.getErrorMessage())
        if self._is_too_slow and self._asked:
            # The child was running the first of its calls. The others may be retried.
            problem = f"it took the {self._name} process longer than {self._longest:g} seconds"
            self._asked.popleft().errback(WorkTooSlow(problem))
        while self._asked:
            self._asked.popleft().errback(self._death())
        self._when_ended.callback(None)

    def _death(self) -> WorkerDied:
        return WorkerDied(f"the {self._name} process has died")

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
    # Only the child, which this process started, can write to its pipe.
    try:
        return pickle.loads(answer)  # noqa: S301
    except Exception:
        return Failure()
