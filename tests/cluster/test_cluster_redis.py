"""The connection to Redis: addresses, access, and failures of the server."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_twisted import ensureDeferred
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock, LoopingCall, deferLater
from twisted.internet.testing import StringTransport

from mailcheck.assembly.cluster import redis_endpoint
from mailcheck.cluster.redis import BEAT, Redis, RedisAway
from mailcheck.cluster.redis_address import RedisAddress, parse_redis_address
from mailcheck.cluster.shared import OtherDaemons, RedisCluster
from mailcheck.core.memory.client_limits import MINUTE_WINDOW
from mailcheck.core.memory.instruments import RedisFigures
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.ports.cluster import Hit
from tests.servers.certificates import Authority
from tests.servers.daemon import HOST
from tests.servers.redis import RedisServer, connected, connected_twice, running_redis, until
from tests.table import rows

DOCS = Path(__file__).parents[2] / "docs"


@rows(
        ("redis://cache", RedisAddress("cache")),
        ("redis://:s%2Fc@a:70/3", RedisAddress("a", 70, password="s/c", database=3)),
        ("rediss://mc:pw@[::1]/", RedisAddress("::1", is_tls=True, username="mc", password="pw")),
        ("unix:/run/r.sock?db=2", RedisAddress(path="/run/r.sock", database=2)),
    )  # fmt: skip
def test_addresses(text: str, address: RedisAddress) -> None:
    """An address is parsed as the tools of Redis do, and shown without its password."""
    assert parse_redis_address(text) == address
    assert not address.password or address.password not in str(address)
    assert parse_redis_address(str(address)).path == address.path


@rows(
    *("localhost", "http://a", "redis://", "redis://:secret@a:99999"),
    *("redis://a/x", "unix:run", "redis://u@a"),
)
def test_invalid_addresses(text: str) -> None:
    """Any other text is rejected without repeating it, since it may contain a password."""
    with pytest.raises(
        ValueError, match=r"is not of|invalid port|does not name|without a password"
    ) as caught:
        parse_redis_address(text)
    assert "secret" not in str(caught.value)


def ignore(*_: str) -> None:
    """Ignore the notification."""


class Wires:
    """An endpoint without a connection; the test provides the data of the server."""

    def __init__(self) -> None:
        self.ends: list[Any] = []

    def connect(self, factory: Any) -> Deferred[Any]:
        """Return a connection."""
        self.ends.append(factory.buildProtocol(None))
        self.ends[-1].makeConnection(StringTransport())
        return succeed(self.ends[-1])


def said(*words: str) -> bytes:
    """Encode a list in the Redis protocol."""
    bulks = b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in map(str.encode, words))
    return b"*%d\r\n" % len(words) + bulks


@given(st.lists(st.text(max_size=9)), st.lists(st.integers(0, 999)))
def test_messages_are_processed_at_once(texts: list[str], cuts: list[int]) -> None:
    """Each message is processed in the iteration in which it is complete, however it is split."""
    wires, clock = Wires(), Clock()
    redis = Redis(RedisAddress("a"), cast(Any, wires), clock, ignore, RedisFigures())
    heard: list[str] = []
    redis.listen("tests", heard.append)
    redis.startService()
    _, ears = wires.ends
    messages = (said("pmessage", "mailcheck:0:*", "mailcheck:0:tests", text) for text in texts)
    stream = said("psubscribe", "mailcheck:0:*", "1") + said("pong", "") + b"".join(messages)
    places = [0, *sorted(cut % len(stream) for cut in cuts), len(stream)]
    for start, end in pairwise(places):
        ears.dataReceived(stream[start:end])
    assert heard == texts
    assert redis.is_there
    redis.stopService()


@pytest.mark.interop
@ensureDeferred
async def test_ways_in(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Verified TLS, a Unix socket and an ACL user work; a certificate for another name fails.

    One of the users is that of docs/how-to/run-several-daemons.md.
    """
    from twisted.internet import reactor

    folder = tmp_path_factory.mktemp("redis")
    authority = Authority()
    ca_file = str(authority.write_to(folder / "ca.pem"))
    certificate, key = authority.issue("localhost").write_to(folder)
    options = ["--tls-port", "0", "--user", "mc", "on", ">p/w", "~*", "+@all"]
    options += ["&mailcheck:0:*", "&mailcheck:4:*"]
    (shown,) = re.findall(
        r"^ACL SETUSER (.*)$", (DOCS / "how-to" / "run-several-daemons.md").read_text(), re.M
    )
    options += ["--user", *shown.split()]
    options += ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    options += ["--tls-ca-cert-file", ca_file, "--tls-auth-clients", "no"]
    with running_redis(*options) as server:
        async with connected(server) as plain:
            await plain.run("CONFIG", Key("SET"), "port", 0)
            await plain.run("CONFIG", Key("SET"), "tls-port", server.port)
        user = "mc:p%2Fw@"
        addresses = {
            f"rediss://localhost:{server.port}": True,
            f"rediss://{user}localhost:{server.port}/4": True,
            f"rediss://mailcheck:secret@localhost:{server.port}": True,
            f"unix:{server.socket}": True,
            f"unix://{user}{server.socket}": True,
            f"rediss://127.0.0.1:{server.port}": False,
            f"rediss://mc:wrong@localhost:{server.port}": False,
        }
        links = {}
        for text in addresses:
            address = parse_redis_address(text)
            endpoint = redis_endpoint(address, ca_file, reactor)
            links[text] = Redis(address, endpoint, reactor, ignore, RedisFigures())
            links[text].startService()
        comes_in = [links[text] for text, may in addresses.items() if may]
        await until(lambda: all(link.is_there for link in comes_in))
        assert {text: link.is_there for text, link in links.items()} == addresses
        for link in comes_in:
            assert await link.run("SET", key_of("mailcheck", "0", "key"), "1") == "OK"
        for link in links.values():
            await link.stopService()


