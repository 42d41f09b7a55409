"""Decoding of bytes to text: line ends, transfer encodings, charsets, encoded words (RFC 2047)."""

import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

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


_UNEXPLAINED = "text has bytes over 127 without a charset that explains them"

_ENCODINGS = frozenset(
    # RFC 2045 6.1, and an older encoding that was never standardized.
    ("", "7bit", "8bit", "binary", "quoted-printable", "base64", "x-uuencode")
)


def end_lines(text: bytes) -> bytes:
    """End all lines with CRLF instead of LF; return the same object if nothing changes."""
    if text.count(b"\n") == text.count(b"\r\n"):
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def is_utf_8(data: bytes) -> bool:
    """Return whether the bytes are valid UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def decode_text(data: bytes, label: str, declared: str = "") -> tuple[str, str | None]:
    """Decode bytes with a charset label.

    Return the text and a sentence about an error, or `None`. A byte order mark and the escape
    sequences of ISO-2022 take precedence over all labels. UTF-8 takes precedence over a missing,
    unknown or ASCII label if the bytes are valid UTF-8. Otherwise ``declared`` is used: a label
    that another part of the mail declares.
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
    return _decode_known(data, _correct_utf_16(data, codec), label or codec, problem)


_OTHERS = {
    # Charsets that programs confuse, tried if a text is not valid.
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
"""Minimum number of ASCII octets that do not occur in UTF-16 by chance."""


def _correct_utf_16(data: bytes, codec: str) -> str:
    """Return the codec of a text with a UTF-16 label, since such labels are often wrong."""
    if not codec.startswith("utf-16"):
        return codec
    if len(data) >= _MIN_ASCII and data.isascii() and b"\0" not in data:
        return "utf-8"
    is_big = data[:1] == b"\0" and data[1:2] != b"\0"
    return "utf-16-be" if is_big else codec


# RFC 2047 2, with octets over 127 in the text. Each class excludes the delimiter after it.
_RAW_WORD = re.compile(rb"=\?([!->@-~]{1,64})\?([qQ])\?([^?]*[\x80-\xff][^?]*)\?=")
_RAW_OCTET = re.compile(rb"[\x80-\xff]")


def decode_header_bytes(data: bytes, declared: str = "") -> str:
    """Decode a header field's raw bytes: UTF-8 (RFC 6532), the declared charset or Windows-1252.

    ``declared`` is the charset that a Content-Type of the mail declares. Octets that a sender
    forgot to encode inside an encoded word belong to its charset, unless the whole word is UTF-8.
    """
    if data.isascii():
        return decode_text(data, "")[0] if b"\x1b" in data else data.decode("ascii")
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
    """Replace control characters with spaces, for text that must stay on one line."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def _clean(text: str) -> str:
    """Replace characters that stores and JSON cannot hold: NUL and lone surrogates (from UTF-7).

    A byte order mark is removed.
    """
    text = text.removeprefix("\ufeff").replace("\0", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"
_NOT_BASE64 = bytes(octet for octet in range(256) if octet not in _ALPHABET)
_PUNCTUATION = re.compile(r"[^a-z0-9]+")

Decoded = tuple[bytes, str | None]
"""Decoded bytes, and a sentence about an error, or `None`."""


def decode_transfer(data: bytes, encoding: str) -> Decoded:
    """Decode a body; the name of the encoding is in lower case.

    Bytes in an unknown encoding stay unchanged (RFC 2045 6.4).
    """
    decoder = _DECODERS.get(_PUNCTUATION.sub("", encoding))
    if decoder is None:
        return data, f"transfer encoding {encoding[:40]!r} is unknown"
    decoded, problem = decoder(data)
    if problem is None and encoding not in _ENCODINGS:
        problem = f"transfer encoding {encoding[:40]!r} is not one of RFC 2045"
    return decoded, problem


def _decode_identity(data: bytes) -> Decoded:
    return data, None


_PADDING = (b" \r\n", b"\t\r\n")


def _decode_quoted_printable(data: bytes) -> Decoded:
    """Decode without the blanks that transport adds to the ends of lines (RFC 2045 6.7)."""
    problem = None
    if any(blank in data for blank in _PADDING) or data.endswith((b" ", b"\t")):
        lines = data.split(b"\n")
        bare = [line.rstrip(b" \t\r") for line in lines]
        padded = (
            unpadded
            for unpadded, line in zip(bare, lines, strict=True)
            if line.rstrip(b"\r") != unpadded
        )
        if any(line.endswith(b"=") for line in padded):
            problem = "a quoted-printable body has blanks after soft line breaks"
        data = b"\r\n".join(bare)
    return binascii.a2b_qp(data), problem


_PLAIN = "a body with the encoding base64 is plain text"
_FOLLOWED = "a base64 body has text after its end"
_MAX_JUDGED = 2_048
_FOOTER = re.compile(rb"[^A-Za-z0-9+/=_\s-]|[^\s=][ \t]++[^\s=]")
"""A character or a gap that occurs in a line of text, but not in a line of base64."""


def _decode_base64(data: bytes) -> Decoded:
    """Decode piece by piece, since encoders that run twice leave padding in the middle."""
    if _is_plain_text(data[:_MAX_JUDGED]):
        return data, _PLAIN
    end = data.find(b"=")
    problem = None
    if end >= 0 and _FOOTER.search(data, end):
        data, problem = data[:end], _FOLLOWED
    digits = data.translate(None, _NOT_BASE64).translate(_TO_STANDARD)
    body, _, rest = digits.partition(b"=")
    if rest.strip(b"="):
        decoded = []
        for piece in digits.split(b"=", MAX_BASE64_PIECES):
            piece = piece.replace(b"=", b"")
            whole = piece[:-1] if len(piece) % 4 == 1 else piece
            decoded.append(binascii.a2b_base64(whole + b"=" * (-len(whole) % 4)))
        return b"".join(decoded), "a base64 body has padding in the middle"
    if len(body) % 4 == 1:
        body, problem = body[:-1], "a base64 body is cut off"
    return binascii.a2b_base64(body + b"=" * (-len(body) % 4)), problem


def _is_plain_text(beginning: bytes) -> bool:
    """Return whether a body with a base64 label is not encoded.

    A body with a few other octets is still base64: list footers, quotation marks or blanks.
    """
    lines = [line.strip() for line in beginning.split(b"\n") if line.strip()]
    if not lines or not lines[0].translate(None, _ALPHABET):
        return False
    odd = [line for line in lines if line.translate(None, _ALPHABET)]
    if 2 * len(odd) < len(lines):
        return False
    words = lines[0].split()
    has_signs = any(line.translate(None, _ALPHABET).strip() for line in odd)
    if not has_signs and len({len(word) for word in words[:-1]}) < 2:
        return False
    digits = beginning.translate(None, _NOT_BASE64).translate(_TO_STANDARD).partition(b"=")[0]
    data = binascii.a2b_base64(digits[: len(digits) // 4 * 4])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return not text or not "".join(text.split()).isprintable()


def _decode_uuencoded(data: bytes) -> Decoded:
    """Decode the lines between ``begin`` and ``end``, or all lines without these.

    Blanks at the end of a line may be lost, so a line may encode more octets than it contains. The
    result is never larger than the encoded bytes.
    """
    decoded: list[bytes] = []
    problem = None
    room = len(data)
    lines = data.split(b"\n")
    start = next((n for n, line in enumerate(lines, 1) if line.startswith(b"begin ")), 0)
    for line in lines[start:]:
        line = line.rstrip(b"\r")
        if line.startswith(b"end") or not line:
            break
        size = (line[0] - 32) & 63
        room -= size
        if room < 0:
            problem = "a uuencoded body declares a larger size than it has"
            break
        digits = line[1 : 1 + (size + 2) // 3 * 4]
        try:
            decoded.append(binascii.a2b_uu(line[:1] + digits.ljust((size + 2) // 3 * 4)))
        except binascii.Error:
            problem = "a uuencoded body has a line that is not valid"
    return b"".join(decoded), problem


_DECODERS: Mapping[str, Callable[[bytes], Decoded]] = {
    # The keys are names without punctuation.
    **dict.fromkeys(("", "7bit", "7bits", "8bit", "8bits", "binary"), _decode_identity),
    **dict.fromkeys(("base64", "xbase64"), _decode_base64),
    **dict.fromkeys(("quotedprintable", "quoted", "qp"), _decode_quoted_printable),
    **dict.fromkeys(("uuencode", "xuuencode", "uue", "xuue"), _decode_uuencoded),
}


# The text may contain spaces and question marks, and there may be white space between the parts:
# these are common mistakes. All quantifiers are possessive, so a search examines each character a
# bounded number of times.
_ENCODED_WORD = re.compile(
    r"=\?\s*+([^?\s]{0,64})\s*+\?\s*+([bBqQ])\s*+\?"
    r"([^?]*+(?>(?:(?<!=)\?(?!\s?=)[^?]*+){0,8}))\?\s?="
)
_SOFT_BREAK = re.compile(r"=[ \t]++")
"""A soft line break of quoted-printable, unfolded. An encoded word has none (RFC 2047 4.2)."""

_TEXT_TO_STANDARD = str.maketrans("-_", "+/")
_NOT_BASE64_TEXT = re.compile(r"[^A-Za-z0-9+/]+")
_REPLACEMENT = "\ufffd"

Word = tuple[str, str]
"""Encoding (``b`` or ``q``) and text of an encoded word."""


def decode_words(text: str) -> str:
    """Decode all encoded words of an unfolded field body; other text stays unchanged.

    White space between two encoded words is dropped (RFC 2047 6.2). Adjacent words of one charset
    are joined before decoding, since senders split inside characters.
    """
    if "=?" not in text:
        return flatten_controls(text)
    pieces: list[str] = []
    run: list[Word] = []
    charset, position = "", 0
    for match in _ENCODED_WORD.finditer(text):
        gap = text[position : match.start()]
        label = match[1].partition("*")[0].lower()
        if run and (gap.strip() or label != charset):
            pieces.append(_decode_run(run, charset))
            run = []
        if gap.strip() or not position:
            pieces.append(gap)
        run.append((match[2].lower(), match[3]))
        charset, position = label, match.end()
    if run:
        pieces.append(_decode_run(run, charset))
    pieces.append(text[position:])
    return flatten_controls("".join(pieces))


def _decode_run(run: Sequence[Word], label: str) -> str:
    """Decode adjacent words of one charset; use the first reading without a bad character."""
    if len(run) == 1:
        return _decode_octets(_decode_word(*run[0]), label)
    readings: list[str] = []
    for is_cut in (_is_cut, lambda _: False, lambda _: True):
        text = _decode_octets(b"".join(_decode_neighbours(run, is_cut)), label)
        if _REPLACEMENT not in text:
            return text
        readings.append(text)
    apart = "".join(_decode_octets(_decode_word(*word), label) for word in run)
    return readings[0] if _REPLACEMENT in apart else apart


def _decode_octets(data: bytes, label: str) -> str:
    """Decode the octets of words; some programs encode the NUL after a text."""
    is_wide = (find_codec(label) or "").startswith(("utf-16", "utf-32"))
    return decode_text(data if is_wide else data.rstrip(b"\0"), label)[0]


def _is_cut(texts: Sequence[str]) -> bool:
    """Return whether base64 was split into words: only the whole has complete quanta."""
    return sum(map(len, texts)) % 4 == 0


def _decode_neighbours(
    run: Sequence[Word], is_cut: Callable[[Sequence[str]], bool]
) -> Iterator[bytes]:
    """Decode words to octets; first join words that were split inside their encoding."""
    for encoding, words in groupby(run, key=lambda word: word[0]):
        texts = [text for _, text in words]
        if encoding == "q":
            yield _decode_q("".join(texts))
            continue
        groups: list[list[str]] = []  # split after padding, which may itself be in two words
        for text in texts:
            digits = "".join(text.split())
            if groups and (digits.strip("=") == "" or not groups[-1][-1].endswith("=")):
                groups[-1].append(digits)
            else:
                groups.append([digits])
        for group in groups:
            if is_cut(group):
                yield decode_base64("".join(group))
            else:
                yield from map(decode_base64, group)


def _decode_word(encoding: str, text: str) -> bytes:
    return _decode_q(text) if encoding == "q" else decode_base64(text)


def _decode_q(text: str) -> bytes:
    text = _SOFT_BREAK.sub("", text)
    return binascii.a2b_qp(text.encode("utf-8", "replace"), header=True)


def decode_base64(text: str) -> bytes:
    """Decode base64, ignoring other characters; an incomplete end is dropped."""
    digits = _NOT_BASE64_TEXT.sub("", text.translate(_TEXT_TO_STANDARD))
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))
