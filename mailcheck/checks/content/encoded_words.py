"""Encoded words in header fields (RFC 2047), read as leniently as senders write them."""

import binascii
import re

from mailcheck.checks.content.charsets import decode_text, flatten_controls

# RFC 2047 2; the text may hold spaces here, which is wrong and common. Each
# class excludes the delimiter that follows it, so matching is linear.
_WORD = re.compile(r"=\?([^?\s]{1,64})\?([bBqQ])\?([^?]*)\?=")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")


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
