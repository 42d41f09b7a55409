"""Schemathesis tries every operation of the API as its description says, and finds no fault.

It sends examples, edge cases of each parameter, generated requests and sequences along the links,
valid and invalid, with and without a key, to a real daemon whose DNS is a name server on loopback.
`schemathesis.toml` says which checks are made.
"""

import contextlib
import json
import os
import re
import smtplib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.browser.tool_world import ToolWorld, running_tool_world
from tests.operations.scored_mails import MAIL
from tests.servers.clocks import accelerated
from tests.spec.description import load_document

pytestmark = pytest.mark.interop

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]

SEED = os.environ.get("MAILCHECK_SCHEMATHESIS_SEED", "6")
"""The seed of the requests, so that runs are equal; other seeds may be tried."""

EXAMPLES = pytest.mark.parametrize("examples", [2, pytest.param(20, marks=pytest.mark.soak)])
"""Generated requests for each operation, in addition to the edge cases."""

ACCELERATION = 10
"""Factor by which the daemon's clocks are faster. Hundreds of the requests are waits and streams of
a second, the shortest possible time."""

DEADLINE = 900.0  # seconds; it takes one to two minutes

LEFT_OUT = r"/inbox/webhooks|/checks/links|/checks/unsubscribe"
"""Paths that call other hosts; the tests of webhooks and links check their responses."""

MAY_BE_GONE = {
    "/inbox/messages/{id}/attachments/{attachmentId}",
    "/watches/{watchId}/alerts/{alertId}/acknowledge",
}
"""Responses for messages that another request may have deleted; no alert is raised here."""

MESSAGES = 40
WATCHES = 40
BETWEEN_MAILS = 0.2  # seconds

WITH_ATTACHMENT = (
    b"From: Ann Example <ann@good.test>\r\nSubject: Minutes\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: text/html\r\n\r\n<p>Your code is 482913</p>\r\n"
    b"--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\n"
    b"minutes\r\n--b--\r\n"
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ToolWorld]:
    """Run a daemon that trusts the addresses in its requests, with faster clocks."""
    environment = accelerated(ACCELERATION)
    with running_tool_world(
        tmp_path, environment=environment, web_trusted_proxies=["127.0.0.1/32"]
    ) as world:
        yield world


@contextlib.contextmanager
def mail_coming_in(world: ToolWorld) -> Iterator[None]:
    """Send mail until the context ends, because some of the requests delete all mail."""
    address, is_over = world.daemon.address("live"), Event()

    def send() -> None:
        while not is_over.wait(BETWEEN_MAILS):
            with contextlib.suppress(OSError, smtplib.SMTPException):
                world.send(address, WITH_ATTACHMENT)

    sender = Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        is_over.set()
        sender.join()


def known_values(world: ToolWorld) -> Mapping[str, Any]:
    """Store messages and a completed test, and return real values of parameters."""
    daemon = world.daemon
    test = daemon.ask("POST", "/test/generate").answer().json
    world.send(test["email"], MAIL)
    while daemon.get(f"/test/{test['testId']}").json["status"] != "completed":
        time.sleep(0.1)
    for number in range(MESSAGES):
        world.send(daemon.address(f"t{number % 5}"), WITH_ATTACHMENT)
    messages = daemon.get("/inbox/messages", limit=MESSAGES).json["messages"]
    watches = [{"target": f"w{number}.good.test", "paused": True} for number in range(WATCHES)]
    made = daemon.post("/watches/many", json.dumps({"watches": watches}).encode()).json["made"]
    return {
        "query": {
            "domain": ["good.test", "poor.test"],
            "query": ["good.test", "127.0.0.2", "8.8.4.10"],
            "selector": ["default", "s1"],
            "ip": ["8.8.4.10"],
            "after": ["c0", "c1"],
            "since": ["2026-01-01T00:00:00Z"],
            "to": [messages[0]["to"], ""],
            "tagPrefix": ["t", ""],
        },
        "body": {
            "target": ["good.test", "poor.test", "8.8.4.10"],
            "addresses": [[], ["8.8.4.10"]],
            "selectors": [[], ["default", "s1"]],
            "quiet": ["", "22:00-06:00"],
            "alertTo": [[]],  # the operator must allow others
        },
        "path": {
            "id": [message["id"] for message in messages],
            "testId": [test["testId"]],
            "watchId": [watch["id"] for watch in made],
            "attachmentId": ["1", "2"],
        },
    }


def run_schemathesis(
    world: ToolWorld, folder: Path, examples: int
) -> "subprocess.CompletedProcess[str]":
    """Run it with the description that the daemon serves."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MAILCHECK_KEY": world.daemon.key,
        "MAILCHECK_KNOWN": json.dumps(known_values(world)),
        "MAILCHECK_ANSWERS": str(folder / "answers"),
    }
    return subprocess.run(
        [
            str(Path(sys.executable).with_name("st")),
            "--config-file",
            str(FOLDER / "schemathesis.toml"),
            "run",
            f"http://127.0.0.1:{world.daemon.http_port}/api/v1/openapi.json",
            "--checks=all",
            f"--max-examples={examples}",
            f"--seed={SEED}",
            f"--exclude-path-regex={LEFT_OUT}",
            "--generation-database=none",
            "--no-color",
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@EXAMPLES
@pytest.mark.soak
@pytest.mark.end_to_end
@pytest.mark.timeout(DEADLINE + 60)
def test_schemathesis_finds_nothing(world: ToolWorld, tmp_path: Path, examples: int) -> None:
    """No response breaks the description, and every operation succeeded at least once."""
    with mail_coming_in(world):
        done = run_schemathesis(world, tmp_path, examples)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    answers = Counter((tmp_path / "answers").read_text().splitlines())
    for path, methods in load_document()["paths"].items():
        if re.search(LEFT_OUT, path) or path in MAY_BE_GONE:
            continue
        for method in methods if path != "/openapi.json" else ():  # its own source is not tried
            assert answers[f"{method.upper()} {path} 200"], (method, path)
    for refused in ("GET /inbox/wait 400", "GET /inbox/wait 408", "GET /test/{testId} 404"):
        assert answers[refused], refused
    assert answers.total() > 800
