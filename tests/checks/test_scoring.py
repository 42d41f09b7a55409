"""Reputation scores of whole domains."""

from ipaddress import ip_address
from typing import Any

from mailcheck.checks.dkim.evaluate import choose_selectors, evaluate_dkim
from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.dns_answers import Answers, DnsStatus
from mailcheck.checks.dnsbl.catalogue import packaged_catalogue_text, parse_catalogue
from mailcheck.checks.dnsbl.listings import (
    evaluate_listing,
    query_name,
    target_address,
    target_domain,
)
from mailcheck.checks.hosts.mx import evaluate_mx
from mailcheck.checks.hosts.registration import read_registration, undetermined_registration
from mailcheck.checks.hosts.reverse_dns import evaluate_reverse_dns
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe, evaluate_starttls
from mailcheck.checks.scoring.evidence import Evidence
from mailcheck.checks.scoring.outcomes import FactorName, Status
from mailcheck.checks.scoring.score import Score, compute_score
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.core.instants import parse_instant
from tests.fakes.dkim_keys import RSA_1024, RSA_2048
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

NOW = parse_instant("2026-11-21T12:00:00Z")
CATALOGUE = parse_catalogue(packaged_catalogue_text())
D = "d.example"
MX = "mx.d.example"
HOST = ip_address("8.8.8.8")
REVERSE = "8.8.8.8.in-addr.arpa"

PERFECT: dict[str, dict[str, list[str]]] = {
    D: {"MX": [f"10 {MX}."], "TXT": ["v=spf1 mx -all"], "A": ["9.9.9.9"]},
    MX: {"A": ["8.8.8.8"]},
    f"_dmarc.{D}": {"TXT": [f"v=DMARC1; p=reject; rua=mailto:d@{D}"]},
    f"s1._domainkey.{D}": {"TXT": [f"v=DKIM1; p={RSA_2048}"]},
    REVERSE: {"PTR": [f"{MX}."]},
}
GOOD_PROBE = StarttlsProbe(MX, ProbeOutcome.ENCRYPTED, "TLSv1.3", True, True)


def zone_with(**changes: Any) -> MemoryZone:
    """Return the perfect domain's zone with other records: ``spf=...``, ``dmarc=...``, ..."""
    zone = MemoryZone(PERFECT, failing=changes.pop("failing", None))
    places = {
        "spf": (D, "TXT"),
        "mx": (D, "MX"),
        "a": (D, "A"),
        "mx_a": (MX, "A"),
        "dmarc": (f"_dmarc.{D}", "TXT"),
        "dkim": (f"s1._domainkey.{D}", "TXT"),
        "ptr": (REVERSE, "PTR"),
        "hidden": (f"unguessable._domainkey.{D}", "TXT"),
    }
    for name, texts in changes.items():
        if name.startswith("listed_"):
            zone_name = name.removeprefix("listed_").replace("_", ".")
            blocklist = next(b for b in CATALOGUE.blocklists if b.zone == zone_name)
            zone.publish(query_name(blocklist, target_address(HOST)), "A", *texts)
        else:
            zone.publish(*places[name], *texts)
    return zone


def score(
    zone: MemoryZone,
    *,
    probes: tuple[StarttlsProbe, ...] = (GOOD_PROBE,),
    registered: str | None = "2001-01-01T00:00:00Z",
    is_shared: bool = False,
) -> Score:
    """Return the score of d.example in a zone."""
    events = [{"eventAction": "registration", "eventDate": registered}]
    registration = undetermined_registration(D, "the registry did not answer")
    if registered is not None:
        registration = read_registration(D, {"events": events}, NOW)

    def evaluate(answers: Answers) -> Evidence:
        mx = evaluate_mx(D, answers)
        best = mx.best
        own = mx.implicit_host
        addresses = best.addresses if best is not None else own.addresses if own else ()
        targets = [target_address(address, is_shared=is_shared) for address in addresses]
        targets.append(target_domain(D))
        return Evidence(
            spf=evaluate_spf(D, answers),
            dkim=evaluate_dkim(D, choose_selectors((), ()), answers),
            dmarc=evaluate_dmarc(D, answers),
            mx=mx,
            listings=[evaluate_listing(b, targets, answers) for b in CATALOGUE.blocklists],
            starttls=evaluate_starttls(mx, probes),
            registration=registration,
            reverse_dns=evaluate_reverse_dns(addresses[0], answers, host_name=MX)
            if addresses
            else None,
        )

    result = compute_score(settle(zone, evaluate))
    assert sum(factor.impact for factor in result.factors) == result.score
    return result


