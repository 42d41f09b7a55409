"""``mailcheck webhook``: the webhooks of an inbox at a daemon."""

import argparse
from typing import Any
from urllib.parse import quote

from mailcheck.cli.access.daemon_access import add_daemon_command, command_line
from mailcheck.cli.commands import Console, fields_of, whole_id
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM
from mailcheck.cli.parser import Parser
from mailcheck.clients.mailcheck_client import Mailcheck
from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.core.webhooks import EVENT_PROVIDERS, EventKind

PATH = "/inbox/webhooks"

LONGEST_TEST = 20
"""Seconds in which the daemon answers ``test``: it waits 15 s for the receiver."""

FILTERS = {
    "tag": "only mail to this tag; empty: only untagged mail",
    "tag-prefix": "only mail to tags that begin with this",
    "to": "only mail to this address",
    "from": "only mail whose author contains this",
    "subject": "only mail whose subject contains this",
    "text": "only mail whose text contains this",
}
"""Options of ``add`` for the filters of the same names."""


def add_webhook_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck webhook``."""
    add = add_daemon_command(parser, "add", "create a webhook, and print its id and secret", _add)
    add.add_argument("address", metavar="ADDRESS", help="http or https URL of the receiver")
    for name, text in FILTERS.items():
        add.add_argument(f"--{name}", dest=_as_json(name), metavar="TEXT", help=text)
    add.add_argument(
        "--header",
        action="append",
        metavar="NAME:TEXT",
        help="only mail with this text in a header field; may be repeated",
    )
    add.add_argument(
        "--provider", choices=EVENT_PROVIDERS, help="send events in the format of this provider"
    )
    add.add_argument("--after", metavar="CURSOR", help="also send the mail after this cursor")
    add_daemon_command(parser, "list", "list webhooks and their problems", _list)
    for name, text, do in (
        ("test", "send a sample event now; exit status 1 if it is rejected", _test),
        ("replay", "send the mail after a cursor again, with the same ids", _replay),
        ("resume", "retry at once after failures", _resume),
        ("secret", "create and print a new secret; the old one stays valid for a day", _rotate),
        ("remove", "delete the webhook", _remove),
    ):
        command = add_daemon_command(parser, name, text, do)
        command.add_argument("id", help="the webhook's id, as `mailcheck webhook list` shows it")
        if name == "test":
            command.add_argument(
                "--event",
                choices=[kind.value for kind in EventKind],
                help="event to send, for a webhook with the format of a provider",
            )
            command.add_argument(
                "--message", metavar="ID", help="send this mail instead of a sample"
            )
        if name == "replay":
            command.add_argument(
                "--after",
                metavar="CURSOR",
                default="c0",
                help="default: all mail in the inbox",
            )


def _add(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook add ADDRESS``: print its id and secret on one line."""
    body = fields_of(options, *map(_as_json, FILTERS), "header", "provider", "after")
    made = inbox.request("POST", PATH, body={"url": options.address, **body})
    if not console.print_answer(made):
        console.print_line(f"{made['id']}  {made['secret']}")
        console.print_note("save the secret, which signs the events: it is shown only once")
        console.print_note(f"next: {command_line(options, 'webhook', 'test', made['id'])}")
    return EXIT_FINE


def _list(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook list``: print a line for each webhook."""
    found = inbox.request("GET", PATH)
    if console.print_answer(found):
        return EXIT_FINE
    console.explain_empty(found["webhooks"], "no webhooks yet: mailcheck webhook add URL")
    for webhook in found["webhooks"]:
        wanted = [f"{name}={value}" for name, value in webhook["filter"].items()]
        problem = webhook["problem"] and f"({webhook['failures']} failures: {webhook['problem']})"
        facts = (webhook["id"], webhook["state"], webhook["cursor"], webhook["url"])
        console.print_words((*facts, *wanted, problem))
    return EXIT_FINE


def _test(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook test ID``: print the status, or why there was none."""
    console.progress.text = "waiting for the receiver"
    query = fields_of(options, "event", messageId="message")
    path = _path(inbox, options, "/test")
    tried = inbox.request("POST", path, query, seconds=LONGEST_TEST)
    if tried["delivered"]:
        took = f"{tried['milliseconds']} ms"
        console.print_row(tried, f"accepted with {tried['status']} in {took}")
        return EXIT_FINE
    if not console.print_answer(tried):
        console.print_note(f"mailcheck: it was not accepted: {tried['problem']}")
    return EXIT_PROBLEM


def _replay(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook replay ID``."""
    replayed = inbox.request(
        "POST", _path(inbox, options, "/replay"), body={"after": options.after}
    )
    return _tell(replayed, options, console, f"sending the mail after {options.after} again")


def _resume(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook resume ID``."""
    resumed = inbox.request("POST", _path(inbox, options, "/resume"))
    return _tell(resumed, options, console, f"continues after {resumed['cursor']}")


def _rotate(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook secret ID``: print only the secret to standard output."""
    rotated = inbox.request("POST", _path(inbox, options, "/secret"))
    console.print_row(rotated, rotated["secret"])
    if not console.as_json:
        until = rotated["earlierSignsUntil"]
        console.print_note(f"save it: it is shown only once; the old one is valid until {until}")
    return EXIT_FINE


def _remove(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook remove ID``."""
    removed = inbox.request("DELETE", _path(inbox, options))
    return _tell(removed, options, console, "removed")


def _tell(answer: dict[str, Any], options: argparse.Namespace, console: Console, what: str) -> int:
    if not console.print_answer(answer):
        console.print_note(f"{options.id}: {what}")
    return EXIT_FINE


def _path(inbox: Mailcheck, options: argparse.Namespace, more: str = "") -> str:
    webhook_id = options.id
    if len(webhook_id) < SHORT_ID_LENGTH:
        known = [webhook["id"] for webhook in inbox.request("GET", PATH)["webhooks"]]
        webhook_id = whole_id(webhook_id, known, "webhook")
    return f"{PATH}/{quote(webhook_id, safe='')}{more}"


def _as_json(option: str) -> str:
    """Return the JSON name of an option."""
    return "tagPrefix" if option == "tag-prefix" else option
