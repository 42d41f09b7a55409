"""The PROXY protocol: the header alone, and before a conversation."""

from ipaddress import IPv6Address, ip_network
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.connections.proxy_header import ProxyHeaderReader
from tests.smtp.talk import PUBLIC_IP, House, Talk
from tests.table import rows

PROXY_IP = "10.0.0.1"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def version_2(family: int, block: bytes, command: int = 0x21) -> bytes:
    """Build a version 2 header."""
    return SIGNATURE + bytes((command, family)) + len(block).to_bytes(2) + block


TCP4 = bytes((93, 184, 216, 34, 10, 0, 0, 1)) + b"\x9c\x40\x00\x19"
TCP6 = IPv6Address("2606:2800:220:1::1").packed + IPv6Address("fd00::1").packed + b"\x9c\x40\0\x19"

GOOD = [
    (b"PROXY TCP4 93.184.216.34 10.0.0.1 40000 25\r\n", PUBLIC_IP),
    (b"PROXY TCP6 2606:2800:220:1::1 fd00::1 40000 25\r\n", "2606:2800:220:1::1"),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
    (version_2(0x11, TCP4), PUBLIC_IP),
    (version_2(0x11, TCP4 + b"\x04\x00\x01x"), PUBLIC_IP),
    (version_2(0x21, TCP6), "2606:2800:220:1::1"),
    (version_2(0x00, b""), None),
    (version_2(0x31, b"\0" * 216), None),
    (version_2(0x00, b"", command=0x20), None),
    (version_2(0x11, TCP4, command=0x20), None),
]

BAD = [
    b"EHLO client.example\r\n",
    b"PROXYTCP4 93.184.216.34 10.0.0.1 40000 25\r\n",
    b"PROXY TCP4 93.184.216.34 10.0.0.1 40000\r\n",
    b"PROXY TCP4 93.184.216.300 10.0.0.1 40000 25\r\n",
    b"PROXY TCP4 93.184.216.34 10.0.0 40000 25\r\n",
    b"PROXY TCP4 2606::1 fd00::1 40000 25\r\n",
    b"PROXY TCP6 93.184.216.34 10.0.0.1 40000 25\r\n",
    b"PROXY TCP4 93.184.216.34 10.0.0.1 65536 25\r\n",
    b"PROXY UDP4 93.184.216.34 10.0.0.1 40000 25\r\n",
    b"PROXY TCP4 93.184.216.34 10.0.0.1 40000 25 \r\n",
    b"PROXY UNKNOWN \xff\r\n",
    b"PROXY UNKNOWN " + b"x" * 100,
    b"PROXY UNKNOWN\n" + b"x" * 100,
    version_2(0x11, TCP4, command=0x11),
    version_2(0x11, TCP4, command=0x22),
    version_2(0x13, TCP4),
    version_2(0x11, TCP4[:11]),
    version_2(0x21, TCP4),
    version_2(0x11, b"\0" * 4097),
    b"\r\n\r\n\0\r\nQUIT\r",
]


def behind_proxy(**settings: Any) -> House:
    """Open a port behind the proxy."""
    return House(proxy_protocol_from=(ip_network("10.0.0.0/24"),), **settings)


def client_seen(house: House, talk: Talk) -> str:
    """Send a mail and return the client's address in its session."""
    talk.say(b"EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<dev-a@inbox.example>\r\nDATA\r\n")
    talk.say(b"hi\r\n.\r\n")
    return house.receiver.delivered[-1].session.client_ip


@rows(*GOOD)
def test_the_header_names_the_client(header: bytes, client_ip: str | None) -> None:
    """Both versions are parsed; LOCAL and UNKNOWN keep the address of the proxy."""
    house = behind_proxy()
    talk = house.connect(PROXY_IP)
    assert talk.heard() == b""
    assert talk.codes(header) == ["220"]
    assert client_seen(house, talk) == (client_ip or PROXY_IP)


@rows(*GOOD)
def test_the_header_may_come_octet_by_octet(header: bytes, client_ip: str | None) -> None:
    """The header may be split at any octet, and SMTP follows it."""
    data = header + b"EHLO x\r\n"
    for step in (1, 5, 13):
        talk = behind_proxy().connect(PROXY_IP)
        pieces = [data[n : n + step] for n in range(0, len(data), step)]
        assert talk.codes(*pieces) == ["220", "250"]
        assert talk.protocol.client.ip == (client_ip or PROXY_IP)


@rows(*BAD)
def test_an_invalid_header_closes_the_connection(header: bytes) -> None:
    """A malformed or missing header closes the connection without a reply."""
    house = behind_proxy()
    talk = house.connect(PROXY_IP)
    assert talk.say(header + b"\r\nEHLO x\r\nQUIT\r\n") == b""
    assert talk.is_closed


def test_a_missing_header_times_out() -> None:
    """A proxy has five seconds to send the whole header."""
    house = behind_proxy()
    talk = house.connect(PROXY_IP)
    talk.say(b"PROXY TCP4 ")
    house.clock.advance(4)
    talk.say(b"93.184.")
    house.clock.advance(2)
    assert talk.is_closed


def test_after_the_header_the_normal_timeout_applies() -> None:
    """The five seconds apply to the header alone."""
    house = behind_proxy()
    talk = house.connect(PROXY_IP)
    talk.say(b"PROXY UNKNOWN\r\n")
    house.clock.advance(29)
    assert talk.codes(b"NOOP\r\n") == ["250"]


@rows(*[header for header, _ in GOOD])
def test_other_hosts_cannot_name_a_client(header: bytes) -> None:
    """From any other host the header is an invalid command without effect."""
    house = behind_proxy()
    talk = house.connect(PUBLIC_IP)
    talk.heard()
    assert set(talk.codes(header)) == {"500"}
    assert talk.protocol.client.ip == PUBLIC_IP


def test_clients_are_counted_not_their_proxy() -> None:
    """The limit per address applies to the client behind the proxy."""
    house = behind_proxy(limits={"connections_per_address": 1})
    header = GOOD[0][0]
    assert house.connect(PROXY_IP).codes(header) == ["220"]
    assert house.connect(PROXY_IP).codes(header) == ["421"]
    assert house.connect(PROXY_IP).codes(GOOD[1][0]) == ["220"]


def test_an_ipv4_client_in_ipv6_is_an_ipv4_client() -> None:
    """An IPv4-mapped address in the header is converted to IPv4."""
    house = behind_proxy()
    talk = house.connect(PROXY_IP)
    talk.say(b"PROXY TCP6 ::ffff:93.184.216.34 fd00::1 40000 25\r\n")
    assert client_seen(house, talk) == PUBLIC_IP


@given(st.binary(max_size=300))
def test_any_bytes_are_a_header_or_a_problem(data: bytes) -> None:
    """No input makes the reader fail, store too much, or read beyond the input."""
    for prefix in (b"", b"PROXY ", b"PROXY TCP4 ", SIGNATURE, SIGNATURE + b"\x21\x11"):
        reader = ProxyHeaderReader()
        window = prefix + data
        end = reader.feed(window, 0)
        assert end is None or 0 < end <= len(window) or reader.problem is not None
