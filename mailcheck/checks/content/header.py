"""Header fields: taken apart, unfolded, decoded; their mailboxes and parameters."""

import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from mailcheck.checks.content.decoding import decode_header_bytes, decode_text, flatten_controls
from mailcheck.checks.content.limits import (
    MAX_HEADER_BYTES,
    MAX_HEADER_FIELDS,
    MAX_MAILBOX_LIST,
    MAX_PARAMETERS,
    MAX_SUMMARY_BYTES,
)
from mailcheck.core.content import HeaderSummary

# RFC 2047 2; the text may hold spaces here, which is wrong and common. Each
# class excludes the delimiter that follows it, so matching is linear.
_WORD = re.compile(r"=\?([^?\s]{1,64})\?([bBqQ])\?([^?]*)\?=")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")

REMEMBERED = 128
"""Authors of mails: a program that sends many sends them under one name."""


def decode_words(text: str) -> str:
    """Decode all encoded words of an unfolded field body; anything else stays as it is.

    White space between two encoded words is dropped (RFC 2047 6.2), and
    neighbours of one charset are joined before decoding, since senders split
    inside characters.
    """
    if "=?" not in text:
        return flatten_controls(text)
    pieces: list[str] = []
    charset, pending, position = "", bytearray(), 0
    for match in _WORD.finditer(text):
        gap = text[position : match.start()]
        label = match[1].partition("*")[0].lower()
        if gap.strip() or not position or label != charset:
            pieces.append(decode_text(bytes(pending), charset)[0])
            pending, charset = bytearray(), label
        if gap.strip() or not position:
            pieces.append(gap)
        pending += _decode_word(match[2], match[3])
        position = match.end()
    pieces.append(decode_text(bytes(pending), charset)[0])
    pieces.append(text[position:])
    return flatten_controls("".join(pieces))


def _decode_word(encoding: str, body: str) -> bytes:
    if encoding in "qQ":
        data = body.replace("_", "=20").encode("utf-8", "replace")
        return binascii.a2b_qp(data)
    return decode_base64(body)


def decode_base64(text: str) -> bytes:
    """Decode base64 with whatever stands between its characters; an odd end is cut off."""
    digits = _NOT_BASE64.sub("", text)
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))


# A name, a colon, a body with its continuation lines. Possessive: a line that
# is no field is given up at once.
_FIELD = re.compile(
    rb"([\x21-\x39\x3b-\x7e]++)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)\n?",
)
_BLANK_LINE = re.compile(rb"\r?\n")
_END_OF_SECTION = re.compile(rb"\n\r?\n")
_MBOX_LINE = re.compile(rb"(?:>?From |\xef\xbb\xbf)[^\n]*\n")


class HeaderField(Struct, frozen=True):
    """One field: its name as written, its body unfolded, in bytes."""

    name: str
    body: bytes

    def decode(self) -> str:
        """Give the body as text, RFC 2047 undone."""
        return decode_words(decode_header_bytes(self.body))


class HeaderSection(Struct, frozen=True):
    """The fields of an entity and the offset at which its body starts."""

    fields: tuple[HeaderField, ...]
    body_start: int
    problems: tuple[str, ...]

    def find(self, name: str) -> HeaderField | None:
        """Find the first field of a (lower case) name."""
        return next((field for field in self.fields if field.name.lower() == name), None)


def split_header(
    raw_message: bytes, start: int, end: int, max_fields: int = MAX_HEADER_FIELDS
) -> HeaderSection:
    """Read the header section that begins at ``start``; a line that is no field ends it."""
    fields: list[HeaderField] = []
    problems: list[str] = []
    limit = min(end, start + MAX_HEADER_BYTES)
    mbox_line = _MBOX_LINE.match(raw_message, start, limit) if start == 0 else None
    position = mbox_line.end() if mbox_line else start
    while position < end:
        blank = _BLANK_LINE.match(raw_message, position, end)
        if blank:
            position = blank.end()
            break
        if len(fields) == max_fields or position >= limit:
            problems.append(_describe_excess(len(fields) == max_fields, max_fields))
            position = _skip_section(raw_message, position, end)
            break
        match = _FIELD.match(raw_message, position, limit)
        if match is None:
            problems.append("the header section ends in a line that is no header field")
            break
        fields.append(HeaderField(match[1].decode("ascii"), unfold(match[2])))
        position = match.end()
    return HeaderSection(tuple(fields), position, tuple(problems))


