"""DNS as it would be with some records published: for a look before the change is made."""

from collections.abc import Iterable

from dns.rdata import Rdata
from twisted.internet.defer import Deferred

from mailcheck.checks.deliverability.proposed_zone import build_zone
from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.dns_records import host_name
from mailcheck.checks.findings import RecordToPublish
from mailcheck.operations.dns_ports import Resolver

TTL = 300
"""Seconds; nothing remembers these answers."""

MAX_CHAIN = 16
"""CNAMEs followed, as in real lookups."""

MAX_WALKED = 200
"""Published CNAMEs looked at one by one in all: honest mails have a handful of them, a mail
made to amplify must not have thousands."""


class OverridingResolver:
    """Answers from proposed records where there are any, else as the resolver behind does.

    The records of a name and type take the place of all published ones of
    that name and type; its other types stay as they are. A proposed CNAME
    takes the place of everything at its name (RFC 1034 3.6.2). Wherever in a
    chain of CNAMEs a proposed record stands, it is seen.

    :raises BadRecord: a record can't be read.
    """

    def __init__(self, behind: Resolver, records: Iterable[RecordToPublish]) -> None:
        self._behind = behind
        self._zone = build_zone(records)
        self._walked = 0

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises."""
        return Deferred.fromCoroutine(self._answer(question))

    async def _answer(self, question: DnsQuestion) -> DnsAnswer:
        name = question.name.rstrip(".").lower()
        for _ in range(MAX_CHAIN + 1):
            node = self._zone.get(name, {})
            if question.rdtype in node:
                return DnsAnswer(question, DnsStatus.FOUND, node[question.rdtype], name, TTL)
            if "CNAME" in node:
                name = _target(node["CNAME"])
                continue
            published = await self._behind.lookup(DnsQuestion(name, question.rdtype))
            try:
                following = await self._find_proposed(name, published)
            except _NotFoundOut as failure:
                return DnsAnswer(question, failure.status, canonical_name=name)
            if following is None:
                return self._conclude(question, published, name)
            name = following
        return DnsAnswer(question, DnsStatus.SERVFAIL, canonical_name=question.name)

    async def _find_proposed(self, name: str, published: DnsAnswer) -> str | None:
        """Give the first name that published CNAMEs lead to and a proposed record stands at."""
        rdtype, end = published.question.rdtype, published.canonical_name or name
        proposed = {
            owner for owner, node in self._zone.items() if rdtype in node or "CNAME" in node
        }
        if proposed <= {end}:
            # Nothing can stand on the way: nobody need ask where it leads along.
            return min(proposed, default=None)
        if end == name and published.status is not DnsStatus.SERVFAIL:
            return None
        for _ in range(MAX_CHAIN):
            target = await self._follow(name)
            if target is None or target in proposed:
                return target
            if target == end:
                return None
            name = target
        return None

    async def _follow(self, name: str) -> str | None:
        """Give the target of a published CNAME, nothing where there is none.

        :raises _NotFoundOut: it could not be determined.
        """
        if self._walked >= MAX_WALKED:
            raise _NotFoundOut(DnsStatus.SERVFAIL)
        self._walked += 1
        answer = await self._behind.lookup(DnsQuestion(name, "CNAME"))
        if not answer.status.is_determined:
            raise _NotFoundOut(answer.status)
        return _target(answer.records) if answer.records else None

    def _conclude(self, question: DnsQuestion, published: DnsAnswer, name: str) -> DnsAnswer:
        end, status = published.canonical_name or name, published.status
        if status is DnsStatus.NXDOMAIN and self._exists(end):
            status = DnsStatus.NODATA
        return DnsAnswer(
            question, status, published.records, end, published.ttl, published.is_authenticated
        )

    def _exists(self, name: str) -> bool:
        """Tell whether a proposed record stands at the name or below it (RFC 8020)."""
        return any(owner == name or owner.endswith(f".{name}") for owner in self._zone)


class _NotFoundOut(Exception):
    """A link of a chain could not be determined, so what it leads to is not, either."""

    def __init__(self, status: DnsStatus) -> None:
        super().__init__(status.value)
        self.status = status


def _target(records: tuple[Rdata, ...]) -> str:
    return host_name(records[0].target)  # type: ignore[attr-defined]
