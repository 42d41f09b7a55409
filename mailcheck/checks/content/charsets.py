"""Charsets of mail: labels to codecs, and decoders in which one bad byte costs one character.

Labels follow the WHATWG Encoding Standard. Its `replacement` charsets are decoded, since a mail
is shown as text and its markup is sanitized after decoding.
"""

import codecs
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from itertools import islice

from webencodings.labels import LABELS

MAX_LABEL = 64
"""Maximum number of characters of a label; a longer one is unknown."""

_MAX_REPAIRED = 512 * 1024
"""Bytes that are decoded character by character where the codec of Python fails; in the rest
each bad sequence becomes U+FFFD."""

ISO_2022 = "iso-2022"
"""The codec of ISO-2022-JP and its variants."""

_ISO_2022_CN = "iso-2022-cn"
_ISO_2022_KR = "iso-2022-kr"
_HZ = "hz"
_USER_DEFINED = "x-user-defined"

_CODECS = {
    # Python's codec for a name of the WHATWG Encoding Standard, where the two differ.
    "big5": "cp950",
    "euc-jp": "euc_jp",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "iso-2022-jp": ISO_2022,
    "iso-8859-8-i": "iso8859-8",
    "macintosh": "mac-roman",
    "replacement": "utf-8",
    "shift_jis": "cp932",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
}

_MAIL_LABELS = {
    # Labels of mail programs, and charsets that the standard replaces or lacks.
    label: name
    for name, labels in {
        "iso-8859-1": "8859 latin",
        "windows-1252": "ansi ansix31101983",
        "gbk": "cngb euccn eucgb macchinesesimp ms936",
        "big5": "eten macchinesetrad ms950",
        "euc-jp": "eucjpms eucjpwin euc",
        "euc_jis_2004": "eucjisx0213",
        _HZ: "hz hzgb2312",
        ISO_2022: "iso2022 jis jis7",
        _ISO_2022_CN: "iso2022cn iso2022cnext",
        _ISO_2022_KR: "iso2022kr",
        "johab": "johab",
        "euc-kr": "ksc56011992 mackorean ms949 uhc",
        "mac-latin2": "macce maccentraleurroman",
        "mac-croatian": "maccroatian",
        "mac-greek": "macgreek",
        "mac-iceland": "macicelandic",
        "shift_jis": "macjapanese ms932 mskanji windows31j",
        "macintosh": "macroman",
        "mac-romanian": "macromanian",
        "mac-turkish": "macturkish",
        "windows-874": "tis620",
        "utf-7": "unicode11utf7",
        "utf-16le": "utf16",
        "utf-8": "utf8mb4 utf8sig",
    }.items()
    for label in labels.split()
}

_CODE_PAGES = {
    # Numbers that Windows gives to charsets, where Python has no ``cpNNN``.
    number: name
    for name, numbers in {
        "windows-1252": (0,),
        "gbk": (936, 1381, 1386, 20936, 51936),
        "shift_jis": (942, 943),
        "euc-kr": (944, 1363, 51949),
        "big5": (948, 951, 51950),
        "utf-16le": (1200,),
        "utf-16be": (1201,),
        "johab": (1361,),
        "macintosh": (10000,),
        "mac-greek": (10006,),
        "x-mac-cyrillic": (10007, 10017),
        "mac-latin2": (10029,),
        "mac-iceland": (10079,),
        "mac-turkish": (10081,),
        "us-ascii": (20127,),
        "koi8-r": (20866,),
        "euc-jp": (20932, 33722, 50932, 51932),
        "koi8-u": (21866,),
        "windows-1254": (28599,),
        "iso-8859-8": (38598,),
        ISO_2022: (50220, 50221, 50222),
        _ISO_2022_KR: (50225,),
        _ISO_2022_CN: (50227,),
        _HZ: (52936,),
        "gb18030": (54936,),
        "utf-7": (65000,),
        "utf-8": (65001,),
    }.items()
    for number in numbers
} | {28590 + part: f"iso-8859-{part}" for part in (*range(1, 9), 13, 15)}