@pytest.mark.interop
@ensureDeferred
async def test_redis_fails_and_comes_back() -> None:
    """Each daemon works alone within 1.5 s of a crash, and reports each change once."""
    told: list[str] = []
    hit = Hit(key_of("key"), ((MINUTE_WINDOW, 0, 9),))
    with running_redis() as server:
        async with connected(server, note=lambda problem, _: told.append(problem)) as redis:
            from twisted.internet import reactor

            cluster = RedisCluster(redis, reactor)
            looks: list[int] = []
            cluster.when_hints_are_lost(lambda: looks.append(1))
            places = cluster.semaphore("waits", 1)
            assert await cluster.counters.hit(hit) == [[1]]
            assert await cluster.memory.keep(key_of("found here"), "1", 60_000)
            for fail, mend in ((server.kill, server.start), (server.hang, server.resume)):
                told.clear()
                fail()
                await until(lambda: not redis.is_there, 2.0)
                assert (await cluster.counters.hit(hit))[0][0] >= 1
                with pytest.raises(RedisAway):
                    await redis.run("TYPE", key_of("x"))
                assert await cluster.memory.recall(key_of("found here")) == "1"
                assert not await cluster.memory.keep(key_of("only here"), "1", 60_000)
                assert await cluster.memory.acquire(key_of("work"), 1_000)
                await cluster.memory.release(key_of("work"))
                assert not await cluster.selectors.note_selectors([("a.example", "s")])
                assert await cluster.selectors.selectors_of("a.example") == ()
                async with places.held("ann"):
                    looks.clear()
                    await until(lambda: len(looks) > 0, 2.0)
                mend()
                await until(lambda: redis.is_there)
                assert len(told) == 2, told
                assert told[0].startswith("unavailable: ")
                assert told[1] == ""


@pytest.mark.interop
@ensureDeferred
async def test_a_refusal_of_redis(redis_server: RedisServer) -> None:
    """A command that Redis rejects fails alone, and the connection stays open."""
    async with connected(redis_server) as redis:
        with pytest.raises(RedisAway, match="unknown command"):
            await redis.run("NOSUCHTHING", key_of("x"))
        assert await redis.run("GET", key_of("nothing")) is None
        assert redis.is_there


class Pulse:
    """A clock of one daemon that can be stopped."""

    def __init__(self, reactor: Any) -> None:
        self.clock = Clock()
        self._ticks = LoopingCall(self.clock.advance, BEAT / 10)
        self._ticks.clock = reactor

    def start(self) -> None:
        """Advance the time."""
        self._ticks.start(BEAT / 10, now=False)

    def stop(self) -> None:
        """Stop time."""
        self._ticks.stop()


