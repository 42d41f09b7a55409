"""Parser for a value with parameters, such as that of Content-Type (RFC 2045 5.1, RFC 2231)."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from mailcheck.checks.content.charsets import find_codec
from mailcheck.checks.content.decoding import decode_text, decode_words
from mailcheck.checks.content.header.mailboxes import ESCAPED
from mailcheck.checks.content.limits import MAX_PARAMETERS, MAX_REMEMBERED, REMEMBERED

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
        text = (token + more).rstrip('"') if quoted is None else ESCAPED.sub(r"\1", quoted)
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
