"""Expected records of an inbox domain, and the findings about deviations."""

from ipaddress import ip_address

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.hosts.own_zone import OwnZone, evaluate_own_zone, list_zone_records
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

DOMAIN, HOST = "mail.example", "mx.mail.example"
ADDRESSES = tuple(map(ip_address, ("192.0.2.1", "2001:db8::1")))

GOOD = {
    DOMAIN: {"MX": [f"10 {HOST}."], "TXT": ["other=words", "V=SPF1  -all"]},
    f"_dmarc.{DOMAIN}": {"TXT": ["v=DMARC1; p=reject"]},
    HOST: {"A": ["192.0.2.1"]},
    "1.2.0.192.in-addr.arpa": {"PTR": [f"{HOST}."]},
}


def zone_with(**changes: object) -> OwnZone:
    """Return the expected zone with some changes."""
    expected = {
        "domains": (DOMAIN,),
        "host_name": HOST,
        "addresses": ADDRESSES[:1],
        "is_own": ADDRESSES.__contains__,
    }
    return OwnZone(**{**expected, **changes})  # type: ignore[arg-type]


def judge(zone: MemoryZone, expected: OwnZone | None = None) -> tuple[Finding, ...]:
    """Evaluate the published records."""
    return settle(zone, lambda answers: evaluate_own_zone(expected or zone_with(), answers))


def test_a_good_zone_has_no_finding() -> None:
    """Mail comes to this server, no host may send, and the server's name and address match."""
    assert judge(MemoryZone(GOOD)) == ()


def test_the_lines_to_publish_make_a_good_zone() -> None:
    """The lines printed for a zone editor have no findings when they are published."""
    expected = zone_with(domains=(DOMAIN, "second.example"), addresses=ADDRESSES)
    zone = MemoryZone({})
    lines = list_zone_records(expected)
    for line in lines:
        zone.publish(line.name, line.rdtype, line.value)
    assert [line.rdtype for line in lines].count("PTR") == 2
    assert judge(zone, expected) == ()


@rows(
    (DOMAIN, {"TXT": ["v=spf1 -all"]}, "doctor.mx.absent"),
    (DOMAIN, {"MX": ["10 old.example."], "TXT": ["v=spf1 -all"]}, "doctor.mx.elsewhere"),
    (DOMAIN, {"MX": ["0 ."], "TXT": ["v=spf1 -all"]}, "doctor.mx.elsewhere"),
    (DOMAIN, {"MX": [f"10 {HOST}."]}, "doctor.spf.open"),
    (DOMAIN, {"MX": [f"10 {HOST}."], "TXT": ["v=spf1 mx -all"]}, "doctor.spf.open"),
    (f"_dmarc.{DOMAIN}", {}, "doctor.dmarc.open"),
    (f"_dmarc.{DOMAIN}", {"TXT": ["v=DMARC1; p=none"]}, "doctor.dmarc.open"),
    (HOST, {}, "doctor.host.absent"),
    (HOST, {"A": ["203.0.113.9"]}, "doctor.host.elsewhere"),
)
def test_each_fault_is_found(name: str, records: dict[str, list[str]], found: str) -> None:
    """The fault is found, and the proposed record fixes it."""
    faulty = {**GOOD, name: records}
    finding = next(one for one in judge(MemoryZone(faulty)) if one.id == found)
    record = finding.proposed
    assert record is not None
    others = {kind: texts for kind, texts in records.items() if kind != record.rdtype}
    mended = {**faulty, record.name: {**others, record.rdtype: [record.value]}}
    assert found not in [one.id for one in judge(MemoryZone(mended))]


@rows(
    (DOMAIN, ["doctor.mx", "doctor.spf"]),
    (f"_dmarc.{DOMAIN}", ["doctor.dmarc"]),
    (HOST, ["doctor.host"]),
)
def test_missing_answers_are_not_findings(name: str, found: list[str]) -> None:
    """If name servers do not answer, no record is reported as missing."""
    findings = judge(MemoryZone(GOOD, failing={name: DnsStatus.TIMEOUT}))
    assert set(found) <= {one.id for one in findings}
    assert {one.severity for one in findings} == {Severity.UNDETERMINED}


def test_an_unknown_address_is_not_reported() -> None:
    """Behind a router the daemon does not know its address, so any published one may be its own."""
    assert judge(MemoryZone(GOOD), zone_with(addresses=(), is_own=lambda _: False)) == ()
    (finding,) = judge(MemoryZone({**GOOD, HOST: {}}), zone_with(addresses=()))
    assert (finding.id, finding.proposed) == ("doctor.host.absent", None)
