"""Changes that a watch detects, and problems that begin and end."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.findings import Severity
from mailcheck.checks.findings_table import ROWS
from mailcheck.checks.scoring.outcomes import Mark
from mailcheck.checks.watching.changes import (
    LASTING_RUNS,
    UNDETERMINED,
    Comparison,
    WatchState,
    compare,
    read_state,
    write_state,
)
from mailcheck.checks.watching.facts import Fact, Facts, Points, Topic, host_topic, list_topic
from mailcheck.checks.watching.uptime import uptime
from mailcheck.core.domains.watches import WatchChange, next_run
from mailcheck.core.instants import HOUR, MINUTE, Instant
from tests.table import rows

BAD = Fact("found", Severity.ERROR, "It is bad.")
WORSE_OF_TWO = Fact("found", Severity.WARNING, "It is not good.")

_FACTS = st.builds(
    lambda value, severity: Fact(value, severity, "It is so." if severity else ""),
    st.sampled_from("abc"),
    st.sampled_from([None, Severity.WARNING, Severity.ERROR]),
)
_TOPICS = st.builds(
    Topic,
    st.dictionaries(st.sampled_from(["record", "p", "q", "answers"]), _FACTS),
    st.booleans(),
    st.booleans(),
)
_NAMES = ["MX", "SPF", host_topic("mx.example"), list_topic("bl.example"), "blocklists"]
_POINTS = st.dictionaries(
    st.sampled_from(["SPF", "MX"]), st.builds(Points, st.integers(-20, 40), st.sampled_from(Mark))
)
RUNS = st.lists(
    st.builds(Facts, st.dictionaries(st.sampled_from(_NAMES), _TOPICS), _POINTS, st.booleans()),
    min_size=1,
    max_size=4,
)


def known(**topics: dict[str, Fact]) -> Facts:
    """Return the facts of a run with complete topics."""
    return Facts({name: Topic(facts) for name, facts in topics.items()}, {})


def undetermined(*names: str) -> Facts:
    """Return the facts of a run with undetermined topics."""
    return Facts({name: Topic({}, is_complete=False) for name in names}, {})


def run_all(*runs: Facts) -> list[Comparison]:
    """Compare runs in sequence, one hour apart, with serialized states in between."""
    state: WatchState | None = None
    compared = []
    for number, facts in enumerate(runs):
        one = compare(state, facts, Instant(number * HOUR))
        state = read_state(write_state(one.state))
        assert state == one.state
        compared.append(one)
    return compared


@given(RUNS)
def test_the_same_again_is_no_change(runs: Sequence[Facts]) -> None:
    """A run with the same facts as the last one changes nothing, for any history."""
    last = runs[-1]
    again = run_all(*runs, *[last] * (LASTING_RUNS + 1), last)[-1]
    assert (again.changes, again.raised, again.ended, again.score) == ((), (), (), None)


@given(RUNS)
def test_alerts_have_one_beginning_and_one_end(runs: Sequence[Facts]) -> None:
    """Each problem is raised as new first, and ends at most once; the others are open."""
    is_open: set[str] = set()
    for one in run_all(*runs):
        for raised in one.raised:
            assert raised.is_new or raised.key in is_open
            is_open.add(raised.key)
        for ended in one.ended:
            assert ended.key in is_open
            is_open.remove(ended.key)
        assert is_open == set(one.state.alerts)
        problems = {key for key, _ in one.state.problems}
        assert is_open - {UNDETERMINED} <= problems


@given(RUNS)
def test_the_first_run_is_what_the_next_is_compared_with(runs: Sequence[Facts]) -> None:
    """The first run raises no alert and reports no change."""
    first = run_all(runs[0])[0]
    assert (first.changes, first.raised, first.ended) == ((), (), ())


@given(RUNS, st.integers(1, LASTING_RUNS - 1))
def test_undetermined_runs_change_nothing(runs: Sequence[Facts], count: int) -> None:
    """A few undetermined runs change nothing, and all known facts are kept."""
    names = list(runs[-1].topics)
    known_facts = [Facts(one.topics, one.points) for one in runs[:-1]]
    last = Facts({name: Topic(one.facts) for name, one in runs[-1].topics.items()}, {})
    *_, before = run_all(*known_facts, last)
    *_, after = run_all(*known_facts, last, *[undetermined(*names)] * count)
    assert (after.changes, after.raised, after.ended) == ((), (), ())
    for name, seen in before.state.topics.items():
        if name in names:
            assert after.state.topics[name].facts == seen.facts


def test_lasting_failures_raise_one_alert() -> None:
    """After three runs one alert names all unknown topics; it ends when all are known again."""
    spf, dmarc = {"record": Fact("v=spf1 -all")}, {"record": Fact("v=DMARC1")}
    both = known(SPF=spf, DMARC=dmarc)
    dead = undetermined("SPF", "DMARC")
    *quiet, third, fourth, back = run_all(both, *[dead] * 4, both)
    assert not any(one.changes or one.raised for one in quiet)
    (raised,) = third.raised
    assert raised.key == UNDETERMINED
    assert raised.is_new
    assert raised.sentence == "Could not be determined in 3 runs in a row: SPF, DMARC."
    assert (fourth.changes, fourth.raised) == ((), ())
    (ended,) = back.ended
    assert ended.key == UNDETERMINED
    assert [one.severity for one in back.changes] == ["note"]


def test_a_record_removed_during_an_outage() -> None:
    """A difference after undetermined runs is a change from the last known facts."""
    before = known(DMARC={"record": Fact("v=DMARC1; p=reject")})
    *_, back = run_all(before, *[undetermined("DMARC")] * 2, known(DMARC={"absent": BAD}))
    said = {one.name: (one.before, one.after) for one in back.changes}
    assert said == {"record": ("v=DMARC1; p=reject", None), "absent": (None, "found")}
    assert [one.key for one in back.raised] == ["DMARC: absent"]


def test_a_problem_of_the_first_run_raises_an_alert_when_it_gets_worse() -> None:
    """It raises no alert until it gets worse; then its end is reported too."""
    runs = [known(SPF={"p": one}) for one in (WORSE_OF_TWO, WORSE_OF_TWO, BAD)]
    _, same, worse, over = run_all(*runs, known(SPF={}))
    assert same.raised == ()
    assert [(one.severity, one.is_new) for one in worse.raised] == [("error", True)]
    assert [one.sentence for one in over.ended] == ["Resolved: It is bad."]


def test_a_repair_raises_no_alert() -> None:
    """A smaller problem that replaces a larger one raises no alert."""
    absent, weak = {"absent": BAD}, {"record": Fact("v=DMARC1; p=none"), "none": WORSE_OF_TWO}
    fine = {"record": Fact("v=DMARC1; p=reject")}
    _, broken, mended = run_all(known(DMARC=fine), known(DMARC=absent), known(DMARC=weak))
    assert [one.key for one in broken.raised] == ["DMARC: absent"]
    assert (mended.raised, [one.key for one in mended.ended]) == ((), ["DMARC: absent"])
    assert "DMARC: none" in dict(mended.state.problems)
    _, first = run_all(known(DMARC=absent), known(DMARC=weak))
    assert first.raised == ()
    *_, worse = run_all(known(DMARC=absent), known(DMARC=weak), known(DMARC=absent))
    assert [one.key for one in worse.raised] == ["DMARC: absent"]


def test_a_repair_that_shows_another_problem_as_bad() -> None:
    """If the points of the factor rise, it is a fix; otherwise it is an alert."""
    several, lookups = Topic({"several": BAD}), Topic({"lookups": BAD})
    for points, raised in ((5, []), (0, ["SPF: lookups"])):
        before = Facts({"SPF": several}, {"SPF": Points(0, Mark.FAIL)})
        after = Facts({"SPF": lookups}, {"SPF": Points(points, Mark.WARN)})
        *_, last = run_all(before, after)
        assert [one.key for one in last.raised] == raised


def test_a_new_mail_host_that_ends_a_problem_of_mx() -> None:
    """A smaller problem of the host that fixes MX is no alert; one of another host is."""
    host = host_topic("mx.example")
    bad = {host: Topic({"starttls": WORSE_OF_TWO})}
    none, fine = Facts({"MX": Topic({"absent": BAD})}, {}), Facts({"MX": Topic({})}, {})
    *_, mended = run_all(none, Facts({"MX": Topic({}), **bad}, {}))
    *_, other = run_all(fine, Facts({"MX": Topic({}), **bad}, {}))
    assert mended.raised == ()
    assert [one.key for one in other.raised] == [f"{host}: starttls"]


@given(RUNS)
def test_a_run_without_problems_ends_all_alerts(runs: Sequence[Facts]) -> None:
    """A complete run without problems ends all alerts."""
    topics = {name for one in runs for name in one.topics}
    whole = Facts({name: Topic({}) for name in topics}, {})
    last = run_all(*runs, whole)[-1]
    assert last.raised == ()
    assert not last.state.alerts


def test_the_history_marks_what_got_worse() -> None:
    """A lower score, a removed record and a weaker policy are warnings."""
    strict = {"record": Fact("v=DMARC1; p=reject", strength=2)}
    weaker = {"record": Fact("v=DMARC1; p=quarantine", strength=1)}
    runs = [known(DMARC=one) for one in (strict, weaker, strict, {}, strict)]
    _, fell, rose, gone, back = run_all(*runs)
    marked = [one.changes[0].severity for one in (fell, rose, gone, back)]
    assert marked == ["warning", "note", "warning", "note"]
    assert not any(one.raised for one in (fell, rose, gone, back))
    scores = [Facts({}, {"SPF": Points(points, Mark.WARN)}) for points in (10, 5, 10)]
    _, fell, rose = run_all(*scores)
    assert [one.changes[0].severity for one in (fell, rose)] == ["warning", "note"]


def test_a_removed_mail_host() -> None:
    """Its problems end when MX no longer names it; while MX is unknown they stay open."""
    host = host_topic("mx.example")
    there = Facts({"MX": Topic({}), host: Topic({"answers": Fact("yes")})}, {})
    down = Facts({"MX": Topic({}), host: Topic({"answers": BAD}, False, is_single=True)}, {})
    _, one, unknown, gone = run_all(there, down, undetermined("MX"), known(MX={}))
    assert [raised.key for raised in one.raised] == [f"{host}: answers"]
    assert unknown.ended == ()
    assert [ended.sentence for ended in gone.ended] == ["mx.example is no longer checked."]


def test_a_list_without_an_answer() -> None:
    """A single list without an answer is never reported; its listing stays until it answers."""
    name = list_topic("bl.example")
    clean = Facts({name: Topic({}, is_single=True)}, {})
    listed = Facts({name: Topic({"listed": BAD}, is_single=True)}, {})
    mute = Facts({name: Topic({}, False, is_single=True)}, {})
    *_, quiet, over = run_all(clean, listed, *[mute] * 5, clean)
    assert (quiet.changes, quiet.ended) == ((), ())
    assert list(quiet.state.alerts) == [f"{name}: listed"]
    assert [one.key for one in over.ended] == [f"{name}: listed"]


def test_the_score_moves_by_what_is_known() -> None:
    """An undetermined factor keeps its points; only a known change moves the score."""
    first = Facts({}, {"SPF": Points(20, Mark.PASS), "MX": Points(10, Mark.PASS)})
    unknown = Facts({}, {"SPF": Points(7, Mark.UNDETERMINED), "MX": Points(10, Mark.PASS)})
    fallen = Facts({}, {"SPF": Points(0, Mark.FAIL), "MX": Points(10, Mark.PASS)})
    begun, same, other = run_all(first, unknown, fallen)
    assert begun.score is not None
    assert (begun.score.score, same.score) == (30, None)
    assert other.score is not None
    assert other.score.score == 10
    assert other.changes[0].sentence == "The score fell from 30 (F) to 10 (F): SPF 20 to 0."


def test_an_unreadable_state_is_discarded() -> None:
    """An unreadable state is discarded, without alerts."""
    assert read_state("") is None
    assert read_state('{"topics": []}') is None


def moved(at: int, before: str | None, after: str | None) -> WatchChange:
    """Return a change of a mail host's reachability."""
    return WatchChange(
        Instant(at), host_topic("mx.example"), "answers", before, after, "It moved.", "note"
    )


