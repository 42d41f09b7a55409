"""Tests for the MX records of a domain."""

from mailcheck.checks.dns_answers import DnsStatus, Presence
from mailcheck.checks.findings import RecordToPublish, Severity
from mailcheck.checks.hosts.mx import MAX_HOSTS, HostProblem, MxVerdict, evaluate_mx
from tests.checks.verdicts import ids
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

GOOD = {
    "good.example": {"MX": ["20 mx2.good.example.", "10 mx1.good.example."]},
    "mx1.good.example": {"A": ["8.8.4.4", "8.8.8.8"], "AAAA": ["2001:4860::1"]},
    "mx2.good.example": {"A": ["9.9.9.9"]},
}


def judge(zone: MemoryZone, domain: str, *, allow_private: bool = False) -> MxVerdict:
    """Evaluate a domain in a zone."""
    return settle(zone, lambda answers: evaluate_mx(domain, answers, allow_private=allow_private))


def test_hosts_come_best_first_with_their_addresses() -> None:
    """Records are in order of preference, and IPv4 comes before IPv6."""
    verdict = judge(MemoryZone(GOOD), "good.example")
    shown = [
        (h.preference, h.exchange, [str(address) for address in h.addresses]) for h in verdict.hosts
    ]
    assert shown == [
        (10, "mx1.good.example", ["8.8.4.4", "8.8.8.8", "2001:4860::1"]),
        (20, "mx2.good.example", ["9.9.9.9"]),
    ]
    assert (verdict.presence, verdict.findings) == (Presence.FOUND, ())
    assert verdict.best is verdict.hosts[0]


def test_hosts_of_one_preference_come_by_name() -> None:
    """The order does not depend on the order in DNS."""
    zone = MemoryZone({"e.example": {"MX": ["10 b.e.example.", "10 a.e.example."]}})
    assert [h.exchange for h in judge(zone, "e.example").hosts] == ["a.e.example", "b.e.example"]


BROKEN_HOSTS = GOOD | {
    "dead.example": {"MX": ["10 gone.dead.example."]},
    "private.example": {"MX": ["10 in.private.example."]},
    "in.private.example": {"A": ["10.0.0.25"]},
    "mixed.example": {"MX": ["10 mx.mixed.example."]},
    "mx.mixed.example": {"A": ["10.0.0.25", "8.8.8.8"]},
    "literal.example": {"MX": ["10 192.0.2.7."]},
    "alias.example": {"MX": ["10 mail.alias.example."]},
    "mail.alias.example": {"CNAME": ["mx1.good.example."]},
    "null.example": {"MX": ["0 ."]},
    "both.example": {"MX": ["0 .", "10 mx1.good.example."]},
    "web.example": {"A": ["8.8.8.8"]},
    "empty.example": {"TXT": ["hello"]},
}


@rows(
    ("dead", HostProblem.NO_ADDRESS, "mx.dead-host", Severity.ERROR, False),
    ("private", HostProblem.NOT_PUBLIC, "mx.not-public", Severity.ERROR, False),
    ("mixed", HostProblem.PARTLY_PUBLIC, "mx.partly-public", Severity.WARNING, True),
    ("literal", HostProblem.ADDRESS_LITERAL, "mx.address-literal", Severity.ERROR, False),
    ("alias", HostProblem.ALIAS, "mx.alias", Severity.WARNING, True),
)
def test_what_is_wrong_with_a_host_is_named(
    domain: str, problem: HostProblem, finding: str, severity: Severity, is_usable: bool
) -> None:
    """Each kind of broken host has its own finding, and only some of them stop mail."""
    verdict = judge(MemoryZone(BROKEN_HOSTS), f"{domain}.example")
    (host,) = verdict.hosts
    assert (host.problem, host.is_usable) == (problem, is_usable)
    assert [(f.id, f.severity) for f in verdict.findings] == [(finding, severity)]


FOUND, ABSENT = Presence.FOUND, Presence.ABSENT


