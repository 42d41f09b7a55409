"""Measure the import of reports, and the pages of a domain in an account with millions of rows.

Run it with ``.venv/bin/python -m benchmarks.report_import`` (needs Debian's package postgresql).
``--rows`` is the number of imported rows, ``--stored`` that of the rows for the pages, and
``--engine`` one of ``sqlite`` and ``postgresql``.

A real daemon gets reports of 50 rows over HTTP in parts of 500 files, as ``mailcheck reports
import`` sends them. CPU is that of all processes of the daemon and of the server. Then rows about
50 domains and 400 days are stored, and the summary, the plan and the list of reports are requested.

Targets: 5,000 rows a second of CPU on both engines, and 300 ms for the summary of a domain in an
account with 10,000,000 rows.
"""

import argparse
import gzip
import os
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.postgresql_intake import cpu_of, server_pids
from mailcheck.checks.receiver_reports.aggregate import Row, Signature, SpfCheck
from mailcheck.clients.mailcheck_client import Mailcheck
from mailcheck.core.domains.receiver_reports import ReportKind, ReportState
from mailcheck.core.instants import DAY, SECOND
from tests.corpus.report_files import document
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer, own_server

ROWS, STORED, OF_REPORT, PART, ROUNDS = 100_000, 10_000_000, 50, 500, 7
DOMAINS, DAYS = 50, 400
TEXT = document("microsoft.xml").decode()
START, END = TEXT.index("<record>"), TEXT.index("</record>") + len("</record>")
PIECE = 20_000


def make_report(number: int) -> bytes:
    """Return a packed report whose rows differ, about one of the domains."""
    record = TEXT[START:END]
    records = "".join(
        record.replace("192.0.2.10", f"10.{number >> 8 & 255}.{number & 255}.{row}")
        for row in range(OF_REPORT)
    )
    begin = time.time() // 86400 * 86400 - (2 + number // DOMAINS % 300) * 86400
    text = TEXT[:START] + records + TEXT[END:]
    text = re.sub(r"(?<=<begin>)[0-9]+", f"{begin:.0f}", text)
    text = re.sub(r"(?<=<end>)[0-9]+", f"{begin + 86399:.0f}", text)
    text = text.replace("example.org", f"domain{number % DOMAINS}.example")
    text = text.replace("<report_id>", f"<report_id>{number}-")
    return gzip.compress(text.encode(), 6)


