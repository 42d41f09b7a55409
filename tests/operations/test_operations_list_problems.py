"""The problems of a domain: each once, the largest gain first."""

from typing import Any

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import PROBLEMS
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from mailcheck.operations.domains.list_problems import Problem, list_problems, total_gain
from tests.house import run
from tests.table import rows
from tests.web.checking import checking_house, zone_with

POOR: dict[str, dict[str, list[str]]] = {
    "poor.example": {"MX": ["10 mx1.good.example."], "TXT": ["v=spf1 include:a.poor.example ?all"]},
    "a.poor.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]},
    "_dmarc.poor.example": {"TXT": ["v=DMARC1; p=none; x=y"]},
    "_mta-sts.poor.example": {"TXT": ["v=STSv1; nonsense"]},
    "listed.example": {"MX": ["10 mx1.good.example."]},
    "listed.example.dbl.spamhaus.org": {"A": ["127.0.1.2"], "TXT": ["spam"]},
    "listed.example.multi.uribl.com": {"A": ["127.0.0.2"], "TXT": ["spam"]},
}


def problems_of(domain: str, **more: Any) -> tuple[tuple[Problem, ...], int]:
    """Check a domain; return its problems and its score."""
    house = checking_house(zone_with(POOR, **more))
    checks = house.assembly.checks
    reputation = run(checks.reputation.compute(ReputationQuery(domain)))
    report = run(checks.domain.describe(domain))
    house.close()
    return list_problems(reputation, report), reputation.score.score


@rows("good.example", "poor.example", "listed.example")
def test_the_gains_add_up(domain: str) -> None:
    """Each problem occurs once, the gains fall, and their sum leads to at most 100 points."""
    problems, score = problems_of(domain)
    gains = [one.gain for one in problems]
    assert gains == sorted(gains, reverse=True)
    assert len({one.key for one in problems}) == len(problems)
    assert score + total_gain(problems) <= 100
    assert bool(problems) == (domain != "good.example")
    assert all(one.gain or (one.finding and one.finding.severity in PROBLEMS) for one in problems)


def test_problems_without_points_are_included() -> None:
    """Problems of records that take no points off follow those that do."""
    problems, _ = problems_of("poor.example")
    assert [one.topic for one in problems][-1] in ("mtaSts", "dmarc")
    assert {"mtaSts"} <= {one.topic for one in problems if one.gain == 0}


def test_each_listing_is_a_problem() -> None:
    """The worst listing has the points of the factor; the others are listed without points."""
    problems, _ = problems_of("listed.example")
    listings = [one.gain > 0 for one in problems if one.topic == "Blacklists"]
    assert listings == [True, False]


def test_what_is_undetermined_is_no_problem() -> None:
    """A factor that could not be determined has no problem."""
    problems, _ = problems_of("good.example", failing={"_dmarc.good.example": DnsStatus.TIMEOUT})
    assert problems == ()