def factor(result: Score, name: FactorName) -> tuple[int, Status, bool]:
    """Return impact, status and whether the factor is determined."""
    one = next(factor for factor in result.factors if factor.name is name)
    return one.impact, one.status, one.is_determined


def test_a_perfect_domain_has_all_points() -> None:
    """A perfect domain has all points, no fixes and no gain."""
    result = score(zone_with())
    assert (result.score, result.grade, result.undetermined) == (100, "A+", ())
    assert all(f.impact == f.maximum and f.gain == 0 and f.fix is None for f in result.factors)
    assert [f.name.value for f in result.factors] == [
        "SPF",
        "DKIM",
        "DMARC",
        "MX Records",
        "Blacklists",
        "STARTTLS",
        "Domain Age",
        "Reverse DNS",
    ]


NO_KEY: list[str] = []


@rows(
    ({"dmarc": [f"v=DMARC1; p=none; rua=mailto:d@{D}"]}, 92, "A+"),
    ({"dmarc": []}, 80, "A"),
    ({"listed_zen_spamhaus_org": ["127.0.0.2"]}, 60, "C"),
    ({"spf": [], "dkim": NO_KEY, "dmarc": []}, 50, "D"),
    ({"dmarc": [f"v=DMARC1; p=reject; pct=5; rua=mailto:d@{D}"]}, 100, "A+"),
)
def test_anchors(changes: dict[str, list[str]], points: int, grade: str) -> None:
    """Typical domains have these scores."""
    result = score(zone_with(**changes))
    assert (result.score, result.grade) == (points, grade)


PASS, WARN, FAIL = Status.PASS, Status.WARN, Status.FAIL
SPF, DKIM, DMARC, MX_RECORDS = FactorName.SPF, FactorName.DKIM, FactorName.DMARC, FactorName.MX
BLACKLISTS, STARTTLS = FactorName.BLACKLISTS, FactorName.STARTTLS
DOMAIN_AGE, REVERSE_DNS = FactorName.DOMAIN_AGE, FactorName.REVERSE_DNS
SILENT_NAME = {"failing": {"silent.example": DnsStatus.TIMEOUT}}
BARE: dict[str, Any] = {"dkim": []}
PARKED = {**BARE, "spf": ["v=spf1 -all"], "mx": ["0 ."]}
OPTIONS = ("probes", "registered", "is_shared")


SILENT = ((D, "TXT"), f"_dmarc.{D}", (D, "MX"), REVERSE)
NO_ANSWER = (DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED)


def probe(outcome: ProbeOutcome, *facts: Any) -> dict[str, Any]:
    """Return the probe of the only mail host."""
    return {"probes": (StarttlsProbe(MX, outcome, *facts),)}


