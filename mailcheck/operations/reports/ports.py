"""What reports of receivers need of the outside."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.receiver_reports import (
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportSelection,
)
from mailcheck.operations.ports import Lease
from mailcheck.operations.ranges import LARGEST_REPORT_PAGE
from mailcheck.operations.reports.quotas import Admission, Claim, ReportDomains, Tally

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class WaitingReport(Struct, frozen=True):
    """A report that is the holder's to read: it came by ``mail``, or was posted as ``body``.

    ``attempts`` counts this one too.
    """

    id: ReportId
    account_id: AccountId
    mailbox_name: str
    kind: ReportKind
    received_at: Instant
    attempts: int
    mail: ReceivedMail | None
    body: bytes


class CountedRow(Struct, frozen=True):
    """A row to be counted: ``digest`` tells it from all others, ``result`` is its JSON."""

    account_id: AccountId
    kind: ReportKind
    domain: str
    day: Instant
    digest: str
    reporter: str
    result: str
    amount: int


class SumOfRows(Struct, frozen=True):
    """Equal rows of one reporter over some days."""

    reporter: str
    result: str
    amount: int
    first_day: Instant
    last_day: Instant


class TlsRows(Struct, frozen=True):
    """Sessions with one result, of all reporters; ``reporters`` are the largest of them."""

    result: str
    amount: int
    last_day: Instant
    reporters: tuple[str, ...]


class TlsSource(Struct, frozen=True):
    """All sessions that one reporter reported."""

    reporter: str
    successful: int
    failed: int


class TlsPage(Struct, frozen=True):
    """A page of different results; the sums and ``total`` cover all pages."""

    successful: int
    failed: int
    total: int
    rows: tuple[TlsRows, ...]
    sources: tuple[TlsSource, ...]


class ReportSource(Struct, frozen=True):
    """The counted reports of one reporter."""

    kind: ReportKind
    reporter: str
    reports: int
    messages: int
    failing: int


class ReportedDomain(Struct, frozen=True):
    """A domain that reports were counted about; ``policy`` is the one found last."""

    kind: ReportKind
    domain: str
    reports: int
    messages: int
    failing: int
    last_at: Instant
    policy: str


class ReportPage(Struct, frozen=True):
    """A page of reports, newest first; ``total`` counts all there are."""

    entries: tuple[ReceiverReport, ...]
    total: int


class Removed(Struct, frozen=True):
    """Numbers of reports and counted rows that one transaction deleted."""

    reports: int
    rows: int


class ReportStore(Protocol):
    """Keeps reports, and what they say. Any method may fail with `StoreUnavailable`."""

    def post(self, report: ReceiverReport, body: bytes) -> Deferred[None]:
        """Add a waiting report that was posted.

        :raises InboxFull: the account holds as many as it may.
        """

    def claim(
        self, lease: Lease, now: Instant, busy: Collection[AccountId] = ()
    ) -> Deferred[WaitingReport | None]:
        """Claim the report that has waited longest and that is not being read, accounts in turn.

        :param busy: accounts whose reports are left waiting.
        """

    def count(self, rows: Sequence[CountedRow]) -> Deferred[None]:
        """Count rows; those that are counted already change nothing."""

    def count_rows(
        self, account_id: AccountId, kind: ReportKind, domain: str, day: Instant
    ) -> Deferred[int]:
        """Say how many different rows a day has."""

    def domains_of(self, account_id: AccountId) -> Deferred[ReportDomains]:
        """Return the domains that an account watches, and those reports were counted about."""

    def count_all_rows(self, account_id: AccountId, limit: int) -> Deferred[int]:
        """Count the rows that an account has, up to a limit."""

    def admit(self, claim: Claim) -> Deferred[Admission]:
        """Return how much of a report may be stored, and count that against the quotas."""

    def tally(self, account_id: AccountId, tally: Tally) -> Deferred[None]:
        """Count reports that were not kept."""

    def refused(self, account_id: AccountId, limit: int) -> Deferred[list[Tally]]:
        """List the tallies of reports that were not kept, the newest days first."""

    def finish(
        self, report_id: ReportId, holder: str, found: Sequence[ReceiverReport]
    ) -> Deferred[bool]:
        """Put what was read in the place of the report that waited, of the one who holds it.

        One that is counted already becomes repeated.
        """

    def put_off(self, report_id: ReportId, holder: str, retry_at: Instant) -> Deferred[None]:
        """Let go of a report until a moment."""

    def release(self, holder: str) -> Deferred[None]:
        """Let go of all that a holder has; it counts as not begun."""

    def of_account(self, account_id: AccountId, limit: int, offset: int) -> Deferred[ReportPage]:
        """List the reports of an account, newest first."""

    def domains(
        self, account_id: AccountId, limit: int = LARGEST_REPORT_PAGE
    ) -> Deferred[list[ReportedDomain]]:
        """List the domains that reports were counted about, those with most messages first."""

    def sources(
        self, account_id: AccountId, limit: int = LARGEST_REPORT_PAGE
    ) -> Deferred[list[ReportSource]]:
        """List the reporters of counted reports, those with most messages first."""

    def policy(self, account_id: AccountId, domain: str) -> Deferred[str]:
        """Return the DMARC policy that receivers found last; empty if none was reported."""

    def tls_page(
        self, account_id: AccountId, domain: str, since: Instant, limit: int, offset: int
    ) -> Deferred[TlsPage]:
        """Sum up the TLS sessions since a day: failures first, then those with most sessions."""

    def sums(
        self, account_id: AccountId, kind: ReportKind, domain: str, since: Instant, limit: int
    ) -> Deferred[list[SumOfRows]]:
        """Sum up what was counted since a day, the largest first."""

    def has_report(self, account_id: AccountId, report_id: ReportId) -> Deferred[bool]:
        """Return whether an account has a report."""

    def remove(
        self, account_id: AccountId, selection: ReportSelection, now: Instant, limit: int
    ) -> Deferred[Removed]:
        """Delete at most ``limit`` rows and reports of a selection, rows first.

        A report that is being read stays.
        """

    def forget(self, now: Instant, limit: int) -> Deferred[int]:
        """Delete what is older than it is kept; gives how many rows that were, of each kind."""
