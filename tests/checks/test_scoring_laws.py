"""Laws of the reputation score for any evidence."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mailcheck.checks.dnsbl.catalogue import packaged_catalogue_text, parse_catalogue
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    UnknownReason,
    unknown_listing,
)
from mailcheck.checks.scoring.awards import AWARDS, MAXIMA, STOPPED_IMPACT, Award
from mailcheck.checks.scoring.blacklists import judge_blacklists
from mailcheck.checks.scoring.outcomes import (
    AgeOutcome,
    DkimOutcome,
    DmarcOutcome,
    FactorName,
    MxOutcome,
    Outcome,
    ReverseDnsOutcome,
    SpfOutcome,
    StarttlsOutcome,
    Status,
)
from mailcheck.checks.scoring.score import Judgement, Score, grade_of, score_judgements
from tests.table import rows

OUTCOMES: dict[FactorName, list[Outcome]] = {
    FactorName.SPF: list(SpfOutcome),
    FactorName.DKIM: list(DkimOutcome),
    FactorName.DMARC: list(DmarcOutcome),
    FactorName.MX: list(MxOutcome),
    FactorName.STARTTLS: list(StarttlsOutcome),
    FactorName.DOMAIN_AGE: list(AgeOutcome),
    FactorName.REVERSE_DNS: list(ReverseDnsOutcome),
}
LISTS = parse_catalogue(packaged_catalogue_text()).address_profile

BLACKLIST_AWARDS = [Award(points, Status.PASS) for points in range(20, -1, -1)]
BLACKLIST_AWARDS.append(Award(STOPPED_IMPACT, Status.FAIL))

CHOICES = st.fixed_dictionaries(
    {
        **{name: st.integers(0, len(outcomes) - 1) for name, outcomes in OUTCOMES.items()},
        FactorName.BLACKLISTS: st.integers(0, len(BLACKLIST_AWARDS) - 1),
    }
)


def award(name: FactorName, choice: int) -> Award:
    """Return the award of a factor's outcome; a higher choice is a worse outcome."""
    if name is FactorName.BLACKLISTS:
        return BLACKLIST_AWARDS[choice]
    return AWARDS[OUTCOMES[name][choice]]


def score(choices: dict[FactorName, int]) -> Score:
    """Return the score of a choice of outcomes."""
    return score_judgements(
        [Judgement(name, award(name, choices[name]), "", None) for name in FactorName]
    )


def test_the_maxima_make_a_hundred() -> None:
    """The maxima add up to 100."""
    assert sum(MAXIMA.values()) == 100
    assert set(MAXIMA) == set(FactorName)


@rows(*list(OUTCOMES))
def test_outcomes_are_worth_less_the_worse_they_are(name: FactorName) -> None:
    """Each table runs from the maximum down to 0, with the undetermined outcome in between."""
    points = [AWARDS[outcome].points for outcome in OUTCOMES[name]]
    assert points == sorted(points, reverse=True)
    assert (points[0], points[-1]) == (MAXIMA[name], 0)
    unknown = [AWARDS[o] for o in OUTCOMES[name] if not AWARDS[o].is_determined]
    assert unknown
    for one in unknown:
        assert 0 < one.points < MAXIMA[name]
        assert one.status is Status.WARN


@rows(*list(OUTCOMES))
def test_half_the_points_for_what_is_unknown(name: FactorName) -> None:
    """An outage of ours is neither a fault nor a merit."""
    undetermined = next(o for o in OUTCOMES[name] if o.value == "undetermined")
    assert AWARDS[undetermined].points == MAXIMA[name] // 2


@given(CHOICES)
def test_impacts_sum_to_a_score_between_0_and_100(choices: dict[FactorName, int]) -> None:
    """The impacts add up to the score, which is within its bounds."""
    result = score(choices)
    assert sum(factor.impact for factor in result.factors) == result.score
    assert 0 <= result.score <= 100
    assert result.grade == grade_of(result.score)
    for factor in result.factors:
        assert STOPPED_IMPACT <= factor.impact <= factor.maximum


@given(CHOICES, st.sampled_from(FactorName), st.data())
def test_worse_evidence_never_raises_the_score(
    choices: dict[FactorName, int], name: FactorName, data: st.DataObject
) -> None:
    """A worse outcome of one factor never raises the score."""
    count = len(BLACKLIST_AWARDS if name is FactorName.BLACKLISTS else OUTCOMES[name])
    worse = data.draw(st.integers(choices[name], count - 1))
    assert score(choices | {name: worse}).score <= score(choices).score


