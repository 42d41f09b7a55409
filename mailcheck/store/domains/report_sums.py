"""Sums over the counted reports of an account: domains, reporters, senders, days and sessions."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from mailcheck.checks.receiver_reports.aggregate import PASSING_PATTERNS
from mailcheck.checks.receiver_reports.limits import MAX_KEPT, MAX_SUM
from mailcheck.checks.receiver_reports.tls import SUCCESS_PATTERN
from mailcheck.core.domains.receiver_reports import (
    LARGEST_REPORT_PAGE,
    Coverage,
    MailOfWays,
    ReportKind,
    ReportWay,
    SumOfDay,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.transactions import Store, read, read_values, value_of


class SumOfRows(Struct, frozen=True):
    """The sum of equal rows of one reporter over a period."""

    reporter: str
    result: str
    amount: int
    first_day: Instant
    last_day: Instant


class SumOfDays(Struct, frozen=True):
    """The sum of equal rows of all reporters over some days that begin with a day."""

    result: str
    first_day: Instant
    amount: int


class TlsRows(Struct, frozen=True):
    """Sessions with one result, of all reporters; ``reporters`` are the largest ones."""

    result: str
    amount: int
    last_day: Instant
    reporters: tuple[str, ...]


class TlsSource(Struct, frozen=True):
    """All sessions in the reports of one reporter."""

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
    """A domain with counted reports of one kind.

    ``is_proven``: its DNS has requested reports to this account, so a report was received.
    """

    kind: ReportKind
    domain: str
    reports: int
    messages: int
    failing: int
    last_at: Instant
    is_proven: bool


def _sum(column: str) -> str:
    """Return SQL that sums a column; values above the maximum of a report count as the maximum.

    The sum cannot overflow, which would fail the query in SQLite and the conversion in PostgreSQL.
    """
    return f"CAST(SUM(CASE WHEN {column} < {MAX_SUM} THEN {column} ELSE {MAX_SUM} END) AS BIGINT)"


def _whole(column: str) -> str:
    """Return SQL that sums the sums or numbers of parts, under the same name."""
    return f"CAST(SUM({column}) AS BIGINT) AS {column}"


TOTALS = f"""
    SELECT kind, domain, reporter, COUNT(*) AS reports, {_sum("messages")} AS messages,
    {_sum("failing")} AS failing, MAX(COALESCE(ends_at, received_at)) AS last_at
    FROM receiver_report WHERE account_id = ? AND state = 'counted' GROUP BY kind, domain, reporter
"""
"""Totals of the counted reports of an account. The index ``receiver_report_totals`` has these
columns in this order, so neither a row is read nor sorted."""

_DOMAINS = f"""
    SELECT kind, domain, {_whole("reports")}, {_whole("messages")}, {_whole("failing")},
    MAX(last_at) AS last_at FROM ({TOTALS}) AS total GROUP BY kind, domain
    ORDER BY messages DESC, domain, kind LIMIT ?
"""

_SOURCES = f"""
    SELECT kind, reporter, {_whole("reports")}, {_whole("messages")}, {_whole("failing")}
    FROM ({TOTALS}) AS total GROUP BY kind, reporter
    ORDER BY messages DESC, reporter, kind LIMIT ?
"""

# Complaints come without a request in DNS. The index ``receiver_report_proof`` has the others.
_PROVEN = """
    WITH given (account_id, domain) AS ({rows})
    SELECT domain FROM given WHERE EXISTS (
        SELECT 1 FROM receiver_report AS proof
        WHERE proof.account_id = given.account_id AND proof.domain = given.domain
        AND proof.state IN ('counted', 'repeated') AND proof.way = 'received'
        AND proof.kind <> 'complaint'
    )
"""

_WAYS = f"""
    SELECT way, {_sum("messages")} AS messages FROM receiver_report
    WHERE account_id = ? AND kind = 'dmarc' AND domain = ? AND state = 'counted'
    AND begins_at >= ? GROUP BY way
"""

_NEWEST_POLICY = """
    SELECT policy FROM receiver_report
    WHERE account_id = ? AND kind = ? AND domain = ? AND state = 'counted'
    ORDER BY begins_at DESC, id DESC LIMIT 1
