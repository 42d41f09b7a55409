"""Measure the list of reports with 300,000 complaints, on SQLite and on PostgreSQL.

Run it with ``.venv/bin/python -m benchmarks.report_list`` (``--reports`` for another number; needs
Debian's package postgresql). The reports are about ten domains, from twelve reporters, as feedback
loops send them in a year. Each line is one method of the store behind ``GET /reports`` and the page
*Reports*. There is no peer: no other self-hosted tool stores complaints.

Target: 300 ms for each method.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from mailcheck.core.domains.receiver_reports import (
    LARGEST_REPORT_PAGE,
    Feedback,
    FeedbackType,
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportState,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.mail_delivery import report_row
from mailcheck.store.transactions import Store, insert, write
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import account, noted
from tests.house import result_of
from tests.servers.postgresql import own_server

ANN = AccountId("ann")
REPORTS, PIECE, ROUNDS = 300_000, 5_000, 7
BEGAN = Instant(1_790_000_000_000)


class Filling(Store):
    """Adds counted reports in large pieces."""

    @write
    def add(self, transaction: Transaction, first: int, last: int) -> None:
        """Add the complaints with these numbers."""
        rows = [report_row(complaint(number)) for number in range(first, last)]
        insert(transaction, "receiver_report", rows)


def complaint(number: int) -> ReceiverReport:
    """Return a counted complaint."""
    domain = f"shop{number % 10}.example"
    arrived_at = Instant(BEGAN + number * MINUTE)
    return ReceiverReport(
        ReportId(f"{number:08d}"),
        ANN,
        ReportKind.COMPLAINT,
        ReportState.COUNTED,
        arrived_at,
        domain=domain,
        reporter=f"receiver{number % 12}.example",
        organisation="Yahoo!-Mail-Feedback/2.0",
        report_id=f"{number:032x}",
        begins_at=arrived_at,
        ends_at=arrived_at,
        messages=1,
        feedback=Feedback(
            FeedbackType.ABUSE,
            source=f"192.0.2.{number % 200}",
            author_domain=domain,
            envelope_domain=f"bounce.{domain}",
            signing_domain=domain,
            selector="s1",
            campaign=f"campaign{number % 500}",
            campaign_field="Feedback-ID",
            results=("dkim=pass", "spf=pass"),
            arrived_at=arrived_at,
        ),
    )


def measure(name: str, engine: DatabaseEngine, reports: int) -> None:
    """Fill the database of an engine, and print how long each method takes."""
    engine.open()
    result_of(AccountStore(engine).add_account(account("ann"), noted()))
    filling, store = Filling(engine), ReportStore(engine)
    for first in range(0, reports, PIECE):
        result_of(filling.add(first, min(first + PIECE, reports)))
    methods: list[tuple[str, Callable[[], Deferred[Any]]]] = [
        ("domains", lambda: store.domains(ANN)),
        ("sources", lambda: store.sources(ANN)),
        ("newest", lambda: store.of_account(ANN, LARGEST_REPORT_PAGE, 0)),
        ("complaints", lambda: store.of_account(ANN, LARGEST_REPORT_PAGE, 0, ReportKind.COMPLAINT)),
        ("feedback", lambda: store.feedback(ANN, "shop1.example", _since(reports), 50, 0)),
    ]
    for label, method in methods:
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            result_of(method())
            times.append(1e3 * (time.perf_counter() - began))
        print(f"{name:10} {label:10} {statistics.median(times):7.0f} ms")
    engine.close()


def _since(reports: int) -> Instant:
    return Instant(BEGAN + reports * MINUTE - 30 * DAY)


def main() -> None:
    """Measure both databases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS)
    reports = parser.parse_args().reports
    worker = DirectWorker()
    with tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        measure("SQLite", SqliteEngine(str(folder / "list.db"), worker, worker), reports)
        with own_server(folder / "server") as server:
            url = server.make_database("list")
            measure("PostgreSQL", PostgresqlEngine(url, worker, worker), reports)


if __name__ == "__main__":
    main()
