"""Mail to the addresses of deliverability tests: which test is meant, and who hears of its mail."""

from collections.abc import Callable, Iterable

from msgspec import Struct
from twisted.internet.defer import Deferred

from mailcheck.core.addresses import Mailbox
from mailcheck.core.deliverability_tests import DeliverabilityResult, State, parse_local_part
from mailcheck.core.errors import AddressUsed, RecipientUnknown
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.messages import Recipient
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import WakeUps
from mailcheck.store.deliverability_store import DeliverabilityStore


class ReceiveForTests(Struct, frozen=True):
    """Finds tests by their addresses.

    ``domains`` are ours; ``new_test_at`` is where a sender who is turned away
    is told to make a new test; ``when_waiting`` hears that one waits to be analysed.
    """

    store: DeliverabilityStore
    wake_ups: WakeUps[DeliverabilityTestId]
    when_waiting: Callable[[], None]
    domains: frozenset[str]
    new_test_at: str
    now: Now

    def find_recipient(self, mailbox: Mailbox) -> Deferred[Recipient] | None:
        """Find the test that an address is of; nothing where it has not the form of one.

        A test that has its mail is found too: whether this is the same mail
        again is known at its end.

        The Deferred fails with `RecipientUnknown`: never made, or expired.
        """
        if mailbox.domain.lower().rstrip(".") not in self.domains:
            return None
        test_id = parse_local_part(mailbox.local_part)
        if test_id is None:
            return None

        def recipient(found: DeliverabilityResult | None) -> Recipient:
            if found is None:
                raise RecipientUnknown(f"no test has this address; make one at {self.new_test_at}")
            if found.test.state is State.EXPIRED:
                raise RecipientUnknown(
                    f"this test address has expired; make a new test at {self.new_test_at}"
                )
            return Recipient(str(mailbox), found.test.account_id, "", found.test.id)

        return self.store.find_any(test_id, self.now()).addCallback(recipient)

    def announce(self, test_ids: Iterable[DeliverabilityTestId]) -> None:
        """Tell those concerned that these tests may have got their mail."""
        for test_id in test_ids:
            self.wake_ups.publish(test_id)
        self.when_waiting()

    def explain(self, failure: AddressUsed) -> AddressUsed:
        """Add to a refusal where a new test is made."""
        return AddressUsed(f"{failure}; make a new test at {self.new_test_at}")
