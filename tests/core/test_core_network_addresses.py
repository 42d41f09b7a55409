"""Public and special addresses."""

from ipaddress import IPv4Address, IPv6Address, ip_address

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.network_addresses import embedded_ipv4, parse_ip_address, why_not_public
from tests.table import rows


@rows(
    ("8.8.8.8", None),
    ("1.1.1.1", None),
    ("172.15.255.255", None),
    ("2606:4700::1111", None),
    ("0.0.0.0", "not an address of a host"),
    ("10.255.0.1", "private"),
    ("172.16.0.1", "private"),
    ("192.168.0.1", "private"),
    ("100.127.255.255", "behind a provider's NAT"),
    ("127.1.2.3", "loopback"),
    ("169.254.169.254", "link-local"),
    ("192.0.0.8", "reserved for protocols"),
    ("198.19.0.1", "reserved for benchmarks"),
    ("203.0.113.9", "reserved for documentation"),
    ("239.1.1.1", "multicast"),
    ("255.255.255.255", "reserved"),
    ("::", "reserved"),
    ("::1", "loopback"),
    ("::127.0.0.1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("64:ff9b::7f00:1", "loopback"),
    ("64:ff9b:1::1", "reserved"),
    ("2002:7f00:1::", "loopback"),
    ("2001:0:4136:e378:8000:63bf:f5ff:fffe", "private"),
    ("2001:470:1f0b::5efe:10.1.1.1", "private"),
    ("2001:470:1f0b::5efe:8.8.8.8", None),
    ("fe80::5efe:8.8.8.8", "link-local"),
    ("fd12::200:5efe:8.8.8.8", "private"),
    ("2001:db8::1", "reserved for documentation"),
    ("3fff::1", "reserved for documentation"),
    ("fd12::1", "private"),
    ("fe80::1", "link-local"),
    ("fec0::1", "site-local"),
    ("ff02::1", "multicast"),
    ("4000::1", "reserved"),
)
def test_reason_why_an_address_is_not_public(text: str, reason: str | None) -> None:
    """Every special range has its reason, inside transition addresses too."""
    assert why_not_public(ip_address(text)) == reason


@given(st.ip_addresses(v=4))
def test_transition_forms_are_as_public_as_their_ipv4_address(inner: IPv4Address) -> None:
    """An address embedded in IPv6 is never more public than by itself."""
    wrapped = [
        IPv6Address(0xFFFF << 32 | int(inner)),
        IPv6Address(0x2002 << 112 | int(inner) << 80),
        IPv6Address(0x64FF9B << 96 | int(inner)),
        IPv6Address(0x20010470 << 96 | 0x5EFE << 32 | int(inner)),
    ]
    for address in wrapped:
        assert embedded_ipv4(address) == inner
        assert (why_not_public(address) is None) == (why_not_public(inner) is None)


def test_text_that_is_no_address_gives_nothing() -> None:
    """A text is an address or `None`; an IPv4-mapped address becomes IPv4."""
    assert parse_ip_address("example.com") is None
    assert parse_ip_address("010.0.0.1") is None
    assert parse_ip_address("::ffff:192.0.2.1") == IPv4Address("192.0.2.1")
