"""The store of reports: add, claim for reading, count, and delete."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.receiver_reports.aggregate import has_passed
from mailcheck.checks.receiver_reports.limits import MAX_SUM
from mailcheck.checks.receiver_reports.tls import SUCCESS_PATTERN
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.domains.receiver_reports import (
    MAX_LETTERS,
    MAX_RAW,
    MAX_RAW_SIZE,
    RAW_KEPT,
    REPORTS_KEPT,
    SUMS_KEPT,
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportSelection,
    ReportState,
    day_of,
    former_row_digest,
    row_digest,
)
from mailcheck.core.errors import InboxFull
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.ports.engine import Condition, Transaction, Value
from mailcheck.ports.workers import Lease
from mailcheck.store.domains.report_quotas import (
    Admission,
    Claim,
    ReportDomains,
    Tally,
    add_tally,
    admit,
    domains_of,
    find_known,
    forget_tallies,
    identity_of,
    is_counted,
    refused,
)
from mailcheck.store.domains.report_sums import ReportSums
from mailcheck.store.leases import LeasedRows
from mailcheck.store.mail_delivery import FULL, is_full, report_row
from mailcheck.store.messages import SESSION_COLUMNS, delete_unreferenced, lock_inboxes, session_of
from mailcheck.store.transactions import (
    columns_of,
    delete_first,
    frees_space,
    inbox_write,
    insert,
    read,
    read_number,
    read_value,
    read_values,
    row_of,
    value_of,
    write,
)

_ABOUT_MAILS = "feedback IS NOT NULL AND domain = ? AND received_at >= ?"

_UNAUTHENTICATED = (
    f"SELECT COUNT(*) FROM receiver_report WHERE account_id = ? AND {_ABOUT_MAILS} "
    "AND state = 'apart'"
)

_WITHOUT_MAIL = (ReportState.COUNTED, ReportState.REPEATED)

_NO_ROOM_FOR_LETTER = (
    f"it is not a report, and its text is not stored: {MAX_LETTERS} texts are stored. Delete one"
)

_REMOVE_DAY = "DELETE FROM report_day WHERE account_id = ? AND day = ?"

_COUNT_KEY = "account_id, kind, domain, day, digest"

_IS_NOT_BEING_READ = "NOT (state = 'waiting' AND lease_holder IS NOT NULL AND lease_until > ?)"

EXPIRY_LOCK = 0x6D61_6972
"""Lock for deleting old reports, which one daemon does at a time."""

_BY_AGE = "received_at <= ? ORDER BY received_at"

# An imported report can be imported again, so it stays known as long as its sums.
_OLD_RECEIVED, _OLD_REPORTS = (
    delete_first("receiver_report", "id", which, "delivery_id")
    for which in (f"way = 'received' AND {_BY_AGE}", _BY_AGE)
)

_OLD_MAILS = """
    SELECT id, delivery_id FROM receiver_report
    WHERE delivery_id IS NOT NULL AND state <> 'waiting' AND received_at <= ?
    ORDER BY received_at LIMIT ?
"""

_OLD_LETTERS = """
    UPDATE receiver_report SET letter = NULL WHERE id IN (
        SELECT id FROM receiver_report WHERE letter IS NOT NULL AND received_at <= ?
        ORDER BY received_at LIMIT ?
    )
"""

_OLD_COUNTS = delete_first(
    "report_count", _COUNT_KEY, "day <= ?", "account_id, kind, domain, day, amount, result"
)

_ADD_DAY = """
    INSERT INTO report_day (account_id, kind, domain, day, amount, failing)
    {rows} ON CONFLICT (account_id, kind, domain, day) DO UPDATE SET
        amount = report_day.amount + excluded.amount,
        failing = report_day.failing + excluded.failing
"""

_OLD_DAYS = delete_first("report_day", "account_id, kind, domain, day", "day <= ?")


class WaitingReport(Struct, frozen=True):
    """A report claimed for reading: it arrived as ``mail`` or was posted as ``body``.

    ``attempts`` includes this one.
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
    """A row to count. ``digest`` is unique, ``result`` is JSON."""

    account_id: AccountId
    kind: ReportKind
    domain: str
    day: Instant
    digest: str
    reporter: str
    result: str
    amount: int


class ImportedReport(Struct, frozen=True):
    """A report to import. ``rows`` are its rows as a child process encoded them."""

    report: ReceiverReport
    rows: bytes


