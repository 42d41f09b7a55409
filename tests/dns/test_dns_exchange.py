"""The promises of `Exchange` to its callers."""

import dns.rcode
import pytest

from mailcheck.checks.dns_answers import DnsQuestion
from mailcheck.dns.exchange import MAX_WAITING, Exchange
from mailcheck.dns.wire_format import pack_question
from tests.dns.scripted_network import SERVER, ScriptedNetwork

PACKED = pack_question(DnsQuestion("a.example", "A"))


class Listener:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.told: list[bytes | None] = []

    def reply_received(self, message: bytes) -> None:
        """Record a reply."""
        self.told.append(message)

    def server_unreachable(self) -> None:
        """Record that no reply can come."""
        self.told.append(None)


def test_exchange_calls_the_handler_once() -> None:
    """For any number of replies or ICMP errors the handler is called once."""
    network, listener = ScriptedNetwork(), Listener()
    Exchange(network, network.random_bytes).ask(SERVER, PACKED, True, listener)
    for _ in range(2):
        network.queries[0].reply(rcode=dns.rcode.NXDOMAIN)
    network.queries[0].refuse()
    network.advance(0)
    assert len(listener.told) == 1
    assert listener.told[0] is not None


def test_exchange_cannot_send() -> None:
    """A question that cannot be sent raises an exception, and its handler is not called."""
    network, listener = ScriptedNetwork(), Listener()
    exchange = Exchange(network, network.random_bytes)
    exchange.ask(SERVER, PACKED, True, Listener())
    network.unreachable.add(SERVER.host)
    with pytest.raises(OSError, match="unreachable"):
        exchange.ask(SERVER, PACKED, True, listener)
    network.queries[0].refuse()
    network.advance(0)
    assert listener.told == []


def test_exchange_reports_an_error_later() -> None:
    """All pending handlers of a port get an ICMP error later and once; cancelled ones do not."""
    network, listeners = ScriptedNetwork(), [Listener(), Listener(), Listener()]
    exchange = Exchange(network, network.random_bytes)
    pending = [exchange.ask(SERVER, PACKED, True, listener) for listener in listeners]
    pending[1].cancel()
    network.queries[0].refuse()
    network.queries[0].refuse()
    assert [listener.told for listener in listeners] == [[], [], []]
    network.pump([0, 0])
    assert [listener.told for listener in listeners] == [[None], [], [None]]


def test_exchange_opens_one_port_for_a_server_that_refuses() -> None:
    """Questions that follow an ICMP error at once share its port and its report."""
    network, listeners = ScriptedNetwork(), [Listener() for _ in range(MAX_WAITING + 2)]
    exchange = Exchange(network, network.random_bytes)
    exchange.ask(SERVER, PACKED, True, listeners[0])
    network.queries[0].refuse()
    for listener in listeners[1:]:
        exchange.ask(SERVER, PACKED, True, listener)
    assert len(network.open_ports) == 1
    assert len(network.queries) == 1
    network.advance(0)
    assert [listener.told for listener in listeners] == [[None]] * len(listeners)
    exchange.ask(SERVER, PACKED, True, listeners[0])
    assert len(network.queries) == 2
    exchange.close()


def test_exchange_port_closed_by_reactor() -> None:
    """A port that the reactor closes after an error counts as an error, and is not used again."""
    network, listener = ScriptedNetwork(), Listener()
    exchange = Exchange(network, network.random_bytes)
    exchange.ask(SERVER, PACKED, True, listener)
    network.ports[0].stopListening()
    network.advance(0)
    assert listener.told == [None]
    exchange.ask(SERVER, PACKED, True, listener)
    assert len(network.open_ports) == 1
    exchange.close()
    assert network.open_ports == []
