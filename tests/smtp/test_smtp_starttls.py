"""STARTTLS on a real socket."""

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.ssl import CertificateOptions

from mailcheck.connections.certificates import ensure_self_signed
from mailcheck.connections.policies import AuthWithoutTls, offer_to_all
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.settings import Limits, SmtpSettings
from mailcheck.smtp.verbs import VERBS
from tests.fakes.mail_receiver import JOURNAL, FakeMailReceiver
from tests.smtp.loopback import LoopbackClient, served
from tests.smtp.talk import MAIL

NOW = Instant(1_795_000_000_000)
MESSAGE = MAIL + b"RCPT TO:<dev-a@inbox.example>\r\nDATA\r\nhi\r\n.\r\n"


@pytest.fixture
def certificate(tmp_path: Path) -> CertificateOptions:
    """Create a certificate."""
    return ensure_self_signed(tmp_path, ["mx.example"], NOW)


@pytest.fixture
def reactor() -> Any:
    """Return the reactor of the tests."""
    from twisted.internet import reactor

    return reactor


async def encrypted(client: LoopbackClient) -> None:
    """Send EHLO and STARTTLS, and start TLS."""
    client.say(b"EHLO before.example\r\n")
    assert b"STARTTLS\r\n" in await client.until(b"250 ")
    client.say(b"STARTTLS\r\n")
    assert (await client.until(b"\r\n")).startswith(b"220 2.0.0 ")
    client.start_tls()


async def test_a_mail_over_tls(certificate: CertificateOptions, reactor: Any) -> None:
    """After the handshake EHLO is required, TLS is not offered again, the session has its facts."""
    receiver = FakeMailReceiver()
    settings = SmtpSettings("mx.example", tls_for=offer_to_all(certificate))
    async with served(MailFactory(VERBS, receiver, settings, reactor, JOURNAL), reactor) as port:
        client = await port.connect()
        client.say(b"EHLO before.example\r\n" + MAIL)
        await client.until(b"250 2.1.0")
        await encrypted(client)
        client.say(MAIL)
        assert (await client.until(b"\r\n")).startswith(b"503 5.5.1 ")
        client.say(b"EHLO after.example\r\n")
        assert b"STARTTLS" not in await client.until(b"250 ")
        client.say(b"STARTTLS\r\n")
        assert (await client.until(b"\r\n")).startswith(b"503 5.5.1 ")
        client.say(MESSAGE)
        await client.until(b"delivery-1")
        client.say(b"QUIT\r\n")
        assert b"221 2.0.0 " in await client.until_over()
    (mail,) = receiver.delivered
    assert mail.raw_message == b"hi\r\n"
    assert mail.session.helo_name == "after.example"
    assert mail.session.tls is not None
    assert mail.session.tls.version in ("TLSv1.2", "TLSv1.3")
    assert mail.session.tls.cipher


async def test_a_key_over_tls(certificate: CertificateOptions, reactor: Any) -> None:
    """AUTH is offered over TLS where it is not offered before."""
    receiver = FakeMailReceiver(keys={"key": AccountId("account-1")})
    settings = SmtpSettings(
        "mx.example",
        is_submission=True,
        tls_for=offer_to_all(certificate),
        auth_without_tls=AuthWithoutTls.NEVER,
    )
    async with served(MailFactory(VERBS, receiver, settings, reactor, JOURNAL), reactor) as port:
        client = await port.connect()
        await encrypted(client)
        client.say(b"EHLO after.example\r\n")
        assert b"AUTH PLAIN LOGIN" in await client.until(b"250 ")
        client.say(b"AUTH PLAIN AHUAa2V5\r\n" + MESSAGE)
        assert (await client.until(b"delivery-1")).startswith(b"235 2.7.0 ")
    assert receiver.delivered[0].session.account_id == "account-1"


async def test_a_handshake_that_never_comes_ends_it(
    certificate: CertificateOptions, reactor: Any
) -> None:
    """A client that sends nothing or garbage after STARTTLS is disconnected."""
    limits = Limits(idle=0.2, closing=0.2)
    settings = SmtpSettings("mx.example", limits, tls_for=offer_to_all(certificate))
    factory = MailFactory(VERBS, FakeMailReceiver(), settings, reactor, JOURNAL)
    async with served(factory, reactor) as port:
        for nonsense in (b"", MAIL):
            client = await port.connect()
            client.say(b"EHLO x\r\nSTARTTLS\r\n")
            await client.until(b"220 2.0.0")
            client.say(nonsense)
            assert b"250" not in await client.until_over()
    assert factory.connection_count == 0
