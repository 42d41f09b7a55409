"""Faults on request, as programs that send mail meet them."""

import smtplib
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.sign_up import Application, SignUp
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

PATIENCE = 60.0  # seconds for an answer, on a busy machine


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with a port whose STARTTLS fails."""
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("faults")
    with running_daemon(folder, smtp_broken_tls_listen=f"{HOST}:{port}") as daemon:
        yield daemon


@pytest.fixture
def application(daemon: Daemon) -> Application:
    """The application, at the port for mail."""
    return Application(lambda: smtplib.SMTP(HOST, daemon.smtp_port, timeout=PATIENCE))


def stored(daemon: Daemon, tag: str) -> list[Any]:
    """Return the messages with a tag."""
    found: list[Any] = daemon.get("/inbox/messages", tag=tag).json["messages"]
    return found


def rejected(daemon: Daemon, tag: str) -> list[str]:
    """Return the reasons that a wait for the tag reports, those of its own mail first."""
    answer = daemon.get("/inbox/wait", tag=tag, after="c0", timeout=1)
    assert answer.status == 408
    return [one["reason"] for one in answer.json["rejected"]]


def driven(daemon: Daemon, application: Application, tag: str, tries: int = 3) -> SignUp:
    """Sign up with an address that meets a fault, and let the outbox retry."""
    signed_up = application.sign_up(daemon.address(tag))
    for _ in range(tries - 1):
        application.try_all()
    return signed_up


@pytest.mark.parametrize(
    ("tag", "code"), [("fault.rcpt-451", 451), ("fault.quota", 452), ("fault.data-451", 451)]
)
def test_a_mail_that_is_put_off_waits(
    daemon: Daemon, application: Application, tag: str, code: int
) -> None:
    """The application keeps the mail and retries; a wait for the mail reports the reason."""
    signed_up = driven(daemon, application, tag)
    assert (signed_up.state, signed_up.answers) == ("waiting", [code] * 3)
    assert stored(daemon, tag) == []
    assert tag in rejected(daemon, tag)[0]


def test_greylisting_lets_the_patient_through(daemon: Daemon, application: Application) -> None:
    """The first attempts are deferred; some seconds later the mail is accepted, once."""
    signed_up = application.sign_up(daemon.address("fault.greylist-2"))
    assert signed_up.answers == [451]

    def is_sent() -> bool:
        application.try_all()
        return signed_up.state == "sent"

    daemon.wait_until(is_sent)
    assert set(signed_up.answers) == {451, 250}
    assert len(stored(daemon, "fault.greylist-2")) == 1


def test_starttls_that_fails(daemon: Daemon) -> None:
    """On its own port every handshake fails, so a program that requires TLS sends no mail there."""
    port = int(str(daemon.options["smtp_broken_tls_listen"]).rpartition(":")[2])
    with smtplib.SMTP(HOST, port, timeout=PATIENCE) as smtp:
        smtp.ehlo()
        assert smtp.has_extn("starttls")
        with pytest.raises((ssl.SSLError, OSError)):
            smtp.starttls(context=ssl.create_default_context())
