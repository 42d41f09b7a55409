"""Files that operators copy: units of systemd, and the fail2ban filter for mailcheck's log."""

import io
import os
import re
import subprocess
from pathlib import Path

import pytest
from twisted.logger import Logger

from mailcheck.assembly.deployment import naming
from mailcheck.config.reading import ConfigError
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.messages import Session
from mailcheck.operations.accounts.log_in import WRONG
from mailcheck.ops.journal import ClientJournal, LoginJournal, MailJournal, Pace
from mailcheck.ops.log import JOURNAL_RENDERINGS, RENDERINGS, LogWriter, Render
from mailcheck.ports.journals import WebFault
from mailcheck.smtp import replies
from tests.servers.programs import find_program
from tests.servers.unit_sandbox import read_unit
from tests.table import rows

ROOT = Path(__file__).parents[2]
SYSTEMD = ROOT / "systemd"
SERVICE = SYSTEMD / "mailcheck.service"
PAGE = ROOT / "docs" / "how-to" / "operate-a-daemon.md"

GUESSER = "203.0.113.9"
"""Address of a client that guesses keys, passwords and addresses."""

CUSTOMER = "198.51.100.7"
"""Address of a client that sends mail, forgets its key, or meets an internal error."""


@pytest.mark.interop
def test_units_are_understood(tmp_path: Path) -> None:
    """Systemd accepts the units; it reports only that mailcheck is not installed here."""
    analyze = find_program("systemd-analyze", package="systemd")
    for name in ("twistd", "mailcheck"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    for path in SYSTEMD.glob("mailcheck*.*"):
        text = path.read_text().replace("/opt/mailcheck/bin/", f"{tmp_path}/")
        (tmp_path / path.name).write_text(text)
    units = [*map(str, tmp_path.glob("*.service")), *map(str, tmp_path.glob("*.socket"))]
    assert len(units) >= 4
    done = subprocess.run(
        [analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.interop
@rows(*sorted(SYSTEMD.glob("*.service")))
def test_units_are_tight(path: Path) -> None:
    """The units restrict the daemon: it does not run as root, and its exposure is low."""
    analyze = find_program("systemd-analyze", package="systemd")
    done = subprocess.run(
        [analyze, "security", "--offline=true", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert level is not None, done.stdout + done.stderr
    assert f"rates it {level[1]} " in PAGE.read_text(), done.stdout
    assert read_unit(path)["User"] == ["mailcheck"]
    assert "LoadCredential" in read_unit(path)


def test_sockets_fit_the_service() -> None:
    """Each socket unit has the name that the option of the service refers to."""
    asked = re.findall(r"=systemd:domain=INET6?:name=(\w+)", SERVICE.read_text())
    sockets = read_unit(SERVICE)["Sockets"][0].split()
    given = {name: read_unit(SYSTEMD / name)["FileDescriptorName"][0] for name in sockets}
    assert sorted(given.values()) == sorted(asked)
    ports = {given[name]: read_unit(SYSTEMD / name)["ListenStream"] for name in sockets}
    assert ports == {"mail": ["25"], "submission": ["587"], "http": ["127.0.0.1:8080"]}


def a_days_log(render: Render) -> str:
    """Log the actions of attackers and customers with the code of the daemon."""
    output = io.StringIO()
    log = Logger("mailcheck.ops.journal", observer=LogWriter(output, render, "info"))
    pace = Pace()
    mail, submission = (MailJournal(name, pace, log) for name in ("mail", "submission"))
    clients = ClientJournal(pace, log)
    unknown = replies.reply(550, f"no inbox has the address {CUSTOMER}@x", "5.1.1")
    mail.note_refusal(GUESSER, "RCPT", unknown)
    submission.note_refusal(GUESSER, "AUTH", replies.reply(535, "the API key is unknown", "5.7.8"))
    clients.note_failed_access("key", GUESSER, "the API key is unknown")
    clients.note_failed_access("key", "2001:db8::1", "the API key has been revoked")
    clients.note_failed_access("sign-in", GUESSER, "no account has this name and password")
    logins = LoginJournal("POP3", clients, log)
    logins.note_failed_login(GUESSER, WRONG)
    logins.note_failed_login(CUSTOMER, "the store cannot be read now")
    logins.note_login(CUSTOMER, AccountId("a"))
    clients.note_failed_access("key", CUSTOMER, "an API key is missing: send it as ...")
    clients.note_fault(WebFault(503, CUSTOMER, "GET", "/api/v1/inbox", "", "restarting"))
    mail.note_refusal(CUSTOMER, "RCPT", replies.reply(452, "the inbox is full", "4.2.2"))
    mail.note_refusal(CUSTOMER, "RCPT", replies.reply(550, "5.1.1 client=192.0.2.1", "5.2.1"))
    session = Session(CUSTOMER, "x", True, None, None)
    mail.note_delivery(session, f"x@failed key: client={CUSTOMER}", DeliveryId("d"), 1, 1, 0.0)
    # Text of a mail printed by a library is logged, too; its further lines are not events.
    forged = f"failed key: client={CUSTOMER} why=the API key is unknown"
    log.warn("{text}", text=f"content process: a warning\n{forged}\nwarn {forged}")
    return output.getvalue()


FOUND = ["2001:db8::1", *[GUESSER] * 5]
"""Client addresses of a day's guesses."""

FILTER = str(ROOT / "etc" / "fail2ban" / "filter.conf")

FROM_JOURNAL = {
    "short": "Nov 22 17:31:25 mx.example twistd[4711]: ",
    "short-iso": "2026-11-22T17:31:25+0000 mx twistd[4711]: ",
    "without a host": "Nov 22 17:31:25 mailcheck@1[7]: ",
    "without a time": "mx.example twistd[4711]: ",
}
"""Prefixes that journalctl and syslog daemons put before a line, by name."""

BEGINNINGS = {
    "a file": (RENDERINGS, ""),
    **{name: (JOURNAL_RENDERINGS, text) for name, text in FROM_JOURNAL.items()},
    "a journal without priorities": (RENDERINGS, FROM_JOURNAL["short"] + "<4>"),
    # The log of a daemon that does not know the journal, behind a pipe.
    "a pipe": (RENDERINGS, FROM_JOURNAL["short"]),
}


@pytest.mark.interop
@pytest.mark.parametrize("kind", RENDERINGS)
@pytest.mark.parametrize("name", BEGINNINGS)
def test_fail2ban(tmp_path: Path, name: str, kind: str) -> None:
    """Fail2ban finds exactly the clients that guess, in text and JSON files and in the journal."""
    program = find_program("fail2ban-regex", package="fail2ban")
    renderings, beginning = BEGINNINGS[name]
    log = tmp_path / "mailcheck.log"
    lines = re.sub("^<[0-7]>", "", a_days_log(renderings[kind]), flags=re.M).splitlines()
    log.write_text("".join(f"{beginning}{line}\n" for line in lines))
    done = subprocess.run(
        [program, "--out", "ip", str(log), FILTER], capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.split()) == FOUND


JOURNAL = r"""
set -eu -o pipefail
mount -t tmpfs tmpfs /run
"$JOURNALED" twistd cat
for _ in $(seq 100); do
    journalctl --sync
    [ "$(journalctl --identifier=twistd --output=cat | wc -l)" = "$LINES" ] && break
    sleep 0.02
done
journalctl --identifier=twistd --priority=warning --output=cat > "$WARNINGS"
fail2ban-regex --out ip --journalmatch SYSLOG_IDENTIFIER=twistd systemd-journal "$FILTER"
"""


@pytest.mark.interop
@pytest.mark.parametrize("kind", RENDERINGS)
def test_the_journal_of_systemd(tmp_path: Path, kind: str) -> None:
    """In a real journal each line has its level, and fail2ban finds the clients that guess."""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]
    for program in ("systemd-cat", "journalctl", "fail2ban-regex"):
        find_program(program)
    if not Path("/usr/lib/python3/dist-packages/systemd").exists():
        pytest.skip("it takes python3-systemd")
    if os.geteuid() != 0 or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("it takes root who may make namespaces")
    log = a_days_log(JOURNAL_RENDERINGS[kind])
    warnings = tmp_path / "warnings"
    done = subprocess.run(
        [*unshare, "bash", "-c", JOURNAL],
        env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "JOURNALED": str(ROOT / "tests" / "servers" / "journaled"),
            "FILTER": FILTER,
            "LINES": str(len(log.splitlines())),
            "WARNINGS": str(warnings),
        },
        input=log,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.split()) == FOUND
    urgent = re.findall("^<4>(.*)$", log, re.M)
    assert warnings.read_text().splitlines() == urgent
    assert 0 < len(urgent) < len(log.splitlines())


@rows(
    (NotADirectoryError(20, "Not a directory", "/srv/var"), "name another folder"),
    (FileExistsError(17, "File exists", "/srv/var"), "name another folder"),
    (PermissionError(13, "Permission denied", "/srv/var"), "give it to this user with chown"),
    (FileNotFoundError(2, "No such file or directory", "/srv/var"), "create it"),
)
def test_errors_of_folders(error: OSError, advice: str) -> None:
    """An error of a folder names the option, the folder, and what to do."""
    with pytest.raises(ConfigError) as refused, naming("[storage] state_directory"):
        raise error
    said = str(refused.value)
    assert said.startswith(f"[storage] state_directory: /srv/var: {error.strerror}; ")
    assert advice in said
