"""DNS as it would be with some records published: for advice, and for a look before a change."""

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
from mailcheck.checks.tag_repair import start_of

MAX_STRING = 255
"""Octets of one string of a TXT record (RFC 1035 3.3)."""

ProposedZone = Mapping[str, Mapping[str, tuple[Rdata, ...]]]
"""Owner name in lower case without the last dot -> type -> records."""


class BadRecord(ValueError):
    """A record that can't be published; the message says why."""


def build_zone(records: Iterable[RecordToPublish]) -> ProposedZone:
    """Put records together by name and type.

    :raises BadRecord: a value can't be read, or something stands beside a CNAME.
    """
    zone: dict[str, dict[str, tuple[Rdata, ...]]] = {}
    for record in records:
        node = zone.setdefault(record.name.rstrip(".").lower(), {})
        rdata = parse_rdata(record.rdtype, record.value)
        others = node.get(record.rdtype, ())
        node[record.rdtype] = others if rdata in others else (*others, rdata)
    for name, node in zone.items():
        if "CNAME" in node and (len(node) > 1 or len(node["CNAME"]) > 1):
            raise BadRecord(f"beside a CNAME nothing else can stand at {name} (RFC 1034 3.6.2)")
    return zone


def parse_rdata(rdtype: str, value: str) -> Rdata:
    """Read a record's value as it is typed into a zone editor; TXT with quotes or without.

    :raises BadRecord: says in a few words what is wrong.
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
        raise BadRecord(f"is no value of a {rdtype} record: {error}") from None


def format_rdata(record: Rdata) -> str:
    """Write a record's value as it is typed into a zone editor, TXT without quotes."""
    if isinstance(record, TXT):
        return b"".join(record.strings).decode("utf-8", "replace")
    return record.to_text()


def _quote(text: str) -> str:
    """Write text as the strings of a TXT record, cut where a string is full."""
    octets = text.encode("utf-8", "surrogateescape")
    pieces = range(0, max(len(octets), 1), MAX_STRING)
    return " ".join(f'"{_escape(octets[cut : cut + MAX_STRING])}"' for cut in pieces)


def _escape(octets: bytes) -> str:
    return "".join(
        chr(octet) if 0x20 <= octet < 0x7F and octet not in b'"\\' else f"\\{octet:03d}"
        for octet in octets
    )


TTL = 300
"""Seconds, of a proposed record; nothing remembers these answers."""

MAX_CHAIN = 16
"""CNAMEs followed, as in real lookups."""

