"""The daemon of a run of pytest, and the inbox of a test: what the plugin imports when it is used.

The daemon reads a named pipe that each process which uses it keeps open for writing. The end of
the pipe is the end of the last process, however it ended, and the daemon stops.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from mailcheck.clients.mailcheck_client import Address, Mailcheck, MailcheckError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
HOST = "127.0.0.1"

START_DEADLINE = 90.0
"""Seconds until a daemon must be ready."""

STOP_DEADLINE = 15.0
"""Seconds until a daemon must have ended."""

POLL = 0.01
"""Seconds between two questions whether the daemon is ready."""

DEFAULT_SMTP_PORT = 25

SHOWN = 20
"""Maximum number of mails in the report of a failed test."""

UNLIMITED = "100000000"

OPTIONS = {
    "ACCOUNTS_BOOTSTRAP": "true",
    "LIMITS_REQUESTS_PER_MINUTE": UNLIMITED,
    "LIMITS_REQUESTS_PER_DAY": UNLIMITED,
    "LIMITS_WAITS_PER_KEY": "10000",
    # A nearly full disk is not a failure of the software under test.
    "STORAGE_MIN_FREE": "0",
}
"""The daemon of tests differs from others in these options, unless the environment sets them."""

OWN_OPTIONS = {
    "STORAGE_URL": "sqlite:var/mailcheck.db",
    "STORAGE_STATE_DIRECTORY": "var",
    "OPS_LISTEN": "",
    "IMAP_LISTEN": "",
    "POP3_LISTEN": "",
    "MILTER_LISTEN": "",
}
"""Options of this daemon alone, whatever the environment sets: it shares no port and no store."""

# A thread takes the place of a supervisor process.
_SERVE = """
import os, signal, sys, threading
from mailcheck.cli.main import main

def stop_after_the_last_user():
    with open("users", "rb") as users:
        users.read()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=stop_after_the_last_user, daemon=True).start()
main(["serve"])
"""


class DaemonNotStarted(Exception):
    """The daemon ended or was not ready in time. The message is its output."""


class Server(Mailcheck):
    """The daemon of a run, with all calls of the client library.

    ``key`` is its API key. ``submission_port`` accepts mail to any recipient, with any user name
    and the key as the password; it is `None` for the daemon of ``MAILCHECK_URL``. Mail to an
    address of the inbox needs no password at ``smtp_host`` and ``smtp_port``.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        smtp_port: int | None = None,
        submission_port: int | None = None,
    ) -> None:
        super().__init__(url, key)
        self.key = self.authorization["Authorization"].removeprefix("Bearer ")
        self.smtp_host, self.submission_port = HOST, submission_port
        if smtp_port is None:
            server = urlsplit(f"//{self.request('GET', '/inbox')['mailServer']}")
            self.smtp_host, smtp_port = server.hostname or "", server.port or DEFAULT_SMTP_PORT
        self.smtp_port = smtp_port


class Inbox(Address):
    """An address of one test, with the cursor from which its waits begin, and the mail to it."""

    def __init__(self, server: Server, label: str) -> None:
        made = server.new_address(label)
        super().__init__(server, made.email, made.tag, made.cursor)
        self.address = made.email
        self.smtp_host = server.smtp_host
        self.smtp_port = server.smtp_port

    none = Address.expect_none

    def describe(self) -> str:
        """Return a line for each mail to this address, or the error of the daemon."""
        try:
            mails = self.messages()[::-1]
        except MailcheckError as error:
            return str(error)
        if not mails:
            return f"no mail has arrived for {self.address}"
        lines = [f"{len(mails)} arrived for {self.address}"]
        for mail in mails[:SHOWN]:
            found = [*mail["codes"][:1], *([mail["bestLink"]] if mail["bestLink"] else [])]
            author = mail["from"]["address"] or "nobody"
            line = f"  {mail['receivedAt']} from {author}: {mail.subject!r}"
            lines.append(" ".join([line, *found]))
        return "\n".join(lines)


@contextmanager
def shared_daemon(folder: Path) -> Iterator[Server]:
    """Use the daemon of a folder until the end of the block. The first process starts it.

    :raises DaemonNotStarted: see there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    process = None
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the daemon is ready
        users = _join(folder)
        if users is None:
            process, users = _start(folder)
    try:
        url, smtp_port, submission_port = json.loads((folder / "ports").read_text("utf-8"))
        key = (folder / "var" / "api-key").read_text("utf-8")
        yield Server(url, key, smtp_port, submission_port)
    finally:
        os.close(users)
        if process is not None:
            _when_ended(process)


def _join(folder: Path) -> int | None:
    """Return the pipe of a running daemon, open for writing; `None` if no daemon reads it."""
    try:
        return os.open(folder / "users", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # the pipe does not exist, or has no reader
        return None


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a daemon and wait until it is ready. Return its process and its pipe."""
    with suppress(FileExistsError):
        os.mkfifo(folder / "users", 0o600)
    web, smtp, submission = _free_ports(3)
    url = f"http://{HOST}:{web}"
    (folder / "ports").write_text(json.dumps([url, smtp, submission]), "utf-8")
    listen = {"WEB_LISTEN": web, "SMTP_LISTEN": smtp, "SMTP_SUBMISSION_LISTEN": submission}
    own = {**OWN_OPTIONS, **{name: f"{HOST}:{port}" for name, port in listen.items()}}
    usual = {f"MAILCHECK_{name}": value for name, value in OPTIONS.items()}
    environment = {
        **usual,
        **os.environ,
        **{f"MAILCHECK_{name}": value for name, value in own.items()},
    }
    with (folder / "daemon.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _SERVE],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C ends the tests first
        )
    try:
        return process, _when_ready(folder, url, process)
    except BaseException:  # Ctrl-C too
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _when_ready(folder: Path, url: str, process: subprocess.Popen[bytes]) -> int:
    """Wait until a daemon is ready, and return its pipe."""
    users, deadline = None, time.monotonic() + START_DEADLINE
    while users is None or not _is_ready(url):
        if process.poll() is not None or time.monotonic() > deadline:
            output = (folder / "daemon.log").read_text("utf-8", "replace")
            raise DaemonNotStarted(f"the daemon in {folder} does not start:\n{output}")
        users = _join(folder) if users is None else users
        time.sleep(POLL)
    return users


def _is_ready(url: str) -> bool:
    try:
        with build_opener(ProxyHandler({})).open(f"{url}/readyz", timeout=1):
            return True
    except (OSError, URLError):
        return False


def _when_ended(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of the daemon, unless other workers may use it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        process.returncode = 0  # it outlives this process on purpose: `Popen` need not warn
        return
    process.wait(STOP_DEADLINE)


def _free_ports(count: int) -> Sequence[int]:
    """Return ports that no program uses now."""
    with ExitStack() as open_ones:
        found = [open_ones.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in found]
