"""Comparison of a watch's run with earlier runs: changes, and problems that begin and end.

An undetermined result is not a change. A topic that was known and is undetermined for
`LASTING_RUNS` runs is reported as undetermined, in one alert for all such topics.
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from mailcheck.checks.findings import Severity
from mailcheck.checks.findings_table import canonical_id
from mailcheck.checks.scoring.outcomes import FactorName, Mark
from mailcheck.checks.scoring.score import grade_of
from mailcheck.checks.watching.facts import (
    ANSWERS,
    CERTIFICATE,
    RECORD,
    Fact,
    Facts,
    Points,
    Topic,
    host_of,
    is_list,
)
from mailcheck.core.domains.watches import Ended, Raised, WatchChange, WatchScore
from mailcheck.core.instants import Instant

LASTING_RUNS = 3
"""Number of consecutive runs after which an undetermined topic is reported."""

UNDETERMINED = "undetermined"
"""Topic and key of undetermined results."""

SCORE = "score"

LONGEST_SHOWN = 160
"""Maximum number of characters of a value in a sentence."""


_FACTORS = {"MX": FactorName.MX.value, "reverse DNS": FactorName.REVERSE_DNS.value}
"""Topics whose factor in the score has another name."""


class TopicState(Struct, frozen=True, omit_defaults=True):
    """Last known state of a topic, and since when and for how many runs it was incomplete."""

    facts: dict[str, Fact]
    was_complete: bool = False
    is_single: bool = False
    missed: int = 0
    missing_since: Instant | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the topic was known once and has been undetermined for too long."""
        return self.was_complete and not self.is_single and self.missed >= LASTING_RUNS


class WatchState(Struct, frozen=True):
    """State that the next run is compared with; ``alerts`` has the severity of each open one.

    ``points`` are the last known ones. ``marks`` are those of the last run.
    """

    topics: dict[str, TopicState]
    points: dict[str, int]
    alerts: dict[str, Severity]
    runs: int = 0
    marks: dict[str, Mark] = field(default_factory=dict)

    @property
    def lost(self) -> tuple[str, ...]:
        """Topics that were undetermined for too long."""
        return tuple(name for name, seen in self.topics.items() if seen.is_lost)

    @property
    def problems(self) -> Iterator[tuple[str, Fact]]:
        """All current problems, with and without an alert, each with its key."""
        for topic, seen in self.topics.items():
            for name, fact in seen.facts.items():
                if fact.severity is not None:
                    yield key_of(topic, name), fact

    @property
    def score(self) -> int:
        """The score, from the last known points of each factor."""
        return score_of(self.points)


class Comparison(Struct, frozen=True):
    """Result of a run; ``score`` is `None` if it did not change."""

    state: WatchState
    changes: tuple[WatchChange, ...] = ()
    raised: tuple[Raised, ...] = ()
    ended: tuple[Ended, ...] = ()
    score: WatchScore | None = None


def key_of(topic: str, name: str) -> str:
    """Return the key of an alert."""
    return f"{topic}: {name}"


def score_of(points: Mapping[str, int]) -> int:
    """Return the score for these points."""
    return max(0, min(100, sum(points.values())))


def write_state(state: WatchState) -> str:
    """Serialize a state for the database."""
    return msgspec.json.encode(state).decode()


def read_state(text: str) -> WatchState | None:
    """Parse a serialized state, or return `None` if it is empty or invalid.

    Problems get the current ids of their findings, so a renamed id is not a change.
    """
    try:
        state = msgspec.json.decode(text, type=WatchState) if text else None
    except msgspec.MsgspecError:
        return None
    if state is None:
        return None
    topics = {
        topic: replace(seen, facts={canonical_id(name): fact for name, fact in seen.facts.items()})
        for topic, seen in state.topics.items()
    }
    return replace(state, topics=topics, alerts=_with_present_ids(state.alerts))


def _with_present_ids(alerts: Mapping[str, Severity]) -> dict[str, Severity]:
    """Return alerts with the current ids in their keys (see `key_of`)."""
    present = {}
    for key, severity in alerts.items():
        topic, separator, name = key.rpartition(": ")
        present[f"{topic}{separator}{canonical_id(name)}"] = severity
    return present


