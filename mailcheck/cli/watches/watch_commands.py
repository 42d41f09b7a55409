"""``mailcheck watch``: the domains and addresses that a daemon watches."""

import argparse
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mailcheck.cli.access.daemon_access import add_daemon_command
from mailcheck.cli.commands import Console, fields_of, whole_id
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE
from mailcheck.cli.parser import Parser, whole_number
from mailcheck.cli.watches.alert_lines import alert_line, minute_of
from mailcheck.clients.mailcheck_client import LARGEST_PAGE, Mailcheck
from mailcheck.core.errors import WatchNotFound

AT_ONCE = 500
"""Maximum number of watches per request."""

CHANGES = 20
"""Number of newest changes that `show` prints."""


def add_watch_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck watch``."""
    add = add_daemon_command(parser, "add", "watch domains or addresses", add_watches)
    add.add_argument("targets", nargs="*", metavar="TARGET", help="a domain or an IP address")
    add.add_argument("--file", type=Path, help="a file with one domain or address per line")
    add.add_argument(
        "--every",
        type=whole_number(15, 1440),
        default=60,
        metavar="MINUTES",
        help="15 to 1440 (60)",
    )
    add.add_argument("--selector", action="append", help="a DKIM selector; may be repeated")
    add.add_argument("--ip", action="append", help="a sending IP address; may be repeated")
    add.add_argument("--quiet", help="hours without alerts (UTC), like 22:00-06:00")
    add.add_argument(
        "--alert-to",
        action="append",
        metavar="ADDRESS",
        help="a mail address, a webhook URL, or slack:, teams:, discord: or ntfy: and a URL, for"
        " alerts; error= or warning= before it limits the alerts; may be repeated",
    )
    add_daemon_command(parser, "list", "list watches and open alerts", list_watches)
    show = add_daemon_command(
        parser, "show", "show the state of a watch, its alerts and changes", show_watch
    )
    show.add_argument("watch", metavar="ID", help="its id or target")
    show.add_argument("--run", action="store_true", help="run it first")
    remove = add_daemon_command(parser, "remove", "delete a watch and its history", remove_watch)
    remove.add_argument("watch", metavar="ID", help="its id or target")


def add_watches(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch add``: exit with 1 if a target cannot be watched."""
    targets = list(options.targets)
    if options.file is not None:
        lines = (line.partition("#")[0].strip() for line in options.file.read_text().splitlines())
        targets += filter(None, lines)
    if not targets:
        console.print_note("mailcheck: name the targets to watch, or a --file with them")
        return EXIT_USAGE
    receivers = fields_of(options, "quiet", alertTo="alert_to")
    hosts = fields_of(options, selectors="selector", addresses="ip")
    choice = {"everyMinutes": options.every, **hosts, **receivers}
    found: dict[str, list[Any]] = {"made": [], "refused": [], "newWebhooks": []}
    for begin in range(0, len(targets), AT_ONCE):
        wanted = [{"target": target, **choice} for target in targets[begin : begin + AT_ONCE]]
        answer = daemon.request("POST", "/watches/many", body={"watches": wanted})
        for name, some in found.items():
            some += answer[name]
    if not console.print_answer(found):
        for made in found["made"]:
            console.print_line(f"{made['id']}  {made['target']}")
        for webhook in found["newWebhooks"]:
            console.print_line(f"{webhook['url']}  {webhook['secret']}")
        if found["newWebhooks"]:
            console.print_note("save each secret: it signs the events, and is shown only once")
        for refused in found["refused"]:
            console.print_note(f"mailcheck: {refused['target']}: {refused['error']}")
    return EXIT_PROBLEM if found["refused"] else EXIT_FINE


def list_watches(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch list``: exit with 1 if an alert is open."""
    watches, alerts = _all(daemon)
    if not console.print_answer({"watches": watches, "openAlerts": alerts}):
        console.explain_empty(watches, "nothing is watched yet: mailcheck watch add DOMAIN")
        for watch in watches:
            state = "paused" if watch["paused"] else f"every {watch['everyMinutes']} min"
            console.print_words((watch["id"], watch["target"], state))
        console.print_lines(map(alert_line, alerts))
    return EXIT_PROBLEM if alerts else EXIT_FINE


def show_watch(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch show``: exit with 1 if an alert of the watch is open."""
    path = _path(daemon, options.watch)
    if options.run:
        daemon.request("POST", f"{path}/run")
    shown = daemon.request("GET", path)
    history = daemon.request("GET", f"{path}/history")
    open_alerts = [alert for alert in shown["alerts"] if alert["endedAt"] is None]
    if not console.print_answer({**shown, "history": history}):
        console.print_line(f"{shown['target']}  {minute_of(shown['lastRunAt']) or 'not run yet'}")
        if shown["score"] is not None:
            console.print_line(f"score {shown['score']} ({shown['grade']})")
        console.print_lines(map(alert_line, open_alerts))
        known = {alert["sentence"] for alert in open_alerts}
        others = (problem["sentence"] for problem in shown["problems"])
        console.print_lines(sentence for sentence in others if sentence not in known)
        if shown["undetermined"]:
            console.print_line(f"could not be determined: {', '.join(shown['undetermined'])}")
        for host in history["hosts"]:
            if host["uptime"] is not None:
                share = f"{host['uptime']:.2%}"
                console.print_line(f"{host['host']} was reachable for {share} of the time")
        for receiver in shown["receivers"]:
            if receiver["problem"]:
                where = f"{receiver['to']} ({receiver['state']})"
                console.print_line(f"alerts do not reach {where}: {receiver['problem']}")
        for change in reversed(history["changes"][-CHANGES:]):
            console.print_line(f"{minute_of(change['at'])}  {change['sentence']}")
    return EXIT_PROBLEM if open_alerts else EXIT_FINE


def remove_watch(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch remove``."""
    removed = daemon.request("DELETE", _path(daemon, options.watch))
    console.print_row(removed, f"removed {removed['id']}")
    return EXIT_FINE


def _all(daemon: Mailcheck) -> tuple[list[Any], list[Any]]:
    """Return all watches and all open alerts, reading all pages."""
    watches: list[Any] = []
    while True:
        page = len(watches) // LARGEST_PAGE + 1
        answer = daemon.request("GET", "/watches", {"limit": LARGEST_PAGE, "page": page})
        watches += answer["watches"]
        if len(answer["watches"]) < LARGEST_PAGE:
            return watches, answer["openAlerts"]


def _path(daemon: Mailcheck, named: str) -> str:
    """Return the path of a watch, which is named by its target or its id."""
    watches, _ = _all(daemon)
    known = {watch["target"]: watch["id"] for watch in watches}
    found = known.get(named.lower().rstrip("."))
    if found is None and "." in named:
        raise WatchNotFound(f"{named} is not watched; `mailcheck watch list` shows what is")
    return f"/watches/{quote(found or whole_id(named, known.values(), 'watch'), safe='')}"
