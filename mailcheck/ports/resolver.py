"""DNS."""

from typing import Protocol

from twisted.internet.defer import Deferred

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion


class Resolver(Protocol):
    """Asks DNS; follows CNAMEs, tries again, gives up at its own deadline.

    The suite `tests/contracts/test_resolver_contract.py` says what every
    implementation promises.
    """

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Ask one question; always fires with a value, whatever DNS does.

        Cancelling gives the question up and fires ``CancelledError``; others
        who wait for the same answer still get it.

        :raises ValueError: at once, when ``question.rdtype`` is no record type.
        """
