"""The receive path: bytes in, one thing at a time, replies out in their order.

twisted.mail's own is replaced since it runs commands while an answer is
awaited, keeps what came in clear after STARTTLS, and takes the rest of a mail
with a long line for commands. Here nothing of a client is looked at while a
Deferred is pending, and what is not a command goes to a `Reader` until that
has its part.
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
    """A line was longer than allowed; it has been skipped."""


class BareLineEnding(Exception):
    """A command line holds a CR or LF that stands alone, or a NUL (RFC 5321 2.3.8)."""


class Reader(typing.Protocol):
    """Takes input that is not a command: a message, a chunk, a line of AUTH."""

    def feed(self, data: bytes, start: int) -> int | None:
        """Take in ``data`` from ``start``; give the position behind its part, once complete."""


class LineInput:
    """A buffer that copies no byte more than a few times, however the input is cut."""

    __slots__ = ("_buffer", "_held", "_is_skipping", "_max_line", "_position", "held_size")

    def __init__(self, max_line: int) -> None:
        """Take lines of at most ``max_line`` octets, CRLF included."""
        self._max_line = max_line
        self._buffer = b""
        self._position = 0
        self._held: list[bytes] = []
        self._is_skipping = False
        self.held_size = 0

    def hold(self, data: bytes) -> None:
        """Keep what has arrived until the next `add`; ``held_size`` octets by now."""
        self._held.append(data)
        self.held_size += len(data)

    def add(self, data: bytes) -> None:
        """Make what has arrived ready to be taken, behind the rest and what was held."""
        if self._held or self._position < len(self._buffer):
            data = b"".join((self._buffer[self._position :], *self._held, data))
            self._held.clear()
            self.held_size = 0
        self._buffer = data
        self._position = 0

    @property
    def has_more(self) -> bool:
        """Tell whether there is anything that was not taken yet."""
        return self._position < len(self._buffer)

    def drop(self) -> None:
        """Forget all that was not taken yet."""
        self._position = len(self._buffer)

    def feed(self, reader: Reader) -> bool:
        """Give the reader its part; tell whether it has all of it."""
        end = reader.feed(self._buffer, self._position)
        self._position = len(self._buffer) if end is None else end
        return end is not None

    def take_line(self) -> bytes | None:
        """Take a line, without its CRLF; nothing while its end is not there.

        :raises LineTooLong: the line was too long; once, when its end is there.
        :raises BareLineEnding: what follows can't be told into lines safely.
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
    """Calls ``on_silence`` once, when `pat` has not been called for some seconds.

    At the ``deadline`` it does so nevertheless. A pat only notes the time: the timer looks
    when it goes off whether it was patted, and goes on.
    """

    __slots__ = ("_call", "_clock", "_on_silence", "_patted_at", "_seconds", "deadline")

    def __init__(self, clock: IReactorTime, on_silence: Callable[[], None]) -> None:
        self._clock = clock
        self._on_silence = on_silence
        self._seconds = 0.0
        self._patted_at = 0.0
        self.deadline = math.inf
        self._call: IDelayedCall | None = None

    def watch(self, seconds: float) -> None:
        """Start to watch, or watch with another patience."""
        if self._call is None or seconds != self._seconds:
            self.stop()
            self._seconds = seconds
            self._call = self._clock.callLater(seconds, self._look)
        self.pat()

    def pat(self) -> None:
        """Note that something happened."""
        self._patted_at = self._clock.seconds()

    def stop(self) -> None:
        """Watch no more."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _look(self) -> None:
        left = min(self._patted_at + self._seconds, self.deadline) - self._clock.seconds()
        if left > 0:
            self._call = self._clock.callLater(left, self._look)
        else:
            self._call = None
            self._on_silence()


class Wire:
    """Sends the replies to pipelined commands together.

    Replies go to the socket at once as long as it takes them whole. Through the buffer of the
    transport each of them costs two system calls that watch the socket: a tenth of a mail's CPU.
    """

    __slots__ = ("_is_bare_socket", "_is_paused", "_lines", "_takes_all", "_transport")

    def __init__(self, transport: Any) -> None:
        """Use a transport that is an ITLSTransport and an IPushProducer at once."""
        self._transport = transport
        if ITCPTransport.providedBy(transport):
            # Else a reply that follows another one waits until the client has
            # acknowledged that, which it may put off for 40 ms.
            transport.setTcpNoDelay(True)
        self._is_bare_socket = self._takes_all = isinstance(transport, FileDescriptor)
        self._is_paused = False
        self._lines: list[bytes] = []

    def add(self, line: bytes) -> None:
        """Keep a reply for the next `flush`."""
        self._lines.append(line)

    def flush(self) -> None:
        """Send the replies that were kept."""
        if not self._lines:
            return
        data = b"".join(self._lines)
        self._lines.clear()
        if self._takes_all and self._transport.connected:
            sent = self._transport.writeSomeData(data)  # an exception when the connection is lost
            if sent == len(data):
                return
            # The rest, and every later reply, goes through the buffer, in order.
            self._takes_all = False
            data = data[sent:] if isinstance(sent, int) else data
        self._transport.write(data)

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Encrypt from here on."""
        self.flush()
        self._is_bare_socket = self._takes_all = False
        self._transport.startTLS(certificate)

    def tls_facts(self) -> TlsFacts:
        """Give what TLS has negotiated."""
        handle = self._transport.getHandle()
        return TlsFacts(handle.get_protocol_version_name(), handle.get_cipher_name())

    def pause(self) -> None:
        """Read no more from the client."""
        if not self._is_paused:
            self._is_paused = True
            self._transport.pauseProducing()

    def resume(self) -> None:
        """Read from the client again."""
        if self._is_paused:
            self._is_paused = False
            self._transport.resumeProducing()

    def hang_up(self) -> None:
        """Close the connection after the replies."""
        self.flush()
        self._transport.loseConnection()

    def hang_up_gently(self) -> None:
        """Close our side and leave the other to the client.

        A socket that is closed with input unread resets the connection, and
        the last reply would be lost to a client that is still sending.
        """
        self.flush()
        if self._is_bare_socket:
            self._transport.loseWriteConnection()
        else:
            self._transport.loseConnection()

    def cut(self) -> None:
        """End the connection at once."""
        self._transport.abortConnection()