def unfold(body: bytes) -> bytes:
    """Undo folding (RFC 5322 2.2.3) and trim the white space around the body."""
    if b"\n" in body:
        body = body.replace(b"\r\n", b"").replace(b"\n", b"")
    return body.strip()


def _describe_excess(has_many: bool, max_fields: int) -> str:
    if has_many:
        return f"a header section has more than {max_fields} fields: the rest is left out"
    return f"a header section has more than {MAX_HEADER_BYTES} bytes: the rest is left out"


def _skip_section(raw_message: bytes, position: int, end: int) -> int:
    blank = _END_OF_SECTION.search(raw_message, max(0, position - 1), end)
    return blank.end() if blank else end


# Every alternative takes at least one character and never gives one back: linear.
_TOKEN = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*+)"?'
    r"|\((?P<comment>(?:[^()\\]|\\.)*+)\)?"
    r"|<(?P<angle>[^<>]*+)>?"
    r"|(?P<text>[^\"(<,;:]++)"
    r"|(?P<mark>[,;:])",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse_first_mailbox(body: str) -> tuple[str, str]:
    """Read address and display name of the first mailbox; both are "" where there is none.

    The display name is decoded (RFC 2047) and unquoted. A name with a comma
    that should have been quoted is kept whole.
    """
    return _first_mailbox(body[:MAX_MAILBOX_LIST])


@lru_cache(REMEMBERED)
def _first_mailbox(body: str) -> tuple[str, str]:
    body = flatten_controls(body)
    address, name, _ = _parse(body, 0)
    if "@" not in address and "=?" in body:
        # Some senders encode the whole field, address included.
        address, name, _ = _parse(decode_words(body), 0)
    return address.strip(), _clean_name(name)


def parse_mailboxes(body: str) -> list[tuple[str, str]]:
    """Read address and display name of every mailbox, in order; the first as above."""
    body = flatten_controls(body[:MAX_MAILBOX_LIST])
    if "@" not in body:
        body = decode_words(body)
    mailboxes: list[tuple[str, str]] = []
    position = 0
    while position < len(body):
        address, name, position = _parse(body, position)
        if address:
            mailboxes.append((address.strip(), _clean_name(name.lstrip(" ,"))))
    return mailboxes


def _clean_name(name: str) -> str:
    return " ".join(decode_words(name).split())


def _parse(body: str, position: int) -> tuple[str, str, int]:
    """Read the mailbox that begins at the position; tells also where to go on."""
    phrase: list[str] = []
    written: list[str] = []
    comment = ""
    end = len(body)
    for token in _TOKEN.finditer(body, position):
        kind = token.lastgroup
        if kind == "angle":
            return token["angle"].strip(), "".join(phrase).strip(), token.end()
        if kind == "comment":
            comment = comment or token["comment"]
            continue
        if kind == "mark":
            if "@" in "".join(written):
                end = token.end()
                break
            # A comma before any address belongs to the name; ":" ends a group's name.
            written.clear()
            if token["mark"] == ",":
                phrase.append(",")
            else:
                phrase.clear()
            continue
        phrase.append(_ESCAPED.sub(r"\1", token["quoted"]) if kind == "quoted" else token["text"])
        written.append(token.group())
    address = "".join(written).strip()
    if "@" in address:
        address = "".join(address.split()) if '"' not in address else address
        return address, comment.strip(), end
    return "", "".join(phrase).strip(" ,"), end


