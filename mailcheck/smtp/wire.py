"""The transport as the receive path uses it."""

from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.interfaces import IOpenSSLContextFactory, ITCPTransport

from mailcheck.core.messages import TlsFacts


class Wire:
    """Sends the replies to pipelined commands together, at once where the socket takes them.

    A reply through the transport's own buffer waits for the reactor to report
    the socket as writable: one more round and two system calls. As long as
    all that was written was taken at once there is nothing it could overtake.
    """

    __slots__ = ("_is_bare_socket", "_is_direct", "_is_paused", "_lines", "_transport")

    def __init__(self, transport: Any) -> None:
        """Use a transport that is an ITLSTransport and an IPushProducer at once."""
        self._transport = transport
        if ITCPTransport.providedBy(transport):
            # Else a reply that follows another one waits until the client has
            # acknowledged that, which it may put off for 40 ms.
            transport.setTcpNoDelay(True)
        self._is_bare_socket = isinstance(transport, FileDescriptor)
        self._is_direct = self._is_bare_socket
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
        if self._is_direct:
            sent = self._transport.writeSomeData(data)
            if sent == len(data):
                return
            # The rest, and all that follows it, goes through the buffer.
            self._is_direct = False
            data = data[sent:] if isinstance(sent, int) else data
        self._transport.write(data)

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Encrypt from here on."""
        self.flush()
        self._is_direct = self._is_bare_socket = False
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
