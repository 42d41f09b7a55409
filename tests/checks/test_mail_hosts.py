"""Tests for the addresses that stand for a domain."""

from ipaddress import ip_address

from mailcheck.checks.dns_answers import Answers, DnsStatus, HostAddresses, look_up_addresses
from mailcheck.checks.dnsbl.mail_hosts import MailHosts, choose_sending_host
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

WEB = "9.9.9.9"
HOSTS = {
    "mx1.d.example": {"A": ["8.8.8.8", "8.8.4.4"], "AAAA": ["2606:4700::1"]},
    "mx2.d.example": {"A": ["1.1.1.1"]},
    "in.d.example": {"A": ["10.0.0.1"]},
    "mx.provider.example": {"A": ["8.8.8.8", "192.0.2.7"]},
}


def look(*mx: str, a: tuple[str, ...] = (WEB,)) -> tuple[MxVerdict, HostAddresses]:
    """Evaluate d.example with these MX and own addresses."""
    return look_in(MemoryZone(HOSTS), *mx, a=a)


def look_in(
    zone: MemoryZone, *mx: str, a: tuple[str, ...] = (WEB,)
) -> tuple[MxVerdict, HostAddresses]:
    """Evaluate d.example in a zone."""
    zone.publish("d.example", "MX", *mx)
    zone.publish("d.example", "A", *a)

    def evaluate(answers: Answers) -> tuple[MxVerdict, HostAddresses]:
        return evaluate_mx("d.example", answers), look_up_addresses(answers, "d.example")

    return settle(zone, evaluate)


@rows(
    (["10 mx1.d.example."], [], ("8.8.4.4", "mx1.d.example")),
    (["5 gone.d.example.", "10 mx2.d.example."], [], ("1.1.1.1", "mx2.d.example")),
    (["10 mx1.d.example."], ["5.5.5.5", "6.6.6.6"], ("5.5.5.5", "")),
    ([], [], (WEB, "d.example")),
)
def test_the_sending_host_is_given_or_the_best_mail_host(
    mx: list[str], given: list[str], expected: tuple[str, str]
) -> None:
    """The address of the domain itself, usually a web server, comes last."""
    host = choose_sending_host([ip_address(text) for text in given], *look(*mx))
    assert host is not None
    assert (str(host.address), host.host_name) == expected


def test_without_any_address_there_is_no_sending_host() -> None:
    """Without any address, there is no sending host."""
    assert choose_sending_host([], *look(a=())) is None


@rows(("d.example", "MX"), "mx1.d.example")
def test_an_undetermined_mail_host_is_not_replaced(
    unknown: str | tuple[str, str],
) -> None:
    """The web server is not used instead of an undetermined mail host."""
    zone = MemoryZone(HOSTS, failing={unknown: DnsStatus.TIMEOUT})
    assert choose_sending_host([], *look_in(zone, "10 mx1.d.example.")) is None


@rows(
    (
        ["10 mx1.d.example.", "20 mx2.d.example."],
        [],
        [("8.8.4.4", False), ("1.1.1.1", False), ("8.8.8.8", False), ("2606:4700::1", False)],
    ),
    (["10 mx.provider.example."], [], [("8.8.8.8", True), ("192.0.2.7", True)]),
    (["10 mx2.d.example.", "20 in.d.example."], [], [("1.1.1.1", False)]),
    ([], [], [(WEB, False)]),
    (["10 mx.provider.example."], ["5.5.5.5"], [("5.5.5.5", False)]),
)
def test_lists_are_asked_about_public_mail_addresses(
    mx: list[str], given: list[str], expected: list[tuple[str, bool]]
) -> None:
    """At most four addresses are checked, alternating between hosts; shared ones are marked."""
    addresses = [ip_address(text) for text in given]
    targets = MailHosts(*look(*mx)).blocklist_targets(addresses, allow_private=False)
    assert [(target.value, target.is_shared) for target in targets] == expected


def test_private_addresses_are_asked_about_on_request() -> None:
    """In a test zone, the mail hosts may be private."""
    targets = MailHosts(*look("10 in.d.example.")).blocklist_targets([], allow_private=True)
    assert [target.value for target in targets] == ["10.0.0.1"]