# Comments may stand anywhere (RFC 2045 5.1). All loops are possessive, and a
# quote that is not closed runs to the end instead of being tried again.
_PARAMETER = re.compile(
    r";(?:\s|\([^()]*+\))*+"
    r"(?P<name>[^\s=;*\"()]++)(?P<piece>\*[0-9]{1,3}+)?(?P<extended>\*)?\s*+=(?:\s|\([^()]*+\))*+"
    r"(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)\"?|(?P<token>[^;\s]*+))",
    re.DOTALL,
)
_SKIP = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?|[^;\"]++", re.DOTALL)


class _Piece(Struct, frozen=True):
    number: int
    is_extended: bool
    text: str


def parse_value(body: str) -> tuple[str, Mapping[str, str]]:
    """Split a field body into its value (lower case) and its parameters (names in lower case).

    RFC 2231 continuations are joined and charsets undone; encoded words, which
    have no place there and are common, are decoded too. Never raises.
    """
    value = re.split(r"[;(]", body, maxsplit=1)[0].strip().lower()
    pieces: dict[str, list[_Piece]] = {}
    for match in _find_parameters(body):
        quoted = match["quoted"]
        text = match["token"] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        number = int(match["piece"][1:]) if match["piece"] else -1
        piece = _Piece(number, match["extended"] is not None, text)
        pieces.setdefault(match["name"].lower(), []).append(piece)
    return value, {name: _join(found) for name, found in pieces.items()}


def _find_parameters(body: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    position = 0
    while position < len(body) and len(found) < MAX_PARAMETERS:
        match = _PARAMETER.match(body, position) or _SKIP.match(body, position)
        if match is None:
            position += 1
            continue
        if match.re is _PARAMETER:
            found.append(match)
        position = match.end()
    return found


def _join(found: list[_Piece]) -> str:
    """Put the pieces of one parameter together; a plain one gives way to an extended one."""
    numbered = sorted((piece for piece in found if piece.number >= 0), key=lambda p: p.number)
    extended = [piece for piece in found if piece.number < 0 and piece.is_extended]
    if not numbered and not extended:
        return decode_words(found[0].text)
    chosen = numbered or extended[:1]
    charset, data = "", b""
    if chosen[0].is_extended:
        # charset'language'text; some senders leave the first two out.
        head = chosen[0].text.split("'", 2)
        charset = head[0] if len(head) == 3 else ""
        data = unquote_to_bytes(head[-1])
        chosen = chosen[1:]
    for piece in chosen:
        text = piece.text
        data += unquote_to_bytes(text) if piece.is_extended else text.encode("utf-8", "replace")
    return decode_text(data, charset)[0]


_END_OF_FIELD = re.compile(rb"\n(?![ \t])")
_SPACED_COLON = {
    # RFC 5322 4.5 allows white space before the colon; it is rare enough to be looked for last.
    name: re.compile(rb"\n" + name + rb"[ \t]++:", re.IGNORECASE)
    for name in (b"from", b"subject")
}


def summarize_header(raw_message: bytes) -> HeaderSummary:
    """Read author and subject from the header section; whatever is missing or broken is "".

    Never raises, and takes time linear in the first 64 KiB at most.
    """
    blank = _END_OF_SECTION.search(raw_message, 0, MAX_SUMMARY_BYTES)
    section = b"\n" + raw_message[: blank.start() if blank else MAX_SUMMARY_BYTES]
    lowered = section.lower()
    address, name = parse_first_mailbox(_find_body(section, lowered, b"from"))
    subject = decode_words(_find_body(section, lowered, b"subject")).strip()
    return HeaderSummary(address, name, subject)


def _find_body(section: bytes, lowered: bytes, name: bytes) -> str:
    found = lowered.find(b"\n" + name + b":")
    if found >= 0:
        start = found + len(name) + 2
    else:
        match = _SPACED_COLON[name].search(section)
        if match is None:
            return ""
        start = match.end()
    end = _END_OF_FIELD.search(section, start)
    return decode_header_bytes(unfold(section[start : end.start() if end else None]))
