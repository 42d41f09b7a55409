"""The receive path of a connection: reads commands and data, and sends replies in order.

It replaces the receive path of twisted.mail, which runs commands while an answer is pending, keeps
plaintext input after STARTTLS, and takes the rest of a mail with a long line for commands. Here no
input is processed while a Deferred is pending. Input that is not a command goes to a `Reader` until
that is complete.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeVar

from msgspec import Struct
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IOpenSSLContextFactory, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.connections.lines import (
    MAX_HELD_INPUT,
    BareLineEnding,
    CommandError,
    LineInput,
    LineTooLong,
    Reader,
)
from mailcheck.connections.wire import Watchdog, Wire

T = TypeVar("T")


class LineLimits(Struct, frozen=True):
    """The limits of a connection: octets of a command line with its CRLF, and times in seconds.

    ``first_command`` is the time from the greeting to the end of the first command, ``idle`` the
    time to the end of the next one, and ``closing`` the time for reading the last reply.
    """

    command_line: int
    first_command: float
    idle: float
    closing: float


class ReceiveReplies(Struct, frozen=True):
    """The replies that the receive path itself sends, in the form of the protocol."""

    timed_out: bytes
    shutting_down: bytes
    bare_line_ending: bytes
    line_too_long: bytes
    internal_error: bytes


class ReceivePath(Protocol):
    """The part of a connection that handles lines, readers and replies, but no commands."""

    own_replies: ClassVar[ReceiveReplies]

    def __init__(self, limits: LineLimits, clock: IReactorTime) -> None:
        self.clock = clock
        self._line_limits = limits
        self._input = LineInput(limits.command_line)
        self._watchdog = Watchdog(clock, self._end_silence)
        self._reader: Reader | None = None
        self._on_read: Callable[[], None] = lambda: None
        self._is_running = False
        self._is_waiting = False
        self._farewell = b""
        self._is_closed = False

    @abstractmethod
    def dispatch(self, line: bytes) -> None:
        """Run a command line.

        :raises CommandError: the command is rejected.
        """

    @abstractmethod
    def reject(self, line: bytes) -> None:
        """Send the reply to an invalid command."""

    @abstractmethod
    def note_reply(self, line: bytes) -> None:
        """Record a reply that is being sent."""

    @abstractmethod
    def log_failure(self, failure: Failure) -> None:
        """Log an unexpected failure."""

    # Methods that Twisted calls.

    def connectionMade(self) -> None:
        """Start reading and replying."""
        self._wire = Wire(self.transport)
        self.await_first_command()

    def dataReceived(self, data: bytes) -> None:
        """Process input, or store it while an answer is pending."""
        if self._is_closed:
            return
        if self._is_waiting:
            self._input.hold(data)
            if self._input.held_size > MAX_HELD_INPUT:
                self._wire.pause()
            return
        if self._reader is not None:
            # Half a command does not reset the timeout. A message may take longer while it makes
            # progress, up to its deadline.
            self._watchdog.reset()
        self._run(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release everything; a pending answer still arrives and is ignored."""
        self._is_closed = True
        self._watchdog.stop()
        self._reader = None

    # Methods for commands.

    @property
    def has_more_input(self) -> bool:
        """Whether the client has sent more than the current command."""
        return self._input.has_more

    @property
    def is_idle(self) -> bool:
        """Whether no answer is pending and no part of a mail is expected."""
        return not (self._is_waiting or self._reader or self._is_closed)

    def await_first_command(self) -> None:
        """Start the short timeout for the first command."""
        self._watchdog.watch(min(self._line_limits.first_command, self._line_limits.idle))

    def await_commands(self) -> None:
        """Start the normal timeout for each command."""
        self._watchdog.watch(self._line_limits.idle)

    def drop_input(self) -> None:
        """Discard all input after the current command."""
        self._input.drop()

    def reply(self, line: bytes) -> None:
        """Send a reply; replies to pipelined commands are sent together."""
        if not self._is_closed:
            self.note_reply(line)
            self._wire.add(line)
            if not self._is_running:
                self._wire.flush()

    def call(
        self,
        function: Callable[[], T | Deferred[T]],
        on_success: Callable[[T], Deferred[None] | None],
        on_failure: Callable[[Failure], Deferred[None] | None],
    ) -> None:
        """Call a function and continue with its result, or wait for its Deferred."""
        try:
            answer = function()
        except Exception:
            answer = fail()
        if isinstance(answer, Deferred):
            self.wait_for(answer, on_success, on_failure)
        else:
            on_success(answer)

    def wait_for(
        self,
        answer: Deferred[T],
        on_success: Callable[[T], Deferred[None] | None],
        on_failure: Callable[[Failure], Deferred[None] | None],
    ) -> None:
        """Process no more input until the Deferred and its callback are done."""
        self._is_waiting = True
        answer.addCallbacks(
            self._handle_answer, self._handle_answer, (on_success,), errbackArgs=(on_failure,)
        )

    def read(self, reader: Reader, deadline: float, then: Callable[[], None]) -> None:
        """Pass input to a reader until it is complete, at the latest by the deadline."""
        if self.clock.seconds() > deadline:
            self.half_close_with(self.own_replies.timed_out)
            return
        self._reader = reader
        self._watchdog.deadline = deadline
        self._on_read = then

    def close_with(self, line: bytes) -> None:
        """Send a last reply to a client that expects no more, and close the connection."""
        self.reply(line)
        self._stop()
        self._wire.close()

    def half_close_with(self, line: bytes) -> None:
        """Send a last reply to a client that may still be sending, and close our side."""
        self.reply(line)
        self._stop()
        self._wire.half_close()

    def close_silently(self) -> None:
        """Close the connection without a reply."""
        self._stop()
        self._wire.close()

    def drain(self, farewell: bytes = b"") -> None:
        """Close the connection as soon as no answer is pending and no data is expected."""
        self._farewell = farewell or self.own_replies.shutting_down
        if self.is_idle:
            self.half_close_with(self._farewell)

    def abort(self) -> None:
        """Abort the connection."""
        self._is_closed = True
        self._wire.abort()

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Start TLS, after the queued replies."""
        self._wire.start_tls(certificate)

    # Internal methods.

    def _stop(self) -> None:
        self._is_closed = True
        self._input.drop()
        self._reader = None
        self._watchdog.deadline = math.inf
        self._watchdog.watch(self._line_limits.closing)

    def _end_silence(self) -> None:
        if self._is_closed:
            self._wire.abort()
        elif self._is_waiting:  # our answer is pending
            self._watchdog.watch(self._line_limits.idle)
        else:
            self.half_close_with(self.own_replies.timed_out)

    def _run(self, data: bytes = b"") -> None:
        self._is_running = True
        try:
            self._input.add(data)
            while self._input.has_more and self._step():
                pass
        except BareLineEnding:
            self.half_close_with(self.own_replies.bare_line_ending)
        except Exception:
            self._crash(Failure())
        finally:
            self._is_running = False
        self._wire.flush()

    def _step(self) -> bool:
        """Process one item of the input; return whether to continue with the next one."""
        if self._reader is not None:
            if not self._input.feed(self._reader):
                return False
            self._reader = None
            self._watchdog.deadline = math.inf
            self._on_read()
            if self._farewell and self.is_idle:
                self.half_close_with(self._farewell)
        else:
            try:
                line = self._input.take_line()
                if line is None:
                    return False
                self._watchdog.reset()
                self.dispatch(line)
            except LineTooLong:
                self.reject(self.own_replies.line_too_long)
            except CommandError as error:
                self.reject(error.reply)
        return not (self._is_waiting or self._is_closed)

    def _handle_answer(self, answer: T, then: Callable[[T], Deferred[None] | None]) -> None:
        """Call back with an answer, and continue when the Deferred that it returns has fired."""
        try:
            done = then(answer)
        except Exception:
            self._crash(Failure())
            return
        if done is None:
            self._continue()
        else:
            done.addCallbacks(self._continue, self._crash)

    def _continue(self, _: object = None) -> None:
        self._is_waiting = False
        if self._is_running or self._is_closed:
            return
        self._watchdog.reset()
        self._wire.resume()
        if self._farewell:
            self.half_close_with(self._farewell)
        elif self._input.held_size or self._input.has_more:
            self._run()

    def _crash(self, failure: Failure) -> None:
        self.log_failure(failure)
        if not self._is_closed:
            self.half_close_with(self.own_replies.internal_error)
