"""``mailcheck apply FILE``: shows what a file changes, and changes it over the API of a daemon."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mailcheck.cli.access.daemon_access import (
    add_daemon_options,
    local_url,
    reach_daemon,
    report_problem,
)
from mailcheck.cli.access.store_access import with_accounts
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE
from mailcheck.cli.setup.files import Kind, Setup, SetupError, read_setup
from mailcheck.cli.setup.plans import (
    OWN_KEY,
    Change,
    Plan,
    Present,
    PresentProject,
    Verb,
    make_plan,
)
from mailcheck.clients.mailcheck_client import LARGEST_PAGE, Mailcheck, MailcheckError
from mailcheck.core.accounts import MAX_REQUESTS
from mailcheck.core.instants import MINUTE, Instant, instant_of
from mailcheck.core.rights import Rights, Scope

KEY_LIFE = 10 * MINUTE
"""Milliseconds after which the keys of the command expire, if it cannot revoke them."""

_IN_A_PROJECT = frozenset({Kind.WEBHOOK, Kind.WATCH, Kind.HEARTBEAT})
"""What a key of the project itself reads and changes."""

_PATHS: Mapping[Kind, str] = {
    Kind.WEBHOOK: "/inbox/webhooks",
    Kind.WATCH: "/watches",
    Kind.HEARTBEAT: "/heartbeats",
}


def add_apply(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck apply``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file with projects (TOML)")
    parser.add_argument("--yes", action="store_true", help="change without asking")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    add_daemon_options(parser)
    parser.set_defaults(command=apply)


def apply(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck apply FILE``: exit with 1 if there are changes that were not made."""
    try:
        wanted = read_setup(options.file)
        with _operator(options, console) as daemon, ExitStack() as keys:
            setup = _Daemon(daemon, keys)
            files = {item.file for project in wanted.projects for item in project.items}
            written = {path for path in files if path is not None and path.exists()}
            plan = make_plan(wanted, setup.read(wanted), setup.people, written)
            _show(plan, options, console)
            if not plan.changes:
                return EXIT_FINE
            if not options.yes and not _is_confirmed(len(plan.changes), console):
                console.print_note("nothing was changed; --yes changes it without asking")
                return EXIT_PROBLEM
            for change in plan.changes:
                setup.make(change, console)
    except SetupError as error:
        for problem in error.problems:
            console.print_note(f"mailcheck: {problem}")
        return EXIT_USAGE
    except MailcheckError as error:
        return report_problem(error, console)
    return EXIT_FINE


def _show(plan: Plan, options: argparse.Namespace, console: Console) -> None:
    if options.json:
        shown = {"changes": [_as_json(change) for change in plan.changes], "left": plan.left}
        console.print_text(json.dumps(shown))
        return
    console.print_lines(map(str, plan.changes))
    for sentence in plan.left:
        console.print_note(f"left alone: {sentence}")
    if not plan.changes:
        console.print_note("nothing differs from the file")


def _as_json(change: Change) -> Mapping[str, Any]:
    return {
        "verb": change.verb,
        "project": change.project,
        "kind": change.kind and change.kind.one,
        "name": change.name,
        "differences": change.differences,
    }


def _is_confirmed(number: int, console: Console) -> bool:
    if not sys.stdin.isatty():
        return False
    with console.progress.hidden():
        return input(f"make {number} changes? [y/N] ").strip().lower() in ("y", "yes")


@contextmanager
def _operator(options: argparse.Namespace, console: Console) -> Iterator[Mailcheck]:
    """Return a client with a key of the operator.

    On the machine of the daemon, the command issues itself a key, and revokes it at the end.
    """
    # A key in the environment is that of a program, and has no scope of the operator.
    if options.url or options.key_file:
        yield reach_daemon(options, console)
        return
    now = instant_of(time.time())

    async def issue(accounts: Any) -> tuple[str, str]:
        found = [account for account in await accounts.keep.accounts() if account.is_operator]
        if not found:
            raise SetupError(["no account is the operator's: start the daemon first"])
        issued = await accounts.keep.issue_key(
            found[0],
            OWN_KEY,
            rights=Rights(frozenset(Scope)),
            expires_at=Instant(now + KEY_LIFE),
            per_minute=MAX_REQUESTS,
            per_day=MAX_REQUESTS,
        )
        return issued.secret, issued.key.id

    secret, key_id = with_accounts(console.config, issue)
    try:
        yield Mailcheck(local_url(console.config), secret)
    finally:
        with_accounts(console.config, lambda accounts: accounts.keep.revoke_key(key_id))


