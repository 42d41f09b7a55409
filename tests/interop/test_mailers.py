"""Mail libraries of programs under test send to the submission port as to any relay.

Each library runs with its default settings: host, port, user name, and an API key as the password.
With TLS it verifies the certificate with the authority of the daemon.
"""

import os
import shutil
import smtplib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path

import pytest

from mailcheck.connections.certificates import AUTHORITY_FILE
from mailcheck.web.dashboard.snippets import write_mailers
from tests.docs.blocks import read_blocks
from tests.servers.daemon import Daemon, running_daemon

pytestmark = pytest.mark.end_to_end

HOST_NAME = "localhost"
CHECKOUT = Path(__file__).parents[2]
NODE_MODULES = CHECKOUT / "node_modules"

SMTPLIB = """
import os, smtplib
with smtplib.SMTP(os.environ["MAIL_HOST"], int(os.environ["MAIL_PORT"])) as smtp:
    if os.environ.get("MAIL_TLS"):
        import ssl
        smtp.starttls(context=ssl.create_default_context())
    smtp.login("shop", os.environ["MAIL_PASSWORD"])
    smtp.sendmail("shop@example.com", os.environ["MAIL_TO"],
                  "Subject: From the mailer\\r\\n\\r\\nYour code is 482913\\r\\n")
"""

DJANGO = """
import os
from django.conf import settings
guide = {}
exec(open("guide.py").read(), guide)
tls = bool(os.environ.get("MAIL_TLS"))
settings.configure(EMAIL_USE_TLS=tls, **{name: guide[name] for name in guide if name.isupper()})
from django.core.mail import send_mail
send_mail("From the mailer", "Your code is 482913", "shop@example.com", [os.environ["MAIL_TO"]])
"""

NODEMAILER = """
import { transport } from "./guide.mjs";
await transport.sendMail({ from: "shop@example.com", to: process.env.MAIL_TO,
  subject: "From the mailer", text: "Your code is 482913" });
"""

PHPMAILER = """<?php
require "libphp-phpmailer/autoload.php";
$mail = new PHPMailer\\PHPMailer\\PHPMailer(true);
$mail->isSMTP();
$mail->Host = getenv("MAIL_HOST");
$mail->Port = (int) getenv("MAIL_PORT");
$mail->SMTPAuth = true;
$mail->Username = "shop";
$mail->Password = getenv("MAIL_PASSWORD");
if (getenv("MAIL_TLS")) $mail->SMTPSecure = "tls"; else $mail->SMTPAutoTLS = false;
$mail->setFrom("shop@example.com");
$mail->addAddress(getenv("MAIL_TO"));
$mail->Subject = "From the mailer";
$mail->Body = "Your code is 482913";
$mail->send();
"""

RAILS = """
require "action_mailer"
config = Struct.new(:action_mailer).new(ActionMailer::Base)
eval File.read("guide.rb")
class Welcome < ActionMailer::Base
  def code
    mail(from: "shop@example.com", to: ENV["MAIL_TO"], subject: "From the mailer",
      body: "Your code is 482913")
  end
end
Welcome.code.deliver_now
"""

LARAVEL = """<?php
require "Symfony/Component/Mailer/autoload.php";
require "Dotenv/autoload.php";
use Symfony\\Component\\Mailer\\Transport\\Dsn;
use Symfony\\Component\\Mailer\\Transport\\Smtp\\EsmtpTransportFactory;
$env = Dotenv\\Dotenv::createImmutable(".", "guide.env")->load();
$dsn = new Dsn($env["MAIL_MAILER"], $env["MAIL_HOST"], $env["MAIL_USERNAME"], $env["MAIL_PASSWORD"],
    (int) $env["MAIL_PORT"]);
$mail = new Symfony\\Component\\Mime\\Email;
$mail->from("shop@example.com")->to(getenv("MAIL_TO"))->subject("From the mailer");
$transport = (new EsmtpTransportFactory)->create($dsn);
(new Symfony\\Component\\Mailer\\Mailer($transport))->send($mail->text("Your code is 482913"));
"""
"""Laravel reads ``.env`` with this Dotenv, and sends with this mailer and the same values."""

