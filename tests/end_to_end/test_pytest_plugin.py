"""The fixtures for pytest in the package: a daemon for the run, an inbox for each test."""

import configparser
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mailcheck.clients import pytest_daemon
from mailcheck.clients.pytest_daemon import DaemonNotStarted, Server
from tests.servers.daemon import START_DEADLINE, Daemon

pytestmark = pytest.mark.end_to_end

PLUGIN = "mailcheck.clients.pytest_plugin"
ROOT = Path(__file__).parents[2]

SHOP = """
import smtplib

def sign_up(inbox, code="482913"):
    text = f"Subject: Welcome\\n\\nYour code is {code}: https://shop.example.com/confirm?t=7f3a\\n"
    with smtplib.SMTP(inbox.smtp_host, inbox.smtp_port) as smtp:
        smtp.sendmail("shop@example.com", [inbox.address], text)
"""

SUITE = """
import pytest
from shop import sign_up

@pytest.mark.parametrize("number", range(4))
def test_sign_up(mailcheck_inbox, number):
    sign_up(mailcheck_inbox)
    mail = mailcheck_inbox.wait()
    assert mail.code == "482913"
    assert mail.link == "https://shop.example.com/confirm?t=7f3a"

def test_nothing_is_sent(mailcheck_inbox):
    mailcheck_inbox.none(seconds=0.1)
"""

FAILING = """
def test_wrong_code(mailcheck_inbox):
    sign_up(mailcheck_inbox, code="111222")
    assert mailcheck_inbox.wait().code == "482913"

def test_no_mail(mailcheck_inbox):
    assert mailcheck_inbox.messages()

def test_other_mail(mailcheck_inbox):
    sign_up(mailcheck_inbox)
    mailcheck_inbox.wait(timeout=0.1, subject="invoice")
"""

ONE_DAEMON = """
import smtplib
from pathlib import Path

def test_any_recipient(mailcheck, worker_id):
    Path(f"seen-by-{worker_id}").write_text(mailcheck.url)
    with smtplib.SMTP(mailcheck.smtp_host, mailcheck.submission_port) as smtp:
        smtp.login("shop", mailcheck.key)
        text = "Subject: Welcome\\n\\nYour code is 111222"
        smtp.sendmail("shop@example.com", [f"{worker_id}@customer.example"], text)
    assert mailcheck.wait(to=f"{worker_id}@customer.example").code == "111222"
"""

KILLED = """
import os, signal
from pathlib import Path

def test_the_run_is_killed(mailcheck):
    Path("url").write_text(mailcheck.url)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run_suite(
    folder: Path, suite: str, *options: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a suite with the plugin, as `pip install` activates it, and without those of others."""
    (folder / "shop.py").write_text(SHOP)
    (folder / "test_suite.py").write_text(suite)
    ours = ("MAILCHECK", "PYTEST")
    inherited = {name: one for name, one in os.environ.items() if not name.startswith(ours)}
    environment = {**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    plugins = ("-p", PLUGIN, "-p", "no:cacheprovider", f"--basetemp={folder / 'base'}")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *options, "--rootdir=."],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_DEADLINE + 60,
    )


def require_end(folder: Path) -> None:
    """Wait until the daemon of a run has ended."""
    log = folder / "base" / "mailcheck" / "daemon.log"
    deadline = time.monotonic() + START_DEADLINE
    while "Server Shut Down" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.01)


def test_the_daemon_of_the_environment(shared_daemon: Daemon, tmp_path: Path) -> None:
    """With MAILCHECK_URL and the key, tests use that daemon, and none is started.

    The report of a failed test has the mails to its address, and no line of the library.
    """
    variables = {
        "MAILCHECK_URL": f"http://127.0.0.1:{shared_daemon.http_port}",
        "MAILCHECK_API_KEY": shared_daemon.key,
    }
    done = run_suite(tmp_path, SUITE + FAILING, **variables)
    assert "3 failed, 5 passed" in done.stdout, done.stdout
    assert "from nobody: 'Welcome' 111222 https://shop.example.com/confirm?t=7f3a" in done.stdout
    assert "no mail has arrived for dev-" in done.stdout
    assert "its subject is 'Welcome'" in done.stdout
    assert "raise NoMail" not in done.stdout
    assert not (tmp_path / "base" / "mailcheck").exists()
    server = Server(f"http://127.0.0.1:{shared_daemon.http_port}", shared_daemon.key)
    assert (server.smtp_host, server.smtp_port) == ("127.0.0.1", shared_daemon.smtp_port)
    assert server.key == shared_daemon.key


def test_workers_share_a_daemon(tmp_path: Path) -> None:
    """Without a daemon in the environment, one starts for all workers, and ends with them."""
    options = ("-p", "xdist.plugin", "-n", "2", "--dist=each")
    done = run_suite(tmp_path, SUITE + ONE_DAEMON, *options)
    assert "12 passed" in done.stdout, done.stdout
    seen = {path.read_text() for path in tmp_path.glob("seen-by-gw*")}
    assert len(list(tmp_path.glob("seen-by-gw*"))) == 2
    assert len(seen) == 1
    require_end(tmp_path)


def test_a_killed_run(tmp_path: Path) -> None:
    """A daemon ends even if the process of pytest had no time to stop it."""
    assert run_suite(tmp_path, KILLED).returncode == -signal.SIGKILL
    require_end(tmp_path)


def test_a_daemon_that_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the output of the daemon."""
    monkeypatch.setenv("MAILCHECK_INBOX_RETENTION_HOURS", "forever")
    with (
        pytest.raises(DaemonNotStarted, match="retention_hours"),
        pytest_daemon.shared_daemon(tmp_path),
    ):
        pass


def test_a_suite_without_mail_pays_nothing() -> None:
    """A run that does not use it loads three modules of the package."""
    program = (
        "import sys, pytest; before = set(sys.modules); "
        f"import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["mailcheck", "mailcheck.clients", PLUGIN]


def test_installation_activates_it() -> None:
    """The package has the entry point, and does not require pytest."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["options.entry_points"]["pytest11"].split() == ["mailcheck", "=", PLUGIN]
    assert "pytest" not in setup["options"]["install_requires"]
