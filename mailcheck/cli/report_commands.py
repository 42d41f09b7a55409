"""``mailcheck dmarc|tls-report FILE`` and ``mailcheck reports``: reports from receivers.

Files are read without a daemon. ``reports`` and ``dmarc plan DOMAIN`` ask a daemon, which has the
reports that it has received.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct, field

from mailcheck.api.domains.report_overviews import RefusedFile, render_dmarc_files, render_tls_files
from mailcheck.api.requests.checks import DEFAULT_REPORT_DAYS, MOST_REPORT_DAYS
from mailcheck.api.shapes import as_json
from mailcheck.assembly.checks import open_resolvers
from mailcheck.checks.receiver_reports.aggregate import (
    AggregateReport,
    ReportedRow,
    pack_row,
    pack_rows,
    rows_of_report,
)
from mailcheck.checks.receiver_reports.overview import OverviewRequest, overview_of
from mailcheck.checks.receiver_reports.reading import RejectedDocument, read_report_files
from mailcheck.checks.receiver_reports.tls import TlsReport
from mailcheck.cli.access.daemon_access import (
    add_daemon_command,
    add_daemon_options,
    run_on_daemon,
)
from mailcheck.cli.access.reactor_commands import CountedLookups, on_reactor
from mailcheck.cli.commands import Console, fields_of, whole_id
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.cli.parser import Parser, whole_number
from mailcheck.cli.report_files import find_files, make_parts
from mailcheck.cli.texts.report_texts import (
    count,
    describe_letter,
    describe_overviews,
    describe_plan,
    describe_tls,
    reporter_of,
)
from mailcheck.clients.mailcheck_client import LARGEST_PAGE, Mailcheck, Unreachable
from mailcheck.core.domains.receiver_reports import MIN_DAYS, ReportKind
from mailcheck.core.errors import ReportRefused
from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.daemon.wall_clock import of_the_system
from mailcheck.operations.reports.summarize_senders import (
    ShownOverview,
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

_IMPORT_EPILOG = (
    "A PATH is a DMARC, TLS or failure report (XML, JSON, gzip or zip), a mail with reports, an"
    " mbox file, a zip file of many, a Maildir, or a folder with such files. A report that is known"
    " changes nothing, so an import may be repeated. Exit status: 0 fine, 1 some files were"
    " rejected."
)

RESTART = 60.0
"""Seconds for which an import waits for a daemon that cannot be reached, such as one that is being
restarted."""

LONGEST_PART = 600.0
"""Seconds that the daemon may need for a part of an import."""

_A_REPORT = "a report; - reads stdin"

PLAN = "plan"
"""Word that names a plan instead of a file. A file with this name is `./plan`."""

_STATUSES = {
    "safe": EXIT_FINE,
    "enforced": EXIT_FINE,
    "steps": EXIT_PROBLEM,
    "undetermined": EXIT_UNDETERMINED,
}


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
    add_daemon_options(parser)
    parser.set_defaults(command=_dmarc, work=_dmarc_online)


def add_tls_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck tls-report``."""
    _add(parser, _A_REPORT)
    parser.set_defaults(command=_tls_report)


def add_reports(parser: Parser) -> None:
    """Add the commands of ``mailcheck reports``."""
    listed = add_daemon_command(
        parser, "list", "list the newest reports, including uncounted ones", _list_reports
    )
    listed.add_argument(
        "--limit",
        type=whole_number(1, LARGEST_PAGE),
        default=20,
        metavar="NUMBER",
        help=f"1 to {LARGEST_PAGE} (20)",
    )
    listed.add_argument(
        "--kind", choices=[kind.value for kind in ReportKind], help="only reports of this kind"
    )
    delete = add_daemon_command(
        parser,
        "delete",
        "delete reports with the rows they count: by id, by reporter or by day",
        _delete_reports,
    )
    delete.add_argument("ids", nargs="*", metavar="ID", help="as `mailcheck reports list` shows it")
    delete.add_argument("--reporter", metavar="DOMAIN", help="all reports of this reporter")
    delete.add_argument("--day", metavar="DATE", help="all reports about this day, like 2026-11-19")
    imported = add_daemon_command(
        parser,
        "import",
        "import the reports that you already have: files, archives, mailboxes and folders",
        _import_reports,
    )
    imported.epilog = _IMPORT_EPILOG
    imported.add_argument("paths", nargs="+", metavar="PATH", help="file or folder; - reads stdin")


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


def _dmarc(options: argparse.Namespace, console: Console) -> int:
    if options.files[0] == PLAN:
        return run_on_daemon(_plan_policy, options, console)
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
        newest = max(own, key=lambda report: report.begins_at)
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


