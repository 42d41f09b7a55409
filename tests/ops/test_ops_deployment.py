"""What operators copy: systemd's units, and fail2ban's filter for the lines that we write."""

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from twisted.logger import Logger

from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import Session
from mailcheck.operations.ports import WebFault
from mailcheck.ops.journal import ClientJournal, MailJournal, Pace
from mailcheck.ops.log import RENDERINGS, LogWriter
from mailcheck.smtp import replies
from tests.servers.programs import find_program

ROOT = Path(__file__).parents[2]
SYSTEMD = ROOT / "systemd"
SERVICE = SYSTEMD / "mailcheck.service"
MOST_EXPOSED = 2.0

GUESSER = "203.0.113.9"
"""Who tries keys, passwords and addresses."""

CUSTOMER = "198.51.100.7"
"""Who sends mail, forgets a key, or meets a fault of ours."""


def options(path: Path) -> dict[str, list[str]]:
    """Read a unit; an option may stand in it more than once."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", path.read_text(), re.M):
        found.setdefault(name, []).append(value)
    return found


def test_units_are_understood(tmp_path: Path) -> None:
    """Systemd has nothing to say against the units but that mailcheck is not installed here."""
    analyze = find_program("systemd-analyze", package="systemd")
    program = tmp_path / "twistd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for path in SYSTEMD.glob("mailcheck*.*"):
        text = path.read_text().replace("/opt/mailcheck/bin/twistd", str(program))
        (tmp_path / path.name).write_text(text)
    units = [*map(str, tmp_path.glob("*.service")), *map(str, tmp_path.glob("*.socket"))]
    assert len(units) >= 4
    done = subprocess.run(
        [analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", sorted(SYSTEMD.glob("*.service")), ids=lambda path: path.name)
def test_units_are_tight(path: Path) -> None:
    """A daemon that is broken into can do little: not root, and hardly exposed."""
    analyze = find_program("systemd-analyze", package="systemd")
    done = subprocess.run(
        [analyze, "security", "--offline=true", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert level is not None, done.stdout + done.stderr
    assert float(level[1]) <= MOST_EXPOSED, done.stdout
    assert options(path)["User"] == ["mailcheck"]
    assert "LoadCredential" in options(path)


def test_sockets_fit_the_service() -> None:
    """Each socket that the service is given has the name by which an option asks for it."""
    asked = re.findall(r"=systemd:domain=INET6?:name=(\w+)", SERVICE.read_text())
    sockets = options(SERVICE)["Sockets"][0].split()
    given = {name: options(SYSTEMD / name)["FileDescriptorName"][0] for name in sockets}
    assert sorted(given.values()) == sorted(asked)
    ports = {given[name]: options(SYSTEMD / name)["ListenStream"] for name in sockets}
    assert ports == {"mail": ["25"], "submission": ["587"], "http": ["127.0.0.1:8080"]}


def a_days_log(kind: str) -> str:
    """Write what guessers and customers leave behind, by the code that writes it in a daemon."""
    output = io.StringIO()
    log = Logger("mailcheck.ops.journal", observer=LogWriter(output, RENDERINGS[kind], "info"))
    pace = Pace()
    mail, submission = MailJournal("mail", pace), MailJournal("submission", pace)
    clients = ClientJournal(pace)
    for journal in (mail, submission, clients):
        journal._log = log
    unknown = replies.reply(550, f"no inbox has the address {CUSTOMER}@x", "5.1.1")
    mail.note_refusal(GUESSER, "RCPT", unknown)
    submission.note_refusal(GUESSER, "AUTH", replies.reply(535, "the API key is unknown", "5.7.8"))
    clients.note_failed_access("key", GUESSER, "the API key is unknown")
    clients.note_failed_access("key", "2001:db8::1", "the API key has been revoked")
    clients.note_failed_access("sign-in", GUESSER, "no account has this name and this password")
    clients.note_failed_access("key", CUSTOMER, "an API key is missing: send it as ...")
    clients.note_fault(WebFault(503, CUSTOMER, "GET", "/api/v1/inbox", "", "restarting"))
    mail.note_refusal(CUSTOMER, "RCPT", replies.reply(452, "the inbox is full", "4.2.2"))
    mail.note_refusal(CUSTOMER, "RCPT", replies.reply(550, "5.1.1 client=192.0.2.1", "5.2.1"))
    session = Session(CUSTOMER, "x", True, None, None)
    mail.note_delivery(session, f"x@failed key: client={CUSTOMER}", DeliveryId("d"), 1, 1, 0.0)
    return output.getvalue()


@pytest.mark.parametrize("kind", RENDERINGS)
def test_fail2ban(tmp_path: Path, kind: str) -> None:
    """Fail2ban finds who guesses, in text and in JSON, and nobody else."""
    program = find_program("fail2ban-regex", package="fail2ban")
    log = tmp_path / "mailcheck.log"
    log.write_text(a_days_log(kind))
    filter_path = tmp_path / "filter.conf"
    shutil.copy(ROOT / "etc" / "fail2ban" / "filter.conf", filter_path)
    done = subprocess.run(
        [program, "--out", "ip", str(log), str(filter_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.split()) == ["2001:db8::1", *[GUESSER] * 4]
