"""The address of a spamd in the configuration."""

import re

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
