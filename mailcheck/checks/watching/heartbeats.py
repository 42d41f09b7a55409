"""Evaluation of a heartbeat: which mails are its beats, and which problems begin and end.

Time passes only where it was observed. While no daemon runs, senders keep their mail and send it
again later, so after such a gap a beat has more time (`Reception.allowance`). A clock that was
set ahead looks like a gap. After a clock was set back, the schedule is read again from now on.
"""

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from mailcheck.checks.findings import Severity
from mailcheck.core.domains.heartbeats import (
    LEAST_EARLY,
    Beat,
    BeatFacts,
    BeatVerdict,
    DayOfBeats,
    HeartbeatSettings,
    HeartbeatState,
    JudgedBeat,
    Occurrence,
    write_duration,
)
from mailcheck.core.domains.watches import Ended, Raised, WatchChange
from mailcheck.core.instants import MINUTE, SECOND, Instant

LOWER_SCORE = 5
"""Tenths by which a score must be lower than before. Single rules of content filters vary by a few
tenths from day to day."""

LEAST_ALLOWANCE, MOST_ALLOWANCE = 15 * MINUTE, 75 * MINUTE
"""Limits of the extra time after a gap. Exim retries after 15 minutes, and Postfix after at most
``maximal_backoff_time`` (4,000 s) and one run of its queue (300 s)."""

QUEUE_RUN = 5 * MINUTE
"""Postfix retries when the mail is twice as old as at the last attempt, in the next run of the
queue."""

CLOCK_TOLERANCE = 30 * SECOND
"""Difference between the clocks of daemons that is not a clock that was set back."""

MOST_ATTEMPTS = 6
"""Number of analyses of a beat whose required signature cannot be verified for want of DNS."""

RETRY = 2 * MINUTE
"""Time between two such analyses. While one is left, no beat is reported as late."""


def is_to_retry(beat: Beat, now: Instant) -> bool:
    """Return whether a beat is to be analysed now: for the first time, or again."""
    return not beat.attempts or now >= beat.received_at + RETRY * beat.attempts


STORING = 5 * SECOND
"""Time in which a mail that has arrived is stored, and thus seen here."""

MOST_SIGNATURES = 500
"""Number of signatures that are kept, so that copies of the beats are refused."""

MOST_MISSES = 1_000
"""Maximum number of occurrences of an interval that one evaluation records one by one."""

ARRIVAL, SCORE, TLS, SLOW = "arrival", "score", "tls", "slow"

_PASSES = (
    *(
        (
            name.lower(),
            f"{name} no longer passes for the heartbeat.",
            f"{name} passes for the heartbeat again.",
        )
        for name in ("SPF", "DKIM", "DMARC")
    ),
    (
        TLS,
        "The heartbeat came without TLS, which it had before.",
        "The heartbeat comes with TLS again.",
    ),
)
"""Results of a beat, by fields of `BeatFacts`, with the sentences about their loss and return."""


class Reception(Struct, frozen=True):
    """The last gap in which no daemon observed the time, from ``down_from`` to ``up_since``."""

    down_from: Instant = Instant(0)
    up_since: Instant = Instant(0)

    @property
    def allowance(self) -> int:
        """Extra time after the gap: as long as it was, within limits."""
        gap = self.up_since - self.down_from
        return max(LEAST_ALLOWANCE, min(gap + QUEUE_RUN, MOST_ALLOWANCE))

    def extend(self, deadline: Instant) -> Instant:
        """Return a deadline, or the end of the extra time after the gap if that is later."""
        if not self.up_since:
            return deadline
        return max(deadline, Instant(self.up_since + self.allowance))

    def may_delay(self, instant: Instant) -> bool:
        """Return whether mail that arrives at an instant may be late because of the gap."""
        return bool(self.up_since) and 0 <= instant - self.up_since <= self.allowance


class BeatsState(Struct, frozen=True):
    """State after an evaluation, from which the next one continues.

    ``settled`` is when the last occurrence was due that is on time or missed, or the start.
    ``expected`` is the next one. ``misses`` counts those in a row that have not come.
    Later beats are compared with ``score`` and ``passes``. ``alerts`` has the severity
    of each open problem. ``signatures`` identify those of the newest beats that had to be signed.
    ``refused`` counts mails without the required signature since the last beat.
    """

    since: Instant
    seen_at: Instant
    settled: Instant
    expected: Occurrence
    misses: int = 0
    last_at: Instant | None = None
    extra_at: Instant | None = None
    refused: int = 0
    score: int | None = None
    passes: dict[str, bool] = field(default_factory=dict)
    alerts: dict[str, Severity] = field(default_factory=dict)
    late: int | None = None
    facts: BeatFacts | None = None
    signatures: tuple[str, ...] = ()

    @property
    def state(self) -> HeartbeatState:
        """Whether the beats come."""
        if self.misses:
            return HeartbeatState.LATE if self.misses == 1 else HeartbeatState.MISSING
        return HeartbeatState.NEW if self.last_at is None else HeartbeatState.ON_TIME


