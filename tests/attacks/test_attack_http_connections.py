"""Clients that open all connections: clients with requests are still served."""

import resource
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.ssl import CertificateOptions
from twisted.internet.testing import StringTransport
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from mailcheck.assembly.deployment import (
    LINES,
    SITES,
    connection_limits,
    limit_connections,
    used_ports,
)
from mailcheck.config.options import (
    Config,
    ImapOptions,
    MilterOptions,
    ProvidersOptions,
    WebOptions,
)
from mailcheck.core.memory.client_limits import MAX_REJECTED_AT_ONCE
from mailcheck.daemon.listening import RESERVED_FILES
from mailcheck.web.site.connections import IDLE_TIMEOUT, MIN_IDLE, REJECT_TIMEOUT
from tests.house import House, config_in_memory
from tests.table import rows
from tests.web.raw_http import RawHttp, read_answer, request

pytestmark = pytest.mark.attack

LIMIT = 4

PAGE = "/readyz"

WAIT = "/api/v1/inbox/wait?timeout=60"

BuildHouse = Callable[..., House]


@pytest.fixture
def build() -> Iterator[BuildHouse]:
    """Build applications with separate limits."""
    houses: list[House] = []

    def build_house(**web: Any) -> House:
        houses.append(House(config_in_memory(web=WebOptions(**web))))
        return houses[-1]

    yield build_house
    for house in houses:
        house.close()


def park(house: House, peer: str = "127.0.0.1") -> RawHttp:
    """Park a wait."""
    connection = RawHttp(house, peer)
    connection.send(request(WAIT, f"X-API-Key: {house.key}"))
    return connection


def is_served(house: House, peer: str) -> bool:
    """Return whether a new client gets its page and keeps its connection."""
    connection = RawHttp(house, peer)
    status = connection.ask(PAGE).status
    connection.hang_up()
    return status == 200


def require_turned_away(connection: RawHttp) -> None:
    """Check that a connection gets 503 with Retry-After, and is closed."""
    assert connection.received() == b""
    connection.send(request(WAIT))
    answer, _ = read_answer(connection.received(), "GET")
    assert answer.status == 503
    assert answer.headers["connection"] == "close"
    assert int(answer.headers["retry-after"]) > 0
    assert connection.is_closed


@rows(
    (["203.0.113.7"] * LIMIT, "203.0.113.8"),
    ([f"2606:2800:220:1::{number}" for number in range(LIMIT)], "2606:2800:220:2::1"),
)
def test_one_client_gets_so_many_connections(
    build: BuildHouse, peers: list[str], others: str
) -> None:
    """A public address (an IPv6 /64) at its limit gets 503, while other addresses are served."""
    house = build(max_connections_per_address=LIMIT)
    first, *_ = [park(house, peer) for peer in peers]
    require_turned_away(RawHttp(house, peers[-1]))
    assert is_served(house, others)
    first.hang_up()
    assert is_served(house, peers[-1])


@rows("127.0.0.1", "10.1.2.3", "fd12::1", "203.0.113.99")
def test_many_clients_may_be_behind_one_address(build: BuildHouse, peer: str) -> None:
    """Trusted proxies, private networks and this machine have no separate limit."""
    house = build(max_connections_per_address=LIMIT, trusted_proxies=("203.0.113.99/32",))
    connections = [park(house, peer) for _ in range(3 * LIMIT)]
    assert is_served(house, peer)
    assert not any(connection.is_closed for connection in connections)


def test_who_only_holds_connections_makes_room(build: BuildHouse) -> None:
    """When all connections are taken, the one idle longest is closed; waits and requests stay."""
    house = build(max_connections=LIMIT)
    waits = [park(house) for _ in range(LIMIT - 2)]
    silent, asked = RawHttp(house), RawHttp(house)
    asked.ask(PAGE)
    silent.send(b"GET / HTTP/1.1\r\nX: trickle")
    house.pass_time(MIN_IDLE)
    assert is_served(house, "203.0.113.8")
    silent.send(b"")
    asked.send(b"")
    assert silent.is_closed
    assert not asked.is_closed
    waits.append(park(house))
    assert is_served(house, "203.0.113.8")
    asked.send(b"")
    assert asked.is_closed
    assert not any(wait.is_closed for wait in waits)


def test_those_who_come_together_do_not_end_each_other(build: BuildHouse) -> None:
    """The first client gets the last connection, and the next one gets 503."""
    house = build(max_connections=LIMIT)
    waits = [park(house) for _ in range(LIMIT - 1)]
    first, second = RawHttp(house, "203.0.113.7"), RawHttp(house, "203.0.113.8")
    require_turned_away(second)
    assert first.ask(PAGE).status == 200
    house.pass_time(MIN_IDLE)
    assert is_served(house, "203.0.113.8")
    assert not any(wait.is_closed for wait in waits)


