"""The protocol for DNS resolvers."""

from typing import Protocol

from twisted.internet.defer import Deferred

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion


class Resolver(Protocol):
    """A DNS resolver that follows CNAMEs, retries, and has its own deadline.

    The suite `tests/contracts/test_resolver_contract.py` defines the promises of all
    implementations.
    """

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Resolve one question. Always fires with a value, also on failure.

        Cancelling fires ``CancelledError`` for this caller. Other callers that wait for the
        same answer still get it.

        :raises ValueError: at once, if ``question.rdtype`` is not a record type.
        """