def _tls_report(options: argparse.Namespace, console: Console) -> int:
    found = _read(options.files)
    found.refused += [
        RefusedFile(report.report_id, "it is a DMARC report; read it with mailcheck dmarc")
        for report in found.dmarc
    ]
    if options.json:
        console.print_json(as_json(render_tls_files(found.tls, found.refused)))
    else:
        console.print_lines(describe_tls(found.tls))
    failed = any(policy.failed for report in found.tls for policy in report.policies)
    return _end(found, console, has_failures=failed)


def _plan_policy(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck dmarc plan DOMAIN``: store the given decisions, and print the plan."""
    if len(options.files) != 2:
        console.print_note("mailcheck: name one domain: mailcheck dmarc plan DOMAIN")
        return EXIT_USAGE
    domain = options.files[1]
    decided = {"mine": options.mine, "not-mine": options.not_mine, "undecided": options.undecided}
    for decision, senders in decided.items():
        for sender in senders:
            body = {"domain": domain, "sender": sender, "decision": decision}
            daemon.request("POST", "/reports/dmarc/senders", body=body)
    plan = daemon.request("GET", "/reports/dmarc/plan", {"domain": domain, "days": options.days})
    if not console.print_answer(plan):
        console.print_lines(describe_plan(plan))
    return _STATUSES[plan["state"]]


def _list_reports(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck reports list``: print a line for each report."""
    query = {"limit": options.limit, "kind": options.kind}
    found = daemon.request("GET", "/reports", query)
    if console.print_answer(found):
        return EXIT_FINE
    of_kind = "" if options.kind is None else f"{options.kind} "
    console.explain_empty(
        found["reports"],
        f"no {of_kind}reports yet: `mailcheck dmarc plan DOMAIN` says which record requests them",
    )
    for report in found["reports"]:
        day = (report["beginsAt"] or report["receivedAt"])[:10]
        facts = (
            report["id"],
            day,
            report["kind"],
            report["state"],
            report["reporter"] or "-",
            report["domain"],
        )
        counts = f"{count(report['messages'], 'message')}, {report['failing']} fail"
        way = "" if report["way"] == "received" else report["way"]
        console.print_words((*facts, counts, way, report["reason"]))
        if "letter" in report:
            console.print_lines(describe_letter(report["letter"]))
    return EXIT_FINE


def _import_reports(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck reports import``: send files in parts, and print what was rejected."""
    missing = [path for path in options.paths if path != "-" and not Path(path).exists()]
    if missing:
        console.print_note(f"mailcheck: {missing[0]} does not exist")
        return EXIT_USAGE
    counts: Counter[str] = Counter()
    files: list[dict[str, Any]] = []
    for part in make_parts(find_files(options.paths)):
        outcomes = [
            {"file": file.name, "outcome": "rejected", "reason": file.why}
            for file in part
            if file.why
        ]
        given = [(file.name, file.data) for file in part if not file.why]
        outcomes += _send_part(daemon, given) if given else []
        for outcome in outcomes:
            counts[outcome["outcome"]] += 1
            if outcome["outcome"] == "rejected" and not options.json:
                console.print_line(f"{outcome['file']}: {outcome['reason']}")
        files += outcomes if options.json else []
        console.progress.text = f"importing: {_describe_counts(counts)}"
    sums = {name: counts[name] for name in ("new", "known", "rejected")}
    if not console.print_answer({**sums, "files": files}):
        console.print_note(_describe_counts(counts))
    return EXIT_PROBLEM if counts["rejected"] else EXIT_FINE


def _describe_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in ("new", "known", "rejected"))


def _send_part(daemon: Mailcheck, files: Sequence[tuple[str, bytes]]) -> list[dict[str, Any]]:
    """Send files, and wait for a daemon that is being restarted. What it has stored is known."""
    began = time.monotonic()
    while True:
        try:
            answer = daemon.request(
                "POST", "/reports/import", files=files, patience=RESTART, seconds=LONGEST_PART
            )
            return list(answer["files"])
        except Unreachable:
            if time.monotonic() - began > RESTART:
                raise
            time.sleep(1.0)


def _delete_reports(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck reports delete``: by ids, or all of a reporter, of a day, or of both."""
    asked = fields_of(options, "reporter", "day")
    if bool(options.ids) is bool(asked):
        console.print_note(
            "mailcheck: name the reports to delete: ids, or --reporter DOMAIN, --day DATE"
        )
        return EXIT_USAGE
    known: list[str] = []
    if any(len(beginning_of_id) < SHORT_ID_LENGTH for beginning_of_id in options.ids):
        known = [
            report["id"] for report in daemon.request("GET", "/reports", {"limit": 100})["reports"]
        ]
    for whole in [whole_id(beginning, known, "report") for beginning in options.ids]:
        daemon.request("DELETE", f"/reports/{quote(whole, safe='')}")
    deleted = len(options.ids)
    if asked:
        deleted = daemon.request("DELETE", "/reports", asked)["deleted"]
    if not console.print_answer({"success": True, "deleted": deleted}):
        console.print_note(f"deleted: {deleted}")
    return EXIT_FINE
