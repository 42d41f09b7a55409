"""DNS answers as they would be with proposed records, for verifying advice and for previews."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
from dns.rdata import Rdata
from dns.rdtypes.ANY.TXT import TXT

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion, DnsStatus, host_name
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.spf_texts import is_sender_id, is_spf_record, looks_like_spf
from mailcheck.checks.tags.tag_repair import start_of

MAX_STRING = 255
"""Maximum number of octets of one string of a TXT record (RFC 1035 3.3)."""

ProposedZone = Mapping[str, Mapping[str, tuple[Rdata, ...]]]
"""Owner name in lower case without the final dot -> type -> records."""


_KINDS = tuple(
    (kind, re.compile(pattern, re.ASCII))
    for kind, pattern in (
        ("dmarc", r"v[=:]?dmarc|dmarc1|p=(?:none|quarantine|reject)"),
        ("dkim", r"v[=:]?dkim|k=|p=mi|mii"),
        ("mta-sts", r"v[=:]?(?:mta-?)?sts|stsv1"),
        ("bimi", r"v[=:]?bimi|bimi1|l=https?:"),
        ("tls-rpt", r"v[=:]?tls-?rpt|tlsrptv1"),
    )
)


class BadRecord(ValueError):
    """A record that cannot be published; the message says why."""


def build_zone(records: Iterable[RecordToPublish]) -> ProposedZone:
    """Group records by name and type.

    :raises BadRecord: a value is invalid, or another record exists beside a CNAME.
    """
    zone: dict[str, dict[str, tuple[Rdata, ...]]] = {}
    for record in records:
        node = zone.setdefault(record.name.rstrip(".").lower(), {})
        rdata = parse_rdata(record.rdtype, record.value)
        others = node.get(record.rdtype, ())
        node[record.rdtype] = others if rdata in others else (*others, rdata)
    for name, node in zone.items():
        if "CNAME" in node and (len(node) > 1 or len(node["CNAME"]) > 1):
            raise BadRecord(
                f"no other record can exist beside the CNAME at {name} (RFC 1034 3.6.2)"
            )
    return zone


def parse_rdata(rdtype: str, value: str) -> Rdata:
    """Parse a record's value as entered in a zone editor; TXT with or without quotes.

    :raises BadRecord: the value is invalid; the message says why.
    """
    text = _quote(value) if rdtype == "TXT" and not value.lstrip().startswith('"') else value
    try:
        return dns.rdata.from_text(
            dns.rdataclass.IN,
            dns.rdatatype.from_text(rdtype),
            text,
            origin=dns.name.root,
            relativize=False,
        )
    except (dns.exception.DNSException, ValueError, UnicodeError) as error:
        raise BadRecord(f"is not a valid value for {rdtype}: {error}") from None


def format_rdata(record: Rdata) -> str:
    """Format a record's value as entered in a zone editor; TXT without quotes."""
    if isinstance(record, TXT):
        return b"".join(record.strings).decode("utf-8", "replace")
    return record.to_text()


def _quote(text: str) -> str:
    """Format text as the strings of a TXT record, split at the maximum length of a string."""
    octets = text.encode("utf-8", "surrogateescape")
    pieces = range(0, max(len(octets), 1), MAX_STRING)
    return " ".join(f'"{_escape(octets[cut : cut + MAX_STRING])}"' for cut in pieces)


def _escape(octets: bytes) -> str:
    return "".join(
        chr(octet) if 0x20 <= octet < 0x7F and octet not in b'"\\' else f"\\{octet:03d}"
        for octet in octets
    )


TTL = 300
"""TTL of a proposed record in seconds; these answers are not cached."""

MAX_CHAIN = 16
"""Maximum number of CNAMEs that are followed, as in real lookups."""