_NO_CHARSETS = frozenset(
    # Python codecs that are no charset of mail; punycode and idna decode in quadratic time.
    ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem")
)
_NO_LABELS = frozenset(
    # Labels of programs that do not know the charset.
    ("unknown", "unknown8bit", "none", "default", "7bit", "8bit", "binary", "charset", "auto")
)

_END_OF_LABEL = re.compile(r"""[;,"'<>()\\$]|[^ -~]""")
_PUNCTUATION = re.compile(r"[^a-z0-9]+")
_PREFIX = re.compile(r"^(?:x|cs)+")
_CODE_PAGE = re.compile(r"(?>(?:x|cs|ms|windows|win|codepage|cp|ibm|dos|mac)*)0*+([0-9]{1,5})")
_MIN_PREFIX = 4


_CHANGES: Mapping[str, Mapping[int, int]] = {
    # Where Python's table and the standard's differ.
    "koi8-u": {0x255D: 0x45E, 0x256C: 0x40E},
}

_NEAREST = {ISO_2022: "iso2022_jp_ext", _ISO_2022_KR: "iso2022_kr", _HZ: "hz"}
"""The nearest codec of Python, for the bytes beyond the bound."""

_HZ_SWITCH = re.compile(rb"~([{}~])|~\r?\n|(\r?\n)")

_USER_CHARACTERS = {octet: 0xF700 + octet for octet in range(0x80, 0x100)}


def _squeeze(label: str) -> str:
    return _PUNCTUATION.sub("", label)


_SQUEEZED = {_squeeze(label): name for label, name in LABELS.items()} | _MAIL_LABELS


def find_codec(label: str) -> str | None:
    """Return the codec for a charset label, or `None` for a label that names no charset."""
    return _find_codec(label) if len(label) <= MAX_LABEL else None


@lru_cache(maxsize=256)
def _find_codec(label: str) -> str | None:
    label = label.strip(" \t\r\n_\"'").lower().removeprefix("charset=").strip("\"'")
    label = _END_OF_LABEL.split(label, maxsplit=1)[0].strip()
    squeezed = _squeeze(label)
    bare = _PREFIX.sub("", squeezed)
    if not squeezed or bare in _NO_LABELS:
        return None
    # The names of mail programs come first: the standard replaces some of these charsets.
    name = _MAIL_LABELS.get(squeezed) or _MAIL_LABELS.get(bare) or LABELS.get(label)
    forms = (form for form in (squeezed, bare, f"iso{bare}") if form in _SQUEEZED)
    name = name or _find_code_page(squeezed) or _SQUEEZED.get(next(forms, "")) or label
    return _find_python_codec(name) or _find_python_codec(squeezed) or _find_prefix(squeezed)


def _find_code_page(squeezed: str) -> str | None:
    match = _CODE_PAGE.fullmatch(squeezed)
    if match is None:
        return None
    number = int(match[1])
    return _CODE_PAGES.get(number) or _find_python_codec(f"cp{number}")


def _find_prefix(squeezed: str) -> str | None:
    """Find the longest label that a text begins with, as in ``utf-8http-equiv``."""
    for size in range(len(squeezed) - 1, _MIN_PREFIX - 1, -1):
        start = squeezed[:size]
        # A digit tells a name from a word that begins like one (``unicode_escape``).
        if not squeezed[size].isdigit() and start in _SQUEEZED and not start.isalpha():
            return _find_python_codec(_SQUEEZED[start])
    return None


def _find_python_codec(name: str) -> str | None:
    name = _CODECS.get(name, name)
    if name in _DECODERS:
        return name
    try:
        found = codecs.lookup(name).name
        b"\0\0\0\0".decode(found, "replace")
    except (LookupError, ValueError):
        return None
    if found.replace("-", "_") in _NO_CHARSETS:
        return None
    if found.startswith("iso2022_"):
        return ISO_2022
    # Python knows the charset by a name that the standard lacks (``latin_1``).
    same = _SQUEEZED.get(_squeeze(found), found)
    same = _CODECS.get(same, same)
    return same if same in _DECODERS else codecs.lookup(same).name