@pytest.mark.interop
@ensureDeferred
async def test_a_silent_daemon(redis_server: RedisServer) -> None:
    """While a daemon is silent, the others check every second, and once after its return."""
    from twisted.internet import reactor

    clock: Any = reactor
    async with connected_twice(redis_server) as (here, there):
        looks: list[float] = []
        here.when_hints_are_lost(lambda: looks.append(clock.seconds()))
        pulse = Pulse(clock)
        listening, beating = OtherDaemons(here, clock), OtherDaemons(there, pulse.clock)
        listening.startService()
        beating.startService()
        pulse.start()
        await until(lambda: len(listening.known_names) == 1)
        assert looks == []
        began = clock.seconds()
        pulse.stop()  # as if the connection was cut
        await until(lambda: len(looks) == 2)
        assert looks[0] - began < 2.0
        assert 0.8 < looks[1] - looks[0] < 1.5
        pulse.start()
        await until(lambda: len(looks) == 3)
        pulse.stop()
        await beating.stopService()
        await until(lambda: not listening.known_names)
        await listening.stopService()
        assert len(looks) == 3


@pytest.mark.interop
@ensureDeferred
async def test_a_daemon_that_was_killed(redis_server: RedisServer) -> None:
    """Checks for a silent daemon end after several consecutive reports that it is gone.

    A single report, or reports while the daemon still sends messages, do not end them.
    """
    from twisted.internet import reactor

    clock: Any = reactor
    async with connected_twice(redis_server) as (here, there):
        looks: list[None] = []
        here.when_hints_are_lost(lambda: looks.append(None))
        pulse = Pulse(clock)
        listening, killed = OtherDaemons(here, clock), OtherDaemons(there, pulse.clock)
        listening.startService()
        killed.startService()
        pulse.start()
        await until(lambda: len(listening.known_names) == 1)
        for _ in range(3):
            listening.note_present([])  # the daemon sends messages, so the database is wrong
        pulse.stop()
        await until(lambda: len(looks) == 1)
        for names in ([], [killed.own_name], []):
            listening.note_present(names)
        await until(lambda: len(looks) == 2)
        listening.note_present([])
        assert not listening.known_names
        await deferLater(clock, 3 * BEAT)
        assert len(looks) == 2
        await listening.stopService()


@pytest.mark.interop
@pytest.mark.parametrize(
    ("options", "user", "problem"),
    [
        (("--requirepass", "right"), ":wrong@", "WRONGPASS"),
        (("--requirepass", "right"), "", "NOAUTH"),
        (("--user", "mc", "on", ">right", "~*", "+@all"), "mc:right@", "NOPERM"),
    ],
)
@ensureDeferred
async def test_a_login_that_redis_refuses(
    options: tuple[str, ...], user: str, problem: str
) -> None:
    """The reported problem has the error code of a bad password or a missing permission."""
    from twisted.internet import reactor

    told: list[tuple[str, str]] = []

    def tell(problem: str, cause: str) -> None:
        told.append((problem, cause))

    with running_redis(*options) as server:
        address = parse_redis_address(f"redis://{user}{HOST}:{server.port}")
        endpoint = redis_endpoint(address, "", reactor)
        redis = Redis(address, endpoint, cast(Any, reactor), tell, RedisFigures())
        redis.startService()
        await until(lambda: bool(told))
        assert told[0][0].startswith(f"unavailable: {problem}. ")
        assert problem in told[0][1]
        await redis.stopService()


@pytest.mark.interop
@ensureDeferred
async def test_a_full_redis_is_a_condition() -> None:
    """A server that rejects writes is reported without any request, and so is its recovery."""
    told: list[str] = []
    with running_redis() as server:
        async with connected(server, note=lambda problem, _: told.append(problem)) as redis:
            told.clear()
            await redis.run("CONFIG", Key("SET"), "maxmemory", "1")
            await until(lambda: bool(told))
            assert "OOM" in told[-1]
            assert redis.is_there
            await redis.run("CONFIG", Key("SET"), "maxmemory", "0")
            await until(lambda: told[-1] == "")
