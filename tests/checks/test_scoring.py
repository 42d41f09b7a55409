"""Reputation scores of whole domains."""

from ipaddress import ip_address
from typing import Any

import pytest

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


@rows(
    ({"spf": ["v=spf1 mx ~all"]}, FactorName.SPF, 15, PASS),
    ({"spf": ["v=spf1 mx ?all"]}, FactorName.SPF, 9, WARN),
    ({"spf": ["v=spf1 mx"]}, FactorName.SPF, 9, WARN),
    ({"spf": ["v=spf1 mx -all", "v=spf1 -all"]}, FactorName.SPF, 3, FAIL),
    ({"spf": ["v=spf1 ipv4:8.8.8.8 -all"]}, FactorName.SPF, 3, FAIL),
    ({"spf": ["v=spf1 " + "mx " * 11 + "-all"]}, FactorName.SPF, 3, FAIL),
    ({"spf": ["v=spf1 a:x1.example a:x2.example a:x3.example -all"]}, FactorName.SPF, 3, FAIL),
    ({"spf": ["v=spf1 mx +all"]}, FactorName.SPF, 0, FAIL),
    ({"spf": []}, FactorName.SPF, 0, FAIL),
    ({"dkim": [f"v=DKIM1; p={RSA_1024}"]}, FactorName.DKIM, 11, WARN),
    ({"dkim": [f"v=DKIM1; t=y; p={RSA_2048}"]}, FactorName.DKIM, 5, WARN),
    ({"dkim": ["v=DKIM1; p="]}, FactorName.DKIM, 5, WARN),
    ({"dkim": []}, FactorName.DKIM, 0, FAIL),
    ({"dmarc": ["v=DMARC1; p=quarantine"]}, FactorName.DMARC, 18, PASS),
    ({"dmarc": ["v=DMARC1; p=reject; t=y"]}, FactorName.DMARC, 14, WARN),
    ({"dmarc": ["v=DMARC1; p=none"]}, FactorName.DMARC, 9, WARN),
    ({"dmarc": ["v=DMARC1; p=none", "v=DMARC1; p=reject"]}, FactorName.DMARC, 3, FAIL),
    ({"dmarc": ["v=dmarc1; p=none"]}, FactorName.DMARC, 3, FAIL),
    ({"mx": [f"10 {MX}.", "20 gone.d.example."]}, FactorName.MX, 6, WARN),
    ({"mx": ["0 .", f"10 {MX}."]}, FactorName.MX, 6, WARN),
    ({"mx": []}, FactorName.MX, 4, WARN),
    ({"mx": ["0 ."]}, FactorName.MX, 5, WARN),
    ({"mx": [], "a": []}, FactorName.MX, 0, FAIL),
    ({"mx_a": []}, FactorName.MX, 0, FAIL),
    ({"mx_a": ["10.0.0.1"]}, FactorName.MX, 0, FAIL),
    ({"listed_bl_spamcop_net": ["127.0.0.2"]}, FactorName.BLACKLISTS, 14, WARN),
    ({"listed_psbl_surriel_com": ["127.0.0.2"]}, FactorName.BLACKLISTS, 17, WARN),
    ({"listed_all_s5h_net": ["127.0.0.2"]}, FactorName.BLACKLISTS, 19, PASS),
    ({"listed_dnsbl-3_uceprotect_net": ["127.0.0.2"]}, FactorName.BLACKLISTS, 20, PASS),
    ({"listed_zen_spamhaus_org": ["127.0.0.3"]}, FactorName.BLACKLISTS, 14, WARN),
    ({"listed_zen_spamhaus_org": ["127.255.255.254"]}, FactorName.BLACKLISTS, 20, PASS),
    ({"ptr": []}, FactorName.REVERSE_DNS, 0, FAIL),
    ({"ptr": ["other.example."]}, FactorName.REVERSE_DNS, 3, WARN),
)
def test_each_fault_costs_what_the_table_says(
    changes: dict[str, list[str]], name: FactorName, impact: int, status: Status
) -> None:
    """Each kind of determined evidence has its points and status."""
    assert factor(score(zone_with(**changes)), name) == (impact, status, True)


@rows(
    (StarttlsProbe(MX, ProbeOutcome.ENCRYPTED, "TLSv1.2", False, True), 6, WARN, True),
    (StarttlsProbe(MX, ProbeOutcome.ENCRYPTED, "TLSv1.1", True, True), 3, WARN, True),
    (StarttlsProbe(MX, ProbeOutcome.NOT_OFFERED), 0, FAIL, True),
    (StarttlsProbe(MX, ProbeOutcome.HANDSHAKE_FAILED), 0, FAIL, True),
    (StarttlsProbe(MX, ProbeOutcome.UNREACHABLE), 4, WARN, False),
)
def test_starttls_points(
    outcome: StarttlsProbe, impact: int, status: Status, is_determined: bool
) -> None:
    """Encryption counts by version and certificate; an unreachable host is undetermined."""
    result = score(zone_with(), probes=(outcome,))
    assert factor(result, FactorName.STARTTLS) == (impact, status, is_determined)