def is_ascii_label(label: str) -> bool:
    """Return whether a label names ASCII, which programs also write for other text."""
    return len(label) <= MAX_LABEL and _is_ascii_label(label)


@lru_cache(maxsize=256)
def _is_ascii_label(label: str) -> bool:
    try:
        return codecs.lookup(label.strip().lower()).name == "ascii"
    except (LookupError, ValueError):
        return False


def decode_as(data: bytes, codec: str) -> tuple[str, bool]:
    """Decode bytes with a codec of `find_codec`; return the text and whether it was valid.

    Each sequence that the charset does not have becomes U+FFFD.
    """
    decoder = _DECODERS.get(codec)
    if decoder is not None:
        text = decoder(data[:_MAX_REPAIRED])
        text += data[_MAX_REPAIRED:].decode(_NEAREST.get(codec, "ascii"), "replace")
        return text, "\ufffd" not in text
    try:
        text = data.decode(codec)
    except (UnicodeError, ValueError):
        if codec not in _RESCUES:
            return data.decode(codec, "replace"), False
        text = data[:_MAX_REPAIRED].decode(codec, _rescue_handler())
        text += data[_MAX_REPAIRED:].decode(codec, "replace")
        return text, "\ufffd" not in text
    return text.translate(_CHANGES[codec]) if codec in _CHANGES else text, True


def _rescue(error: UnicodeError) -> tuple[str, int]:
    """Decode one sequence that Python's codec lacks and the standard has: an error handler."""
    assert isinstance(error, UnicodeDecodeError)
    rescue = _RESCUES.get(error.encoding)
    found = rescue(error.object[error.start : error.start + 2]) if rescue is not None else None
    if found is None:
        return "\ufffd", error.end
    return found[0], error.start + found[1]


def _rescue_euc_jp(pair: bytes) -> tuple[str, int] | None:
    """Decode NEC row 13 and the IBM rows (CP51932)."""
    if len(pair) < 2 or min(pair) < 0xA1:
        return None
    character = _decode_jis(pair[0] & 0x7F, pair[1] & 0x7F)
    return None if character is None else (character, 2)


def _rescue_octet(octet: bytes, character: str, pair: bytes) -> tuple[str, int] | None:
    return (character, 1) if pair[:1] == octet else None


def _rescue_big5(pair: bytes) -> tuple[str, int] | None:
    """Decode the characters of Hong Kong."""
    try:
        return pair.decode("big5hkscs"), len(pair)
    except UnicodeDecodeError:
        return None


_rescue_hebrew = partial(_rescue_octet, b"\xca", "\u05ba")
_RESCUE = "mailcheck.rescue"
_RESCUES: Mapping[str, Callable[[bytes], tuple[str, int] | None]] = {
    "cp950": _rescue_big5,
    "charmap": _rescue_hebrew,  # what the codec of cp1255 calls itself
    "cp1255": _rescue_hebrew,
    "euc_jp": _rescue_euc_jp,
    "gb18030": partial(_rescue_octet, b"\x80", "\u20ac"),
}


@cache
def _rescue_handler() -> str:
    """Register the error handler; return its name."""
    codecs.register_error(_RESCUE, _rescue)
    return _RESCUE


def _decode_jis(row: int, cell: int) -> str | None:
    """Decode a pair of JIS X 0208 with the NEC and IBM extensions, as Windows reads it."""
    lead = ((row - 0x21) >> 1) + 0x81
    lead += 0x40 if lead > 0x9F else 0
    trail = cell + (0x7E if row % 2 == 0 else 0x1F if cell < 0x60 else 0x20)
    try:
        return bytes((lead, trail)).decode("cp932")
    except (UnicodeDecodeError, ValueError):
        return None