class ReportPage(Struct, frozen=True):
    """A page of reports, newest first; ``total`` counts all reports."""

    entries: tuple[ReceiverReport, ...]
    total: int


class FeedbackPage(ReportPage, frozen=True):
    """A page of reports about single mails. ``unauthenticated`` counts those that do not count."""

    unauthenticated: int


class Removed(Struct, frozen=True):
    """Numbers of reports and counted rows that one transaction deleted."""

    reports: int
    rows: int


_FACTS = f"{columns_of(ReceiverReport, 'receiver_report', 'report_id')}, report_key AS report_id"

_LEASES = LeasedRows(
    "receiver_report",
    waiting="state = 'waiting'",
    due="received_at",
    on_claim=", attempts = attempts + 1",
)

# ``{busy}`` excludes accounts.
_NEXT = _LEASES.in_turns("receiver_report WHERE state = 'waiting' AND account_id NOT IN ({busy})")

_READ = f"""
    SELECT receiver_report.id, receiver_report.account_id, inbox.mailbox_name, receiver_report.kind,
    receiver_report.received_at, receiver_report.attempts, receiver_report.body, delivery_id,
    delivery.envelope_sender, delivery.raw_message, {SESSION_COLUMNS}
    FROM receiver_report JOIN inbox ON inbox.account_id = receiver_report.account_id
    LEFT JOIN delivery ON delivery.id = receiver_report.delivery_id
    WHERE receiver_report.id = ?
"""

_COUNT = """
    INSERT INTO report_count (
        account_id, kind, domain, day, digest, reporter, result, amount, is_imported
    ) {rows} ON CONFLICT (account_id, kind, domain, day, digest) DO NOTHING
"""


