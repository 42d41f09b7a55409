"""Dead servers: detected once for all lookups, and so is their return."""

from typing import Any, cast

import pytest

from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import DEAD_PROBE_INTERVAL, PROBE_COUNT, PROBE_INTERVAL, StubResolver
from tests.dns.scripted_network import (
    ROOT_SERVER,
    SECOND_SERVER,
    SERVER,
    ScriptedNetwork,
    collect,
)

FIRST_TRY = ResolverSettings().try_timeouts[0]


def question(name: str) -> DnsQuestion:
    """Return a question for the address of a name."""
    return DnsQuestion(f"{name}.example", "A")


@pytest.fixture
def network() -> ScriptedNetwork:
    """A network without any replies."""
    network = ScriptedNetwork()
    network.knows_root = False
    return network


@pytest.fixture
def stub(network: ScriptedNetwork) -> StubResolver:
    """A resolver with two servers."""
    return StubResolver(network, [SERVER, SECOND_SERVER], ResolverSettings(), network.random_bytes)


def die(network: ScriptedNetwork, stub: StubResolver) -> None:
    """Ask without replies until the servers count as dead."""
    first = collect(stub.lookup(question("first")))
    network.pump([FIRST_TRY, *[PROBE_INTERVAL] * PROBE_COUNT])
    assert [answer.status for answer in first] == [DnsStatus.TIMEOUT]


def test_only_the_first_lookups_wait(network: ScriptedNetwork, stub: StubResolver) -> None:
    """Lookups time out when the servers are found dead; later ones at once, without a query.

    This takes at most 2.5 s, and is never taken for an answer.
    """
    die(network, stub)
    assert network.seconds() <= 2.5
    asked = len(network.queries)
    for number in range(50):
        (answer,) = collect(stub.lookup(question(f"n{number}")))
        assert answer.status is DnsStatus.TIMEOUT
        assert not answer.status.is_determined
    assert len(network.queries) == asked


@pytest.mark.parametrize("server", [SERVER, SECOND_SERVER])
@pytest.mark.parametrize("rcode", [0, 2, 5])
def test_any_answer_brings_it_back(
    network: ScriptedNetwork, stub: StubResolver, server: object, rcode: int
) -> None:
    """Dead servers are probed each second, and any reply of one of them ends this state."""
    die(network, stub)
    sent = len(network.probes)
    network.pump([DEAD_PROBE_INTERVAL] * 5)
    assert len(network.probes) == sent + 5 * 2
    probe = next(one for one in reversed(network.probes) if one.server == server)
    probe.reply(*([] if rcode else [ROOT_SERVER]), rcode=rcode)
    assert network.getDelayedCalls() == []
    answers = collect(stub.lookup(question("back")))
    network.queries[-1].reply("back.example. 60 IN A 192.0.2.1")
    assert [answer.status for answer in answers] == [DnsStatus.FOUND]


def test_dead_names_are_no_dead_servers(network: ScriptedNetwork, stub: StubResolver) -> None:
    """Any number of names without an answer does not matter while the servers reply to probes."""
    network.knows_root = True
    dead = [collect(stub.lookup(question(f"dead{number}"))) for number in range(50)]
    network.pump([0.1] * 70)
    assert [answer.status for (answer,) in dead] == [DnsStatus.TIMEOUT] * 50
    answers = collect(stub.lookup(question("alive")))
    network.queries[-1].reply("alive.example. 60 IN A 192.0.2.1")
    assert [answer.status for answer in answers] == [DnsStatus.FOUND]
    assert network.getDelayedCalls() == []


def test_any_reply_counts(network: ScriptedNetwork, stub: StubResolver) -> None:
    """A server that replies to another question is alive, and its probes end."""
    collect(stub.lookup(question("dead")))
    network.advance(FIRST_TRY)
    assert network.probes
    collect(stub.lookup(question("alive")))
    network.queries[-1].reply("alive.example. 60 IN A 192.0.2.1")
    sent = len(network.probes)
    network.pump([PROBE_INTERVAL] * 2)
    assert len(network.probes) == sent


def test_probes_are_bounded(network: ScriptedNetwork, stub: StubResolver) -> None:
    """Even for a long time few probes are pending, and none after the end."""
    die(network, stub)
    network.pump([DEAD_PROBE_INTERVAL] * 100)
    waiting = [one for port in network.open_ports for one in cast(Any, port.protocol)._waiting]
    assert len(waiting) <= 2 * PROBE_COUNT
    stub.close()
    assert network.getDelayedCalls() == []
    assert network.open_ports == []


def test_no_route_to_any_server(network: ScriptedNetwork, stub: StubResolver) -> None:
    """Servers without a route count as dead, too, until a probe can be sent again."""
    network.unreachable |= {SERVER.host, SECOND_SERVER.host}
    die(network, stub)
    network.unreachable.clear()
    network.knows_root = True
    network.advance(DEAD_PROBE_INTERVAL)
    collect(stub.lookup(question("back")))
    assert network.queries[-1].question[0] == "back.example."
