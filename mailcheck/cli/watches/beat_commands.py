"""``mailcheck beat``: mail that a daemon expects on a schedule, and a command that sends it."""

import argparse
import os
import shutil
import smtplib
import socket
import subprocess
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any
from urllib.parse import quote

from mailcheck.cli.access.daemon_access import (
    add_daemon_command,
    add_daemon_options,
    reach_daemon,
    report_problem,
)
from mailcheck.cli.commands import Console, fields_of, why_not_sent
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM
from mailcheck.cli.parser import Parser, whole_number
from mailcheck.cli.sendmail_commands import TIMEOUT, complete_fields, own_domain, user_address
from mailcheck.cli.watches.alert_lines import alert_line, minute_of
from mailcheck.clients.mailcheck_client import Mailcheck, MailcheckError
from mailcheck.config.reading import ConfigError
from mailcheck.config.rules import parse_relay
from mailcheck.core.addresses import parse_plain_address

SENDMAIL_PATHS = os.pathsep.join(("/usr/sbin", "/usr/lib"))
"""Folders of the program sendmail, which the path of cron leaves out."""

SHOWN = 10
"""Number of newest mails that `show` prints."""

MOST_TEXT = 65_536
"""Maximum number of characters of standard input in the mail."""


def add_beat_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck beat``."""
    add = add_daemon_command(parser, "add", "expect mail on a schedule", add_beat)
    add.add_argument("name", metavar="NAME", help="its name: letters, digits and hyphens")
    when = add.add_mutually_exclusive_group(required=True)
    when.add_argument("--at", metavar="HH:MM", help="time of day at which the mail is due")
    when.add_argument(
        "--every", type=whole_number(5, 44_640), metavar="MINUTES", help="time between mails"
    )
    add.add_argument("--zone", help="time zone of --at, like Europe/Berlin (UTC)")
    add.add_argument("--day", action="append", help="day of the week of --at; may be repeated")
    add.add_argument(
        "--grace",
        type=whole_number(1, 1_320),
        metavar="MINUTES",
        help="time after which it is late (30)",
    )
    add.add_argument(
        "--slow",
        type=whole_number(0, 1_440),
        metavar="MINUTES",
        help="time in transit after which it is slow; 0 accepts any time (10)",
    )
    add.add_argument(
        "--signed-by", metavar="DOMAIN", help="count only mail with a DKIM signature of the domain"
    )
    add.add_argument("--quiet", help="hours without alerts (UTC), like 22:00-06:00")
    add.add_argument(
        "--alert-to",
        action="append",
        metavar="ADDRESS",
        help="a webhook URL or mail address for alerts; may be repeated",
    )
    add_daemon_command(parser, "list", "list heartbeats and open alerts", list_beats)
    for name, text, do in (
        ("show", "show a heartbeat, its days and its newest mails", show_beat),
        ("remove", "delete a heartbeat and its history", remove_beat),
    ):
        command = add_daemon_command(parser, name, text, do)
        command.add_argument("name", metavar="NAME", help="its name")
    send = parser.add_command(
        "send", "send a mail of a heartbeat through the local mail server", send_beat
    )
    send.add_argument(
        "target", metavar="ADDRESS", help="its address, which needs no daemon here, or its name"
    )
    send.add_argument("--from", dest="sender", help="sender address (default: the user)")
    send.add_argument(
        "--server",
        metavar="HOST:PORT",
        help="mail server (default: the program sendmail, or localhost:25 without one)",
    )
    send.add_argument("--text", default="", help="text to add to the mail, such as a result")
    add_daemon_options(send)


def add_beat(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck beat add``: print the address to which the mail is sent."""
    times = fields_of(options, "at", everyMinutes="every", timeZone="zone", days="day")
    limits = fields_of(options, graceMinutes="grace", slowMinutes="slow", signedBy="signed_by")
    alerts = fields_of(options, "quiet", alertTo="alert_to")
    body = {"name": options.name.lower(), **times, **limits, **alerts}
    made = daemon.request("POST", "/heartbeats", body=body)
    if console.print_answer(made):
        return EXIT_FINE
    console.print_line(made["address"])
    console.print_note(f"expected {made['schedule']}; the first mail is due {_due(made)}")
    for webhook in made["newWebhooks"]:
        console.print_line(f"{webhook['url']}  {webhook['secret']}")
        console.print_note("save the secret: it signs the events, and is shown only once")
    return EXIT_FINE