# ISO 2022: what an escape sequence designates. The values are codecs of pairs of octets from
# 0xA1, with the octets before each pair; "" is ASCII.
_G0_SETS = {
    b"(B": "",
    b"(J": "jis-roman",
    b"(H": "",  # a wrong name of JIS X 0201 Roman in old programs
    b"(I": "katakana",
    b"$@": "euc_jp",
    b"$B": "euc_jp",
    b"$(@": "euc_jp",
    b"$(B": "euc_jp",
    b"$(D": "euc_jp+",
    b"$(O": "euc_jis_2004",
    b"$(P": "euc_jis_2004+",
    b"$(Q": "euc_jis_2004",
    b"$(?": "user-defined",  # ISO-2022-JP-MS
    b"$A": "gb18030",
    b"$(A": "gb18030",
    b"$(C": "cp949",
}
_G1_SETS = {b"$)A": "gb18030", b"$)C": "cp949", b"$)G": "unknown", b"$)E": "gb18030"}
_SWITCH = re.compile(
    rb"\x1b(&@|[(][BJHI]|\$[@AB]|\$\([@ABCDOPQ?]|\$\)[ACEG]|\$\*H)|([\x0e\x0f])|(\r?\n)"
)
_TO_HIGH = bytes(octet | 0x80 for octet in range(256))
_GRAPHIC = bytes(range(0x21, 0x7F))
_BLANKS = frozenset(b" \t\r\v\f")
_JIS_ROMAN = {0x5C: 0xA5, 0x7E: 0x203E}
_HIGH_IN_ASCII = {
    # Half-width katakana (CP50220), and no other octet over 127.
    octet: bytes((octet,)).decode("cp932") if 0xA1 <= octet <= 0xDF else "\ufffd"
    for octet in range(0x80, 0x100)
}


def _decode_iso_2022(data: bytes, g1: str = "katakana") -> str:
    """Decode ISO-2022-JP in all its variants, ISO-2022-KR and ISO-2022-CN.

    A line begins in ASCII (RFC 1468, RFC 1557), and a bad pair costs one character.
    """
    pieces: list[str] = []
    g0, is_shifted, position = "", False, 0
    for match in _SWITCH.finditer(data):
        pieces.append(_decode_set(data[position : match.start()], g1 if is_shifted else g0))
        position = match.end()
        designation, shift, line_end = match.groups()
        if line_end is not None:
            pieces.append(line_end.decode("ascii"))
            g0, is_shifted = "", False
        elif shift is not None:
            is_shifted = shift == b"\x0e"
        elif designation in _G1_SETS:
            g1 = _G1_SETS[designation]
        else:
            g0 = _G0_SETS.get(designation, g0)
    pieces.append(_decode_set(data[position:], g1 if is_shifted else g0))
    return "".join(pieces)


def _decode_hz(data: bytes) -> str:
    """Decode HZ (RFC 1843): a line begins in ASCII, and a bad pair costs one character."""
    pieces: list[str] = []
    name, position = "", 0
    for match in _HZ_SWITCH.finditer(data):
        pieces.append(_decode_set(data[position : match.start()], name))
        position = match.end()
        sign, line_end = match.groups()
        if line_end is not None:
            pieces.append(line_end.decode("ascii"))
        elif sign == b"~":
            pieces.append("~")
        name = "gb18030" if sign == b"{" else name if sign == b"~" else ""
    pieces.append(_decode_set(data[position:], name))
    return "".join(pieces)


def _decode_set(data: bytes, name: str) -> str:
    """Decode octets between two switches in the set that is current."""
    if not data:
        return ""
    if name in ("", "jis-roman"):
        text = data.decode("latin-1").translate(_HIGH_IN_ASCII)
        return text.translate(_JIS_ROMAN) if name else text
    if name == "katakana":
        return data.translate(_TO_HIGH).decode("cp932", "replace")
    codec, plus, _ = name.partition("+")
    if not plus and len(data) % 2 == 0 and not data.translate(None, _GRAPHIC):
        try:
            return data.translate(_TO_HIGH).decode(codec)
        except (UnicodeDecodeError, LookupError):
            pass
    prefix = b"\x8f" if plus else b""
    characters: list[str] = []
    position = 0
    while position < len(data):
        if data[position] in _BLANKS:
            characters.append(chr(data[position]))
            position += 1
            continue
        pair = data[position : position + 2]
        is_pair = len(pair) == 2 and not pair.translate(None, _GRAPHIC)
        characters.append((_decode_pair(pair, codec, prefix) if is_pair else None) or "\ufffd")
        position += 2
    return "".join(characters)


