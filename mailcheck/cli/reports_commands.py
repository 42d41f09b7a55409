"""``mailcheck reports``: the reports that a daemon has received for an account."""

import argparse
import json
from urllib.parse import quote

from mailcheck.cli.commands import Console
from mailcheck.cli.daemon_access import set_daemon_command
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_USAGE
from mailcheck.clients.mailcheck_client import LARGEST_PAGE, Mailcheck


def add_reports_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``mailcheck reports``."""
    parts = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listed = parts.add_parser("list", help="list the newest reports, including uncounted ones")
    listed.add_argument(
        "--limit", type=int, default=20, metavar="NUMBER", help=f"1 to {LARGEST_PAGE} (20)"
    )
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
    found = daemon.request("GET", "/reports", {"limit": options.limit})
    if options.json:
        console.print_line(json.dumps(found))
        return EXIT_FINE
    for one in found["reports"]:
        day = (one["beginsAt"] or one["receivedAt"])[:10]
        facts = (one["id"], day, one["kind"], one["state"], one["reporter"] or "-", one["domain"])
        counts = f"{one['messages']} messages, {one['failing']} fail"
        console.print_line("  ".join(filter(None, (*facts, counts, one["reason"]))))
    return EXIT_FINE


def delete_reports(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck reports delete``: by ids, or all of a reporter, of a day, or of both."""
    chosen = {"reporter": options.reporter, "day": options.day}
    asked = {name: value for name, value in chosen.items() if value is not None}
    if bool(options.ids) is bool(asked):
        console.print_note(
            "mailcheck: name the reports to delete: ids, or --reporter DOMAIN, --day DATE"
        )
        return EXIT_USAGE
    for one in options.ids:
        daemon.request("DELETE", f"/reports/{quote(one, safe='')}")
    deleted = len(options.ids)
    if asked:
        deleted = daemon.request("DELETE", "/reports", asked)["deleted"]
    if options.json:
        console.print_line(json.dumps({"success": True, "deleted": deleted}))
    else:
        console.print_note(f"deleted: {deleted}")
    return EXIT_FINE
