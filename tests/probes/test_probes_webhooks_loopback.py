"""Deliveries of webhooks to receivers on this machine, and targets that get no delivery."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pytest_twisted import async_yield_fixture
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.logger import capturedLogs, formatEvent

from mailcheck.cluster.local import LocalCluster, LocalRateCounters
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import new_webhook_secret
from mailcheck.core.instants import instant_of
from mailcheck.core.webhooks import RESPONSE_KEPT, Attempt
from mailcheck.ports.probes import Post
from mailcheck.probes.guarded_dialer import GuardedDialer, is_own_address
from mailcheck.probes.trust import TrustRoots, find_trust_roots
from mailcheck.probes.webhook_sender import (
    MAX_OCTETS,
    MOST_A_MINUTE,
    AddressRateLimit,
    HttpWebhookDialer,
    HttpWebhookLine,
)
from tests.fakes.clock_and_randomness import repeatable_bytes
from tests.fakes.memory_zone import MemoryZone
from tests.servers.certificates import Authority, self_signed
from tests.servers.webhook_receiver import Receiver, running_receiver
from tests.table import rows

AUTHORITY = Authority()
HOST = "hooks.example"
SECRETS = tuple(new_webhook_secret(repeatable_bytes()) for _ in range(2))
LOOPBACK = ("127.0.0.0/8", "::1/128")


def now() -> Any:
    """Return the current time."""
    return instant_of(time.time())


def posts(
    zone: MemoryZone | None = None,
    allowed: Sequence[str] = LOOPBACK,
    own_ports: frozenset[int] = frozenset(),
    trust: TrustRoots | None = None,
    is_own: Callable[[Any], bool] = is_own_address,
    seconds: float = 60.0,
) -> HttpWebhookDialer:
    """Return a dialer for the account "ann", which may deliver to the networks."""
    from twisted.internet import reactor

    anything: Any = reactor
    dialer = GuardedDialer(
        anything,
        zone or MemoryZone({}),
        is_own_address=is_own,
        allow_private=False,
        own_ports=own_ports,
    )
    return HttpWebhookDialer(
        anything,
        dialer,
        trust or TrustRoots(()),
        LocalCluster(anything).counters,
        {"ann": [ip_network(one) for one in allowed]},
        "http://mailcheck.example:8080",
        now,
        seconds,
    )


async def hang_up(line: HttpWebhookLine) -> None:
    """Close the connections, and wait until they are closed."""
    from twisted.internet import reactor

    line.hang_up()
    await deferLater(reactor, 0)


def event(url: str, number: int = 1) -> Post:
    """Return an event."""
    return Post(url, SECRETS[:1], f"msg_{number}", now(), b'{"subject":"\xc3\xa9"}')


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that knows the secret."""
    with running_receiver() as receiver:
        receiver.secrets["/mail"] = SECRETS[0]
        yield receiver


@async_yield_fixture
async def line() -> AsyncIterator[HttpWebhookLine]:
    """A connection of an account that may deliver to this machine."""
    line = posts().line("ann")
    yield line
    await hang_up(line)


async def test_events_come_signed_over_one_connection(
    receiver: Receiver, line: HttpWebhookLine
) -> None:
    """The library verifies the deliveries, and the connection is reused."""
    url = f"{receiver.url}/mail"
    for number in range(3):
        assert await line.post(event(url, number)) == Attempt(204)
    assert [(one.event_id, one.is_signed) for one in receiver.got] == [
        (f"msg_{number}", True) for number in range(3)
    ]
    assert receiver.got[0].message == {"subject": "é"}
    assert len({one.client for one in receiver.got}) == 1


async def test_connections_are_not_logged(receiver: Receiver, line: HttpWebhookLine) -> None:
    """The log has no lines about the factories of connections."""
    with capturedLogs() as events:
        assert await line.post(event(f"{receiver.url}/mail", 1)) == Attempt(204)
    assert "HTTP11ClientFactory" not in " ".join(map(formatEvent, events))


async def test_both_secrets_sign(receiver: Receiver, line: HttpWebhookLine) -> None:
    """A delivery verifies with the earlier secret and with the new one."""
    receiver.secrets["/new"] = SECRETS[1]
    receiver.secrets["/other"] = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
    for path in ("/mail", "/new", "/other"):
        await line.post(replace(event(receiver.url + path), secrets=SECRETS))
    assert [one.is_signed for one in receiver.got] == [True, True, False]


