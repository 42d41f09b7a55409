"""Bytes to text: line ends, transfer encodings and charsets."""

import binascii
import codecs
import re
from functools import lru_cache

from mailcheck.checks.content.limits import MAX_BASE64_PIECES

_SUPERSETS = {
    # What the label says and what senders mean by it (WHATWG Encoding, section 4.2).
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "iso2022_jp": "iso2022_jp_ext",
}

_ALIASES = {
    # Labels met in mail that Python does not know.
    "ansi": "cp1252",
    "cp-850": "cp850",
    "iso-8859-6-i": "iso8859-6",
    "iso-8859-8-e": "iso8859-8",
    "iso-8859-8-i": "iso8859-8",
    "ks_c_5601-1987": "cp949",
    "unicode-1-1-utf-7": "utf-7",
    "utf8mb4": "utf-8",
    "windows-31j": "cp932",
    "windows-874": "cp874",
    "x-gbk": "gb18030",
    "x-mac-roman": "mac-roman",
    "x-sjis": "cp932",
    "x-unknown": "utf-8",
    "unknown-8bit": "utf-8",
}

_NO_CHARSETS = frozenset(
    # Python codecs that are no charset of mail; punycode and idna decode in quadratic time.
    ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem")
)
_MAX_LABEL = 64
_CONTROLS = dict.fromkeys((*range(0x20), 0x7F), " ") | {0: "\ufffd"}


def end_lines(text: bytes) -> bytes:
    """Give all lines their CRLF, those that end in LF alone; what has it is not copied."""
    if text.count(b"\n") == text.count(b"\r\n"):
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


@lru_cache(maxsize=256)
def find_codec(label: str) -> str | None:
    """Name the Python codec for a charset label, or nothing when there is none."""
    label = label.strip().strip("\"'").lower()
    if not label or len(label) > _MAX_LABEL or not label.isascii() or not label.isprintable():
        return None
    try:
        name = codecs.lookup(_ALIASES.get(label, label)).name
        b"\0\0\0\0".decode(name, "replace")
    except (LookupError, ValueError):
        return None
    if name.replace("-", "_") in _NO_CHARSETS:
        return None
    return _SUPERSETS.get(name, name)


def decode_text(data: bytes, label: str) -> tuple[str, str | None]:
    """Decode bytes that are said to be in a charset.

    Returns the text and a sentence about what was wrong, or nothing. UTF-8 wins
    over a missing, unknown or ASCII label, since that is what such bytes are.
    """
    codec = find_codec(label) if label else None
    problem = f"charset {label[:_MAX_LABEL]!r} is unknown" if label and codec is None else None
    if codec is None or label.lower() in ("us-ascii", "ascii"):
        try:
            return _clean(data.decode("utf-8")), problem
        except UnicodeDecodeError:
            codec = codec or "cp1252"
            problem = problem or "text has bytes over 127 without a charset that explains them"
    try:
        return _clean(data.decode(codec)), problem
    except (UnicodeError, ValueError):
        return _decode_broken(data, codec), problem or f"text is not valid {label or codec}"


def _decode_broken(data: bytes, codec: str) -> str:
    if codec != "utf-8":
        try:
            return _clean(data.decode("utf-8"))
        except UnicodeDecodeError:
            pass
    return _clean(data.decode(codec, "replace"))


# RFC 2047 2, with octets over 127 in the text: each class excludes what follows it.
_RAW_WORD = re.compile(rb"=\?([!->@-~]{1,64})\?([qQ])\?([^?]*[\x80-\xff][^?]*)\?=")
_RAW_OCTET = re.compile(rb"[\x80-\xff]")


def decode_header_bytes(data: bytes) -> str:
    """Decode a header field's raw bytes: UTF-8 (RFC 6532), else Windows-1252.

    Octets that a sender forgot to encode inside an encoded word belong to its
    charset, unless the whole word is UTF-8.
    """
    if data.isascii():
        return data.decode("ascii")
    if b"=?" in data:
        data = _RAW_WORD.sub(_encode_octets, data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


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
    """Replace what no store or JSON can hold: NUL and lone surrogates (UTF-7 makes them)."""
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
