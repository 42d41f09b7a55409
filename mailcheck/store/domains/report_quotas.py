"""Quotas for the reports of an account, and the domains that they may be about.

The addresses of reports are published in DNS, so every client on the Internet can send reports.
Rows and octets are limited for each account and day, and for each sender within the account.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.core.domains.receiver_reports import ReceiverReport, ReportKind
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.messages import lock_inboxes
from mailcheck.store.transactions import delete_first, read_number, read_values


class ReportQuota(Struct, frozen=True):
    """Maximum number of rows and octets that reports may add in a day; a report is a row, too."""

    rows: int
    octets: int


OF_ACCOUNT = ReportQuota(rows=60_000, octets=48 * 1024 * 1024)
"""For all reports of an account together."""

OF_SENDER = ReportQuota(rows=31_000, octets=24 * 1024 * 1024)
"""For reports of one authenticated organization; a report of the maximum size fits."""

OF_STRANGERS = ReportQuota(rows=2_000, octets=1024 * 1024)
"""For all reports without an authenticated sender: posted ones, and mail without SPF and DKIM."""

MAX_ROWS_OF_ACCOUNT = 1_000_000
"""Maximum number of rows of received reports of an account; its owner makes room by deleting
reports."""

MAX_IMPORTED_ROWS = 20_000_000
"""Maximum number of rows of imported reports of an account: 50 domains with 1,000 rows a day."""

ROW_OVERHEAD = 150
"""Octets of a row in addition to its texts: digest, numbers and indexes."""

MOST_UNWATCHED = 5
"""Maximum number of domains whose reports are counted without a watch, in order of arrival."""


class Outcome(Enum):
    """The outcome of a report in the tally; the API shows the values."""

    KEPT = "kept"
    OVER_QUOTA = "over-quota"
    FOREIGN = "foreign"
    """The report is about a domain that the account neither watches nor owns."""


class Admission(Enum):
    """How much of a report may be stored."""

    WHOLE = "whole"
    LISTED = "listed"
    """The report in the list of reports, without its rows."""
    REPEATED = "repeated"
    """Like `LISTED`: the same report was counted before, with its rows."""
    NOTHING = "nothing"


class Claim(Struct, frozen=True):
    """The room that a report needs.

    ``day`` is the start of the day of its arrival. ``sender`` is the organization that
    authenticates it, or empty. ``octets`` includes ``listed_octets``, the size of its entry in the
    list of reports.
    """

    report: ReceiverReport
    day: Instant
    sender: str
    rows: int
    octets: int
    listed_octets: int

    @property
    def quota(self) -> ReportQuota:
        """The daily quota of the sender."""
        return OF_SENDER if self.sender else OF_STRANGERS


class Tally(Struct, frozen=True):
    """Reports of one sender and day with one outcome; ``domain`` is that of the last report."""

    day: Instant
    sender: str
    outcome: Outcome
    reports: int
    rows: int
    octets: int
    domain: str


class ReportDomains:
    """The domains that an account watches, and the domains with counted reports."""

    def __init__(self, watched: Collection[str], counted: Collection[str]) -> None:
        self._watched = frozenset(watched)
        self._counted = set(counted)
        self._unwatched = sum(not self._is_watched(name) for name in self._counted)

    def take(self, domain: str) -> bool:
        """Return whether reports about a domain are counted, and record that it has some.

        They are counted if the account watches the domain or one above it, or if it has counted
        reports already. Without a watch the first few organizational domains are accepted, but no
        domains below them: a zone has as many of these as a stranger wants.
        """
        if self.has(domain):
            return True
        if self._unwatched >= MOST_UNWATCHED or registrable_domain(domain) != domain:
            return False
        self._counted.add(domain)
        self._unwatched += 1
        return True

    def find_home(self, domains: Sequence[str]) -> str | None:
        """Return the domain to which a report about one mail belongs, or `None` without one.

        It is the nearest domain at or above one of ``domains`` with a watch or counted reports.
        Otherwise it is the organizational domain of the first one, if `take` accepts it.
        """
        for domain in domains:
            for name in _at_and_above(domain):
                if name in self._watched or name in self._counted:
                    return name
        home = registrable_domain(domains[0])
        return home if self.take(home) else None

    def has(self, domain: str) -> bool:
        """Return whether the account watches a domain, or one above it, or has reports about it."""
        return domain in self._counted or self._is_watched(domain)

    def _is_watched(self, domain: str) -> bool:
        return any(name in self._watched for name in _at_and_above(domain))


def _at_and_above(domain: str) -> Iterator[str]:
    labels = domain.split(".")
    return (".".join(labels[start:]) for start in range(len(labels)))


def measure(texts: Sequence[str]) -> int:
    """Return the octets of a row with these texts."""
    return ROW_OVERHEAD + sum(len(text.encode()) for text in texts)


MOST_SENDERS = 100
"""Maximum number of senders with a separate row for rejected reports in a day. Others share one
row."""

MOST_DOMAINS = 1_000
"""Maximum number of domains read for each kind of report: far more than are accepted without a
watch."""

_ADD = """
    INSERT INTO report_tally (
        account_id, outcome, day, sender, reports, row_count, byte_count, domain
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (account_id, outcome, day, sender) DO UPDATE SET
        reports = report_tally.reports + excluded.reports,
        row_count = report_tally.row_count + excluded.row_count,
        byte_count = report_tally.byte_count + excluded.byte_count,
        domain = excluded.domain
"""

_USED = """
    SELECT CAST(COALESCE(SUM(row_count), 0) AS BIGINT),
    CAST(COALESCE(SUM(byte_count), 0) AS BIGINT) FROM report_tally
    WHERE account_id = ? AND outcome = 'kept' AND day = ?
"""

_REFUSED_SENDERS = """
    SELECT COUNT(*) FROM report_tally
    WHERE account_id = ? AND outcome = 'over-quota' AND day = ? AND sender <> ?
"""

_REFUSED = """
    SELECT day, sender, outcome, reports, row_count AS rows, byte_count AS octets, domain
    FROM report_tally
    WHERE account_id = ? AND outcome IN ('over-quota', 'foreign')
    ORDER BY day DESC, reports DESC, sender LIMIT ?
"""

# The key finds the first row of each domain, so the rows between are not read.
_COUNTED = """
    WITH RECURSIVE found (domain) AS (
        SELECT MIN(domain) FROM report_count WHERE account_id = ? AND kind = ?
        UNION ALL
        SELECT (
            SELECT MIN(report_count.domain) FROM report_count
            WHERE account_id = ? AND kind = ? AND report_count.domain > found.domain
        ) FROM found WHERE found.domain IS NOT NULL
    )
    SELECT domain FROM found WHERE domain IS NOT NULL LIMIT ?
"""

# The columns of the index ``receiver_report_once``. Only a posted report has a reason, so it is
# never a copy of an authenticated report.
_IS_COUNTED = """
    SELECT 1 FROM receiver_report WHERE account_id = ? AND kind = ? AND domain = ?
    AND reporter = ? AND report_key = ? AND reason = ? AND organisation = ? AND state = 'counted'
    AND CASE WHEN kind IN ('dmarc', 'tls') THEN begins_at ELSE 0 END = ?
    AND CASE WHEN kind IN ('dmarc', 'tls') THEN ends_at ELSE 0 END = ?
"""


_PERIOD = """
    (CASE WHEN known.kind IN ('dmarc', 'tls') THEN known.begins_at ELSE 0 END) = given.begins_at
    AND (CASE WHEN known.kind IN ('dmarc', 'tls') THEN known.ends_at ELSE 0 END) = given.ends_at
"""

# The index ``receiver_report_identity`` finds the few reports with the same id.
_KNOWN = f"""
    WITH given (account_id, kind, domain, report_key, organisation, begins_at, ends_at)
    AS ({{rows}})
    SELECT DISTINCT given.account_id, given.kind, given.domain, given.report_key,
    given.organisation, given.begins_at, given.ends_at
    FROM given JOIN receiver_report AS known ON known.account_id = given.account_id
    AND known.kind = given.kind AND known.domain = given.domain
    AND known.report_key = given.report_key AND known.organisation = given.organisation
    AND {_PERIOD}
    WHERE known.state = 'counted'
"""


def domains_of(transaction: Transaction, account_id: AccountId) -> ReportDomains:
    """Return the domains that an account watches, and the domains with counted reports."""
    watched = transaction.rows(
        "SELECT target FROM watch WHERE account_id = ? AND kind = 'domain'", (account_id,)
    )
    counted: set[str] = set()
    for kind in ReportKind:
        key = (account_id, kind.value)
        counted |= {row.domain for row in transaction.rows(_COUNTED, (*key, *key, MOST_DOMAINS))}
    return ReportDomains([row.target for row in watched], counted)


def refused(transaction: Transaction, account_id: AccountId, limit: int) -> list[Tally]:
    """Return the tallies of rejected reports, newest days first."""
    return read_values(transaction, Tally, _REFUSED, (account_id, limit))


def add_tally(transaction: Transaction, account_id: AccountId, tally: Tally) -> None:
    """Count reports that were not stored."""
    lock_inboxes(transaction, (account_id,))
    _add(transaction, account_id, tally)


def admit(transaction: Transaction, claim: Claim) -> Admission:
    """Return how much of a report may be stored, and count it against the quotas."""
    report, account_id = claim.report, claim.report.account_id
    lock_inboxes(transaction, (account_id,))
    is_repeated = claim.rows > 0 and is_counted(transaction, report)
    if not is_repeated and _has_room(transaction, claim, claim.rows + 1, claim.octets):
        _note(transaction, claim, Outcome.KEPT, claim.rows + 1, claim.octets)
        return Admission.WHOLE
    rows, octets = claim.rows, claim.octets - claim.listed_octets
    if _has_room(transaction, claim, 1, claim.listed_octets):
        _note(transaction, claim, Outcome.KEPT, 1, claim.listed_octets)
        if is_repeated:
            return Admission.REPEATED
        admission = Admission.LISTED
    else:
        rows, octets, admission = rows + 1, claim.octets, Admission.NOTHING
    _note(transaction, claim, Outcome.OVER_QUOTA, rows, octets)
    return admission


def is_counted(transaction: Transaction, report: ReceiverReport) -> bool:
    """Return whether the same report is counted already.

    An imported report is the same one if organization, id and period are the same, whoever sent it.
    """
    if find_known(transaction, [report], is_imported=True):
        return True
    keys = (
        report.account_id,
        report.kind.value,
        report.domain,
        report.reporter,
        report.report_id,
        report.reason,
        report.organisation,
        *report.period,
    )
    return transaction.row(_IS_COUNTED, keys) is not None


def find_known(
    transaction: Transaction, reports: Sequence[ReceiverReport], *, is_imported: bool
) -> set[Identity]:
    """Return the identities of those reports that are counted already.

    :param is_imported: compare with imported reports only.
    """
    sql = f"{_KNOWN} AND known.way <> 'received'" if is_imported else _KNOWN
    given = [(report.account_id, *identity_of(report)) for report in reports]
    return {tuple(row[1:]) for row in transaction.rows_over(sql, given)}


Identity = tuple[str, str, str, str, int, int]
"""Kind, domain, id, organization, begin and end of a report."""


def identity_of(report: ReceiverReport) -> Identity:
    """Return what identifies a report among those of its account, whoever sent it."""
    whose = (report.kind.value, report.domain, report.report_id, report.organisation)
    return (*whose, *report.period)


def _has_room(transaction: Transaction, claim: Claim, rows: int, octets: int) -> bool:
    """Return whether the quotas of the account and of the sender have room."""
    day = (claim.report.account_id, claim.day)
    for quota, condition, values in (
        (OF_ACCOUNT, "", day),
        (claim.quota, " AND sender = ?", (*day, claim.sender)),
    ):
        ((used_rows, used_octets),) = transaction.rows(_USED + condition, values)
        if used_rows + rows > quota.rows or used_octets + octets > quota.octets:
            return False
    return True


def _note(transaction: Transaction, claim: Claim, outcome: Outcome, rows: int, octets: int) -> None:
    account_id, sender = claim.report.account_id, claim.sender
    if outcome is Outcome.OVER_QUOTA:
        values = (account_id, claim.day, sender)
        others = read_number(transaction, _REFUSED_SENDERS, values)
        sender = sender if others < MOST_SENDERS else ""
    tally = Tally(claim.day, sender, outcome, 1, rows, octets=octets, domain=claim.report.domain)
    _add(transaction, account_id, tally)


def _add(transaction: Transaction, account_id: AccountId, tally: Tally) -> None:
    facts = (tally.reports, tally.rows, tally.octets, tally.domain)
    key = (account_id, tally.outcome.value, tally.day, tally.sender)
    transaction.execute(_ADD, (*key, *facts))


def forget_tallies(transaction: Transaction, oldest: Instant, limit: int) -> int:
    """Delete tallies of old days; return their number."""
    sql = delete_first("report_tally", "account_id, outcome, day, sender", "day <= ?")
    return transaction.execute(sql, (oldest, limit))