async def test_statuses(receiver: Receiver, line: HttpWebhookLine) -> None:
    """Only 2xx accepts a delivery, and a redirect is not followed."""
    outcomes = {
        status: await line.post(event(f"{receiver.url}/{status}"))
        for status in (200, 299, 302, 404, 410, 500)
    }
    assert [status for status, one in outcomes.items() if one.is_taken] == [200, 299]
    assert all(one.status == status for status, one in outcomes.items())
    assert outcomes[302].problem == "it answered 302, and redirects are not followed"
    assert receiver.of("/elsewhere") == []


async def test_a_receiver_that_closed_the_connection(
    receiver: Receiver, line: HttpWebhookLine
) -> None:
    """A kept connection that was just closed is no failure: another one is opened."""
    url = f"{receiver.url}/mail"
    assert (await line.post(event(url))).is_taken
    for connection in tuple(line._connections.open_ones):
        connection.transport.socket.shutdown(2)  # type: ignore[attr-defined]
    assert (await line.post(event(url, 2))).is_taken
    assert len({one.client for one in receiver.got}) == 2


async def test_who_hangs_is_given_up(receiver: Receiver) -> None:
    """A delivery without a response times out, and the connection is closed."""
    line = posts(seconds=0.5).line("ann")
    attempt = await line.post(event(f"{receiver.url}/hang"))
    assert attempt == Attempt(problem="no answer within 0.5 seconds")
    await hang_up(line)


@rows("http://127.0.0.1:{port}/mail", "http://localhost:{port}/mail", "http://{host}:{port}/mail")
async def test_private_addresses_are_not_posted_to(receiver: Receiver, url: str) -> None:
    """A private address gets no delivery, by address or name, unless the account may use it."""
    port = receiver.url.rpartition(":")[2]
    zone = MemoryZone({HOST: {"A": ["127.0.0.1"]}})
    line = posts(zone).line("bob")
    attempt = await line.post(event(url.format(port=port, host=HOST)))
    assert attempt == Attempt(problem="its address is not allowed: loopback")
    assert receiver.got == []


async def test_an_address_of_our_own_is_not_posted_to(receiver: Receiver) -> None:
    """A public address of this machine is forbidden like its loopback address."""
    zone = MemoryZone({HOST: {"A": ["8.8.8.8"]}})
    line = posts(zone, is_own=lambda _: True).line("bob")
    attempt = await line.post(event(f"http://{HOST}/mail"))
    assert attempt.problem == "its address is not allowed: this machine's own"


async def test_our_own_ports_are_not_posted_to(receiver: Receiver) -> None:
    """The service's own ports are forbidden, whatever the operator allows."""
    port = int(receiver.url.rpartition(":")[2])
    zone = MemoryZone({HOST: {"A": ["127.0.0.1"]}})
    line = posts(zone, own_ports=frozenset({port})).line("ann")
    for host in ("127.0.0.1", "127.0.0.2", "localhost", HOST):
        attempt = await line.post(event(f"http://{host}:{port}/mail"))
        assert attempt.problem == "its address is not allowed: a port of this service"
    assert receiver.got == []


async def test_a_name_that_is_bound_anew(receiver: Receiver) -> None:
    """Each address of a name is checked, also when the name gets a new one."""
    port = receiver.url.rpartition(":")[2]
    zone = MemoryZone({HOST: {"A": ["127.0.0.1"]}})
    line = posts(zone, allowed=["127.0.0.1/32"]).line("ann")
    url = f"http://{HOST}:{port}/mail"
    assert (await line.post(event(url))).is_taken
    await hang_up(line)
    for address in ("127.0.0.2", "10.0.0.1", "169.254.169.254"):
        zone.publish(HOST, "A", address)
        attempt = await line.post(event(url, 2))
        assert attempt.problem.startswith("its address is not allowed: ")
    assert len(receiver.got) == 1


async def test_certificates(tmp_path: Path) -> None:
    """A receiver needs a valid certificate for its name; otherwise it gets no delivery."""
    trust = find_trust_roots(AUTHORITY.write_to(tmp_path / "ca.pem"))
    zone = MemoryZone({HOST: {"A": ["127.0.0.1"]}})
    outcomes = {}
    for name, issued in (
        ("own", AUTHORITY.issue(HOST)),
        ("foreign", AUTHORITY.issue("other.example")),
        ("unknown", self_signed(HOST)),
        ("expired", AUTHORITY.issue(HOST, is_expired=True)),
    ):
        with running_receiver(issued=issued, folder=tmp_path) as receiver:
            line = posts(zone, trust=trust).line("ann")
            port = receiver.url.rpartition(":")[2]
            outcomes[name] = await line.post(event(f"https://{HOST}:{port}/mail"))
            assert len(receiver.got) == outcomes[name].is_taken
            await hang_up(line)
    assert outcomes.pop("own") == Attempt(204)
    assert {one.problem for one in outcomes.values()} == {
        "its certificate is not for its host name, or not from a known authority"
    }


