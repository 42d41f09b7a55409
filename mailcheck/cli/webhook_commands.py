"""``mailcheck webhook``: the webhooks of an inbox at a daemon."""

import argparse
import json
from typing import Any
from urllib.parse import quote, urlencode

from mailcheck.cli.access.daemon_access import command_line, set_daemon_command
from mailcheck.cli.commands import Console, whole_id
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM
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


def add_webhook_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``mailcheck webhook``."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("add", help="create a webhook, and print its id and secret")
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
    listing = commands.add_parser("list", help="list webhooks and their problems")
    parsers = [(add, _add), (listing, _list)]
    for name, text, do in (
        ("test", "send a sample event now; exit status 1 if it is rejected", _test),
        ("replay", "send the mail after a cursor again, with the same ids", _replay),
        ("resume", "retry at once after failures", _resume),
        ("secret", "create and print a new secret; the old one stays valid for a day", _rotate),
        ("remove", "delete the webhook", _remove),
    ):
        command = commands.add_parser(name, help=text)
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
        parsers.append((command, do))
    for command, do in parsers:
        set_daemon_command(command, do)
        command.add_argument(
            "--json", action="store_true", help="print JSON, as the API returns it"
        )


def _add(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook add ADDRESS``: print its id and secret on one line."""
    names = [*map(_as_json, FILTERS), "header", "provider", "after"]
    given = {name: getattr(options, name) for name in names}
    asked = {name: value for name, value in given.items() if value is not None}
    made = inbox.request("POST", PATH, body={"url": options.address, **asked})
    if options.json:
        console.print_text(json.dumps(made))
        return EXIT_FINE
    console.print_line(f"{made['id']}  {made['secret']}")
    console.print_note("save the secret, which signs the events: it is shown only once")
    console.print_note(f"next: {command_line(options, 'webhook', 'test', made['id'])}")
    return EXIT_FINE


def _list(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook list``: print a line for each webhook."""
    found = inbox.request("GET", PATH)
    if options.json:
        console.print_text(json.dumps(found))
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
    asked = {"event": options.event, "messageId": options.message}
    given = {name: value for name, value in asked.items() if value is not None}
    query = f"?{urlencode(given)}" if given else ""
    tried = inbox.request("POST", _path(inbox, options, f"/test{query}"), seconds=LONGEST_TEST)
    if options.json:
        console.print_text(json.dumps(tried))
    elif tried["delivered"]:
        console.print_line(f"accepted with {tried['status']} in {tried['milliseconds']} ms")
    else:
        console.print_note(f"mailcheck: it was not accepted: {tried['problem']}")
    return EXIT_FINE if tried["delivered"] else EXIT_PROBLEM


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
    console.print_text(json.dumps(rotated) if options.json else rotated["secret"])
    if not options.json:
        until = rotated["earlierSignsUntil"]
        console.print_note(f"save it: it is shown only once; the old one is valid until {until}")
    return EXIT_FINE


def _remove(inbox: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck webhook remove ID``."""
    removed = inbox.request("DELETE", _path(inbox, options))
    return _tell(removed, options, console, "removed")


def _tell(answer: dict[str, Any], options: argparse.Namespace, console: Console, what: str) -> int:
    if options.json:
        console.print_text(json.dumps(answer))
    else:
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