def test_uptime() -> None:
    """It is the share of the known time, or `None` without known time."""
    noon, ten = Instant(0), Instant(10)
    assert uptime("mx.example", [], "yes", noon, ten) == 1
    assert uptime("mx.example", [], None, noon, ten) is None
    down = [moved(4, "yes", "no"), moved(5, "no", "yes")]
    assert uptime("mx.example", down, "yes", noon, ten) == 0.9
    assert uptime("mx.example", [moved(8, None, "no")], "no", noon, ten) == 0
    assert uptime("other.example", down, "yes", noon, ten) == 1


@given(st.text(min_size=1), st.sampled_from([15, 60, 1440]), st.integers(0, 10**13))
def test_each_watch_has_its_own_schedule(name: str, minutes: int, after: int) -> None:
    """The next run is within one interval, at a fixed offset in each."""
    interval = minutes * MINUTE
    first = next_run(name, interval, Instant(after))
    assert after < first <= after + interval
    assert next_run(name, interval, first) == first + interval


def test_runs_are_spread_evenly() -> None:
    """Of a thousand hourly watches, no minute has many more than its share."""
    moments = [next_run(str(number), HOUR, Instant(0)) // MINUTE for number in range(1_000)]
    assert max(map(moments.count, set(moments))) < 40


def test_topics_that_were_unknown_at_first_are_not_new() -> None:
    """A topic that was unknown in the first run may not be new."""
    _, found, gone = run_all(undetermined("SPF"), known(SPF={"p": BAD}), known(SPF={}))
    assert (found.changes, found.raised) == ((), ())
    assert [one.sentence for one in gone.changes] == ["Resolved: It is bad."]
    assert gone.ended == ()


def test_another_value_of_the_same_severity_raises_no_alert() -> None:
    """Another problem of the same severity is a change without a new alert."""
    other = Fact("found elsewhere", Severity.ERROR, "It is bad there.")
    _, moved_at_first = run_all(known(SPF={"p": BAD}), known(SPF={"p": other}))
    assert (len(moved_at_first.changes), moved_at_first.raised) == (1, ())
    *_, moved_later = run_all(known(SPF={}), known(SPF={"p": BAD}), known(SPF={"p": other}))
    (raised,) = moved_later.raised
    assert (raised.sentence, raised.is_new) == ("It is bad there.", False)


@rows(*[(alias, row.id) for row in ROWS for alias in row.aliases])
def test_a_renamed_finding_is_no_change(old: str, new: str) -> None:
    """A state with an earlier id raises and ends no alert, and reports no change."""
    before = compare(None, known(DKIM={"record": Fact("a")}), Instant(0)).state
    raised = compare(before, known(DKIM={"record": Fact("a"), old: BAD}), Instant(HOUR))
    assert list(raised.state.alerts) == [f"DKIM: {old}"]
    state = read_state(write_state(raised.state))
    assert state is not None
    again = compare(state, known(DKIM={"record": Fact("a"), new: BAD}), Instant(2 * HOUR))
    assert (again.changes, again.raised, again.ended) == ((), (), ())
    assert list(again.state.alerts) == [f"DKIM: {new}"]
    over = compare(again.state, known(DKIM={"record": Fact("a")}), Instant(3 * HOUR))
    assert [one.key for one in over.ended] == [f"DKIM: {new}"]
