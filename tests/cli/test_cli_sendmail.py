"""``mailcheck sendmail`` in the place of ``/usr/sbin/sendmail``, with a real daemon."""

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, run_command
from tests.servers.daemon import HOST, Daemon, free_ports
from tests.table import rows

pytestmark = pytest.mark.end_to_end

MAIL = (
    b"From: shop@example.com\nTo: ann@customer.example\nSubject: Welcome\n\nYour code is 482913\n"
)

Send = Callable[..., Outcome]


@pytest.fixture
def send(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Run the command with a mail on its standard input, and key and port in the environment."""
    monkeypatch.setenv("MAILCHECK_API_KEY", daemon.key)
    monkeypatch.setenv("MAILCHECK_SMTP_SUBMISSION_LISTEN", f"{HOST}:{daemon.submission_port}")
    run = sender_of(monkeypatch)

    def send(arguments: str, mail: bytes = MAIL) -> Outcome:
        daemon.request("DELETE", "/inbox/messages")
        return run(arguments, mail)

    return send


@pytest.fixture
def mail_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the domain of this machine be host.example."""
    path = tmp_path / "mailname"
    path.write_text("host.example\n")
    monkeypatch.setattr("mailcheck.cli.sendmail_commands.MAIL_NAME", path)


def sender_of(monkeypatch: pytest.MonkeyPatch) -> Send:
    """Return a function that runs the command."""

    def send(arguments: str, mail: bytes = MAIL) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(mail)))
        return run_command("sendmail", *shlex.split(arguments))

    return send


def received(daemon: Daemon) -> list[dict[str, Any]]:
    """Return the complete mails of the inbox, the oldest first."""
    ids = [one["id"] for one in daemon.get("/inbox/messages").json["messages"]]
    return [daemon.get(f"/inbox/messages/{one}").json for one in reversed(ids)]


@rows(
    ("-t", {"ann@customer.example"}),
    ("-t -i", {"ann@customer.example"}),
    ("-ti", {"ann@customer.example"}),
    ("-i bob@example.com", {"bob@example.com"}),
    ("-oi -oem -f shop@example.com -- bob@example.com", {"bob@example.com"}),
    ("-t bob@example.com", {"ann@customer.example", "bob@example.com"}),
    ("-i 'Bob <bob@example.com>, eve@example.com'", {"bob@example.com", "eve@example.com"}),
    ("-FCronDaemon -i -B8BITMIME -oem root", {"root@host.example"}),
    ("-bm -N never -R hdrs -v bob@example.com", {"bob@example.com"}),
)
def test_who_gets_it(
    send: Send, daemon: Daemon, mail_name: None, arguments: str, expected: set[str]
) -> None:
    """The recipients are those of the command line, and with -t those of the mail."""
    outcome = send(arguments)
    assert (outcome.status, outcome.errors) == (0, "")
    assert {one["to"] for one in received(daemon)} == expected


FIELDS = (
    b"To: Ann <ann@example.com>,\n bob@example.com\nCc: team: cy@example.com, di@example.com;\n"
    b"Bcc: eve@example.com,\n\tfay@example.com\nSubject: Hi\n\nBcc: stays\n"
)


def test_blind_copies(send: Send, daemon: Daemon) -> None:
    """Recipients in Bcc get the mail, which does not name them; folded fields are read."""
    assert send("-t", FIELDS).status == 0
    mails = received(daemon)
    names = {one["to"].partition("@")[0] for one in mails}
    assert names == {"ann", "bob", "cy", "di", "eve", "fay"}
    raw = daemon.get(f"/inbox/messages/{mails[0]['id']}/raw").json["raw"]
    assert "eve@" not in raw
    assert "fay@" not in raw
    assert raw.endswith("\r\n\r\nBcc: stays\r\n")


def test_a_resent_mail(send: Send, daemon: Daemon) -> None:
    """A resent mail goes to the new recipients only."""
    assert send("-t", b"Resent-To: new@example.com\nTo: old@example.com\n\nHi\n").status == 0
    assert [one["to"] for one in received(daemon)] == ["new@example.com"]


def test_what_is_missing_is_added(send: Send, daemon: Daemon) -> None:
    """From, Date and Message-ID are added as a mail server does; the name is that of -F."""
    assert send("-F 'Zoë' -f shop@example.com ann@example.com", b"Subject: Hi\n\nHi\n").status == 0
    (mail,) = received(daemon)
    assert mail["from"] == {"address": "shop@example.com", "name": "Zoë"}
    assert {"date", "message-id"} <= {name.lower() for name in mail["headers"]}
    assert mail["envelope"]["mailFrom"] == "shop@example.com"


@rows(
    (b"Subject: Hi\n\none\n.\ntwo\n", "", "one"),
    (b"Subject: Hi\n\none\n.\ntwo\n", "-i", "one\n.\ntwo"),
    (b"Subject: Hi\r\n\r\none\r\n..\r\ntwo\r\n", "-oi", "one\n..\ntwo"),
    (b"From ann Sun Nov 29 17:00:00 2026\nSubject: Hi\n\none\n", "-i", "one"),
    ("Subject: Hi\n\nGr\u00fc\u00dfe\n".encode(), "-i", "Gr\u00fc\u00dfe"),
    (b"no header at all\n", "-i", "no header at all"),
)
def test_what_is_sent(send: Send, daemon: Daemon, mail: bytes, options: str, text: str) -> None:
    """A line with a dot ends the mail without -i; other lines are sent as they are."""
    assert send(f"{options} ann@example.com", mail).status == 0
    assert received(daemon)[0]["text"].replace("\r\n", "\n").strip() == text


