"""A DMARC policy record as a value (RFC 9989 4.7), its repair, and the tree walk (4.10).

The walk finds the record that holds for a domain, and the organizational domain. It replaces
the public suffix list; it asks at most eight questions, and all are known at the start.
A repaired record loses no policy and no address.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache

from msgspec import Struct

from mailcheck.checks.aliases import alias_target
from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values
from mailcheck.checks.tag_lists import TagList, has_version, parse_tag_list
from mailcheck.checks.tag_repair import (
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
"""Of RFC 7489; RFC 9989 took them away, and they change nothing any more."""

KNOWN_TAGS = ("v", "p", "sp", "np", "psd", "t", "adkim", "aspf", "rua", "ruf", "fo")

_NEAR_MISSES = ("v=dmarc", "v:dmarc", "dmarc1", "p=none", "p=quarantine", "p=reject")

# Tag -> its values (RFC 9989 4.8); p, sp and np have a meaning of their own.
VALUES = {"adkim": ("r", "s"), "aspf": ("r", "s"), "psd": ("y", "n", "u"), "t": ("y", "n")}
POLICY_TAGS = ("p", "sp", "np")
URI_TAGS = ("rua", "ruf")
FAILURE_OPTIONS = frozenset("01ds")  # of fo; 0 and 1 exclude each other
_MAX_URIS = 20  # more are not looked at; receivers must support two (RFC 7489 6.2)

# scheme ":" ...; a comma or exclamation mark must be percent-encoded
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>[!-~]+)", re.ASCII)
_SIZE_LIMIT = re.compile(r"![0-9]+[kmgt]?\Z", re.ASCII | re.IGNORECASE)
_MAILTO_HOST = re.compile(r"(?!//)[^@\s]+@(?P<host>[A-Za-z0-9._-]+)", re.ASCII)


class Policy(Enum):
    """What receivers are asked to do with mail that fails."""

    NONE = "none"
    QUARANTINE = "quarantine"
    REJECT = "reject"

    @property
    def strictness(self) -> int:
        """Order: 0 is the most lenient."""
        return list(Policy).index(self)

    @property
    def one_step_weaker(self) -> "Policy":
        """Give what ``t=y`` makes of it (RFC 9989 4.7)."""
        return list(Policy)[max(0, self.strictness - 1)]


class ReportUri(Struct, frozen=True):
    """Where reports are to be sent; ``host`` is empty when it can't be read."""

    text: str
    scheme: str
    host: str

    @property
    def is_usable(self) -> bool:
        """Tell whether receivers can send there: they must support ``mailto:`` only."""
        return self.scheme == "mailto" and bool(self.host)


class PolicyRecord(Struct, frozen=True):
    """A parsed record. ``policy`` is what ``p`` says, or nothing if it can't be read.

    ``psd`` is ``y``, ``n`` or ``u``. ``problems`` says in a few words what
    receivers ignore; ``obsolete_tags`` are those of RFC 7489.
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
    """``p`` is missing, or one of ``p``, ``sp``, ``np`` can't be read (RFC 9989 4.10.1)."""

    @property
    def requests_reports(self) -> bool:
        """Tell whether aggregate reports can be sent to at least one place."""
        return any(uri.is_usable for uri in self.rua)

    @property
    def is_usable(self) -> bool:
        """Tell whether receivers apply it at all (RFC 9989 4.10.1).

        A bad policy counts as none where ``rua`` has a valid URI of any scheme.
        """
        return not self.has_bad_policy or bool(self.rua)


def is_policy_record(text: str) -> bool:
    """Tell whether a TXT record is a DMARC record: it begins with ``v=DMARC1``."""
    return has_version(text, VERSION)


def looks_like_dmarc(text: str) -> bool:
    """Tell whether a TXT record was meant as one, though it isn't."""
    start = start_of(text)
    is_near = start.startswith(_NEAR_MISSES) or "dmarc1" in start
    return is_near and not is_policy_record(text)


