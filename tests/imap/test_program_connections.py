"""Connections of mail programs: behind a proxy, and as operators see them."""

from ipaddress import ip_network

import pytest
from twisted.internet.ssl import CertificateOptions

from mailcheck.config.options import SmtpOptions
from mailcheck.connections.policies import offer_to_all
from tests.house import House, config_in_memory, mail
from tests.imap import imap_talk, pop3_talk
from tests.table import rows

PROXY = "10.0.0.9"
FAR = b"PROXY TCP4 203.0.113.9 10.0.0.9 40000 143\r\n"
NEAR = b"PROXY TCP4 192.168.1.5 10.0.0.9 40000 143\r\n"

Talk = imap_talk.Talk | pop3_talk.Talk


@pytest.fixture
def house() -> House:
    """An application behind a proxy."""
    smtp = SmtpOptions(proxy_protocol_from=(str(ip_network(f"{PROXY}/32")),))
    return House(config_in_memory(smtp=smtp))


def connect(house: House, kind: str, client_ip: str) -> Talk:
    """Connect, with a certificate for STARTTLS."""
    tls_for = offer_to_all(CertificateOptions())
    if kind == "pop3":
        return pop3_talk.Talk(house, client_ip, tls_for)
    return imap_talk.Talk(house, client_ip, imap_talk.make_factory(house, tls_for))


@rows(("imap", b"a LOGIN a b"), ("pop3", b"USER a"))
def test_the_client_behind_a_proxy(house: House, kind: str, login: bytes) -> None:
    """The address in the PROXY header decides about TLS and is that of the client.

    The greeting follows the header, and the header may come in parts.
    """
    far = connect(house, kind, PROXY)
    assert far.greeting == b""
    assert far.send(FAR[:20]) == b""
    assert far.send(FAR[20:]) != b""
    assert b"TLS" in far.send(login + b"\r\n"), "a public client needs TLS first"
    assert far.protocol.client_ip == "203.0.113.9"
    near = connect(house, kind, PROXY)
    assert b"\r\n" in near.send(NEAR)
    assert b"STARTTLS first" not in near.send(login + b"\r\n")
    assert near.log_in(house.key).count(b"OK") >= 1
    assert connect(house, kind, "10.0.0.8").greeting != b"", "this host is no proxy"


@rows("imap", "pop3")
def test_a_proxy_without_its_header(house: House, kind: str) -> None:
    """A proxy that sends no header, or a broken one, is disconnected without an answer."""
    for data in (b"a CAPABILITY\r\n", b"PROXY TCP4 203.0.113.9\r\nCAPA\r\n"):
        talk = connect(house, kind, PROXY)
        assert talk.send(data) == b""
        assert talk.transport.disconnected
    silent = connect(house, kind, PROXY)
    house.clock.advance(6)
    assert silent.take() in {b"* BYE idle for too long\r\n", b"-ERR timed out\r\n"}


def test_operators_see_sessions(house: House) -> None:
    """The state of a connection names its client, account, mailbox and command."""
    house.receive(raw=mail())
    factory = imap_talk.make_factory(house)
    talk = imap_talk.Talk(house, "127.0.0.1", factory)
    assert repr(talk.protocol) == "<ImapConnection of 127.0.0.1: not logged in>"
    talk.log_in(house.key)
    account = house.account.id
    assert talk.protocol.state == f"account {account}, no mailbox, between commands"
    talk.do(b"SELECT Trash")
    talk.do(b"IDLE")
    assert talk.protocol.state == f"account {account}, Trash, in IDLE"
    pop3 = pop3_talk.Talk(house)
    assert repr(pop3.protocol) == "<Pop3Connection of 127.0.0.1: not logged in>"
    pop3.log_in(house.key)
    assert pop3.protocol.state == f"account {account}, 1 messages"
    assert list(factory.open) == [talk.protocol]
