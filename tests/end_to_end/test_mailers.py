"""Programs under test point their own mailers at the submission port, as they would at any relay.

Each mailer runs with its default mail settings: host, port, user name, and an
API key as the password; with TLS it verifies the certificate.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mailcheck.core.instants import Instant
from mailcheck.smtp.certificates import CERTIFICATE_FILE, KEY_FILE, ensure_self_signed
from tests.servers.daemon import Daemon, running_daemon

pytestmark = pytest.mark.end_to_end

HOST_NAME = "localhost"
NOW = Instant(1_795_262_400_000)
NODE_MODULES = Path(__file__).parents[2] / "node_modules"

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
settings.configure(
    EMAIL_HOST=os.environ["MAIL_HOST"], EMAIL_PORT=int(os.environ["MAIL_PORT"]),
    EMAIL_HOST_USER="shop", EMAIL_HOST_PASSWORD=os.environ["MAIL_PASSWORD"],
    EMAIL_USE_TLS=bool(os.environ.get("MAIL_TLS")),
)
from django.core.mail import send_mail
send_mail("From the mailer", "Your code is 482913", "shop@example.com", [os.environ["MAIL_TO"]])
"""

NODEMAILER = """
import { createRequire } from "node:module";
const nodemailer = createRequire(process.env.MAIL_MODULES + "/")("nodemailer");
const transport = nodemailer.createTransport({
  host: process.env.MAIL_HOST, port: Number(process.env.MAIL_PORT),
  requireTLS: Boolean(process.env.MAIL_TLS), ignoreTLS: !process.env.MAIL_TLS,
  auth: { user: "shop", pass: process.env.MAIL_PASSWORD },
});
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

MAILERS: Mapping[str, tuple[str, str, str]] = {
    "smtplib": (sys.executable, "mailer.py", SMTPLIB),
    "django": (sys.executable, "mailer.py", DJANGO),
    "nodemailer": ("node", "mailer.mjs", NODEMAILER),
    "phpmailer": ("php", "mailer.php", PHPMAILER),
}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for the name that the mailers connect to."""
    folder = tmp_path_factory.mktemp("certificate")
    ensure_self_signed(folder, HOST_NAME, NOW)
    return folder


@pytest.fixture(scope="module")
def daemon(certificate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with a configured certificate."""
    with running_daemon(
        tmp_path_factory.mktemp("daemon"),
        smtp_certificate=str(certificate / CERTIFICATE_FILE),
        smtp_private_key=str(certificate / KEY_FILE),
    ) as daemon:
        yield daemon


def send(name: str, daemon: Daemon, recipient: str, certificate: Path, *, tls: bool) -> None:
    """Run a mailer to its end."""
    program, file_name, source = MAILERS[name]
    found = shutil.which(program)
    if found is None or (name == "nodemailer" and not NODE_MODULES.exists()):
        pytest.skip(f"{name} is missing: run scripts/install-test-needs as root")
    folder = daemon.folder / "mailers"
    folder.mkdir(exist_ok=True)
    (folder / file_name).write_text(source)
    trusted = str(certificate / CERTIFICATE_FILE)
    arguments = ["-d", f"openssl.cafile={trusted}"] if program == "php" else []
    done = subprocess.run(
        [found, *arguments, file_name],
        cwd=folder,
        env={
            **os.environ,
            "MAIL_HOST": HOST_NAME,
            "MAIL_PORT": str(daemon.submission_port),
            "MAIL_PASSWORD": daemon.key,
            "MAIL_TO": recipient,
            "MAIL_TLS": "1" if tls else "",
            "MAIL_MODULES": str(NODE_MODULES),
            "SSL_CERT_FILE": trusted,
            "NODE_EXTRA_CA_CERTS": trusted,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("tls", [True, False], ids=["with-tls", "without-tls"])
@pytest.mark.parametrize("name", MAILERS)
def test_a_mailer_with_a_key_as_its_password_reaches_the_inbox(
    name: str, tls: bool, daemon: Daemon, certificate: Path
) -> None:
    """Mail to a stranger's address lands in the inbox of the key's account, and nowhere else."""
    recipient = f"{name}-{tls}+tag@customer.example".lower()
    send(name, daemon, recipient, certificate, tls=tls)
    answer = daemon.get("/inbox/wait", to=recipient, after="c0", timeout=10)
    assert answer.status == 200
    mail = answer.json
    assert (mail["to"], mail["tag"]) == (recipient, "tag")
    assert mail["codes"] == ["482913"]
    assert (mail["envelope"]["tls"] is not None) == tls


@pytest.mark.parametrize("name", MAILERS)
def test_a_mailer_with_a_wrong_password_is_told_so(
    name: str, daemon: Daemon, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong key fails the send; nothing is stored."""
    before = daemon.total()
    monkeypatch.setattr(daemon, "_key", "mck_wrongwrongwrongwrongwrongwrongwr")
    with pytest.raises(AssertionError, match=r"(?i)535|authenticat|credential"):
        send(name, daemon, "nobody@customer.example", certificate, tls=True)
    monkeypatch.undo()
    assert daemon.total() == before
