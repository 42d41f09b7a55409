"""Bytes to text: line ends, transfer encodings and charsets."""

import binascii
import re

from mailcheck.checks.content.charsets import (
    ISO_2022,
    MAX_LABEL,
    decode_as,
    find_byte_order_mark,
    find_codec,
    is_ascii_label,
    is_iso_2022,
)
from mailcheck.checks.content.limits import MAX_BASE64_PIECES

_CONTROLS = dict.fromkeys((*range(0x20), 0x7F), " ") | {0: "\ufffd"}


def end_lines(text: bytes) -> bytes:
    """Give all lines their CRLF, those that end in LF alone; what has it is not copied."""
    if text.count(b"\n") == text.count(b"\r\n"):
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def decode_text(data: bytes, label: str, declared: str = "") -> tuple[str, str | None]:
    """Decode bytes that are said to be in a charset.

    Return the text and a sentence about what was wrong, or `None`. UTF-8 wins over a missing,
    unknown or ASCII label if the bytes are valid UTF-8; then ``declared`` counts, the label of
    the same text in another place. A byte order mark and the escape sequences of ISO-2022-JP
    win over every label.
    """
    codec = find_codec(label) if label else None
    problem = f"charset {label[:MAX_LABEL]!r} is unknown" if label and codec is None else None
    marked = find_byte_order_mark(data) or (ISO_2022 if is_iso_2022(data) else None)
    if marked is not None and not (codec or "").startswith(ISO_2022):
        return _decode_known(data, marked, marked, None)
    if codec is None or is_ascii_label(label):
        try:
            return _clean(data.decode("utf-8")), problem
        except UnicodeDecodeError:
            codec = find_codec(declared) or codec or "cp1252"
            explained = problem or find_codec(declared) is not None
            problem = problem if explained else _UNEXPLAINED
    return _decode_known(data, _see_through(data, codec), label or codec, problem)


_UNEXPLAINED = "text has bytes over 127 without a charset that explains them"

_OTHERS = {
    # Charsets that programs mistake for each other, tried where a text is not valid.
    ISO_2022: ("utf-8", "cp932", "euc_jp"),
    "cp932": ("utf-8", "euc_jp"),
    "euc_jp": ("utf-8", "cp932"),
    "utf-8": (),
}


def _decode_known(
    data: bytes, codec: str, label: str, problem: str | None
) -> tuple[str, str | None]:
    text, is_valid = decode_as(data, codec)
    if is_valid:
        return _clean(text), problem
    if not data.isascii():
        for other in _OTHERS.get(codec, ("utf-8",)):
            try:
                text = data.decode(other)
                break
            except UnicodeDecodeError:
                continue
    return _clean(text), problem or f"text is not valid {label[:MAX_LABEL]}"


_MIN_ASCII = 8
"""Octets of ASCII that no text in UTF-16 has by chance."""


def _see_through(data: bytes, codec: str) -> str:
    """Return the codec of a text that is said to be in UTF-16: the label is often wrong."""
    if not codec.startswith("utf-16"):
        return codec
    if len(data) >= _MIN_ASCII and data.isascii() and b"\0" not in data:
        return "utf-8"
    is_big = data[:1] == b"\0" and data[1:2] != b"\0"
    return "utf-16-be" if is_big else codec


# RFC 2047 2, with octets over 127 in the text: each class excludes what follows it.
_RAW_WORD = re.compile(rb"=\?([!->@-~]{1,64})\?([qQ])\?([^?]*[\x80-\xff][^?]*)\?=")
_RAW_OCTET = re.compile(rb"[\x80-\xff]")


def decode_header_bytes(data: bytes, declared: str = "") -> str:
    """Decode a header field's raw bytes: UTF-8 (RFC 6532), the declared charset or Windows-1252.

    ``declared`` is the charset label that the mail has in a Content-Type. Octets that a sender
    forgot to encode inside an encoded word belong to its charset, unless the whole word is UTF-8.
    """
    if data.isascii():
        return decode_text(data, "")[0] if b"\x1b$" in data else data.decode("ascii")
    if b"=?" in data:
        data = _RAW_WORD.sub(_encode_octets, data)
    return decode_text(data, "", declared)[0]


def _encode_octets(word: re.Match[bytes]) -> bytes:
    charset, encoding, text = word.groups()
    try:
        binascii.a2b_qp(text).decode("utf-8")
        charset = b"utf-8"
    except UnicodeDecodeError:
        pass
    text = _RAW_OCTET.sub(lambda octet: b"=%02X" % octet[0][0], text)
    return b"=?" + charset + b"?" + encoding + b"?" + text + b"?="


def flatten_controls(text: str) -> str:
    """Make control characters spaces, for what has to stay on one line."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def _clean(text: str) -> str:
    """Replace what no store or JSON can hold: NUL and lone surrogates (UTF-7 makes them).

    A byte order mark is not text and is left out.
    """
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_IDENTITY = frozenset(("", "7bit", "8bit", "binary"))
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_")
_NOT_BASE64 = bytes(octet for octet in range(256) if octet not in _ALPHABET)


def decode_transfer(data: bytes, encoding: str) -> tuple[bytes, str | None]:
    """Decode a body; gives also a sentence about what was wrong, or nothing.

    An unknown encoding leaves the bytes as they are (RFC 2045 6.4).
    """
    if encoding in _IDENTITY:
        return data, None
    if encoding == "quoted-printable":
        return binascii.a2b_qp(data), None
    if encoding == "base64":
        return _decode_base64(data)
    return data, f"transfer encoding {encoding[:40]!r} is unknown"


def _decode_base64(data: bytes) -> tuple[bytes, str | None]:
    """Decode piece by piece: encoders that are run twice leave padding in the middle."""
    digits = data.translate(None, _NOT_BASE64).translate(_TO_STANDARD)
    body, _, rest = digits.partition(b"=")
    if rest.strip(b"="):
        return _decode_padded_pieces(digits)
    problem = None
    if len(body) % 4 == 1:
        body, problem = body[:-1], "a base64 body is cut off"
    return binascii.a2b_base64(body + b"=" * (-len(body) % 4)), problem


def _decode_padded_pieces(digits: bytes) -> tuple[bytes, str | None]:
    decoded = []
    for piece in digits.split(b"=", MAX_BASE64_PIECES):
        piece = piece.replace(b"=", b"")
        whole = piece[:-1] if len(piece) % 4 == 1 else piece
        decoded.append(binascii.a2b_base64(whole + b"=" * (-len(whole) % 4)))
    return b"".join(decoded), "a base64 body has padding in the middle"
