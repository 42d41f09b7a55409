"""STARTTLS injection (CVE-2011-0411 and similar): plaintext input is never used after TLS."""

from pathlib import Path
from typing import Any

import pytest

from mailcheck.connections.certificates import ensure_self_signed
from mailcheck.connections.policies import offer_to_all
from mailcheck.core.instants import Instant
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.settings import SmtpSettings
from mailcheck.smtp.verbs import VERBS
from tests.fakes.mail_receiver import JOURNAL, FakeMailReceiver
from tests.smtp.loopback import served
from tests.smtp.talk import House
from tests.table import rows

pytestmark = pytest.mark.attack

INJECTED = b"MAIL FROM:<evil@client.example>\r\n"


@pytest.fixture
def settings(tmp_path: Path) -> SmtpSettings:
    """Settings that offer TLS to every client."""
    certificate = ensure_self_signed(tmp_path, ["mx.example"], Instant(1_795_000_000_000))
    return SmtpSettings("mx.example", tls_for=offer_to_all(certificate))


@rows(INJECTED, b"M", b"\r\n", b"EHLO x\r\nAUTH PLAIN\r\n")
def test_nothing_may_follow_starttls(settings: SmtpSettings, injected: bytes) -> None:
    """Input after STARTTLS is dropped, TLS is rejected, and the connection stays in plaintext."""
    house = House(tls_for=settings.tls_for)
    talk = house.greeted()
    assert talk.say(b"STARTTLS\r\n" + injected).startswith(b"501 5.5.1 ")
    assert talk.codes(b"RCPT TO:<dev-victim@inbox.example>\r\n") == ["503"]
    assert house.receiver.asked == []


async def test_nothing_said_in_clear_is_heard_after_the_handshake(settings: SmtpSettings) -> None:
    """Commands before the handshake, injected or not, have no effect after it."""
    from twisted.internet import reactor

    receiver = FakeMailReceiver()
    async with served(MailFactory(VERBS, receiver, settings, reactor, JOURNAL), reactor) as port:
        client = await port.connect()
        client.say(b"EHLO x\r\n" + INJECTED)
        await client.until(b"250 2.1.0")
        client.say(b"STARTTLS\r\n")
        await client.until(b"220 2.0.0")
        client.start_tls()
        client.say(b"RCPT TO:<dev-victim@inbox.example>\r\n")
        assert (await client.until(b"\r\n")).startswith(b"503 5.5.1 ")
    assert receiver.asked == []


async def test_a_command_in_clear_breaks_the_handshake(settings: SmtpSettings) -> None:
    """A command in a separate packet after 220 is a failed handshake, not a command."""
    from twisted.internet import reactor

    receiver = FakeMailReceiver()
    async with served(MailFactory(VERBS, receiver, settings, reactor, JOURNAL), reactor) as port:
        client = await port.connect()
        client.say(b"EHLO x\r\nSTARTTLS\r\n")
        await client.until(b"220 2.0.0")
        client.say(INJECTED + b"RCPT TO:<dev-victim@inbox.example>\r\n")
        said: Any = await client.until_over()
        assert b"250" not in said
    assert receiver.asked == []
