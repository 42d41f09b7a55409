"""Import reports that an account already has: files of a member, and mails of its mailboxes."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from enum import Enum
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.receiver_reports.importing import (
    PIECE_FILES,
    ImportFacts,
    ImportPiece,
    ReadReport,
    ReportFile,
    close_import,
    open_import,
    read_piece,
)
from mailcheck.core.domains.receiver_reports import ReceiverReport, ReportId, ReportWay
from mailcheck.core.errors import WorkerDied
from mailcheck.core.identifiers import AccountId, new_time_ordered_id
from mailcheck.operations.semaphores import FairSemaphore
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.workers import Worker
from mailcheck.store.domains.report_quotas import MAX_IMPORTED_ROWS
from mailcheck.store.domains.report_store import ImportedReport, ReportStore

MAX_IMPORTS = 2
"""Maximum number of imports of all accounts at a time. Others wait for their turn."""

TURN = 300.0
"""Seconds that an import waits for its turn. A large part of one takes minutes on a slow machine,
and the command waits for ten."""

MAX_DEATHS = 5
"""Maximum number of times that the child process may end during one import."""

UNREADABLE = "reading it takes too long, or too much memory"

NO_ROOM = f"the account has {MAX_IMPORTED_ROWS} rows of imported reports: delete old reports"

Result = TypeVar("Result")


class ImportOutcome(Enum):
    """What became of a report in an import. The values are part of the API."""

    NEW = "new"
    """It is counted now."""
    KNOWN = "known"
    """It was counted before, so nothing has changed."""
    REJECTED = "rejected"
    """It cannot be counted; the reason says why."""


class ImportedFile(Struct, frozen=True):
    """The outcome of a report in a file, or of a file without a report.

    ``reason`` is empty unless it is rejected. ``report`` is the report, new or known.
    """

    name: str
    outcome: ImportOutcome
    reason: str = ""
    report: ReceiverReport | None = None


class ImportReports:
    """Imports the reports in files.

    The files are read in a child process, a few at a time. Each report is counted with all of its
    rows in one transaction, so an import that is interrupted can be repeated.

    :param worker: the child process, which has a bounded memory.
    :param keeps_mail: whether personal data of the mails in reports about one mail is stored.
    """

    def __init__(
        self,
        store: ReportStore,
        worker: Worker,
        clocks: ClockAndRandomness,
        *,
        keeps_mail: bool,
    ) -> None:
        self._store = store
        self._worker = worker
        self._keeps_mail = keeps_mail
        self._now = clocks.now
        self._random_bytes = clocks.random_bytes
        self._turns: FairSemaphore[AccountId] = FairSemaphore(
            clocks.clock, per_owner=1, limit=MAX_IMPORTS, max_waiting=100
        )

    async def import_reports(
        self, account_id: AccountId, files: Sequence[ReportFile], way: ReportWay
    ) -> list[ImportedFile]:
        """Import files; return the outcome of each report, and of each file without one.

        :raises Overloaded: other imports took too long.
        :raises ReportRefused: a form has no files.
        :raises WorkerDied: the process that reads the files ended several times. The import can be
            repeated.
        """
        busy = "other imports are in progress; try again later"
        async with self._turns.held(account_id, TURN, busy):
            room = MAX_IMPORTED_ROWS - await self._store.count_imported_rows(account_id)
            facts = ImportFacts(account_id, way, self._now(), self._keeps_mail)
            found: list[ImportedFile] = []
            async with aclosing(self._read(files, facts)) as pieces:
                async for piece in pieces:
                    outcomes, rows = await self._store_piece(account_id, piece, room)
                    room -= rows
                    found += outcomes
            return found

    async def _read(
        self, files: Sequence[ReportFile], facts: ImportFacts
    ) -> AsyncGenerator[list[ReadReport], None]:
        """Yield the reports in the files.

        If the child ends, the files are read again from the first one that was not read, one at a
        time. A single file that ends the child is left out.
        """
        key = self._random_bytes(16).hex()
        done, deaths, most, is_open = 0, 0, PIECE_FILES, False
        try:
            while True:
                try:
                    if not is_open:
                        await self._run(facts, partial(open_import, key, files, facts, done))
                        is_open = True
                    piece: ImportPiece = await self._run(facts, partial(read_piece, key, most))
                except WorkerDied:
                    deaths += 1
                    if deaths > MAX_DEATHS:
                        raise
                    is_open = False
                    if most == 1:
                        yield [ReadReport(f"file {done + 1}", why=UNREADABLE)]
                        done, most = done + 1, PIECE_FILES
                    else:
                        most = 1
                    continue
                done += piece.files
                yield piece.reports
                if piece.is_last:
                    is_open = False
                    return
        finally:
            if is_open:
                await self._run(facts, partial(close_import, key))

    async def _run(self, facts: ImportFacts, call: Callable[[], Result]) -> Result:
        return await self._worker.run(call, facts.account_id)

    async def _store_piece(
        self, account_id: AccountId, found: Sequence[ReadReport], room: int
    ) -> tuple[list[ImportedFile], int]:
        """Store the reports of a piece; return the outcomes, and the number of new rows."""
        outcomes: list[ImportedFile | None] = []
        given: list[ImportedReport] = []
        for read in found:
            report = read.report
            if report is None or report.row_count > room:
                why = read.why if report is None else NO_ROOM
                outcomes.append(ImportedFile(read.name, ImportOutcome.REJECTED, why))
                continue
            room -= report.row_count
            report_id = ReportId(new_time_ordered_id(report.received_at, self._random_bytes))
            given.append(ImportedReport(replace(report, id=report_id), read.rows))
            outcomes.append(None)
        are_new = await self._store.add_imported(account_id, given) if given else []
        stored = iter(zip(given, are_new, strict=True))
        ended, rows = [], 0
        for read, outcome in zip(found, outcomes, strict=True):
            if outcome is None:
                imported, is_new = next(stored)
                state = ImportOutcome.NEW if is_new else ImportOutcome.KNOWN
                rows += imported.report.row_count if is_new else 0
                outcome = ImportedFile(read.name, state, report=imported.report)
            ended.append(outcome)
        return ended, rows
