"""Forged DNS replies: only replies of the queried server to the question sent are accepted."""

from typing import Any

import dns.message
import dns.rcode
import pytest

from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import Server
from tests.dns.scripted_network import (
    SECOND_SERVER,
    SERVER,
    DatagramQuery,
    ScriptedNetwork,
    build_reply,
    collect,
)

pytestmark = pytest.mark.attack

QUESTION = DnsQuestion("bank.example", "A")
HONEST = "bank.example. 60 IN A 192.0.2.1"
FORGED = "bank.example. 60 IN A 203.0.113.66"


@pytest.fixture
def network() -> ScriptedNetwork:
    """A network on which every host may send to every port."""
    return ScriptedNetwork()


@pytest.fixture
def stub(network: ScriptedNetwork) -> StubResolver:
    """A resolver with one server."""
    return StubResolver(network, [SERVER], ResolverSettings(), network.random_bytes)


def forged_reply(query: DatagramQuery) -> bytes:
    """Return the forged reply, with everything else correct."""
    return build_reply(query.message, (FORGED,)).to_wire()


def assert_honest(answers: list[Any]) -> None:
    """Check that the lookup ended with the answer of the server."""
    (answer,) = answers
    assert answer.status is DnsStatus.FOUND
    assert [record.to_text() for record in answer.records] == ["192.0.2.1"]


@pytest.mark.parametrize(
    "sender", [SECOND_SERVER, Server(SERVER.host, 5353), Server("::ffff:192.0.2.53")]
)
def test_forged_sender(network: ScriptedNetwork, stub: StubResolver, sender: Server) -> None:
    """A reply from another address or port is dropped, and the honest one is still accepted."""
    answers = collect(stub.lookup(QUESTION))
    (query,) = network.queries
    query.send_from(forged_reply(query), sender)
    assert answers == []
    query.reply(HONEST)
    assert_honest(answers)


def test_forged_ids(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A reply is dropped for each possible wrong id, and the honest reply is still accepted."""
    answers = collect(stub.lookup(QUESTION))
    (query,) = network.queries
    forged = forged_reply(query)
    for ident in range(0x10000):
        if ident != query.message.id:
            query.send(ident.to_bytes(2, "big") + forged[2:])
    assert answers == []
    query.reply(HONEST)
    assert_honest(answers)


def test_forged_port(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A correct reply to another port of the resolver is dropped."""
    answers = [
        collect(stub.lookup(DnsQuestion(f"h{number}.example", "A"))) for number in range(100)
    ]
    first, last = network.queries[0], network.queries[-1]
    assert first.port is not last.port
    last.port.protocol.datagramReceived(
        build_reply(first.message, rcode=dns.rcode.NXDOMAIN).to_wire(), (SERVER.host, SERVER.port)
    )
    assert answers[0] == []


def test_ids_in_use_are_not_taken_twice() -> None:
    """Two queries that wait on one port never share an id, even if the random numbers repeat."""
    network = ScriptedNetwork()
    dice = iter([b"\0\1", b"\0\1", b"\0\1", b"\0\2"])
    stub = StubResolver(network, [SERVER], ResolverSettings(), lambda _: next(dice))
    collect(stub.lookup(QUESTION))
    collect(stub.lookup(DnsQuestion("other.example", "A")))
    assert [query.message.id for query in network.queries] == [1, 2]
