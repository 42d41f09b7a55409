"""Recognize TXT records that are SPF records, or were intended as such."""

import html
import re
import unicodedata

VERSION = "v=spf1"

_OF_START = 160  # characters at the start that show the purpose of a text


_VERSION_WITHIN = re.compile("v=+spf1")


def is_spf_record(text: str) -> bool:
    """Return whether a TXT record is an SPF record: ``v=spf1``, then a space or the end."""
    return text[: len(VERSION)].lower() == VERSION and text[len(VERSION) :][:1] in ("", " ")


JOINT = "\0"
"""Marks the border between two strings of a TXT record, or an invisible character, where a space
may be missing."""


_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_TILDES = "\u02dc\u223c\u2053\u301c\uff5e"
_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u2032\u2033"
_LOOK_ALIKES = str.maketrans(
    {**dict.fromkeys(_DASHES, "-"), **dict.fromkeys(_TILDES, "~"), **dict.fromkeys(_QUOTES, '"')}
)
_ENTITY = re.compile(r"&(?:[a-z]{2,8}|#[0-9]{1,5}|#x[0-9a-f]{1,4});", re.IGNORECASE)
_DECIMAL_ESCAPE = re.compile(r"\\([01][0-9]{2}|2[0-4][0-9]|25[0-5])")
# Before a term, a dash that is not ASCII may be a bullet or a qualifier.
_DASH_OF_A_TERM = re.compile(rf"(?<![^\s{JOINT}])[{_DASHES}](?!\s*all\b)", re.IGNORECASE)
_UNREADABLE = "\ufffd"


def normalize(text: str) -> str:
    """Replace look-alikes with their ASCII characters, and invisible characters with `JOINT`."""
    if text.isascii() and not set("\\&\t\r\n\v\f") & set(text):
        return text
    text = _DASH_OF_A_TERM.sub(_UNREADABLE, text).translate(_LOOK_ALIKES)
    text = _ENTITY.sub(lambda found: html.unescape(found.group()), text)
    text = _DECIMAL_ESCAPE.sub(lambda found: chr(int(found[1])), text)
    text = re.sub(r"(?<=[0-9])\\(?=[0-9])", _UNREADABLE, text)  # "\32" may be "/32"
    text = re.sub(r"\\(?!\s|$)", "", text)
    text = "".join(
        JOINT if unicodedata.category(character) == "Cf" else character for character in text
    )
    return unicodedata.normalize("NFKC", text)


VERSION_AT_START = re.compile(
    rf"[\W_]*(?:v[\s={JOINT}:.-]*)?s(?:pf|fp)[\s{JOINT}]*(?:1(?:\.?0)?|2\.0)?(?:/(?:pra|mfrom)(?:,(?:pra|mfrom))?)?(?![0-9.])",
    re.IGNORECASE,
)


def looks_like_spf(text: str) -> bool:
    """Return whether a TXT record was intended as an SPF record but is not a valid one."""
    if is_spf_record(text):
        return False
    start = normalize(text[:_OF_START]).replace(JOINT, "")
    compact = "".join(start.lower().split()).lstrip("\"'=([{<`*")
    if compact.startswith(("v=spf", "v:spf", "spf1", "v-spf", "vspf", "v=sfp1", "v.spf")):
        return True
    return _VERSION_WITHIN.search(compact) is not None or _has_terms_only(text)


def is_sender_id(text: str) -> bool:
    """Return whether a text is a Sender ID record (RFC 4406), which may exist beside SPF."""
    return text.lower().startswith("v=spf2.0/")


_TERM = re.compile(
    r"[+~?-]?(?:all|(?:a|mx|ptr)(?:[:/]\S+)?|(?:include|exists|ip4|ip6):\S+)|redirect=\S+",
    re.IGNORECASE,
)


def _has_terms_only(text: str) -> bool:
    """Return whether a text consists of SPF terms and ends in ``all``.

    The first of three or more words may be anything, such as a misspelled version.
    """
    words = text.split()
    if len(words) < 2 or words[-1].lstrip("+-~?").lower() != "all":
        return False
    return all(_TERM.fullmatch(word) is not None for word in words[len(words) > 2 :])
