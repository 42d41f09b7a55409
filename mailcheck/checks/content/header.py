"""Parser for header fields: unfolding, decoding, mailboxes and parameters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.content.charsets import find_codec, find_declared_charset
from mailcheck.checks.content.decoding import (
    decode_header_bytes,
    decode_text,
    decode_words,
    flatten_controls,
    is_utf_8,
)
from mailcheck.checks.content.limits import (
    MAX_HEADER_BYTES,
    MAX_HEADER_FIELDS,
    MAX_MAILBOX_LIST,
    MAX_PARAMETERS,
    MAX_SHORT_HEADER,
)
from mailcheck.core.content import HeaderSummary

REMEMBERED = 128
"""Size of the caches. Programs that send many mails use one author; types and encodings of parts
repeat as well."""

MAX_REMEMBERED = 128
"""Maximum length of a type or encoding whose parsed value is cached."""


# A name, a colon, a body with its continuation lines. The quantifiers are possessive, so a line
# that is not a field fails at once.
_FIELD = re.compile(rb"([\x21-\x39\x3b-\x7e]++)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)\n?")
_BLANK_LINE = re.compile(rb"\r?\n")
_END_OF_SECTION = re.compile(rb"\n\r?\n")
_MBOX_LINE = re.compile(rb">?From (?![ \t]*+:)[^\n]*\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class HeaderField(Struct, frozen=True):
    """One field: its name as written, its body unfolded, in bytes.

    ``charset`` is the label that the mail declares, where the body has raw octets that are not
    UTF-8 (RFC 6532).
    """

    name: str
    body: bytes
    charset: str = ""

    def as_text(self) -> str:
        """Return the body as text with its encoded words unchanged."""
        return decode_header_bytes(self.body, self.charset)

    def decode(self) -> str:
        """Return the body as text with its encoded words decoded (RFC 2047)."""
        return decode_words(self.as_text())


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
    """Read the header section that begins at ``start``.

    A line that is not a field is skipped if fields that every mail may have follow it. Otherwise
    it ends the section.
    """
    fields: list[HeaderField] = []
    problems: list[str] = []
    limit = min(end, start + MAX_HEADER_BYTES)
    position = _skip_preamble(raw_message, start, limit)
    strays = _StrayLines(raw_message, limit, _PART_FIELD if start else _COMMON_FIELD)
    while position < end:
        blank = _BLANK_LINE.match(raw_message, position, end)
        if blank:
            position = blank.end()
            break
        if len(fields) == max_fields or position >= limit:
            excess = f"{max_fields} fields" if len(fields) == max_fields else _TOO_LONG
            problems.append(f"a header section has more than {excess}: the rest is left out")
            blank = _END_OF_SECTION.search(raw_message, max(0, position - 1), end)
            position = blank.end() if blank else end
            break
        match = _FIELD.match(raw_message, position, limit)
        if match is None:
            following = strays.find_field_behind(position)
            problems.append(_END_IN_TEXT if following is None else _NO_FIELD)
            if following is None:
                break
            position = following
            continue
        fields.append(HeaderField(match[1].decode("ascii"), unfold(match[2])))
        position = match.end()
    if not raw_message[start:position].isascii():
        fields = _declare_charset(raw_message, fields)
    return HeaderSection(tuple(fields), position, tuple(dict.fromkeys(problems)))


_TOO_LONG = f"{MAX_HEADER_BYTES} bytes"
_NO_FIELD = "a line of the header section is not a header field; it is left out"
_END_IN_TEXT = "the header section ends in a line that is not a header field"

_ANY_FIELD = re.compile(rb"\n(?=[\x21-\x39\x3b-\x7e]++[ \t]*+:)")
_PART_FIELD = re.compile(rb"\ncontent-[a-z-]++[ \t]*+:", re.IGNORECASE)
_COMMON_FIELD = re.compile(
    rb"\n(?:(?:arc|content|dkim|list|resent|x)-[a-z0-9_-]++|from|to|cc|bcc|subject|date|message-id"
    rb"|mime-version|reply-to|sender|received|return-path|references|in-reply-to|delivered-to"
    rb"|received-spf|authentication-results|user-agent|auto-submitted|precedence)[ \t]*+:",
    re.IGNORECASE,
)


def _skip_preamble(raw_message: bytes, start: int, limit: int) -> int:
    """Return where the fields begin: after a byte order mark and an mbox line."""
    if start:
        return start
    if raw_message.startswith(_BYTE_ORDER_MARK):
        start = len(_BYTE_ORDER_MARK)
    mbox_line = _MBOX_LINE.match(raw_message, start, limit)
    return mbox_line.end() if mbox_line else start


class _StrayLines(Struct):
    """Finds the fields after lines that are not fields, in one pass over the section."""

    raw_message: bytes
    limit: int
    expected: re.Pattern[bytes]
    end: int = -1
    expected_at: int = -1

    def find_field_behind(self, position: int) -> int | None:
        """Return where the next field begins, or `None` if no expected field follows."""
        if self.end < 0:
            blank = _END_OF_SECTION.search(self.raw_message, position, self.limit)
            self.end = blank.start() + 1 if blank else self.limit
        if self.expected_at < position:
            found = self.expected.search(self.raw_message, position, self.end)
            self.expected_at = self.limit if found is None else found.start()
        if self.expected_at == self.limit:
            return None
        following = _ANY_FIELD.search(self.raw_message, position, self.end)
        return None if following is None else following.end()


def _declare_charset(raw_message: bytes, fields: Sequence[HeaderField]) -> list[HeaderField]:
    """Add the charset that the mail declares to the fields whose raw octets are not UTF-8."""
    if all(is_utf_8(field.body) for field in fields):
        return list(fields)
    label = find_declared_charset(raw_message)
    return [field if is_utf_8(field.body) else replace(field, charset=label) for field in fields]


def unfold(body: bytes) -> bytes:
    """Undo folding (RFC 5322 2.2.3) and trim the white space around the body."""
    if b"\n" in body:
        body = body.replace(b"\r\n", b"").replace(b"\n", b"")
    return body.strip()


# Every alternative takes at least one character and never gives one back, so the time is linear.
_TOKEN = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*+)"?'
    r"|\((?P<comment>(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*+\))*+)\)?"
    r"|<(?P<angle>[^<>]*+)>?"
    r"|(?P<text>(?:[^\"(<,;:@]++|@(?:\[[0-9A-Za-z:.]*+\])?+)++)"
    r"|(?P<mark>[,;:])",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


_ADDRESS_BEHIND = re.compile(r"\s*+(?:<|[^\s<>,;:@\"]++@[^\s<>,;:@]++)")
_WHOLE_ADDRESS = re.compile(r"[^@]++@[^@]++")
# A route (RFC 5322 4.4) or the scheme of a link.
_BEFORE_ADDRESS = re.compile(r"^(?:@[^<>:]++:(?=[^@]*+@)|mailto:)", re.IGNORECASE)
_Q_WORD = re.compile(r"=\?[^?\s]{1,64}\?[qQ]\?[^?]*+\?=")
_COMMENT_BEHIND = re.compile(r"\s*+\(([^()\\]*+)\)")
_MARKS = re.compile(r"[<>@,;:()]")


def parse_first_mailbox(body: str) -> tuple[str, str]:
    """Return address and display name of the first mailbox, or two empty strings.

    The display name is decoded (RFC 2047) and unquoted. A name with a comma that should have been
    quoted is kept as a whole.
    """
    return _first_mailbox(body[:MAX_MAILBOX_LIST])


@lru_cache(REMEMBERED)
def _first_mailbox(body: str) -> tuple[str, str]:
    body = _prepare(body)
    address, name, _ = _parse(body, 0)
    if "@" not in address and "=?" in body:
        # Some senders encode the whole field, address included.
        address, name, _ = _parse(decode_words(body), 0)
    return address.strip(), _clean_name(name)


def parse_mailboxes(body: str, limit: int = MAX_MAILBOX_LIST) -> list[tuple[str, str]]:
    """Return address and display name of every mailbox in order; see `parse_first_mailbox`.

    :param limit: maximum number of characters of the field that are read.
    """
    body = _prepare(body[:limit])
    if "@" not in body:
        body = decode_words(body)
    mailboxes: list[tuple[str, str]] = []
    position = 0
    while position < len(body):
        address, name, position = _parse(body, position)
        if address:
            mailboxes.append((address.strip(), _clean_name(name)))
    return mailboxes


def _prepare(body: str) -> str:
    """Return a list of mailboxes with correct quotes and encoded words.

    A quote without a closing quote is removed. Special characters inside an encoded word are
    encoded, as RFC 2047 5 requires.
    """
    body = flatten_controls(body)
    if body.count('"') == 1:
        body = body.replace('"', "")
    if "=?" in body:
        encode = partial(_MARKS.sub, lambda mark: f"={ord(mark[0]):02X}")
        body = _Q_WORD.sub(lambda word: encode(word[0]), body)
    return body


def _clean_name(name: str) -> str:
    return " ".join(decode_words(name).split())


def _parse(body: str, position: int) -> tuple[str, str, int]:
    """Return the mailbox at a position and the position after it."""
    phrase: list[str] = []
    written: list[str] = []
    name = comment = ""
    end = len(body)
    for token in _TOKEN.finditer(body, position):
        kind = token.lastgroup
        if kind == "angle":
            if "@" not in token["angle"] and _ADDRESS_BEHIND.match(body, token.end()):
                # Some senders put the brackets around the name: <Ann Bee>ann@example.com
                name = token["angle"].strip()
                continue
            address = _strip_quotes(_BEFORE_ADDRESS.sub("", token["angle"].strip()))
            name = "".join(phrase).strip().lstrip(" ,;") or name or comment.strip()
            behind = None if name else _COMMENT_BEHIND.match(body, token.end())
            return (address, behind[1], behind.end()) if behind else (address, name, token.end())
        if kind == "comment":
            comment = comment or token["comment"]
            continue
        if kind == "mark":
            if "@" in "".join(written):
                end = token.end()
                break
            # ":" ends the name of a group; other marks before an address belong to the name.
            written.clear()
            if token["mark"] == ":":
                phrase.clear()
            else:
                phrase.append(token["mark"])
            continue
        phrase.append(_ESCAPED.sub(r"\1", token["quoted"]) if kind == "quoted" else token["text"])
        written.append(token.group())
    address = "".join(written).strip()
    if "@" in address:
        return *_read_bare_address(address, name or comment.strip()), end
    return "", "".join(phrase).strip(" ,;"), end


def _read_bare_address(text: str, name: str) -> tuple[str, str]:
    """Return the address in a text without brackets, and its name: the words around it."""
    words = text.split() if '"' not in text else [text]
    whole = [word for word in words if _WHOLE_ADDRESS.fullmatch(word)]
    if not whole:
        return "".join(words), name
    words.remove(whole[0])
    address = _strip_quotes(whole[0])
    # The brackets of an address literal stay.
    address = address.strip("<>") if "@[" in address else address.strip("[]<>")
    return address, name or " ".join(words)


def _strip_quotes(address: str) -> str:
    """Return an address without quotes around it."""
    return address[1:-1] if address[:1] == address[-1:] and address[:1] in "\"'" else address


# Comments may be anywhere (RFC 2045 5.1), and the separator of parameters may be any character or
# missing. All loops are possessive, and an unclosed quote extends to the end instead of being tried
# again.
_NAME = r"[^\s=;,*\"()]++(?:\*[0-9]{1,3}+)?+\*?+\s*+="
_WORD = r"[^\s;,:=/\\<>\"()]++"
_VALUE = re.compile(
    rf"(?:[\s\"<]|\([^()]*+\))*+(?P<value>{_WORD}(?:\s*+/\s*+{_WORD})?+)(?!\s*+=)"
    rf"(?=[\s;:/\\>(\"]|\Z|,\s*+{_NAME})"
)
_PARAMETER = re.compile(
    r"(?:[;,\s]|\([^()]*+\))*+"
    r"(?P<name>[^\s=:;,*\"()]++)(?P<piece>\*[0-9]{1,3}+)?(?P<extended>\*)?\s*+[=:]"
    r"(?:\s|\([^()]*+\))*+"
    r"(?:(?:\"(?=\"[^\s;,\"]))?+\"(?P<quoted>(?:[^\"\\]|\\.)*+)\"?"
    rf"|(?P<token>(?:[^;,\s]|,(?!\s*+{_NAME}))*+))",
    re.DOTALL,
)
_SKIP = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?|[^;,\s\"]++|[;,\s]++", re.DOTALL)
_MORE_WORDS = re.compile(rf"(?:\s++(?!{_NAME})[^;\s]++)++")
"""The rest of a file name without quotes."""


class _Piece(Struct, frozen=True):
    number: int
    is_extended: bool
    text: str


def parse_value(body: str) -> tuple[str, Mapping[str, str]]:
    """Split a field body into its value (lower case) and its parameters (names in lower case).

    RFC 2231 continuations are joined and their charsets decoded. Encoded words are not allowed
    here, but common, so they are decoded too. Never raises.
    """
    return _parse_short_value(body) if len(body) <= MAX_REMEMBERED else _parse_value(body)


def _parse_value(body: str) -> tuple[str, Mapping[str, str]]:
    found = _VALUE.match(body)
    value = "".join(found["value"].split()).lower() if found else ""
    pieces: dict[str, list[_Piece]] = {}
    for match, more in _find_parameters(body, found.end() if found else 0):
        token, quoted = match["token"], match["quoted"]
        text = (token + more).rstrip('"') if quoted is None else _ESCAPED.sub(r"\1", quoted)
        number = int(match["piece"][1:]) if match["piece"] else -1
        piece = _Piece(number, match["extended"] is not None, text)
        pieces.setdefault(match["name"].lower(), []).append(piece)
    return value, {name: _join(parts) for name, parts in pieces.items()}


_parse_short_value = lru_cache(REMEMBERED)(_parse_value)


def _find_parameters(body: str, position: int) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each parameter with the words after an unquoted file name."""
    count = 0
    while position < len(body) and count < MAX_PARAMETERS:
        match = _PARAMETER.match(body, position) or _SKIP.match(body, position)
        if match is None:
            position += 1
            continue
        position = match.end()
        if match.re is _PARAMETER:
            count += 1
            is_name = match["quoted"] is None and match["name"].lower() in ("name", "filename")
            words = _MORE_WORDS.match(body, position) if is_name else None
            position = words.end() if words else position
            yield match, words[0] if words else ""


