"""Measure DMARC reports: one with 10,000 rows, and the overview of 20,000 stored rows.

The report is compressed, attached to a mail, and read in a child process. The overview is made from
rows that all differ, and is computed in a child process too: the reactor only forwards them.

Run it with ``.venv/bin/python -m benchmarks.dmarc_reports`` (``--rows`` for another size). The
child process is the same that reads large mails in the daemon. The peer is the standard library's
parser, which builds a tree of the same document without reading values from it.

Targets: a report within 2 s, and an overview never blocks the reactor for more than 50 ms.
"""

import argparse
import statistics
import time
import zlib
from functools import partial
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from twisted.internet.defer import ensureDeferred
from twisted.internet.task import LoopingCall, react

from mailcheck.checks.receiver_reports.aggregate import (
    AggregateReport,
    PackedRow,
    ReportedRow,
    Row,
    Signature,
    SpfCheck,
    pack_row,
    pack_rows,
)
from mailcheck.checks.receiver_reports.overview import OverviewRequest, summarize_page
from mailcheck.checks.receiver_reports.reading import read_report_mail
from mailcheck.checks.receiver_reports.senders import find_addresses_to_resolve
from mailcheck.core.domains.receiver_reports import LARGEST_REPORT_PAGE
from mailcheck.core.instants import DAY, Instant
from mailcheck.workers.process import ProcessWorker
from tests.corpus.report_files import document, gzipped, report_mail

ROUNDS = 5
TARGET = 2.0
KEPT_ROWS = 20_000


def large_report(rows: int) -> bytes:
    """Return a report in which all rows differ."""
    text = document("microsoft.xml").decode()
    start, end = text.index("<record>"), text.index("</record>") + len("</record>")
    record = text[start:end]
    records = (
        record.replace("192.0.2.10", f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}") for n in range(rows)
    )
    return (text[:start] + "".join(records) + text[end:]).encode()


def kept_rows(number: int) -> list[PackedRow]:
    """Return stored rows with as many different addresses and with 200 services."""
    return [
        pack_row(
            ReportedRow(
                Row(
                    f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",
                    "none",
                    "fail",
                    "pass" if n % 3 == 0 else "fail",
                    "example.org",
                    "example.org",
                    (),
                    (Signature(f"mailer{n % 200}.example", "s1", "pass"),),
                    (SpfCheck("example.org", "mfrom", "softfail"),),
                ),
                1 + n % 7,
                f"receiver{n % 12}.example",
                Instant(0),
                Instant(DAY),
            )
        )
        for n in range(number)
    ]


async def measure_overview(reactor: Any, child: ProcessWorker) -> None:
    """Measure the overview, and for how long it blocks the reactor."""
    told = kept_rows(KEPT_ROWS)
    times, held = [], []
    moments: list[float] = []
    for _ in range(ROUNDS):
        moments.clear()
        ticking = LoopingCall(lambda: moments.append(time.perf_counter()))
        ticking.clock = reactor
        ended = ticking.start(0.001)
        began = time.perf_counter()
        packed = pack_rows(told)
        await child.run(partial(find_addresses_to_resolve, packed))
        span = (0, LARGEST_REPORT_PAGE)
        request = OverviewRequest("example.org", packed, "none", span=span)
        found, _ = await child.run(partial(summarize_page, request, {}))
        times.append(time.perf_counter() - began)
        moments.append(time.perf_counter())
        ticking.stop()
        await ended
        held.append(max(after - before for before, after in pairwise(moments)))
        assert found.messages == sum(one[1] for one in told)
    print(f"overview of {KEPT_ROWS} rows: median {statistics.median(times):.2f} s in a child")
    print(f"reactor held up: median {1000 * statistics.median(held):.0f} ms (target: 50 ms)")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    rows = parser.parse_args().rows
    report = large_report(rows)
    mail = report_mail(gzipped(report), "application/gzip", "report.xml.gz")
    print(f"{rows} rows, {len(report) / 2**20:.1f} MB, mail of {len(mail) / 2**10:.0f} KB")

    async def measure(reactor: Any) -> None:
        child = ProcessWorker(reactor, "large")
        await child.run(
            partial(read_report_mail, report_mail(document("google.xml"), "text/xml", "x"))
        )
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            (found,) = await child.run(partial(read_report_mail, mail))
            times.append(time.perf_counter() - began)
            assert isinstance(found, AggregateReport)
            assert len(found.rows) == rows + 1
        await measure_overview(reactor, child)
        await child.stop()
        print(f"in a child: median {statistics.median(times):.2f} s, worst {max(times):.2f} s")
        print(f"target: {TARGET:.0f} s")

    def tree() -> float:
        began = time.perf_counter()
        packed = gzipped(report)
        ElementTree.fromstring(zlib.decompress(packed, 31))
        return time.perf_counter() - began

    print(f"ElementTree alone: median {statistics.median(tree() for _ in range(ROUNDS)):.2f} s")
    react(lambda reactor: ensureDeferred(measure(reactor)))


if __name__ == "__main__":
    main()
