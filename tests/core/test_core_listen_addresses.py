"""Listening addresses, and their endpoints."""

import pytest
from twisted.internet.endpoints import serverFromString
from twisted.internet.testing import MemoryReactorClock

from mailcheck.core.network_addresses import BACKLOG, ListenAddress, parse_listen_address
from tests.table import rows


@rows(
    ("127.0.0.1:8080", "127.0.0.1", 8080, "http://127.0.0.1:8080"),
    ("0.0.0.0:25", "0.0.0.0", 25, "http://127.0.0.1:25"),
    ("[::]:80", "::", 80, "http://[::1]:80"),
    ("[2001:db8::1]:8080", "2001:db8::1", 8080, "http://[2001:db8::1]:8080"),
    ("localhost:0", "localhost", 0, "http://localhost:0"),
)
def test_host_and_port(text: str, host: str, port: int, url: str) -> None:
    """Host and port become an endpoint of Twisted with the larger backlog."""
    address = parse_listen_address(text)
    assert (address.host, address.port, address.url) == (host, port, url)
    reactor = MemoryReactorClock()
    serverFromString(reactor, address.endpoint).listen(None)
    assert [(server[0], server[2], server[3]) for server in reactor.tcpServers] == [
        (port, BACKLOG, host)
    ]


@rows("systemd:domain=INET:name=smtp", "unix:/run/mailcheck.sock", "tcp:25:backlog=10")
def test_endpoints(text: str) -> None:
    """A Twisted endpoint is kept unchanged, without a URL."""
    assert parse_listen_address(text) == ListenAddress(text, None, None)
    assert parse_listen_address(text).url is None


@rows("", "25", ":25", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:25", "[::1]", "a:b")
def test_invalid_addresses(text: str) -> None:
    """Anything else is rejected with both forms in the message."""
    with pytest.raises(ValueError, match="host:port"):
        parse_listen_address(text)