@given(CHOICES)
def test_the_gain_is_what_fixing_really_adds(choices: dict[FactorName, int]) -> None:
    """Fixing a factor adds exactly the promised points."""
    result = score(choices)
    for factor in result.factors:
        fixed = score(choices | {factor.name: 0})
        assert factor.gain == fixed.score - result.score >= 0


@given(CHOICES)
def test_a_grade_needs_sixty_points_that_are_known(choices: dict[FactorName, int]) -> None:
    """With more than 40 undetermined points there is no grade."""
    result = score(choices)
    unknown = sum(f.maximum for f in result.factors if not f.is_determined)
    assert result.undetermined_points == unknown
    assert result.is_gradable is (unknown <= 40)


@rows((90, 100, "A+"), (80, 89, "A"), (70, 79, "B"), (60, 69, "C"), (50, 59, "D"), (0, 49, "F"))
def test_grades(lowest: int, highest: int, grade: str) -> None:
    """The grading scale (docs/reference/contract.md, "Reputation")."""
    assert (grade_of(lowest), grade_of(highest)) == (grade, grade)


ROWS = st.lists(
    st.builds(
        lambda number, status, weight, shared: Listing(
            LISTS[number],
            status,
            weight=weight if status is ListingStatus.LISTED else 0,
            is_shared=shared,
            unknown_reason=UnknownReason.NO_ANSWER if status is ListingStatus.UNKNOWN else None,
        ),
        st.integers(0, 31),
        st.sampled_from(ListingStatus),
        st.integers(0, 10),
        st.booleans(),
    ),
    min_size=1,
    max_size=32,
)


@given(ROWS)
def test_blacklist_points_are_within_bounds(rows: list[Listing]) -> None:
    """The points are from -20 to 20, and only a listing that stops delivery is negative."""
    points = judge_blacklists(rows).award.points
    severe = any(r.is_listed and r.weight >= 8 and not r.is_shared for r in rows)
    assert points == -20 if severe else 0 <= points <= 20


@given(ROWS, st.integers(0, 31), st.integers(0, 10), st.booleans())
def test_a_listing_more_never_raises_the_points(
    rows: list[Listing], place: int, weight: int, is_shared: bool
) -> None:
    """A list that turns from clean to listed, or a heavier listing, never adds points."""
    place %= len(rows)
    clean = replace(rows[place], status=ListingStatus.CLEAN, weight=0, unknown_reason=None)
    light = replace(clean, status=ListingStatus.LISTED, weight=weight, is_shared=is_shared)
    heavy = replace(light, weight=10, is_shared=False)
    points = [
        judge_blacklists([*rows[:place], row, *rows[place + 1 :]]).award.points
        for row in (clean, light, heavy)
    ]
    assert points == sorted(points, reverse=True)


@given(ROWS, st.integers(0, 31))
def test_an_answer_less_never_raises_the_points_of_a_clean_list(
    rows: list[Listing], place: int
) -> None:
    """An undetermined list is not better than a clean one."""
    place %= len(rows)
    clean = replace(rows[place], status=ListingStatus.CLEAN, weight=0, unknown_reason=None)
    unknown = unknown_listing(rows[place].blocklist, UnknownReason.NO_ANSWER)
    known, less = (
        judge_blacklists([*rows[:place], row, *rows[place + 1 :]]).award.points
        for row in (clean, unknown)
    )
    assert less <= known


def test_lists_count_by_weight_when_too_many_are_silent() -> None:
    """The factor is undetermined if more than half of the weight is unknown, and not before."""
    clean = [Listing(blocklist, ListingStatus.CLEAN) for blocklist in LISTS]
    silent = [unknown_listing(blocklist, UnknownReason.NO_ANSWER) for blocklist in LISTS]
    assert judge_blacklists([*silent[:3], *clean[3:]]).award.is_determined
    mostly = judge_blacklists([*silent[:20], *clean[20:]])
    assert (mostly.award.points, mostly.award.is_determined) == (10, False)
    assert judge_blacklists([*clean[:3], *silent[3:]]).award.is_determined is False
    unsupported = [Listing(blocklist, ListingStatus.UNSUPPORTED) for blocklist in LISTS]
    assert judge_blacklists([*clean[:3], *unsupported[3:]]).award.is_determined


def test_the_worst_listing_is_named_first() -> None:
    """The first name in the sentence is the most important one."""
    rows = [
        Listing(LISTS[4], ListingStatus.LISTED, weight=4),
        Listing(LISTS[0], ListingStatus.LISTED, weight=10),
    ]
    assert judge_blacklists(rows).detail.startswith("Listed by Spamhaus ZEN, PSBL;")
