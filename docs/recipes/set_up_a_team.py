"""Set a team up from nothing over the REST API of mailcheck, and take it down again.

    python set_up_a_team.py up
    python set_up_a_team.py down

``MAILCHECK_URL`` is the address of mailcheck, and ``MAILCHECK_OPERATOR_KEY`` a key of the operator
with all scopes. Keys are written to files that only you can read. It needs Python alone.
"""

import json
import os
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

URL = os.environ.get("MAILCHECK_URL", "http://127.0.0.1:8080") + "/api/v1"

PEOPLE = {
    # name of the account: subject of the person at the company's sign-in service, if there is one
    "ann@example.com": "248289761001",
    "ben@example.com": "248289761002",
    "cleo@example.com": "248289761003",
    "dan@example.com": "248289761004",
}

PROJECTS = {
    "webshop": {
        "ann@example.com": "owner",
        "ben@example.com": "editor",
        "cleo@example.com": "reader",
    },
    "newsletter": {"cleo@example.com": "owner", "dan@example.com": "editor"},
}

KEYS = {
    "ci": {"scopes": ["inbox:read", "inbox:write"], "tagPrefix": "run-", "perMinute": 30},
    "monitoring": {"scopes": ["domains"], "expiresInSeconds": 90 * 86_400},
}

WEBHOOK = {"url": "https://ci.example.com/mail", "tag": "signup"}
WATCH = {"target": "example.com", "everyMinutes": 60}


def call(method: str, path: str, body: object = None, key: str = "") -> dict:
    """Send a request; stop with the error of mailcheck if it is refused."""
    secret = key or os.environ["MAILCHECK_OPERATOR_KEY"]
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    try:
        with urlopen(Request(URL + path, data, headers, method=method)) as answer:
            return json.load(answer)
    except HTTPError as error:
        sys.exit(f"{method} {path}: {error.code} {json.load(error)['error']}")


def write_key(path: Path, secret: str) -> None:
    """Write a key to a file that only its owner can read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(secret)


def up() -> None:
    """Create four people and two projects with members, keys, a webhook and a watch each."""
    has_company = os.environ.get("COMPANY_SIGN_IN") == "yes"
    ids = {}
    for name, subject in PEOPLE.items():
        ids[name] = call("POST", "/accounts", {"name": name})["id"]
        if has_company:
            call("PUT", f"/accounts/{ids[name]}/identity", {"subject": subject})
        else:
            print(name, call("POST", f"/accounts/{ids[name]}/sign-in-link")["url"])
    for name, members in PROJECTS.items():
        first, *others = members
        project = call("POST", "/projects", {"name": name, "owner": first})
        for other in others:
            path = f"/projects/{project['id']}/members/{ids[other]}"
            call("PUT", path, {"role": members[other]})
        keys = f"/projects/{project['id']}/keys"
        for key_name, limits in KEYS.items():
            made = call("POST", keys, {"name": key_name, **limits})
            write_key(Path(f"{name}-{key_name}.key"), made["secret"])
        # Webhooks and watches belong to the account of the key: one that is for this setup alone.
        scopes = ["webhooks", "inbox:read", "watches"]
        setup = call("POST", keys, {"name": "setup", "scopes": scopes, "expiresInSeconds": 600})
        hook = call("POST", "/inbox/webhooks", WEBHOOK, setup["secret"])
        write_key(Path(f"{name}-webhook.secret"), hook["secret"])
        call("POST", "/watches", WATCH, setup["secret"])
        call("DELETE", f"{keys}/{setup['id']}")
        print(f"{name}: {project['address']}")


def down() -> None:
    """Delete the projects, then the people."""
    for project in call("GET", "/projects")["projects"]:
        if project["name"] in PROJECTS:
            call("DELETE", f"/projects/{project['id']}?name={quote(project['name'])}")
    for account in call("GET", "/accounts?kind=person&limit=100")["accounts"]:
        if account["name"] in PEOPLE:
            call("DELETE", f"/accounts/{account['id']}?name={quote(account['name'])}")


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]]()
