"""``mailcheck watch``: domains and addresses that a daemon watches; it talks to one."""

import argparse
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mailcheck.cli.commands import Console
from mailcheck.cli.daemon_access import set_daemon_command
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE
from mailcheck.clients.mailcheck_client import LARGEST_PAGE, Mailcheck

AT_ONCE = 500
"""Watches of one request."""

CHANGES = 20
"""The newest ones, which `show` prints."""


def add_watch_commands(parser: argparse.ArgumentParser) -> None:
    """Add ``mailcheck watch`` and its parts."""
    parts = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add = parts.add_parser("add", help="watch domains or addresses")
    add.add_argument("targets", nargs="*", metavar="TARGET", help="a domain or an IP address")
    add.add_argument("--file", type=Path, help="a file with a domain or an address on each line")
    add.add_argument("--every", type=int, default=60, metavar="MINUTES", help="15 to 1440 (60)")
    add.add_argument("--selector", action="append", help="a DKIM selector; repeat it for more")
    add.add_argument("--ip", action="append", help="an address that it sends from; repeat it")
    add.add_argument("--quiet", help="times without alerts (UTC), like 22:00-06:00")
    add.add_argument(
        "--alert-to",
        action="append",
        metavar="ADDRESS",
        help="a URL or an address of mail that is told too; repeat it for more",
    )
    listed = parts.add_parser("list", help="list what is watched, and open alerts")
    show = parts.add_parser("show", help="show how one is, its alerts and what changed")
    show.add_argument("watch", metavar="ID", help="its id, or what it watches")
    show.add_argument("--run", action="store_true", help="run it first")
    remove = parts.add_parser("remove", help="watch something no more; its history goes too")
    remove.add_argument("watch", metavar="ID", help="its id, or what it watches")
    parsers = ((add, add_watches), (listed, list_watches), (show, show_watch))
    for part, do in (*parsers, (remove, remove_watch)):
        set_daemon_command(part, do)
        part.add_argument("--json", action="store_true", help="print JSON")


def add_watches(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch add``: status 1 where one of them can't be watched."""
    targets = list(options.targets)
    if options.file is not None:
        lines = (line.partition("#")[0].strip() for line in options.file.read_text().splitlines())
        targets += filter(None, lines)
    if not targets:
        console.print_note("mailcheck: name what is to be watched, or a --file with it")
        return EXIT_USAGE
    choice: dict[str, Any] = {"everyMinutes": options.every}
    chosen = {"selectors": options.selector, "addresses": options.ip, "quiet": options.quiet}
    chosen["alertTo"] = options.alert_to
    choice |= {name: value for name, value in chosen.items() if value}
    found: dict[str, list[Any]] = {"made": [], "refused": [], "newWebhooks": []}
    for begin in range(0, len(targets), AT_ONCE):
        wanted = [{"target": one, **choice} for one in targets[begin : begin + AT_ONCE]]
        answer = daemon.request("POST", "/watches/many", body={"watches": wanted})
        for name, some in found.items():
            some += answer[name]
    if options.json:
        console.print_text(json.dumps(found))
    else:
        for one in found["made"]:
            console.print_line(f"{one['id']}  {one['target']}")
        for one in found["newWebhooks"]:
            console.print_line(f"{one['url']}  {one['secret']}")
        if found["newWebhooks"]:
            console.print_note("keep each secret: it signs what is posted, and is shown this once")
        for one in found["refused"]:
            console.print_note(f"mailcheck: {one['target']}: {one['error']}")
    return EXIT_PROBLEM if found["refused"] else EXIT_FINE


def list_watches(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch list``: status 1 where an alert is open."""
    watches, alerts = _all(daemon)
    if options.json:
        console.print_text(json.dumps({"watches": watches, "openAlerts": alerts}))
    else:
        for one in watches:
            state = "paused" if one["paused"] else f"every {one['everyMinutes']} min"
            console.print_line(f"{one['id']}  {one['target']}  {state}")
        console.print_lines(map(_alert_line, alerts))
    return EXIT_PROBLEM if alerts else EXIT_FINE


def show_watch(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch show``: status 1 where an alert of it is open."""
    path = _path(daemon, options.watch)
    if options.run:
        daemon.request("POST", f"{path}/run")
    shown = daemon.request("GET", path)
    history = daemon.request("GET", f"{path}/history")
    open_alerts = [alert for alert in shown["alerts"] if alert["endedAt"] is None]
    if options.json:
        console.print_text(json.dumps({**shown, "history": history}))
    else:
        console.print_line(f"{shown['target']}  {_moment(shown['lastRunAt']) or 'not run yet'}")
        if shown["score"] is not None:
            console.print_line(f"score {shown['score']} ({shown['grade']})")
        console.print_lines(map(_alert_line, open_alerts))
        known = {alert["sentence"] for alert in open_alerts}
        others = (one["sentence"] for one in shown["problems"])
        console.print_lines(sentence for sentence in others if sentence not in known)
        if shown["undetermined"]:
            console.print_line(f"could not be found out: {', '.join(shown['undetermined'])}")
        for host in history["hosts"]:
            if host["uptime"] is not None:
                share = f"{host['uptime']:.2%}"
                console.print_line(f"{host['host']} took connections for {share} of the time")
        for one in shown["receivers"]:
            if one["problem"]:
                where = f"{one['to']} ({one['state']})"
                console.print_line(f"alerts do not reach {where}: {one['problem']}")
        for one in reversed(history["changes"][-CHANGES:]):
            console.print_line(f"{_moment(one['at'])}  {one['sentence']}")
    return EXIT_PROBLEM if open_alerts else EXIT_FINE


def remove_watch(daemon: Mailcheck, options: argparse.Namespace, console: Console) -> int:
    """``mailcheck watch remove``."""
    removed = daemon.request("DELETE", _path(daemon, options.watch))
    console.print_text(json.dumps(removed) if options.json else f"removed {removed['id']}")
    return EXIT_FINE


def _all(daemon: Mailcheck) -> tuple[list[Any], list[Any]]:
    """Read all pages; gives watches and open alerts."""
    watches: list[Any] = []
    while True:
        page = len(watches) // LARGEST_PAGE + 1
        answer = daemon.request("GET", "/watches", {"limit": LARGEST_PAGE, "page": page})
        watches += answer["watches"]
        if len(answer["watches"]) < LARGEST_PAGE:
            return watches, answer["openAlerts"]


def _path(daemon: Mailcheck, named: str) -> str:
    """Find the watch that is meant: by what it watches, else by its id."""
    watches, _ = _all(daemon)
    known = {one["target"]: one["id"] for one in watches}
    return f"/watches/{quote(known.get(named.lower().rstrip('.'), named), safe='')}"


def _alert_line(alert: Any) -> str:
    return f"ALERT {alert['target']}: {alert['sentence']} (since {_moment(alert['openedAt'])})"


def _moment(text: str | None) -> str:
    return "" if text is None else f"{text[:10]} {text[11:16]}"
