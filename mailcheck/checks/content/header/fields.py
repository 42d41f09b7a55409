"""Parser for header fields: unfolding, decoding, mailboxes and parameters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from itertools import islice
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
    KIB,
    MAX_HEADER_BYTES,
    MAX_HEADER_FIELDS,
    MAX_MAILBOX_LIST,
    MAX_PARAMETERS,
    MAX_SHORT_HEADER,
)
from mailcheck.core.content import HeaderSummary
from mailcheck.core.instants import Instant, instant_of

REMEMBERED = 128
"""Size of the caches. Programs that send many mails use one author; types and encodings of parts
repeat as well."""

MAX_REMEMBERED = 128
"""Maximum length of a type or encoding whose parsed value is cached."""


# A name, a colon, a body with its continuation lines. The quantifiers are possessive, so a line
# that is not a field fails at once.
_FIELD = re.compile(rb"([\x21-\x39\x3b-\x7e]++)[ \t]*+:([^\n]*+(?>(?:\n[ \t][^\n]*+)*))\n?")
# An encoded word that an encoder of bodies has divided into lines (RFC 2045 6.7, 6.8), and its
# other lines, which have no fold: with soft line breaks, or of base64.
_CUT_WORD = re.compile(
    rb"=\?[^?\s]{1,64}\?(?:[qQ]\?[^?\s]*+(?<==)|(?P<base64>[bB])\?[A-Za-z0-9+/]*+)\r?\Z"
)
_END_OF_WORD = rb"\?=[^\n]*+(?>(?:\n[ \t][^\n]*+)*)\n?"
_REST_OF_WORD = re.compile(rb"(?>(?:[^?\s]*=\r?\n[ \t]*+)*)[^?\s]*+" + _END_OF_WORD)
_REST_OF_BASE64 = re.compile(rb"(?>(?:[A-Za-z0-9+/]++\r?\n)*)[A-Za-z0-9+/=]*+" + _END_OF_WORD)
_BLANK_LINE = re.compile(rb"\r?\n")
_END_OF_SECTION = re.compile(rb"\n\r?\n")
_MBOX_LINE = re.compile(rb">?From (?![ \t]*+:)[^\n]*\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


_TOO_LONG = f"{MAX_HEADER_BYTES // KIB} KiB"
_NO_FIELD = "a line of the header section is not a header field; it is left out"
_END_IN_TEXT = "the header section ends in a line that is not a header field"

_PART_FIELD = re.compile(rb"\ncontent-[a-z-]++[ \t]*+:", re.IGNORECASE)
_COMMON_FIELD = re.compile(
    rb"\n(?:(?:arc|content|dkim|list|resent|x)-[a-z0-9_-]++|from|to|cc|bcc|subject|date|message-id"
    rb"|mime-version|reply-to|sender|received|return-path|references|in-reply-to|delivered-to"
    rb"|received-spf|authentication-results|user-agent|auto-submitted|precedence)[ \t]*+:",
    re.IGNORECASE,
)

_FEW = 3 * MAX_HEADER_FIELDS
"""Octets in which no more fields can stand than are read: each has a name, a colon and an end."""

_PREAMBLES = (_BYTE_ORDER_MARK, b"From ", b">From ", b"\n", b"\r\n")


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

    The section ends at the empty line (RFC 5322 2.1). A line that is not a field is skipped if
    fields that every mail may have follow it, or if it is one of the last `MAX_STRAY_LINES`.
    Otherwise the empty line is missing, and the body begins there.
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
            following = strays.skip(position, has_fields=bool(fields))
            problems.append(_END_IN_TEXT if following is None else _NO_FIELD)
            if following is None:
                break
            position = following
            continue
        body, position = _complete_word(raw_message, match[2], match.end(), limit)
        fields.append(HeaderField(match[1].decode("ascii"), unfold(body)))
    if not raw_message[start:position].isascii():
        fields = _declare_charset(raw_message, fields)
    return HeaderSection(tuple(fields), position, tuple(dict.fromkeys(problems)))


MAX_STRAY_LINES = 2
"""Maximum number of lines before the empty line that are left out because they are not fields. More
lines are text whose empty line is missing."""

_END_OF_FIELD = re.compile(rb"\n(?![ \t])")
_ANY_FIELD = re.compile(rb"\n(?=[\x21-\x39\x3b-\x7e]++[ \t]*+:)")


def _skip_preamble(raw_message: bytes, start: int, limit: int) -> int:
    """Return where the fields begin: after a byte order mark and an mbox line."""
    if start:
        return start
    if raw_message.startswith(_BYTE_ORDER_MARK):
        start = len(_BYTE_ORDER_MARK)
    mbox_line = _MBOX_LINE.match(raw_message, start, limit)
    return mbox_line.end() if mbox_line else start


def _complete_word(raw_message: bytes, body: bytes, position: int, limit: int) -> tuple[bytes, int]:
    """Add the lines at ``position`` to a field that ends within an encoded word."""
    lines = [body]
    while (start := lines[-1].rfind(b"=?")) >= 0 and (cut := _CUT_WORD.match(lines[-1], start)):
        pattern = _REST_OF_BASE64 if cut["base64"] else _REST_OF_WORD
        rest = pattern.match(raw_message, position, limit)
        if rest is None:
            break
        lines.append(_END_OF_FIELD.sub(b"\n ", rest[0].rstrip()))
        position = rest.end()
    return b"\n ".join(lines), position


class _StrayLines(Struct):
    """Skips lines that are not fields, in one pass over the section."""

    raw_message: bytes
    limit: int
    expected: re.Pattern[bytes]
    end: int = -1
    is_closed: bool = False
    expected_at: int = -1

    def skip(self, position: int, *, has_fields: bool) -> int | None:
        """Return where the next field or the empty line is, or `None` if the body begins here."""
        if self.end < 0:
            blank = _END_OF_SECTION.search(self.raw_message, position, self.limit)
            self.end = blank.start() + 1 if blank else self.limit
            self.is_closed = blank is not None
        if self.expected_at < position:
            found = self.expected.search(self.raw_message, position, self.end)
            self.expected_at = self.limit if found is None else found.start()
        if self.expected_at == self.limit and not (has_fields and self._are_last(position)):
            return None
        following = _ANY_FIELD.search(self.raw_message, position, self.end)
        return self.end if following is None else following.end()

    def _are_last(self, position: int) -> bool:
        lines = _END_OF_FIELD.finditer(self.raw_message, position, self.end)
        return self.is_closed and len(list(islice(lines, MAX_STRAY_LINES + 1))) <= MAX_STRAY_LINES


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
    r'"(?P<quoted>(?>(?:[^"\\]|\\.)*))"?'
    r"|\((?P<comment>(?>(?:[^()\\]|\\.|\((?>(?:[^()\\]|\\.)*)\))*))\)?"
    r"|<(?P<angle>[^<>]*+)>?"
    r"|(?P<text>(?>(?:[^\"(<,;:@]++|@(?>(?:\[[0-9A-Za-z:.]*+\])?))+))"
    r"|(?P<mark>[,;:])",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


_ADDRESS_BEHIND = re.compile(r"\s*+(?:<|[^\s<>,;:@\"]++@[^\s<>,;:@]++)")
_BARE_ADDRESS_BEHIND = re.compile(r"[^<@,;:\"]*+@[^<,;:\"]*+(?:[,;]|\Z)")
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]++")  # RFC 5322 3.2.3, dot-atom
_WHOLE_ADDRESS = re.compile(r"[^@]++@[^@]++")
# A route (RFC 5322 4.4) or the scheme of a link.
_BEFORE_ADDRESS = re.compile(r"^(?:@[^<>:]++:(?=[^@]*+@)|mailto:)", re.IGNORECASE)
_Q_WORD = re.compile(r"=\?[^?\s]{1,64}\?[qQ]\?[^?]*+\?=")
_COMMENT_BEHIND = re.compile(r"\s*+\(([^()\\]*+)\)")
_MARKS = re.compile(r"[<>@,;:()]")


def parse_first_mailbox(body: str) -> tuple[str, str]:
    """Return address and display name of the first mailbox, or two empty strings.

    The display name is decoded (RFC 2047) and unquoted. A name with a comma that should have been
    quoted is kept as a whole. The address of a local user is one word without a domain.
    """
    return _first_mailbox(body[:MAX_MAILBOX_LIST])


@lru_cache(REMEMBERED)
def _first_mailbox(body: str) -> tuple[str, str]:
    body = _prepare(body)
    address, name = _first(body)
    if "@" not in address and "=?" in body:
        # Some senders encode the whole field, address included.
        decoded = _first(decode_words(body))
        address, name = decoded if "@" in decoded[0] else (address, name)
    return address.strip(), _clean_name(name)


def _first(body: str) -> tuple[str, str]:
    name = ""
    for address, said in _Mailboxes(body).read():
        if address:
            return address, said
        name = said if address is not None else name
    return "", name


def parse_mailboxes(body: str, limit: int = MAX_MAILBOX_LIST) -> list[tuple[str, str]]:
    """Return address and display name of every mailbox in order; see `parse_first_mailbox`.

    :param limit: maximum number of characters of the field that are read.
    """
    return [
        (address, name) for address, name in parse_addresses(body, limit) if address is not None
    ]


def parse_addresses(body: str, limit: int) -> Iterator[tuple[str | None, str]]:
    """Yield the mailboxes of `parse_mailboxes`, and the groups around them (RFC 5322 3.4).

    The address `None` with a name begins a group, and without a name it ends the group.
    """
    body = _prepare(body[:limit])
    if "@" not in body and "=?" in body:
        decoded = decode_words(body)
        body = decoded if "@" in decoded else body
    for address, name in _Mailboxes(body).read():
        if address is None or address:
            yield address and address.strip(), _clean_name(name)


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


class _Mailboxes:
    """Reads a list of mailboxes and groups."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._last_angle = body.rfind("<")
        self._last_semicolon = body.rfind(";")
        self._end = len(body.rstrip())
        self._position = 0
        self._is_in_group = False

    def read(self) -> Iterator[tuple[str | None, str]]:
        """Yield addresses and names, undecoded. For groups see `parse_addresses`.

        An empty address has a name that belongs to no address.
        """
        while self._position < len(self._body):
            yield self._read_one()
        if self._is_in_group:
            yield None, ""

    def _read_one(self) -> tuple[str | None, str]:
        body, self._position, start = self._body, len(self._body), self._position
        phrase: list[str] = []
        written: list[str] = []
        name = comment = ""
        for token in _TOKEN.finditer(body, start):
            kind = token.lastgroup
            if kind == "angle":
                if "@" not in token["angle"] and _ADDRESS_BEHIND.match(body, token.end()):
                    # Some senders put the brackets around the name: <Ann Bee>ann@example.com
                    name = token["angle"].strip()
                    continue
                name = "".join(phrase).strip().lstrip(" ,;") or name or comment.strip()
                return self._end_at_angle(token, name)
            if kind == "comment":
                comment = comment or token["comment"]
            elif kind == "mark":
                if self._is_end(token, "".join(written)):
                    self._position = token.start()
                    break
                if self._changes_group(token, phrase):
                    self._position = token.end()
                    return None, "".join(phrase).strip(" ,;") if self._is_in_group else ""
                # Other marks before an address belong to the name.
                written.clear()
                phrase.append(token["mark"])
                if token["mark"] == ":":
                    phrase.clear()
            else:
                is_quoted = kind == "quoted"
                phrase.append(_ESCAPED.sub(r"\1", token["quoted"]) if is_quoted else token["text"])
                written.append(token.group())
        said = "".join(phrase).strip(" ,;")
        return _read_bare_address("".join(written).strip(), name or comment.strip(), said)

    def _end_at_angle(self, angle: re.Match[str], name: str) -> tuple[str, str]:
        """Return the address in brackets, and its name, which may be in a comment behind it."""
        address = _strip_quotes(_BEFORE_ADDRESS.sub("", angle["angle"].strip()))
        behind = None if name else _COMMENT_BEHIND.match(self._body, angle.end())
        self._position = behind.end() if behind else angle.end()
        return address, behind[1] if behind else name

    def _is_end(self, mark: re.Match[str], written: str) -> bool:
        """Return whether a mark ends the address that has been written without brackets."""
        if "@" in written:
            return True
        if mark["mark"] == ":" or not _is_local_user(written.strip()):
            return False
        is_last = self._last_angle < mark.start() or (self._is_in_group and mark["mark"] == ";")
        return is_last or _BARE_ADDRESS_BEHIND.match(self._body, mark.end()) is not None

    def _changes_group(self, mark: re.Match[str], phrase: Sequence[str]) -> bool:
        """Return whether a mark begins a group after its name, or ends one."""
        if self._is_in_group:
            self._is_in_group = mark["mark"] != ";"
            return not self._is_in_group
        is_ended = self._last_semicolon > mark.start() or mark.end() >= self._end
        if mark["mark"] == ":" and is_ended:
            name = "".join(phrase).strip(" ,;")
            self._is_in_group = bool(name) and "[" not in name
        return self._is_in_group


