"""A name server in front of another one, which holds questions until the test releases them.

    with running_holding_name_server(server, ["uribl.com"]) as held:
        ...  # query held.server; questions below uribl.com wait
        held.release()

Other questions and answers are forwarded. UDP only.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence

import dns.exception
import dns.message
import dns.name

from mailcheck.dns.servers import Server

ANSWER_DEADLINE = 60.0  # seconds
LONGEST = 65_535  # octets of a datagram


class HoldingNameServer:
    """The server in front; ``server`` is its address."""

    def __init__(self, behind: Server, suffixes: Sequence[str]) -> None:
        self._behind = (behind.host, behind.port)
        self._suffixes = [dns.name.from_text(suffix) for suffix in suffixes]
        self._is_holding = True
        self._held: list[tuple[bytes, tuple[str, int]]] = []
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((behind.host, 0))
        self.server = Server(*self._socket.getsockname())

    @property
    def is_holding_questions(self) -> bool:
        """Whether a client waits for the answer to a question."""
        with self._lock:
            return bool(self._held)

    def hold(self) -> None:
        """Start to hold questions."""
        with self._lock:
            self._is_holding = True

    def release(self) -> None:
        """Forward the held questions, and hold no more."""
        with self._lock:
            self._is_holding = False
            held, self._held = self._held, []
        for datagram, client in held:
            self._pass_on(datagram, client)

    def run(self) -> None:
        """Serve until the socket is closed."""
        while True:
            try:
                datagram, client = self._socket.recvfrom(LONGEST)
            except OSError:
                return
            if not datagram:  # closing the socket wakes this thread so
                return
            with self._lock:
                is_held = self._is_holding and self._is_below(datagram)
                if is_held:
                    self._held.append((datagram, client))
            if not is_held:
                self._pass_on(datagram, client)

    def close(self) -> None:
        """Stop the server."""
        with contextlib.suppress(OSError):  # the socket is not connected
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for datagrams
        self._socket.close()

    def _is_below(self, datagram: bytes) -> bool:
        try:
            name = dns.message.from_wire(datagram).question[0].name
        except (dns.exception.DNSException, IndexError):
            return False
        return any(name.is_subdomain(suffix) for suffix in self._suffixes)

    def _pass_on(self, datagram: bytes, client: tuple[str, int]) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as behind:
            behind.settimeout(ANSWER_DEADLINE)
            behind.sendto(datagram, self._behind)
            try:
                self._socket.sendto(behind.recv(LONGEST), client)
            except OSError:
                return  # the client has gone, or no server answers


@contextlib.contextmanager
def running_holding_name_server(
    behind: Server, suffixes: Sequence[str]
) -> Iterator[HoldingNameServer]:
    """Run the server in front as long as the context lasts."""
    held = HoldingNameServer(behind, suffixes)
    thread = threading.Thread(target=held.run, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        held.close()
        thread.join(ANSWER_DEADLINE)
