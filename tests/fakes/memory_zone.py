"""DNS zones in memory, written as a literal.

    zone = MemoryZone(
        {
            "example.com": {"MX": ["10 mx.example.com."], "TXT": ["v=spf1 mx -all"]},
            "mx.example.com": {"A": ["192.0.2.1"]},
            "www.example.com": {"CNAME": ["example.com."]},
            "*.wild.example": {"A": ["192.0.2.2"]},
        },
        failing={"dead.example": DnsStatus.TIMEOUT, ("example.com", "A"): DnsStatus.SERVFAIL},
        silent=["never.example"],
    )

A name with records, or with names below it (an empty non-terminal), exists: its other types are
NODATA. Every other name is NXDOMAIN. `MemoryZone.asked` contains all questions in order.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.zone
from dns.name import Name
from dns.rdata import Rdata
from twisted.internet.defer import Deferred, succeed

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.overlay import format_rdata

Records = Mapping[str, Mapping[str, Sequence[str]]]
"""Owner name -> record type -> records as in a zone file (TXT as plain text)."""

Failures = Mapping[str | tuple[str, str], DnsStatus]
"""Name, or name and record type -> the status of such questions."""

POSITIVE_TTL = 3600
NEGATIVE_TTL = 300
MAX_CHAIN = 16  # maximum CNAMEs to follow, as in `mailcheck.dns`
MAX_TXT_STRING = 255  # octets, RFC 1035 3.3


class MemoryZone:
    """A `Resolver` that answers at once.

    ``failing`` and ``silent`` may be changed during a test. A question about a ``silent`` name
    stays in ``unanswered`` until it is cancelled, so that a test can advance its clock past a
    deadline.
    """

    def __init__(
        self,
        records: Records,
        *,
        failing: Failures | None = None,
        silent: Collection[str] = (),
        is_authenticated: bool = False,
    ) -> None:
        self.asked: list[DnsQuestion] = []
        self.unanswered: list[DnsQuestion] = []
        self.failing = dict(failing or {})
        self.silent = set(silent)
        self._is_authenticated = is_authenticated
        self._nodes: dict[str, dict[str, tuple[Rdata, ...]]] = {}
        self._existing: set[str] | None = None
        for owner, by_type in records.items():
            for rdtype, texts in by_type.items():
                self.publish(owner, rdtype, *texts)

    @classmethod
    def from_text(cls, zone_text: str) -> "MemoryZone":
        """Return the zone of a zone file; without ``$ORIGIN`` all names are absolute."""
        zone = cls({})
        text = f"$TTL {POSITIVE_TTL}\n{zone_text}"
        parsed = dns.zone.from_text(text, ".", relativize=False, check_origin=False)
        for owner, rdataset in parsed.iterate_rdatasets():
            rdtype = dns.rdatatype.to_text(rdataset.rdtype)
            zone._nodes.setdefault(_normalize(owner.to_text()), {})[rdtype] = tuple(rdataset)
        return zone

    def publish(self, owner: str, rdtype: str, *texts: str) -> None:
        """Set the records of one type at one name; without records, delete them."""
        node = self._nodes.setdefault(_normalize(owner), {})
        node[rdtype] = tuple(_parse_record(rdtype, text) for text in texts)
        self._existing = None

    def published(self, owner: str, rdtype: str) -> tuple[str, ...]:
        """Return the records of one type at one name, TXT as plain text."""
        node = self._nodes.get(_normalize(owner), {})
        return tuple(map(format_rdata, node.get(rdtype, ())))

    @property
    def asked_pairs(self) -> list[tuple[str, str]]:
        """The questions as plain pairs: ``[("example.com", "MX"), ...]``."""
        return [(question.name, question.rdtype) for question in self.asked]

    def records(self) -> Iterator[tuple[Name, str, Rdata]]:
        """Yield every record with its owner and type, for a real name server."""
        for owner, node in self._nodes.items():
            for rdtype, records in node.items():
                for record in records:
                    yield dns.name.from_text(owner), rdtype, record

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Look up a question as `mailcheck.ports.resolver.Resolver` specifies."""
        try:
            _parse_type(question.rdtype)
        except dns.rdatatype.UnknownRdatatype as failure:
            raise ValueError(f"no record type: {question.rdtype}") from failure
        self.asked.append(question)
        if question.name in self.silent:
            self.unanswered.append(question)
            return Deferred(lambda _: self.unanswered.remove(question))
        return succeed(self._answer(question))

    def _answer(self, question: DnsQuestion) -> DnsAnswer:
        try:
            name = _normalize(question.name.encode("ascii"))
        except (ValueError, dns.exception.DNSException):
            return DnsAnswer(question, DnsStatus.NXDOMAIN, canonical_name=question.name)
        for _ in range(MAX_CHAIN):
            failure = self.failing.get((name, question.rdtype)) or self.failing.get(name)
            if failure is not None:
                return DnsAnswer(question, failure, canonical_name=name)
            node = self._find_node(name)
            if node is not None and question.rdtype not in node and node.get("CNAME"):
                name = _normalize(node["CNAME"][0].to_text())
                continue
            records = () if node is None else node.get(question.rdtype, ())
            status = DnsStatus.NXDOMAIN if node is None else DnsStatus.NODATA
            return DnsAnswer(
                question=question,
                status=DnsStatus.FOUND if records else status,
                records=records,
                canonical_name=name,
                ttl=POSITIVE_TTL if records else NEGATIVE_TTL,
                is_authenticated=self._is_authenticated,
            )
        return DnsAnswer(question, DnsStatus.SERVFAIL, canonical_name=question.name)

    def _find_node(self, name: str) -> Mapping[str, tuple[Rdata, ...]] | None:
        if self._existing is None:
            owners = [owner for owner, node in self._nodes.items() if any(node.values())]
            self._existing = {""}.union(*map(_enclosing, owners))
        encloser = next(one for one in _enclosing(name) if one in self._existing)
        if encloser == name:
            return self._nodes.get(name, {})
        return self._nodes.get(f"*.{encloser}".removesuffix("."))  # RFC 4592 3.3.1


# Thousands of zones have the same few names and records.
_remember = lru_cache(maxsize=4096)
_parse_type = _remember(dns.rdatatype.from_text)


@_remember
def _normalize(name: str | bytes) -> str:
    """Return a name as in questions: in lower case, without the final dot. The root is empty."""
    return dns.name.from_text(name.lower()).to_text().removesuffix(".")


@_remember
def _enclosing(name: str) -> Sequence[str]:
    """Return a name, and each name above it. The last one is the root."""
    labels = dns.name.from_text(name).labels
    ends = [Name(labels[first:]) for first in range(len(labels))]
    return tuple(end.to_text().removesuffix(".") for end in ends)


@_remember
def _parse_record(rdtype: str, text: str) -> Rdata:
    if rdtype in ("TXT", "SPF") and not text.startswith('"'):
        text = _quote(text)
    return dns.rdata.from_text("IN", rdtype, text, origin=dns.name.root, relativize=False)


def _quote(text: str) -> str:
    escaped = [
        chr(octet) if octet in range(0x20, 0x7F) and octet not in b'"\\' else f"\\{octet:03d}"
        for octet in text.encode("utf-8")
    ]
    cuts = range(0, max(len(escaped), 1), MAX_TXT_STRING)
    return " ".join('"' + "".join(escaped[cut : cut + MAX_TXT_STRING]) + '"' for cut in cuts)