@rows(("-f '<>'", ""), ("-f ''", ""), ("-r bounce@example.com", "bounce@example.com"))
def test_the_envelope_sender(send: Send, daemon: Daemon, options: str, sender: str) -> None:
    """The sender is that of -f or -r, and may be empty."""
    assert send(f"{options} -t").status == 0
    assert received(daemon)[0]["envelope"]["mailFrom"] == sender


@rows(
    ("-t", b"Subject: nobody\n\nHi\n", os.EX_DATAERR),
    ("-i", MAIL, os.EX_USAGE),
    ("-bp", MAIL, os.EX_USAGE),
    ("--nonsense", MAIL, os.EX_USAGE),
    ("-i 'ann@example.com\x07'", MAIL, os.EX_DATAERR),
    ("-i x+fault.rcpt-550@example.com", MAIL, os.EX_UNAVAILABLE),
    ("-i x+fault.rcpt-451@example.com", MAIL, os.EX_TEMPFAIL),
    ("-i x+fault.data-554@example.com", MAIL, os.EX_UNAVAILABLE),
    ("-i x+fault.data-451@example.com", MAIL, os.EX_TEMPFAIL),
    ("-i --server nowhere ann@example.com", MAIL, os.EX_CONFIG),
)
def test_statuses(send: Send, arguments: str, mail: bytes, status: int) -> None:
    """The exit statuses are those of sysexits.h, with a reason on standard error."""
    outcome = send(arguments, mail)
    assert outcome.status == status
    assert outcome.errors


def test_a_wrong_key(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that the daemon does not know is EX_NOPERM, none at all is EX_CONFIG."""
    monkeypatch.setenv("MAILCHECK_API_KEY", "mck_wrong")
    assert send("-t").status == os.EX_NOPERM
    monkeypatch.delenv("MAILCHECK_API_KEY")
    outcome = send("-t")
    assert outcome.status == os.EX_CONFIG
    assert "no API key" in outcome.errors


def test_no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that cannot be reached is EX_TEMPFAIL, so that the caller tries again."""
    (port,) = free_ports(1)
    monkeypatch.setenv("MAILCHECK_API_KEY", "mck_key")
    outcome = sender_of(monkeypatch)(f"-t --server {HOST}:{port}")
    assert outcome.status == os.EX_TEMPFAIL
    assert f"{HOST}:{port} cannot be reached" in outcome.errors
    assert "--server HOST:PORT" in outcome.errors


def test_the_host_of_the_url(send: Send, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """MAILCHECK_URL names the host; the port is that of the options."""
    listen = f"0.0.0.0:{daemon.submission_port}"
    monkeypatch.setenv("MAILCHECK_SMTP_SUBMISSION_LISTEN", listen)
    monkeypatch.setenv("MAILCHECK_URL", "http://localhost:8080")
    assert send("-t").status == 0
    assert len(received(daemon)) == 1


def test_smtp_on_standard_input(daemon: Daemon, tmp_path: Path) -> None:
    """Under the name sendmail, -bs speaks SMTP for programs that have no key."""
    daemon.request("DELETE", "/inbox/messages")
    link = tmp_path / "sendmail"
    link.symlink_to(Path(sys.executable).with_name("mailcheck"))
    environment = {
        **os.environ,
        "MAILCHECK_API_KEY": daemon.key,
        "MAILCHECK_SMTP_SUBMISSION_LISTEN": f"{HOST}:{daemon.submission_port}",
    }

    def speak(script: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(link), "-bs"],
            input=script,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    begin = "HELO shop.example\r\nMAIL FROM:<>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\n"
    assert speak(f"{begin}Subject: half\r\n").returncode == os.EX_IOERR
    script = (
        "EHLO shop.example\r\nAUTH PLAIN AA==\r\nMAIL FROM:<shop@example.com>\r\n"
        "RCPT TO:<ann@customer.example>\r\nRCPT TO:<x+fault.rcpt-550@example.com>\r\nDATA\r\n"
        "Subject: Welcome\r\n\r\n..two dots\r\n.\r\nNOOP\r\nQUIT\r\n"
    )
    done = speak(script)
    assert done.returncode == 0, done.stderr
    replies = [line[:3] for line in done.stdout.splitlines() if line[3] == " "]
    assert replies == ["220", "250", "502", "250", "250", "550", "354", "250", "250", "221"]
    assert "STARTTLS" not in done.stdout
    assert "250-8BITMIME" in done.stdout
    (mail,) = received(daemon)
    assert mail["text"].strip() == ".two dots"


def test_a_beat_over_smtp(daemon: Daemon) -> None:
    """``mailcheck beat send`` gives the mail of a heartbeat to a mail server by SMTP."""
    made = daemon.post("/heartbeats", b'{"name": "relay", "everyMinutes": 60}').json
    server = f"{HOST}:{daemon.smtp_port}"
    assert run_command("beat", "send", made["address"], "--server", server).status == 0
    (mail,) = daemon.get("/inbox/messages?tag=beat.relay").json["messages"]
    assert mail["subject"].startswith("Heartbeat relay of ")