async def test_without_authorities(receiver: Receiver, line: HttpWebhookLine) -> None:
    """Without trusted authorities no delivery is sent over TLS."""
    attempt = await line.post(event(f"https://{HOST}/mail"))
    assert "authorities" in attempt.problem


async def test_hosts_that_are_not_there(receiver: Receiver) -> None:
    """An unreachable host is described in words, without a status."""
    zone = MemoryZone({"silent.example": {"A": ["127.0.0.1"]}})
    line = posts(zone).line("ann")
    attempt = await line.post(event("http://nowhere.example/mail"))
    assert attempt == Attempt(problem="its host has no address")
    with running_receiver() as gone:
        url = gone.url
    assert (await line.post(event(url))).problem == "its host refuses connections"


class _Flood(Protocol):
    answer = b""

    def dataReceived(self, data: bytes) -> None:
        """Answer with more data than is read."""
        assert self.transport is not None
        self.transport.write(self.answer)


@rows(
    (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * MAX_OCTETS, "its response has more than"),
    (b"SSH-2.0-OpenSSH_9\r\n\r\n", "its response is incomplete, or not HTTP"),
)
async def test_answers_that_are_none(line: HttpWebhookLine, answer: bytes, problem: str) -> None:
    """Endless header fields and other protocols are failures with limited cost."""
    from twisted.internet import reactor

    anything: Any = reactor
    factory = Factory.forProtocol(type("_", (_Flood,), {"answer": answer}))
    factory.noisy = False
    port = anything.listenTCP(0, factory, interface="127.0.0.1")
    try:
        attempt = await line.post(event(f"http://127.0.0.1:{port.getHost().port}/"))
        assert attempt.problem.startswith(problem)
        assert attempt.status is None
    finally:
        await hang_up(line)
        await port.stopListening()


async def test_a_body_without_end_is_not_read(line: HttpWebhookLine) -> None:
    """The status and the beginning are the result, and the rest of the response is not read."""
    from twisted.internet import reactor

    anything: Any = reactor
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + b"x" * 2 * MAX_OCTETS
    factory = Factory.forProtocol(type("_", (_Flood,), {"answer": answer}))
    factory.noisy = False
    port = anything.listenTCP(0, factory, interface="127.0.0.1")
    try:
        url = f"http://127.0.0.1:{port.getHost().port}/"
        kept = "x" * RESPONSE_KEPT
        assert await line.post(event(url)) == Attempt(200, response=kept)
        assert line._connections.peer is None
    finally:
        await hang_up(line)
        await port.stopListening()


async def test_a_public_address_gets_so_much_in_a_minute() -> None:
    """Public addresses have a limit of deliveries a minute; those of allowed networks have none."""
    counters, moment = LocalRateCounters(), now()
    bob, carol = (AddressRateLimit(counters, (), lambda: moment) for _ in range(2))
    address = ip_network("8.8.8.8").network_address
    assert all([await bob.within([address]) for _ in range(MOST_A_MINUTE)])
    assert await carol.within([address]) == []
    assert 0 < carol.wait <= 60_000
    ann = AddressRateLimit(counters, [ip_network(one) for one in LOOPBACK], lambda: moment)
    loopback = ip_network("127.0.0.1").network_address
    assert all([await ann.within([loopback]) for _ in range(MOST_A_MINUTE + 1)])


@rows(
    "http://mailcheck.example:8080/mail",
    "https://mailcheck.example.:8080/",
    "http://MAILCHECK.example:8080",
)
def test_this_service_itself_is_refused(url: str) -> None:
    """The URL of this service is rejected at creation; another port is allowed."""
    with pytest.raises(InvalidParameter):
        posts().require_allowed(url, "ann")
    posts().require_allowed(url.replace("8080", "9000"), "ann")


@rows(
    ("http://localhost:9000/mail", "127.0.0.1/32"),
    ("http://127.0.0.1:9000", "127.0.0.1/32"),
    ("http://10.1.2.3/", "10.1.2.3/32"),
    ("http://[::1]:9000/", "::1/128"),
    ("http://[::ffff:10.1.2.3]/", "10.1.2.3/32"),
)
def test_a_private_address_names_the_option_that_allows_it(url: str, network: str) -> None:
    """A private address is rejected at creation, unless the account may use its network."""
    with pytest.raises(InvalidParameter, match=rf'\[webhooks\] allow = \["bob={network}"\]'):
        posts().require_allowed(url, "bob")


def test_an_allowed_private_address_is_accepted() -> None:
    """The operator allows an account its networks, also for a name of this machine."""
    for url in ("http://localhost:9000/mail", "http://127.0.0.1:9000"):
        posts().require_allowed(url, "ann")