"""

_PASSES = " OR ".join(f"result LIKE '{pattern}'" for pattern in PASSING_PATTERNS)

# Grouped by the result first: results differ early, while many rows have one reporter.
_SUMS = f"""
    SELECT reporter, result, {_sum("amount")} AS amount, MIN(day) AS first_day,
    MAX(day) AS last_day FROM report_count
    WHERE account_id = ? AND kind = ? AND domain = ? AND day >= ?
    GROUP BY result, reporter
    ORDER BY CASE WHEN {_PASSES} THEN 1 ELSE 0 END, amount DESC, result, reporter LIMIT ?
"""

# The rows are read and grouped once, which takes most of the time, and both sums add groups.
_IN_SPANS = f"""
    WITH span AS MATERIALIZED (
        SELECT result, reporter, day - (day - ?) % ? AS begins, {_sum("amount")} AS amount,
            MIN(day) AS first_day, MAX(day) AS last_day FROM report_count
        WHERE account_id = ? AND kind = 'dmarc' AND domain = ? AND day >= ?
        GROUP BY result, reporter, begins
    )
    SELECT * FROM (
        SELECT reporter, result, {_whole("amount")}, MIN(first_day) AS first_day,
            MAX(last_day) AS last_day FROM span GROUP BY result, reporter
        ORDER BY CASE WHEN {_PASSES} THEN 1 ELSE 0 END, amount DESC, result, reporter LIMIT ?
    ) AS sums UNION ALL SELECT * FROM (
        SELECT NULL AS reporter, result, {_whole("amount")}, begins AS first_day,
            MAX(last_day) AS last_day FROM span GROUP BY result, begins
        ORDER BY amount DESC, result, begins LIMIT ?
    ) AS spans
"""

_COVERAGE = """
    SELECT COUNT(DISTINCT day) AS days, MIN(day) AS first_day, MAX(day) AS last_day
    FROM report_count WHERE account_id = ? AND kind = ? AND domain = ? AND day >= ?
"""

_TLS = "FROM report_count WHERE account_id = ? AND kind = 'tls' AND domain = ? AND day >= ?"

_FAILS = f"result NOT LIKE '{SUCCESS_PATTERN}'"

_FAILED = f"COALESCE({_sum(f'CASE WHEN {_FAILS} THEN amount ELSE 0 END')}, 0)"

_TLS_SUMS = f"SELECT COALESCE({_sum('amount')}, 0), {_FAILED}, COUNT(DISTINCT result) {_TLS}"

_TLS_ROWS = f"""
    SELECT result, {_sum("amount")} AS amount, MAX(day) AS last_day {_TLS} GROUP BY result
    ORDER BY CASE WHEN {_FAILS} THEN 0 ELSE 1 END, amount DESC, result LIMIT ? OFFSET ?
"""

_TLS_SOURCES = f"""
    SELECT reporter, {_sum("amount")} AS amount, {_FAILED} AS failed {_TLS} GROUP BY reporter
    ORDER BY amount DESC, reporter LIMIT ?
"""

_TLS_REPORTERS = f"""
    SELECT result, reporter FROM (
        SELECT result, reporter, ROW_NUMBER() OVER (
            PARTITION BY result ORDER BY SUM(amount) DESC, reporter
        ) AS place {_TLS} AND result IN ({{results}}) GROUP BY result, reporter
    ) AS told WHERE place <= {MAX_KEPT} ORDER BY place
