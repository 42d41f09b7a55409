"""``mailcheck test``: run a deliverability test with a daemon, and print its report."""

import argparse
import json
import time
from typing import Any
from urllib.parse import quote

from mailcheck.cli.access.daemon_access import command_line, set_daemon_command
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED
from mailcheck.cli.inbox_commands import mail_server
from mailcheck.cli.parser import decimal_number
from mailcheck.cli.score_commands import EXIT_STATUSES, add_report_options, judge_report
from mailcheck.cli.texts.score_texts import Shape, describe_report
from mailcheck.clients.mailcheck_client import Mailcheck, MailcheckError

POLL = 10
"""Seconds of one request while waiting. The progress line is updated at least that often."""

LONGEST = 3600.0
"""Seconds for which an address accepts mail."""


def add_test(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck test``."""
    parser.epilog = EXIT_STATUSES + " Status 1 also means that no mail arrived."
    set_daemon_command(parser, run_deliverability)
    parser.add_argument("--id", help="continue this test instead of creating one")
    parser.add_argument(
        "--delete", metavar="ID", help="delete a test with its report and its mail, and exit"
    )
    parser.add_argument(
        "--no-wait", action="store_true", help="only print the address, and exit; see --id"
    )
    parser.add_argument(
        "--timeout",
        type=decimal_number(1, LONGEST),
        default=LONGEST,
        metavar="SECONDS",
        help="give up after this time (default: an hour, as long as the address is valid)",
    )
    add_report_options(parser)


def run_deliverability(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck test``."""
    test_id = options.id
    try:
        if options.delete is not None:
            daemon.request("DELETE", f"/test/{quote(options.delete, safe='')}")
            console.print_note(f"deleted test {options.delete}, its report and its mail")
            return EXIT_FINE
        if test_id is None:
            made = daemon.request("POST", "/test/generate")
            test_id = made["testId"]
            _tell(made, daemon, options, console)
        if options.no_wait:
            return EXIT_FINE
        found = _wait(daemon, test_id, options.timeout, console)
    except KeyboardInterrupt:
        console.print_note("")
        if test_id is not None:
            console.print_note(f"the address stays valid; continue: {_again(test_id, options)}")
        return EXIT_UNDETERMINED
    return _print(found, options, console)


def _again(test_id: str, options: argparse.Namespace) -> str:
    return command_line(options, "test", "--id", test_id)


def _tell(made: Shape, daemon: Mailcheck, options: argparse.Namespace, console: Console) -> None:
    """Print where to send the mail."""
    address = made["email"]
    if options.no_wait:
        console.print_text(json.dumps(made) if options.json else address)
        console.print_note(f"next: {_again(made['testId'], options)}")
        return
    console.print_note(f"Send one mail from the server under test to\n\n    {address}\n")
    console.print_note(f"by {made['expiresAt']}, with its usual From. To see how it works:\n")
    server = mail_server(daemon)
    console.print_note(f"    swaks --server {server} --from you@example.com --to {address}\n")


def _wait(daemon: Mailcheck, test_id: str, timeout: float, console: Console) -> dict[str, Any]:
    """Wait for the end of a test. Return its current state after the timeout.

    :raises MailcheckError: the daemon reports an error, or cannot be reached.
    """
    path = f"/test/{quote(test_id, safe='')}/wait"
    began = time.monotonic()
    console.progress.text = "waiting for the mail"
    while True:
        left = max(1.0, min(POLL, timeout - (time.monotonic() - began)))
        try:
            return daemon.request("GET", path, {"timeout": f"{left:.3f}"})
        except MailcheckError as error:
            if error.status != 408:
                raise
            found = dict(error.body)
            if time.monotonic() - began >= timeout:
                return found
        has_mail = found["status"] == "processing"
        console.progress.text = "analysing the mail" if has_mail else "waiting for the mail"


def _print(found: Shape, options: argparse.Namespace, console: Console) -> int:
    if options.json:
        console.print_text(json.dumps(found, indent=2, ensure_ascii=False))
    if found["status"] == "completed":
        if not options.json:
            console.print_lines(describe_report(found))
            console.print_line("")
            console.print_line(f"full report: {found['shareUrl']}")
        return judge_report(found, options.fail_under, options.receivers, options.fail_on)
    again = f"continue: {_again(found['testId'], options)}"
    said = {
        "pending": (f"no mail has arrived; {again}", EXIT_PROBLEM),
        "processing": (f"the mail is still being analysed; {again}", EXIT_UNDETERMINED),
        "expired": ("no mail arrived while the address was valid", EXIT_PROBLEM),
        "error": (f"{found.get('failure')}; POST /test/ID/recheck retries", EXIT_UNDETERMINED),
    }
    words, status = said[found["status"]]
    console.print_note(f"mailcheck: {words}")
    return status