def parse_policy_record(text: str) -> PolicyRecord:
    """Read a record for which `is_policy_record` holds; what can't be read has its default."""
    tags = parse_tag_list(text)
    problems = list(tags.problems)
    policies = {tag: _read_policy(tags, tag, problems) for tag in POLICY_TAGS}
    values = {tag: _read_value(tags, tag, problems) for tag in VALUES}
    _check_failure_options(tags, problems)
    known = (*KNOWN_TAGS, *OBSOLETE_TAGS)
    unknown = [f'"{tag[:40]}" is not a tag of DMARC' for tag in tags.tags if tag not in known]
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
        problems.append(f'"{tag}={text[:40]}" is none of none, quarantine, reject')
        return None


def _read_value(tags: TagList, tag: str, problems: list[str]) -> str:
    text = (tags.get(tag) or "").lower()
    if text and text not in VALUES[tag]:
        problems.append(f'"{tag}={text[:40]}" is none of {", ".join(VALUES[tag])}')
    return text if text in VALUES[tag] else ""


def _check_failure_options(tags: TagList, problems: list[str]) -> None:
    """Note options of failure reports that nobody can follow; without ``ruf`` none is read."""
    text = tags.get("fo")
    if text is None or tags.get("ruf") is None:
        return
    options = [one.strip().lower() for one in text.split(":")]
    distinct = frozenset(options)
    if len(distinct) < len(options) or not distinct <= FAILURE_OPTIONS or {"0", "1"} <= distinct:
        problems.append(f'"fo={text[:40]}" is no list like 1:d:s (0 or 1, d, s)')


def _read_uris(tags: TagList, tag: str, problems: list[str]) -> tuple[ReportUri, ...]:
    text = tags.get(tag)
    if text is None:
        return ()
    uris = []
    for part in text.split(",", _MAX_URIS)[:_MAX_URIS]:
        uri = _read_uri(part.strip())
        if uri is None or not uri.is_usable:
            problems.append(f'"{part.strip()[:60]}" in {tag} is no address like mailto:x@y.example')
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


MAX_LABELS = 7  # of the names asked after the first, RFC 9989 4.10 step 5

PREFIX = "_dmarc."


class WalkStep(Struct, frozen=True):
    """One name of the walk; ``record`` is there when exactly one was published.

    ``texts`` are all DMARC records found there: several are as good as none. ``alias_of`` is the
    name that a CNAME there leads to, and empty without one.
    """

    domain: str
    presence: Presence
    record: PolicyRecord | None = None
    texts: tuple[str, ...] = ()
    alias_of: str = ""


class TreeWalk(Struct, frozen=True):
    """The steps from the start up to where the walk ended."""

    start: str
    steps: tuple[WalkStep, ...]

    @property
    def unanswered_names(self) -> tuple[str, ...]:
        """Give the names about which no answer came."""
        return tuple(
            PREFIX + step.domain for step in self.steps if step.presence is Presence.UNDETERMINED
        )

    @property
    def organizational_domain(self) -> str | None:
        """Give the organizational domain (RFC 9989 4.10.2); nothing when it is undetermined."""
        if self.unanswered_names:
            return None
        found = [step for step in self.steps if step.record is not None]
        for step in found:
            psd = step.record.psd if step.record is not None else "u"
            if psd == "n":
                return step.domain
            if psd == "y":
                # One label below, on the way down to the start; the start itself where it is that.
                labels = step.domain.count(".") + 2
                return ".".join(self.start.split(".")[-labels:])
        return found[-1].domain if found else self.start

    def step_at(self, domain: str) -> WalkStep | None:
        """Give the step of this name."""
        return next((step for step in self.steps if step.domain == domain), None)


def names_to_walk(domain: str) -> tuple[str, ...]:
    """Give the names that the walk asks about, from the domain itself to the top."""
    labels = domain.split(".")
    rest = labels[-MAX_LABELS:] if len(labels) > MAX_LABELS else labels[1:]
    return (domain, *(".".join(rest[number:]) for number in range(len(rest))))


def walk_tree(domain: str, answers: Answers) -> TreeWalk:
    """Walk from ``domain`` to the top, asking for everything at once."""
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
                merged[name] = _join(merged.get(name, "").split(","), [one.text for one in uris])
    return merged


def _join(some: Iterable[str], more: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(filter(None, (*some, *more))))


def _policies_in(text: str) -> set[str]:
    return {word.lower() for word in _POLICY_WORDS.findall(without_addresses(text))}


def _read_intended_value(name: str, written: str) -> str:
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
