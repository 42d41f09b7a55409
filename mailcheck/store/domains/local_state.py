"""Rate counters, cached texts and DKIM selectors of a daemon without Redis, in its database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from mailcheck.core.instants import Instant
from mailcheck.core.memory.keys import Key
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS, Hit
from mailcheck.ports.engine import Engine, Transaction
from mailcheck.store.transactions import Store, read, write

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

Result = TypeVar("Result")

COUNTERS_LOCK, SELECTORS_LOCK = 0x6D61_6963, 0x6D61_6973
"""Locks of two jobs whose writes depend on their reads, so that one daemon does them at a time."""


_SET_COUNT = """
    INSERT INTO request_count (subject, window_name, window_index, requests) {rows}
    ON CONFLICT (subject, window_name) DO UPDATE
    SET window_index = excluded.window_index, requests = excluded.requests
"""

# The newest selectors of each of these domains stay.
_DROP_OLD = """
    WITH changed (domain, kept) AS ({rows})
    DELETE FROM known_selector WHERE (domain, number) IN (
        SELECT domain, number FROM (
            SELECT known_selector.domain, number, kept,
                ROW_NUMBER() OVER (
                    PARTITION BY known_selector.domain ORDER BY number DESC
                ) AS place
            FROM known_selector JOIN changed ON known_selector.domain = changed.domain
        ) AS ranked WHERE place > kept
    )
"""


class SqlRateCounters(Store):
    """Implements `RateCounters` on any engine. Each call is a write, so use it for rare events."""

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests within all limits; return the counts including them."""
        return self._count(*hits) if any(hit.amount for hit in hits) else self._peek(*hits)

    @read
    def _peek(self, transaction: Transaction, *hits: Hit) -> list[list[int]]:
        known = _read_counts(transaction, hits)
        return [_counts_with(known, hit) for hit in hits]

    @write
    def _count(self, transaction: Transaction, *hits: Hit) -> list[list[int]]:
        transaction.lock(COUNTERS_LOCK)
        known = _read_counts(transaction, hits)
        counted: dict[tuple[str, str], tuple[int, int]] = {}
        results = []
        for hit in hits:
            counts = _counts_with(known, hit)
            limits = [limit for _, _, limit in hit.windows]
            if hit.amount and all(map(int.__le__, counts, limits)):
                for count, (window, index, _) in zip(counts, hit.windows, strict=True):
                    known[hit.subject, window.name, index] = count
                    counted[hit.subject, window.name] = (index, count)
            results.append(counts)
        transaction.execute_over(_SET_COUNT, [(*key, *value) for key, value in counted.items()])
        return results


class SqlMemory(Store):
    """Implements `Memory` on any engine, for the only daemon that uses it."""

    def __init__(self, engine: Engine, now: Now) -> None:
        super().__init__(engine)
        self._now = now

    def recall(self, name: Key) -> Deferred[str | None]:
        """Return the text stored under a name, or `None`."""
        return self._recall(name, self._now())

    @read
    def _recall(self, transaction: Transaction, name: Key, now: Instant) -> str | None:
        row = transaction.row(
            "SELECT text FROM remembered WHERE name = ? AND ends_at > ?", (name, now)
        )
        return None if row is None else row.text

    def keep(self, name: Key, text: str, milliseconds: int) -> Deferred[bool]:
        """Store a text for a number of milliseconds; replaces an earlier one."""
        now = self._now()
        return self._keep(name, text, Instant(now + milliseconds), now)

    @write
    def _keep(
        self, transaction: Transaction, name: Key, text: str, ends_at: Instant, now: Instant
    ) -> bool:
        transaction.execute("DELETE FROM remembered WHERE ends_at <= ?", (now,))
        transaction.execute(
            "INSERT INTO remembered (name, text, ends_at) VALUES (?, ?, ?) ON CONFLICT (name) "
            "DO UPDATE SET text = excluded.text, ends_at = excluded.ends_at",
            (name, text, ends_at),
        )
        return True

    def acquire(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Return true, since there is no other daemon."""
        return _at_once(True)

    def release(self, work: Key) -> Deferred[None]:
        """Do nothing, since a claim has no effect."""
        return _at_once(None)


def _at_once(result: Result) -> Deferred[Result]:
    # Imported here: the writer's process loads this module and does not need Twisted.
    from twisted.internet.defer import succeed

    return succeed(result)


class SqlSelectors(Store):
    """Implements `SelectorStore` on any engine."""

    @write
    def note_selectors(self, transaction: Transaction, pairs: Sequence[tuple[str, str]]) -> bool:
        """Record domains and selectors, oldest first."""
        transaction.lock(SELECTORS_LOCK)
        ((newest,),) = transaction.rows("SELECT COALESCE(MAX(number), 0) FROM known_selector")
        numbers = {pair: number for number, pair in enumerate(pairs, newest + 1)}
        transaction.execute_over(
            "INSERT INTO known_selector (domain, selector, number) {rows} "
            "ON CONFLICT (domain, selector) DO UPDATE SET number = excluded.number",
            [(*pair, number) for pair, number in numbers.items()],
        )
        transaction.execute_over(
            _DROP_OLD, [(domain, KNOWN_SELECTORS) for domain in {*dict(pairs)}]
        )
        # The total number is limited, over all domains.
        transaction.execute(
            "DELETE FROM known_selector WHERE number <= "
            "(SELECT number FROM known_selector ORDER BY number DESC LIMIT 1 OFFSET ?)",
            (KNOWN_DOMAINS,),
        )
        return True

    @read
    def selectors_of(self, transaction: Transaction, domain: str) -> tuple[str, ...]:
        """Return the selectors of a domain, newest first."""
        rows = transaction.rows(
            "SELECT selector FROM known_selector WHERE domain = ? ORDER BY number DESC",
            (domain,),
        )
        return tuple(row.selector for row in rows)


_KNOWN_COUNTS = """
    SELECT subject, window_name, window_index, requests FROM request_count
    WHERE subject IN ({rows})
"""

_Counts = dict[tuple[str, str, int], int]


def _read_counts(transaction: Transaction, hits: Sequence[Hit]) -> _Counts:
    """Return the counts of the subjects, by window and its index."""
    rows = transaction.rows_over(_KNOWN_COUNTS, [(name,) for name in {hit.subject for hit in hits}])
    return {(row.subject, row.window_name, row.window_index): row.requests for row in rows}


def _counts_with(known: _Counts, hit: Hit) -> list[int]:
    """Return the counts including this hit."""
    return [
        known.get((hit.subject, window.name, index), 0) + hit.amount
        for window, index, _ in hit.windows
    ]
