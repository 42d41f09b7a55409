"""``mailcheck dmarc|tls-report FILE``: read reports from receivers, without a daemon.

``mailcheck dmarc plan DOMAIN`` asks a daemon, which has the reports of a domain.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from mailcheck.api.domains.receiver_reports import (
    RefusedFile,
    render_dmarc_files,
    render_split,
    render_tls_files,
)
from mailcheck.api.requests.checks import DEFAULT_REPORT_DAYS, MOST_REPORT_DAYS
from mailcheck.api.shapes import as_json
from mailcheck.assembly.checks import open_resolvers
from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.overview import OverviewRequest, overview_of
from mailcheck.checks.receiver_reports.reading import RejectedDocument, read_report_files
from mailcheck.checks.receiver_reports.senders import (
    Cause,
    ReportedRow,
    pack_row,
    pack_rows,
    rows_of_report,
)
from mailcheck.checks.receiver_reports.tls import TlsReport, explain_failure
from mailcheck.cli.access.daemon_access import add_daemon_options, run_on_daemon
from mailcheck.cli.access.reactor_commands import CountedLookups, on_reactor
from mailcheck.cli.commands import BLUE, BOLD, GREEN, RED, YELLOW, Console, Line, Painted
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE
from mailcheck.cli.parser import whole_number
from mailcheck.cli.reports_commands import describe_numbers, plan_policy
from mailcheck.core.domains.receiver_reports import MIN_DAYS
from mailcheck.core.errors import ReportRefused
from mailcheck.core.instants import DAY, Instant, format_instant
from mailcheck.daemon.wall_clock import of_the_system
from mailcheck.operations.reports.summarize_senders import (
    ShownOverview,
    ShownSender,
    SummarizeSenders,
    show_sender,
)
from mailcheck.workers.scheduling import DirectWorker

MOST_LARGE = 64 * 1024 * 1024
"""Maximum size of a file in octets. Reports and their mails are smaller."""

_EPILOG = (
    "A FILE is a report as it was sent (zip, gzip, XML or JSON), the whole mail, or an mbox"
    " file. Exit status: 0 fine, 1 some mail failed, 2 a file is not a report."
)


_A_REPORT = "a report; - reads stdin"


def add_dmarc(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck dmarc``."""
    _add(parser, f"{_A_REPORT}; or plan DOMAIN")
    parser.add_argument(
        "--offline", action="store_true", help="look up no names in DNS, and verify no records"
    )
    plan = parser.add_argument_group("plan DOMAIN")
    plan.description = (
        "Simulates the next DMARC policy on the reports that a daemon has counted. Exit status: 0"
        " safe to publish, 1 steps are missing, 3 the reports do not show enough."
    )
    plan.add_argument(
        "--days",
        type=whole_number(MIN_DAYS, MOST_REPORT_DAYS),
        default=DEFAULT_REPORT_DAYS,
        metavar="NUMBER",
        help=f"{MIN_DAYS} to {MOST_REPORT_DAYS} ({DEFAULT_REPORT_DAYS})",
    )
    for name, text in (
        ("--mine", "decide that this sender sends for you; may be repeated"),
        ("--not-mine", "decide that it does not; may be repeated"),
        ("--undecided", "take a decision back; may be repeated"),
    ):
        plan.add_argument(name, action="append", default=[], metavar="SENDER", help=text)
    add_daemon_options(plan)
    parser.set_defaults(command=_dmarc, work=_dmarc_online)