def _join(found: list[_Piece]) -> str:
    """Put the pieces of one parameter together; a plain one gives way to an extended one."""
    numbered = sorted((piece for piece in found if piece.number >= 0), key=lambda p: p.number)
    extended = [piece for piece in found if piece.number < 0 and piece.is_extended]
    if not numbered and not extended:
        return decode_words(_undo_extended_form(found[0].text))
    chosen = numbered or extended[:1]
    if not any(piece.is_extended for piece in chosen):
        return decode_words(_undo_extended_form("".join(piece.text for piece in chosen)))
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
    return decode_words(decode_text(data, charset)[0])


_EXTENDED_FORM = re.compile(
    r"([A-Za-z0-9_-]{1,64}+)'[A-Za-z0-9-]{0,64}+'(\S*%[0-9A-Fa-f]{2}.*)", re.DOTALL
)


def _undo_extended_form(text: str) -> str:
    """Decode the form of RFC 2231 in a parameter whose name lacks the ``*``."""
    match = _EXTENDED_FORM.fullmatch(text)
    if match is None or find_codec(match[1]) is None:
        return text
    return decode_text(unquote_to_bytes(match[2]), match[1])[0]


_END_OF_FIELD = re.compile(rb"\n(?![ \t])")


def summarize_header(raw_message: bytes) -> HeaderSummary:
    """Read author and subject as `split_header` does; a missing or broken one is "".

    Never raises, and takes time linear in the size of the header.
    """
    author, subject = _find_bodies(raw_message)
    label = ""
    if not (is_utf_8(author) and is_utf_8(subject)):
        label = find_declared_charset(raw_message)
    address, name = parse_first_mailbox(decode_header_bytes(author, label))
    return HeaderSummary(address, name, decode_words(decode_header_bytes(subject, label)).strip())