T = TypeVar("T")

FIRST_OF_REFUSALS = ord("4")
"""The first octet of the replies that refuse something is this or a larger one."""


class ReceivePath(Protocol):
    """The part of a connection that knows lines, parts and replies, but no command."""

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
    def obey(self, line: bytes) -> None:
        """Obey a command line.

        :raises CommandError: it is refused.
        """

    @abstractmethod
    def refuse(self, line: bytes) -> None:
        """Send the reply to nonsense."""

    @abstractmethod
    def note_refusal(self, line: bytes) -> None:
        """Note that a command, or the client, is refused with this reply."""

    @abstractmethod
    def log_fault(self, failure: Failure) -> None:
        """Log a failure that nobody expected."""

    # What Twisted calls.

    def connectionMade(self) -> None:
        """Be ready to read and to reply."""
        self._wire = Wire(self.transport)
        self.await_first_command()

    def dataReceived(self, data: bytes) -> None:
        """Work through what arrived, or keep it until the pending answer is there."""
        if self._is_closed:
            return
        if self._is_waiting:
            self._input.hold(data)
            if self._input.held_size > MAX_HELD_INPUT:
                self._wire.pause()
            return
        if self._reader is not None:
            # Half a command is no sign of life; a message may take its time,
            # as long as it goes on and up to its deadline.
            self._watchdog.pat()
        self._run(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Let go of everything; an answer under way still arrives, and is told to nobody."""
        self._is_closed = True
        self._watchdog.stop()
        self._reader = None

    # What commands use.

    @property
    def has_more_input(self) -> bool:
        """Tell whether the client has sent more than the command that is being obeyed."""
        return self._input.has_more

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is under way: neither an answer of ours nor a part of a mail."""
        return not (self._is_waiting or self._reader or self._is_closed)

    def await_first_command(self) -> None:
        """Give the client a short time to say something."""
        self._watchdog.watch(min(self.limits.first_command, self.limits.idle))

    def await_commands(self) -> None:
        """Give the client the usual time for each command."""
        self._watchdog.watch(self.limits.idle)

    def drop_input(self) -> None:
        """Forget what the client has sent behind this command."""
        self._input.drop()

    def reply(self, line: bytes) -> None:
        """Send a reply; those to pipelined commands leave together."""
        if not self._is_closed:
            if line[0] >= FIRST_OF_REFUSALS:
                self.note_refusal(line)
            self.transcript.say(line)
            self._wire.add(line)
            if not self._is_running:
                self._wire.flush()

    def ask(
        self,
        question: Callable[[], T | Deferred[T]],
        then: Callable[[T], Deferred[None] | None],
        otherwise: Callable[[Failure], Deferred[None] | None],
    ) -> None:
        """Go on with the answer, at once where it is known; else as `wait_for`."""
        try:
            answer = question()
        except Exception:
            answer = fail()
        if isinstance(answer, Deferred):
            self.wait_for(answer, then, otherwise)
        else:
            then(answer)

    def wait_for(
        self,
        answer: Deferred[T],
        then: Callable[[T], Deferred[None] | None],
        otherwise: Callable[[Failure], Deferred[None] | None],
    ) -> None:
        """Look at nothing more of this client before all is done with the answer."""
        self._is_waiting = True
        answer.addCallbacks(self._use, self._use, (then,), errbackArgs=(otherwise,))

    def read(self, reader: Reader, deadline: float, then: Callable[[], None]) -> None:
        """Give the input to a reader until it has its part; all must be there by the deadline."""
        if self.clock.seconds() > deadline:
            self.close(replies.TOO_SLOW)
            return
        self._reader = reader
        self._watchdog.deadline = deadline
        self._on_read = then

    def part(self, line: bytes) -> None:
        """Send a last reply to a client that has nothing more to say, and hang up."""
        self.reply(line)
        self._stop()
        self._wire.hang_up()

    def close(self, line: bytes) -> None:
        """Send a last reply to a client that may still be talking, and hang up."""
        self.reply(line)
        self._stop()
        self._wire.hang_up_gently()

    def vanish(self) -> None:
        """End the connection in place of a reply."""
        self._stop()
        self._wire.hang_up()

    def drain(self, farewell: bytes = replies.SHUTTING_DOWN) -> None:
        """Hang up as soon as no mail is on its way."""
        self._farewell = farewell
        if self.is_idle:
            self.close(farewell)

    def cut_off(self) -> None:
        """End the connection at once."""
        self._is_closed = True
        self._wire.cut()

    # Inside.

    def _stop(self) -> None:
        self._is_closed = True
        self._input.drop()
        self._reader = None
        self._watchdog.deadline = math.inf
        self._watchdog.watch(self.limits.closing)

    def _end_silence(self) -> None:
        if self._is_closed:
            self._wire.cut()
        elif self._is_waiting:  # it is we who owe an answer
            self._watchdog.watch(self.limits.idle)
        else:
            self.close(replies.TOO_SLOW)

    def _run(self, data: bytes = b"") -> None:
        self._is_running = True
        try:
            self._input.add(data)
            while self._input.has_more and self._step():
                pass
        except BareLineEnding:
            self.close(replies.BARE_LINE_ENDING)
        except Exception:
            self._crash(Failure())
        finally:
            self._is_running = False
        self._wire.flush()

    def _step(self) -> bool:
        """Take one thing from the input; tell whether to go on with the next one."""
        if self._reader is not None:
            if not self._input.feed(self._reader):
                return False
            self._reader = None
            self._watchdog.deadline = math.inf
            self._on_read()
            if self._farewell and self.is_idle:
                self.close(self._farewell)
        else:
            try:
                line = self._input.take_line()
                if line is None:
                    return False
                self._watchdog.pat()
                self.obey(line)
            except LineTooLong:
                self.refuse(replies.LINE_TOO_LONG)
            except CommandError as error:
                self.refuse(error.reply)
        return not (self._is_waiting or self._is_closed)

    def _use(self, answer: T, then: Callable[[T], Deferred[None] | None]) -> None:
        """Go on when all is done with an answer: at once, or once another one is there."""
        try:
            done = then(answer)
        except Exception:
            self._crash(Failure())
            return
        if done is None:
            self._go_on()
        else:
            done.addCallbacks(self._go_on, self._crash)

    def _go_on(self, _: object = None) -> None:
        self._is_waiting = False
        if self._is_running or self._is_closed:
            return
        self._watchdog.pat()
        self._wire.resume()
        if self._farewell:
            self.close(self._farewell)
        elif self._input.held_size or self._input.has_more:
            self._run()

    def _crash(self, failure: Failure) -> None:
        self.log_fault(failure)
        if not self._is_closed:
            self.close(replies.CRASHED)
