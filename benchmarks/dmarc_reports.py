"""How long a DMARC report with 10,000 rows takes: packed, in a mail, read in a child process.

Run it with ``.venv/bin/python -m benchmarks.dmarc_reports`` (``--rows`` for another size). The
child is the one that reads large mails in the daemon. The peer is the standard library's parser,
which builds a tree of the same document and reads nothing from it.

Target: within 2 s.
"""

import argparse
import statistics
import time
import zlib
from functools import partial
from typing import Any
from xml.etree import ElementTree

from twisted.internet.defer import ensureDeferred
from twisted.internet.task import react

from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.operations.in_children import read_report_mail
from mailcheck.workers.process import ProcessWorker
from tests.corpus.report_files import document, gzipped, report_mail

ROUNDS = 5
TARGET = 2.0


def large_report(rows: int) -> bytes:
    """Write a report in which no row is like another."""
    text = document("microsoft.xml").decode()
    start, end = text.index("<record>"), text.index("</record>") + len("</record>")
    record = text[start:end]
    records = (
        record.replace("192.0.2.10", f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}") for n in range(rows)
    )
    return (text[:start] + "".join(records) + text[end:]).encode()


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