def list_beats(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck beat list``: exit with 1 if an alert is open."""
    found = daemon.request("GET", "/heartbeats")
    alerts = found["openAlerts"]
    if not console.print_answer(found):
        console.explain_empty(
            found["heartbeats"], "no mail is expected yet: mailcheck beat add NAME --at 06:00"
        )
        for heartbeat in found["heartbeats"]:
            console.print_words((heartbeat["name"], heartbeat["state"], heartbeat["schedule"]))
        console.print_lines(map(alert_line, alerts))
    return EXIT_PROBLEM if alerts else EXIT_FINE


def show_beat(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck beat show``: exit with 1 if an alert of the heartbeat is open."""
    shown = daemon.request("GET", _path(options.name))
    open_alerts = [alert for alert in shown["alerts"] if alert["endedAt"] is None]
    if not console.print_answer(shown):
        console.print_line(f"{shown['name']}  {shown['state']}  {shown['schedule']}")
        console.print_line(shown["address"])
        last = minute_of(shown["lastAt"]) or "none"
        console.print_line(f"last mail {last}, next due {_due(shown)}")
        console.print_lines(map(alert_line, open_alerts))
        totals = {
            name: sum(day[key] for day in shown["history"])
            for name, key in (("on time", "onTime"), ("late", "late"), ("missing", "missing"))
        }
        counts = ", ".join(f"{count} {name}" for name, count in totals.items())
        console.print_line(f"in 90 days: {counts}")
        for beat in shown["beats"][:SHOWN]:
            score = "" if beat["score"] is None else f"score {beat['score']:g}"
            console.print_words((minute_of(beat["at"]), beat["verdict"], score))
    return EXIT_PROBLEM if open_alerts else EXIT_FINE


def remove_beat(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck beat remove``."""
    removed = daemon.request("DELETE", _path(options.name))
    console.print_row(removed, f"removed {removed['name']}")
    return EXIT_FINE


def send_beat(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck beat send``: hand a mail to the mail server of this machine.

    :raises ConfigError: the address or the server is malformed, or a name needs a daemon.
    """
    address = options.target
    if "@" not in address:
        try:
            found = reach_daemon(options, console).request("GET", _path(address))
        except MailcheckError as error:
            return report_problem(error, console)
        address = found["address"]
    sender = options.sender or user_address(own_domain())
    try:
        parse_plain_address(address)
    except ValueError as error:
        raise ConfigError(f"{address!r} {error}") from None
    if not sender.isprintable() or " " in sender or sender.startswith("-"):
        raise ConfigError(f"--from must be a mail address; got {sender!r}")
    mail = write_beat(sender, address, options.text[:MOST_TEXT])
    try:
        return _hand_over(mail, sender, address, options.server, console)
    except (OSError, subprocess.SubprocessError) as error:
        why = why_not_sent(error) if isinstance(error, OSError) else error
        console.print_note(f"mailcheck: the mail server did not take the mail: {why}")
        return EXIT_PROBLEM


def write_beat(sender: str, address: str, text: str) -> bytes:
    """Return the mail of a heartbeat.

    :param text: added to the mail.
    """
    name = address.partition("@")[0].rpartition("beat.")[2]
    mail = EmailMessage(SMTP)
    mail["To"] = address
    mail["Subject"] = f"Heartbeat {name} of {socket.gethostname()}"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834
    mail.set_content(f"This is the heartbeat {name} of {socket.gethostname()}.\n\n{text}\n")
    head, _, body = mail.as_bytes().partition(b"\r\n\r\n")
    fields = complete_fields(head.split(b"\r\n"), sender, "", own_domain())
    return b"\r\n".join([*fields, b"", body])


def _hand_over(mail: bytes, sender: str, address: str, server: str | None, console: Console) -> int:
    program = shutil.which("sendmail") or shutil.which("sendmail", path=SENDMAIL_PATHS)
    if server is None and program is not None:
        given = [program, "-i", "-f", sender, "--", address]
        text = mail.replace(b"\r\n", b"\n")
        done = subprocess.run(given, input=text, timeout=TIMEOUT, check=False)  # noqa: S603
        if done.returncode:
            console.print_note(f"mailcheck: {program} ended with status {done.returncode}")
            return EXIT_PROBLEM
        return EXIT_FINE
    try:
        host, port = parse_relay(server or "localhost:25")
    except ValueError:
        raise ConfigError(f"--server must be host:port; got {server!r}") from None
    with smtplib.SMTP(host, port, timeout=TIMEOUT) as smtp:
        smtp.sendmail(sender, [address], mail)
    return EXIT_FINE


def _path(name: str) -> str:
    return f"/heartbeats/{quote(name, safe='')}"


def _due(shown: Any) -> str:
    return f"{minute_of(shown['dueAt'])} UTC" if shown["dueAt"] else "never, since it is paused"
