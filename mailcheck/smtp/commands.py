"""Parsers for the arguments of SMTP commands (RFC 5321 4.1 and extensions); pure functions.

An invalid argument raises `CommandError` with the reply.
"""

import re
from functools import lru_cache

from msgspec import Struct

from mailcheck.connections.lines import CommandError
from mailcheck.core.addresses import Mailbox, parse_local_name, parse_mailbox
from mailcheck.core.messages import NULL_REVERSE_PATH
from mailcheck.smtp import replies
from mailcheck.smtp.replies import reply

REMEMBERED = 512
"""Number of cached arguments. A program that sends much mail repeats its own address and a few
recipients. No argument is longer than a command line."""

# A path may contain spaces and angle brackets inside a quoted string. All repetitions are
# possessive, so that a line is scanned once.
_PATH = rb'[ \t]*<((?>(?:"(?>(?:[^"\\]|\\.)*)"|[^<>"])*))>(?>(?: ++(.*+))?)'
_FROM_PATH = re.compile(rb"FROM:" + _PATH, re.IGNORECASE | re.DOTALL)
_TO_PATH = re.compile(rb"TO:" + _PATH, re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*+)(?>(?:=([!-<>-~]++))?)")  # RFC 5321 4.1.2
_SIZE = re.compile(r"[0-9]{1,20}")  # RFC 1870 3
_BDAT = re.compile(rb"([0-9]{1,20})(?>( ++LAST)?)", re.IGNORECASE)  # RFC 3030 2

MAX_HELO_NAME = 255
"""Maximum number of octets of a client's name, RFC 5321 4.5.3.1.2."""

_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f<>]")


class MailCommand(Struct, frozen=True):
    """The sender, the announced size (0 if absent) and SMTPUTF8 (RFC 6531) of a MAIL command."""

    envelope_sender: str
    size: int
    is_utf8: bool


def parse_helo(argument: bytes) -> str:
    """Parse the name of a client, far more liberally than RFC 5321 4.1.1.1.

    A developer cannot rename a computer to send a test mail. The report on the mail judges the
    name; no other decision depends on it. Control characters and angle brackets are rejected.
    """
    if not 0 < len(argument) <= MAX_HELO_NAME:
        raise CommandError(replies.BAD_HELO)
    name = _decode_name(argument)
    if _NOT_IN_NAMES.search(name):
        raise CommandError(replies.BAD_HELO)
    if name.isprintable():
        return name
    # C1 controls, line separators and bidirectional overrides are not visible.
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)


def _decode_name(name: bytes) -> str:
    """Decode UTF-8, or else Latin-1, which systems with an 8-bit locale send."""
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("cp1252", "replace")


@lru_cache(REMEMBERED)
def parse_mail(argument: bytes, *, has_auth: bool) -> MailCommand:
    """Parse ``FROM:<path> parameters``; ``has_auth`` allows the parameter of RFC 4954 5."""
    match = _FROM_PATH.fullmatch(argument)
    if match is None:
        raise CommandError(reply(501, "Syntax: MAIL FROM:<address>", "5.5.4"))
    size = 0
    is_utf8 = False
    for keyword, value in _parse_parameters(match[2]).items():
        if keyword == "SIZE":
            size = _parse_size(value)
        elif keyword == "BODY":
            _check_body(value)
        elif keyword == "SMTPUTF8":
            is_utf8 = _parse_flag(value)
        elif keyword != "AUTH" or not has_auth or value is None:
            raise CommandError(reply(555, f"Parameter {keyword} is not supported", "5.5.4"))
    path = _decode_path(match[1], is_utf8=is_utf8)
    if not path:
        return MailCommand(NULL_REVERSE_PATH, size, is_utf8)
    return MailCommand(str(_parse_path(path, "5.1.7")), size, is_utf8)


@lru_cache(REMEMBERED)
def parse_rcpt(argument: bytes, *, is_utf8: bool) -> Mailbox:
    """Parse ``TO:<path>``; a bare name such as ``postmaster`` (RFC 5321 4.5.1) has no domain."""
    match = _TO_PATH.fullmatch(argument)
    if match is None:
        raise CommandError(reply(501, "Syntax: RCPT TO:<address>", "5.5.4"))
    path = _decode_path(match[1], is_utf8=is_utf8)
    for keyword in _parse_parameters(match[2]):
        raise CommandError(reply(555, f"Parameter {keyword} is not supported", "5.5.4"))
    return _parse_path(path, "5.1.3")


def parse_bdat(argument: bytes) -> tuple[int, bool]:
    """Parse the size of a chunk, and whether it is the last one."""
    match = _BDAT.fullmatch(argument)
    if match is None:
        raise CommandError(replies.BAD_BDAT)
    return int(match[1]), match[2] is not None


def _parse_path(path: str, enhanced: str) -> Mailbox:
    try:
        return parse_local_name(path) or parse_mailbox(path)
    except ValueError as error:
        raise CommandError(reply(501, f"Invalid address: {error}", enhanced)) from None


def _decode_path(path: bytes, *, is_utf8: bool) -> str:
    if path.isascii():
        return path.decode("ascii")
    if not is_utf8:
        raise CommandError(reply(553, "Non-ASCII address requires SMTPUTF8", "5.6.7"))
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandError(reply(501, "Address is not valid UTF-8", "5.5.2")) from None


def _parse_parameters(text: bytes | None) -> dict[str, str | None]:
    parameters: dict[str, str | None] = {}
    if not text:
        return parameters
    for word in text.decode("utf-8", "replace").split():
        match = _PARAMETER.fullmatch(word)
        if match is None:
            raise CommandError(reply(501, f"Invalid parameter {word}", "5.5.4"))
        keyword = match[1].upper()
        if keyword in parameters:
            raise CommandError(reply(501, f"Parameter {keyword} occurs twice", "5.5.4"))
        parameters[keyword] = match[2]
    return parameters


def _parse_size(value: str | None) -> int:
    if value is None or _SIZE.fullmatch(value) is None:
        raise CommandError(reply(501, "SIZE must be a number of octets", "5.5.4"))
    return int(value)


def _check_body(value: str | None) -> None:
    body = (value or "").upper()
    if body == "BINARYMIME":
        raise CommandError(reply(504, "BINARYMIME is not supported", "5.5.4"))
    if body not in ("7BIT", "8BITMIME"):
        raise CommandError(reply(501, "BODY must be 7BIT or 8BITMIME", "5.5.4"))


def _parse_flag(value: str | None) -> bool:
    if value is not None:
        raise CommandError(reply(501, "SMTPUTF8 takes no value", "5.5.4"))
    return True
