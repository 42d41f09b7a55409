"""``Content-Type`` and its kin: a value with parameters (RFC 2045 5.1, RFC 2231)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from mailcheck.checks.content.charsets import decode_text
from mailcheck.checks.content.encoded_words import decode_words
from mailcheck.checks.content.limits import MAX_PARAMETERS

# Comments may stand anywhere (RFC 2045 5.1). All loops are possessive, and a
# quote that is not closed runs to the end instead of being tried again.
_PARAMETER = re.compile(
    r";(?:\s|\([^()]*+\))*+"
    r"(?P<name>[^\s=;*\"()]++)(?P<piece>\*[0-9]{1,3}+)?(?P<extended>\*)?\s*+=(?:\s|\([^()]*+\))*+"
    r"(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)\"?|(?P<token>[^;\s]*+))",
    re.DOTALL,
)
_SKIP = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?|[^;\"]++", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Piece:
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