def _is_local_user(text: str) -> bool:
    """Return whether a text can be the address of a local user, which has no domain."""
    return _ATOM.fullmatch(text) is not None and "=?" not in text


def _read_bare_address(text: str, name: str, said: str) -> tuple[str, str]:
    """Return the address in a text without brackets, and its name: the words around it.

    A text without an address is a name, as it is ``said`` without quotes.
    """
    if "@" not in text:
        return (text, name) if _is_local_user(text) else ("", said)
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
_NAME = r"[^\s=;,*\"()]++(?>(?:\*[0-9]{1,3}+)?)\*?+\s*+="
_WORD = r"[^\s;,:=/\\<>\"()]++"
_VALUE = re.compile(
    rf"(?>(?:[\s\"<]|\([^()]*+\))*)(?P<value>{_WORD}(?>(?:\s*+/\s*+{_WORD})?))(?!\s*+=)"
    rf"(?=[\s;:/\\>(\"]|\Z|,\s*+{_NAME})"
)
_PARAMETER = re.compile(
    r"(?>(?:[;,\s]|\([^()]*+\))*)"
    r"(?P<name>[^\s=:;,*\"()]++)(?P<piece>\*[0-9]{1,3}+)?(?P<extended>\*)?\s*+[=:]"
    r"(?>(?:\s|\([^()]*+\))*)"
    r"(?:(?>(?:\"(?=\"[^\s;,\"]))?)\"(?P<quoted>(?>(?:[^\"\\]|\\.)*))\"?"
    rf"|(?P<token>(?>(?:[^;,\s]|,(?!\s*+{_NAME}))*)))",
    re.DOTALL,
)
_SKIP = re.compile(r"\"(?>(?:[^\"\\]|\\.)*)\"?|[^;,\s\"]++|[;,\s]++", re.DOTALL)
_MORE_WORDS = re.compile(rf"(?>(?:\s++(?!{_NAME})[^;\s]++)+)")
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


