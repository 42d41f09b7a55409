"""Which resolvers are asked: given by the operator or the system, and in what order."""

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

DNS_PORT = 53
RESOLV_CONF = "/etc/resolv.conf"
MAX_SYSTEM_SERVERS = 3  # MAXNS of resolv.conf(5)

MAX_SILENCES = 5  # lost in a row, without any answer, until a server counts as down
REST = 10.0  # seconds that a server which is down is asked last

_WITH_PORT = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<v4>[^:\[\]]+)):(?P<port>[0-9]{1,5})")


class Server(NamedTuple):
    """A resolver: its IP address, normalised, and its port (UDP and TCP)."""

    host: str
    port: int = DNS_PORT

    @property
    def is_ipv6(self) -> bool:
        """Tell the address family."""
        return ":" in self.host


def parse_server(text: str) -> Server:
    """Read ``192.0.2.1``, ``192.0.2.1:5354``, ``2001:db8::1`` or ``[2001:db8::1]:5354``.

    :raises ValueError: it is none of these. A host name would need a resolver first.
    """
    text = text.strip()
    match = _WITH_PORT.fullmatch(text)
    if match is None:
        is_bracketed = text.startswith("[") and text.endswith("]")
        return Server(_parse_host(text[1:-1] if is_bracketed else text, text))
    port = int(match["port"])
    if not 0 < port < 0x10000:
        raise ValueError(f"not a port from 1 to 65535: {text!r}")
    return Server(_parse_host(match["v6"] or match["v4"], text), port)


def _parse_host(host: str, text: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        raise ValueError(f"not an IP address with an optional port: {text!r}") from None


def system_servers(path: str = RESOLV_CONF) -> tuple[Server, ...]:
    """Give the resolvers of the system, as resolv.conf(5): the local host where it names none."""
    try:
        lines = Path(path).read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines]
    named = [fields[1] for fields in words if len(fields) > 1 and fields[0] == "nameserver"]
    servers = tuple(_valid_servers(named))[:MAX_SYSTEM_SERVERS]
    return servers or (Server("127.0.0.1"),)


def _valid_servers(texts: Iterable[str]) -> Iterable[Server]:
    for text in texts:
        try:
            yield Server(_parse_host(text, text))
        except ValueError:
            continue  # as the C library does


class ServerRotation:
    """The order in which servers are asked: each in turn comes first, those that are down last.

    Pure: ``now`` is in seconds. A server is down when it could not be reached,
    or lost `MAX_SILENCES` questions in a row; after `REST` seconds, or one
    answer, it is as good as any.
    """

    def __init__(self, servers: Iterable[Server]) -> None:
        self._servers = tuple(servers)
        if not self._servers:
            raise ValueError("at least one DNS server is needed")
        self._next = 0
        self._silences: dict[Server, int] = {}
        self._down_until: dict[Server, float] = {}

    def order(self, now: float) -> tuple[Server, ...]:
        """Give all servers in the order for the next question."""
        first = self._next
        self._next = (first + 1) % len(self._servers)
        servers = self._servers[first:] + self._servers[:first]
        if not self._down_until:
            return servers
        return tuple(sorted(servers, key=lambda server: self._down_until.get(server, 0.0) > now))

    def note_answer(self, server: Server) -> None:
        """Note that the server said something."""
        if self._silences:
            self._silences.pop(server, None)
            self._down_until.pop(server, None)

    def note_failure(self, server: Server, now: float, is_unreachable: bool) -> None:
        """Note that a question got no answer in time, or could not even be sent."""
        silences = self._silences.get(server, 0) + 1
        self._silences[server] = silences
        if is_unreachable or silences >= MAX_SILENCES:
            self._down_until[server] = now + REST

    @property
    def silent(self) -> tuple[Server, ...]:
        """Those that are down: they have not answered since."""
        return tuple(self._down_until)