class _Daemon:
    """Reads and changes projects over the API. ``keys`` revokes the keys of projects at its end."""

    def __init__(self, daemon: Mailcheck, keys: ExitStack) -> None:
        self._daemon = daemon
        self._keys = keys
        self._clients: dict[str, Mailcheck] = {}
        self._ids: dict[str, str] = {}
        self.people: dict[str, str] = {}

    def read(self, wanted: Setup) -> dict[str, PresentProject]:
        """Return all projects, with what the file has of those that it names."""
        for account in _all(self._daemon, "/accounts", "accounts", kind="person"):
            self.people[account["name"]] = account["id"]
        listed = self._daemon.request("GET", "/projects")["projects"]
        self._ids = {project["name"]: project["id"] for project in listed}
        kinds = {project.name: project.kinds for project in wanted.projects}
        found = {}
        for name, project_id in self._ids.items():
            of_file = kinds.get(name, frozenset())
            items = tuple(item for kind in of_file for item in self._items(kind, name))
            invited: frozenset[str] = frozenset()
            if Kind.MEMBER in of_file:
                path = f"/projects/{project_id}/invitations"
                listed = self._daemon.request("GET", path)["invitations"]
                invited = frozenset(entry["address"] for entry in listed if entry["address"])
            found[name] = PresentProject(project_id, name, items, invited)
        return found

    def _items(self, kind: Kind, project: str) -> list[Present]:
        if kind in _IN_A_PROJECT:
            listed = _all(self._client(project), _PATHS[kind], kind, is_paged=kind is Kind.WATCH)
        else:
            path = f"/projects/{self._ids[project]}/{kind}"
            listed = self._daemon.request("GET", path)[kind]
        name = {Kind.WEBHOOK: "url", Kind.WATCH: "target"}.get(kind, "name")
        return [Present(kind, entry[name], entry.get("id", entry[name]), entry) for entry in listed]

    def _client(self, project: str) -> Mailcheck:
        """Return a client with a key of a project, which is revoked at the end."""
        if project not in self._clients:
            path = f"/projects/{self._ids[project]}/keys"
            scopes = [Scope.INBOX_READ, Scope.WEBHOOKS, Scope.WATCHES]
            seconds = KEY_LIFE // 1000
            body = {"name": OWN_KEY, "scopes": scopes, "expiresInSeconds": seconds}
            made = self._daemon.request("POST", path, body=body)
            self._clients[project] = Mailcheck(self._daemon.url, made["secret"])
            self._keys.callback(self._revoke, project, f"{path}/{made['id']}")
        return self._clients[project]

    def _revoke(self, project: str, path: str) -> None:
        if project in self._ids:
            self._daemon.request("DELETE", path)

    def make(self, change: Change, console: Console) -> None:
        """Make a change, and print what was made known only once."""
        if change.kind is None:
            self._make_project(change)
        elif change.kind is Kind.MEMBER:
            self._make_member(change, console)
        elif change.kind is Kind.KEY:
            self._make_key(change, console)
        else:
            self._make_item(change, change.kind, console)
        console.print_note(f"done: {change}")

    def _make_project(self, change: Change) -> None:
        if change.verb is Verb.ADD:
            made = self._daemon.request("POST", "/projects", body=change.body)
            self._ids[change.project] = made["id"]
            return
        path = f"/projects/{change.id}?name={quote(change.name, safe='')}"
        self._daemon.request("DELETE", path)
        self._ids.pop(change.project)

    def _make_member(self, change: Change, console: Console) -> None:
        path = f"/projects/{self._ids[change.project]}"
        member = f"{path}/members/{change.id}"
        if change.verb is Verb.REMOVE:
            self._daemon.request("DELETE", member)
        elif change.verb is Verb.INVITE:
            body = {**change.body, "address": change.name}
            made = self._daemon.request("POST", f"{path}/invitations", body=body)
            console.print_line(f"{change.name}  {made['url']}")
            console.print_note("send the link to this person: it is shown only once")
        else:
            self._daemon.request("PUT", member, body=change.body)

    def _make_key(self, change: Change, console: Console) -> None:
        path = f"/projects/{self._ids[change.project]}/keys"
        if change.verb is Verb.REMOVE:
            self._daemon.request("DELETE", f"{path}/{change.id}")
            return
        _keep_secret(
            change.file, lambda: self._daemon.request("POST", path, body=change.body), console
        )

    def _make_item(self, change: Change, kind: Kind, console: Console) -> None:
        client, path = self._client(change.project), _PATHS[kind]
        one = f"{path}/{quote(change.id, safe='')}"
        if change.verb is Verb.REMOVE:
            client.request("DELETE", one)
            return
        if change.verb is Verb.CHANGE:
            made: Mapping[str, Any] = client.request("PATCH", one, body=change.body)
        elif kind is Kind.WEBHOOK:
            made = _keep_secret(
                change.file, lambda: client.request("POST", path, body=change.body), console
            )
        else:
            made = client.request("POST", path, body=change.body)
        for webhook in made.get("newWebhooks", ()):
            console.print_line(f"{webhook['url']}  {webhook['secret']}")
            console.print_note("save the secret: it signs the alerts, and is shown only once")


def _keep_secret(
    file: Path | None, make: Callable[[], Mapping[str, Any]], console: Console
) -> Mapping[str, Any]:
    """Make something with a secret, and write it to a file that only its owner can read.

    The file is created first, so that no secret is lost because it cannot be written.
    """
    if file is None:
        made = make()
        console.print_line(f"{made.get('url', made['id'])}  {made['secret']}")
        console.print_note("save the secret: it is shown only once")
        return made
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        try:
            made = make()
        except BaseException:
            file.unlink()
            raise
        opened.write(f"{made['secret']}\n")
    return made


def _all(
    client: Mailcheck, path: str, name: str, *, is_paged: bool = True, **query: Any
) -> list[Mapping[str, Any]]:
    """Return all entries of a list, reading all pages."""
    found: list[Mapping[str, Any]] = []
    while True:
        page = {"limit": LARGEST_PAGE, "page": len(found) // LARGEST_PAGE + 1} if is_paged else {}
        listed = client.request("GET", path, {**query, **page})[name]
        found += listed
        if not is_paged or len(listed) < LARGEST_PAGE:
            return found
