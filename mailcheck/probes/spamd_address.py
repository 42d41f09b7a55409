"""The addresses of spamd and rspamd in the configuration."""

import re
from urllib.parse import urlsplit

from msgspec import Struct

_UNIX = "unix:"
_HOST_PORT = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>\d{1,5})", re.ASCII
)


class SpamdAddress(Struct, frozen=True):
    """A host and port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        """Return the address as it is configured."""
        if self.path:
            return _UNIX + self.path
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_spamd_address(text: str) -> SpamdAddress:
    """Parse ``host:port``, ``[IPv6]:port`` or ``unix:/path``.

    :raises ValueError: the text has none of these forms.
    """
    if text.startswith(_UNIX + "/"):
        return SpamdAddress(path=text.removeprefix(_UNIX))
    match = _HOST_PORT.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 65_536:
        raise ValueError("must be auto, off, host:port or unix:/path")
    return SpamdAddress(match["six"] or match["host"], int(match["port"]))


def parse_rspamd_url(text: str) -> str:
    """Return the URL of an rspamd without a slash at the end.

    :raises ValueError: it is not a URL of HTTP with nothing but a host, a port and a path.
    """
    address = text.rstrip("/")
    parts = urlsplit(address)
    is_plain = not parts.query and not parts.fragment and parts.username is None
    is_printable = all("!" <= character <= "~" for character in address)
    try:
        is_http = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # the port is too large
        is_http = False
    if not (is_http and is_plain and is_printable):
        raise ValueError("must be a URL like http://127.0.0.1:11333")
    return address