NO_ZONE: ProposedZone = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Change:
    """A record to publish, and the values of its name and type that it replaces.

    Values are as `format_rdata` returns them, in lower case. TXT records with the same purpose
    are replaced too, whatever their value. ``rrset_key`` is the name and type; ``existing_names``
    are the name and its ancestors, which exist once the record is published.
    """

    record: RecordToPublish
    replaced: tuple[str, ...] = ()
    rrset_key: tuple[str, str] = field(init=False, compare=False)
    existing_names: frozenset[str] = field(init=False, compare=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return self._hash  # computed once: cached verdicts hash each change

    def __post_init__(self) -> None:
        name = self.record.name.lower()
        labels = name.split(".")
        above = frozenset(".".join(labels[start:]) for start in range(len(labels)))
        object.__setattr__(self, "rrset_key", (name, self.record.rdtype))
        object.__setattr__(self, "existing_names", above)
        object.__setattr__(self, "_hash", hash((self.record, self.replaced)))

    def apply(self, published: tuple[Rdata, ...]) -> tuple[Rdata, ...]:
        """Return the records of the name and type after the change."""
        new = _rdata(self.record.rdtype, self.record.value)
        kept = tuple(record for record in published if not self.replaces(record))
        if not kept:
            return (new,)
        written = format_rdata(new)
        return kept if any(format_rdata(record) == written for record in kept) else (*kept, new)

    def replaces(self, published: Rdata) -> bool:
        """Return whether the change replaces a published record."""
        rdtype = self.record.rdtype
        if rdtype == "PTR":
            return True
        if rdtype == "TXT" and isinstance(published, TXT):
            text = b"".join(published.strings).decode("utf-8", "replace")
            own = _purpose(self.record.name, self.record.value)
            return _purpose(self.record.name, text) == own
        return bool(self.replaced) and format_rdata(published).lower() in self.replaced


@lru_cache(maxsize=256)
def _rdata(rdtype: str, value: str) -> Rdata:
    return parse_rdata(rdtype, value)


def _purpose(name: str, text: str) -> str:
    """Return the purpose of a TXT record; all records at an underscore name have the same."""
    if name.startswith("_") or "._domainkey." in name or "._bimi." in name:
        return "its name's"
    if is_spf_record(text) or (looks_like_spf(text) and not is_sender_id(text)):
        return "spf"
    # A DMARC, DKIM, MTA-STS, TLS-RPT or BIMI record that is the target of a CNAME.
    start = start_of(text)
    found = next((kind for kind, pattern in _KINDS if pattern.match(start)), None)
    return found or start[:40]


VisibleChanges = frozenset[Change]
NO_CHANGES: VisibleChanges = frozenset()
"""No change is visible."""


class Overlay(Answers):
    """The answers as they would be after some changes.

    The answers below the overlay are used where no change applies, and missing ones are queried.
    A proposed ``zone`` lies below the changes. Its records of a name and type replace all
    published ones of that name and type, and a CNAME replaces all records at its name (RFC 1034
    3.6.2). This also applies within a chain of CNAMEs. An overlay over another overlay has the
    zone of that one.

    Two kinds of names do not change: a name that is an alias has no other records, and a name
    whose answer is undetermined stays undetermined.
    """

    def __init__(
        self, below: Answers, changes: Iterable[Change] = (), zone: ProposedZone = NO_ZONE
    ) -> None:
        super().__init__(below.known, below.missing, below.given_up)
        self.changes = tuple(changes)
        self.zone: ProposedZone = below.zone if isinstance(below, Overlay) else zone
        self._by_key = {change.rrset_key: change for change in self.changes}
        self._existing = frozenset().union(*(change.existing_names for change in self.changes))

    def lookup(self, name: str, rdtype: str) -> DnsAnswer | None:
        """Return the answer after the changes, or `None` if a published answer is missing."""
        question = DnsQuestion(name.rstrip(".").lower(), rdtype)
        known = None if self.zone else self.known.get(question)
        if known is not None and final_name_of(known) not in self._existing:
            return known  # the most common case: no change at this name or below it
        try:
            answer = self._walk(question) if self.zone else self._published(question)
        except _MissingAnswer:
            return None
        except _UndeterminedAlias as failure:
            return DnsAnswer(question, failure.status, canonical_name=question.name)
        return self._change(answer)

    def visible_changes(
        self, keys: frozenset[tuple[str, str]], absent: frozenset[str]
    ) -> VisibleChanges:
        """Return the changes of these RRsets, and those that create one of the absent names."""
        if keys.isdisjoint(self._by_key) and absent.isdisjoint(self._existing):
            return NO_CHANGES
        return frozenset(
            change
            for change in self.changes
            if change.rrset_key in keys or not absent.isdisjoint(change.existing_names)
        )

    def _change(self, answer: DnsAnswer) -> DnsAnswer:
        name = final_name_of(answer)
        change = self._by_key.get((name, answer.question.rdtype))
        if change is not None and answer.status.is_determined:
            return answer._replace(status=DnsStatus.FOUND, records=change.apply(answer.records))
        # A name exists if it, or a name below it, has a record (RFC 8020).
        if answer.status is DnsStatus.NXDOMAIN and name in self._existing:
            return answer._replace(status=DnsStatus.NODATA)
        return answer

    def _published(self, question: DnsQuestion) -> DnsAnswer:
        """Return the published answer.

        :raises _MissingAnswer: the question has not been sent yet.
        """
        published = self.known.get(question)
        if published is not None:
            return published
        if question in self.given_up:
            return DnsAnswer(question, DnsStatus.TIMEOUT)
        self.missing[question] = None
        raise _MissingAnswer

    def _walk(self, question: DnsQuestion) -> DnsAnswer:
        """Return the answer from the proposed zone or the published records."""
        name = question.name
        for _ in range(MAX_CHAIN + 1):
            node = self.zone.get(name, {})
            if question.rdtype in node:
                return DnsAnswer(question, DnsStatus.FOUND, node[question.rdtype], name, TTL)
            if "CNAME" in node:
                name = _target(node["CNAME"])
                continue
            published = self._published(DnsQuestion(name, question.rdtype))
            following = self._find_proposed(name, published)
            if following is None:
                return self._conclude(question, published, name)
            name = following
        return DnsAnswer(question, DnsStatus.SERVFAIL, canonical_name=question.name)

    def _find_proposed(self, name: str, published: DnsAnswer) -> str | None:
        """Return the first target of the published CNAMEs that has a proposed record, or `None`."""
        rdtype, end = published.question.rdtype, published.canonical_name or name
        proposed = {owner for owner, node in self.zone.items() if rdtype in node or "CNAME" in node}
        if proposed <= {end}:
            # No proposed record can be within the chain, so its names need not be looked up.
            return min(proposed, default=None)
        if end == name and published.status is not DnsStatus.SERVFAIL:
            return None
        for _ in range(MAX_CHAIN):
            target = self._follow(name)
            if target is None or target in proposed:
                return target
            if target == end:
                return None
            name = target
        return None

    def _follow(self, name: str) -> str | None:
        """Return the target of a published CNAME, or `None` without one."""
        answer = self._published(DnsQuestion(name, "CNAME"))
        if not answer.status.is_determined:
            raise _UndeterminedAlias(answer.status)
        return _target(answer.records) if answer.records else None

    def _conclude(self, question: DnsQuestion, published: DnsAnswer, name: str) -> DnsAnswer:
        end, status = published.canonical_name or name, published.status
        if status is DnsStatus.NXDOMAIN and self._is_proposed(end):
            status = DnsStatus.NODATA
        return published._replace(question=question, status=status, canonical_name=end)

    def _is_proposed(self, name: str) -> bool:
        """Return whether the name, or a name below it, has a proposed record (RFC 8020)."""
        return any(owner == name or owner.endswith(f".{name}") for owner in self.zone)


class _MissingAnswer(Exception):
    """A question must be sent before an answer is possible."""


class _UndeterminedAlias(Exception):
    """A CNAME of a chain could not be determined, so its target is undetermined too."""

    def __init__(self, status: DnsStatus) -> None:
        super().__init__(status.value)
        self.status = status


def _target(records: tuple[Rdata, ...]) -> str:
    return host_name(records[0].target)  # type: ignore[attr-defined]


def final_name_of(answer: DnsAnswer) -> str:
    """Return the name of the records in an answer, after following CNAMEs."""
    return answer.canonical_name or answer.question.name