def add_tls_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck tls-report``."""
    _add(parser, _A_REPORT)
    parser.set_defaults(command=_tls_report)


def _add(parser: argparse.ArgumentParser, text: str) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("files", metavar="FILE", nargs="+", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")


class _Files(Struct):
    """The contents of the files."""

    dmarc: list[AggregateReport] = field(default_factory=list)
    tls: list[TlsReport] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)


def _read(names: Iterable[str]) -> _Files:
    found = _Files()
    for name in names:
        try:
            if name == "-":
                octets = sys.stdin.buffer.read(MOST_LARGE)
            else:
                with Path(name).open("rb") as file:
                    octets = file.read(MOST_LARGE)
            reports = read_report_files(octets, name)
        except ReportRefused as refusal:
            found.refused.append(RefusedFile(name, str(refusal)))
            continue
        except OSError as error:
            found.refused.append(RefusedFile(name, f"it cannot be read: {error.strerror}"))
            continue
        for report in reports:
            if isinstance(report, AggregateReport):
                found.dmarc.append(report)
            elif isinstance(report, RejectedDocument):
                found.refused.append(RefusedFile(name, report.why))
            else:
                found.tls.append(report)
    return found


def _end(found: _Files, console: Console, *, has_failures: bool) -> int:
    for file in found.refused:
        console.print_note(f"mailcheck: {file.file}: {file.reason}")
    if found.refused:
        return EXIT_USAGE
    return EXIT_PROBLEM if has_failures else EXIT_FINE


PLAN = "plan"
"""Word that names a plan instead of a file. A file with this name is `./plan`."""


def _dmarc(options: argparse.Namespace, console: Console) -> int:
    if options.files[0] == PLAN:
        return run_on_daemon(plan_policy, options, console)
    if not options.offline:
        return on_reactor(options, console)
    found = _read(options.files)
    shown = []
    for domain, (seen, policy) in _by_domain(found.dmarc).items():
        overview = overview_of(domain, seen, policy, {})
        senders = tuple(map(show_sender, overview.senders))
        shown.append(ShownOverview(overview, senders, len(senders)))
    return _say_dmarc(found, shown, options, console)


async def _dmarc_online(options: argparse.Namespace, console: Console, reactor: Any) -> int:
    found = _read(options.files)
    lookups = CountedLookups()
    console.progress.text = lookups.describe
    resolvers = open_resolvers(console.config, reactor, os.urandom, lookups.watch)
    try:
        summarizer = SummarizeSenders(DirectWorker(), resolvers.plain, None, of_the_system(reactor))
        shown = [
            await summarizer.summarize(
                OverviewRequest(domain, pack_rows(list(map(pack_row, seen))), policy)
            )
            for domain, (seen, policy) in _by_domain(found.dmarc).items()
        ]
    finally:
        await resolvers.close()
    return _say_dmarc(found, shown, options, console)


def _by_domain(reports: Iterable[AggregateReport]) -> dict[str, tuple[list[ReportedRow], str]]:
    """Return the rows of each domain, and the policy of its newest report."""
    found = {}
    for domain in dict.fromkeys(report.domain for report in reports):
        own = [report for report in reports if report.domain == domain]
        newest = max(own, key=lambda one: one.begins_at)
        seen = [seen for report in own for seen in rows_of_report(report, reporter_of(report))]
        found[domain] = seen, newest.policy.policy
    return found


def _say_dmarc(
    found: _Files,
    shown: Sequence[ShownOverview],
    options: argparse.Namespace,
    console: Console,
) -> int:
    found.refused += [
        RefusedFile(tls.report_id, "it is a TLS report; read it with mailcheck tls-report")
        for tls in found.tls
    ]
    if options.json:
        console.print_json(as_json(render_dmarc_files(found.dmarc, found.refused, shown)))
    else:
        for report in found.dmarc:
            for problem in report.problems:
                console.print_line(f"{reporter_of(report)}, report {report.report_id}: {problem}")
        console.print_lines(describe_overviews(shown))
    return _end(found, console, has_failures=any(overview.overview.failing for overview in shown))


def reporter_of(report: AggregateReport) -> str:
    """Return the reporter that a report names."""
    return report.organisation or report.email.rpartition("@")[2] or "unknown"


def describe_overviews(shown: Iterable[ShownOverview]) -> Iterator[Line]:
    """Yield the lines of overviews."""
    for overview in shown:
        known = overview.overview
        last = Instant(known.ends_at - DAY)
        days = f"{format_instant(known.begins_at)[:10]} to {format_instant(last)[:10]}"
        yield Painted(known.domain, BOLD), f"  {days}  policy {known.policy or 'unknown'}"
        reporters = ", ".join(list(known.reporters)[:10])
        yield f"  {known.messages} messages, {known.passing} pass; reported by {reporters}"
        yield f"  {describe_numbers(as_json(render_split(known.mail)))}"
        yield f"  p=reject would stop {known.stopped.total} of them"
        for sender in overview.senders:
            yield from _describe_sender(sender)


def _describe_sender(shown: ShownSender) -> Iterator[Line]:
    sender = shown.sender
    colours = {Cause.PASSES: GREEN, Cause.FORWARDED: BLUE}
    colour = colours.get(sender.cause, YELLOW if sender.is_known else RED)
    counts = f"{sender.failing} of {sender.messages} fail"
    yield ""
    yield "  ", Painted(sender.name, colour), f"  {counts}"
    yield f"    {shown.meaning}"
    if sender.failing:
        yield f"    {shown.fix}"
    if shown.record is not None:
        yield f"    {shown.record.name}  {shown.record.rdtype}  {shown.record.value}"
    for source in sender.sources[:3]:
        yield f"    from {source.address} {source.host}".rstrip()
    if sender.source_count > 3:
        yield f"    and {sender.source_count - 3} more addresses"


def _tls_report(options: argparse.Namespace, console: Console) -> int:
    found = _read(options.files)
    found.refused += [
        RefusedFile(report.report_id, "it is a DMARC report; read it with mailcheck dmarc")
        for report in found.dmarc
    ]
    if options.json:
        console.print_json(as_json(render_tls_files(found.tls, found.refused)))
    else:
        console.print_lines(_describe_tls(found.tls))
    failed = any(policy.failed for report in found.tls for policy in report.policies)
    return _end(found, console, has_failures=failed)


def _describe_tls(reports: Iterable[TlsReport]) -> Iterator[Line]:
    for report in reports:
        day = format_instant(report.begins_at)[:10]
        yield Painted(report.organisation or report.contact, BOLD), f"  {day}"
        yield from (f"  {problem}" for problem in report.problems)
        for policy in report.policies:
            colour = RED if policy.failed else GREEN
            counts = Painted(f"{policy.failed} failed", colour)
            yield f"  {policy.domain} ({policy.kind}): {policy.successful} encrypted, ", counts
            for failure in policy.failures:
                meaning, fix = explain_failure(failure.result)
                where = failure.receiving_host or failure.receiving_ip
                yield f"    {failure.sessions} {failure.result} {where}".rstrip()
                yield f"      {meaning} {fix}"
                if failure.reason:
                    yield f"      {failure.reason}"
