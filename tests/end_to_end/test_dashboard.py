"""The dashboard of a real daemon: its password, its cookies, and its commands to copy."""

import os
import re
import subprocess
import sys
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

import pytest

from tests.servers.daemon import HOST, Daemon
from tests.servers.programs import find_program

pytestmark = pytest.mark.end_to_end

LONGEST = 60  # seconds


class Visitor:
    """A user with a browser without scripts."""

    def __init__(self, daemon: Daemon) -> None:
        self._base = f"http://{HOST}:{daemon.http_port}"
        self._opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
        self.page = ""

    def open(self, path: str, **form: str) -> str:
        """Open a page, or submit the form of the current page."""
        data = None
        if form:
            token = re.search(r'name="form-token" value="([^"]+)"', self.page)
            assert token is not None
            data = urlencode({"form-token": token[1], **form}).encode()
        request = Request(self._base + path, data, {"Accept": "text/html"})
        with self._opener.open(request, timeout=LONGEST) as response:
            self.page = response.read().decode()
        return self.page

    def pasted(self, name: str) -> str:
        """Return the text of a box with commands."""
        found = re.search(rf'<pre id="{name}"[^>]*>(.*?)</pre>', self.page, re.DOTALL)
        assert found is not None
        return unescape(found[1])


def sign_in(daemon: Daemon) -> Visitor:
    """Return a visitor, signed in as the first account with the password of the first start."""
    path = daemon.folder / "var" / "dashboard-password"
    assert path.stat().st_mode & 0o777 == 0o600
    visitor = Visitor(daemon)
    visitor.open("/sign-in")
    page = visitor.open("/sign-in", name="developer", password=path.read_text().strip(), next="/")
    assert daemon.address().partition("@")[0] in page
    return visitor


def test_the_first_mail(empty_inbox: Daemon) -> None:
    """The command on the page of an empty inbox sends a mail that arrives."""
    find_program("curl")
    command = sign_in(empty_inbox).pasted("first-mail")
    cursor = empty_inbox.cursor()
    subprocess.run(["bash", "-c", command], check=True, timeout=LONGEST)
    message = empty_inbox.get("/inbox/wait", after=cursor, timeout=30).json
    assert message["subject"] == "Welcome"
    assert message["codes"] == ["482913"]
    assert message["bestLink"] == "https://example.com/confirm?t=7f3a"


def program_of(visitor: Visitor, snippet: str, folder: Path) -> list[str]:
    """Create a key, write a snippet and its library, and return the command that runs it."""
    visitor.open("/p/me/keys")
    visitor.open("/p/me/keys", name=f"for {snippet}")
    text = visitor.pasted(f"snippet-{snippet}")
    url = re.search(r"curl -sO (\S+)", text)
    if url is not None:
        subprocess.run(["curl", "-sfO", url[1]], cwd=folder, check=True, timeout=LONGEST)
    names = {"curl": "try.sh", "javascript": "try.mjs", "pytest": "test_pasted.py"}
    name = names.get(snippet, "try.py")
    (folder / name).write_text(text)
    runner = {"curl": "bash", "javascript": "node"}.get(snippet, sys.executable)
    return [find_program(runner, package="nodejs"), name]


@pytest.mark.interop
@pytest.mark.parametrize("snippet", ["curl", "python", "javascript"])
def test_what_is_pasted_works(shared_daemon: Daemon, snippet: str, tmp_path: Path) -> None:
    """Each program beside a new key waits for a mail and prints its code."""
    command = program_of(sign_in(shared_daemon), snippet, tmp_path)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    with process:
        line = process.stdout.readline().decode()
        found = re.search(r"dev-[a-z2-7]{13}\+[\w.-]+@mailcheck\.example", line)
        assert found is not None, line
        sent = write_mail(shared_daemon, found[0])
        subprocess.run(["bash", "-c", sent], check=True, timeout=LONGEST)
        output, _ = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, output
    assert b"482913" in output


@pytest.mark.interop
def test_the_pasted_pytest_runs(shared_daemon: Daemon, tmp_path: Path) -> None:
    """The test beside a new key gets the mail of a sign-up with the settings above it."""
    program_of(sign_in(shared_daemon), "pytest", tmp_path)
    pasted = (tmp_path / "test_pasted.py").read_text()
    sign_up = (
        "import smtplib\n"
        "def sign_up(email):\n"
        f"    with smtplib.SMTP({HOST!r}, {shared_daemon.smtp_port}) as smtp:\n"
        "        mail = 'Subject: x\\r\\n\\r\\nYour code is 482913\\r\\n'\n"
        "        smtp.sendmail('a@example.com', [email], mail)\n"
    )
    (tmp_path / "test_pasted.py").write_text(sign_up + pasted)
    settings = dict(pair.split("=", 1) for pair in re.findall(r"MAILCHECK_\w+=\S+", pasted))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mailcheck_client", "-p", "no:randomly"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def write_mail(daemon: Daemon, recipient: str) -> str:
    """Return a command that sends a mail."""
    return (
        r"printf 'Subject: Hi\n\nYour code is 482913\n' | curl -s --crlf -T - "
        f"smtp://{HOST}:{daemon.smtp_port} --mail-from a@example.com --mail-rcpt {recipient}"
    )
