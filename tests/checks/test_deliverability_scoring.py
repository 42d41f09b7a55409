"""Prices of the findings about a mail, and the laws of the score."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.charging import cap
from mailcheck.checks.deliverability.content_filter import FilterProblem, unavailable
from mailcheck.checks.deliverability.score import SPF_AREAS, MailScore, score_mail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dnsbl.listings import (
    BLOCKING_WEIGHT,
    Listing,
    ListingStatus,
    UnknownReason,
    unknown_listing,
)
from mailcheck.checks.finding_row import ERROR_TENTHS, severity_at
from mailcheck.checks.findings import (
    Area,
    ChargedFinding,
    CheckStatus,
    Finding,
    Severity,
)
from mailcheck.checks.findings_table import FINDINGS, make_finding, undetermined
from mailcheck.checks.weights import (
    LISTING_TIERS,
    MAX_LISTINGS,
    MEASURED,
    cost_of_listing,
    cost_of_points,
)
from tests.checks.mail_evidence import (
    LISTS,
    dkim,
    dmarc,
    filtered,
    helo,
    listing,
    perfect,
    reverse_dns,
    signature,
    spf,
)
from tests.table import rows

FAIL, NONE, TEMPERROR = AuthResult.FAIL, AuthResult.NONE, AuthResult.TEMPERROR

RDNS = {
    name: reverse_dns(make_finding(f"rdns.{name}", address="", name="", wanted=""))
    for name in ("absent", "unconfirmed", "generic")
}

NO_NAME = make_finding("helo.unresolvable")


def ids(score: MailScore) -> list[str]:
    """Return the ids of the deductions."""
    return [one.finding.id for one in score.deductions]


def check(score: MailScore, area: Area) -> Any:
    """Return one of the five checks."""
    return next(one for one in score.checks if one.area is area)


def test_a_perfect_mail() -> None:
    """A perfect mail has ten points, and five checks that pass."""
    score = score_mail(perfect())
    assert score.tenths == 100
    assert score.deductions == ()
    assert score.undetermined == ()
    assert [one.area.value for one in score.checks] == [
        "spf",
        "dkim",
        "dmarc",
        "blacklist",
        "spamassassin",
    ]
    assert {one.status for one in score.checks} == {CheckStatus.PASS}


@rows(
    ({"spf": spf(NONE, record=None)}, "spf.result-none"),
    ({"reverse_dns": RDNS["absent"]}, "rdns.absent"),
    ({"helo": helo(NO_NAME)}, "helo.unresolvable"),
    ({"dkim": dkim(signature(AuthResult.POLICY))}, "dkim.invalid"),
    ({"dmarc": dmarc(is_dkim_aligned=False)}, "dkim.unaligned"),
    ({"dmarc": dmarc(AuthResult.PERMERROR)}, "dmarc.no-author"),
    ({"dmarc": dmarc(FAIL, policy=Policy.NONE)}, "dmarc.fails-none"),
    ({"dmarc": dmarc(FAIL, policy=Policy.QUARANTINE)}, "dmarc.fails-enforced"),
    ({"dmarc": dmarc(FAIL, policy=Policy.REJECT)}, "dmarc.fails-enforced"),
    ({"listings": (listing(10),)}, "dnsbl.listed"),
    ({"listings": (listing(8),)}, "dnsbl.listed"),
    ({"listings": (listing(5),)}, "dnsbl.listed"),
    ({"listings": (listing(3),)}, "dnsbl.listed"),
    ({"listings": (listing(1),)}, "dnsbl.listed"),
    ({"content_filter": filtered(5.0)}, "spamassassin.points"),
    ({"content_filter": filtered(1.3)}, "spamassassin.points"),
)
def test_each_single_fault(changes: dict[str, Any], finding_id: str) -> None:
    """Each fault lowers the score by its published deduction, under its own id."""
    score = score_mail(perfect(**changes))
    assert ids(score) == [finding_id]
    (only,) = score.deductions
    row = FINDINGS[finding_id]
    price = only.tenths if finding_id in MEASURED else row.price
    assert price
    assert score.tenths == 100 - price
    assert only.tenths == price
    assert (only.area, only.finding.severity) == (row.area, severity_at(price)) or (
        finding_id == "dnsbl.listed"
    )
    assert only.finding.meaning
    assert only.finding.fix
    assert finding_id.startswith(f"{only.area.value}.") or only.area not in SPF_AREAS
    summary = check(score, Area.SPF if only.area in SPF_AREAS else only.area)
    assert summary.tenths == price
    assert summary.reason == only.finding.meaning
    assert summary.fix == only.finding.fix
    assert summary.status is (CheckStatus.FAIL if price >= ERROR_TENTHS else CheckStatus.WARN)


def test_free_findings() -> None:
    """Generic names, listings without weight and negative points are free."""
    assert score_mail(perfect(reverse_dns=RDNS["generic"])).tenths == 100
    assert score_mail(perfect(listings=(listing(0),))).tenths == 100
    assert score_mail(perfect(content_filter=filtered(-3.0))).tenths == 100


def test_nothing_passes() -> None:
    """If neither SPF nor DKIM passes, the deduction is larger than for either of them."""
    score = score_mail(
        perfect(spf=spf(NONE, record=None), dkim=dkim(), dmarc=dmarc(NONE, is_dkim_aligned=False))
    )
    assert sorted(ids(score)) == [
        "authentication.nothing-passes",
        "dkim.unsigned",
        "dmarc.no-record",
        "spf.result-none",
    ]
    assert score.tenths == 100 - sum(FINDINGS[one].price or 0 for one in ids(score))


@rows(
    {"spf": spf(TEMPERROR), "dkim": dkim()},
    {"spf": spf(NONE), "dkim": dkim(signature(TEMPERROR))},
)
def test_nothing_passes_is_not_charged_while_one_is_unknown(changes: dict[str, Any]) -> None:
    """A check that could not be determined might have passed."""
    assert "authentication.nothing-passes" not in ids(score_mail(perfect(**changes)))


@rows(
    (Area.SPF, {"spf": spf(TEMPERROR)}),
    (
        Area.SPF,
        {"reverse_dns": reverse_dns(undetermined("rdns.undetermined", ["10.4.8.8.in-addr.arpa"]))},
    ),
    (Area.SPF, {"helo": helo(undetermined("helo.undetermined", ["mx.example.com"]))}),
    (Area.DKIM, {"dkim": dkim(signature(TEMPERROR))}),
    (Area.DKIM, {"dkim": dkim(signature(FAIL), signature(TEMPERROR))}),
    (Area.DKIM, {"dmarc": dmarc(is_dkim_aligned=None)}),
    (Area.DMARC, {"dmarc": dmarc(TEMPERROR)}),
    (
        Area.BLACKLIST,
        {"listings": tuple(unknown_listing(one, UnknownReason.NO_ANSWER) for one in LISTS)},
    ),
    (
        Area.BLACKLIST,
        {"listings": tuple(unknown_listing(one, UnknownReason.NOT_PUBLIC) for one in LISTS)},
    ),
    *((Area.SPAMASSASSIN, {"content_filter": unavailable(problem)}) for problem in FilterProblem),
)
def test_undetermined_checks_are_free(area: Area, changes: dict[str, Any]) -> None:
    """A check that could not be determined is a warning, is free, and is named."""
    score = score_mail(perfect(**changes))
    assert score.tenths == 100
    assert [one.area for one in score.undetermined] == [area]
    assert check(score, area).status is CheckStatus.WARN
    assert check(score, area).fix


def test_a_silent_list_leaves_the_others_to_judge() -> None:
    """One list of many without an answer does not make the check undetermined."""
    rows = [Listing(one, ListingStatus.CLEAN) for one in LISTS]
    rows[-1] = unknown_listing(LISTS[-1], UnknownReason.NO_ANSWER)
    summary = check(score_mail(perfect(listings=tuple(rows))), Area.BLACKLIST)
    assert (summary.status, summary.result) == (CheckStatus.PASS, "pass")
    assert "No result from 1." in summary.detail


def test_one_good_signature_is_enough() -> None:
    """Invalid signatures beside a valid one, and a weak one beside a strong one, are free."""
    signatures = (signature(), signature(FAIL), signature(bits=1024))
    assert score_mail(perfect(dkim=dkim(*signatures))).tenths == 100


def test_a_strong_key_of_another_domain_does_not_help() -> None:
    """The key of the aligned signature counts."""
    signatures = (signature(bits=1024), signature(domain="provider.example"))
    assert ids(score_mail(perfect(dkim=dkim(*signatures)))) == ["dkim.weak-key"]


def test_listings_are_capped() -> None:
    """All listings together are limited by the cap; the worst are charged first."""
    score = score_mail(perfect(listings=tuple(listing(weight) for weight in (3, 9, 10, 1))))
    assert score.tenths == 100 - MAX_LISTINGS
    first = cost_of_listing(10)
    assert [one.tenths for one in score.deductions] == [first, MAX_LISTINGS - first]


@given(st.lists(st.integers(0, 10), max_size=40), st.integers(0, 10))
def test_one_more_listing_never_helps(weights: list[int], more: int) -> None:
    """More listings never raise a score, and never cost more than the cap."""
    before = score_mail(perfect(listings=tuple(map(listing, weights)))).tenths
    after = score_mail(perfect(listings=tuple(map(listing, [*weights, more])))).tenths
    assert 50 <= after <= before <= 100


@given(st.floats(-100, 2000), st.floats(0, 100))
def test_more_points_never_help(points: float, more: float) -> None:
    """Points of the content filter cost from zero to four, and more points never cost less."""
    assert 0 <= cost_of_points(points) <= cost_of_points(points + more) <= 40


def test_tiers_fall() -> None:
    """A heavier list never costs less; the first tier is for lists that stop delivery."""
    costs = [cost_of_listing(weight) for weight in range(11)]
    assert costs == sorted(costs)
    assert [tier.weight for tier in LISTING_TIERS] == [BLOCKING_WEIGHT, 5, 3, 1, 0]


ORDERED: dict[str, list[Any]] = {
    "spf": [
        spf(one)
        for one in (
            AuthResult.PASS,
            AuthResult.NEUTRAL,
            AuthResult.SOFTFAIL,
            AuthResult.PERMERROR,
            AuthResult.FAIL,
        )
    ],
    "reverse_dns": [reverse_dns(), RDNS["generic"], RDNS["unconfirmed"], RDNS["absent"]],
    "dkim": [dkim(signature()), dkim(signature(bits=1024)), dkim(), dkim(signature(FAIL))],
    "dmarc": [
        dmarc(),
        dmarc(NONE),
        dmarc(FAIL, policy=Policy.NONE),
        dmarc(FAIL, policy=Policy.REJECT),
    ],
    "content_filter": [filtered(points) for points in (-1.0, 0.4, 2.0, 5.0, 1000.0)],
    "listings": [tuple(map(listing, weights)) for weights in ((), (1,), (3,), (8,), (8, 8))],
    "quality": [
        tuple(
            ChargedFinding(Area.HEADERS, Finding("x", Severity.WARNING, "m", "f"), tenths)
            for tenths in costs
        )
        for costs in ((), (3,), (3, 3), (3, 3, 9))
    ],
}
"""From the best to the worst."""

CHOICES = st.fixed_dictionaries(
    {name: st.integers(0, len(outcomes) - 1) for name, outcomes in ORDERED.items()}
)


@given(CHOICES, st.sampled_from(list(ORDERED)))
def test_the_laws(choices: dict[str, int], worse: str) -> None:
    """Bounds hold, deductions explain the score, and worse evidence never raises it."""
    score = score_mail(perfect(**{name: ORDERED[name][at] for name, at in choices.items()}))
    taken = sum(one.tenths for one in score.deductions)
    assert score.tenths == max(0, 100 - taken)
    assert 0 <= score.tenths <= 100
    assert all(one.tenths >= 0 for one in score.charged)
    at = min(choices[worse] + 1, len(ORDERED[worse]) - 1)
    changed = {**choices, worse: at}
    other = score_mail(perfect(**{name: ORDERED[name][at] for name, at in changed.items()}))
    assert other.tenths <= score.tenths


@given(st.lists(st.integers(0, 40)), st.integers(0, 60))
def test_capping(costs: list[int], most: int) -> None:
    """A cap does not change costs that fit, and limits the sum to itself."""
    finding = Finding("x", Severity.WARNING, "m", "f")
    capped = cap([ChargedFinding(Area.LINKS, finding, cost) for cost in costs], most)
    assert [sum(one.tenths for one in capped[:end]) for end in range(len(costs) + 1)] == [
        min(most, sum(costs[:end])) for end in range(len(costs) + 1)
    ]
    assert cap(capped, most) == capped
