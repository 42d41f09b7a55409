"""``mailcheck inbound``: mail into an application, as its provider would send it."""

import argparse
import base64
import mimetypes
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mailcheck.cli.access.daemon_access import add_daemon_command
from mailcheck.cli.commands import Console, fields_of, read_input
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM
from mailcheck.cli.parser import Parser, whole_number
from mailcheck.clients.mailcheck_client import Mailcheck
from mailcheck.core.inbound import (
    MOST_SPEED,
    InboundFault,
    InboundFormat,
    InboundVerdict,
    ReadyMail,
)

ROUTES = "/inbound/routes"

PATIENCE = 30
"""Default number of seconds that ``send`` waits for the application."""

LONGEST_WAIT = 60
"""Maximum number of seconds of a wait."""

SHOWN = 20
"""Number of attempts that ``attempts`` prints."""

_VERDICTS = ("spf", "dkim", "dmarc")
_OF_A_MAIL = ("from", "to", "subject", "text", "ready", "fault", *_VERDICTS)
"""Options of ``send`` that are named after fields of the request."""


def add_inbound_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck inbound``."""
    add = add_daemon_command(
        parser, "add", "create a route, and print its id and secret", add_route
    )
    add.add_argument("to", metavar="PATTERN", help="recipients, like support@*")
    add.add_argument("address", metavar="ADDRESS", help="URL of the application")
    add.add_argument(
        "--format", choices=list(map(str, InboundFormat)), default="mailcheck", help="(mailcheck)"
    )
    add.add_argument("--secret", help="secret that signs the requests (a new one)")
    add.add_argument("--user", help="user for Basic authentication, or of the SMTP server")
    add.add_argument("--password", help="password of that user")
    add.add_argument(
        "--speed",
        type=whole_number(1, MOST_SPEED),
        metavar="FACTOR",
        help="factor by which the retries are faster (60)",
    )
    add_daemon_command(parser, "routes", "list the routes", list_routes)
    send = add_daemon_command(
        parser,
        "send",
        "send a mail to the application; exit status 1 if it is not taken",
        send_mail,
    )
    send.add_argument("route", metavar="ROUTE", help="id of the route")
    send.add_argument("--from", metavar="ADDRESS", help="author")
    send.add_argument("--to", action="append", metavar="ADDRESS", help="recipient")
    send.add_argument("--subject", help="subject")
    send.add_argument("--text", help="text; - reads standard input")
    send.add_argument("--html", metavar="FILE", help="file with HTML")
    send.add_argument("--file", action="append", metavar="FILE", help="file; may be repeated")
    send.add_argument("--raw", metavar="FILE", help="the whole mail (.eml); - reads standard input")
    send.add_argument(
        "--ready",
        choices=list(map(str, ReadyMail)),
        metavar="NAME",
        help=f"ready-made mail: {', '.join(ReadyMail)}",
    )
    send.add_argument("--message", metavar="ID", help="stored message to answer or to send again")
    send.add_argument("--mail", metavar="ID", help="earlier mail to send again")
    send.add_argument("--fault", choices=list(map(str, InboundFault)), help="what goes wrong")
    for name in _VERDICTS:
        send.add_argument(f"--{name}", choices=list(map(str, InboundVerdict)), help="(pass)")
    send.add_argument(
        "--wait",
        type=whole_number(0, LONGEST_WAIT),
        default=PATIENCE,
        metavar="SECONDS",
        help=f"time for the application to take it ({PATIENCE})",
    )
    attempts = add_daemon_command(
        parser, "attempts", "list what the application answered", list_attempts
    )
    attempts.add_argument("--route", metavar="ID", help="only of this route")
    attempts.add_argument("--mail", metavar="ID", help="only of this mail")
    remove = add_daemon_command(
        parser, "remove", "delete a route with its mails and attempts", remove_route
    )
    remove.add_argument("route", metavar="ROUTE", help="id of the route")


def add_route(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck inbound add``: print the id and the secret."""
    body = fields_of(options, "to", "format", "secret", "user", "password", "speed")
    made = daemon.request("POST", ROUTES, body={"url": options.address, **body})
    if console.print_answer(made):
        return EXIT_FINE
    console.print_line(f"{made['id']}  {made['secret']}")
    console.print_note("save the secret: it signs the requests, and is shown only once")
    if not made["confirmed"]:
        console.print_note("mails wait until the application has confirmed the subscription")
    return EXIT_FINE


def list_routes(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck inbound routes``."""
    found = daemon.request("GET", ROUTES)
    if console.print_answer(found):
        return EXIT_FINE
    console.explain_empty(found["routes"], "no route yet: mailcheck inbound add PATTERN ADDRESS")
    for route in found["routes"]:
        console.print_words((route["id"], route["format"], route["to"], route["url"]))
    return EXIT_FINE


def send_mail(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck inbound send``: exit with 1 if the application has not taken the mail."""
    path = f"{ROUTES}/{quote(options.route, safe='')}/messages"
    sent = daemon.request("POST", path, body=_letter(options))
    if not options.wait:
        console.print_row(sent, sent["id"])
        return EXIT_FINE
    query = {"mail": sent["id"], "wait": options.wait}
    page = daemon.request("GET", "/inbound/attempts", query, seconds=options.wait)
    if not console.print_answer(page):
        _print_attempts(page, console)
    return EXIT_FINE if page["delivered"] else EXIT_PROBLEM


def list_attempts(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck inbound attempts``."""
    query = {"route": options.route, "mail": options.mail, "limit": SHOWN}
    page = daemon.request("GET", "/inbound/attempts", query)
    if not console.print_answer(page):
        console.explain_empty(page["attempts"], "no attempt yet: mailcheck inbound send ROUTE")
        _print_attempts(page, console)
    return EXIT_FINE


def remove_route(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck inbound remove``."""
    gone = daemon.request("DELETE", f"{ROUTES}/{quote(options.route, safe='')}")
    console.print_row(gone, f"deleted {gone['id']}")
    return EXIT_FINE


def _print_attempts(page: Any, console: Console) -> None:
    for attempt in reversed(page["attempts"]):
        status = "-" if attempt["status"] is None else str(attempt["status"])
        result = "taken" if attempt["delivered"] else attempt["problem"]
        console.print_words((attempt["at"], attempt["mailId"], status, result))
    if page["pending"]:
        console.print_note(f"{page['pending']} pending")


def _letter(options: argparse.Namespace) -> dict[str, Any]:
    body = fields_of(options, *_OF_A_MAIL, messageId="message", mailId="mail")
    if options.text == "-":
        body["text"] = sys.stdin.read()
    if options.html is not None:
        body["html"] = Path(options.html).read_text("utf-8")
    if options.file is not None:
        body["files"] = [_file(Path(name)) for name in options.file]
    if options.raw is not None:
        body["raw"] = _base64(read_input(options.raw))
    return body


def _file(path: Path) -> dict[str, str]:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return {"name": path.name, "type": kind, "content": _base64(path.read_bytes())}


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode()