def test_when_all_are_at_work_the_next_is_told_so(build: BuildHouse) -> None:
    """Without an idle connection a new one gets 503; the first that ends makes room."""
    house = build(max_connections=LIMIT)
    waits = [park(house) for _ in range(LIMIT)]
    require_turned_away(RawHttp(house))
    assert not any(wait.is_closed for wait in waits)
    waits[0].hang_up()
    assert is_served(house, "203.0.113.8")


def test_health_is_told_at_the_maximum(build: BuildHouse) -> None:
    """A supervisor learns that a daemon with all its connections in use is well."""
    house = build(max_connections=1)
    wait = park(house)
    for path in ("/healthz", "/readyz"):
        connection = RawHttp(house, "203.0.113.7")
        assert connection.ask(path).status == 200
        house.pass_time(REJECT_TIMEOUT)
        connection.send(b"")
        assert connection.is_closed
    require_turned_away(RawHttp(house, "203.0.113.7"))
    wait.hang_up()
    assert not house.clock.getDelayedCalls()


def test_those_turned_away_are_few(build: BuildHouse) -> None:
    """A silent client that was rejected is disconnected soon, or for the hundredth after it."""
    house = build(max_connections=1)
    wait = park(house)
    silent = [RawHttp(house, "203.0.113.7") for _ in range(MAX_REJECTED_AT_ONCE)]
    assert not any(connection.is_closed for connection in silent)
    silent.append(RawHttp(house, "203.0.113.7"))
    for connection in silent:
        connection.send(b"")
    assert [connection.is_closed for connection in silent] == [True] + [False] * (len(silent) - 1)
    house.pass_time(REJECT_TIMEOUT)
    for connection in silent:
        connection.send(b"")
        assert connection.is_closed
        assert connection.received() == b""
    require_turned_away(RawHttp(house, "203.0.113.7"))
    wait.hang_up()
    assert not house.clock.getDelayedCalls()


def test_those_turned_away_are_few_over_tls_too(build: BuildHouse) -> None:
    """A TLS connection is closed for the hundredth rejected one after it, like any other."""
    house = build(max_connections=1)
    wait = park(house)
    factory = TLSMemoryBIOFactory(CertificateOptions(), False, house.site)
    protocol = factory.buildProtocol(IPv4Address("TCP", "203.0.113.7", 40_000))
    transport = StringTransport()
    protocol.makeConnection(transport)
    silent = [RawHttp(house, "203.0.113.7") for _ in range(MAX_REJECTED_AT_ONCE)]
    assert transport.disconnecting
    protocol.connectionLost(Failure(ConnectionDone()))
    for connection in (wait, *silent):
        connection.hang_up()


def test_every_connection_that_ends_is_uncounted(build: BuildHouse) -> None:
    """Each way to end a connection removes it from the counts."""
    house = build()
    silent, idle, wrong, last, away = connections = [RawHttp(house) for _ in range(5)]
    idle.ask(PAGE)
    wrong.send(b"nonsense\r\n\r\n")
    last.ask(PAGE, "Connection: close")
    away.send(request(WAIT, f"X-API-Key: {house.key}"))
    away.hang_up()
    assert len(house.site.connections) == 2
    house.pass_time(IDLE_TIMEOUT)
    for connection in connections:
        connection.send(b"")
    assert silent.is_closed
    assert len(house.site.connections) == 0
    assert house.site.connections.count_of_address("127.0.0.1") == 0


def test_connections_leave_files_to_the_others() -> None:
    """All connections together leave open files to store, children, DNS and health."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = min(1_000, before[0])
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        everywhere = Config(
            providers=ProvidersOptions(listen=("127.0.0.1:1",)),
            imap=ImapOptions(listen=("127.0.0.1:2",)),
            milter=MilterOptions(listen=("127.0.0.1:3",)),
        )
        for config in (Config(), everywhere):
            sites = [connection_limits(config) for _, _ in used_ports(config, SITES)]
            lines = [
                limit_connections(config, LINES, 5_000, 100) for _ in used_ports(config, LINES)
            ]
            together = sum(one.open for one in (*sites, *lines))
            assert few - 2 * RESERVED_FILES < together <= few - RESERVED_FILES
        assert connection_limits(Config(web=WebOptions(max_connections=7))).in_all == 7
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