@rows(
    ("2025-11-21T00:00:00Z", 5, PASS, True),
    ("2026-08-01T00:00:00Z", 4, PASS, True),
    ("2026-10-01T00:00:00Z", 2, WARN, True),
    ("2026-11-10T00:00:00Z", 1, WARN, True),
    ("2026-11-20T00:00:00Z", 0, FAIL, True),
    (None, 2, WARN, False),
)
def test_age_points(
    registered: str | None, impact: int, status: Status, is_determined: bool
) -> None:
    """Age counts in steps; a missing date does not mean a young domain."""
    result = score(zone_with(), registered=registered)
    assert factor(result, FactorName.DOMAIN_AGE) == (impact, status, is_determined)


@pytest.mark.parametrize(
    ("silent", "name", "impact"),
    [
        ((D, "TXT"), FactorName.SPF, 7),
        (f"_dmarc.{D}", FactorName.DMARC, 10),
        ((D, "MX"), FactorName.MX, 5),
        (REVERSE, FactorName.REVERSE_DNS, 3),
    ],
)
@pytest.mark.parametrize("status", [DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED])
def test_undetermined_factors_have_half_the_points(
    silent: str | tuple[str, str], name: FactorName, impact: int, status: DnsStatus
) -> None:
    """Any kind of outage is a warning with half of the points."""
    result = score(zone_with(failing={silent: status}))
    assert factor(result, name) == (impact, WARN, False)
    one = next(one for one in result.factors if one.name is name)
    assert one.detail.startswith("Could not be determined: ")
    assert name in result.undetermined


def test_a_hidden_key_is_undetermined_with_eight_points() -> None:
    """A name exists below ``_domainkey``, so the key is not reported as missing."""
    zone = zone_with(dkim=[])
    zone.publish(f"unguessable._domainkey.{D}", "TXT", f"v=DKIM1; p={RSA_2048}")
    assert factor(score(zone), FactorName.DKIM) == (8, WARN, False)


def test_proven_faults_count_though_other_answers_are_missing() -> None:
    """An include without an answer does not hide that every address passes."""
    text = "v=spf1 include:silent.example +all"
    zone = zone_with(spf=[text], failing={"silent.example": DnsStatus.TIMEOUT})
    assert factor(score(zone), FactorName.SPF) == (0, FAIL, True)


def test_silence_below_an_include_leaves_spf_undetermined() -> None:
    """A record that cannot be read completely is neither good nor broken."""
    text = "v=spf1 include:silent.example -all"
    zone = zone_with(spf=[text], failing={"silent.example": DnsStatus.TIMEOUT})
    assert factor(score(zone), FactorName.SPF) == (7, WARN, False)


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


def test_a_listing_of_a_shared_address_costs_little() -> None:
    """The address of a mail provider is a weak sign about one of its customers."""
    zone = zone_with(listed_zen_spamhaus_org=["127.0.0.2"])
    assert factor(score(zone, is_shared=True), FactorName.BLACKLISTS) == (17, WARN, True)


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


@rows(
    ({"spf": ["v=spf1 a -all"], "mx": ["0 ."]}, (5, WARN, True)),
    ({"spf": ["v=spf1 -all"]}, (10, PASS, True)),
    (
        {"spf": ["v=spf1 -all"], "mx": ["0 ."], "dmarc": ["v=DMARC1; p=reject; t=y"]},
        (5, WARN, True),
    ),
    ({"spf": ["v=spf1 -all"], "mx": ["0 ."], "dmarc": ["v=DMARC1; p=none"]}, (5, WARN, True)),
)
def test_a_partly_parked_domain_is_not_perfect(
    changes: dict[str, list[str]], mx: tuple[int, Status, bool]
) -> None:
    """A domain without DKIM keys needs all three declarations."""
    result = score(zone_with(dkim=[], **changes))
    assert factor(result, FactorName.DKIM) == (0, FAIL, True)
    assert factor(result, FactorName.MX) == mx


def test_a_domain_that_receives_nothing_needs_no_encryption() -> None:
    """A domain without incoming mail needs no encryption."""
    result = score(zone_with(mx=["0 ."]), probes=())
    assert factor(result, FactorName.STARTTLS) == (8, PASS, True)


def test_a_silent_second_mail_host_is_no_flaw() -> None:
    """One working host counts; another host without an answer does not."""
    zone = zone_with(
        mx=[f"10 {MX}.", "20 silent.example."], failing={"silent.example": DnsStatus.TIMEOUT}
    )
    assert factor(score(zone), FactorName.MX) == (10, PASS, True)


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
