"""Packets of the milter protocol up to version 6 (include/libmilter/mfdef.h of Sendmail).

A packet is its length in four octets (RFC 791 byte order), a command of one octet, and data. The
mail server sends commands. The milter replies to some of them, as negotiated.
"""

import struct
from collections.abc import Iterator
from enum import IntFlag

from msgspec import Struct

VERSION = 6
"""The latest version of the protocol."""

OLDEST_VERSION = 2

MAX_PACKET = 256 * 1024
"""Maximum octets of a packet. Bodies arrive in chunks of 64 KiB, and Postfix sends headers of up to
100 KiB."""

MAX_NAME = 1_024
"""Maximum octets of a host name or an address that are read."""

_LENGTH = struct.Struct("!I")
_NEGOTIATION = struct.Struct("!III")


class BadPacket(Exception):
    """The peer does not speak the milter protocol. The message says why."""


class Steps(IntFlag):
    """Steps of the protocol that a milter does not need (SMFIP_*)."""

    NO_RECIPIENTS = 0x08
    NO_REPLY_TO_HEADER = 0x80
    NO_UNKNOWN = 0x100
    NO_DATA = 0x200
    NO_REPLY_TO_CONNECT = 0x1000
    NO_REPLY_TO_HELO = 0x2000
    NO_REPLY_TO_RECIPIENT = 0x8000
    NO_REPLY_TO_DATA = 0x1_0000
    NO_REPLY_TO_UNKNOWN = 0x2_0000
    NO_REPLY_TO_END_OF_HEADER = 0x4_0000
    NO_REPLY_TO_BODY = 0x8_0000
    LEADING_SPACE = 0x10_0000
    """Values of header fields begin with their space, as DKIM needs it."""


WANTED = Steps(sum(Steps))
"""All of these steps: the mail server sends no recipients, and waits for replies at MAIL and at the
end of a mail only."""

CONNECT, HELO, MAIL, RECIPIENT = b"C", b"H", b"M", b"R"
HEADER, END_OF_HEADER, BODY, END_OF_MAIL = b"L", b"N", b"B", b"E"
DATA, UNKNOWN, MACROS, NEGOTIATE = b"T", b"U", b"D", b"O"
ABORT, QUIT, QUIT_BUT_KEEP = b"A", b"Q", b"K"

SKIPPABLE = {
    CONNECT: Steps.NO_REPLY_TO_CONNECT,
    HELO: Steps.NO_REPLY_TO_HELO,
    RECIPIENT: Steps.NO_REPLY_TO_RECIPIENT,
    DATA: Steps.NO_REPLY_TO_DATA,
    UNKNOWN: Steps.NO_REPLY_TO_UNKNOWN,
    HEADER: Steps.NO_REPLY_TO_HEADER,
    END_OF_HEADER: Steps.NO_REPLY_TO_END_OF_HEADER,
    BODY: Steps.NO_REPLY_TO_BODY,
}
"""Commands, and the step with which they have no reply."""

COMMANDS = frozenset({*SKIPPABLE, MAIL, END_OF_MAIL, MACROS, NEGOTIATE, ABORT, QUIT, QUIT_BUT_KEEP})


class Packet(Struct, frozen=True):
    """A command with its data."""

    command: bytes
    data: bytes = b""

    def encoded(self) -> bytes:
        """Return the octets of the packet."""
        return _LENGTH.pack(1 + len(self.data)) + self.command + self.data


CONTINUE = Packet(b"c").encoded()
ACCEPT = Packet(b"a").encoded()
"""Accept the mail: the mail server sends no more of it to this milter."""


class PacketReader:
    """Splits the octets of a connection into packets."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, octets: bytes) -> Iterator[Packet]:
        """Add octets, and yield the complete packets.

        :raises BadPacket: a length or a command is invalid.
        """
        self._held += octets
        start = 0
        try:
            while len(self._held) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._held, start)
                if not 0 < length <= MAX_PACKET:
                    raise BadPacket(f"a packet of {length} octets")
                begin = start + _LENGTH.size
                command = bytes(self._held[begin : begin + 1])
                if command and command not in COMMANDS:
                    raise BadPacket(f"the unknown command {command!r}")
                if len(self._held) < begin + length:
                    return
                start = begin + length
                yield Packet(command, bytes(self._held[begin + 1 : start]))
        finally:
            del self._held[:start]


class Negotiation(Struct, frozen=True):
    """A version of the protocol, the possible changes of a mail, and steps."""

    version: int
    actions: int
    steps: Steps


def read_negotiation(data: bytes) -> Negotiation:
    """Parse the offer of a mail server.

    :raises BadPacket: it is too short, or its version is too old.
    """
    if len(data) < _NEGOTIATION.size:
        raise BadPacket("a short negotiation")
    version, actions, steps = _NEGOTIATION.unpack_from(data)
    if version < OLDEST_VERSION:
        raise BadPacket(f"version {version} of the protocol")
    return Negotiation(version, actions, Steps(steps & WANTED))


def negotiate(offer: Negotiation) -> Packet:
    """Return the reply to an offer: no changes of mails, and as few steps as it allows."""
    data = _NEGOTIATION.pack(min(offer.version, VERSION), 0, offer.steps)
    return Packet(NEGOTIATE, data)


def read_connect(data: bytes) -> str:
    """Return the IP address of the client of a mail server; empty if it has none.

    :raises BadPacket: the data is invalid.
    """
    _, zero, rest = data.partition(b"\0")
    if not zero or not rest:
        raise BadPacket("a short connect command")
    family, address = rest[:1], rest[3:].partition(b"\0")[0]
    if family not in (b"4", b"6") or len(rest) < 4:
        return ""
    return text_of(address).removeprefix("IPv6:")


def read_envelope_address(data: bytes) -> str:
    """Return the address of a MAIL command without its brackets; empty for the null sender."""
    address = text_of(data.partition(b"\0")[0]).strip()
    if address.startswith("<") and address.endswith(">"):
        return address[1:-1]
    return address


def read_field(data: bytes, *, has_space: bool) -> bytes:
    """Return a header field with its line break as it was in the mail.

    :param has_space: the value begins with the space that the mail had.
    :raises BadPacket: the data is invalid.
    """
    name, zero, rest = data.partition(b"\0")
    if not zero or not rest.endswith(b"\0"):
        raise BadPacket("a header field without its end")
    value = rest[:-1].replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return name + (b":" if has_space else b": ") + value + b"\r\n"


def read_macros(data: bytes) -> dict[str, str]:
    """Return the macros of a command by their names without braces."""
    parts = data[1:].split(b"\0")
    pairs = zip(parts[::2], parts[1::2], strict=False)
    return {text_of(name).strip("{}"): text_of(value) for name, value in pairs}


def text_of(octets: bytes) -> str:
    """Return a text of limited length from any octets."""
    return octets[:MAX_NAME].decode("utf-8", "replace")
