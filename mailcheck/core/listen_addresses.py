"""Where to listen: ``host:port`` for people, Twisted's endpoint strings for the rest."""

import re
from dataclasses import dataclass

_ENDPOINT = re.compile(r"(tcp|tcp4|tcp6|unix|systemd|ssl|tls|fd):", re.ASCII)
_HOST_PORT = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:]+)):(?P<port>\d{1,5})")

BACKLOG = 4_096
"""Connections that may wait to be accepted: with Twisted's 50, 2,000 clients wait for 27 s."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """``endpoint`` is a Twisted endpoint string; host and port are known for ``host:port`` only."""

    endpoint: str
    host: str | None
    port: int | None

    @property
    def url(self) -> str | None:
        """Give the address as a browser on this machine would write it."""
        if self.host is None:
            return None
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """Read where to listen.

    :raises ValueError: it is neither form.
    """
    if _ENDPOINT.match(text):
        return ListenAddress(text, None, None)
    match = _HOST_PORT.fullmatch(text)
    if match is None or int(match["port"]) > 65_535:
        raise ValueError("write host:port, [IPv6]:port, or a Twisted endpoint")
    host = match["six"] or match["host"]
    escaped = host.replace(":", r"\:")
    endpoint = (
        f"tcp{6 if match['six'] else ''}:{match['port']}:interface={escaped}:backlog={BACKLOG}"
    )
    return ListenAddress(endpoint, host, int(match["port"]))