def _decode_pair(pair: bytes, codec: str, prefix: bytes) -> str | None:
    if codec == "user-defined":
        return chr(0xE000 + (pair[0] - 0x21) * 94 + pair[1] - 0x21)
    try:
        return (prefix + pair.translate(_TO_HIGH)).decode(codec)
    except (UnicodeDecodeError, LookupError):
        return _decode_jis(*pair) if codec == "euc_jp" and not prefix else None


_DECODERS: Mapping[str, Callable[[bytes], str]] = {
    ISO_2022: _decode_iso_2022,
    _ISO_2022_CN: partial(_decode_iso_2022, g1="gb18030"),
    _ISO_2022_KR: partial(_decode_iso_2022, g1="cp949"),
    _HZ: _decode_hz,
    _USER_DEFINED: lambda data: data.decode("latin-1").translate(_USER_CHARACTERS),
}

_UNDECLARED_ISO_2022 = re.compile(rb"\x1b(?:\$[@B]|\$\([@BD]|\$\)C)")


def is_iso_2022(data: bytes) -> bool:
    """Return whether 7-bit text has an escape sequence that only ISO-2022-JP and -KR have."""
    return b"\x1b" in data and data.isascii() and bool(_UNDECLARED_ISO_2022.search(data))


_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def find_byte_order_mark(data: bytes) -> str | None:
    """Return the codec that a byte order mark at the start names (WHATWG Encoding 6)."""
    if data[:1] not in b"\xef\xfe\xff":
        return None
    return next((codec for mark, codec in _BYTE_ORDER_MARKS if data.startswith(mark)), None)


_META = re.compile(
    rb"<meta\b[^>]{0,500}?\bcharset\s*+=\s*+[\"']?\s*+([!#-&(-:=?-~]{1,64})"
    rb"|^\s*+<\?xml\b[^>]{0,200}?\bencoding\s*+=\s*+[\"']([!-~]{1,64}?)[\"']",
    re.IGNORECASE,
)
_PRESCANNED = 4_096
"""Bytes of HTML that are searched for a declaration. The HTML standard searches 1,024; mails have
comments for Outlook in front."""


def find_declared_in_html(data: bytes) -> str:
    """Return the label that a page declares in ``<meta>`` (HTML standard 13.2.3.2), or ``""``."""
    match = _META.search(data, 0, _PRESCANNED)
    label = (match[1] or match[2]).decode("ascii") if match else ""
    codec = find_codec(label) or ""
    # A page whose declaration could be read is in no charset of two octets a character.
    return "utf-8" if codec.startswith(("utf-16", "utf-32")) else label


_PARAMETER = re.compile(rb"\bcharset\*?\s*+[=:]\s*+[\"']?([!#-&(-:<-~]{1,64})", re.IGNORECASE)
_SEARCHED_FOR_CHARSET = 64 * 1024
_MAX_PARAMETERS = 20


_WORD = re.compile(rb"=\?([!-)+->@-~]{1,64}+)(?>(?:\*[!->@-~]{0,64}+)?)\?[bq]\?", re.IGNORECASE)
"""The beginning of an encoded word (RFC 2047 2), with its charset and language (RFC 2231 5)."""


def find_declared_charset(raw_message: bytes) -> str:
    """Return the first label in a mail that says more than UTF-8 or ASCII, or ``""``.

    Mail programs write raw octets of a header, the text and encoded words in the same charset. A
    parameter takes precedence over an encoded word.
    """
    for pattern in (_PARAMETER, _WORD):
        found = pattern.finditer(raw_message, 0, _SEARCHED_FOR_CHARSET)
        labels = (match[1].decode("ascii") for match in islice(found, _MAX_PARAMETERS))
        known = (alias for alias in labels if find_codec(alias) not in (None, "utf-8"))
        label = next((alias for alias in known if not is_ascii_label(alias)), "")
        if label:
            return label
    return ""
