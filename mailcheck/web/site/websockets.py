"""WebSockets (RFC 6455) to which the server sends texts. What a client sends is not used."""

from collections.abc import Callable, Mapping

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from mailcheck.core.errors import InvalidParameter

GOING_AWAY = 1001
"""The status of a close by a server that is stopping (RFC 6455 7.4.1)."""


class WebSocket:
    """The frames of one connection, without I/O.

    :param headers: the headers of the request to upgrade, by lower-case name.
    :raises InvalidParameter: they are not those of a handshake.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._connection = WSConnection(ConnectionType.SERVER)
        self._write: Callable[[bytes], object] = _discard
        self._hang_up: Callable[[], object] = _do_nothing
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        try:
            self._connection.initiate_upgrade_connection(encoded, "/")
        except ProtocolError as error:
            raise InvalidParameter("Upgrade", f"send a WebSocket handshake: {error}") from None

    def open(self, write: Callable[[bytes], object], hang_up: Callable[[], object]) -> None:
        """Accept the connection; ``hang_up`` closes it after all that was written."""
        self._write, self._hang_up = write, hang_up
        self._send(AcceptConnection())

    def receive(self, data: bytes) -> None:
        """Handle bytes of the client: answer pings and the close."""
        try:
            self._connection.receive_data(data)
            for event in self._connection.events():
                if isinstance(event, Ping):
                    self._send(event.response())
                elif isinstance(event, CloseConnection):
                    self._send(event.response())
                    self.end()
                    return
        except ProtocolError:
            self.end()

    def send(self, text: bytes) -> None:
        """Send a text in UTF-8."""
        self._send(TextMessage(text.decode()))

    def ping(self) -> None:
        """Send a ping, so that proxies keep the connection."""
        self._send(Ping())

    def close(self) -> None:
        """Tell the client that the server is going away, and close the connection."""
        self._send(CloseConnection(GOING_AWAY))
        self.end()

    def end(self) -> None:
        """Close the connection. Nothing more is sent."""
        self._write = _discard
        self._hang_up()

    def _send(self, event: Event) -> None:
        if self._write is not _discard:
            self._write(self._connection.send(event))


def _discard(_: bytes) -> None:
    """Write nothing: the connection is closed, or not open yet."""


def _do_nothing() -> None:
    """Close nothing: the connection is not open yet."""