def measure_import(name: str, daemon: Daemon, server: PostgresqlServer | None, rows: int) -> None:
    """Import reports, and print the rate."""
    client = Mailcheck(f"http://{HOST}:{daemon.http_port}", daemon.key)
    files = [(f"{number}.xml.gz", make_report(number)) for number in range(rows // OF_REPORT)]
    counted = 0

    def used() -> float:
        pids = daemon.pids() + ([] if server is None else server_pids(server))
        return cpu_of(pids)

    def bring(part: list[tuple[str, bytes]]) -> dict[str, Any]:
        return client.request("POST", "/reports/import", files=part, seconds=600)

    bring([("first.xml", document("google.xml"))])  # starts the child process
    before, began = used(), time.perf_counter()
    for start in range(0, len(files), PART):
        answer = bring(files[start : start + PART])
        assert answer["new"] == len(answer["files"]), answer["files"][0]
        counted += sum(file["rows"] for file in answer["files"])
    spent, took = used() - before, time.perf_counter() - began
    print(f"{name:10} {counted} rows: {counted / spent:6.0f} rows/s of CPU, {took:.0f} s elapsed")
    before = used()
    answer = bring(files[:PART])
    again = min(PART, len(files))
    assert answer["known"] == again
    known = again * OF_REPORT / (used() - before)
    print(f"{name:10} known again: {known:6.0f} rows/s of CPU")


def stored_rows(account_id: str, rows: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows of ``report_count``, the oldest day first."""
    encode = msgspec.json.Encoder().encode
    today = int(time.time() // 86400 * 86400) * SECOND
    of_day = rows // DAYS // DOMAINS
    for day in range(DAYS):
        begins_at = today - (DAYS - day) * DAY
        for domain in range(DOMAINS):
            name = f"domain{domain}.example"
            for number in range(of_day):
                passes = "pass" if number % 3 else "fail"
                result = encode(
                    Row(
                        f"10.{domain}.{number >> 8}.{number & 255}",
                        "none",
                        "fail",
                        passes,
                        name,
                        name,
                        (),
                        (Signature(f"mailer{number % 20}.example", "s1", "pass"),),
                        (SpfCheck(name, "mfrom", "softfail"),),
                    )
                ).decode()
                digest = f"{day:08x}{number:024x}"
                reporter = f"receiver{number % 12}.example"
                key = (account_id, ReportKind.DMARC.value, name, begins_at, digest)
                yield (*key, reporter, result, 1 + number % 7, 1)


REPORT_COLUMNS = (
    "id, account_id, kind, state, received_at, attempts, reason, domain, reporter, organisation,"
    " report_key, begins_at, ends_at, policy, messages, failing, problems, way, row_count"
)


def stored_reports(account_id: str, rows: int) -> Iterator[tuple[Any, ...]]:
    """Yield the reports of `stored_rows`: twelve for each domain and day."""
    today = int(time.time() // 86400 * 86400) * SECOND
    for day in range(DAYS):
        begins_at = today - (DAYS - day) * DAY
        for domain in range(DOMAINS):
            for receiver in range(12):
                yield (
                    *(f"s{day:04d}-{domain:03d}-{receiver:02d}", account_id, "dmarc"),
                    *(ReportState.COUNTED.value, begins_at + DAY, 0, ""),
                    *(f"domain{domain}.example", f"receiver{receiver}.example", "R"),
                    *(f"{day}-{receiver}", begins_at, begins_at + DAY - 1, "none"),
                    *(100, 30, "[]", "uploaded", rows // DAYS // DOMAINS // 12),
                )


def fill_sqlite(path: Path, rows: int) -> None:
    """Store rows while the daemon is stopped."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA cache_size = -400000")
        ((account_id,),) = database.execute("SELECT id FROM account LIMIT 1").fetchall()
        waiting = stored_rows(account_id, rows)
        columns = "account_id, kind, domain, day, digest, reporter, result, amount, is_imported"
        while piece := list(islice(waiting, PIECE)):
            with database:
                marks = ", ".join("?" * len(piece[0]))
                database.executemany(
                    f"INSERT INTO report_count ({columns}) VALUES ({marks})", piece
                )
        with database:
            marks = ", ".join("?" * 19)
            database.executemany(
                f"INSERT INTO receiver_report ({REPORT_COLUMNS}) VALUES ({marks})",
                stored_reports(account_id, rows),
            )


def measure_pages(name: str, daemon: Daemon) -> None:
    """Print how long the answers about a domain take."""
    client = Mailcheck(f"http://{HOST}:{daemon.http_port}", daemon.key)
    for days in (30, 90, 400):
        for path, asked in (
            ("/reports/dmarc", {"domain": "domain7.example", "days": days}),
            ("/reports/dmarc/plan", {"domain": "domain7.example", "days": days}),
            ("/reports", {"limit": 50}),
        ):
            if path == "/reports" and days != 30:
                continue
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                client.request("GET", path, asked, seconds=120)
                times.append(1e3 * (time.perf_counter() - began))
            shown = f"{path} of {days} days"
            print(f"{name:10} {shown:32} {statistics.median(times):6.0f} ms", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--stored", type=int, default=STORED)
    parser.add_argument("--engine", choices=("sqlite", "postgresql"))
    options = parser.parse_args()
    os.environ.setdefault("PYTHONHASHSEED", "0")
    with tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if options.engine != "postgresql":
            path = folder / "reports.db"
            with running_daemon(folder / "sqlite", storage_url=f"sqlite:{path}") as daemon:
                measure_import("SQLite", daemon, None, options.rows)
                if options.stored:
                    daemon.stop()
                    fill_sqlite(path, options.stored)
                    size = path.stat().st_size
                    print(f"SQLite     {options.stored} rows take {size / 2**20:.0f} MiB")
                    daemon.start()
                    measure_pages("SQLite", daemon)
        if options.engine != "sqlite":
            with own_server(folder / "server") as server:
                url = server.make_database("reports")
                with running_daemon(folder / "postgresql", storage_url=url) as daemon:
                    measure_import("PostgreSQL", daemon, server, options.rows)


if __name__ == "__main__":
    main()
