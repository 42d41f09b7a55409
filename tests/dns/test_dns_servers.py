"""DNS servers: parsing addresses, and their order."""

from pathlib import Path

import pytest

from mailcheck.dns.servers import (
    DOWN_SECONDS,
    MAX_FAILURES,
    Server,
    ServerRotation,
    parse_server,
    system_servers,
)
from tests.table import rows

FIRST, SECOND, THIRD = Server("192.0.2.1"), Server("192.0.2.2"), Server("192.0.2.3")


@rows(
    ("192.0.2.1", Server("192.0.2.1", 53)),
    ("127.0.0.1:5354", Server("127.0.0.1", 5354)),
    ("[::1]:53", Server("::1", 53)),
    ("[::1]", Server("::1", 53)),
    ("2001:DB8:0:0::1", Server("2001:db8::1", 53)),
    (" [fe80::1%eth0]:5354 ", Server("fe80::1%eth0", 5354)),
)
def test_parse_server(text: str, server: Server) -> None:
    """Addresses of both families are parsed, with and without a port, and normalised."""
    assert parse_server(text) == server
    assert server.is_ipv6 == (":" in server.host)


@rows(
    *["", "dns.example.com", "localhost:53", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536"],
    *["127.0.0.1:x", "1.2.3", "[::1]53", "[127.0.0.1", ":53", "127.0.0.1:٥٣"],
)
def test_parse_server_refuses(text: str) -> None:
    """Any other text is rejected, including host names, with the text in the message."""
    with pytest.raises(ValueError, match="not a"):
        parse_server(text)


def test_system_servers(tmp_path: Path) -> None:
    """The first three nameserver lines with an address count, as in the C library."""
    path = tmp_path / "resolv.conf"
    path.write_text(
        "# nameserver 192.0.2.9\nsearch example.com\nnameserver 192.0.2.1\nnameserver\n"
        "nameserver not-an-address\n nameserver\t2001:db8::1 # ours\noptions rotate\n"
        "nameserver 192.0.2.2\nnameserver 192.0.2.3\n"
    )
    expected = (Server("192.0.2.1"), Server("2001:db8::1"), Server("192.0.2.2"))
    assert system_servers(str(path)) == expected


def test_system_servers_without_file(tmp_path: Path) -> None:
    """Without a file, or without an entry, the local host is used (resolv.conf(5))."""
    assert system_servers(str(tmp_path / "missing")) == (Server("127.0.0.1"),)


def test_rotation_turns() -> None:
    """Each server in turn is asked first, followed by the others in order."""
    rotation = ServerRotation([FIRST, SECOND, THIRD])
    assert [rotation.order(0.0) for _ in range(4)] == [
        (FIRST, SECOND, THIRD),
        (SECOND, THIRD, FIRST),
        (THIRD, FIRST, SECOND),
        (FIRST, SECOND, THIRD),
    ]


def test_rotation_requires_a_server() -> None:
    """An empty list of servers raises an exception."""
    with pytest.raises(ValueError, match="server"):
        ServerRotation([])


def test_rotation_after_failures() -> None:
    """A server that did not answer several questions in a row is asked last for a while."""
    rotation = ServerRotation([FIRST, SECOND])
    for _ in range(MAX_FAILURES - 1):
        rotation.note_failure(FIRST, 0.0, is_unreachable=False)
    assert {rotation.order(0.0), rotation.order(0.0)} == {(FIRST, SECOND), (SECOND, FIRST)}
    rotation.note_failure(FIRST, 0.0, is_unreachable=False)
    assert {rotation.order(0.0), rotation.order(DOWN_SECONDS - 0.1)} == {(SECOND, FIRST)}
    assert {rotation.order(DOWN_SECONDS), rotation.order(DOWN_SECONDS)} == {
        (FIRST, SECOND),
        (SECOND, FIRST),
    }


def test_rotation_unreachable() -> None:
    """A server that cannot be reached is asked last at once, until it answers again."""
    rotation = ServerRotation([FIRST, SECOND])
    rotation.note_failure(FIRST, 0.0, is_unreachable=True)
    assert {rotation.order(0.0), rotation.order(0.0)} == {(SECOND, FIRST)}
    rotation.note_answer(FIRST)
    assert {rotation.order(0.0), rotation.order(0.0)} == {(FIRST, SECOND), (SECOND, FIRST)}


def test_rotation_dead_zones() -> None:
    """Dead zones do not mark a server as down that answers other questions."""
    rotation = ServerRotation([FIRST, SECOND])
    for _ in range(3 * MAX_FAILURES):
        rotation.note_failure(FIRST, 0.0, is_unreachable=False)
        rotation.note_answer(FIRST)
    assert {rotation.order(0.0), rotation.order(0.0)} == {(FIRST, SECOND), (SECOND, FIRST)}