"""


class ReportSums(Store):
    """Sums over the counted reports, and the rows that they count."""

    @read
    def domains(
        self, transaction: Transaction, account_id: AccountId, limit: int = LARGEST_REPORT_PAGE
    ) -> list[ReportedDomain]:
        """Return the domains with counted reports, most messages first."""
        rows = transaction.rows(_DOMAINS, (account_id, limit))
        proven = _proven(transaction, account_id, {row.domain for row in rows})
        return [value_of(ReportedDomain, row, is_proven=row.domain in proven) for row in rows]

    @read
    def ways(
        self, transaction: Transaction, account_id: AccountId, domain: str, since: Instant
    ) -> MailOfWays:
        """Return how the DMARC reports about a domain came, since a day."""
        rows = transaction.rows(_WAYS, (account_id, domain, since))
        is_proven = domain in _proven(transaction, account_id, {domain})
        return MailOfWays({ReportWay(row.way): row.messages for row in rows}, is_proven)

    @read
    def sources(
        self, transaction: Transaction, account_id: AccountId, limit: int = LARGEST_REPORT_PAGE
    ) -> list[ReportSource]:
        """Return the reporters of counted reports, most messages first."""
        return read_values(transaction, ReportSource, _SOURCES, (account_id, limit))

    @read
    def policy(self, transaction: Transaction, account_id: AccountId, domain: str) -> str:
        """Return the DMARC policy that receivers found last, or an empty string."""
        newest = transaction.row(_NEWEST_POLICY, (account_id, ReportKind.DMARC.value, domain))
        return "" if newest is None else str(newest.policy)

    @read
    def tls_page(
        self,
        transaction: Transaction,
        account_id: AccountId,
        domain: str,
        since: Instant,
        limit: int,
        offset: int,
    ) -> TlsPage:
        """Sum the TLS sessions since a day: failures first, then most sessions first."""
        return _tls_page(transaction, (account_id, domain, since), limit, offset)

    @read
    def sums(
        self,
        transaction: Transaction,
        account_id: AccountId,
        kind: ReportKind,
        domain: str,
        since: Instant,
        limit: int,
    ) -> list[SumOfRows]:
        """Sum the counted rows since a day: failing DMARC rows first, then largest first."""
        values = (account_id, kind.value, domain, since, limit)
        return read_values(transaction, SumOfRows, _SUMS, values)

    @read
    def sums_in_spans(
        self,
        transaction: Transaction,
        account_id: AccountId,
        domain: str,
        since: Instant,
        width: int,
        limits: tuple[int, int],
    ) -> tuple[list[SumOfRows], list[SumOfDays]]:
        """Sum the counted DMARC rows as `sums` does, and in spans of days, the largest first.

        :param width: milliseconds of a span.
        :param limits: the maximum numbers of both sums.
        """
        rows = transaction.rows(_IN_SPANS, (since, width, account_id, domain, since, *limits))
        return (
            [value_of(SumOfRows, row) for row in rows if row.reporter is not None],
            [value_of(SumOfDays, row) for row in rows if row.reporter is None],
        )

    @read
    def coverage(
        self, transaction: Transaction, account_id: AccountId, domain: str, since: Instant
    ) -> Coverage:
        """Return which days the DMARC reports about a domain cover."""
        (row,) = transaction.rows(_COVERAGE, (account_id, ReportKind.DMARC.value, domain, since))
        return value_of(Coverage, row)

    @read
    def earlier_days(
        self, transaction: Transaction, account_id: AccountId, domain: str
    ) -> list[SumOfDay]:
        """Return the sums of the DMARC reports about days whose rows are deleted, oldest first."""
        sql = (
            "SELECT day, amount, failing FROM report_day "
            "WHERE account_id = ? AND kind = ? AND domain = ? ORDER BY day"
        )
        values = (account_id, ReportKind.DMARC.value, domain)
        return read_values(transaction, SumOfDay, sql, values)


def _proven(transaction: Transaction, account_id: AccountId, domains: Collection[str]) -> set[str]:
    """Return the domains whose DNS has requested reports to the account."""
    given = [(account_id, domain) for domain in domains]
    return {row.domain for row in transaction.rows_over(_PROVEN, given)}


def _tls_page(
    transaction: Transaction, asked: tuple[Value, ...], limit: int, offset: int
) -> TlsPage:
    ((amount, failed, total),) = transaction.rows(_TLS_SUMS, asked)
    rows = transaction.rows(_TLS_ROWS, (*asked, limit, offset))
    reporters: dict[str, list[str]] = {row.result: [] for row in rows}
    if reporters:
        sql = _TLS_REPORTERS.format(results=", ".join("?" * len(reporters)))
        for row in transaction.rows(sql, (*asked, *reporters)):
            reporters[row.result].append(row.reporter)
    sources = transaction.rows(_TLS_SOURCES, (*asked, LARGEST_REPORT_PAGE))
    return TlsPage(
        amount - failed,
        failed,
        total,
        tuple(value_of(TlsRows, row, reporters=tuple(reporters[row.result])) for row in rows),
        tuple(TlsSource(row.reporter, row.amount - row.failed, row.failed) for row in sources),
    )