@rows(
    # "0 ." declares that the domain receives no mail (RFC 7505), and contradicts other records.
    ("null", FOUND, "mx.null", None),
    ("both", FOUND, "mx.null-among-others", "10 mx1.good.example."),
    # A domain with an address and no MX has an implicit MX (RFC 5321 5.1).
    ("web", ABSENT, "mx.implicit", "10 web.example."),
    ("empty", ABSENT, "mx.absent", "10 mail.empty.example."),
    ("nowhere", ABSENT, "mx.no-such-domain", None),
    ("alias", FOUND, "mx.alias", "10 mx1.good.example."),
)
def test_where_mail_goes_is_said_and_mended(
    name: str, presence: Presence, finding_id: str, value: str | None
) -> None:
    """Each set-up has its finding, and the record to publish if one is clear."""
    domain = f"{name}.example"
    verdict = judge(MemoryZone(BROKEN_HOSTS), domain)
    (finding,) = verdict.findings
    assert (verdict.presence, finding.id) == (presence, finding_id)
    assert finding.proposed == (value and RecordToPublish(domain, "MX", value))
    assert verdict.is_implicit_mx is (finding_id == "mx.implicit")
    assert verdict.is_null_mx is (finding_id == "mx.null") is (finding.severity is Severity.NOTE)
    assert not (verdict.is_null_mx and verdict.hosts)


def test_a_broken_host_beside_a_good_one_is_a_warning() -> None:
    """The other host still receives mail, and is then the best one."""
    zone = MemoryZone(
        GOOD | {"half.example": {"MX": ["5 gone.half.example.", "10 mx1.good.example."]}}
    )
    verdict = judge(zone, "half.example")
    assert [(f.id, f.severity) for f in verdict.findings] == [("mx.dead-host", Severity.WARNING)]
    assert verdict.best is verdict.hosts[1]


def test_private_addresses_are_fine_on_request() -> None:
    """The operator of a test zone may allow private addresses."""
    verdict = judge(MemoryZone(BROKEN_HOSTS), "private.example", allow_private=True)
    assert verdict.findings == ()


@rows(DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED)
def test_no_answer_is_never_no_mx(status: DnsStatus) -> None:
    """Any DNS failure makes the result undetermined."""
    verdict = judge(MemoryZone(GOOD, failing={"good.example": status}), "good.example")
    assert verdict.presence is Presence.UNDETERMINED
    assert ids(verdict) == ["mx.undetermined"]
    assert not verdict.is_implicit_mx


def test_a_host_without_an_answer_is_not_dead() -> None:
    """A mail host without an answer is undetermined."""
    zone = MemoryZone(GOOD, failing={"mx1.good.example": DnsStatus.TIMEOUT})
    verdict = judge(zone, "good.example")
    assert verdict.hosts[0].problem is HostProblem.UNDETERMINED
    assert [(f.id, f.severity) for f in verdict.findings] == [
        ("mx.undetermined", Severity.UNDETERMINED)
    ]


def test_one_family_of_addresses_is_enough() -> None:
    """A host with an IPv4 address is usable even if its AAAA query failed."""
    zone = MemoryZone(GOOD, failing={("mx1.good.example", "AAAA"): DnsStatus.TIMEOUT})
    assert judge(zone, "good.example").hosts[0].problem is None


def test_a_domain_with_hundreds_of_hosts_does_not_make_hundreds_of_questions() -> None:
    """Only the first hosts are looked up; the others are undetermined."""
    records = [f"10 mx{number:03d}.many.example." for number in range(300)]
    zone = MemoryZone({"many.example": {"MX": records}})
    verdict = judge(zone, "many.example")
    assert len(verdict.hosts) == 300
    assert len(zone.asked) == 3 + 2 * MAX_HOSTS
    assert "mx.too-many" in ids(verdict)
    assert verdict.hosts[-1].problem is HostProblem.UNDETERMINED


def test_everything_is_asked_in_two_rounds() -> None:
    """The first round queries MX and own addresses, the second one all hosts."""
    zone = MemoryZone(GOOD)
    judge(zone, "good.example")
    assert zone.asked_pairs == [
        ("good.example", "MX"),
        ("good.example", "A"),
        ("good.example", "AAAA"),
        ("mx1.good.example", "A"),
        ("mx1.good.example", "AAAA"),
        ("mx2.good.example", "A"),
        ("mx2.good.example", "AAAA"),
    ]
