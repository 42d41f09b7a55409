"""XCLIENT and XFORWARD: trusted hosts name their clients."""

from ipaddress import ip_network
from typing import Any

import pytest

from mailcheck.core.messages import Session
from tests.smtp.talk import HOST_NAME, PUBLIC_IP, House, Talk
from tests.table import rows

TRUSTED_IP = "10.0.0.1"
MAIL = b"MAIL FROM:<>\r\n"


def trusting(**settings: Any) -> House:
    """Open a port that trusts one host."""
    return House(xclient_from=(ip_network(TRUSTED_IP),), **settings)


def session_of_mail(house: House, talk: Talk) -> Session:
    """Send a mail without another EHLO, and return its session."""
    talk.say(MAIL + b"RCPT TO:<dev-a@inbox.example>\r\nDATA\r\n", b"hi\r\n.\r\n")
    return house.receiver.delivered[-1].session


@pytest.fixture
def house() -> House:
    """Return a house that trusts one address."""
    return trusting()


@pytest.fixture
def talk(house: House) -> Talk:
    """Return a connection from the trusted address."""
    return house.greeted(TRUSTED_IP)


def test_they_are_offered_to_trusted_hosts_only(house: House) -> None:
    """Other hosts do not see the extensions."""
    offer = house.connect(TRUSTED_IP).say(b"EHLO x\r\n")
    assert b"XCLIENT NAME ADDR PORT PROTO HELO LOGIN\r\n" in offer
    assert b"XFORWARD NAME ADDR PORT PROTO HELO IDENT SOURCE\r\n" in offer
    assert b"X" not in house.connect().say(b"EHLO y\r\n").replace(b"XY", b"").upper().replace(
        HOST_NAME.upper().encode(), b""
    ).replace(b"PIPELINING", b"").replace(b"SMTPUTF8", b"")


@rows(b"XCLIENT", b"XFORWARD")
def test_others_are_refused(verb: bytes) -> None:
    """Other hosts get 550 5.7.0 and keep their session."""
    house = trusting()
    talk = house.greeted()
    assert talk.say(verb + b" ADDR=192.0.2.1\r\n").startswith(b"550 5.7.0 ")
    assert session_of_mail(house, talk).client_ip == PUBLIC_IP


def test_xclient_resets_the_session(house: House, talk: Talk) -> None:
    """After 220 the session describes the named client and contains no earlier data."""
    said = talk.say(b"XCLIENT NAME=client.example ADDR=93.184.216.34 PORT=1025\r\n")
    assert said == f"220 {HOST_NAME} ESMTP mailcheck\r\n".encode()
    assert talk.codes(MAIL) == ["503"]
    talk.say(b"EHLO real.example\r\n")
    session = session_of_mail(house, talk)
    assert (session.client_ip, session.helo_name) == (PUBLIC_IP, "real.example")


def test_xclient_may_include_the_helo_name(house: House, talk: Talk) -> None:
    """HELO and PROTO replace the client's EHLO, and a later EHLO does not change them."""
    talk.say(b"XCLIENT ADDR=IPV6:2606:2800::1 HELO=real.example PROTO=ESMTP\r\n")
    expected = Session("2606:2800::1", "real.example", is_extended=True)
    assert session_of_mail(house, talk) == expected
    for greeting in (b"EHLO proxy.example\r\n", b"HELO proxy.example\r\n"):
        talk.say(greeting)
        assert session_of_mail(house, talk) == expected
    talk.say(b"XCLIENT HELO=[UNAVAILABLE] PROTO=SMTP ADDR=[unavailable]\r\nHELO proxy.example\r\n")
    assert session_of_mail(house, talk) == Session(TRUSTED_IP, "proxy.example", is_extended=False)


def test_a_connection_may_serve_several_clients(house: House, talk: Talk) -> None:
    """Each XCLIENT names the next client; the host that connected stays trusted."""
    for address in ("93.184.216.34", "93.184.216.35"):
        said = talk.say(f"XCLIENT ADDR={address}\r\nEHLO x\r\n".encode())
        assert b"XCLIENT" in said
        assert session_of_mail(house, talk).client_ip == address