GUIDES = {
    "django": "guide.py",
    "rails": "guide.rb",
    "laravel": "guide.env",
    "nodemailer": "guide.mjs",
}
"""Libraries with settings in the guide, and the file from which each reads them."""

ALWAYS_ENCRYPTED = {"laravel", "rails"}
"""Libraries that use STARTTLS wherever it is offered."""

MAILERS: Mapping[str, tuple[str, str, str]] = {
    "smtplib": (sys.executable, "mailer.py", SMTPLIB),
    "django": (sys.executable, "mailer.py", DJANGO),
    "nodemailer": ("node", "mailer.mjs", NODEMAILER),
    "rails": ("ruby", "mailer.rb", RAILS),
    "laravel": ("php", "mailer.php", LARAVEL),
    "phpmailer": ("php", "mailer.php", PHPMAILER),
}

LIBRARIES = {
    "nodemailer": [NODE_MODULES / "nodemailer"],
    "rails": [Path("/usr/share/doc/ruby-actionmailer")],
    "laravel": [Path("/usr/share/php", one) for one in ("Symfony/Component/Mailer", "Dotenv")],
    "phpmailer": [Path("/usr/share/php/libphp-phpmailer")],
}
"""Folders of the libraries in Debian, or in the project."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with a self-signed certificate, which it offers to local clients too."""
    folder = tmp_path_factory.mktemp("daemon")
    with running_daemon(folder, smtp_certificate="self-signed") as daemon:
        yield daemon


def of_guide(name: str, daemon: Daemon) -> str:
    """Return the settings that the guide has for a library, with the port of a daemon."""
    guide = read_blocks(CHECKOUT / "docs" / "how-to" / "connect-your-software.md")
    (settings,) = (block.text for block in guide if block.snippet == name)
    settings = settings.replace("127.0.0.1", HOST_NAME)
    return settings.replace("2587", str(daemon.submission_port))


def of_page(name: str, daemon: Daemon) -> str:
    """Return the settings of the page "Connect" for a library."""
    pasted = write_mailers(f"{HOST_NAME}:{daemon.submission_port}", daemon.key)
    return next(one.text for one in pasted if one.name == name)


def write_mailer(name: str, daemon: Daemon, folder: Path, *, tls: bool, settings: str = "") -> None:
    """Write the program of a library and its settings into a folder."""
    folder.mkdir(exist_ok=True)
    _, file_name, source = MAILERS[name]
    (folder / file_name).write_text(source)
    if name not in GUIDES:
        return
    settings = settings or of_guide(name, daemon)
    if name == "nodemailer":
        option = "requireTLS" if tls else "ignoreTLS"
        settings = settings.replace("  auth:", f"  {option}: true,\n  auth:")
        assert option in settings
        with suppress(FileExistsError):
            (folder / "node_modules").symlink_to(NODE_MODULES)
    (folder / GUIDES[name]).write_text(settings)


def send(name: str, daemon: Daemon, recipient: str, *, tls: bool, settings: str = "") -> None:
    """Run the program of a library to its end."""
    program, file_name, _ = MAILERS[name]
    found = shutil.which(program)
    if found is None or not all(one.exists() for one in LIBRARIES.get(name, ())):
        pytest.skip(f"{name} is not installed: run scripts/install-test-needs as root")
    folder = daemon.folder / "mailers"
    write_mailer(name, daemon, folder, tls=tls, settings=settings)
    trusted = str(daemon.folder / "var" / AUTHORITY_FILE)
    arguments = ["-d", f"openssl.cafile={trusted}"] if program == "php" else []
    server = {
        "MAIL_HOST": HOST_NAME,
        "MAIL_PORT": str(daemon.submission_port),
        "MAIL_PASSWORD": daemon.key,
    }
    done = subprocess.run(
        [found, *arguments, file_name],
        cwd=folder,
        env={
            **os.environ,
            **({} if name in GUIDES else server),
            "MAILCHECK_API_KEY": daemon.key,
            "MAIL_TO": recipient,
            "MAIL_TLS": "1" if tls else "",
            "SSL_CERT_FILE": trusted,
            "NODE_EXTRA_CA_CERTS": trusted,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "tls"),
    [
        (name, tls)
        for name in MAILERS
        for tls in (True, False)
        if tls or name not in ALWAYS_ENCRYPTED
    ],
)
def test_a_mailer_with_a_key_as_its_password_reaches_the_inbox(
    name: str, tls: bool, daemon: Daemon
) -> None:
    """Mail to a foreign address is stored in the inbox of the key's account, and nowhere else."""
    recipient = f"{name}-{tls}+tag@customer.example".lower()
    send(name, daemon, recipient, tls=tls)
    answer = daemon.get("/inbox/wait", to=recipient, after="c0", timeout=40)
    assert answer.status == 200
    mail = answer.json
    assert (mail["to"], mail["tag"]) == (recipient, "tag")
    assert mail["codes"] == ["482913"]
    assert (mail["envelope"]["tls"] is not None) == tls


