"""A daemon under systemd from start to stop, and the log that its operator reads."""

import re
import smtplib
import ssl
import threading
from http.client import HTTPConnection
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from tests.servers.certificates import Authority, Issued
from tests.servers.daemon import HOST, STOPPED_WELL, Daemon, free_ports
from tests.servers.systemd import SupervisedDaemon, supervised_daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

SENDERS = 4
REFUSED = pytest.raises(smtplib.SMTPException)
WATCHDOG = 1.0  # seconds
ANY = ssl.create_default_context()
ANY.check_hostname = False
ANY.verify_mode = ssl.CERT_NONE
MESSAGE = b"Subject: x\r\n\r\nx\r\n"


def shown_certificate(daemon: Daemon) -> bytes:
    """Return the certificate of STARTTLS, as DER."""
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        client.starttls(context=ANY)
        assert isinstance(client.sock, ssl.SSLSocket)
        shown = client.sock.getpeercert(binary_form=True)
        client.sendmail("jane@shop.example", [daemon.address("shown")], MESSAGE)
    assert shown is not None
    return shown


def encoded(issued: Issued) -> bytes:
    """Return a certificate as DER."""
    return issued.certificate.public_bytes(serialization.Encoding.DER)


class Load:
    """Threads that send mail over TLS, one connection each time; ``sent`` counts accepted mails."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._address = daemon.address("load")
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self.sent = 0
        self.problems: list[str] = []
        self._threads = [threading.Thread(target=self._send) for _ in range(SENDERS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def resume(self, count: int) -> None:
        """Wait until ``count`` more mails are accepted."""
        goal = self.sent + count
        while self.sent < goal and not self.problems:
            self._ends.wait(0.01)

    def _send(self) -> None:
        while not self._ends.is_set() and not self.problems:
            try:
                with smtplib.SMTP(HOST, self._daemon.smtp_port, timeout=60) as client:
                    client.starttls(context=ANY)
                    client.sendmail("jane@shop.example", [self._address], MESSAGE)
                with self._lock:
                    self.sent += 1
            except (OSError, smtplib.SMTPException) as error:
                self.problems.append(repr(error))


def replace_certificate(folder: Path, issued: Issued) -> None:
    """Replace the certificate as ACME clients do."""
    for path, name in zip(issued.write_to(folder, "new"), ("server", "server-key"), strict=True):
        path.replace(folder / f"{name}.pem")


def test_a_life_under_systemd(tmp_path: Path) -> None:
    """The daemon reports ready, notifies the watchdog, and reloads without losing mail."""
    authority = Authority()
    first, second, third = (authority.issue(f"{n}.example") for n in ("a", "b", "c"))
    certificate, key = first.write_to(tmp_path)
    with supervised_daemon(
        tmp_path / "house", WATCHDOG, smtp_certificate=str(certificate), smtp_private_key=str(key)
    ) as daemon:
        daemon.wait_for("READY=1")
        assert b"ready" in ask(daemon, "GET", "/readyz")  # at once, since it has reported ready
        daemon.wait_for_line("mailcheck is ready.")
        printed = daemon.output()
        assert f"swaks --server [::1]:{daemon.smtp_port} " in printed
        assert f"http://{HOST}:{daemon.http_port}/api/v1" in printed
        assert "systemd:" not in printed
        daemon.wait_for("WATCHDOG=1", 2)
        assert shown_certificate(daemon) == encoded(first)
        daemon.wait_for_line("mail accepted: client=127.0.0.1 port=mail ")
        assert " tls=TLSv1.3 " in daemon.output()

        with Load(daemon) as load:
            load.resume(20)
            replace_certificate(tmp_path, second)
            daemon.reload()
            load.resume(20)
            assert shown_certificate(daemon) == encoded(second)
            replace_certificate(tmp_path, third)
            (tmp_path / "server-key.pem").write_text("no key")
            daemon.reload()
            load.resume(20)
            assert shown_certificate(daemon) == encoded(second)
        assert load.problems == []
        assert "certificate: the new one cannot be used, the old one stays:" in daemon.output()
        assert daemon.total() == load.sent + 3
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", daemon.wait_for("RELOADING=1", 2))
        daemon.wait_for("READY=1", 3)

        third.write_to(tmp_path)
        daemon.reload()
        assert "certificate: well again" in daemon.output()
        assert shown_certificate(daemon) == encoded(third)

        assert daemon.stop() in STOPPED_WELL
        daemon.wait_for("STOPPING=1")
        assert "Traceback" not in daemon.output()


def test_what_an_operator_reads(tmp_path: Path) -> None:
    """The log says that no account exists, shows failed keys and sign-ins, and has no secrets."""
    (metrics,) = free_ports(1)
    with supervised_daemon(
        tmp_path, 60.0, accounts_bootstrap=False, ops_listen=f"{HOST}:{metrics}"
    ) as daemon:
        daemon.wait_for("READY=1")
        daemon.wait_for_line("there is no account yet")
        printed = daemon.output()
        for line in (
            f"mail is received on [::]:{daemon.smtp_port} for inboxes at ",
            f"programs submit mail on {HOST}:{daemon.submission_port} with an API key ",
            f"HTTP is served on {HOST}:{daemon.http_port}: ",
            f"metrics are served on {HOST}:{metrics}, at /metrics",
            "run `mailcheck account add NAME`",
            "sign up at ",
        ):
            assert line in printed
        assert "starting on" not in printed
        secret = "mck_thisIsASecretThatNobodyMaySee"
        ask(daemon, "GET", "/api/v1/inbox", {"X-API-Key": secret})
        with (
            smtplib.SMTP(HOST, daemon.submission_port) as client,
            pytest.raises(smtplib.SMTPException),
        ):
            client.login("anyone", secret)
        with smtplib.SMTP(HOST, daemon.smtp_port) as client, REFUSED:
            client.sendmail("jane@shop.example", ["nobody@mailcheck.example"], MESSAGE)
        for line in (
            "warn failed key: client=127.0.0.1 why=the API key is unknown",
            "info refused: client=127.0.0.1 port=submission command=AUTH reply=535 5.7.8 ",
            "info refused: client=127.0.0.1 port=mail command=RCPT reply=550 5.1.1 ",
        ):
            daemon.wait_for_line(line)
        assert secret not in daemon.output()
        text = ask(daemon, "GET", "/metrics", port=metrics)
        assert b'mailcheck_failed_access_total{kind="key"} 1.0' in text
        daemon.stop()


def ask(
    daemon: SupervisedDaemon,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    port: int = 0,
) -> bytes:
    """Send a request, and return the body of the response."""
    connection = HTTPConnection(HOST, port or daemon.http_port, timeout=60)
    connection.request(method, path, headers=headers or {})
    try:
        return connection.getresponse().read()
    finally:
        connection.close()
