"""DNS servers that stall, disconnect or are down: a lookup ends in time and leaves no socket."""

from typing import Any

import dns.flags
import pytest
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from tests.dns.scripted_network import SERVER, ScriptedNetwork, StreamQuery, build_reply, collect

pytestmark = pytest.mark.attack

QUESTION = DnsQuestion("www.example", "TXT")
TEXT = 'www.example. 60 IN TXT "here"'
SETTINGS = ResolverSettings(try_timeouts=(1.0,), deadline=5.0)


@pytest.fixture
def network() -> ScriptedNetwork:
    """A network with servers that the test controls."""
    return ScriptedNetwork()


@pytest.fixture
def answers(network: ScriptedNetwork) -> list[Any]:
    """The results of a lookup whose first reply was truncated."""
    stub = StubResolver(network, [SERVER], SETTINGS, network.random_bytes)
    results = collect(stub.lookup(QUESTION))
    network.queries[0].reply(flags=dns.flags.TC)
    return results


def assert_gave_up(network: ScriptedNetwork, answers: list[Any], stream: StreamQuery) -> None:
    """Check that the lookup has timed out and the connection is closed."""
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]
    assert stream.transport.disconnecting
    assert network.getDelayedCalls() == []


def test_stalling_says_nothing(network: ScriptedNetwork, answers: list[Any]) -> None:
    """A silent server costs the timeout, and its connection is closed."""
    stream = network.accept()
    network.advance(1.1)
    assert_gave_up(network, answers, stream)


def test_stalling_drips(network: ScriptedNetwork, answers: list[Any]) -> None:
    """A server that sends its reply drop by drop cannot delay the lookup beyond the timeout."""
    stream = network.accept()
    wire = build_reply(stream.message, (TEXT,)).to_wire()
    for octet in (len(wire).to_bytes(2, "big") + wire)[:11]:
        stream.protocol.dataReceived(bytes((octet,)))
        network.advance(0.1)
    assert_gave_up(network, answers, stream)


@pytest.mark.parametrize("octets", [b"", b"\0", b"\x10\xff", b"\0\x20abcd"])
def test_stalling_hangs_up(network: ScriptedNetwork, answers: list[Any], octets: bytes) -> None:
    """A server that closes the connection before its reply is complete has no answer."""
    stream = network.accept()
    stream.protocol.dataReceived(octets)
    stream.protocol.connectionLost(Failure(ConnectionDone()))
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]


@pytest.mark.parametrize("octets", [b"\0\0", b"\0\4abcd", b"\0\x0cid" + bytes(10) + b"x" * 70_000])
def test_stalling_nonsense(network: ScriptedNetwork, answers: list[Any], octets: bytes) -> None:
    """A first message that is not the reply ends the connection, whatever follows."""
    stream = network.accept()
    stream.protocol.dataReceived(octets)
    assert stream.transport.disconnecting
    stream.protocol.dataReceived(b"x" * 70_000)
    stream.protocol.connectionLost(Failure(ConnectionDone()))
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]


def test_stalling_foreign_reply(network: ScriptedNetwork, answers: list[Any]) -> None:
    """A reply over TCP with another id, or to another question, is not accepted."""
    stream = network.accept()
    wire = bytearray(build_reply(stream.message, (TEXT,)).to_wire())
    wire[0] ^= 1
    stream.send(bytes(wire))
    assert stream.transport.disconnecting
    stream.protocol.connectionLost(Failure(ConnectionDone()))
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]


def test_stalling_more_than_asked(network: ScriptedNetwork, answers: list[Any]) -> None:
    """Data that a server sends after its reply is not read."""
    stream = network.accept()
    stream.reply(TEXT)
    assert stream.transport.disconnecting
    stream.protocol.dataReceived(b"x" * 70_000)
    stream.reply('www.example. 60 IN TXT "other"')
    assert [answer.records[0].to_text() for answer in answers] == ['"here"']