class ReportStore(ReportSums):
    """Reports of receivers, with the rows that they count and the sums over these."""

    @inbox_write(lambda _, report, *others: (report.account_id,))
    def post(
        self, transaction: Transaction, report: ReceiverReport, body: bytes
    ) -> InboxFull | None:
        """Add a waiting report that was posted.

        :raises InboxFull: the account has the maximum of waiting reports.
        """
        lock_inboxes(transaction, (report.account_id,))
        if is_full(transaction, report.account_id):
            return InboxFull(FULL)
        insert(transaction, "receiver_report", [report_row(report, body=body)])
        return None

    @write
    def claim(
        self, transaction: Transaction, lease: Lease, now: Instant, busy: Collection[AccountId] = ()
    ) -> WaitingReport | None:
        """Claim the waiting report that has waited longest; accounts take turns.

        :param busy: accounts whose reports are left waiting.
        """
        offset = transaction.clock_offset()
        shared_now = now + offset
        waiting = _NEXT.format(busy=", ".join("?" * len(busy)) or "''")
        row = transaction.row(waiting, (shared_now, *busy, shared_now, 1))
        until = lease.until + offset
        if row is None or not _LEASES.claim(transaction, row.id, lease.holder, until, shared_now):
            return None
        found = transaction.row(_READ, (row.id,))
        if found is None:
            return None
        is_mail = found.delivery_id is not None
        mail = value_of(ReceivedMail, found, session=session_of(found)) if is_mail else None
        return value_of(WaitingReport, found, mail=mail, body=found.body or b"")

    @write
    def count(self, transaction: Transaction, rows: Sequence[CountedRow]) -> None:
        """Count rows; rows that are already counted change nothing."""
        transaction.execute_over(_COUNT, tuple(map(_count_values, rows)))

    @read
    def count_rows(
        self,
        transaction: Transaction,
        account_id: AccountId,
        kind: ReportKind,
        domain: str,
        day: Instant,
    ) -> int:
        """Return the number of different rows of a day."""
        sql = (
            "SELECT COUNT(*) FROM report_count "
            "WHERE account_id = ? AND kind = ? AND domain = ? AND day = ?"
        )
        return read_number(transaction, sql, (account_id, kind.value, domain, day))

    @read
    def domains_of(self, transaction: Transaction, account_id: AccountId) -> ReportDomains:
        """Return the domains that an account watches, and the domains with counted reports."""
        return domains_of(transaction, account_id)

    @read
    def count_all_rows(self, transaction: Transaction, account_id: AccountId, limit: int) -> int:
        """Count the rows of received reports of an account, up to a limit."""
        sql = (
            "SELECT COUNT(*) FROM (SELECT 1 FROM report_count "
            "WHERE account_id = ? AND is_imported = 0 LIMIT ?) AS one"
        )
        return read_number(transaction, sql, (account_id, limit))

    @read
    def count_imported_rows(self, transaction: Transaction, account_id: AccountId) -> int:
        """Return the number of rows of imported reports of an account."""
        sql = (
            "SELECT CAST(COALESCE(SUM(row_count), 0) AS BIGINT) FROM receiver_report "
            "WHERE account_id = ? AND way <> 'received'"
        )
        return read_number(transaction, sql, (account_id,))

    @inbox_write(lambda _, account_id, reports: (account_id,))
    def add_imported(
        self, transaction: Transaction, account_id: AccountId, reports: Sequence[ImportedReport]
    ) -> list[bool]:
        """Count imported reports with their rows; return for each whether it was new.

        A report that is known changes nothing, and each report is counted as a whole.
        """
        lock_inboxes(transaction, (account_id,))  # reports that are being read wait
        known = find_known(transaction, [given.report for given in reports], is_imported=False)
        are_new, rows = [], list[tuple[Value, ...]]()
        for given in reports:
            identity = identity_of(given.report)
            are_new.append(identity not in known)
            if identity not in known:
                known.add(identity)
                insert(transaction, "receiver_report", [report_row(given.report)])
                rows += _imported_rows(given)
        transaction.execute_over(_COUNT, rows)
        return are_new

    @inbox_write(lambda _, claim: (claim.report.account_id,))
    def admit(self, transaction: Transaction, claim: Claim) -> Admission:
        """Return how much of a report may be stored, and count it against the quotas."""
        return admit(transaction, claim)

    @inbox_write(lambda _, account_id, *others: (account_id,))
    def tally(self, transaction: Transaction, account_id: AccountId, tally: Tally) -> None:
        """Count reports that were not stored."""
        add_tally(transaction, account_id, tally)

    @read
    def refused(self, transaction: Transaction, account_id: AccountId, limit: int) -> list[Tally]:
        """Return the tallies of rejected reports, newest days first."""
        return refused(transaction, account_id, limit)

    @inbox_write(lambda _, report_id, holder, found: {known.account_id for known in found})
    def finish(
        self,
        transaction: Transaction,
        report_id: ReportId,
        holder: str,
        found: Sequence[ReceiverReport],
    ) -> bool:
        """Replace a waiting report of the holder by the reports that were read from it.

        A report that is already counted becomes repeated.
        """
        # Two daemons that finish the same report must see each other.
        lock_inboxes(transaction, {found_report.account_id for found_report in found})
        gone = transaction.rows(
            "DELETE FROM receiver_report WHERE id = ? AND state = 'waiting' AND lease_holder = ? "
            "RETURNING delivery_id, account_id",
            (report_id, holder),
        )
        if not gone:
            return False
        mail = _mail_to_keep(transaction, gone[0].delivery_id, gone[0].account_id)
        for report in found:
            if report.state is ReportState.COUNTED and is_counted(transaction, report):
                reason = "the same report was counted before"
                report = replace(report, state=ReportState.REPEATED, reason=reason)
            # The mail of a report about one mail contains personal data.
            is_kept = report.state not in _WITHOUT_MAIL and not report.kind.is_feedback
            kept_mail = mail if is_kept else None
            if report.letter is not None and not _has_room_for_letter(transaction, report):
                report = replace(report, letter=None, reason=_NO_ROOM_FOR_LETTER)
            insert(transaction, "receiver_report", [report_row(report, delivery_id=kept_mail)])
        delete_unreferenced(transaction, gone)
        return True

    @write
    def postpone(
        self, transaction: Transaction, report_id: ReportId, holder: str, retry_at: Instant
    ) -> None:
        """Release a report until a given time."""
        until = retry_at + transaction.clock_offset()
        _LEASES.give_back(transaction, report_id, holder, lease_until=until)

    @write
    def release(self, transaction: Transaction, holder: str) -> None:
        """Release all reports of a holder, without counting the attempts."""
        _LEASES.release(transaction, holder, ", attempts = attempts - 1")

    @read
    def of_account(
        self,
        transaction: Transaction,
        account_id: AccountId,
        limit: int,
        offset: int,
        kind: ReportKind | None = None,
    ) -> ReportPage:
        """Return a page of the reports of an account, newest first.

        :param kind: only reports of this kind.
        """
        condition: Condition = ("TRUE", ()) if kind is None else ("kind = ?", (kind.value,))
        return _page(transaction, account_id, condition, limit, offset)

    @read
    def feedback(
        self,
        transaction: Transaction,
        account_id: AccountId,
        domain: str,
        since: Instant,
        limit: int,
        offset: int,
    ) -> FeedbackPage:
        """Return a page of the reports about single mails of a domain, newest first."""
        condition = (_ABOUT_MAILS, (domain, since))
        page = _page(transaction, account_id, condition, limit, offset)
        unauthenticated = read_number(transaction, _UNAUTHENTICATED, (account_id, domain, since))
        return FeedbackPage(page.entries, page.total, unauthenticated)

    @read
    def has_report(
        self, transaction: Transaction, account_id: AccountId, report_id: ReportId
    ) -> bool:
        """Return whether an account has a report."""
        sql = "SELECT 1 FROM receiver_report WHERE account_id = ? AND id = ?"
        return transaction.row(sql, (account_id, report_id)) is not None

    @frees_space
    @inbox_write(lambda _, account_id, *others: (account_id,))
    def remove(
        self,
        transaction: Transaction,
        account_id: AccountId,
        selection: ReportSelection,
        now: Instant,
        limit: int,
    ) -> Removed:
        """Delete at most ``limit`` rows and reports of a selection, rows first.

        A report that is being read is not deleted.
        """
        lock_inboxes(transaction, (account_id,))
        shared_now = now + transaction.clock_offset()
        if selection.report_id is None:
            rows = _remove_counts(transaction, account_id, selection, limit)
        else:
            rows = _remove_counts_of_report(transaction, account_id, selection.report_id, limit)
        if selection.day is not None and selection.reporter is None:
            transaction.execute(_REMOVE_DAY, (account_id, selection.day))
        condition, values = _reports_in(selection)
        which = f"account_id = ? AND {condition} AND {_IS_NOT_BEING_READ} ORDER BY received_at, id"
        sql = delete_first("receiver_report", "id", which, "delivery_id")
        gone = transaction.rows(sql, (account_id, *values, shared_now, limit - rows))
        delete_unreferenced(transaction, gone)
        return Removed(len(gone), rows)

    @frees_space
    @write
    def forget(self, transaction: Transaction, now: Instant, limit: int) -> int:
        """Delete data past its retention; return the largest number of rows of one kind.

        The sums of the rows of each day remain.
        """
        if not transaction.try_lock(EXPIRY_LOCK):
            return 0
        oldest = Instant(now - REPORTS_KEPT)
        last = Instant(now - SUMS_KEPT)
        reports = [
            *transaction.rows(_OLD_RECEIVED, (oldest, limit)),
            *transaction.rows(_OLD_REPORTS, (last, limit)),
        ]
        mails = transaction.rows(_OLD_MAILS, (now - RAW_KEPT, limit))
        transaction.execute_many(
            "UPDATE receiver_report SET delivery_id = NULL WHERE id = ?",
            [(row.id,) for row in mails],
        )
        delete_unreferenced(transaction, [*reports, *mails])
        letters = transaction.execute(_OLD_LETTERS, (now - RAW_KEPT, limit))
        counts = _roll_up(transaction, oldest, limit)
        days = transaction.execute(_OLD_DAYS, (last, limit))
        tallies = forget_tallies(transaction, oldest, limit)
        return max(len(reports), len(mails), letters, counts, days, tallies)


