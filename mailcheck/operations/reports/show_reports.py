"""Results of the reports about an account's domains, and deleting reports."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.receiver_reports.aggregate import has_passed
from mailcheck.checks.receiver_reports.complaints import FeedbackSums, PackedFeedback
from mailcheck.checks.receiver_reports.overview import OverviewRequest, pack_counts
from mailcheck.checks.receiver_reports.tls import TlsSessions
from mailcheck.core.domains.receiver_reports import (
    FEEDBACK,
    LARGEST_REPORT_PAGE,
    NOWHERE,
    ReportId,
    ReportKind,
    ReportPlaces,
    ReportSelection,
)
from mailcheck.core.errors import MessageNotFound, ReportBusy, ReportNotFound
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.operations.concurrency import delete_in_batches
from mailcheck.operations.reports.decide_senders import DecideSenders
from mailcheck.operations.reports.receive_reports import ReportAddresses
from mailcheck.operations.reports.summarize_senders import (
    ShownOverview,
    SummarizeSenders,
    pack_sums,
)
from mailcheck.ports.clocks import Now
from mailcheck.store.domains.report_quotas import Tally
from mailcheck.store.domains.report_store import FeedbackPage, ReportPage, ReportStore
from mailcheck.store.domains.report_sums import (
    ReportedDomain,
    ReportSource,
    SumOfDays,
    SumOfRows,
    TlsSource,
)
from mailcheck.store.mail_store import MailStore

MOST_ROWS = 20_000
"""Maximum number of different rows in one overview, the most frequent first."""

MOST_COUNTS = 50_000
"""Maximum number of rows by days in one overview, the most frequent first."""

MOST_FEEDBACK = 5_000
"""Maximum number of different rows of failure reports, and of complaints, in one overview."""


def width_of_days(days: int) -> int:
    """Return the number of days that are counted together in a period, so that it has few parts."""
    return 1 if days <= 31 else 7 if days <= 100 else 28


class TlsSum(Struct, frozen=True):
    """Sessions with the same result, and the ``reporters`` that reported them."""

    sessions: TlsSessions
    amount: int
    reporters: tuple[str, ...]
    last_day: Instant


class TlsOverview(Struct, frozen=True):
    """Results of TLS reports about a domain: failures first, then the most frequent.

    ``results`` are a page of ``total``; the sums cover all pages, and ``sources`` are the sums
    of each reporter.
    """

    domain: str
    days: int
    successful: int
    failed: int
    results: tuple[TlsSum, ...]
    total: int
    sources: tuple[TlsSource, ...]


class FeedbackOverview(Struct, frozen=True):
    """Reports about single mails of a domain: the sums of the counted ones, and a page of all."""

    domain: str
    days: int
    sums: FeedbackSums
    page: FeedbackPage


class ShowReports(Struct, frozen=True, eq=False):
    """Reads the counted results."""

    store: ReportStore
    inboxes: MailStore
    senders: SummarizeSenders
    places: ReportAddresses
    decisions: DecideSenders
    now: Now

    async def addresses(self, account_id: AccountId) -> ReportPlaces:
        """Return the report addresses of an account.

        :raises MessageNotFound: the account has no inbox.
        """
        inbox = await self.inboxes.find_account_inbox(account_id)
        if inbox is None:
            raise MessageNotFound("the account has no inbox")
        return self.places.places(inbox.mailbox_name)

    async def to_offer(self, account_id: AccountId) -> ReportPlaces:
        """Return the report addresses for advice; none if no mail from outside is received."""
        if not self.places.is_offered:
            return NOWHERE
        inbox = await self.inboxes.find_account_inbox(account_id)
        return NOWHERE if inbox is None else self.places.places(inbox.mailbox_name)

    async def domains(self, account_id: AccountId) -> Sequence[ReportedDomain]:
        """List the domains with counted reports, those with most messages first."""
        return await self.store.domains(account_id)

    async def sources(self, account_id: AccountId) -> Sequence[ReportSource]:
        """List the reporters of counted reports, those with most messages first."""
        return await self.store.sources(account_id)

    async def refused(self, account_id: AccountId) -> Sequence[Tally]:
        """List tallies of reports over a quota or about foreign domains, newest days first."""
        return await self.store.refused(account_id, LARGEST_REPORT_PAGE)

    async def reports(
        self, account_id: AccountId, limit: int, page: int, kind: ReportKind | None = None
    ) -> ReportPage:
        """List all reports, newest first, including those that were not counted.

        :param kind: list only reports of this kind.
        """
        return await self.store.of_account(account_id, limit, (page - 1) * limit, kind)

    async def dmarc(
        self,
        account_id: AccountId,
        domain: str,
        days: int,
        limit: int = LARGEST_REPORT_PAGE,
        page: int = 1,
    ) -> ShownOverview:
        """Return a page of the senders that used a domain in the last days."""
        since, width = self.since(days), DAY * width_of_days(days)
        found, counts = await self.store.sums_in_spans(
            account_id, domain, since, width, (MOST_ROWS, MOST_COUNTS)
        )
        # Passing rows are the last ones.
        is_silent = bool(found) and len(found) < MOST_ROWS and not has_passed(found[-1].result)
        request = OverviewRequest(
            domain,
            pack_sums(found),
            policy=await self.store.policy(account_id, domain),
            decisions=await self.decisions.of_domain(account_id, domain),
            span=((page - 1) * limit, page * limit),
            is_without_mail=is_silent and await self.senders.uses_no_mail(domain),
            counts=_pack_days(found, counts),
        )
        shown = await self.senders.summarize(request, account_id)
        feedback = await self._sum_feedback(account_id, domain, since)
        ways = await self.store.ways(account_id, domain, since)
        earlier = await self.store.earlier_days(account_id, domain)
        return replace(shown, feedback=feedback, ways=ways, earlier=tuple(earlier))

    async def feedback(
        self,
        account_id: AccountId,
        domain: str,
        days: int,
        limit: int = LARGEST_REPORT_PAGE,
        page: int = 1,
        sums: FeedbackSums | None = None,
    ) -> FeedbackOverview:
        """Return the reports of the last days about single mails of a domain.

        :param sums: the numbers, if the caller has them already.
        """
        since = self.since(days)
        if sums is None:
            sums = await self._sum_feedback(account_id, domain, since)
        found = await self.store.feedback(account_id, domain, since, limit, (page - 1) * limit)
        return FeedbackOverview(domain, days, sums, found)

    async def _sum_feedback(
        self, account_id: AccountId, domain: str, since: Instant
    ) -> FeedbackSums:
        rows: list[PackedFeedback] = []
        for kind in FEEDBACK:
            found = await self.store.sums(account_id, kind, domain, since, MOST_FEEDBACK)
            rows += [
                (total.result, total.amount, total.reporter, total.last_day) for total in found
            ]
        return await self.senders.sum_feedback(rows, account_id)

    async def tls(
        self,
        account_id: AccountId,
        domain: str,
        days: int,
        limit: int = LARGEST_REPORT_PAGE,
        page: int = 1,
    ) -> TlsOverview:
        """Return the TLS results of the last days for mail to a domain."""
        found = await self.store.tls_page(
            account_id, domain, self.since(days), limit, (page - 1) * limit
        )
        decode = msgspec.json.Decoder(TlsSessions).decode
        return TlsOverview(
            domain,
            days,
            found.successful,
            found.failed,
            tuple(
                TlsSum(decode(row.result), row.amount, row.reporters, row.last_day)
                for row in found.rows
            ),
            total=found.total,
            sources=found.sources,
        )

    def since(self, days: int) -> Instant:
        """Return the first day of the last days, which is counted with today."""
        now = self.now()
        return Instant(now - now % DAY - days * DAY)


def _pack_days(found: Sequence[SumOfRows], counts: Sequence[SumOfDays]) -> bytes:
    """Return the messages of each row by days, packed for another process."""
    index = {row.result: number for number, row in enumerate(found)}
    return pack_counts(
        [
            (index[count.result], count.first_day, count.amount)
            for count in counts
            if count.result in index
        ]
    )


PIECE = 1_000
"""Maximum number of rows deleted in one transaction, so that incoming mail waits only briefly."""


class DeleteReports(Struct, frozen=True, eq=False):
    """Deletes reports of receivers, with the mail that brought them and the rows they count."""

    store: ReportStore
    now: Now

    async def one(self, account_id: AccountId, report_id: ReportId) -> None:
        """Delete one report.

        :raises ReportNotFound: the account has no such report.
        :raises ReportBusy: it is being read.
        """
        if not await self.matching(account_id, ReportSelection(report_id=report_id)):
            if await self.store.has_report(account_id, report_id):
                raise ReportBusy("the report is being read; delete it in a moment")
            raise ReportNotFound(f"there is no report {report_id}")

    async def matching(self, account_id: AccountId, selection: ReportSelection) -> int:
        """Delete all reports of a selection but those being read; return how many."""
        reports = 0

        async def remove(limit: int) -> int:
            nonlocal reports
            removed = await self.store.remove(account_id, selection, self.now(), limit)
            reports += removed.reports
            return removed.reports + removed.rows

        await delete_in_batches(remove, PIECE)
        return reports