def compare(state: WatchState | None, facts: Facts, now: Instant) -> Comparison:
    """Compare a run with the earlier state; the first run has no earlier state."""
    points = _merge_points(state, facts.points)
    marks = {name: judged.mark for name, judged in facts.points.items()}
    if state is None:
        topics = {name: _first(topic, now) for name, topic in facts.topics.items()}
        score = _score(points, now) if points else None
        return Comparison(WatchState(topics, points, {}, 1, marks), score=score)
    comparator = _Comparator(state, facts, now)
    for name, topic in facts.topics.items():
        comparator.compare_topic(name, topic)
    comparator.carry_over_missing_topics()
    comparator.compare_lost_topics()
    score = None
    if points != state.points:
        score = _score(points, now)
        comparator.add_score_change(points)
    after = WatchState(comparator.topics, points, comparator.alerts, state.runs + 1, marks)
    return Comparison(
        after, tuple(comparator.changes), tuple(comparator.raised), tuple(comparator.ended), score
    )


def _first(topic: Topic, now: Instant) -> TopicState:
    since = None if topic.is_complete else now
    missed = 0 if topic.is_complete else 1
    return TopicState(dict(topic.facts), topic.is_complete, topic.is_single, missed, since)


def _merge_points(state: WatchState | None, points: Mapping[str, Points]) -> dict[str, int]:
    known = {} if state is None else state.points
    return {
        **known,
        **{
            name: judged.points
            for name, judged in points.items()
            if judged.is_determined or name not in known
        },
    }


def _score(points: dict[str, int], now: Instant) -> WatchScore:
    score = score_of(points)
    return WatchScore(now, score, grade_of(score), points)


class _Comparator:
    """Compares one run with the earlier state, topic by topic."""

    def __init__(self, state: WatchState, facts: Facts, now: Instant) -> None:
        self._state = state
        self._facts = facts
        self._now = now
        self.topics: dict[str, TopicState] = {}
        self.alerts = dict(state.alerts)
        self.changes: list[WatchChange] = []
        self.raised: list[Raised] = []
        self.ended: list[Ended] = []

    def compare_topic(self, name: str, topic: Topic) -> None:
        """Compare a topic of this run with its earlier state."""
        before = self._state.topics.get(name)
        if before is None:
            mx = self._state.topics.get("MX")
            if host_of(name) is None or mx is None or not mx.was_complete:
                self.topics[name] = _first(topic, self._now)
                return
            before = TopicState({}, was_complete=True)  # a new mail host
        facts = dict(topic.facts)
        for fact_name, fact in topic.facts.items():
            self._compare_fact(name, fact_name, before, fact)
        for fact_name, fact in before.facts.items():
            if fact_name in facts:
                continue
            if topic.is_complete:
                self._note(name, fact_name, fact, None)
            else:
                facts[fact_name] = fact
        is_known = topic.is_complete or (topic.is_single and bool(topic.facts))
        self.topics[name] = TopicState(
            facts,
            before.was_complete or topic.is_complete,
            topic.is_single,
            0 if is_known else before.missed + 1,
            None if is_known else before.missing_since or self._now,
        )

    def carry_over_missing_topics(self) -> None:
        """Keep topics without a result in this run, and drop hosts and lists that are gone."""
        for name, seen in self._state.topics.items():
            if name in self._facts.topics:
                continue
            if not self._is_gone(name):
                self.topics[name] = seen
                continue
            what = _shown_topic(name)
            for fact_name in seen.facts:
                self._end(key_of(name, fact_name), f"{what} is no longer checked.")

    def compare_lost_topics(self) -> None:
        """Report topics that were undetermined for too long, and the end of such a problem."""
        lost = [name for name, seen in self.topics.items() if seen.is_lost]
        before = list(self._state.lost)
        if lost == before:
            return
        names = ", ".join(lost)
        if lost:
            sentence = f"Could not be determined in {LASTING_RUNS} runs in a row: {names}."
            severity = Severity.UNDETERMINED
            is_new = UNDETERMINED not in self.alerts
            self.alerts[UNDETERMINED] = severity
            self.raised.append(Raised(UNDETERMINED, severity.value, sentence, is_new))
        else:
            severity, sentence = Severity.NOTE, f"Determined again: {', '.join(before)}."
            self._end(UNDETERMINED, sentence)
        self._add(UNDETERMINED, "", ", ".join(before) or None, names or None, sentence, severity)

    def add_score_change(self, points: Mapping[str, int]) -> None:
        """Add the change of the score, with the factors that caused it."""
        before, after = self._state.score, score_of(points)
        known = self._state.points
        moved = [
            f"{name} {known.get(name, 0)} to {points[name]}"
            for name in points
            if points[name] != known.get(name, 0)
        ]
        word = "fell" if after < before else "rose"
        text = f"The score {word} from {before} ({grade_of(before)}) to {after} ({grade_of(after)})"
        if after == before:
            text = f"The score is still {after} ({grade_of(after)})"
        sentence = f"{text}: {', '.join(moved)}."
        severity = Severity.WARNING if after < before else Severity.NOTE
        self._add(SCORE, "", str(before), str(after), sentence, severity)

    def _is_gone(self, topic: str) -> bool:
        if not self._facts.is_whole:
            return False
        mx = self._facts.topics.get("MX")
        is_host = host_of(topic) is not None
        return is_list(topic) or (is_host and mx is not None and mx.is_complete)

    def _compare_fact(self, topic: str, name: str, before: TopicState, fact: Fact) -> None:
        old = before.facts.get(name)
        if old is None and not before.was_complete:
            return  # it may not be new
        if old is None or (old.value, old.severity) != (fact.value, fact.severity):
            self._note(topic, name, old, fact)

    def _note(self, topic: str, name: str, before: Fact | None, after: Fact | None) -> None:
        severity = _severity_of(name, before, after)
        sentence = _describe(topic, name, before, after)
        old, new = (None if fact is None else fact.value for fact in (before, after))
        self._add(topic, name, old, new, sentence, severity)
        key = key_of(topic, name)
        if after is None or after.severity is None:
            self._end(key, sentence)
            return
        was = None if before is None else before.severity
        is_worse = was is None or severity.rank < was.rank
        if was is None and self._follows_from_fix(topic, severity):
            return
        if is_worse or key in self.alerts:
            self.alerts[key] = severity
            self.raised.append(Raised(key, severity.value, sentence, is_new=is_worse))

    def _follows_from_fix(self, topic: str, severity: Severity) -> bool:
        """Return whether a new problem replaced a worse problem that was fixed.

        A problem of the same severity also counts, if the score of the topic rose. A mail host
        that MX did not name before is compared together with MX.
        """
        names = {topic, "MX"} if topic not in self._state.topics else {topic}
        ended = [severity_before for name in names for severity_before in self._ended_in(name)]
        if any(ended_severity.rank < severity.rank for ended_severity in ended):
            return True
        has_risen = any(self._has_risen(name) for name in names)
        return has_risen and any(ended_severity.rank == severity.rank for ended_severity in ended)

    def _ended_in(self, topic: str) -> Iterator[Severity]:
        """Yield the severities of the problems of a topic that have ended."""
        seen, now = self._state.topics.get(topic), self._facts.topics.get(topic)
        if seen is None or now is None or not now.is_complete:
            return
        for name, fact in seen.facts.items():
            after = now.facts.get(name)
            if fact.severity is not None and (after is None or after.severity is None):
                yield fact.severity

    def _has_risen(self, topic: str) -> bool:
        factor = _FACTORS.get(topic, topic)
        after = self._facts.points.get(factor)
        return (
            after is not None
            and after.is_determined
            and after.points > self._state.points.get(factor, after.points)
        )

    def _end(self, key: str, sentence: str) -> None:
        if self.alerts.pop(key, None) is not None:
            self.ended.append(Ended(key, sentence))

    def _add(
        self,
        topic: str,
        name: str,
        before: str | None,
        after: str | None,
        sentence: str,
        severity: Severity,
    ) -> None:
        change = WatchChange(
            self._now, topic, name, before, after, sentence=sentence, severity=severity.value
        )
        self.changes.append(change)