def _roll_up(transaction: Transaction, oldest: Instant, limit: int) -> int:
    """Replace rows of old days by the sums of each day; return the number of rows."""
    rows = transaction.rows(_OLD_COUNTS, (oldest, limit))
    sums: dict[tuple[Value, ...], list[int]] = {}
    for row in rows:
        total = sums.setdefault((row.account_id, row.kind, row.domain, row.day), [0, 0])
        amount = min(row.amount, MAX_SUM)
        total[0] += amount
        total[1] += amount if _has_failed(ReportKind(row.kind), row.result) else 0
    transaction.execute_over(_ADD_DAY, [(*key, *total) for key, total in sums.items()])
    return len(rows)


def _has_failed(kind: ReportKind, result: str) -> bool:
    if kind is ReportKind.DMARC:
        return not has_passed(result)
    if kind is ReportKind.TLS:
        return SUCCESS_PATTERN.strip("%") not in result
    return kind is ReportKind.FAILURE


def _page(
    transaction: Transaction, account_id: AccountId, condition: Condition, limit: int, offset: int
) -> ReportPage:
    """Return a page of the reports that meet a condition, newest first."""
    text, values = condition
    source = f"FROM receiver_report WHERE account_id = ? AND {text}"
    reports = read_values(
        transaction,
        ReceiverReport,
        f"SELECT {_FACTS} {source} ORDER BY received_at DESC, id DESC LIMIT ? OFFSET ?",
        (account_id, *values, limit, offset),
    )
    total = read_number(transaction, f"SELECT COUNT(*) {source}", (account_id, *values))
    return ReportPage(tuple(reports), total)


