"""``mailcheck beat``: output and exit statuses."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import Mailcheck, run_command
from tests.cli.house_commands import commands_at
from tests.servers.daemon import HOST, free_ports
from tests.web.test_web_heartbeats import HOUR, Beating

ADDRESS = "dev-k5m2c7qxw4h3a+beat.backup@mailcheck.example"


@pytest.fixture
def beating() -> Iterator[Beating]:
    """An application without heartbeats."""
    beating = Beating()
    yield beating
    beating.close()


@pytest.fixture
def beat(beating: Beating, tmp_path: Path) -> Iterator[Mailcheck]:
    """Run ``mailcheck beat`` with the key of its first account."""
    with commands_at(beating.house, tmp_path, "beat") as beat:
        yield beat


def test_heartbeats_are_added_listed_and_removed(beat: Mailcheck, beating: Beating) -> None:
    """The address is the result of adding; an open alert is status 1."""
    assert beat("list").errors == ("no mail is expected yet: mailcheck beat add NAME --at 06:00\n")
    made = beat("add", "Backup", "--at", "06:00", "--zone", "Europe/Berlin", "--day", "mon")
    assert made.status == 0
    assert "+beat.backup@" in made.lines[0]
    assert "Mon at 06:00 Europe/Berlin" in made.errors
    assert beat("add", "backup", "--every", "60").status == 1
    assert beat("add", "other", "--every", "60", "--at", "06:00").status == 2
    assert json.loads(beat("add", "relay", "--every", "60", "--json").output)["everyMinutes"] == 60
    assert beat("list").lines == [
        "backup  new  Mon at 06:00 Europe/Berlin",
        "relay  new  every hour",
    ]
    beating.look(2 * HOUR)
    listed = beat("list")
    assert listed.status == 1
    assert listed.lines[-1].startswith("ALERT relay: The heartbeat is late:")
    assert beat("show", "backup").status == 0
    shown = beat("show", "relay")
    assert shown.status == 1
    assert "in 90 days: 0 on time, 0 late, 1 missing" in shown.lines
    assert beat("remove", "relay").lines == ["removed relay"]
    assert beat("show", "relay").status == 1
    assert json.loads(beat("show", "backup", "--json").output)["name"] == "backup"


def test_a_beat_is_given_to_the_local_mail_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The program sendmail gets the sender, the recipient and a whole mail; no daemon is asked."""
    program = tmp_path / "sendmail"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/given\ncat >> {tmp_path}/given\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    sent = run_command("beat", "send", ADDRESS, "--from", "root@host", "--text", "3 files")
    assert (sent.status, sent.output, sent.errors) == (0, "", "")
    given, *mail = (tmp_path / "given").read_text().split("\n")
    assert given == f"-i -f root@host -- {ADDRESS}"
    assert f"To: {ADDRESS}" in mail
    assert "From: root@host" in mail
    assert any(line.startswith("Subject: Heartbeat backup of ") for line in mail)
    assert any(line.startswith("Message-ID: <") for line in mail)
    assert "3 files" in mail
    program.write_text("#!/bin/sh\nexit 75\n")
    failed = run_command("beat", "send", ADDRESS)
    assert (failed.status, failed.errors.endswith("sendmail ended with status 75\n")) == (1, True)


def test_what_cannot_be_sent(beat: Mailcheck) -> None:
    """A wrong address, an unknown name and an absent server are told, each with its status."""
    (port,) = free_ports(1)
    assert run_command("beat", "send", "a b@example.com").status == 2
    assert run_command("beat", "send", ADDRESS, "--from", "-oQ/tmp").status == 2
    assert run_command("beat", "send", ADDRESS, "--server", "nowhere").status == 2
    away = run_command("beat", "send", ADDRESS, "--server", f"{HOST}:{port}")
    assert away.status == 1
    problem = "the mail server did not take the mail: Connection refused"
    assert away.errors == f"mailcheck: {problem}\n"
    assert beat("send", "unknown").status == 1