def _severity_of(name: str, before: Fact | None, after: Fact | None) -> Severity:
    """Return the severity of a change: a lost record or a weaker policy is a warning."""
    if after is not None and after.severity is not None:
        return after.severity
    is_gone = after is None and name == RECORD
    is_weaker = before is not None and after is not None and after.strength < before.strength
    return Severity.WARNING if is_gone or is_weaker else Severity.NOTE


def _describe(topic: str, name: str, before: Fact | None, after: Fact | None) -> str:
    what = _shown_topic(topic)
    if after is not None and after.severity is not None:
        return after.says
    if before is not None and before.severity is not None:
        return (
            f"{what} accepts connections again." if name == ANSWERS else f"Resolved: {before.says}"
        )
    if before is not None and after is not None:
        if name == CERTIFICATE:
            return f"{what} has a new certificate."
        shown = "the record" if name == RECORD else name
        return f"{what}: {shown} changed from {_shorten(before.value)} to {_shorten(after.value)}."
    if after is not None:
        word = "a record was published" if name == RECORD else f"{name} was added"
        return f"{what}: {word}: {_shorten(after.value)}"
    assert before is not None, "either before or after is given"
    word = "the record was removed" if name == RECORD else f"{name} was removed"
    return f"{what}: {word}; it was {_shorten(before.value)}"


def _shown_topic(topic: str) -> str:
    return host_of(topic) or topic


def _shorten(value: str) -> str:
    value = " and ".join(value.split("\n"))
    return value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "..."