def read_beats_state(text: str) -> BeatsState | None:
    """Parse a serialized state, or return `None` if it is empty or invalid."""
    try:
        return msgspec.json.decode(text, type=BeatsState) if text else None
    except msgspec.MsgspecError:
        return None


def write_beats_state(state: BeatsState) -> str:
    """Serialize a state for the database."""
    return msgspec.json.encode(state).decode()


def begin(settings: HeartbeatSettings, now: Instant) -> BeatsState:
    """Return the state of a heartbeat before its first beat."""
    return BeatsState(settings.since, now, settings.since, settings.first())


class BeatsEvaluation:
    """One evaluation: mails in the order of their arrival, then the time up to now.

    A caller asks `wants_facts` about each mail, analyses it if so, and gives it to `take`. At the
    end it calls `finish`, and stores what is in the attributes.
    """

    def __init__(
        self,
        state: BeatsState | None,
        settings: HeartbeatSettings,
        reception: Reception,
        now: Instant,
    ) -> None:
        self._settings = settings
        # A gap that ends in the future was seen before the clock was set back.
        self._reception = Reception() if reception.up_since > now else reception
        self._now = now
        self._state = begin(settings, now) if state is None else state
        self._days: dict[Instant, DayOfBeats] = {}
        self._is_waiting = False
        self.judged: list[JudgedBeat] = []
        self.changes: list[WatchChange] = []
        self.events: list[Raised | Ended] = []
        if self._state.since != settings.since:
            self._restart()
        elif now < self._state.seen_at - CLOCK_TOLERANCE:
            self._rewind()

    @property
    def state(self) -> BeatsState:
        """The state so far."""
        return self._state

    @property
    def days(self) -> list[DayOfBeats]:
        """The counts to add to the days."""
        return list(self._days.values())

    def wants_facts(self, beat: Beat) -> bool:
        """Return whether the verdict about a mail depends on its analysis."""
        self._pass_time(beat.received_at)
        return self._is_expected(beat)

    def take(self, beat: Beat, facts: BeatFacts | None) -> None:
        """Judge a mail.

        :param facts: its analysis; `None` if it is not wanted, or the mail was deleted.
        """
        if not self._is_expected(beat):
            self._judge(beat, BeatVerdict.EXTRA, facts)
            self._change(extra_at=beat.received_at)
            return
        domain = self._settings.signed_by
        if domain and (facts is None or domain not in facts.signed_by or self._is_copy(facts)):
            self._leave_out(beat, facts)
            return
        self._arrive(beat, facts)

    def wait(self) -> None:
        """Record that the signature of a mail is not verified yet."""
        self._is_waiting = True

    def finish(self, *, has_more: bool = False) -> Instant:
        """Let time pass until now; return when the heartbeat must be evaluated again.

        :param has_more: there are mails that were not taken yet.
        """
        self._change(seen_at=self._now)
        if has_more:
            return self._now
        patience = RETRY * MOST_ATTEMPTS if self._is_waiting else 0
        if self._now <= self._deadline() + patience:
            retry = Instant(self._now + RETRY)
            return retry if self._is_waiting else Instant(self._deadline() + 1)
        self._pass_time(self._now)
        return Instant(self._deadline() + 1)

    def _is_expected(self, beat: Beat) -> bool:
        state = self._state
        return state.misses > 0 or beat.received_at >= state.expected.opens

    def _deadline(self) -> Instant:
        due = self._state.expected.due + self._settings.grace
        return Instant(self._reception.extend(Instant(due)) + STORING)

    def _pass_time(self, until: Instant) -> None:
        self._skip_many(until)
        while self._deadline() < until:
            self._miss()

    def _skip_many(self, until: Instant) -> None:
        """Leave the oldest occurrences of a long time out of the days, but count them."""
        every, settled = self._settings.schedule.every, self._state.settled
        if not every or self._deadline() >= until:
            return
        skipped = (until - settled) // every - MOST_MISSES
        if skipped > 0:
            settled = Instant(settled + skipped * every)
            self._settle(settled, misses=self._state.misses + skipped)

    def _miss(self) -> None:
        """Record that the expected beat has not come."""
        state, settings = self._state, self._settings
        expected = state.expected
        if self._came_by_another_clock():
            self._count(expected.due, on_time=1)
            self._settle(expected.due, extra_at=None)
            return
        self._count(expected.due, missing=1)
        misses = state.misses + 1
        due = settings.schedule.write(expected.due)
        if misses == 1:
            sentence = (
                f"The heartbeat is late: its mail was due at {due} and has not come within "
                f"{write_duration(settings.grace)}."
            )
        else:
            last = (
                "It has never come."
                if state.last_at is None
                else (f"The last one came at {settings.schedule.write(state.last_at)}.")
            )
            sentence = f"The heartbeat is missing: {misses} mails in a row have not come. {last}"
        if state.refused:
            sentence += (
                f" {state.refused} mail{'s' * (state.refused > 1)} without a valid DKIM signature "
                f"of {settings.signed_by} did not count."
            )
        at = Instant(min(self._now, expected.due + settings.grace))
        severity = Severity.WARNING if misses == 1 else Severity.ERROR
        self._raise(ARRIVAL, severity, sentence, at)
        self._settle(expected.due, misses=misses)

    def _came_by_another_clock(self) -> bool:
        """Return whether a mail came for the expected beat before the clock was set.

        For a clock that was behind, it came too early.
        """
        state, gap = self._state, self._reception
        return (
            state.extra_at is not None
            and state.extra_at > state.settled
            and gap.up_since >= state.expected.opens
            and gap.down_from <= state.expected.due
        )

    def _arrive(self, beat: Beat, facts: BeatFacts | None) -> None:
        state, settings = self._state, self._settings
        at = beat.received_at
        is_of_last = state.misses > 0 and at < state.expected.opens
        due = state.settled if is_of_last else state.expected.due
        late = at - due
        # It may have come on time, and its signature was verified later.
        is_late = is_of_last and late > settings.grace
        verdict = BeatVerdict.LATE if is_late else BeatVerdict.ON_TIME
        self._count(due, missing=-int(is_of_last), late=int(is_late), on_time=int(not is_late))
        self._judge(beat, verdict, facts, late)
        settled = at if settings.schedule.every else due
        self._settle(settled, misses=0, refused=0, last_at=at, extra_at=None, late=late)
        if settings.signed_by and facts is not None:
            known = (*facts.signatures, *state.signatures)[:MOST_SIGNATURES]
            self._change(signatures=known)
        self._end(ARRIVAL, f"The heartbeat is back: {_lateness(late, settings.grace)}.", at)
        if facts is not None:
            self._change(facts=facts)
            self._compare(beat, facts)
            self._count(due, problems=int(bool(self._state.alerts)))
            if facts.score is not None:
                self._note_score(due, facts.score)

    def _is_copy(self, facts: BeatFacts | None) -> bool:
        """Return whether a mail has a signature of an earlier beat: anybody can send a copy."""
        known = self._state.signatures
        return facts is not None and not set(facts.signatures).isdisjoint(known)

    def _leave_out(self, beat: Beat, facts: BeatFacts | None) -> None:
        """Leave a mail without the required signature out, or wait for its verification."""
        is_known = facts is not None and self._settings.signed_by not in facts.unverified
        if facts is not None and not is_known and beat.attempts + 1 < MOST_ATTEMPTS:
            self.wait()
            self.judged.append(JudgedBeat(beat.id, beat.received_at, None))
            return
        verdict = BeatVerdict.REFUSED if is_known else BeatVerdict.UNDETERMINED
        self._judge(beat, verdict, facts)
        self._count(beat.received_at, refused=1)
        self._change(refused=self._state.refused + 1)

    def _compare(self, beat: Beat, facts: BeatFacts) -> None:
        """Compare a beat with the ones before it."""
        at = beat.received_at
        self._compare_score(facts, at)
        for key, lost, back in _PASSES:
            if getattr(facts, key):
                self._end(key, back, at)
                self._change(passes={**self._state.passes, key: True})
            elif getattr(facts, key) is False and self._state.passes.get(key):
                self._raise(key, Severity.ERROR, lost, at)
        self._compare_transit(facts, at)

    def _compare_score(self, facts: BeatFacts, at: Instant) -> None:
        score, before = facts.score, self._state.score
        if score is None:
            return
        if before is not None and score <= before - LOWER_SCORE:
            self._raise(
                SCORE,
                Severity.WARNING,
                f"The score of the heartbeat fell from {before / 10:g} to {score / 10:g} of 10.",
                at,
            )
        elif facts.is_complete:
            self._end(SCORE, f"The score of the heartbeat is {score / 10:g} of 10 again.", at)
            self._change(score=score)

    def _compare_transit(self, facts: BeatFacts, at: Instant) -> None:
        limit = self._settings.slow_after
        if not limit or facts.seconds is None or self._reception.may_delay(at):
            return
        if facts.seconds * SECOND <= limit:
            self._end(SLOW, "The heartbeat is no longer slow.", at)
            return
        where = f" It waited longest at {facts.slowest}." if facts.slowest else ""
        taken = write_duration(facts.seconds // 60 * MINUTE)
        sentence = f"The heartbeat was {taken} in transit, by its Received fields.{where}"
        self._raise(SLOW, Severity.WARNING, sentence, at)

    def _raise(self, key: str, severity: Severity, sentence: str, at: Instant) -> None:
        is_new = self._state.alerts.get(key) is not severity
        if is_new:
            self._note(key, sentence, severity, at)
        last = self.events[-1] if self.events else None
        if isinstance(last, Raised) and last.key == key:
            self.events.pop()
            is_new = is_new or last.is_new
        self.events.append(Raised(key, severity.value, sentence, is_new))
        self._change(alerts={**self._state.alerts, key: severity})

    def _end(self, key: str, sentence: str, at: Instant) -> None:
        if key not in self._state.alerts:
            return
        self.events.append(Ended(key, sentence))
        alerts = {name: severity for name, severity in self._state.alerts.items() if name != key}
        self._change(alerts=alerts)
        self._note(key, sentence, Severity.NOTE, at)

    def _note(self, key: str, sentence: str, severity: Severity, at: Instant) -> None:
        self.changes.append(WatchChange(at, "heartbeat", key, None, None, sentence, severity.value))

    def _judge(
        self, beat: Beat, verdict: BeatVerdict, facts: BeatFacts | None, late: int | None = None
    ) -> None:
        self.judged.append(JudgedBeat(beat.id, beat.received_at, verdict, facts, late))

    def _settle(self, settled: Instant, **changes: object) -> None:
        """End the expectation of an occurrence, and expect the next one."""
        is_late_one = settled == self._state.settled and not self._settings.schedule.every
        expected = self._state.expected if is_late_one else self._settings.after(settled)
        self._change(settled=settled, expected=expected, **changes)

    def _restart(self) -> None:
        """Begin anew with a changed schedule. The results that beats are compared with stay."""
        self._end(ARRIVAL, "The schedule of the heartbeat was changed.", self._now)
        settings = self._settings
        self._change(
            since=settings.since,
            settled=settings.since,
            expected=settings.first(),
            misses=0,
            refused=0,
        )

    def _rewind(self) -> None:
        """Read the schedule again, since the clock was set back."""
        state, settings = self._state, self._settings
        latest = Instant(self._now + LEAST_EARLY)
        settled = state.settled if state.settled <= latest else Instant(0)
        if settings.schedule.every:
            settled = Instant(min(settled or self._now, self._now))
        else:
            settled = Instant(max(settled, self._now - settings.grace))
        last_at = None if state.last_at is None else Instant(min(state.last_at, self._now))
        self._change(
            settled=settled, expected=settings.after(settled), extra_at=None, last_at=last_at
        )

    def _count(self, at: Instant, **counts: int) -> None:
        day = self._settings.schedule.day_of(at)
        known = self._days.get(day, DayOfBeats(day))
        added = {name: getattr(known, name) + count for name, count in counts.items()}
        self._days[day] = replace(known, **added)

    def _note_score(self, at: Instant, score: int) -> None:
        day = self._settings.schedule.day_of(at)
        known = self._days.get(day, DayOfBeats(day))
        lowest = score if known.lowest is None else min(known.lowest, score)
        self._days[day] = replace(known, lowest=lowest)

    def _change(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)


def _lateness(late: int, grace: int) -> str:
    if late <= grace:
        return "its mail came on time"
    return f"its mail came {write_duration(late // MINUTE * MINUTE)} after it was due"
