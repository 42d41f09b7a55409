"""What deliverability tests need of the outside; ``now`` hides tests that are to be forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mailcheck.core.deliverability_tests import (
    DeliverabilityResult,
    DeliverabilityTest,
    ListedTest,
    ReceivedMail,
    State,
    StoredReport,
)
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.operations.ports import Lease, MessageRow

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

Analyse = Callable[[ReceivedMail], Awaitable[StoredReport]]
"""Judges a mail. What could not be determined stands in the report; a failure is one of ours."""


class ListedTestPage(Struct, frozen=True):
    """A page of tests, newest first; ``total`` counts all there are."""

    entries: tuple[ListedTest, ...]
    total: int


class Claimed(Struct, frozen=True):
    """What a claim has found: ``tests`` are the holder's now, ``given_up`` went into error."""

    tests: tuple[DeliverabilityTest, ...] = ()
    given_up: tuple[DeliverabilityTestId, ...] = ()


class DeliverabilityStore(Protocol):
    """Keeps deliverability tests. Any method may fail with `StoreUnavailable`.

    A test that is pending past its ``expires_at`` is given as expired, whether
    `expire` has come to it or not.
    """

    def add(self, test: DeliverabilityTest, forget_at: Instant) -> Deferred[None]:
        """Add a pending test.

        :raises TooManyPendingTests: the account has `MAX_PENDING` of them.
        :raises TooMuchHeldMail: its tests hold `MAX_HELD_BYTES`.
        """

    def add_of_message(
        self, test: DeliverabilityTest, message_id: MessageId, forget_at: Instant
    ) -> Deferred[bool]:
        """Add a test of a stored message, in processing; false when the account has no such one.

        The mail's bytes are shared. ``received_at`` and ``delivery_id`` are the message's.

        :raises TooMuchHeldMail: the account's tests hold `MAX_HELD_BYTES`.
        """

    def find(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[DeliverabilityResult | None]:
        """Find a test of the account."""

    def find_any(
        self, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[DeliverabilityResult | None]:
        """Find a test whosever it is: for mail, and for share links, which prove their right."""

    def page(
        self, account_id: AccountId, now: Instant, limit: int, offset: int
    ) -> Deferred[ListedTestPage]:
        """List the account's tests, newest first."""

    def read_mail(self, test_id: DeliverabilityTestId) -> Deferred[ReceivedMail | None]:
        """Read the mail of a test; nothing when there is none."""

    def find_message(self, test_id: DeliverabilityTestId) -> Deferred[MessageRow | None]:
        """Give the mail of a test as a message of no inbox; nothing when there is none.

        Its recipient is the test's address without the domain; it expires when the test is
        forgotten, and its share token is the test's.
        """

    def of_domain(
        self, account_id: AccountId, domain: str, now: Instant, limit: int
    ) -> Deferred[Sequence[ListedTest]]:
        """List the account's newest completed tests of mails by an author of a domain.

        :param domain: lower case, as it stands in the mails' From.
        """

    def delete(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[bool]:
        """Delete a test for good, with its mail where nothing else needs that.

        False when the account has no such test.
        """

    def claim(self, lease: Lease, now: Instant, limit: int) -> Deferred[Claimed]:
        """Look at ``limit`` tests at most that wait to be analysed, the oldest mail first.

        Accounts take turns: one that has fewer under way and before it comes first.
        Each claim is an attempt. A test whose `MAX_ATTEMPTS` have all ended
        without a word goes into error instead.
        """

    def renew(
        self, lease: Lease, test_ids: Sequence[DeliverabilityTestId]
    ) -> Deferred[frozenset[DeliverabilityTestId]]:
        """Hold tests for longer; gives those that are still the holder's."""

    def release(self, holder: str, *, is_attempt: bool) -> Deferred[None]:
        """Let go of all that a holder has; without ``is_attempt`` it was as good as not begun."""

    def complete(
        self, test_id: DeliverabilityTestId, holder: str, report: StoredReport
    ) -> Deferred[bool]:
        """Keep the report; false when the test is not the holder's any more."""

    def fail_attempt(
        self, test_id: DeliverabilityTestId, holder: str, failure: str, retry_at: Instant | None
    ) -> Deferred[State | None]:
        """Note that an analysis has failed: error after `MAX_ATTEMPTS`, else again later.

        It is an error at once where ``retry_at`` is `None`.

        Gives the state it is in now; nothing when the test is not the holder's any more.
        """

    def recheck(
        self, account_id: AccountId, test_id: DeliverabilityTestId, now: Instant
    ) -> Deferred[State | None]:
        """Put a test that is completed or in error back into processing; others stay.

        Gives the state that it was in; nothing when the account has no such test.
        """

    def replace_share_token(
        self, account_id: AccountId, test_id: DeliverabilityTestId, token: str, now: Instant
    ) -> Deferred[bool]:
        """Give a test a new share token; false when there is no such test."""

    def expire(self, now: Instant, limit: int) -> Deferred[int]:
        """Move at most ``limit`` tests whose address has expired without a mail; gives how many."""

    def forget(self, now: Instant, limit: int) -> Deferred[int]:
        """Delete at most ``limit`` tests for good, and mails that nothing else needs."""
