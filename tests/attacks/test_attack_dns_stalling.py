"""DNS servers that stall, disconnect or are down: a lookup ends in time and leaves no socket."""

from typing import Any

import dns.flags
import pytest
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from tests.dns.scripted_network import SERVER, ScriptedNetwork, build_reply, collect

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


@pytest.mark.parametrize("octets", [0, 11])
def test_stalling_drips(network: ScriptedNetwork, answers: list[Any], octets: int) -> None:
    """Silence, or a reply that comes drop by drop, delays a lookup no longer than its timeout."""
    stream = network.accept()
    wire = build_reply(stream.message, (TEXT,)).to_wire()
    for octet in (len(wire).to_bytes(2, "big") + wire)[:octets]:
        stream.protocol.dataReceived(bytes((octet,)))
        network.advance(0.1)
    network.advance(1.1 - 0.1 * octets)
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]
    assert stream.transport.disconnecting
    assert network.getDelayedCalls() == []


@pytest.mark.parametrize(
    ("octets", "is_whole"),
    [
        *((octets, False) for octets in (b"", b"\0", b"\x10\xff", b"\0\x20abcd")),
        *((octets, True) for octets in (b"\0\0", b"\0\4abcd", b"\0\x0cid" + bytes(70_010))),
        (None, True),
    ],
)
def test_stalling_nonsense(
    network: ScriptedNetwork, answers: list[Any], octets: bytes | None, is_whole: bool
) -> None:
    """A first message that is not whole, not the reply or has another id is no answer.

    A whole one ends the connection, whatever follows.
    """
    stream = network.accept()
    if octets is None:
        wire = bytearray(build_reply(stream.message, (TEXT,)).to_wire())
        wire[0] ^= 1
        octets = len(wire).to_bytes(2, "big") + wire
    stream.protocol.dataReceived(octets)
    assert stream.transport.disconnecting == is_whole
    if is_whole:
        stream.protocol.dataReceived(b"x" * 70_000)
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
