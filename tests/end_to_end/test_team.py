"""A team is set up over the API alone, and its changes survive kills with their audit log."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from random import uniform
from typing import Any

import pytest

from tests.docs.blocks import ROOT, code_with
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.postgresql import TEMPLATE

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

GUIDE = ROOT / "docs" / "how-to" / "set-up-a-team.md"

SCRIPT = ROOT / "docs" / "recipes" / "set_up_a_team.py"

SCOPES = (
    *("operator", "project:admin", "inbox:read", "inbox:write"),
    *("domains", "watches", "webhooks"),
)

COMPANY = {"oidc_issuer": "https://id.example.com", "oidc_client_id": "mailcheck"}

KILLS = int(os.environ.get("AUDIT_KILLS", "6"))
"""Kills of the daemon on each store; a variable of the environment may set more."""

WRITERS = 4
"""Number of clients that change rights at the same time."""


def operator_key(daemon: Daemon) -> str:
    """Issue the key of the guide on the machine of the daemon."""
    options = [word for scope in SCOPES for word in ("--scope", scope)]
    program = str(Path(sys.executable).with_name("mailcheck"))
    command = [program, "key", "issue", "developer", *options]
    done = subprocess.run(
        command,
        cwd=daemon.folder,
        env=daemon.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def ask(daemon: Daemon, key: str, method: str, path: str, body: Any = None) -> Any:
    """Send a request with a key, and return its answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    return daemon.ask(method, path, headers, data).answer()


def run_script(daemon: Daemon, key: str, command: str, **environment: str) -> str:
    """Run the script as the guide does, and return what it prints."""
    assert f"python3 {SCRIPT.name} {command}\n" in code_with(GUIDE, f"{SCRIPT.name} up")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), command],
        cwd=daemon.folder,
        env={
            **os.environ,
            "MAILCHECK_URL": f"http://{HOST}:{daemon.http_port}",
            "MAILCHECK_OPERATOR_KEY": key,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("company", ["", "yes"])
def test_a_team_is_set_up_and_taken_down(company: str, tmp_path: Path) -> None:
    """The script sets everything up by REST alone, and leaves nothing behind."""
    options: dict[str, Any] = {"web_public_url": "https://mail.example.com", **COMPANY}
    with running_daemon(tmp_path, **(options if company else {})) as daemon:
        key = operator_key(daemon)
        printed = run_script(daemon, key, "up", COMPANY_SIGN_IN=company)
        assert ("/sign-in/link?code=" in printed) is (not company)
        projects = ask(daemon, key, "GET", "/projects").json["projects"]
        assert [one["name"] for one in projects] == ["newsletter", "webshop"]
        members = ask(daemon, key, "GET", f"/projects/{projects[1]['id']}/members").json["members"]
        assert [one["role"] for one in members] == ["owner", "editor", "reader"]
        secret = tmp_path / "webshop-ci.key"
        assert secret.stat().st_mode & 0o777 == 0o600
        inbox = ask(daemon, secret.read_text(), "GET", "/inbox").json
        assert inbox["address"] == projects[1]["address"]
        run_script(daemon, key, "down")
        assert ask(daemon, key, "GET", "/projects").json["projects"] == []
        left = ask(daemon, key, "GET", "/accounts").json["accounts"]
        assert [one["name"] for one in left] == ["developer"]
        assert ask(daemon, secret.read_text(), "GET", "/inbox").status == 401


class Changes:
    """A client that changes keys and roles of one project until the daemon is gone."""

    def __init__(self, daemon: Daemon, key: str, project: str, person: str) -> None:
        self._daemon, self._key, self._person = daemon, key, person
        self._one = f"/projects/{project}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                made = self._ask("POST", "/keys", {"name": "x", "scopes": ["tests"]})
                self._ask("PUT", f"/members/{self._person}", {"role": "editor"})
                self._ask("DELETE", f"/keys/{made.json['id']}")
                self._ask("PUT", f"/members/{self._person}", {"role": "reader"})
        except (OSError, HTTPException, ValueError, KeyError):
            pass  # the daemon was killed

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return ask(self._daemon, self._key, method, self._one + path, body)

    def end(self) -> None:
        """Wait for the end of the last request."""
        self._thread.join(timeout=60)


def entries_of(daemon: Daemon, key: str, project: str) -> Iterator[Any]:
    """Return the entries about a project, oldest first."""
    cursor = "a0"
    while True:
        path = f"/projects/{project}/audit?after={cursor}&limit=100"
        page = ask(daemon, key, "GET", path).json
        yield from page["entries"]
        cursor = page["cursor"]
        if not page["hasMore"]:
            return


def check(daemon: Daemon, key: str, project: str, person: str) -> int:
    """Check that the log tells exactly the state of a project; return the number of entries."""
    valid, role, count = set(), "", 0
    for entry in entries_of(daemon, key, project):
        count += 1
        key_id = re.split(r"[ ,]", entry["detail"])[0]
        if entry["action"] == "key issued":
            assert key_id not in valid
            valid.add(key_id)
        elif entry["action"] == "key revoked":
            valid.remove(key_id)
        elif entry["action"] == "member set":
            role = entry["detail"].rpartition(": ")[2]
    listed = ask(daemon, key, "GET", f"/projects/{project}/keys").json["keys"]
    assert {one["id"] for one in listed} == valid
    members = ask(daemon, key, "GET", f"/projects/{project}/members").json["members"]
    assert [one["role"] for one in members if one["id"] == person] == ([role] if role else [])
    return count


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_kills_while_rights_change(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """After each kill there is no change without its entry, and no entry without its change."""
    options: dict[str, Any] = {}
    if store == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        options["storage_url"] = server.make_database(f"audit_{os.getpid()}", TEMPLATE)
    with running_daemon(tmp_path / "killed", **options) as daemon:
        key = operator_key(daemon)
        person = ask(daemon, key, "POST", "/accounts", {"name": "ann"}).json["id"]
        projects = [
            ask(daemon, key, "POST", "/projects", {"name": f"project {number}"}).json["id"]
            for number in range(WRITERS)
        ]
        total = 0
        for number in range(KILLS):
            clients = [Changes(daemon, key, project, person) for project in projects]
            time.sleep(uniform(0.2, 0.6))
            (daemon.kill if number % 2 else daemon.kill_first)()
            for client in clients:
                client.end()
            daemon.start()
            found = sum(check(daemon, key, project, person) for project in projects)
            assert found > total, "nothing was changed"
            total = found
            for project in projects:  # make room for the next round
                keys = ask(daemon, key, "GET", f"/projects/{project}/keys").json["keys"]
                for one in keys:
                    ask(daemon, key, "DELETE", f"/projects/{project}/keys/{one['id']}")
