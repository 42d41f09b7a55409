"""``mailcheck reports`` and ``mailcheck dmarc plan``: the reports that a daemon has received."""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from mailcheck.cli.access.daemon_access import set_daemon_command
from mailcheck.cli.commands import BOLD, GREEN, RED, YELLOW, Console, Line, Painted, whole_id
from mailcheck.cli.exit_statuses import (
    EXIT_FINE,
    EXIT_PROBLEM,
    EXIT_UNDETERMINED,
    EXIT_USAGE,
)
from mailcheck.cli.parser import whole_number
from mailcheck.clients.mailcheck_client import LARGEST_PAGE, Mailcheck
from mailcheck.core.domains.receiver_reports import ReportKind
from mailcheck.core.identifiers import SHORT_ID_LENGTH

KINDS = [kind.value for kind in ReportKind]


_STATUSES = {
    "safe": EXIT_FINE,
    "enforced": EXIT_FINE,
    "steps": EXIT_PROBLEM,
    "undetermined": EXIT_UNDETERMINED,
}


def add_reports_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``mailcheck reports``."""
    parts = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listed = parts.add_parser("list", help="list the newest reports, including uncounted ones")
    listed.add_argument(
        "--limit",
        type=whole_number(1, LARGEST_PAGE),
        default=20,
        metavar="NUMBER",
        help=f"1 to {LARGEST_PAGE} (20)",
    )
    listed.add_argument("--kind", choices=KINDS, help="only reports of this kind")
    delete = parts.add_parser(
        "delete", help="delete reports with the rows they count: by id, by reporter or by day"
    )
    delete.add_argument("ids", nargs="*", metavar="ID", help="as `mailcheck reports list` shows it")
    delete.add_argument("--reporter", metavar="DOMAIN", help="all reports of this reporter")
    delete.add_argument("--day", metavar="DATE", help="all reports about this day, like 2026-11-19")
    for part, do in ((listed, list_reports), (delete, delete_reports)):
        set_daemon_command(part, do)
        part.add_argument("--json", action="store_true", help="print JSON, as the API returns it")


def list_reports(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck reports list``: print a line for each report."""
    kind = {} if options.kind is None else {"kind": options.kind}
    found = daemon.request("GET", "/reports", {"limit": options.limit, **kind})
    if options.json:
        console.print_line(json.dumps(found))
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
        counts = f"{_count(report['messages'], 'message')}, {report['failing']} fail"
        console.print_line("  ".join(filter(None, (*facts, counts, report["reason"]))))
        if "letter" in report:
            console.print_lines(_describe_letter(report["letter"]))
    return EXIT_FINE


def _describe_letter(letter: dict[str, Any]) -> Iterator[Line]:
    """Yield the lines of a mail that is not a report, such as one that confirms the address."""
    yield f"    {letter['author']}: {letter['subject']}"
    for line in letter["text"].splitlines():
        yield f"    {line}"
    for url in letter["links"]:
        yield f"    {url}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def delete_reports(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck reports delete``: by ids, or all of a reporter, of a day, or of both."""
    chosen = {"reporter": options.reporter, "day": options.day}
    asked = {name: value for name, value in chosen.items() if value is not None}
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
    if options.json:
        console.print_line(json.dumps({"success": True, "deleted": deleted}))
    else:
        console.print_note(f"deleted: {deleted}")
    return EXIT_FINE


def plan_policy(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
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
    if options.json:
        console.print_line(json.dumps(plan))
    else:
        console.print_lines(describe_plan(plan))
    return _STATUSES[plan["state"]]


def describe_plan(plan: dict[str, Any]) -> Iterator[Line]:
    """Yield the lines of a plan: the simulations, the missing steps, and the result."""
    policy, following = plan["policy"] or "unknown", plan["nextPolicy"]
    yield (
        Painted(plan["domain"], BOLD),
        f"  policy {policy}" + (f", next {following}" if following else ""),
    )
    if plan["firstDay"]:
        yield (
            f"  {_count(plan['messages'], 'message')}, {plan['failing']} fail, in reports about"
            f" {_count(plan['daysWithReports'], 'day')} from {plan['firstDay']} to"
            f" {plan['lastDay']}"
        )
        for one in plan["simulations"]:
            yield (f"  p={one['policy']} would have stopped {describe_numbers(one['stopped'])}")
    for number, step in enumerate(plan["steps"], 1):
        yield ""
        yield from _describe_step(plan["domain"], number, step)
    yield ""
    yield from (("  ", Painted(doubt, YELLOW)) for doubt in plan["doubts"])
    yield from _describe_result(plan)


def describe_numbers(numbers: Mapping[str, int]) -> str:
    """Return numbers with their names: ``40 yours, 2 unknown``."""
    return ", ".join(f"{number} {name}" for name, number in numbers.items())


_TITLES = {
    "request-reports": "Request reports",
    "repair": "Repair the DMARC record",
    "decide": "Decide about {name}",
    "set-up": "Set up {name}",
    "sign": "Turn on DKIM for {name}",
}


def _describe_step(domain: str, number: int, step: dict[str, Any]) -> Iterator[Line]:
    title = _TITLES[step["kind"]].format(name=step["name"] or "unknown senders")
    count = f": {_count(step['messages'], 'message')}" if step["messages"] else ""
    yield f"  {number}. ", Painted(title, BOLD), count
    yield f"     {step['meaning']}"
    yield f"     {step['fix']}"
    for record in (*step["records"], *step["patterns"]):
        yield f"     {record['name']}  {record['type']}  {record['value']}"
    if "guide" in step:
        yield f"     {step['guide']}"
    if step["kind"] == "decide":
        for option in ("mine", "not-mine"):
            yield f"     mailcheck dmarc plan {domain} --{option} {step['sender']}"


def _describe_result(plan: dict[str, Any]) -> Iterator[Line]:
    if plan["state"] == "safe":
        record = plan["record"]
        yield "  ", Painted("Safe to publish:", GREEN)
        yield f"  {record['name']}  {record['type']}  {record['value']}"
    elif plan["state"] == "enforced":
        yield (
            "  ",
            Painted("The domain has the strictest policy, and none of your mail fails.", GREEN),
        )
    elif plan["state"] == "steps":
        number = len(plan["steps"])
        steps = "1 step is" if number == 1 else f"{number} steps are"
        yield "  ", Painted(f"Not safe yet: {steps} missing.", RED)
    else:
        yield "  ", Painted("Could not be determined.", YELLOW)
