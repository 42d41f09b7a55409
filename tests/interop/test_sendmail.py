"""Programs that run sendmail: PHP's mail(), Rails, and what a machine has in /usr/sbin.

Each runs with the code of docs/how-to/replace-sendmail.md, whose paths are those of a test.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, code_with
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.programs import find_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

GUIDE = ROOT / "docs" / "how-to" / "replace-sendmail.md"

PHP = """<?php
$sent = mail("ann+php@customer.example, bob@customer.example", "Welcome", "Your code is 482913",
  ["From" => "Shop <shop@example.com>", "Bcc" => "eve@customer.example"], "-fbounce@example.com");
exit($sent ? 0 : 1);
"""

RAILS = """
require "action_mailer"
config = Struct.new(:action_mailer).new(ActionMailer::Base)
eval File.read("guide.rb")
class Welcome < ActionMailer::Base
  def code
    mail(from: "shop@example.com", to: "ann+rails@customer.example", bcc: "eve@customer.example",
      subject: "Welcome", body: "Your code is 482913")
  end
end
Welcome.code.deliver_now
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for the tests of this module."""
    with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture
def places(daemon: Daemon, tmp_path: Path) -> dict[str, str]:
    """The paths of the guide, and those of the test; its folder has the key."""
    (tmp_path / "key").write_text(daemon.key)
    return {
        "/etc/mailcheck/php-key": str(tmp_path / "key"),
        "/etc/mailcheck/sendmail-key": str(tmp_path / "key"),
        "/usr/local/bin/mailcheck": str(Path(sys.executable).with_name("mailcheck")),
        "/usr/sbin/sendmail": str(tmp_path / "sendmail"),
        "127.0.0.1:8080": f"{HOST}:{daemon.http_port}",
    }


def guide(part: str, places: dict[str, str]) -> str:
    """Return a block of the guide with the paths of the test."""
    text = code_with(GUIDE, part)
    for usual, here in places.items():
        text = text.replace(usual, here)
    return text


def run(daemon: Daemon, folder: Path, *command: str, text: str = "") -> None:
    """Run a program that sends a mail. Its environment has no key."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MAILCHECK_SMTP_SUBMISSION_LISTEN": f"{HOST}:{daemon.submission_port}",
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def require_mail(daemon: Daemon, tag: str, *others: str) -> None:
    """Require that the mail to a tag has the code, and that the others got it without a trace."""
    mail = daemon.get("/inbox/wait", tag=tag, after="c0", timeout=10).json
    assert mail["codes"] == ["482913"]
    raw = daemon.get(f"/inbox/messages/{mail['id']}/raw").json["raw"]
    assert "eve@" not in raw
    for other in others:
        copy = daemon.get("/inbox/wait", to=other, after="c0", timeout=10).json
        assert copy["subject"] == mail["subject"]


def test_php(daemon: Daemon, places: dict[str, str], tmp_path: Path) -> None:
    """The mail of ``mail()`` reaches To and Bcc, with the setting of the guide."""
    name, _, value = guide("sendmail_path", places).strip().partition(" = ")
    (tmp_path / "mail.php").write_text(PHP)
    php = find_program("php")
    run(daemon, tmp_path, php, "-n", "-d", f"{name}={value}", "mail.php")
    require_mail(daemon, "php", "bob@customer.example", "eve@customer.example")


def test_rails(daemon: Daemon, places: dict[str, str], tmp_path: Path) -> None:
    """ActionMailer, which names all recipients as arguments, runs the file of the guide."""
    run(daemon, tmp_path, "sh", "-c", guide("cat > /usr/sbin/sendmail", places))
    (tmp_path / "guide.rb").write_text(guide("delivery_method = :sendmail", places))
    (tmp_path / "mailer.rb").write_text(RAILS)
    run(daemon, tmp_path, find_program("ruby"), "mailer.rb")
    require_mail(daemon, "rails", "eve@customer.example")


def test_the_file_for_cron(daemon: Daemon, places: dict[str, str], tmp_path: Path) -> None:
    """The file of the guide takes what cron passes, without variables of mailcheck."""
    run(daemon, tmp_path, "sh", "-c", guide("cat > /usr/sbin/sendmail", places))
    mail = (
        "From: root (Cron Daemon)\nTo: root+cron@host.example\nSubject: Cron <root@host> backup\n"
        "Content-Type: text/plain; charset=UTF-8\n\nYour code is 482913\n"
    )
    options = ("-FCronDaemon", "-i", "-B8BITMIME", "-oem", "root+cron@host.example")
    run(daemon, tmp_path, str(tmp_path / "sendmail"), *options, text=mail)
    require_mail(daemon, "cron")
