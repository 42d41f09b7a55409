"""Deletes reports of an account, with the rows that the reports count."""

from mailcheck.core.errors import ReportBusy, ReportNotFound
from mailcheck.core.identifiers import AccountId
from mailcheck.core.receiver_reports import ReportId, ReportSelection
from mailcheck.operations.batches import remove_all
from mailcheck.ports.clocks import Now
from mailcheck.store.domains.report_store import ReportStore

PIECE = 1_000
"""Maximum number of rows deleted in one transaction, so that incoming mail waits only briefly."""


class DeleteReports:
    """Deletes reports of receivers, with the mail that brought them and the rows they count."""

    def __init__(self, store: ReportStore, now: Now) -> None:
        self._store = store
        self._now = now

    async def one(self, account_id: AccountId, report_id: ReportId) -> None:
        """Delete one report.

        :raises ReportNotFound: the account has no such report.
        :raises ReportBusy: it is being read.
        """
        if not await self.matching(account_id, ReportSelection(report_id=report_id)):
            if await self._store.has_report(account_id, report_id):
                raise ReportBusy("the report is being read; delete it in a moment")
            raise ReportNotFound(f"there is no report {report_id}")

    async def matching(self, account_id: AccountId, selection: ReportSelection) -> int:
        """Delete all reports of a selection but those being read; return how many."""
        reports = 0

        async def remove(limit: int) -> int:
            nonlocal reports
            removed = await self._store.remove(account_id, selection, self._now(), limit)
            reports += removed.reports
            return removed.reports + removed.rows

        await remove_all(remove, PIECE)
        return reports
