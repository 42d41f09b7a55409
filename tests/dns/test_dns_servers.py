"""Which servers are asked, and in what order."""

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

FIRST, SECOND, THIRD = Server("192.0.2.1"), Server("192.0.2.2"), Server("192.0.2.3")


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("192.0.2.1", Server("192.0.2.1", 53)),
        ("127.0.0.1:5354", Server("127.0.0.1", 5354)),
        ("[::1]:53", Server("::1", 53)),
        ("[::1]", Server("::1", 53)),
        ("2001:DB8:0:0::1", Server("2001:db8::1", 53)),
        (" [fe80::1%eth0]:5354 ", Server("fe80::1%eth0", 5354)),
    ],
)
def test_parse_server(text: str, server: Server) -> None:
    """Addresses of both families are read, with and without a port, and normalised."""
    assert parse_server(text) == server
    assert server.is_ipv6 == (":" in server.host)


@pytest.mark.parametrize(
    "text",
    [
        *["", "dns.example.com", "localhost:53", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536"],
        *["127.0.0.1:x", "1.2.3", "[::1]53", "[127.0.0.1", ":53", "127.0.0.1:٥٣"],
    ],
)
def test_parse_server_refuses(text: str) -> None:
    """Anything else is refused, host names included, with the text in the message."""
    with pytest.raises(ValueError, match="not a"):
        parse_server(text)


def test_system_servers(tmp_path: Path) -> None:
    """The first three nameserver lines that hold an address count, as in the C library."""
    path = tmp_path / "resolv.conf"
    path.write_text(
        "# nameserver 192.0.2.9\nsearch example.com\nnameserver 192.0.2.1\nnameserver\n"
        "nameserver not-an-address\n nameserver\t2001:db8::1 # ours\noptions rotate\n"
        "nameserver 192.0.2.2\nnameserver 192.0.2.3\n"
    )
    expected = (Server("192.0.2.1"), Server("2001:db8::1"), Server("192.0.2.2"))
    assert system_servers(str(path)) == expected


def test_system_servers_without_file(tmp_path: Path) -> None:
    """Without a file, or with none in it, the local host is asked (resolv.conf(5))."""
    assert system_servers(str(tmp_path / "missing")) == (Server("127.0.0.1"),)


def test_rota_turns() -> None:
    """Each server in turn is asked first, the others in order behind it."""
    rota = ServerRotation([FIRST, SECOND, THIRD])
    assert [rota.order(0.0) for _ in range(4)] == [
        (FIRST, SECOND, THIRD),
        (SECOND, THIRD, FIRST),
        (THIRD, FIRST, SECOND),
        (FIRST, SECOND, THIRD),
    ]


def test_rota_needs_one() -> None:
    """Without a server there is nothing to ask."""
    with pytest.raises(ValueError, match="server"):
        ServerRotation([])


def test_rota_silence() -> None:
    """A server that lost several questions in a row is asked last, for a while."""
    rota = ServerRotation([FIRST, SECOND])
    for _ in range(MAX_FAILURES - 1):
        rota.note_failure(FIRST, 0.0, is_unreachable=False)
    assert {rota.order(0.0), rota.order(0.0)} == {(FIRST, SECOND), (SECOND, FIRST)}
    rota.note_failure(FIRST, 0.0, is_unreachable=False)
    assert {rota.order(0.0), rota.order(DOWN_SECONDS - 0.1)} == {(SECOND, FIRST)}
    assert {rota.order(DOWN_SECONDS), rota.order(DOWN_SECONDS)} == {
        (FIRST, SECOND),
        (SECOND, FIRST),
    }


def test_rota_unreachable() -> None:
    """A server that can't be reached is asked last at once, until it answers again."""
    rota = ServerRotation([FIRST, SECOND])
    rota.note_failure(FIRST, 0.0, is_unreachable=True)
    assert {rota.order(0.0), rota.order(0.0)} == {(SECOND, FIRST)}
    rota.note_answer(FIRST)
    assert {rota.order(0.0), rota.order(0.0)} == {(FIRST, SECOND), (SECOND, FIRST)}


def test_rota_dead_zones() -> None:
    """Dead zones do not make a server look dead that answers other questions."""
    rota = ServerRotation([FIRST, SECOND])
    for _ in range(3 * MAX_FAILURES):
        rota.note_failure(FIRST, 0.0, is_unreachable=False)
        rota.note_answer(FIRST)
    assert {rota.order(0.0), rota.order(0.0)} == {(FIRST, SECOND), (SECOND, FIRST)}