def _find_bodies(raw_message: bytes) -> tuple[bytes, bytes]:
    """Find From and Subject without parsing the whole header, which costs more."""
    blank = _END_OF_SECTION.search(raw_message, 0, MAX_SHORT_HEADER)
    end = blank.start() if blank else len(raw_message)
    if end <= MAX_SHORT_HEADER and not raw_message.startswith(_PREAMBLES):
        header = b"\n" + raw_message[:end]
        lowered = header.lower()
        author = _find_start(lowered, b"\nfrom")
        subject = _find_start(lowered, b"\nsubject")
        last = max(author, subject)
        if last < _FEW or header.count(b"\n", 0, last) < MAX_HEADER_FIELDS:
            return _read_body(header, author), _read_body(header, subject)
    section = split_header(raw_message, 0, len(raw_message))
    found = (section.find("from"), section.find("subject"))
    return found[0].body if found[0] else b"", found[1].body if found[1] else b""


_FEW = 3 * MAX_HEADER_FIELDS
"""Octets in which no more fields can stand than are read: each has a name, a colon and an end."""

_PREAMBLES = (_BYTE_ORDER_MARK, b"From ", b">From ", b"\n", b"\r\n")
_COLON = re.compile(rb"[ \t]*+:")  # RFC 5322 4.5 allows white space before it


def _find_start(lowered: bytes, name: bytes) -> int:
    """Return where the body of the first field with a name begins, or -1 if there is none."""
    at = lowered.find(name)
    while at >= 0:
        colon = _COLON.match(lowered, at + len(name))
        if colon is not None:
            return colon.end()
        at = lowered.find(name, at + 1)
    return -1


def _read_body(header: bytes, start: int) -> bytes:
    if start < 0:
        return b""
    end = _END_OF_FIELD.search(header, start)
    return unfold(header[start : end.start() if end else None])


def unsubscribe_addresses(header_list: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the addresses of List-Unsubscribe: "<https://...>, <mailto:...>" (RFC 2369 3.2).

    Requesting one of them may unsubscribe.
    """
    values = (value for name, value in header_list if name.lower() == "list-unsubscribe")
    return tuple(piece.strip().strip("<>") for value in values for piece in value.split(","))