def _count_values(row: CountedRow) -> tuple[Value, ...]:
    return *row_of(row).values(), 0


def _imported_rows(given: ImportedReport) -> Iterator[tuple[Value, ...]]:
    report = given.report
    whose = (report.account_id, report.kind.value)
    for domain, day, digest, result, amount in msgspec.msgpack.decode(given.rows):
        yield (*whose, domain, day, digest, report.reporter, result, amount, 1)


_MAY_KEEP = """
    SELECT id FROM delivery WHERE id = ? AND size <= ? AND ? > (
        SELECT COUNT(*) FROM receiver_report WHERE account_id = ? AND delivery_id IS NOT NULL
    )
"""


def _mail_to_keep(
    transaction: Transaction, delivery_id: str | None, account_id: AccountId
) -> str | None:
    """Return the mail of a report that is not counted, if there is room for it, or `None`."""
    values = (delivery_id, MAX_RAW_SIZE, MAX_RAW, account_id)
    return None if transaction.row(_MAY_KEEP, values) is None else delivery_id


def _has_room_for_letter(transaction: Transaction, report: ReceiverReport) -> bool:
    sql = "SELECT COUNT(*) FROM receiver_report WHERE account_id = ? AND letter IS NOT NULL"
    return read_number(transaction, sql, (report.account_id,)) < MAX_LETTERS


_REMOVE_COUNT = f"DELETE FROM report_count WHERE ({_COUNT_KEY}) IN ({{rows}})"

_COUNTS_OF_REPORTER = """
    SELECT domain, digest, result FROM report_count
    WHERE account_id = ? AND reporter = ? AND day = ? AND kind = ?
"""


def _reports_in(selection: ReportSelection) -> Condition:
    """Return the SQL condition of a selection; a waiting report has no reporter yet."""
    conditions: list[Condition] = [("TRUE", ())]
    if selection.report_id is not None:
        conditions.append(("id = ?", (selection.report_id,)))
    if selection.reporter is not None:
        conditions.append(("reporter = ? AND state <> 'waiting'", (selection.reporter,)))
    if selection.day is not None:
        span = (selection.day, selection.day + DAY)
        began = "COALESCE(begins_at, received_at)"
        conditions.append((f"{began} >= ? AND {began} < ?", span))
    return _all_of(conditions)


def _all_of(conditions: Sequence[Condition]) -> Condition:
    text = " AND ".join(text for text, _ in conditions)
    return text, tuple(value for _, values in conditions for value in values)


def _remove_counts(
    transaction: Transaction, account_id: AccountId, selection: ReportSelection, limit: int
) -> int:
    wanted: dict[str, Value] = {"reporter": selection.reporter, "day": selection.day}
    condition, values = _all_of(
        [
            ("account_id = ?", (account_id,)),
            *((f"{name} = ?", (value,)) for name, value in wanted.items() if value is not None),
        ]
    )
    return transaction.execute(
        delete_first("report_count", _COUNT_KEY, condition), (*values, limit)
    )


def _remove_counts_of_report(
    transaction: Transaction, account_id: AccountId, report_id: ReportId, limit: int
) -> int:
    """Delete the rows of a report, found by their digests."""
    report = read_value(
        transaction,
        ReceiverReport,
        f"SELECT {_FACTS} FROM receiver_report "
        "WHERE account_id = ? AND id = ? AND state = 'counted'",
        (account_id, report_id),
    )
    if report is None or report.begins_at is None:
        return 0
    day, kind = day_of(report.begins_at), report.kind.value
    found = transaction.rows(_COUNTS_OF_REPORTER, (account_id, report.reporter, day, kind))
    own = [
        (account_id, kind, row.domain, day, row.digest)
        for row in found
        if row.digest in (row_digest(report, row.result), former_row_digest(report, row.result))
    ]
    transaction.execute_over(_REMOVE_COUNT, own[:limit])
    return len(own[:limit])
