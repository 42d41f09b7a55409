"""Mail to test addresses: finding the test, and announcing its mail."""

from collections.abc import Callable, Iterable

from msgspec import Struct
from twisted.internet.defer import Deferred

from mailcheck.core.addresses import Mailbox, split_subaddress
from mailcheck.core.deliverability_tests import DeliverabilityResult, State, parse_local_part
from mailcheck.core.errors import AddressUsed, RecipientUnknown
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.messages import Recipient
from mailcheck.operations.deliverability.reply_as_receiver import find_requested_reply
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Notifications
from mailcheck.store.deliverability_store import DeliverabilityStore


class ReceiveForTests(Struct, frozen=True):
    """Finds tests by their addresses.

    ``domains`` are the domains of this server. ``new_test_at`` is the URL in rejections where a
    sender can create a new test. ``when_waiting`` is called when a test is ready for analysis.
    """

    store: DeliverabilityStore
    notifications: Notifications[DeliverabilityTestId]
    when_waiting: Callable[[], None]
    domains: frozenset[str]
    new_test_at: str
    now: Now

    def find_recipient(self, mailbox: Mailbox) -> Deferred[Recipient] | None:
        """Return the test of an address, or `None` if the address is not a test address.

        The address may have the tag of a receiver. A test that already has its mail is found too.
        Whether this is the same mail again is only known when the mail is complete.

        The Deferred fails with `RecipientUnknown` if no such test exists or it has expired.
        """
        if mailbox.domain.lower().rstrip(".") not in self.domains:
            return None
        local_part, tag = split_subaddress(mailbox.local_part)
        if find_requested_reply(tag) is None:
            local_part, tag = mailbox.local_part, ""
        test_id = parse_local_part(local_part)
        if test_id is None:
            return None

        def recipient(found: DeliverabilityResult | None) -> Recipient:
            if found is None:
                problem = "no test has this address"
                raise RecipientUnknown(f"{problem}; create one at {self.new_test_at}")
            if found.test.state is State.EXPIRED:
                raise RecipientUnknown(
                    f"this test address has expired; create a new test at {self.new_test_at}"
                )
            return Recipient(str(mailbox), found.test.account_id, tag, found.test.id)

        return self.store.find_any(test_id, self.now()).addCallback(recipient)

    def announce(self, test_ids: Iterable[DeliverabilityTestId]) -> None:
        """Announce that these tests may have received their mail."""
        for test_id in test_ids:
            self.notifications.publish(test_id)
        self.when_waiting()

    def explain(self, failure: AddressUsed) -> AddressUsed:
        """Add the URL for a new test to a rejection."""
        return AddressUsed(f"{failure}; create a new test at {self.new_test_at}")
