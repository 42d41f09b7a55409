"""Repairing DMARC records that receivers cannot read, without losing a policy or an address."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

from mailcheck.checks.dmarc.record import (
    FAILURE_OPTIONS,
    KNOWN_TAGS,
    OBSOLETE_TAGS,
    POLICY_TAGS,
    URI_TAGS,
    VALUES,
    VERSION,
    Policy,
    parse_policy_record,
)
from mailcheck.checks.tag_repair import (
    MAX_REPAIRED,
    clean_uris,
    find_tags,
    lost_addresses,
    read_report_uris,
    without_addresses,
)

_ALIASES = {"policy": "p"}
_MODES = {"strict": "s", "relaxed": "r"}

_NAMES = (*KNOWN_TAGS, *OBSOLETE_TAGS, *_ALIASES)

# A tag may follow without a separator: strings of a TXT record are joined without one.
_ENDS = (
    "(?<=dmarc1)",
    *(f"(?<={policy.value})" for policy in Policy),
    "(?<==[rsynu])",
    *(f"(?<=={'[0-9]' * count})" for count in range(1, 6)),
)

_POLICY_WORDS = re.compile("|".join(policy.value for policy in Policy), re.ASCII | re.IGNORECASE)

_LIKE_NONE = ("monitor", "monitoring", "no", "off")

_CLOSE = 0.8
"""Likeness from which a word is a misspelt policy: `quarentine`, `rejct`."""


@lru_cache(maxsize=64)
def repair_policy_record(text: str) -> str | None:
    """Return the record that a text means.

    Every address and every policy of the text is in it. Return None where the text can be
    meant in more than one way.
    """
    if len(text) > MAX_REPAIRED:
        return None
    clean = clean_uris(text)
    meant: dict[str, str] = {"v": VERSION, "p": ""}
    for found, written in find_tags(clean, _NAMES, _ENDS):
        name = _ALIASES.get(found, found)
        value = _read_value(name, written)
        if written and not value and name in POLICY_TAGS:
            return None
        if name == "v" or name in OBSOLETE_TAGS or not value:
            continue
        known = meant.get(name)
        if known and name in URI_TAGS:
            meant[name] = _join(known.split(","), value.split(","))
        elif known and known != value:
            return None
        else:
            meant[name] = value
    meant["p"] = meant["p"] or Policy.NONE.value
    record = "; ".join(f"{name}={value}" for name, value in meant.items())
    is_whole = _policies_in(clean) <= _policies_in(record) and not lost_addresses([clean], record)
    return record if is_whole and not parse_policy_record(record).has_bad_policy else None


def merge_uris(texts: Iterable[str]) -> dict[str, str]:
    """Return ``rua`` and ``ruf`` with the URIs of all these records."""
    merged: dict[str, str] = {}
    for text in texts:
        record = parse_policy_record(text)
        for name, uris in (("rua", record.rua), ("ruf", record.ruf)):
            if uris:
                merged[name] = _join(merged.get(name, "").split(","), [one.text for one in uris])
    return merged


def _join(some: Iterable[str], more: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(filter(None, (*some, *more))))


def _policies_in(text: str) -> set[str]:
    return {word.lower() for word in _POLICY_WORDS.findall(without_addresses(text))}


def _read_value(name: str, written: str) -> str:
    """Return the value that was meant, or an empty string."""
    if name in URI_TAGS:
        return ",".join(read_report_uris(written))
    word = re.split(r"[\s,;|]", written, maxsplit=1)[0].lower()
    if name in POLICY_TAGS:
        if word in _LIKE_NONE:
            return Policy.NONE.value
        return next(iter(get_close_matches(word, [one.value for one in Policy], 1, _CLOSE)), "")
    if name == "fo":
        options = dict.fromkeys(one for one in word.split(":") if one in FAILURE_OPTIONS)
        return ":".join(options) if not {"0", "1"} <= options.keys() else ""
    value = _MODES.get(word, word)
    return value if value in VALUES.get(name, ()) else ""
