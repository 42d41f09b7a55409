"""A daemon releases a captured mail through a real Postfix, byte for byte, to a real server."""

import json
import smtplib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.mail_signer import RSA
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.mail_relay import MailRelay, running_relay
from tests.servers.postfix import Postfix, running_postfix

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

DOMAIN = "elsewhere.example"
RAW = RSA.sign(
    b"From:  Ann <ann@sender.example>\r\nTo: dev@mailcheck.example\r\n"
    b"Subject: A mail\r\n\tfolded   twice\r\nDate: Thu, 26 Nov 2026 12:00:00 +0000\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Transfer-Encoding: 8bit\r\n\r\n"
    + "Hällo,\r\n..\r\n.dot\r\n.\r\n".encode()
    + b"x" * 900
    + b"\r\n\r\n\r\nend  \r\n"
)


@pytest.fixture(scope="module")
def mailbox() -> Iterator[MailRelay]:
    """The server to which Postfix delivers."""
    with running_relay() as relay:
        relay.offers = (b"8BITMIME", b"SIZE 10000000")
        yield relay


@pytest.fixture(scope="module")
def postfix(mailbox: MailRelay) -> Iterator[Postfix]:
    """The relay of the operator, which accepts 100,000 octets."""
    more = "message_size_limit = 100000\nsmtpd_relay_restrictions = reject_unauth_destination\n"
    with running_postfix(mailbox.port, {DOMAIN: HOST}, more) as postfix:
        yield postfix


@pytest.fixture
def daemon(tmp_path: Path, postfix: Postfix) -> Iterator[Daemon]:
    """A daemon that releases mail over Postfix."""
    with running_daemon(
        tmp_path,
        release_relay=f"{HOST}:{postfix.port}",
        release_tls="never",
        release_sender="release@here.example",
        release_allow_recipients=[f"*=bob@{DOMAIN}", "*=carl@unknown.example"],
    ) as daemon:
        yield daemon


def capture(daemon: Daemon, tag: str, raw: bytes) -> str:
    """Send a mail to a tag of the inbox, and return the id of its message."""
    address = daemon.get("/inbox/address", tag=tag).json["address"]
    with smtplib.SMTP(HOST, daemon.smtp_port, "client.example") as smtp:
        smtp.sendmail("ann@sender.example", address, raw, ["BODY=8BITMIME"])
    message_id: str = daemon.get("/inbox/wait", after="c0", tag=tag).json["id"]
    return message_id


def body(*recipients: str) -> bytes:
    """Return the body of a request."""
    return json.dumps({"to": recipients}).encode()


def test_a_mail_goes_through_postfix(daemon: Daemon, mailbox: MailRelay, postfix: Postfix) -> None:
    """Every octet behind the resent fields arrives, and Postfix's rejections are told."""
    mailbox.taken.clear()
    small = capture(daemon, "small", RAW)
    path = f"/inbox/messages/{small}/release"
    answer = daemon.post(path, body(f"bob@{DOMAIN}"))
    assert answer.json["recipients"][0]["accepted"]
    (taken,) = mailbox.wait_for(1)
    assert (taken.sender, taken.recipients) == ("release@here.example", (f"bob@{DOMAIN}",))
    assert "BODY=8BITMIME" in taken.mail_command
    assert taken.raw.endswith(RAW)
    head = taken.raw.removesuffix(RAW).decode()
    assert f"Resent-To: bob@{DOMAIN}\r\n" in head
    assert "Resent-From: release@here.example\r\n" in head

    answer = daemon.post(path, body("carl@unknown.example"))
    assert answer.status == 502
    assert "554 5.7.1" in answer.json["error"]
    large = capture(daemon, "large", RAW + b"y" * 70 + b"\r\n" * 60_000)
    path = f"/inbox/messages/{large}/release"
    answer = daemon.post(path, body(f"bob@{DOMAIN}"))
    assert (answer.status, "accepts 100,000" in answer.json["error"]) == (502, True)
    assert len(mailbox.taken) == 1
