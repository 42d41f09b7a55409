"""Parser for the mailboxes of a header field (RFC 5322 3.4)."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from mailcheck.checks.content.decoding import decode_words, flatten_controls
from mailcheck.checks.content.limits import MAX_MAILBOX_LIST, REMEMBERED

# Every alternative takes at least one character and never gives one back, so the time is linear.
_TOKEN = re.compile(
    r'"(?P<quoted>(?>(?:[^"\\]|\\.)*))"?'
    r"|\((?P<comment>(?>(?:[^()\\]|\\.|\((?>(?:[^()\\]|\\.)*)\))*))\)?"
    r"|<(?P<angle>[^<>]*+)>?"
    r"|(?P<text>(?>(?:[^\"(<,;:@]++|@(?>(?:\[[0-9A-Za-z:.]*+\])?))+))"
    r"|(?P<mark>[,;:])",
    re.DOTALL,
)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
"""A quoted pair (RFC 5322 3.2.1): a backslash and the character that it quotes."""

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
                phrase.append(ESCAPED.sub(r"\1", token["quoted"]) if is_quoted else token["text"])
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
