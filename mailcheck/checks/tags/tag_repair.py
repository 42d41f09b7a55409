"""Parse malformed texts that were intended as tag lists, so that advice can repair them."""

import re
from collections.abc import Iterable
from functools import cache

from mailcheck.checks.mail_domains import read_mail_domain

MAX_REPAIRED = 4_096
"""Maximum number of characters of a text that is repaired; real records have up to 500."""

_LOOK_ALIKES = str.maketrans(
    dict.fromkeys(
        "\"\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019'`*\\\ufeff\u200b\u200c\u200d\u2060", ""
    )
    | dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000\ufffd", " ")
    | {"\uff1b": ";", "\uff1d": "=", "\uff1a": ":", "\uff0c": ","}
)
"""Quotes, escapes and invisible characters that editors and web forms insert into records."""

_SEPARATORS = ";,:| \t\r\n"


_MISTAKES = tuple(
    (re.compile(pattern, re.ASCII), mistake)
    for pattern, mistake in (
        (r"^[ \t\r\n\u00a0]", "it begins with a space"),
        (r"\\", "it contains backslashes"),
        ("[\"\u201c\u201d\u201e\u2018\u2019'`]", "it contains quotation marks"),
        ("[\u00a0\ufeff\u200b-\u200d\u2060\ufffd]", "it contains invisible characters"),
        (r"^[ \t]*[Vv]=[^;]*,", "its tags are separated by commas"),
        (r"^[ \t]*[Vv]=[^ ;]+[ \t]+[^;]*=", "its tags are separated by spaces"),
        (r"^[ \t]*[Vv]:", "it has a colon instead of the equals sign"),
        (r"^[ \t]*V[ \t]*=", "its tags are in capital letters"),
    )
)


def without_look_alikes(text: str) -> str:
    """Return a text without quotes, backslashes and invisible or look-alike characters."""
    return text.translate(_LOOK_ALIKES)


def find_tags(text: str, names: Iterable[str], ends: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the intended tags of a text, with their names in lower case.

    Whitespace, commas, colons and bars separate tags like semicolons, and a colon is read as an
    equals sign.

    :param ends: patterns of fixed length, or look-aheads, after which a tag begins without a
        separator, such as a value that cannot be longer.
    """
    pattern = _tag_pattern(tuple(names), tuple(ends))
    starts = list(pattern.finditer(text))
    stops = [*(match.start() for match in starts[1:]), len(text)]
    return [
        (match["name"].lower(), text[match.end() : stop].strip(_SEPARATORS))
        for match, stop in zip(starts, stops, strict=False)
    ]


@cache
def _tag_pattern(names: tuple[str, ...], ends: tuple[str, ...]) -> re.Pattern[str]:
    name = "|".join(sorted(names, key=len, reverse=True))
    begin = "|".join([rf"(?<![^{_SEPARATORS}])", *ends])
    return re.compile(rf"(?:{begin})(?P<name>{name})[ \t]*[=:]+", re.ASCII | re.IGNORECASE)


_ADDRESS = re.compile(r"[^\s,;:<>()=|]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*", re.ASCII)
_MAILTO = re.compile(
    r"(?<![\w.+-])mailto[ \t]*[:=;]?[ \t]*(?:mailto:)?(?://)?(?=[^\s@])", re.ASCII | re.IGNORECASE
)
_MAILTO_URI = re.compile(rf"mailto:{_ADDRESS.pattern}(?:[!?]\S*)?", re.ASCII | re.IGNORECASE)
_WEB_URI = re.compile(r"https?://\S+", re.ASCII | re.IGNORECASE)
_OTHER_DOMAIN = re.compile(r"(?<=@)[\w.-]*[^\W\x00-\x7f][\w.-]*")
_GLUED_URIS = re.compile(r"(?<=\w)(?=ru[af]=mailto:)", re.ASCII | re.IGNORECASE)


def clean_uris(text: str) -> str:
    """Return a text without look-alikes and angle brackets, with domains in A-labels.

    ``mailto:`` is placed directly before its address.
    """
    plain = re.sub("[<>]", "", without_look_alikes(text))
    plain = _OTHER_DOMAIN.sub(lambda found: read_mail_domain(found[0]) or found[0], plain)
    return _GLUED_URIS.sub(";", _MAILTO.sub("mailto:", plain))


def read_report_uris(written: str) -> list[str]:
    """Return the URIs in a text from `clean_uris`; a bare address becomes a mailto URI."""
    pieces = (piece.strip("<>()") for piece in re.split(r"[,;|\s]+", written))
    return list(dict.fromkeys(filter(None, map(_read_uri, pieces))))


def _read_uri(piece: str) -> str:
    if _MAILTO_URI.fullmatch(piece) or _WEB_URI.fullmatch(piece):
        return piece
    return f"mailto:{piece}" if _ADDRESS.fullmatch(piece.partition("!")[0]) else ""


def lost_addresses(texts: Iterable[str], record: str) -> set[str]:
    """Return the mail addresses in the texts that are not in the record."""
    found = set().union(*(_addresses_in(text) for text in texts))
    return found - _addresses_in(record)


def _addresses_in(text: str) -> set[str]:
    return {found.lower() for found in _ADDRESS.findall(clean_uris(text[:MAX_REPAIRED]))}


def without_addresses(text: str) -> str:
    """Return a text without its mail addresses."""
    return _ADDRESS.sub("", text)


MAX_START = 200
"""Characters of a TXT record in which a version is searched."""


def start_of(text: str) -> str:
    """Return the start of a text in lower case, without whitespace and look-alikes."""
    return "".join(without_look_alikes(text[:MAX_START]).lower().split())


def name_mistake(text: str) -> str:
    """Return why a text is not a tag list, as the end of a sentence, or an empty string."""
    for pattern, mistake in _MISTAKES:
        if pattern.search(text):
            return mistake
    return ""
