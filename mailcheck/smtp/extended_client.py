"""XCLIENT and XFORWARD: a trusted host speaks for the client it has in turn.

As in Postfix's XCLIENT_README and XFORWARD_README. What a mail is judged by
is its client's address and name; the other attributes are read and left.
"""

import re
from collections.abc import Mapping

from msgspec.structs import replace

from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.smtp import replies
from mailcheck.smtp.client import SpokenFor
from mailcheck.smtp.commands import CommandError
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.settings import is_in_networks

XCLIENT_ATTRIBUTES = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "LOGIN")
XFORWARD_ATTRIBUTES = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE")

_UNKNOWN = frozenset({"[UNAVAILABLE]", "[TEMPUNAVAIL]"})
_IPV6_PREFIX = "IPV6:"
_MAX_VALUE = 255

_XTEXT_OCTET = re.compile(r"\+([0-9A-F]{2})")  # RFC 3461 4
_VALUE = re.compile(r"[!-~]+")  # neither spaces nor controls after decoding

Attributes = Mapping[str, str | None]


def may_speak_for_others(connection: MailProtocol) -> bool:
    """Tell whether the host that connected is trusted; what it says of itself does not count."""
    return is_in_networks(connection.client.ip, connection.settings.xclient_from)


def xclient(connection: MailProtocol, argument: bytes) -> None:
    """Start anew as another client, to the end of the connection."""
    attributes = _read(connection, argument, XCLIENT_ATTRIBUTES)
    client = connection.client
    overrides = speak(client.overrides, attributes)
    if attributes.get("ADDR") is not None and overrides.client_ip is None:
        raise CommandError(replies.BAD_ATTRIBUTES)
    client.override(overrides)
    connection.greet()


def xforward(connection: MailProtocol, argument: bytes) -> None:
    """Take the next mail as another client's."""
    attributes = _read(connection, argument, XFORWARD_ATTRIBUTES)
    client = connection.client
    client.forwarded = speak(client.forwarded or SpokenFor(), attributes)
    connection.reply(replies.OK)


def _read(connection: MailProtocol, argument: bytes, known: tuple[str, ...]) -> Attributes:
    if not may_speak_for_others(connection):
        raise CommandError(replies.NOT_AUTHORIZED)
    if connection.transaction is not None:
        raise CommandError(replies.MAIL_IS_OPEN)
    return parse_attributes(argument, known)


def parse_attributes(argument: bytes, known: tuple[str, ...]) -> Attributes:
    """Read ``NAME=value ...`` with values in xtext; nothing for one that is unavailable.

    :raises CommandError: an attribute that is not known, or a bad value (501).
    """
    attributes: dict[str, str | None] = {}
    for word in argument.decode("latin-1").split():
        name, _, value = word.partition("=")
        if name.upper() not in known:
            raise CommandError(replies.BAD_ATTRIBUTES)
        attributes[name.upper()] = None if value.upper() in _UNKNOWN else _decode(value)
    if not attributes:
        raise CommandError(replies.BAD_ATTRIBUTES)
    return attributes


def _decode(value: str) -> str:
    """Undo xtext; values that were not encoded, as old Postfixes send them, come through."""
    text = _XTEXT_OCTET.sub(lambda match: chr(int(match[1], 16)), value)
    if len(text) > _MAX_VALUE or _VALUE.fullmatch(text) is None:
        raise CommandError(replies.BAD_ATTRIBUTES)
    return text


def speak(so_far: SpokenFor, attributes: Attributes) -> SpokenFor:
    """Add what the attributes say to what was said before."""
    if "ADDR" in attributes:
        so_far = replace(so_far, client_ip=_address(attributes["ADDR"]))
    if "HELO" in attributes:
        so_far = replace(so_far, helo_name=attributes["HELO"])
    if "PROTO" in attributes:
        protocol = attributes["PROTO"]
        is_extended = None if protocol is None else protocol.upper() == "ESMTP"
        so_far = replace(so_far, is_extended=is_extended)
    return so_far


def _address(value: str | None) -> str | None:
    """Read an address; one that is none (XFORWARD allows it) is not known."""
    if value is None:
        return None
    if value.upper().startswith(_IPV6_PREFIX):
        value = value[len(_IPV6_PREFIX) :]
    address = parse_ip_address(value)
    return None if address is None else str(address)
