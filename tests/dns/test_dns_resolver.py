"""The resolver on a scripted network: attempts, deadlines, sockets, TCP and bursts."""

from typing import Any

import dns.flags
import dns.rcode
import pytest
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectError
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.exchange import MAX_AGE, MAX_QUESTIONS, MAX_WAITING
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import Server
from tests.dns.scripted_network import SECOND_SERVER, SERVER, ScriptedNetwork, build_reply, collect

QUESTION = DnsQuestion("example.com", "A")
ADDRESS = "example.com. 60 IN A 192.0.2.1"
SETTINGS = ResolverSettings(try_timeouts=(1.0, 2.0), deadline=4.0, max_burst=1000)


def stub_of(network: ScriptedNetwork, *servers: Server, **changes: Any) -> StubResolver:
    """Return a resolver with one server, or these, and with changed settings."""
    settings = replace(SETTINGS, **changes)
    return StubResolver(network, servers or [SERVER], settings, network.random_bytes)


@pytest.fixture
def network() -> ScriptedNetwork:
    """A network with scripted servers."""
    return ScriptedNetwork()


@pytest.fixture
def stub(network: ScriptedNetwork) -> StubResolver:
    """A resolver with one server."""
    return stub_of(network)


@pytest.fixture
def answers(stub: StubResolver) -> list[Any]:
    """Ask the question and return what is answered."""
    return collect(stub.lookup(QUESTION))


def test_stub_asks_and_answers(
    network: ScriptedNetwork, stub: StubResolver, answers: list[Any]
) -> None:
    """A question is sent in one datagram to the server, and its reply is the answer."""
    (query,) = network.queries
    assert (query.server, query.question) == (SERVER, ("example.com.", "A"))
    assert answers == []
    query.reply(ADDRESS)
    assert [answer.status for answer in answers] == [DnsStatus.FOUND]
    assert network.getDelayedCalls() == []


def test_stub_tries_again(network: ScriptedNetwork, stub: StubResolver, answers: list[Any]) -> None:
    """After a lost datagram the question is sent again with another id."""
    network.advance(0.9)
    assert len(network.queries) == 1
    network.advance(0.2)
    assert len(network.queries) == 2
    assert network.queries[0].message.id != network.queries[1].message.id
    network.queries[1].reply(ADDRESS)
    assert answers[0].status is DnsStatus.FOUND


def test_stub_late_reply(network: ScriptedNetwork, stub: StubResolver, answers: list[Any]) -> None:
    """A reply that arrives after its attempt has ended is ignored."""
    network.advance(1.1)
    network.queries[0].reply(rcode=dns.rcode.NXDOMAIN)
    assert answers == []
    network.queries[1].reply(ADDRESS)
    network.queries[1].reply(rcode=dns.rcode.NXDOMAIN)
    assert [answer.status for answer in answers] == [DnsStatus.FOUND]


def test_stub_silence(network: ScriptedNetwork, stub: StubResolver, answers: list[Any]) -> None:
    """A server that never answers uses up its attempts, then the lookup times out."""
    network.pump([0.5] * 5)
    assert answers == []
    network.pump([0.5] * 2)
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]
    assert network.getDelayedCalls() == []


def test_stub_deadline(network: ScriptedNetwork) -> None:
    """With any number of silent servers a lookup ends at its deadline."""
    stub = stub_of(network, SERVER, SECOND_SERVER)
    answers = collect(stub.lookup(QUESTION))
    network.pump([0.5] * 7)
    assert answers == []
    network.pump([0.5])
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]


def test_stub_other_server(network: ScriptedNetwork) -> None:
    """If one server does not answer, the other is asked; the next question starts there."""
    stub = stub_of(network, SERVER, SECOND_SERVER)
    answers = collect(stub.lookup(QUESTION))
    network.advance(1.1)
    assert [query.server for query in network.queries] == [SERVER, SECOND_SERVER]
    network.queries[1].reply(ADDRESS)
    assert answers[0].status is DnsStatus.FOUND
    collect(stub.lookup(QUESTION))
    assert network.queries[2].server == SECOND_SERVER