@pytest.mark.parametrize("name", GUIDES)
def test_what_the_page_says_sends(name: str, daemon: Daemon) -> None:
    """The settings on the page "Connect" work like those of the guide."""
    recipient = f"{name}@pasted.example"
    send(name, daemon, recipient, tls=True, settings=of_page(name, daemon))
    assert daemon.get("/inbox/wait", to=recipient, after="c0", timeout=40).status == 200


@pytest.mark.parametrize("name", MAILERS)
def test_a_mailer_with_a_wrong_password_is_told_so(
    name: str, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong key is an error in the library, and no mail is stored."""
    before = daemon.total()
    monkeypatch.setattr(daemon, "_key", "mck_wrongwrongwrongwrongwrongwrongwr")
    with pytest.raises(AssertionError, match=r"(?i)535|authenticat|credential"):
        send(name, daemon, "nobody@customer.example", tls=True)
    monkeypatch.undo()
    assert daemon.total() == before


def bare_line_feeds() -> bytes:
    """Return a mail with bare line feeds, as the standard library writes it by default."""
    message = EmailMessage()
    message["Subject"] = "From the mailer"
    message.set_content("Your code is 482913\n.a line with a dot\n..\nThe end\n")
    return message.as_bytes()


def test_bare_line_feeds_are_taken_for_a_key(daemon: Daemon) -> None:
    """Python's sendmail with as_bytes() is accepted, stored unchanged, and noted in the report."""
    recipient = "lines@customer.example"
    with smtplib.SMTP(HOST_NAME, daemon.submission_port, timeout=60) as client:
        client.login("shop", daemon.key)
        client.sendmail("shop@example.com", recipient, bare_line_feeds())
        client.sendmail("shop@example.com", recipient, b"Subject: the next one\r\n\r\nhi\r\n")
    answer = daemon.get("/inbox/wait/many", to=recipient, after="c0", count=2, timeout=40)
    first, second = answer.json["messages"]
    assert second["subject"] == "the next one"
    mail = daemon.get(f"/inbox/messages/{first['id']}").json
    assert mail["codes"] == ["482913"]
    assert mail["text"].split() == bare_line_feeds().partition(b"\n\n")[2].decode().split()
    assert any("CRLF" in problem for problem in mail["problems"]), mail["problems"]
    raw = daemon.get(f"/inbox/messages/{first['id']}/raw").json["raw"]
    assert raw == bare_line_feeds().decode() + "\r\n"


def test_bare_line_feeds_are_refused_on_the_mail_port(daemon: Daemon) -> None:
    """Bare line feeds are rejected as by any mail server, with advice, and a wait reports it."""
    recipient = daemon.address("lines")
    cursor = daemon.cursor()
    with (
        smtplib.SMTP(HOST_NAME, daemon.smtp_port, timeout=60) as client,
        pytest.raises(smtplib.SMTPDataError) as refused,
    ):
        client.sendmail("shop@example.com", recipient, bare_line_feeds())
    assert refused.value.smtp_code == 550
    assert b"use send_message or as_bytes(policy=SMTP)" in refused.value.smtp_error
    told = daemon.get("/inbox/wait", tag="lines", after=cursor, timeout=1)
    assert told.status == 408
    assert "as_bytes" in told.json["rejected"][0]["reason"]
