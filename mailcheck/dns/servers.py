"""The DNS resolvers of the operator or of the system, and the order in which to ask them."""

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

DNS_PORT = 53
RESOLV_CONF = "/etc/resolv.conf"
MAX_SYSTEM_SERVERS = 3  # MAXNS of resolv.conf(5)

MAX_FAILURES = 5  # consecutive questions without an answer after which a server counts as down
DOWN_SECONDS = 10.0  # seconds for which a server that is down is asked last

_WITH_PORT = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<v4>[^:\[\]]+)):(?P<port>[0-9]{1,5})")


class Server(NamedTuple):
    """A resolver: its normalised IP address, and its port for UDP and TCP."""

    host: str
    port: int = DNS_PORT

    @property
    def is_ipv6(self) -> bool:
        """Whether the address is an IPv6 address."""
        return ":" in self.host


def parse_server(text: str) -> Server:
    """Parse ``192.0.2.1``, ``192.0.2.1:5354``, ``2001:db8::1`` or ``[2001:db8::1]:5354``.

    :raises ValueError: any other text. A host name would need a resolver first.
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
    """Return the resolvers of resolv.conf(5), or the local host if it names none."""
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
    """The order in which servers are asked: round robin, with servers that are down last.

    ``now`` is in seconds. A server is down if it could not be reached, or after `MAX_FAILURES`
    consecutive questions without an answer. It is up again after `DOWN_SECONDS` or one answer.
    """

    def __init__(self, servers: Iterable[Server]) -> None:
        self._servers = tuple(servers)
        if not self._servers:
            raise ValueError("at least one DNS server is needed")
        self._next = 0
        self._failures: dict[Server, int] = {}
        self._down_until: dict[Server, float] = {}

    def order(self, now: float) -> tuple[Server, ...]:
        """Return all servers in the order for the next question."""
        first = self._next
        self._next = (first + 1) % len(self._servers)
        servers = self._servers[first:] + self._servers[:first]
        if not self._down_until:
            return servers
        return tuple(sorted(servers, key=lambda server: self._down_until.get(server, 0.0) > now))

    def note_answer(self, server: Server) -> None:
        """Record a reply of any kind."""
        if self._failures:
            self._failures.pop(server, None)
            self._down_until.pop(server, None)

    def note_failure(self, server: Server, now: float, is_unreachable: bool) -> None:
        """Record a question that could not be sent or had no answer in time."""
        failures = self._failures.get(server, 0) + 1
        self._failures[server] = failures
        if is_unreachable or failures >= MAX_FAILURES:
            self._down_until[server] = now + DOWN_SECONDS

    @property
    def unresponsive(self) -> tuple[Server, ...]:
        """The servers that are down and have not replied since."""
        return tuple(self._down_until)