def test_stub_refused_port(network: ScriptedNetwork) -> None:
    """A host without a server (ICMP) is skipped at once."""
    stub = stub_of(network, SERVER, SECOND_SERVER)
    answers = [collect(stub.lookup(QUESTION)), collect(stub.lookup(QUESTION))]
    network.queries[0].refuse()
    network.advance(0)
    assert [query.server for query in network.queries] == [SERVER, SECOND_SERVER, SECOND_SERVER]
    for query in network.queries[1:]:
        query.reply(ADDRESS)
    assert [found.status for (found,) in answers] == [DnsStatus.FOUND] * 2


def test_stub_remembers_who_is_down(network: ScriptedNetwork) -> None:
    """A host without a server is asked last until it answers again."""
    stub = stub_of(network, SERVER, SECOND_SERVER)
    collect(stub.lookup(QUESTION))
    network.queries[-1].refuse()
    network.advance(0)
    for _ in range(4):
        network.queries[-1].reply(ADDRESS)
        collect(stub.lookup(QUESTION))
        assert network.queries[-1].server == SECOND_SERVER
    network.advance(1.0)
    assert network.queries[-1].server == SERVER
    asked = set()
    for _ in range(2):
        network.queries[-1].reply(ADDRESS)
        collect(stub.lookup(QUESTION))
        asked.add(network.queries[-1].server)
    assert asked == {SERVER, SECOND_SERVER}


