"""The PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt), parsed without I/O."""

import re
from ipaddress import IPv4Address, IPv6Address

_V1_PREFIX = b"PROXY "
_V1_MAX = 107  # octets with CRLF, section 2.1
_V1_LINE = re.compile(
    rb"PROXY (?:UNKNOWN(?>(?: [ -~]*+)?)|(TCP4|TCP6) ([0-9A-Fa-f.:]++) ([0-9A-Fa-f.:]++)"
    rb" ([0-9]{1,5}+) ([0-9]{1,5}+))"
)
_MAX_PORT = 65_535

_V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_V2_FIXED = 16  # octets: signature, version and command, family, length
_V2_MAX = 4_096  # octets: addresses and extensions of a proxy (names, TLS facts), with a margin
_V2_VERSION = 2
_LOCAL, _PROXY = 0, 1

# Octets of the address block by family and transport, section 2.2.
_TCP4, _TCP6 = 0x11, 0x21
_V2_BLOCKS = {0x00: 0, _TCP4: 12, 0x12: 12, _TCP6: 36, 0x22: 36, 0x31: 216, 0x32: 216}


class ProxyHeaderReader:
    """Reads the PROXY header that a proxy sends first.

    Afterwards ``client_ip`` is the client's address, or `None` if the proxy connects for itself
    (LOCAL, UNKNOWN). ``problem`` describes an invalid header.
    """

    __slots__ = ("_part", "client_ip", "problem")

    def __init__(self) -> None:
        self._part = b""
        self.client_ip: str | None = None
        self.problem: str | None = None

    def feed(self, data: bytes, start: int) -> int | None:
        """Read ``data`` from ``start``; return the position after the header, or `None`."""
        window = self._part + data[start:]
        try:
            if window.startswith(_V1_PREFIX[: len(window)]):
                size = self._read_v1(window)
            elif window.startswith(_V2_SIGNATURE[: len(window)]):
                size = self._read_v2(window)
            else:
                raise ValueError("the header is missing")
        except ValueError as error:
            self.problem = str(error)
            return len(data)
        if size is None:
            self._part = window
            return None
        return start + size - len(self._part)

    def _read_v1(self, window: bytes) -> int | None:
        end = window.find(b"\r\n", 0, _V1_MAX)
        if end < 0:
            if len(window) >= _V1_MAX:
                raise ValueError("version 1 is longer than 107 octets")
            return None
        match = _V1_LINE.fullmatch(window, 0, end)
        if match is None:
            raise ValueError("version 1 is malformed")
        family, source, destination, *ports = match.groups()
        if family is not None:
            address = IPv4Address if family == b"TCP4" else IPv6Address
            address(destination.decode("ascii"))
            if any(int(port) > _MAX_PORT for port in ports):
                raise ValueError("a port is out of range")
            self.client_ip = str(address(source.decode("ascii")))
        return end + 2

    def _read_v2(self, window: bytes) -> int | None:
        if len(window) < _V2_FIXED:
            return None
        version, command = divmod(window[12], 16)
        family = window[13]
        length = int.from_bytes(window[14:16])
        if version != _V2_VERSION or command not in (_LOCAL, _PROXY):
            raise ValueError("version 2 has an unknown version or command")
        if length > _V2_MAX:
            raise ValueError(f"version 2 is longer than {_V2_MAX} octets")
        if family not in _V2_BLOCKS or (length < _V2_BLOCKS[family] and command == _PROXY):
            raise ValueError("version 2 has an unknown family or too short an address")
        if len(window) < _V2_FIXED + length:
            return None
        if command == _PROXY and family == _TCP4:
            self.client_ip = str(IPv4Address(window[16:20]))
        elif command == _PROXY and family == _TCP6:
            self.client_ip = str(IPv6Address(window[16:32]))
        return _V2_FIXED + length