def parse_moment(text: str) -> Instant | None:
    """Return the moment of a date in a header (RFC 5322 3.3), or `None` if it is not one."""
    try:
        return instant_of(parsedate_to_datetime(text.strip()).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def summarize_header(raw_message: bytes) -> HeaderSummary:
    """Read author and subject as `split_header` does; a missing or broken one is "".

    Never raises, and takes time linear in the size of the header.
    """
    author, subject = _find_bodies(raw_message)
    label = ""
    if not (is_utf_8(author) and is_utf_8(subject)):
        label = find_declared_charset(raw_message)
    authors = decode_header_bytes(author, label)
    address, name = parse_first_mailbox(authors)
    others = parse_mailboxes(authors)[1:] if authors.count("@") > 1 else ()
    return HeaderSummary(
        address,
        name,
        decode_words(decode_header_bytes(subject, label)).strip(),
        ", ".join(f"{name} <{address}>".strip() for address, name in others),
    )


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
    match = _END_OF_FIELD.search(header, start)
    end = match.start() if match else len(header)
    body, _ = _complete_word(header, header[start:end], end + 1, len(header))
    return unfold(body)


def unsubscribe_addresses(header_list: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the addresses of List-Unsubscribe: "<https://...>, <mailto:...>" (RFC 2369 3.2).

    Requesting one of them may unsubscribe.
    """
    values = (value for name, value in header_list if name.lower() == "list-unsubscribe")
    return tuple(piece.strip().strip("<>") for value in values for piece in value.split(","))
