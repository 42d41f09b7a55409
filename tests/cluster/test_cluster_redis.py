"""The connection to Redis: who may come in how, and what a server that fails costs."""

from typing import Any

import pytest
from pytest_twisted import ensureDeferred
from twisted.logger import LogEvent, globalLogPublisher

from mailcheck.assembly.cluster import redis_endpoint
from mailcheck.cluster.redis import Redis, RedisAway
from mailcheck.cluster.redis_address import RedisAddress, parse_redis_address
from mailcheck.cluster.shared import RedisCluster
from mailcheck.core.rate_limits import MINUTE_WINDOW
from mailcheck.operations.ports import Hit
from tests.servers.certificates import Authority
from tests.servers.redis import RedisServer, connected, running_redis, until


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("redis://cache", RedisAddress("cache")),
        ("redis://:s%2Fc@a:70/3", RedisAddress("a", 70, password="s/c", database=3)),
        ("rediss://mc:pw@[::1]/", RedisAddress("::1", is_tls=True, username="mc", password="pw")),
        ("unix:/run/r.sock?db=2", RedisAddress(path="/run/r.sock", database=2)),
    ],
)  # fmt: skip
def test_addresses(text: str, address: RedisAddress) -> None:
    """An address is read as Redis' own tools read it, and shown without its password."""
    assert parse_redis_address(text) == address
    assert not address.password or address.password not in str(address)
    assert parse_redis_address(str(address)).path == address.path


@pytest.mark.parametrize(
    "text",
    ["localhost", "http://a", "redis://", "redis://:secret@a:99999", "redis://a/x", "unix:run", "redis://u@a"],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    """Anything else is refused in words that hold nothing of it, as it may hold a password."""
    with pytest.raises(ValueError, match=r"is not|has no|names") as caught:
        parse_redis_address(text)
    assert "secret" not in str(caught.value)


@ensureDeferred
async def test_ways_in(tmp_path_factory: pytest.TempPathFactory) -> None:
    """By verified TLS, by a Unix socket and as an ACL user; not by another name's certificate."""
    from twisted.internet import reactor

    folder = tmp_path_factory.mktemp("redis")
    authority = Authority()
    ca_file = str(authority.write_to(folder / "ca.pem"))
    certificate, key = authority.issue("localhost").write_to(folder)
    options = ["--tls-port", "0", "--user", "mc", "on", ">p/w", "~*", "+@all"]
    options += ["&mailcheck:0:*", "&mailcheck:4:*"]
    options += ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    options += ["--tls-ca-cert-file", ca_file, "--tls-auth-clients", "no"]
    with running_redis(*options) as server:
        async with connected(server) as plain:
            await plain.run("CONFIG", "SET", "port", 0)
            await plain.run("CONFIG", "SET", "tls-port", server.port)
        user = "mc:p%2Fw@"
        addresses = {
            f"rediss://localhost:{server.port}": True,
            f"rediss://{user}localhost:{server.port}/4": True,
            f"unix:{server.socket}": True,
            f"unix://{user}{server.socket}": True,
            f"rediss://127.0.0.1:{server.port}": False,
            f"rediss://mc:wrong@localhost:{server.port}": False,
        }
        links = {}
        for text in addresses:
            address = parse_redis_address(text)
            links[text] = Redis(address, redis_endpoint(address, ca_file, reactor), reactor)
            links[text].startService()
        comes_in = [links[text] for text, may in addresses.items() if may]
        await until(lambda: all(link.is_there for link in comes_in))
        assert {text: link.is_there for text, link in links.items()} == addresses
        for link in comes_in:
            assert await link.run("SET", "key", "1") == "OK"
        for link in links.values():
            await link.stopService()


@ensureDeferred
async def test_redis_fails_and_comes_back() -> None:
    """Killed or hung: within a second and a half each goes on alone; one line for each change."""
    lines: list[str] = []

    def note(event: LogEvent) -> None:
        if event.get("log_namespace", "").startswith("mailcheck.cluster"):
            lines.append(event["log_format"].split("{")[0] + event["log_format"][-12:])

    hit = Hit("key", ((MINUTE_WINDOW, 0, 9),))
    with running_redis() as server:
        async with connected(server) as redis:
            from twisted.internet import reactor

            cluster = RedisCluster(redis, reactor)
            looks: list[int] = []
            cluster.when_hints_are_lost(lambda: looks.append(1))
            places = cluster.places("waits", 1)
            observer: Any = note
            globalLogPublisher.addObserver(observer)
            try:
                assert await cluster.counters.hit(hit) == [[1]]
                for fail, mend in ((server.kill, server.start), (server.hang, server.go_on)):
                    lines.clear()
                    fail()
                    await until(lambda: not redis.is_there, 2.0)
                    assert (await cluster.counters.hit(hit))[0][0] >= 1
                    with pytest.raises(RedisAway):
                        await redis.run("PING")
                    async with places.held("ann"):
                        looks.clear()
                        await until(lambda: len(looks) > 0, 2.0)
                    mend()
                    await until(lambda: redis.is_there)
                    assert len(lines) == 2, lines
            finally:
                globalLogPublisher.removeObserver(observer)


@ensureDeferred
async def test_a_refusal_of_redis(redis_server: RedisServer) -> None:
    """A command that Redis refuses is a failure of its own, and the connection goes on."""
    async with connected(redis_server) as redis:
        with pytest.raises(RedisAway, match="unknown command"):
            await redis.run("NOSUCHTHING")
        assert await redis.run("GET", "nothing") is None
        assert redis.is_there
