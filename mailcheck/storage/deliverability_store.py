"""The store of deliverability tests. One method is one transaction."""

from collections.abc import Sequence

from twisted.internet.defer import Deferred

from mailcheck.core.deliverability_tests import (
    DeliverabilityResult,
    DeliverabilityTest,
    ReceivedMail,
    State,
    StoredReport,
)
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.operations.deliverability.ports import Claimed, Lease, ListedTestPage
from mailcheck.storage import deliverability_analysis as analysis
from mailcheck.storage import deliverability_life as life
from mailcheck.storage.deliverability_reading import read_mail, read_result, read_tests
from mailcheck.storage.engine import Engine


class SqlDeliverabilityStore:
    """Fills the port `DeliverabilityStore` on any engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, test: DeliverabilityTest, forget_at: Instant) -> Deferred[None]:
        """Add a pending test."""
        return self._engine.write(life.add, (test, forget_at))

    def add_of_message(
        self, test: DeliverabilityTest, message_id: MessageId, forget_at: Instant
    ) -> Deferred[bool]:
        """Add a test of a stored message, in processing; false when there is no such one."""
        return self._engine.write(life.add_of_message, (test, message_id, forget_at))

    def find(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[DeliverabilityResult | None]:
        """Find a test of the account."""
        condition = "id = ? AND account_id = ?"
        return self._engine.read(lambda t: read_result(t, condition, (test_id, account_id), now))

    def find_any(
        self, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[DeliverabilityResult | None]:
        """Find a test whosever it is."""
        return self._engine.read(lambda t: read_result(t, "id = ?", (test_id,), now))

    def page(
        self, account_id: AccountId, now: Instant, limit: int, offset: int
    ) -> Deferred[ListedTestPage]:
        """List the account's tests, newest first."""
        return self._engine.read(lambda t: read_tests(t, account_id, now, limit, offset))

    def read_mail(self, test_id: DeliverabilityTestId) -> Deferred[ReceivedMail | None]:
        """Read the mail of a test; nothing when there is none."""
        return self._engine.read(lambda t: read_mail(t, test_id))

    def claim(self, lease: Lease, now: Instant, limit: int) -> Deferred[Claimed]:
        """Look at ``limit`` tests at most that wait to be analysed."""
        return self._engine.write(analysis.claim, (lease, now, limit))

    def renew(
        self, lease: Lease, test_ids: Sequence[DeliverabilityTestId]
    ) -> Deferred[frozenset[DeliverabilityTestId]]:
        """Hold tests for longer; gives those that are still the holder's."""
        return self._engine.write(analysis.renew, (lease, tuple(test_ids)))

    def release(self, holder: str, *, is_attempt: bool) -> Deferred[None]:
        """Let go of all that a holder has."""
        return self._engine.write(analysis.release, (holder, is_attempt))

    def complete(
        self, test_id: DeliverabilityTestId, holder: str, report: StoredReport
    ) -> Deferred[bool]:
        """Keep the report; false when the test is not the holder's any more."""
        return self._engine.write(analysis.complete, (test_id, holder, report))

    def fail_attempt(
        self, test_id: DeliverabilityTestId, holder: str, failure: str, retry_at: Instant
    ) -> Deferred[State | None]:
        """Note that an analysis has failed."""
        return self._engine.write(analysis.fail_attempt, (test_id, holder, failure, retry_at))

    def recheck(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[State | None]:
        """Put a test that is completed or in error back into processing."""
        return self._engine.write(life.recheck, (account_id, test_id, now))

    def replace_share_token(
        self, account_id: AccountId, test_id: DeliverabilityTestId, token: str, now: Instant
    ) -> Deferred[bool]:
        """Give a test a new share token; false when there is no such test."""
        return self._engine.write(life.replace_share_token, (token, test_id, account_id, now))

    def expire(self, now: Instant, limit: int) -> Deferred[int]:
        """Move at most ``limit`` tests whose address has expired without a mail."""
        return self._engine.write(life.expire, (now, limit))

    def forget(self, now: Instant, limit: int) -> Deferred[int]:
        """Delete at most ``limit`` tests for good."""
        return self._engine.write(life.forget, (now, limit))