@rows(
    ({"spf": ["v=spf1 mx ~all"]}, SPF, (15, PASS, True)),
    ({"spf": ["v=spf1 mx ?all"]}, SPF, (9, WARN, True)),
    ({"spf": ["v=spf1 mx"]}, SPF, (9, WARN, True)),
    ({"spf": ["v=spf1 mx -all", "v=spf1 -all"]}, SPF, (3, FAIL, True)),
    ({"spf": ["v=spf1 ipv4:8.8.8.8 -all"]}, SPF, (3, FAIL, True)),
    ({"spf": ["v=spf1 " + "mx " * 11 + "-all"]}, SPF, (3, FAIL, True)),
    ({"spf": ["v=spf1 a:x1.example a:x2.example a:x3.example -all"]}, SPF, (3, FAIL, True)),
    ({"spf": ["v=spf1 mx +all"]}, SPF, (0, FAIL, True)),
    ({"spf": []}, SPF, (0, FAIL, True)),
    ({"dkim": [f"v=DKIM1; p={RSA_1024}"]}, DKIM, (11, WARN, True)),
    ({"dkim": [f"v=DKIM1; t=y; p={RSA_2048}"]}, DKIM, (5, WARN, True)),
    ({"dkim": ["v=DKIM1; p="]}, DKIM, (5, WARN, True)),
    ({"dkim": []}, DKIM, (0, FAIL, True)),
    ({"dmarc": ["v=DMARC1; p=quarantine"]}, DMARC, (18, PASS, True)),
    ({"dmarc": ["v=DMARC1; p=reject; t=y"]}, DMARC, (14, WARN, True)),
    ({"dmarc": ["v=DMARC1; p=none"]}, DMARC, (9, WARN, True)),
    ({"dmarc": ["v=DMARC1; p=none", "v=DMARC1; p=reject"]}, DMARC, (3, FAIL, True)),
    ({"dmarc": ["v=dmarc1; p=none"]}, DMARC, (3, FAIL, True)),
    ({"mx": [f"10 {MX}.", "20 gone.d.example."]}, MX_RECORDS, (6, WARN, True)),
    ({"mx": ["0 .", f"10 {MX}."]}, MX_RECORDS, (6, WARN, True)),
    ({"mx": []}, MX_RECORDS, (4, WARN, True)),
    ({"mx": ["0 ."]}, MX_RECORDS, (5, WARN, True)),
    ({"mx": [], "a": []}, MX_RECORDS, (0, FAIL, True)),
    ({"mx_a": []}, MX_RECORDS, (0, FAIL, True)),
    ({"mx_a": ["10.0.0.1"]}, MX_RECORDS, (0, FAIL, True)),
    ({"listed_bl_spamcop_net": ["127.0.0.2"]}, BLACKLISTS, (14, WARN, True)),
    ({"listed_psbl_surriel_com": ["127.0.0.2"]}, BLACKLISTS, (17, WARN, True)),
    ({"listed_all_s5h_net": ["127.0.0.2"]}, BLACKLISTS, (19, PASS, True)),
    ({"listed_dnsbl-3_uceprotect_net": ["127.0.0.2"]}, BLACKLISTS, (20, PASS, True)),
    ({"listed_zen_spamhaus_org": ["127.0.0.3"]}, BLACKLISTS, (14, WARN, True)),
    ({"listed_zen_spamhaus_org": ["127.255.255.254"]}, BLACKLISTS, (20, PASS, True)),
    ({"ptr": []}, REVERSE_DNS, (0, FAIL, True)),
    ({"ptr": ["other.example."]}, REVERSE_DNS, (3, WARN, True)),
    # Encryption counts by version and certificate; an unreachable host is undetermined.
    (probe(ProbeOutcome.ENCRYPTED, "TLSv1.2", False, True), STARTTLS, (6, WARN, True)),
    (probe(ProbeOutcome.ENCRYPTED, "TLSv1.1", True, True), STARTTLS, (3, WARN, True)),
    (probe(ProbeOutcome.NOT_OFFERED), STARTTLS, (0, FAIL, True)),
    (probe(ProbeOutcome.HANDSHAKE_FAILED), STARTTLS, (0, FAIL, True)),
    (probe(ProbeOutcome.UNREACHABLE), STARTTLS, (4, WARN, False)),
    # A domain without incoming mail needs no encryption.
    ({"mx": ["0 ."], "probes": ()}, STARTTLS, (8, PASS, True)),
    # Age counts in steps; a missing date does not mean a young domain.
    ({"registered": "2025-11-21T00:00:00Z"}, DOMAIN_AGE, (5, PASS, True)),
    ({"registered": "2026-08-01T00:00:00Z"}, DOMAIN_AGE, (4, PASS, True)),
    ({"registered": "2026-10-01T00:00:00Z"}, DOMAIN_AGE, (2, WARN, True)),
    ({"registered": "2026-11-10T00:00:00Z"}, DOMAIN_AGE, (1, WARN, True)),
    ({"registered": "2026-11-20T00:00:00Z"}, DOMAIN_AGE, (0, FAIL, True)),
    ({"registered": None}, DOMAIN_AGE, (2, WARN, False)),
    # An outage is a warning with half of the points.
    *(({"failing": {SILENT[0]: status}}, SPF, (7, WARN, False)) for status in NO_ANSWER),
    *(({"failing": {SILENT[1]: status}}, DMARC, (10, WARN, False)) for status in NO_ANSWER),
    *(({"failing": {SILENT[2]: status}}, MX_RECORDS, (5, WARN, False)) for status in NO_ANSWER),
    *(({"failing": {REVERSE: status}}, REVERSE_DNS, (3, WARN, False)) for status in NO_ANSWER),
    # Another name exists below ``_domainkey``, so the key is not reported as missing.
    ({"dkim": [], "hidden": [f"v=DKIM1; p={RSA_2048}"]}, DKIM, (8, WARN, False)),
    # An include without an answer does not hide that every address passes.
    ({"spf": ["v=spf1 include:silent.example +all"], **SILENT_NAME}, SPF, (0, FAIL, True)),
    ({"spf": ["v=spf1 include:silent.example -all"], **SILENT_NAME}, SPF, (7, WARN, False)),
    # One working host counts; another host without an answer does not.
    ({"mx": [f"10 {MX}.", "20 silent.example."], **SILENT_NAME}, MX_RECORDS, (10, PASS, True)),
    # The address of a mail provider is a weak sign about one of its customers.
    (
        {"listed_zen_spamhaus_org": ["127.0.0.2"], "is_shared": True},
        BLACKLISTS,
        (17, WARN, True),
    ),
    # A domain without keys is perfect only with all three declarations.
    ({**BARE, "spf": ["v=spf1 a -all"], "mx": ["0 ."]}, MX_RECORDS, (5, WARN, True)),
    ({**BARE, "spf": ["v=spf1 -all"]}, MX_RECORDS, (10, PASS, True)),
    ({**PARKED, "dmarc": ["v=DMARC1; p=reject; t=y"]}, MX_RECORDS, (5, WARN, True)),
    ({**PARKED, "dmarc": ["v=DMARC1; p=none"]}, MX_RECORDS, (5, WARN, True)),
    ({**PARKED, "dmarc": ["v=DMARC1; p=none"]}, DKIM, (0, FAIL, True)),
    ({**BARE, "spf": ["v=spf1 -all"]}, DKIM, (0, FAIL, True)),
)
def test_each_fault_costs_what_the_table_says(
    changes: dict[str, Any], name: FactorName, outcome: tuple[int, Status, bool]
) -> None:
    """Each kind of evidence has its points and status, and says whether it is determined."""
    options = {one: changes[one] for one in OPTIONS if one in changes}
    zone = zone_with(**{one: value for one, value in changes.items() if one not in OPTIONS})
    result = score(zone, **options)
    assert factor(result, name) == outcome
    detail = next(one.detail for one in result.factors if one.name is name)
    assert (name in result.undetermined) is not outcome[2]
    assert "failing" not in changes or outcome[2] or detail.startswith("Could not be determined: ")


