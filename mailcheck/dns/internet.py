"""A resolver of the system may know only local names: it then denies all names of the Internet.

Docker networks, laptops behind a captive portal and machines without a network have such resolvers.
Their denials are not facts about the names.
"""

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.operations.concurrency import SingleFlight
from mailcheck.ports.resolver import Resolver

ROOT = DnsQuestion("", "NS")
"""The root zone has name servers everywhere on the Internet."""

FOUND_FOR, DENIED_FOR = 600.0, 10.0
"""Seconds for which it is known whether a resolver finds the name servers of the root zone."""


class InternetResolver:
    """A `Resolver` whose denials are undetermined while it denies the root's name servers."""

    def __init__(self, resolver: Resolver, clock: IReactorTime) -> None:
        self._resolver = resolver
        self._clock = clock
        self._is_closed = False
        self._known_until = float("-inf")
        self._looks = SingleFlight(self._look)

    @property
    def is_closed(self) -> bool:
        """Whether the last look found that the resolver denies the root's name servers."""
        return self._is_closed

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Look up a question as `mailcheck.ports.resolver.Resolver` specifies."""
        return self._resolver.lookup(question).addCallback(self._judge)

    def _judge(self, answer: DnsAnswer) -> DnsAnswer | Deferred[DnsAnswer]:
        is_denial = answer.status in (DnsStatus.NXDOMAIN, DnsStatus.NODATA)
        if not is_denial or answer.question == ROOT:
            return answer

        def mark(is_closed: bool) -> DnsAnswer:
            return answer._replace(status=DnsStatus.NO_INTERNET, ttl=0) if is_closed else answer

        return self._looks.call(ROOT).addCallback(mark)

    def _look(self, root: DnsQuestion) -> Deferred[bool]:
        """Return whether the resolver denies that the root has name servers."""
        if self._clock.seconds() < self._known_until:
            return succeed(self._is_closed)

        def note(answer: DnsAnswer) -> bool:
            # Without an answer nothing is known: some resolvers refuse this question.
            self._is_closed = answer.status in (DnsStatus.NXDOMAIN, DnsStatus.NODATA)
            lasts = DENIED_FOR if self._is_closed else FOUND_FOR
            self._known_until = self._clock.seconds() + lasts
            return self._is_closed

        return self._resolver.lookup(root).addCallback(note)
