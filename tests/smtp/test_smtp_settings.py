"""Policies that depend on the client's address, and the watchdog."""

from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import Clock

from mailcheck.connections.policies import client_ip_of, offer_to_all, offer_to_public
from mailcheck.connections.wire import Watchdog
from mailcheck.core.network_addresses import counting_key, is_local_client
from mailcheck.smtp.settings import SmtpSettings
from tests.table import rows


def test_a_certificate_that_can_be_verified_is_offered_to_all() -> None:
    """Local and public clients get a certificate that can be verified."""
    certificate = CertificateOptions()
    policy = offer_to_all(certificate)
    assert policy("127.0.0.1") is policy("93.184.216.34") is certificate


def test_a_self_signed_certificate_is_offered_to_public_clients() -> None:
    """Programs on a laptop reject it, mail servers accept it."""
    certificate = CertificateOptions()
    policy = offer_to_public(certificate)
    assert policy("93.184.216.34") is certificate
    for near in ("127.0.0.1", "192.168.0.1", "::1", "fe80::1"):
        assert policy(near) is None
    assert SmtpSettings("mx.example").tls_for("93.184.216.34") is None


@rows(
    ("127.8.8.8", True),
    ("10.255.0.1", True),
    ("172.16.0.1", True),
    ("172.32.0.1", False),
    ("192.168.1.1", True),
    ("169.254.1.1", True),
    ("100.64.0.1", False),
    ("192.0.2.1", False),
    ("::1", True),
    ("fd12::1", True),
    ("fe80::1", True),
    ("2606:2800:220:1::1", False),
    ("/run/mail.sock", True),
)
def test_near_is_this_machine_and_its_private_network(client_ip: str, *, is_local: bool) -> None:
    """Loopback, private and link-local addresses, and UNIX sockets, are local."""
    assert is_local_client(client_ip) is is_local


def test_addresses_have_a_canonical_form() -> None:
    """Zones and IPv4-mapped forms are removed; other values stay unchanged."""
    assert client_ip_of("fe80::1%eth0") == "fe80::1"
    assert client_ip_of("::FFFF:10.0.0.1") == "10.0.0.1"
    assert client_ip_of("2606:2800:0220:0001::1") == "2606:2800:220:1::1"
    assert client_ip_of("/run/mail.sock") == "/run/mail.sock"


def test_ipv6_is_counted_by_its_network() -> None:
    """The counting key is the address of an IPv4 client, or the /64 of an IPv6 client."""
    assert counting_key("93.184.216.34") == "93.184.216.34"
    assert counting_key("2606:2800:220:1::1") == counting_key("2606:2800:220:1:ffff::")
    assert counting_key("2606:2800:220:1::1") != counting_key("2606:2800:220:2::1")


def test_the_watchdog_fires_once_after_the_last_reset() -> None:
    """The time counts from the last reset; a reset does not extend the deadline."""
    clock = Clock()
    barks: list[float] = []
    watchdog = Watchdog(clock, lambda: barks.append(clock.seconds()))
    watchdog.watch(10)
    clock.advance(7)
    watchdog.reset()
    clock.advance(4)
    watchdog.reset()
    clock.advance(9.5)
    assert barks == []
    clock.advance(0.5)
    assert barks == [21]
    clock.advance(100)
    assert barks == [21]
    watchdog.watch(3)
    watchdog.deadline = clock.seconds() + 4.5
    for _ in range(4):
        clock.advance(1.5)
        watchdog.reset()
    assert barks == [21, 125.5]
    watchdog.watch(3)
    watchdog.stop()
    assert clock.getDelayedCalls() == []