NO_ZONE: ProposedZone = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Change:
    """A record to publish, and the values of its name and type that it takes the place of.

    Values are as `format_rdata` writes them, in lower case; of TXT records those go that
    serve the same purpose, whatever they hold. ``rrset_key`` is
    name and type; ``existing_names`` are the name and all above it, which exist with it.
    """

    record: RecordToPublish
    replaced: tuple[str, ...] = ()
    rrset_key: tuple[str, str] = field(init=False, compare=False)
    existing_names: frozenset[str] = field(init=False, compare=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return self._hash  # asked for by every verdict that is kept

    def __post_init__(self) -> None:
        name = self.record.name.lower()
        labels = name.split(".")
        above = frozenset(".".join(labels[start:]) for start in range(len(labels)))
        object.__setattr__(self, "rrset_key", (name, self.record.rdtype))
        object.__setattr__(self, "existing_names", above)
        object.__setattr__(self, "_hash", hash((self.record, self.replaced)))

    def apply(self, published: tuple[Rdata, ...]) -> tuple[Rdata, ...]:
        """Give what stands at the place afterwards."""
        new = _rdata(self.record.rdtype, self.record.value)
        kept = tuple(one for one in published if not self.replaces(one))
        if not kept:
            return (new,)
        written = format_rdata(new)
        return kept if any(format_rdata(one) == written for one in kept) else (*kept, new)

    def replaces(self, published: Rdata) -> bool:
        """Tell whether a published record goes."""
        rdtype = self.record.rdtype
        if rdtype == "PTR":
            return True
        if rdtype == "TXT" and isinstance(published, TXT):
            text = b"".join(published.strings).decode("utf-8", "replace")
            return _purpose(self.record.name, text) == _purpose(*_name_and_value(self.record))
        return bool(self.replaced) and format_rdata(published).lower() in self.replaced


def _name_and_value(record: RecordToPublish) -> tuple[str, str]:
    return record.name, record.value


@lru_cache(maxsize=256)
def _rdata(rdtype: str, value: str) -> Rdata:
    return parse_rdata(rdtype, value)


def _purpose(name: str, text: str) -> str:
    """Say what a TXT record is for: names that begin with an underscore have one purpose."""
    if name.startswith("_") or "._domainkey." in name:
        return "its name's"
    if is_spf_record(text) or (looks_like_spf(text) and not is_sender_id(text)):
        return "spf"
    # A record of DMARC, DKIM, MTA-STS or TLS-RPT to which a CNAME leads.
    start = start_of(text)
    found = next((kind for kind, pattern in _KINDS if pattern.match(start)), None)
    return found or start[:40]


_KINDS = tuple(
    (kind, re.compile(pattern, re.ASCII))
    for kind, pattern in (
        ("dmarc", r"v[=:]?dmarc|dmarc1|p=(?:none|quarantine|reject)"),
        ("dkim", r"v[=:]?dkim|k=|p=mi|mii"),
        ("mta-sts", r"v[=:]?(?:mta-?)?sts|stsv1"),
        ("tls-rpt", r"v[=:]?tls-?rpt|tlsrptv1"),
    )
)


VisibleChanges = frozenset[Change]
NO_CHANGES: VisibleChanges = frozenset()
"""No change can be seen."""


class Overlay(Answers):
    """The answers as they would be after some changes; it asks what the answers below lack.

    A proposed ``zone`` lies below the changes. Its records of a name and type take the place of
    all published ones of that name and type; other types stay as they are, and a CNAME takes the
    place of everything at its name (RFC 1034 3.6.2). Wherever in a chain of CNAMEs such a record
    stands, it is seen. One overlay laid over another has the zone of that one.

    What a change can't touch stays as it is: a name that is an alias holds no records,
    and of a name about which no answer came nothing is known afterwards either.
    """

    def __init__(
        self, below: Answers, changes: Iterable[Change] = (), zone: ProposedZone = NO_ZONE
    ) -> None:
        super().__init__(below.known, below.missing, below.given_up)
        self.changes = tuple(changes)
        self.zone: ProposedZone = below.zone if isinstance(below, Overlay) else zone
        self._by_place = {change.rrset_key: change for change in self.changes}
        self._existing = frozenset().union(*(one.existing_names for one in self.changes))

    def lookup(self, name: str, rdtype: str) -> DnsAnswer | None:
        """Give the answer as it would be."""
        question = DnsQuestion(name.rstrip(".").lower(), rdtype)
        known = None if self.zone else self.known.get(question)
        if known is not None and final_name_of(known) not in self._existing:
            return known  # as nearly all of a trial: no change is here or below
        try:
            answer = self._walk(question) if self.zone else self._published(question)
        except _NotKnownYet:
            return None
        except _NotFoundOut as failure:
            return DnsAnswer(question, failure.status, canonical_name=question.name)
        return self._change(answer)

    def visible_changes(
        self, places: frozenset[tuple[str, str]], absent: frozenset[str]
    ) -> VisibleChanges:
        """Give the changes that can be seen: at these places, or in names that did not exist."""
        if places.isdisjoint(self._by_place) and absent.isdisjoint(self._existing):
            return NO_CHANGES
        return frozenset(
            one
            for one in self.changes
            if one.rrset_key in places or not absent.isdisjoint(one.existing_names)
        )

    def _change(self, answer: DnsAnswer) -> DnsAnswer:
        rrset_key = final_name_of(answer)
        change = self._by_place.get((rrset_key, answer.question.rdtype))
        if change is not None and answer.status.is_determined:
            return answer._replace(status=DnsStatus.FOUND, records=change.apply(answer.records))
        # Names with a record at them or below them exist (RFC 8020).
        if answer.status is DnsStatus.NXDOMAIN and rrset_key in self._existing:
            return answer._replace(status=DnsStatus.NODATA)
        return answer

    def _published(self, question: DnsQuestion) -> DnsAnswer:
        """Give what is published.

        :raises _NotKnownYet: it has to be asked.
        """
        published = self.known.get(question)
        if published is not None:
            return published
        if question in self.given_up:
            return DnsAnswer(question, DnsStatus.TIMEOUT)
        self.missing[question] = None
        raise _NotKnownYet

    def _walk(self, question: DnsQuestion) -> DnsAnswer:
        """Give what is published or in the zone."""
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
        """Give the first name that published CNAMEs lead to and a proposed record stands at."""
        rdtype, end = published.question.rdtype, published.canonical_name or name
        proposed = {owner for owner, node in self.zone.items() if rdtype in node or "CNAME" in node}
        if proposed <= {end}:
            # Nothing can stand on the way: nobody need ask where it leads along.
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
        """Give the target of a published CNAME, nothing where there is none."""
        answer = self._published(DnsQuestion(name, "CNAME"))
        if not answer.status.is_determined:
            raise _NotFoundOut(answer.status)
        return _target(answer.records) if answer.records else None

    def _conclude(self, question: DnsQuestion, published: DnsAnswer, name: str) -> DnsAnswer:
        end, status = published.canonical_name or name, published.status
        if status is DnsStatus.NXDOMAIN and self._is_proposed(end):
            status = DnsStatus.NODATA
        return published._replace(question=question, status=status, canonical_name=end)

    def _is_proposed(self, name: str) -> bool:
        """Tell whether a proposed record stands at the name or below it (RFC 8020)."""
        return any(owner == name or owner.endswith(f".{name}") for owner in self.zone)


class _NotKnownYet(Exception):
    """A question has to be asked before anything can be said."""


class _NotFoundOut(Exception):
    """A link of a chain could not be determined, so what it leads to is not, either."""

    def __init__(self, status: DnsStatus) -> None:
        super().__init__(status.value)
        self.status = status


def _target(records: tuple[Rdata, ...]) -> str:
    return host_name(records[0].target)  # type: ignore[attr-defined]


def final_name_of(answer: DnsAnswer) -> str:
    """Give the name at which the records of an answer stand, behind aliases."""
    return answer.canonical_name or answer.question.name
