"""DNS as it would be with some records published: for a look before the change is made."""

from collections.abc import Iterable

from twisted.internet.defer import Deferred, succeed

from mailcheck.checks.deliverability.proposed_zone import build_zone
from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.dns_records import host_name
from mailcheck.checks.findings import RecordToPublish
from mailcheck.operations.dns_ports import Resolver

TTL = 300
"""Seconds; nothing remembers these answers."""

MAX_CHAIN = 16
"""CNAMEs followed, as in real lookups."""


class OverridingResolver:
    """Answers from proposed records where there are any, else as the resolver behind does.

    The records of a name and type take the place of all published ones of
    that name and type; its other types stay as they are. A proposed CNAME
    takes the place of everything at its name (RFC 1034 3.6.2).

    :raises BadRecord: a record can't be read.
    """

    def __init__(self, behind: Resolver, records: Iterable[RecordToPublish]) -> None:
        self._behind = behind
        self._zone = build_zone(records)

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises."""
        answer = self._answer(question, question.name.rstrip(".").lower(), 0)
        return succeed(answer) if isinstance(answer, DnsAnswer) else answer

    def _answer(
        self, question: DnsQuestion, name: str, links: int
    ) -> DnsAnswer | Deferred[DnsAnswer]:
        if links > MAX_CHAIN:
            return DnsAnswer(question, DnsStatus.SERVFAIL, canonical_name=question.name)
        node = self._zone.get(name)
        if node is not None and question.rdtype in node:
            records = node[question.rdtype]
            return DnsAnswer(question, DnsStatus.FOUND, records, name, TTL)
        if node is not None and "CNAME" in node:
            target = host_name(node["CNAME"][0].target)  # type: ignore[attr-defined]
            return self._answer(question, target, links + 1)
        published = self._behind.lookup(DnsQuestion(name, question.rdtype))
        published.addCallback(self._continue, question, name, links)
        return published

    def _continue(
        self, answer: DnsAnswer, question: DnsQuestion, name: str, links: int
    ) -> DnsAnswer | Deferred[DnsAnswer]:
        """Go on from where the published records led: there may be a proposed one."""
        end = answer.canonical_name or name
        if end != name and end in self._zone and self._is_proposed(end, question.rdtype):
            return self._answer(question, end, links + 1)
        status = answer.status
        if status is DnsStatus.NXDOMAIN and self._exists(end):
            status = DnsStatus.NODATA
        return DnsAnswer(
            question,
            status,
            answer.records,
            end,
            answer.ttl,
            answer.is_authenticated,
        )

    def _is_proposed(self, name: str, rdtype: str) -> bool:
        return rdtype in self._zone[name] or "CNAME" in self._zone[name]

    def _exists(self, name: str) -> bool:
        """Tell whether a proposed record stands at the name or below it (RFC 8020)."""
        return any(owner == name or owner.endswith(f".{name}") for owner in self._zone)
