"""The store of traffic: mails of a mail server, counted by sender and day."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import astuple, replace

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import (
    Store,
    delete_first,
    frees_space,
    read,
    read_number,
    read_values,
    write,
)

MAX_ROWS = 2_000
"""Maximum number of rows of one account and day. Spammers choose the domains of a mail."""

OTHERS = "*"
"""Stands for the domain of all senders beyond the maximum."""

TRAFFIC_LOCK = 0x6D61_6974
"""Lock of the writes, which depend on the number of rows."""


class TrafficKey(Struct, frozen=True):
    """The properties by which mails are counted. A domain that does not exist is empty."""

    day: Instant
    author_domain: str
    envelope_domain: str
    source: str
    dkim_domain: str
    spf: str
    dkim: str
    dmarc: str

    def without_sender(self) -> TrafficKey:
        """Return the key for all senders with these verdicts on this day."""
        return replace(self, author_domain=OTHERS, envelope_domain="", source="", dkim_domain="")


class TrafficCount(Struct, frozen=True):
    """Numbers of mails: all, judged by the content filter, and spam; ``tenths`` are its points."""

    mails: int = 0
    filtered: int = 0
    spam: int = 0
    tenths: int = 0

    def plus(self, other: TrafficCount) -> TrafficCount:
        """Return the sum."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return TrafficCount(*(count + two for count, two in pairs))


class SenderTraffic(Struct, frozen=True):
    """The mails of one author domain in a period.

    ``spf``, ``dkim`` and ``dmarc`` are the numbers of mails that pass; ``dmarc_failed`` is the
    number of mails that DMARC fails, ``undetermined`` that of mails without a DMARC result.
    """

    author_domain: str
    mails: int
    spf: int
    dkim: int
    dmarc: int
    dmarc_failed: int
    undetermined: int
    filtered: int
    spam: int
    tenths: int
    sources: int
    last_day: Instant


class SourceTraffic(Struct, frozen=True):
    """The mails of one author domain with the same client, domains and verdicts."""

    source: str
    envelope_domain: str
    dkim_domain: str
    spf: str
    dkim: str
    dmarc: str
    mails: int
    filtered: int
    spam: int
    tenths: int
    last_day: Instant


class DayTraffic(Struct, frozen=True):
    """The mails of a day: all, with a DMARC pass, judged by the content filter, and spam."""

    day: Instant
    mails: int
    dmarc: int
    filtered: int
    spam: int


_SUMS = (
    "CAST(SUM(mails) AS BIGINT) AS mails, CAST(SUM(filtered) AS BIGINT) AS filtered, "
    "CAST(SUM(spam) AS BIGINT) AS spam, CAST(SUM(tenths) AS BIGINT) AS tenths, "
    "MAX(day) AS last_day"
)


def _sum_where(column: str, value: str, name: str) -> str:
    return f"CAST(SUM(CASE WHEN {column} = '{value}' THEN mails ELSE 0 END) AS BIGINT) AS {name}"


_SENDERS = f"""
    SELECT author_domain, {_SUMS},
        {_sum_where("spf", "pass", "spf")}, {_sum_where("dkim", "pass", "dkim")},
        {_sum_where("dmarc", "pass", "dmarc")}, {_sum_where("dmarc", "fail", "dmarc_failed")},
        {_sum_where("dmarc", "temperror", "undetermined")},
        COUNT(DISTINCT source) AS sources
    FROM traffic WHERE account_id = ? AND day >= ?
    GROUP BY author_domain ORDER BY mails DESC, author_domain LIMIT ? OFFSET ?
"""

_SOURCES = f"""
    SELECT source, envelope_domain, dkim_domain, spf, dkim, dmarc, {_SUMS}
    FROM traffic WHERE account_id = ? AND day >= ? AND author_domain = ?
    GROUP BY source, envelope_domain, dkim_domain, spf, dkim, dmarc
    ORDER BY mails DESC, source, envelope_domain, dkim_domain, spf, dkim, dmarc LIMIT ? OFFSET ?
"""

_DAYS = f"""
    SELECT day, CAST(SUM(mails) AS BIGINT) AS mails, {_sum_where("dmarc", "pass", "dmarc")},
        CAST(SUM(filtered) AS BIGINT) AS filtered, CAST(SUM(spam) AS BIGINT) AS spam
    FROM traffic WHERE account_id = ? AND day >= ? GROUP BY day ORDER BY day
"""

_KEY = "account_id, day, author_domain, envelope_domain, source, dkim_domain, spf, dkim, dmarc"

_ADD = f"""
    INSERT INTO traffic ({_KEY}, mails, filtered, spam, tenths)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT ({_KEY}) DO UPDATE SET mails = traffic.mails + excluded.mails,
        filtered = traffic.filtered + excluded.filtered, spam = traffic.spam + excluded.spam,
        tenths = traffic.tenths + excluded.tenths
"""

_ROWS_OF_DAY = "SELECT COUNT(*) FROM traffic WHERE account_id = ? AND day = ?"

_IS_KNOWN = f"SELECT 1 AS known FROM traffic WHERE ({_KEY}) = (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class TrafficStore(Store):
    """Counts of mails by sender and day."""

    @write
    def add(
        self,
        transaction: Transaction,
        account_id: AccountId,
        counts: Sequence[tuple[TrafficKey, TrafficCount]],
    ) -> None:
        """Add counts. Senders beyond `MAX_ROWS` of a day are counted together."""
        # The account may have been deleted meanwhile.
        if transaction.row("SELECT 1 AS known FROM account WHERE id = ?", (account_id,)) is None:
            return
        transaction.lock(TRAFFIC_LOCK)
        room: dict[Instant, int] = {}
        rows = []
        for key, count in counts:
            if key.day not in room:
                known = read_number(transaction, _ROWS_OF_DAY, (account_id, key.day))
                room[key.day] = MAX_ROWS - known
            is_known = room[key.day] < len(counts) and transaction.row(
                _IS_KNOWN, (account_id, *astuple(key))
            )
            if not is_known:
                room[key.day] -= 1
            used = key if is_known or room[key.day] >= 0 else key.without_sender()
            rows.append((account_id, *astuple(used), *astuple(count)))
        transaction.execute_many(_ADD, rows)

    @read
    def senders(
        self,
        transaction: Transaction,
        account_id: AccountId,
        since: Instant,
        limit: int,
        offset: int,
    ) -> tuple[SenderTraffic, ...]:
        """Return author domains, those with most mails first."""
        values = (account_id, since, limit, offset)
        return tuple(read_values(transaction, SenderTraffic, _SENDERS, values))

    @read
    def sources(
        self,
        transaction: Transaction,
        account_id: AccountId,
        domain: str,
        since: Instant,
        limit: int,
        offset: int,
    ) -> tuple[SourceTraffic, ...]:
        """Return sources of one author domain, those with most mails first."""
        values = (account_id, since, domain, limit, offset)
        return tuple(read_values(transaction, SourceTraffic, _SOURCES, values))

    @read
    def days(
        self, transaction: Transaction, account_id: AccountId, since: Instant
    ) -> tuple[DayTraffic, ...]:
        """Return the days with mail, oldest first."""
        return tuple(read_values(transaction, DayTraffic, _DAYS, (account_id, since)))

    @frees_space
    @write
    def forget(self, transaction: Transaction, before: Instant, limit: int) -> int:
        """Delete counts of days before a time; return their number."""
        return transaction.execute(delete_first("traffic", _KEY, "day < ?"), (before, limit))
