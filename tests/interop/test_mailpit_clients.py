"""The clients of Mailpit and MailHog run unchanged against mailcheck.

The daemon is started as docs/how-to/move-from-mailpit.md and move-from-mailhog.md do. Each client
waits for sign-up mails that are sent after its wait has begun, reads the code, the link and the
attachment of each, searches, and deletes the mail.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.interop.like_mailpit import LikeMailpit

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / ".venv-inbox-clients"
SCRIPTS = Path(__file__).parent / "inbox_clients"
PYTHON = str(CLIENTS / "python" / "bin" / "python")

FILE = b"one\r\ntwo\0"

DELAY = 1.0
"""Seconds between the beginning of the waits and the mails."""

CROWD = 30

ALONE = {
    "mailpit-api": ["node", "mailpit_api.mjs"],
    "cypress-mailpit": ["node", "cypress_mailpit.mjs"],
    "mailpit-api-client": [PYTHON, "mailpit_api_client.py"],
    "mailhog": ["node", "mailhog.mjs"],
    "mailhog-python": [PYTHON, "mailhog_client.py"],
}


def code_for(recipient: str) -> str:
    """Return the code in the mail to a recipient."""
    number = int(recipient.partition("@")[0].rpartition("-")[2])
    return str(482_000 + number)


def mail_to(recipient: str) -> EmailMessage:
    """Return a sign-up mail."""
    code = code_for(recipient)
    link = f"https://shop.example/confirm?t={code}"
    message = EmailMessage()
    message["From"], message["To"] = "Shop <shop@example.com>", recipient
    message["Subject"] = f"Welcome {recipient}"
    message["Message-ID"] = f"<{code}@example.com>"
    message["Date"] = "Sat, 21 Nov 2026 10:00:00 +0100"
    message["Delivered-To"] = recipient
    message.set_content(f"Your code is {code}. Open {link} to confirm.")
    message.add_alternative(
        f'<p>Your code is <b>{code}</b>. <a href="{link}">Confirm</a></p>', subtype="html"
    )
    message.add_attachment(FILE, maintype="application", subtype="pdf", filename="a.pdf")
    return message


@pytest.fixture(scope="module")
def mailpit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LikeMailpit]:
    """A daemon that listens as Mailpit does."""
    daemon = LikeMailpit(tmp_path_factory.mktemp("mailpit"))
    try:
        daemon.start()
        assert f"accessible via {daemon.url}/" in daemon.output()
        yield daemon
        assert "Traceback" not in daemon.output()
    finally:
        daemon.kill()


def run(daemon: LikeMailpit, command: Sequence[str], recipients: Sequence[str]) -> list[Any]:
    """Run a client until its waits have begun, send the mails, and return what it printed."""
    if not (CLIENTS / "installed").exists():
        pytest.skip("the clients are not installed: run `make inbox-clients`")
    program, script = command
    client = subprocess.Popen(
        [program, str(SCRIPTS / script), daemon.url, *recipients],
        env={**os.environ, "CLIENTS": str(CLIENTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "waiting\n", client.communicate()[1]
    time.sleep(DELAY)
    mails = [mail_to(one) for one in reversed(recipients)]
    sending = Thread(target=daemon.deliver, args=(mails,))
    sending.start()
    output, errors = client.communicate(timeout=120)
    sending.join()
    assert client.returncode == 0, errors
    printed: list[Any] = json.loads(output.splitlines()[-1])
    return printed


def check(rows: Sequence[Any], recipients: Sequence[str]) -> None:
    """Check what a client has found for each recipient."""
    assert [row["to"] for row in rows] == list(recipients)
    for row in rows:
        code = code_for(row["to"])
        assert row["code"] == code
        assert row["link"] == f"https://shop.example/confirm?t={code}"
        assert bytes.fromhex(row["file"]) == FILE
        assert row["waited"] >= DELAY / 2
        assert (row["found"], row["left"]) == (1, 0)


def recipients_of(client: str, count: int) -> list[str]:
    """Return distinct addresses for a client."""
    return [f"{client}-{number}@customer.example" for number in range(count)]


@pytest.mark.parametrize("count", [1, CROWD])
@pytest.mark.parametrize("client", ALONE)
def test_a_client_runs_unchanged(mailpit: LikeMailpit, client: str, count: int) -> None:
    """It waits for each mail, reads and deletes it; alone, and in 30 tests at once."""
    recipients = recipients_of(client, count)
    check(run(mailpit, ALONE[client], recipients), recipients)


def test_a_suite_of_pytest_mailpit_runs_unchanged(mailpit: LikeMailpit, tmp_path: Path) -> None:
    """A suite with the fixtures of pytest-mailpit passes: mail, waits, checks, tags and chaos."""
    if not (CLIENTS / "installed").exists():
        pytest.skip("the clients are not installed: run `make inbox-clients`")
    suite = tmp_path / "test_shop.py"  # outside of our own configuration of pytest
    shutil.copy(SCRIPTS / "mailpit_suite.py", suite)
    ended = subprocess.run(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", str(suite)],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "MAILPIT_URL": mailpit.url,
            "SMTP_PORT": str(mailpit.mail_port),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
