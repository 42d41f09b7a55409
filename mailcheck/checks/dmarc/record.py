"""DMARC policy records: parser (RFC 9989 4.7), repair, and the tree walk (4.10).

The tree walk finds the record that applies to a domain, and its organizational domain. It replaces
the Public Suffix List. It needs at most eight queries, which are all known at the start.
A repaired record keeps every policy and every address.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache

from msgspec import Struct

from mailcheck.checks.aliases import alias_target
from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values
from mailcheck.checks.tags.tag_lists import TagList, has_version, parse_tag_list
from mailcheck.checks.tags.tag_repair import (
    MAX_REPAIRED,
    clean_uris,
    find_tags,
    lost_addresses,
    read_report_uris,
    start_of,
    without_addresses,
)

VERSION = "DMARC1"

OBSOLETE_TAGS = ("pct", "rf", "ri")
"""Tags of RFC 7489 that RFC 9989 removed; they have no effect any more."""

KNOWN_TAGS = ("v", "p", "sp", "np", "psd", "t", "adkim", "aspf", "rua", "ruf", "fo")

_NEAR_MISSES = ("v=dmarc", "v:dmarc", "dmarc1", "p=none", "p=quarantine", "p=reject")

# Tag -> allowed values (RFC 9989 4.8); p, sp and np are policies.
VALUES = {"adkim": ("r", "s"), "aspf": ("r", "s"), "psd": ("y", "n", "u"), "t": ("y", "n")}
POLICY_TAGS = ("p", "sp", "np")
URI_TAGS = ("rua", "ruf")
FAILURE_OPTIONS = frozenset("01ds")  # of fo; 0 and 1 exclude each other
_MAX_URIS = 20  # maximum number that is read; receivers must support two (RFC 7489 6.2)

# scheme ":" ...; a comma or exclamation mark must be percent-encoded
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>[!-~]+)", re.ASCII)
_SIZE_LIMIT = re.compile(r"![0-9]+[kmgt]?\Z", re.ASCII | re.IGNORECASE)
_MAILTO_HOST = re.compile(r"(?!//)[^@\s]+@(?P<host>[A-Za-z0-9._-]+)", re.ASCII)


class Policy(Enum):
    """A DMARC policy: the requested handling of mail that fails."""

    NONE = "none"
    QUARANTINE = "quarantine"
    REJECT = "reject"

    @property
    def strictness(self) -> int:
        """Position in the order of strictness; 0 is the most lenient."""
        return list(Policy).index(self)

    @property
    def one_step_weaker(self) -> "Policy":
        """The policy that applies with ``t=y`` (RFC 9989 4.7)."""
        return list(Policy)[max(0, self.strictness - 1)]


class ReportUri(Struct, frozen=True):
    """An address for reports; ``host`` is empty if it is invalid."""

    text: str
    scheme: str
    host: str

    @property
    def is_usable(self) -> bool:
        """Whether receivers can send reports there; only ``mailto:`` support is required."""
        return self.scheme == "mailto" and bool(self.host)


class PolicyRecord(Struct, frozen=True):
    """A parsed record.

    ``policy`` is the value of ``p``, or `None` if it is invalid. ``psd`` is ``y``, ``n`` or
    ``u``. ``problems`` describe in a few words what receivers ignore. ``obsolete_tags`` are the
    tags of RFC 7489.
    """

    text: str
    policy: Policy | None
    subdomain_policy: Policy | None
    nonexistent_policy: Policy | None
    is_testing: bool
    psd: str
    has_strict_dkim: bool
    has_strict_spf: bool
    rua: tuple[ReportUri, ...]
    ruf: tuple[ReportUri, ...]
    obsolete_tags: tuple[str, ...]
    problems: tuple[str, ...]
    has_bad_policy: bool
    """``p`` is missing, or one of ``p``, ``sp``, ``np`` is invalid (RFC 9989 4.10.1)."""

    @property
    def requests_reports(self) -> bool:
        """Whether aggregate reports can be sent to at least one address."""
        return any(uri.is_usable for uri in self.rua)

    @property
    def is_usable(self) -> bool:
        """Whether receivers apply it at all (RFC 9989 4.10.1).

        A bad policy counts as ``none`` if ``rua`` has a valid URI of any scheme.
        """
        return not self.has_bad_policy or bool(self.rua)


def is_policy_record(text: str) -> bool:
    """Return whether a TXT record is a DMARC record, which begins with ``v=DMARC1``."""
    return has_version(text, VERSION)


def looks_like_dmarc(text: str) -> bool:
    """Return whether a TXT record was intended as a DMARC record but is not one."""
    start = start_of(text)
    is_near = start.startswith(_NEAR_MISSES) or "dmarc1" in start
    return is_near and not is_policy_record(text)


def parse_policy_record(text: str) -> PolicyRecord:
    """Parse a record for which `is_policy_record` holds; invalid values get their default."""
    tags = parse_tag_list(text)
    problems = list(tags.problems)
    policies = {tag: _read_policy(tags, tag, problems) for tag in POLICY_TAGS}
    values = {tag: _read_value(tags, tag, problems) for tag in VALUES}
    _check_failure_options(tags, problems)
    known = (*KNOWN_TAGS, *OBSOLETE_TAGS)
    unknown = [f'"{tag[:40]}" is not a DMARC tag' for tag in tags.tags if tag not in known]
    return PolicyRecord(
        text=text,
        policy=policies["p"],
        subdomain_policy=policies["sp"],
        nonexistent_policy=policies["np"],
        is_testing=values["t"] == "y",
        psd=values["psd"] or "u",
        has_strict_dkim=values["adkim"] == "s",
        has_strict_spf=values["aspf"] == "s",
        rua=_read_uris(tags, "rua", problems),
        ruf=_read_uris(tags, "ruf", problems),
        obsolete_tags=tuple(tag for tag in OBSOLETE_TAGS if tag in tags.tags),
        problems=tuple(problems + unknown[:5]),
        has_bad_policy=policies["p"] is None
        or any(tag in tags.tags and policies[tag] is None for tag in POLICY_TAGS),
    )


def _read_policy(tags: TagList, tag: str, problems: list[str]) -> Policy | None:
    text = tags.get(tag)
    if text is None:
        return None
    try:
        return Policy(text.lower())
    except ValueError:
        problems.append(f'"{tag}={text[:40]}" is not none, quarantine or reject')
        return None


def _read_value(tags: TagList, tag: str, problems: list[str]) -> str:
    text = (tags.get(tag) or "").lower()
    if text and text not in VALUES[tag]:
        problems.append(f'"{tag}={text[:40]}" is not one of {", ".join(VALUES[tag])}')
    return text if text in VALUES[tag] else ""


def _check_failure_options(tags: TagList, problems: list[str]) -> None:
    """Report invalid options of failure reports; they have no effect without ``ruf``."""
    text = tags.get("fo")
    if text is None or tags.get("ruf") is None:
        return
    options = [part.strip().lower() for part in text.split(":")]
    distinct = frozenset(options)
    if len(distinct) < len(options) or not distinct <= FAILURE_OPTIONS or {"0", "1"} <= distinct:
        problems.append(f'"fo={text[:40]}" is not a list like 1:d:s (0 or 1, d, s)')


def _read_uris(tags: TagList, tag: str, problems: list[str]) -> tuple[ReportUri, ...]:
    text = tags.get(tag)
    if text is None:
        return ()
    uris = []
    for part in text.split(",", _MAX_URIS)[:_MAX_URIS]:
        uri = _read_uri(part.strip())
        if uri is None or not uri.is_usable:
            problems.append(
                f'"{part.strip()[:60]}" in {tag} is not an address like mailto:x@y.example'
            )
        if uri is not None:
            uris.append(uri)
    return tuple(uris)


def _read_uri(text: str) -> ReportUri | None:
    match = _URI.fullmatch(_SIZE_LIMIT.sub("", text))
    if match is None:
        return None
    mailbox = _MAILTO_HOST.fullmatch(match["rest"].partition("?")[0])
    host = mailbox["host"].lower().rstrip(".") if mailbox is not None else ""
    return ReportUri(text, match["scheme"].lower(), host)


MAX_LABELS = 7  # maximum number of labels queried after the first name, RFC 9989 4.10 step 5

PREFIX = "_dmarc."


class WalkStep(Struct, frozen=True):
    """One name of the walk; ``record`` is set if exactly one was published.

    ``texts`` are all DMARC records at the name; several count as none. ``alias_of`` is the target
    of a CNAME at the name, or empty.
    """

    domain: str
    presence: Presence
    record: PolicyRecord | None = None
    texts: tuple[str, ...] = ()
    alias_of: str = ""


class TreeWalk(Struct, frozen=True):
    """The steps of a tree walk from its start to its end."""

    start: str
    steps: tuple[WalkStep, ...]

    @property
    def unanswered_names(self) -> tuple[str, ...]:
        """The names without a DNS answer."""
        return tuple(
            PREFIX + step.domain for step in self.steps if step.presence is Presence.UNDETERMINED
        )

    @property
    def organizational_domain(self) -> str | None:
        """The organizational domain (RFC 9989 4.10.2), or `None` if it is undetermined."""
        if self.unanswered_names:
            return None
        found = [step for step in self.steps if step.record is not None]
        for step in found:
            psd = step.record.psd if step.record is not None else "u"
            if psd == "n":
                return step.domain
            if psd == "y":
                # One label below the public suffix domain, or the start itself.
                labels = step.domain.count(".") + 2
                return ".".join(self.start.split(".")[-labels:])
        return found[-1].domain if found else self.start

    def step_at(self, domain: str) -> WalkStep | None:
        """Return the step for a domain, or `None`."""
        return next((step for step in self.steps if step.domain == domain), None)


def names_to_walk(domain: str) -> tuple[str, ...]:
    """Return the names that the walk queries, from the domain itself to the top."""
    labels = domain.split(".")
    rest = labels[-MAX_LABELS:] if len(labels) > MAX_LABELS else labels[1:]
    return (domain, *(".".join(rest[number:]) for number in range(len(rest))))


def walk_tree(domain: str, answers: Answers) -> TreeWalk:
    """Walk from ``domain`` to the top; all names are queried at once."""
    steps = [_read_step(name, answers) for name in names_to_walk(domain)]
    ends = (n for n, step in enumerate(steps, 1) if step.record and step.record.psd in ("y", "n"))
    return TreeWalk(domain, tuple(steps[: next(ends, None)]))


def _read_step(domain: str, answers: Answers) -> WalkStep:
    answer = look_up(answers, PREFIX + domain, "TXT")
    if not answer.status.is_determined:
        return WalkStep(domain, Presence.UNDETERMINED)
    texts = tuple(text for text in txt_values(answer) if is_policy_record(text))
    target = alias_target(answer)
    if len(texts) != 1:
        return WalkStep(domain, Presence.ABSENT, None, texts, target)
    return WalkStep(domain, Presence.FOUND, parse_policy_record(texts[0]), texts, target)


_ALIASES = {"policy": "p"}
_MODES = {"strict": "s", "relaxed": "r"}

_NAMES = (*KNOWN_TAGS, *OBSOLETE_TAGS, *_ALIASES)

# A tag may follow without a separator, since the strings of a TXT record are joined without one.
_ENDS = (
    "(?<=dmarc1)",
    *(f"(?<={policy.value})" for policy in Policy),
    "(?<==[rsynu])",
    *(f"(?<=={'[0-9]' * count})" for count in range(1, 6)),
)

_POLICY_WORDS = re.compile("|".join(policy.value for policy in Policy), re.ASCII | re.IGNORECASE)

_LIKE_NONE = ("monitor", "monitoring", "no", "off")

_CLOSE = 0.8
"""Similarity from which a word counts as a misspelt policy: `quarentine`, `rejct`."""


@lru_cache(maxsize=64)
def repair_policy_record(text: str) -> str | None:
    """Return the intended record of a text, with all its addresses and policies.

    Return `None` if the text has more than one possible meaning.
    """
    if len(text) > MAX_REPAIRED:
        return None
    clean = clean_uris(text)
    meant: dict[str, str] = {"v": VERSION, "p": ""}
    for found, written in find_tags(clean, _NAMES, _ENDS):
        name = _ALIASES.get(found, found)
        value = _read_intended_value(name, written)
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
                merged[name] = _join(merged.get(name, "").split(","), [uri.text for uri in uris])
    return merged


def _join(some: Iterable[str], more: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(filter(None, (*some, *more))))


def _policies_in(text: str) -> set[str]:
    return {word.lower() for word in _POLICY_WORDS.findall(without_addresses(text))}


def _read_intended_value(name: str, written: str) -> str:
    """Return the intended value, or an empty string."""
    if name in URI_TAGS:
        return ",".join(read_report_uris(written))
    word = re.split(r"[\s,;|]", written, maxsplit=1)[0].lower()
    if name in POLICY_TAGS:
        if word in _LIKE_NONE:
            return Policy.NONE.value
        return next(iter(get_close_matches(word, [known.value for known in Policy], 1, _CLOSE)), "")
    if name == "fo":
        options = dict.fromkeys(part for part in word.split(":") if part in FAILURE_OPTIONS)
        return ":".join(options) if not {"0", "1"} <= options.keys() else ""
    value = _MODES.get(word, word)
    return value if value in VALUES.get(name, ()) else ""
