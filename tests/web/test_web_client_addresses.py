"""Client addresses behind proxies: X-Forwarded-For of trusted proxies."""

from mailcheck.config.options import WebOptions
from tests.house import House, config_in_memory
from tests.table import rows
from tests.web.raw_http import RawHttp

REMAINING = "x-ratelimit-remaining"
TRUSTED = ("10.0.0.0/8", "2001:db8:ffff::/48")


def counted_for(house: House, peer: str, *forwarded: str) -> list[str]:
    """Send a request without a key. Return the addresses for which it was counted."""
    fields = [f"X-Forwarded-For: {value}" for value in forwarded]
    assert RawHttp(house, peer).ask("/api/v1/inbox", *fields).status == 401
    known = ("10.0.0.1", "10.0.0.2", "192.0.2.1", "192.0.2.2", "2001:db8:1::1")
    left = {one: RawHttp(house, one).ask("/api/v1/inbox").headers[REMAINING] for one in known}
    assert set(left.values()) == {"58", "59"}
    return [one for one in known if left[one] == "58"]


@rows(
    ("192.0.2.1", ["192.0.2.2"], "192.0.2.1"),  # this peer is not trusted
    ("192.0.2.1", [], "192.0.2.1"),
    ("10.0.0.1", [], "10.0.0.1"),
    ("10.0.0.1", ["192.0.2.2"], "192.0.2.2"),
    ("10.0.0.1", ["192.0.2.1, 192.0.2.2"], "192.0.2.2"),  # the first is forged
    ("10.0.0.1", ["192.0.2.2, 10.0.0.2"], "192.0.2.2"),  # two proxies
    ("10.0.0.1", ["192.0.2.1", "192.0.2.2, 10.0.0.2"], "192.0.2.2"),  # two lines
    ("10.0.0.1", ["192.0.2.1, nonsense"], "10.0.0.1"),
    ("10.0.0.1", ["192.0.2.1, nonsense, 10.0.0.2"], "10.0.0.2"),
    ("10.0.0.1", ["192.0.2.1:4711"], "10.0.0.1"),
    ("10.0.0.1", [""], "10.0.0.1"),
    ("10.0.0.1", ["10.0.0.2"], "10.0.0.2"),  # the client is a trusted host itself
    ("10.0.0.1", ["2001:db8:1::1"], "2001:db8:1::1"),
    ("10.0.0.1", ["::ffff:192.0.2.2"], "192.0.2.2"),
    ("2001:db8:ffff::9", ["192.0.2.1"], "192.0.2.1"),
    ("::ffff:10.0.0.1", ["192.0.2.1"], "192.0.2.1"),  # a proxy at a dual-stack socket
    ("2001:db8:1::1", ["192.0.2.1"], "2001:db8:1::1"),
)
def test_the_address_that_is_counted(peer: str, forwarded: list[str], client: str) -> None:
    """The client is the last address that is not a trusted proxy."""
    house = House(config_in_memory(web=WebOptions(trusted_proxies=TRUSTED)))
    assert counted_for(house, peer, *forwarded) == [client]


def test_without_trusted_proxies_the_header_is_ignored(house: House) -> None:
    """Without trusted proxies, X-Forwarded-For is ignored."""
    assert counted_for(house, "10.0.0.1", "192.0.2.1") == ["10.0.0.1"]


def test_forged_addresses_share_one_limit(house: House) -> None:
    """A client cannot avoid the limit with a different forged address for each guess."""
    statuses = [
        RawHttp(house, "192.0.2.1")
        .ask("/api/v1/inbox", f"X-Forwarded-For: 198.51.100.{number}")
        .status
        for number in range(61)
    ]
    assert statuses == [401] * 60 + [429]
