"""A resolver that notes how long each answer took."""

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.operations.dns_ports import Resolver


class TimedLookups:
    """Passes questions on; a question that is given up took until then."""

    def __init__(self, resolver: Resolver, clock: IReactorTime) -> None:
        self._resolver = resolver
        self._clock = clock
        self._seconds: dict[DnsQuestion, float] = {}

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises."""
        asked_at = self._clock.seconds()

        def note(result: DnsAnswer | Failure) -> DnsAnswer | Failure:
            self._seconds[question] = self._clock.seconds() - asked_at
            return result

        answer = self._resolver.lookup(question)
        answer.addBoth(note)
        return answer

    def seconds(self, name: str) -> float:
        """Give how long the address answer for a name took; 0 when it was not asked."""
        return self._seconds.get(DnsQuestion(name, "A"), 0.0)
