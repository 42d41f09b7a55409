"""The timeouts of a connection, and the way of its replies to the client."""

import math
from collections.abc import Callable
from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.interfaces import (
    IDelayedCall,
    IOpenSSLContextFactory,
    IReactorTime,
    ITCPTransport,
)

from mailcheck.core.messages import TlsFacts


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

    def use_buffer(self) -> None:
        """Send the queued replies, and all later ones after what is written to the transport."""
        self.flush()
        self._takes_all = False

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
