"""A house that receives DMARC and TLS reports."""

from typing import Any

import msgspec
from msgspec.structs import replace

from mailcheck.checks.receiver_reports.aggregate_xml import parse_aggregate_report
from mailcheck.config.options import Config
from mailcheck.core.domains.receiver_reports import (
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportState,
    day_of,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, SECOND, Instant
from mailcheck.ports.workers import Lease
from mailcheck.store.domains.report_store import CountedRow
from tests.fakes.dmarc_year import RECEIVER, Year
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.report_senders import DOMAIN, ask_for_reports
from tests.house import House, result_of, run
from tests.web.checking import checking_house


def reporting_house(zone: MemoryZone, config: Config | None = None) -> House:
    """Create a house that receives reports; the domain requests them for its first account."""
    house = checking_house(zone, config)
    ask_for_reports(zone, address(house))
    run(house.assembly.reports.runner.start())
    return house


def address(house: House, kind: str = "dmarc") -> str:
    """Return the address for reports of the first account."""
    return str(house.get("/reports").json["addresses"][kind])


def post_path(house: House) -> str:
    """Return the path to which TLS reports for the first account are posted."""
    return "/" + str(house.get("/reports").json["addresses"]["tlsUrl"]).split("/", 3)[3]


def send(house: House, raw: bytes, kind: str = "dmarc") -> None:
    """Deliver a report by mail."""
    house.receive(address(house, kind), raw=raw, sender="")
    house.pass_time(0)


def store_report(house: House, name: str, **facts: object) -> ReceiverReport:
    """Store a counted report without its rows, as an earlier version may have left it."""
    reports, now = house.assembly.reports.store, Instant(1_795_100_000_000)
    account_id = house.account.id
    waiting = ReceiverReport(ReportId(name), account_id, ReportKind.TLS, ReportState.WAITING, now)
    result_of(reports.post(waiting, b"{}"))
    lease = Lease("this daemon", Instant(now + 1_000))
    claimed = result_of(reports.claim(lease, now))
    known = {
        "state": ReportState.COUNTED,
        "domain": DOMAIN,
        "reporter": "google.com",
        "report_id": name,
        "begins_at": Instant(now - now % DAY),
        "ends_at": Instant(now - now % DAY + DAY),
    }
    changes: dict[str, Any] = {**known, **facts}
    report = replace(waiting, id=ReportId(f"{name}-counted"), **changes)
    assert result_of(reports.finish(claimed.id, lease.holder, [report]))
    return report


def count_days(house: House, year: Year, days: int, account_id: AccountId | None = None) -> None:
    """Let days pass, and count the report about each of them."""
    rows = []
    for _ in range(days):
        begins_at = Instant(house.assembly.runtime.now())
        report = parse_aggregate_report(year.report(begins_at))
        house.clock.advance(DAY // SECOND)
        for row, amount in report.rows.items():
            result = msgspec.json.encode(row).decode()
            rows.append(
                CountedRow(
                    account_id or house.account.id,
                    ReportKind.DMARC,
                    report.domain,
                    day_of(report.begins_at),
                    f"{report.report_id} {result}",
                    RECEIVER,
                    result,
                    amount,
                )
            )
    count_rows(house, rows)


def count_rows(house: House, rows: list[CountedRow]) -> None:
    """Store rows, as an earlier version may have left them."""
    result_of(house.assembly.reports.store.count(rows))