def test_xclient_counts_for_the_limit_of_an_address() -> None:
    """Connections through a proxy count for the client's address."""
    house = trusting(limits={"connections_per_address": 1})
    command = b"XCLIENT ADDR=93.184.216.34\r\n"
    assert house.greeted(TRUSTED_IP).codes(command, command) == ["220", "220"]
    assert house.greeted(TRUSTED_IP).codes(command) == ["421"]


def test_policies_use_the_claimed_client() -> None:
    """Whether a key may be sent in plaintext depends on the client that XCLIENT named."""
    house = trusting(is_submission=True)
    talk = house.greeted(TRUSTED_IP)
    assert b"AUTH" not in talk.say(b"XCLIENT ADDR=93.184.216.34\r\nEHLO x\r\n")


def test_xforward_applies_to_the_next_mail(house: House, talk: Talk) -> None:
    """Forwarded attributes apply to one mail. The next mail has those of the connection."""
    assert talk.codes(
        b"XFORWARD NAME=client.example ADDR=93.184.216.34\r\n",
        b"XFORWARD HELO=real.example PROTO=ESMTP SOURCE=REMOTE IDENT=42 PORT=1\r\n",
    ) == ["250", "250"]
    assert session_of_mail(house, talk) == Session(PUBLIC_IP, "real.example", is_extended=True)
    assert session_of_mail(house, talk) == Session(TRUSTED_IP, "client.example", is_extended=True)


def test_xforward_does_not_mix_two_clients(house: House, talk: Talk) -> None:
    """Attributes that were not forwarded are unknown. Without an address, none is used."""
    talk.say(b"XFORWARD ADDR=93.184.216.34\r\n")
    assert session_of_mail(house, talk) == Session(PUBLIC_IP, "", is_extended=False)
    for address in (b"[UNAVAILABLE]", b"unix:/run/mail"):
        talk.say(b"XFORWARD HELO=real.example ADDR=" + address + b"\r\n")
        session = session_of_mail(house, talk)
        assert (session.client_ip, session.helo_name) == (TRUSTED_IP, "client.example")


def test_rset_discards_forwarded_facts(house: House, talk: Talk) -> None:
    """A discarded mail discards the forwarded facts, too."""
    talk.say(b"XFORWARD ADDR=93.184.216.34\r\n", MAIL, b"RSET\r\n")
    assert session_of_mail(house, talk).client_ip == TRUSTED_IP


@rows(
    b"",
    b"ADDR",
    b"ADDR=",
    b"ADDR=not-an-address",
    b"ADDR=IPV6:93.184.216.340",
    b"REVERSE=x",
    b"HELO=a+20b",
    b"HELO=a+0D+0Ab",
    b"HELO=" + b"a" * 256,
    b"HELO=\xff",
    b"HELO=+FF",
)
def test_bad_attributes_are_refused(arguments: bytes) -> None:
    """Unknown names, empty values, controls and invalid addresses get 501."""
    house = trusting()
    talk = house.greeted(TRUSTED_IP)
    assert talk.say(b"XCLIENT " + arguments + b"\r\n").startswith(b"501 5.5.4 ")
    assert session_of_mail(house, talk).client_ip == TRUSTED_IP


@rows(b"XCLIENT", b"XFORWARD")
def test_not_in_the_middle_of_a_mail(verb: bytes) -> None:
    """The client cannot be changed between MAIL and the end of a mail."""
    talk = trusting().greeted(TRUSTED_IP)
    talk.say(MAIL)
    assert talk.say(verb + b" ADDR=93.184.216.34\r\n").startswith(b"503 5.5.1 ")


def test_values_are_xtext(house: House, talk: Talk) -> None:
    """In xtext +2B is a plus (RFC 3461 4); unencoded values stay unchanged."""
    talk.say(b"XCLIENT HELO=a+2Bb+3D_c\r\n")
    assert session_of_mail(house, talk).helo_name == "a+b=_c"
