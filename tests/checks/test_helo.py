"""Tests for the HELO name."""

from ipaddress import ip_address

from mailcheck.checks.dns_answers import DnsStatus, Presence
from mailcheck.checks.findings import RecordToPublish, Severity
from mailcheck.checks.hosts.helo import HeloForm, HeloVerdict, evaluate_helo
from tests.checks.verdicts import ids
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

CLIENT = "192.0.2.1"
HOSTS = {
    "mx.d.example": {"A": [CLIENT], "AAAA": ["2001:db8::1"]},
    "other.d.example": {"A": ["192.0.2.99"]},
    "alias.d.example": {"CNAME": ["mx.d.example."]},
    "text.d.example": {"TXT": ["no address"]},
    "xn--mnchen-3ya.example": {"A": [CLIENT]},
}


def judge(
    helo_name: str,
    client: str | None = CLIENT,
    failing: dict[str | tuple[str, str], DnsStatus] | None = None,
) -> HeloVerdict:
    """Evaluate a HELO name."""
    zone = MemoryZone(HOSTS, failing=failing)
    client_ip = None if client is None else ip_address(client)
    return settle(zone, lambda answers: evaluate_helo(helo_name, client_ip, answers))


@rows(
    ("mx.d.example", CLIENT),
    ("MX.D.Example.", CLIENT),
    ("mx.d.example", "2001:db8::1"),
    ("alias.d.example", CLIENT),
    ("münchen.example", CLIENT),
)
def test_a_name_of_the_client_is_right(helo_name: str, client: str) -> None:
    """A full name that resolves to the client has no finding, in any spelling."""
    verdict = judge(helo_name, client)
    assert verdict.is_resolvable is True
    assert verdict.resolves_to_client is True
    assert ids(verdict) == []


@rows(
    ("[192.0.2.1]", HeloForm.LITERAL),
    ("[IPv6:2001:db8::1]", HeloForm.LITERAL),
    ("localhost", HeloForm.SINGLE_LABEL),
    ("192.0.2.1", HeloForm.MALFORMED),
    ("[192.0.2.1", HeloForm.MALFORMED),
    ("two..dots.example", HeloForm.MALFORMED),
    ("a b.example", HeloForm.MALFORMED),
    ("x" * 64 + ".example", HeloForm.MALFORMED),
    ("[2001:7c0:2041:8::19]", HeloForm.MALFORMED),
    ("[fe80::1%eth0]", HeloForm.MALFORMED),
    ("fe80::1%5", HeloForm.MALFORMED),
    ("John's MacBook (2)", HeloForm.MALFORMED),
    ("DESKTOP\\user.example", HeloForm.MALFORMED),
    ("a\\", HeloForm.MALFORMED),
    ("*.d.example", HeloForm.MALFORMED),
    ("user@d.example", HeloForm.MALFORMED),
    ("b\ufffd.d.example", HeloForm.MALFORMED),
    ("Дмитрий-ПК", HeloForm.SINGLE_LABEL),
    ("büro_pc", HeloForm.MALFORMED),
    ("my_pc", HeloForm.SINGLE_LABEL),
    ("gone.d.example", HeloForm.DOMAIN),
    ("text.d.example", HeloForm.DOMAIN),
)
def test_what_does_not_resolve_is_named(helo_name: str, form: HeloForm) -> None:
    """Literals, single words, addresses and names without an address have different findings."""
    verdict = judge(helo_name)
    assert verdict.form is form
    assert verdict.is_resolvable is False
    assert ids(verdict) == ["helo.unresolvable"]


def test_a_literal_may_be_that_of_the_client() -> None:
    """A literal is compared with the client's address without a query."""
    zone = MemoryZone(HOSTS)
    verdict = settle(zone, lambda a: evaluate_helo("[192.0.2.1]", ip_address(CLIENT), a))
    assert verdict.resolves_to_client is True
    assert judge("[192.0.2.7]").resolves_to_client is False
    assert zone.asked == []


def test_the_record_to_publish_is_the_clients_address() -> None:
    """For a name without an address, the client's address is proposed."""
    found = judge("gone.d.example").findings[0].proposed
    assert found == RecordToPublish("gone.d.example", "A", CLIENT)
    found = judge("gone.d.example", "2001:db8::7").findings[0].proposed
    assert found == RecordToPublish("gone.d.example", "AAAA", "2001:db8::7")


def test_a_name_of_another_host_is_only_noted() -> None:
    """A name that resolves to another host gets a note, not a warning."""
    verdict = judge("other.d.example")
    assert verdict.is_resolvable is True
    assert verdict.resolves_to_client is False
    assert [(f.id, f.severity) for f in verdict.findings] == [("helo.other-address", Severity.NOTE)]


@rows(DnsStatus.SERVFAIL, DnsStatus.TIMEOUT, DnsStatus.REFUSED)
def test_no_answer_is_undetermined(status: DnsStatus) -> None:
    """A name without an answer is undetermined."""
    verdict = judge("gone.d.example", failing={"gone.d.example": status})
    assert verdict.presence is Presence.UNDETERMINED
    assert verdict.is_resolvable is None
    assert verdict.resolves_to_client is None
    assert [f.severity for f in verdict.findings] == [Severity.UNDETERMINED]


def test_one_address_family_may_be_enough() -> None:
    """One address family is enough to resolve, but not to report a mismatch."""
    failing: dict[str | tuple[str, str], DnsStatus]
    failing = {("other.d.example", "AAAA"): DnsStatus.TIMEOUT}
    verdict = judge("other.d.example", failing=failing)
    assert verdict.is_resolvable is True
    assert verdict.resolves_to_client is None
    assert ids(verdict) == []


def test_an_unknown_greeting_or_client_is_no_fault() -> None:
    """Without a known HELO name or a usable client address, there is no finding."""
    verdict = judge("")
    assert verdict.form is HeloForm.UNKNOWN
    assert verdict.is_resolvable is None
    assert ids(verdict) == []
    assert judge("other.d.example", None).resolves_to_client is None
    assert ids(judge("other.d.example", None)) == []