def test_stub_network_goes_away(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A question that cannot be sent does not disturb those in progress."""
    sent = collect(stub.lookup(QUESTION))
    network.unreachable.add(SERVER.host)
    lost = collect(stub.lookup(DnsQuestion("other.example", "A")))
    network.pump([0] * 4)
    assert [answer.status for answer in lost] == [DnsStatus.TIMEOUT]
    network.queries[0].reply(ADDRESS)
    assert [answer.status for answer in sent] == [DnsStatus.FOUND]


def test_stub_no_network(network: ScriptedNetwork, stub: StubResolver) -> None:
    """Without a route to any server a lookup times out at once, without an exception."""
    network.unreachable.add(SERVER.host)
    answers = collect(stub.lookup(QUESTION))
    network.pump([0] * 4)
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]


def test_stub_no_sockets(network: ScriptedNetwork, stub: StubResolver) -> None:
    """Without a free socket a lookup times out; the next one tries again."""
    network.has_sockets = False
    answers = collect(stub.lookup(QUESTION))
    network.pump([0] * 4)
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]
    network.has_sockets = True
    answers = collect(stub.lookup(QUESTION))
    network.queries[0].reply(ADDRESS)
    assert answers[0].status is DnsStatus.FOUND


def test_stub_cancel(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A cancelled lookup leaves no timer or socket behind."""
    lookup = stub.lookup(QUESTION)
    results = collect(lookup)
    lookup.cancel()
    assert isinstance(results[0], Failure)
    assert isinstance(results[0].value, CancelledError)
    assert network.getDelayedCalls() == []
    network.queries[0].reply(ADDRESS)
    assert len(results) == 1


def test_stub_without_edns(
    network: ScriptedNetwork, stub: StubResolver, answers: list[Any]
) -> None:
    """A server without EDNS is asked without it."""
    network.queries[0].reply(rcode=dns.rcode.FORMERR)
    assert [query.message.edns for query in network.queries] == [0, -1]
    network.queries[1].reply(ADDRESS)
    assert answers[0].status is DnsStatus.FOUND


def test_stub_truncated(network: ScriptedNetwork, stub: StubResolver, answers: list[Any]) -> None:
    """A reply that does not fit into a datagram comes over TCP from the same server."""
    network.queries[0].reply(flags=dns.flags.TC)
    stream = network.accept()
    assert (stream.server, stream.question) == (SERVER, ("example.com.", "A"))
    stream.reply(ADDRESS)
    assert [answer.status for answer in answers] == [DnsStatus.FOUND]
    assert stream.transport.disconnecting
    assert network.getDelayedCalls() == []


def test_stub_stream_in_pieces(
    network: ScriptedNetwork, stub: StubResolver, answers: list[Any]
) -> None:
    """A reply over TCP may arrive octet by octet."""
    network.queries[0].reply(flags=dns.flags.TC)
    stream = network.accept()
    wire = build_reply(stream.message, (ADDRESS,)).to_wire()
    for octet in len(wire).to_bytes(2, "big") + wire:
        assert answers == []
        stream.protocol.dataReceived(bytes((octet,)))
    assert [answer.status for answer in answers] == [DnsStatus.FOUND]


def test_stub_stream_refused(
    network: ScriptedNetwork, stub: StubResolver, answers: list[Any]
) -> None:
    """If a server has no TCP, the lookup of a large answer fails."""
    for attempt in range(2):
        network.queries[attempt].reply(flags=dns.flags.TC)
        factory = network.tcpClients[attempt][2]
        factory.clientConnectionFailed(network.connectors[attempt], Failure(ConnectError()))
    assert [answer.status for answer in answers] == [DnsStatus.TIMEOUT]


def test_stub_burst(network: ScriptedNetwork) -> None:
    """Only a limited number of questions is sent at once; others follow in order."""
    stub = stub_of(network, max_burst=2)
    questions = [DnsQuestion(f"h{number}.example", "A") for number in range(5)]
    answers = [collect(stub.lookup(question)) for question in questions]
    asked = 0
    while asked < len(network.queries):
        assert len(network.queries) - asked <= 2
        network.queries[asked].reply(rcode=dns.rcode.NXDOMAIN)
        asked += 1
    assert [query.question[0] for query in network.queries] == [f"{q.name}." for q in questions]
    assert {answer.status for (answer,) in answers} == {DnsStatus.NXDOMAIN}
    assert network.getDelayedCalls() == []


def test_stub_burst_of_dead_names(network: ScriptedNetwork) -> None:
    """Questions without an answer delay later ones for a moment only."""
    stub = stub_of(network, max_burst=2, burst_age=0.1)
    dead = [collect(stub.lookup(DnsQuestion(f"dead{n}.example", "A"))) for n in range(4)]
    alive = collect(stub.lookup(QUESTION))
    assert len(network.queries) == 2
    network.advance(0.1)
    assert len(network.queries) == 4
    network.advance(0.1)
    network.queries[4].reply(ADDRESS)
    assert [answer.status for answer in alive] == [DnsStatus.FOUND]
    assert dead == [[]] * 4


def test_stub_in_flight(network: ScriptedNetwork) -> None:
    """The number of lookups in progress is limited for dead names, too."""
    stub = stub_of(network, max_in_flight=3, burst_age=0.1)
    for number in range(5):
        collect(stub.lookup(DnsQuestion(f"dead{number}.example", "A")))
    network.advance(0.5)
    assert len(network.queries) == 3
    network.queries[0].reply(rcode=dns.rcode.NXDOMAIN)
    assert len(network.queries) == 4


def test_stub_burst_is_fair(network: ScriptedNetwork) -> None:
    """Later lookups do not overtake queued ones."""
    stub = stub_of(network, max_burst=1, burst_age=0.1)
    collect(stub.lookup(DnsQuestion("first.example", "A")))
    network.advance(0.05)
    collect(stub.lookup(DnsQuestion("second.example", "A")))
    network.advance(0.06)
    collect(stub.lookup(DnsQuestion("third.example", "A")))
    network.pump([0.1] * 3)
    names = [query.question[0] for query in network.queries]
    assert names == ["first.example.", "second.example.", "third.example."]


def test_stub_burst_deadline(network: ScriptedNetwork) -> None:
    """A queued lookup ends at its deadline, and is not sent later."""
    stub = stub_of(network, max_burst=1, burst_age=9.0, try_timeouts=(10.0,))
    answers = [collect(stub.lookup(QUESTION)) for _ in range(3)]
    network.advance(4.0)
    assert [answer.status for (answer,) in answers] == [DnsStatus.TIMEOUT] * 3
    assert len(network.queries) == 1
    assert network.getDelayedCalls() == []


def test_stub_burst_cancel(network: ScriptedNetwork) -> None:
    """A lookup that is cancelled in the queue is skipped."""
    stub = stub_of(network, max_burst=1)
    collect(stub.lookup(QUESTION))
    waiting = stub.lookup(DnsQuestion("cancelled.example", "A"))
    collect(waiting)
    last = collect(stub.lookup(DnsQuestion("last.example", "A")))
    waiting.cancel()
    network.queries[0].reply(ADDRESS)
    assert [query.question[0] for query in network.queries] == ["example.com.", "last.example."]
    network.queries[1].reply(rcode=dns.rcode.NXDOMAIN)
    assert last[0].status is DnsStatus.NXDOMAIN


def test_stub_sockets_hold_their_replies(network: ScriptedNetwork, stub: StubResolver) -> None:
    """No socket waits for more replies than its receive buffer can hold."""
    for number in range(3 * MAX_WAITING):
        collect(stub.lookup(DnsQuestion(f"h{number}.example", "A")))
    assert len(network.open_ports) == 3
    for port in network.open_ports:
        waiting = sum(query.port is port for query in network.queries)
        assert waiting <= MAX_WAITING
        (buffer,) = port.options.values()
        assert buffer >= MAX_WAITING * 2304  # as Linux accounts a datagram of 1,232 octets


def test_stub_ports_change(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A port is replaced after a number of questions or seconds, and closed when it is idle."""
    for _ in range(MAX_QUESTIONS):
        collect(stub.lookup(QUESTION))
        network.queries[-1].reply(ADDRESS)
    assert len(network.ports) == 1
    collect(stub.lookup(QUESTION))
    assert (len(network.ports), network.open_ports) == (2, network.ports[1:])
    network.queries[-1].reply(ADDRESS)
    network.advance(MAX_AGE)
    collect(stub.lookup(QUESTION))
    assert (len(network.ports), network.open_ports) == (3, network.ports[2:])


def test_stub_port_waits_for_its_replies(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A replaced port stays open until its last reply has arrived."""
    first = collect(stub.lookup(QUESTION))
    for _ in range(MAX_QUESTIONS):
        collect(stub.lookup(QUESTION))
        network.queries[-1].reply(ADDRESS)
    assert len(network.open_ports) == 2
    network.queries[0].reply(ADDRESS)
    assert first[0].status is DnsStatus.FOUND


def test_stub_close(network: ScriptedNetwork) -> None:
    """Closing ends all lookups with a timeout, also later ones, and closes all sockets."""
    stub = stub_of(network, max_burst=2)
    answers = [collect(stub.lookup(QUESTION)) for _ in range(4)]
    after = [collect(stub.lookup(QUESTION).addCallback(lambda _: stub.lookup(QUESTION)))]
    closed: list[object] = []
    stub.close().addBoth(closed.append)
    assert closed == [None]
    assert [answer.status for (answer,) in answers + after] == [DnsStatus.TIMEOUT] * 5
    assert network.open_ports == []
    assert network.getDelayedCalls() == []
    assert collect(stub.lookup(QUESTION))[0].status is DnsStatus.TIMEOUT


def test_stub_close_reentered(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A callback that cancels other lookups during the close does not disturb it."""
    lookups = [stub.lookup(DnsQuestion(f"h{number}.example", "A")) for number in range(3)]

    def give_up_all(answer: DnsAnswer) -> DnsAnswer:
        for lookup in lookups:
            lookup.cancel()
        return answer

    for lookup in lookups:
        collect(lookup.addCallback(give_up_all))
    stub.close()
    assert network.open_ports == []
    assert network.getDelayedCalls() == []
