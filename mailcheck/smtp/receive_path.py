"""The receive path of a connection: reads commands and mail data, and sends replies in order.

It replaces the receive path of twisted.mail, which runs commands while an answer is pending, keeps
plaintext input after STARTTLS, and takes the rest of a mail with a long line for commands. Here no
input is processed while a Deferred is pending. Input that is not a command goes to a `Reader` until
that is complete.
"""

import math
import typing
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import (
    IDelayedCall,
    IOpenSSLContextFactory,
    IReactorTime,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.core.messages import TlsFacts
from mailcheck.smtp import replies
from mailcheck.smtp.commands import CommandError
from mailcheck.smtp.settings import MAX_HELD_INPUT, Limits
from mailcheck.smtp.transaction import Transcript

CRLF = b"\r\n"


class LineTooLong(Exception):
    """A line is longer than allowed. It has been skipped."""


class BareLineEnding(Exception):
    """A command line contains a bare CR, a bare LF or a NUL (RFC 5321 2.3.8)."""


class Reader(typing.Protocol):
    """Reads input that is not a command: a message, a chunk, or a line of AUTH."""

    def feed(self, data: bytes, start: int) -> int | None:
        """Read ``data`` from ``start``; return the end position once complete, or `None`."""


class LineInput:
    """A line buffer that copies each byte only a few times, however the input is split."""

    __slots__ = ("_buffer", "_held", "_is_skipping", "_max_line", "_position", "held_size")

    def __init__(self, max_line: int) -> None:
        """Accept lines of at most ``max_line`` octets, including CRLF."""
        self._max_line = max_line
        self._buffer = b""
        self._position = 0
        self._held: list[bytes] = []
        self._is_skipping = False
        self.held_size = 0

    def hold(self, data: bytes) -> None:
        """Store input until the next `add`; ``held_size`` is its size in octets."""
        self._held.append(data)
        self.held_size += len(data)

    def add(self, data: bytes) -> None:
        """Make input available, after the unread rest and the held input."""
        if self._held or self._position < len(self._buffer):
            data = b"".join((self._buffer[self._position :], *self._held, data))
            self._held.clear()
            self.held_size = 0
        self._buffer = data
        self._position = 0

    @property
    def has_more(self) -> bool:
        """Whether there is unread input."""
        return self._position < len(self._buffer)

    def drop(self) -> None:
        """Discard all unread input."""
        self._position = len(self._buffer)

    def feed(self, reader: Reader) -> bool:
        """Pass input to the reader; return whether the reader is complete."""
        end = reader.feed(self._buffer, self._position)
        self._position = len(self._buffer) if end is None else end
        return end is not None

    def take_line(self) -> bytes | None:
        """Return the next line without its CRLF, or `None` if it is incomplete.

        :raises LineTooLong: the line is too long. Raised once, when the end of the line is found.
        :raises BareLineEnding: the input cannot be split into lines safely.
        """
        start = self._position
        end = self._buffer.find(CRLF, start, start + self._max_line)
        if end < 0 or self._is_skipping:
            self._skip_or_wait()
            return None
        line = self._buffer[start:end]
        if b"\n" in line or b"\r" in line or b"\0" in line:
            raise BareLineEnding
        self._position = end + len(CRLF)
        return line

    def _skip_or_wait(self) -> None:
        rest = self._buffer[self._position :]
        if not self._is_skipping:
            if b"\n" in rest[: self._max_line]:
                raise BareLineEnding
            if len(rest) < self._max_line:
                return
            self._is_skipping = True
        end = rest.find(CRLF)
        if end < 0:
            self._position += len(rest) - rest.endswith(b"\r")
            return
        self._position += end + len(CRLF)
        self._is_skipping = False
        raise LineTooLong


class Watchdog:
    """Calls ``on_silence`` once when `reset` has not been called for some seconds.

    It also does so at the ``deadline``. `reset` only stores the time: when the timer fires, it
    checks that time and starts again if needed.
    """

    __slots__ = ("_call", "_clock", "_on_silence", "_reset_at", "_seconds", "deadline")

    def __init__(self, clock: IReactorTime, on_silence: Callable[[], None]) -> None:
        self._clock = clock
        self._on_silence = on_silence
        self._seconds = 0.0
        self._reset_at = 0.0
        self.deadline = math.inf
        self._call: IDelayedCall | None = None

    def watch(self, seconds: float) -> None:
        """Start the timeout, or change its length."""
        if self._call is None or seconds != self._seconds:
            self.stop()
            self._seconds = seconds
            self._call = self._clock.callLater(seconds, self._check)
        self.reset()

    def reset(self) -> None:
        """Restart the timeout."""
        self._reset_at = self._clock.seconds()

    def stop(self) -> None:
        """Stop the timeout."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _check(self) -> None:
        left = min(self._reset_at + self._seconds, self.deadline) - self._clock.seconds()
        if left > 0:
            self._call = self._clock.callLater(left, self._check)
        else:
            self._call = None
            self._on_silence()


class Wire:
    """Sends the replies to pipelined commands together.

    Replies are written to the socket directly while it accepts them whole. The buffer of the
    transport would add two system calls to each reply: a tenth of the CPU time of a mail.
    """

    __slots__ = ("_is_bare_socket", "_is_paused", "_lines", "_takes_all", "_transport")

    def __init__(self, transport: Any) -> None:
        """Use a transport that provides ITLSTransport and IPushProducer."""
        self._transport = transport
        if ITCPTransport.providedBy(transport):
            # Otherwise a second reply waits until the client acknowledges the first one, which
            # the client may delay by 40 ms.
            transport.setTcpNoDelay(True)
        self._is_bare_socket = self._takes_all = isinstance(transport, FileDescriptor)
        self._is_paused = False
        self._lines: list[bytes] = []

    def add(self, line: bytes) -> None:
        """Queue a reply for the next `flush`."""
        self._lines.append(line)

    def flush(self) -> None:
        """Send the queued replies."""
        if not self._lines:
            return
        data = b"".join(self._lines)
        self._lines.clear()
        if self._takes_all and self._transport.connected:
            sent = self._transport.writeSomeData(data)  # an exception if the connection is lost
            if sent == len(data):
                return
            # The rest and all later replies go through the buffer, in order.
            self._takes_all = False
            data = data[sent:] if isinstance(sent, int) else data
        self._transport.write(data)

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Start TLS."""
        self.flush()
        self._is_bare_socket = self._takes_all = False
        self._transport.startTLS(certificate)

    def tls_facts(self) -> TlsFacts:
        """Return the TLS version and cipher."""
        handle = self._transport.getHandle()
        return TlsFacts(handle.get_protocol_version_name(), handle.get_cipher_name())

    def pause(self) -> None:
        """Stop reading from the client."""
        if not self._is_paused:
            self._is_paused = True
            self._transport.pauseProducing()

    def resume(self) -> None:
        """Read from the client again."""
        if self._is_paused:
            self._is_paused = False
            self._transport.resumeProducing()

    def close(self) -> None:
        """Send the queued replies and close the connection."""
        self.flush()
        self._transport.loseConnection()

    def half_close(self) -> None:
        """Send the queued replies and close our side; the client closes the other side.

        Closing a socket with unread input resets the connection. A client that is still sending
        would then lose the last reply.
        """
        self.flush()
        if self._is_bare_socket:
            self._transport.loseWriteConnection()
        else:
            self._transport.loseConnection()

    def abort(self) -> None:
        """Abort the connection."""
        self._transport.abortConnection()


T = TypeVar("T")

FIRST_REJECTION_OCTET = ord("4")
"""First octet of the replies that reject something: this value or a larger one."""


class ReceivePath(Protocol):
    """The part of a connection that handles lines, readers and replies, but no commands."""

    def __init__(self, limits: Limits, clock: IReactorTime) -> None:
        self.limits = limits
        self.clock = clock
        self.transcript = Transcript()
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
    def note_refusal(self, line: bytes) -> None:
        """Record that a command or the client is rejected with this reply."""

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
        self._watchdog.watch(min(self.limits.first_command, self.limits.idle))

    def await_commands(self) -> None:
        """Start the normal timeout for each command."""
        self._watchdog.watch(self.limits.idle)

    def drop_input(self) -> None:
        """Discard all input after the current command."""
        self._input.drop()

    def reply(self, line: bytes) -> None:
        """Send a reply; replies to pipelined commands are sent together."""
        if not self._is_closed:
            if line[0] >= FIRST_REJECTION_OCTET:
                self.note_refusal(line)
            self.transcript.record_reply(line)
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
            self.half_close_with(replies.TIMED_OUT)
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

    def drain(self, farewell: bytes = replies.SHUTTING_DOWN) -> None:
        """Close the connection as soon as no mail is in progress."""
        self._farewell = farewell
        if self.is_idle:
            self.half_close_with(farewell)

    def abort(self) -> None:
        """Abort the connection."""
        self._is_closed = True
        self._wire.abort()

    # Internal methods.

    def _stop(self) -> None:
        self._is_closed = True
        self._input.drop()
        self._reader = None
        self._watchdog.deadline = math.inf
        self._watchdog.watch(self.limits.closing)

    def _end_silence(self) -> None:
        if self._is_closed:
            self._wire.abort()
        elif self._is_waiting:  # our answer is pending
            self._watchdog.watch(self.limits.idle)
        else:
            self.half_close_with(replies.TIMED_OUT)

    def _run(self, data: bytes = b"") -> None:
        self._is_running = True
        try:
            self._input.add(data)
            while self._input.has_more and self._step():
                pass
        except BareLineEnding:
            self.half_close_with(replies.BARE_LINE_ENDING)
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
                self.reject(replies.LINE_TOO_LONG)
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
            self.half_close_with(replies.INTERNAL_ERROR)