@rows(("2010-01-01", "6,168 days ago"), ("2026-11-20", "1 day ago"))
def test_the_age_of_a_domain_reads_like_other_numbers(day: str, ago: str) -> None:
    """The age of a domain has a separator of thousands, and one day is singular."""
    result = score(zone_with(), registered=f"{day}T00:00:00Z")
    details = {one.name: one.detail for one in result.factors}
    assert details[DOMAIN_AGE] == f"Registered on {day}, {ago}."


def test_a_dead_resolver_gives_no_grade() -> None:
    """With more than 40 undetermined points there is no grade."""

    class Dead(MemoryZone):
        def lookup(self, question: Any) -> Any:
            self.failing[question.name] = DnsStatus.TIMEOUT
            return super().lookup(question)

    result = score(Dead(PERFECT), probes=(), registered=None)
    assert len(result.undetermined) == len(FactorName)
    assert not result.is_gradable
    assert score(zone_with(), registered=None).is_gradable


def test_a_severe_listing_never_takes_the_score_below_zero() -> None:
    """The impact of a listing is limited by the points that can be lost."""
    zone = MemoryZone({D: {"A": ["8.8.8.8"]}})
    zen = CATALOGUE.address_profile[0]
    zone.publish(query_name(zen, target_address(HOST)), "A", "127.0.0.2")
    result = score(zone, probes=(), registered="2026-11-20T00:00:00Z")
    impact, status, _ = factor(result, FactorName.BLACKLISTS)
    others = sum(f.impact for f in result.factors if f.name is not FactorName.BLACKLISTS)
    assert (result.score, impact, status) == (0, -others, FAIL)
    assert 0 < others < 20


def test_gain_is_what_fixing_adds() -> None:
    """Removing a severe listing restores both the penalty and the points."""
    result = score(zone_with(listed_zen_spamhaus_org=["127.0.0.2"], spf=["v=spf1 mx"]))
    gains = {one.name: one.gain for one in result.factors}
    assert gains[FactorName.BLACKLISTS] == 40
    assert gains[FactorName.SPF] == 6
    assert gains[FactorName.DMARC] == 0


def test_a_parked_domain_is_perfect() -> None:
    """``v=spf1 -all``, null MX and p=reject are perfect for a domain without mail."""
    zone = zone_with(spf=["v=spf1 -all"], mx=["0 ."], dkim=[], ptr=[], mx_a=[], a=[])
    result = score(zone, probes=())
    assert result.score == 100
    assert all(one.status is PASS for one in result.factors)


def test_each_factor_names_its_fix_with_the_exact_record() -> None:
    """Publishing the record of each fix raises the score, in the end to all points."""
    result = score(zone_with(spf=["v=spf1 mx"], dmarc=["v=DMARC1; p=none; rua=mailto:d@d.example"]))
    fixes = {one.name: one.fix for one in result.factors}
    for name, key in ((FactorName.SPF, "spf"), (FactorName.DMARC, "dmarc")):
        fix = fixes[name]
        assert fix is not None
        assert fix.proposed is not None
        fixed = score(zone_with(**{key: [fix.proposed.value]}))
        assert next(one for one in fixed.factors if one.name is name).gain == 0
