"""When the mail of a heartbeat is due, and which problems begin and end."""

from datetime import UTC, datetime
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from mailcheck.checks.watching.heartbeats import (
    LEAST_ALLOWANCE,
    MOST_ALLOWANCE,
    MOST_ATTEMPTS,
    MOST_MISSES,
    RETRY,
    STORING,
    BeatsEvaluation,
    BeatsState,
    Reception,
    read_beats_state,
    write_beats_state,
)
from mailcheck.checks.watching.transit import Transit, read_transit
from mailcheck.core.domains.heartbeats import (
    Beat,
    BeatFacts,
    BeatId,
    BeatVerdict,
    HeartbeatSettings,
    HeartbeatState,
    Schedule,
    checked_heartbeat,
    parse_days,
    parse_heartbeat_name,
)
from mailcheck.core.domains.watches import Ended, Raised
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import DAY, HOUR, MINUTE, Instant, parse_instant
from tests.table import rows

BERLIN = "Europe/Berlin"
DAILY = Schedule(at=6 * 60, zone=BERLIN)
GOOD = BeatFacts(score=95, is_complete=True, spf=True, dkim=True, dmarc=True, tls=True, seconds=4)


def at(text: str) -> Instant:
    """Return an instant of November 2026 in UTC, such as ``10 05:00``."""
    return parse_instant(f"2026-11-{text}Z".replace(" ", "T"))


class Run:
    """A heartbeat, evaluated again and again; what has happened is kept."""

    def __init__(self, settings: HeartbeatSettings, reception: Reception | None = None) -> None:
        self.settings = settings
        self.reception = reception or Reception()
        self.state: BeatsState | None = None
        self.events: list[Raised | Ended] = []
        self.verdicts: list[BeatVerdict | None] = []
        self.days: dict[Instant, tuple[int, int, int]] = {}
        self.next = Instant(0)

    def look(self, now: Instant, *beats: Beat, facts: BeatFacts | None = GOOD) -> list[str]:
        """Evaluate at a time with these mails; return the keys of new and ended problems."""
        evaluation = BeatsEvaluation(self.state, self.settings, self.reception, now)
        for beat in beats:
            evaluation.take(beat, facts if evaluation.wants_facts(beat) else None)
        self.next = evaluation.finish()
        self.state = read_beats_state(write_beats_state(evaluation.state))
        assert self.state == evaluation.state
        self.events += evaluation.events
        self.verdicts += [judged.verdict for judged in evaluation.judged]
        for day in evaluation.days:
            on_time, late, missing = self.days.get(day.day, (0, 0, 0))
            self.days[day.day] = on_time + day.on_time, late + day.late, missing + day.missing
        return [
            ("-" if isinstance(event, Ended) else "+") + event.key
            for event in evaluation.events
            if isinstance(event, Ended) or event.is_new
        ]

    def beat(self, when: Instant, facts: BeatFacts | None = GOOD) -> list[str]:
        """Let a mail arrive, and evaluate at once."""
        return self.look(when, beat(when), facts=facts)

    def now_is(self) -> HeartbeatState:
        """Return whether beats come."""
        assert self.state is not None
        return self.state.state

    @property
    def last(self) -> str:
        """The sentence of the last event."""
        return self.events[-1].sentence


def beat(when: Instant, attempts: int = 0) -> Beat:
    """Return a mail that came at a time."""
    return Beat(BeatId(f"b{when}"), DeliveryId("d"), when, attempts)


def daily(**settings: object) -> HeartbeatSettings:
    """Return the settings of a daily heartbeat that begins on 10 November at noon."""
    return replace(HeartbeatSettings(DAILY, since=at("10 12:00")), **settings)


@rows(
    ("2026-03-27T12:00:00Z", "2026-03-28T01:30:00Z"),  # the day before summer time
    ("2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"),  # 02:30 is skipped
    ("2026-03-29T12:00:00Z", "2026-03-30T00:30:00Z"),
    ("2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"),  # 02:30 comes twice
    ("2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
)
def test_a_time_of_day_follows_the_clocks_of_its_zone(after: str, due: str) -> None:
    """A time of day is due once on each day, also on those on which clocks are changed."""
    schedule = Schedule(at=2 * 60 + 30, zone=BERLIN)
    assert schedule.after(parse_instant(after), MINUTE).due == parse_instant(due)


def test_a_skipped_time_counts_from_the_change_on() -> None:
    """Cron runs a job of a skipped time right after the change: its beat is not too early."""
    found = Schedule(at=2 * 60 + 30, zone=BERLIN).after(at("10 00:00"), MINUTE)
    assert found.due - found.opens == 10 * MINUTE
    skipped = Schedule(at=2 * 60 + 30, zone=BERLIN).after(
        parse_instant("2026-03-28T12:00:00Z"), MINUTE
    )
    assert skipped.opens <= parse_instant("2026-03-29T01:00:00Z") < skipped.due


@rows(*product([BERLIN, "America/St_Johns", "Pacific/Apia", "UTC"], [0, 90, 150, 179, 1_439]))
def test_each_day_of_a_year_has_one_occurrence(zone: str, minute: int) -> None:
    """Occurrences follow each other by one local day for a whole year, at their local time."""
    schedule, now = Schedule(at=minute, zone=zone), parse_instant("2026-01-01T12:00:00Z")
    days = []
    for _ in range(365):
        now = schedule.after(now, MINUTE).due
        local = datetime.fromtimestamp(now / 1_000, UTC).astimezone(ZoneInfo(zone))
        days.append(local.date().toordinal())
        shown = local.hour * 60 + local.minute
        assert shown == minute or abs(shown - minute) in (30, 60)
    assert days == list(range(days[0], days[0] + 365))


def test_days_of_the_week_and_intervals() -> None:
    """A schedule may name days of the week; an interval begins with the last beat."""
    weekdays = Schedule(at=0, zone="UTC", days=parse_days(["mon", "Friday"]))
    monday = weekdays.after(at("12 12:00"), MINUTE).due  # a Thursday
    assert [monday, weekdays.after(monday, MINUTE).due] == [at("13 00:00"), at("16 00:00")]
    assert str(weekdays) == "Mon, Fri at 00:00 UTC"
    assert str(DAILY) == "every day at 06:00 Europe/Berlin"
    interval = Schedule(every=90 * MINUTE)
    assert interval.after(at("10 12:00"), MINUTE).due == at("10 13:30")
    assert str(interval) == "every 90 minutes"
    assert parse_days(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]) == ()


@rows(
    (Schedule(every=MINUTE), "everyMinutes", "from 5 to"),
    (Schedule(zone="Europe/Berlni"), "timeZone", "did you mean Europe/Berlin?"),
    (Schedule(zone="../../etc/passwd"), "timeZone", "must be a time zone"),
    (Schedule(zone=""), "timeZone", "must be a time zone"),
)
def test_a_wrong_schedule_names_the_parameter(settings: Schedule, name: str, says: str) -> None:
    """A schedule that cannot be kept is refused with the name of the parameter."""
    with pytest.raises(InvalidParameter, match=says) as caught:
        checked_heartbeat(HeartbeatSettings(settings))
    assert caught.value.name == name


@rows("", "-a", "a.b", "a b", "x" * 33, "bäckup")
def test_a_name_is_a_plain_word(name: str) -> None:
    """A name has letters, digits and hyphens only, so it is no domain and fits into an address."""
    with pytest.raises(InvalidParameter):
        parse_heartbeat_name(name)
    assert parse_heartbeat_name(" Nightly-Backup ") == "nightly-backup"


def test_a_beat_on_time_raises_nothing() -> None:
    """Beats within their grace, early ones too, keep a heartbeat on time."""
    run = Run(daily())
    assert run.look(at("10 12:00")) == []
    assert run.now_is() is HeartbeatState.NEW
    assert run.beat(at("11 05:10")) == run.beat(at("12 04:55")) == []
    assert run.verdicts == [BeatVerdict.ON_TIME] * 2
    assert run.now_is() is HeartbeatState.ON_TIME
    assert run.days == {at("11 00:00"): (1, 0, 0), at("12 00:00"): (1, 0, 0)}


def test_late_missing_and_back() -> None:
    """A heartbeat is late after its grace, missing after the next one, and back with a beat."""
    run = Run(daily())
    run.look(at("10 12:00"))
    assert run.next == at("11 05:30") + STORING + 1
    assert run.look(at("11 05:30")) == []
    assert run.look(run.next) == ["+arrival"]
    assert run.last == (
        "The heartbeat is late: its mail was due at 06:00 Europe/Berlin on 11 November and has not "
        "come within 30 minutes."
    )
    assert run.look(at("11 23:00")) == []
    assert run.look(at("12 06:00")) == ["+arrival"]
    assert isinstance(run.events[-1], Raised)
    assert run.events[-1].severity == "error"
    assert "2 mails in a row have not come. It has never come." in run.last
    assert run.look(at("13 06:00")) == []
    assert run.beat(at("13 08:00")) == ["-arrival"]
    assert run.last == "The heartbeat is back: its mail came 3 hours after it was due."
    assert run.verdicts == [BeatVerdict.LATE]
    assert list(run.days.values()) == [(0, 0, 1), (0, 0, 1), (0, 1, 0)]
    assert run.beat(at("14 05:00")) == []
    assert run.verdicts[-1] is BeatVerdict.ON_TIME


def test_a_late_and_its_back_in_one_evaluation_keep_their_order() -> None:
    """A mail that was late before the evaluation raises the problem and ends it, in this order."""
    run = Run(daily())
    run.look(at("10 12:00"))
    assert run.look(at("11 07:00"), beat(at("11 06:00"))) == ["+arrival", "-arrival"]


def test_a_mail_between_occurrences_does_not_count() -> None:
    """A test by hand at noon does not stand for the beat of the next morning."""
    run = Run(daily())
    run.look(at("10 12:00"))
    assert run.beat(at("10 18:00")) == []
    assert run.verdicts == [BeatVerdict.EXTRA]
    assert run.look(at("11 06:00")) == ["+arrival"]


def test_an_interval_counts_from_the_last_beat() -> None:
    """A heartbeat of every hour is late an hour and its grace after the last beat."""
    settings = HeartbeatSettings(Schedule(every=HOUR), grace=5 * MINUTE, since=at("10 12:00"))
    run = Run(settings)
    assert run.beat(at("10 12:50")) == []
    assert run.next == at("10 13:55") + STORING + 1
    assert run.look(at("10 12:55"), beat(at("10 12:55"))) == []
    assert run.verdicts == [BeatVerdict.ON_TIME, BeatVerdict.EXTRA]
    assert run.look(at("10 13:56")) == ["+arrival"]
    assert run.look(at("10 14:56")) == ["+arrival"]
    assert run.look(at("10 15:56")) == []
    assert run.beat(at("10 16:00")) == ["-arrival"]
    assert run.next == at("10 17:05") + STORING + 1


def test_the_first_mail_of_an_interval_counts_at_once() -> None:
    """A mail right after a heartbeat is created, as to try it, is its first beat."""
    run = Run(HeartbeatSettings(Schedule(every=HOUR), grace=5 * MINUTE, since=at("10 12:00")))
    assert run.beat(at("10 12:01")) == []
    assert run.look(at("10 12:02"), beat(at("10 12:02"))) == []
    assert run.verdicts == [BeatVerdict.ON_TIME, BeatVerdict.EXTRA]
    assert run.next == at("10 13:06") + STORING + 1


def test_a_year_without_a_beat_is_evaluated_at_once() -> None:
    """A long time is not recorded occurrence by occurrence, but all of them are counted."""
    settings = HeartbeatSettings(Schedule(every=5 * MINUTE), MINUTE, since=at("10 12:00"))
    run = Run(settings)
    run.look(at("10 12:00"))
    assert run.look(Instant(at("10 12:00") + 360 * DAY)) == ["+arrival"]
    assert run.state is not None
    assert run.state.misses == 360 * 288 - 1
    assert sum(missing for _, _, missing in run.days.values()) <= MOST_MISSES + 1


@rows(1, 30, 100)
def test_no_alarm_while_senders_may_retry_after_a_downtime(hours: int) -> None:
    """Mail that was due while no daemon ran may come when its sender tries again."""
    up = Instant(at("11 04:00") + hours * HOUR)
    down = at("11 03:50")
    run = Run(daily())
    run.look(down)
    run.reception = Reception(down, up)
    late = [
        beat(Instant(up + 14 * MINUTE + number)) for number, _ in enumerate(range(0, hours, 24))
    ]
    assert run.look(Instant(up + 15 * MINUTE), *late) == []
    assert run.verdicts == [BeatVerdict.ON_TIME] * len(late)


def test_an_alarm_is_not_lost_by_a_downtime() -> None:
    """If no mail comes after the extra time, the heartbeat is late all the same."""
    run = Run(daily())
    run.look(at("11 03:50"))
    run.reception = Reception(at("11 03:50"), at("11 05:40"))
    allowed = run.reception.allowance
    assert LEAST_ALLOWANCE < allowed == MOST_ALLOWANCE
    assert run.look(Instant(at("11 05:40") + allowed + STORING)) == []
    assert run.look(Instant(at("11 05:40") + allowed + STORING + 1)) == ["+arrival"]


def test_a_gap_long_before_changes_nothing() -> None:
    """A downtime in the night does not delay the alarm of the morning."""
    run = Run(daily(), Reception(at("10 22:00"), at("10 22:10")))
    run.look(at("10 22:10"))
    assert run.next == at("11 05:30") + STORING + 1


def test_a_clock_that_is_set_ahead_and_back_raises_no_alarm() -> None:
    """A day that was skipped by mistake is expected again after the clock was set right."""
    run = Run(daily())
    run.beat(at("11 05:00"))
    run.look(at("11 12:00"))
    run.reception = Reception(at("11 12:00"), at("13 12:00"))
    assert run.look(at("13 12:10")) == []
    assert run.look(at("11 12:15")) == []
    assert run.next == at("12 05:30") + STORING + 1
    assert run.look(at("12 05:31")) == ["+arrival"]


def test_beats_of_a_clock_that_was_behind_are_not_lost() -> None:
    """A mail that came too early by a slow clock stands for its occurrence when that is set."""
    run = Run(daily())
    assert run.beat(at("10 19:00")) == []  # at 05:00 of the next day
    run.reception = Reception(at("11 00:00"), at("11 10:00"))
    assert run.look(at("11 13:00")) == []
    assert run.look(at("12 06:00")) == ["+arrival"]


def test_a_satisfied_beat_stays_so_after_a_small_step_back() -> None:
    """A clock that is set back by a minute does not expect the same beat again."""
    run = Run(daily())
    run.beat(at("11 05:00"))
    assert run.look(at("11 04:58")) == []
    assert run.next == at("12 05:30") + STORING + 1


@rows(
    (replace(GOOD, score=90), "score"),
    (replace(GOOD, spf=False), "spf"),
    (replace(GOOD, dkim=False), "dkim"),
    (replace(GOOD, dmarc=False), "dmarc"),
    (replace(GOOD, tls=False), "tls"),
    (replace(GOOD, seconds=601, slowest="mx1.example.com"), "slow"),
)
def test_a_beat_that_became_worse_raises_one_alert(worse: BeatFacts, key: str) -> None:
    """What was good before and is not now is one alert, until it is good again."""
    run = Run(daily())
    run.beat(at("11 05:00"))
    assert run.beat(at("12 05:00"), worse) == [f"+{key}"]
    assert run.beat(at("13 05:00"), worse) == []
    assert run.beat(at("14 05:00")) == [f"-{key}"]


@rows(
    BeatFacts(),
    replace(GOOD, spf=None, dkim=None, dmarc=None, tls=None, score=None, seconds=None),
    replace(GOOD, score=92),
)
def test_an_undetermined_result_is_no_change(facts: BeatFacts) -> None:
    """What could not be determined, and a score that is a little lower, raise nothing."""
    run = Run(daily())
    run.beat(at("11 05:00"))
    assert run.beat(at("12 05:00"), facts) == []


def test_what_never_was_good_raises_nothing() -> None:
    """The first beats set the standard: a heartbeat without DKIM does not lose it."""
    run = Run(daily())
    bad = BeatFacts(score=20, is_complete=True, spf=False, dkim=False, dmarc=False, tls=False)
    assert run.beat(at("11 05:00"), bad) == run.beat(at("12 05:00"), bad) == []


def test_an_incomplete_score_is_not_compared_with() -> None:
    """A score that a missing answer made too good does not make the next one look worse."""
    run = Run(daily())
    run.beat(at("11 05:00"), replace(GOOD, score=100, is_complete=False))
    assert run.beat(at("12 05:00"), replace(GOOD, score=80)) == []


def test_mail_in_a_queue_because_of_a_downtime_is_not_slow() -> None:
    """A sender that had to wait for this service is not slow."""
    run = Run(daily(), Reception(at("11 03:00"), at("11 05:00")))
    assert run.beat(at("11 05:10"), replace(GOOD, seconds=7_000)) == []
    assert run.beat(at("12 05:10"), replace(GOOD, seconds=7_000)) == ["+slow"]


def test_forged_beats_do_not_count() -> None:
    """Only a valid signature of the required domain makes a mail a beat."""
    run = Run(daily(signed_by="example.com"))
    forged = replace(GOOD, signed_by=("evil.example",))
    run.look(at("10 12:00"))
    assert run.beat(at("11 05:00"), forged) == []
    assert run.look(at("11 05:31")) == ["+arrival"]
    assert run.last.endswith("1 mail without a valid DKIM signature of example.com did not count.")
    assert run.beat(at("11 05:40"), replace(GOOD, signed_by=("example.com",))) == ["-arrival"]
    assert run.verdicts == [BeatVerdict.REFUSED, BeatVerdict.LATE]


def test_a_copy_of_a_beat_does_not_count() -> None:
    """A mail that is sent again has a valid signature, and is no new beat."""
    run = Run(daily(signed_by="example.com"))
    signed = replace(GOOD, signed_by=("example.com",), signatures=("one",))
    run.beat(at("11 05:00"), signed)
    assert run.beat(at("12 05:00"), signed) == []
    assert run.beat(at("12 05:10"), replace(signed, signatures=("two",))) == []
    assert run.verdicts == [BeatVerdict.ON_TIME, BeatVerdict.REFUSED, BeatVerdict.ON_TIME]


def test_a_signature_that_cannot_be_verified_yet_is_looked_at_again() -> None:
    """A failure of DNS is neither a forged beat nor a late one; it ends after some attempts."""
    run = Run(daily(signed_by="example.com"))
    unknown = replace(GOOD, unverified=("example.com",))
    assert run.look(at("11 05:30"), beat(at("11 05:29")), facts=unknown) == []
    assert run.next == at("11 05:30") + RETRY
    assert run.look(at("11 05:32"), beat(at("11 05:29"), 1), facts=unknown) == []
    signed = replace(GOOD, signed_by=("example.com",))
    assert run.look(at("11 05:34"), beat(at("11 05:29"), 2), facts=signed) == []
    assert run.verdicts == [None, None, BeatVerdict.ON_TIME]
    last = beat(at("12 05:20"), MOST_ATTEMPTS - 1)
    assert run.look(at("12 05:31"), last, facts=unknown) == ["+arrival"]
    assert run.verdicts[-1] is BeatVerdict.UNDETERMINED


def test_a_changed_schedule_begins_anew() -> None:
    """Neither a pause nor another schedule makes the beats of before late."""
    run = Run(daily())
    run.look(at("11 06:00"))
    run.settings = daily(since=at("12 12:00"), grace=HOUR)
    assert run.look(at("12 12:00")) == ["-arrival"]
    assert run.next == at("13 06:00") + STORING + 1


RECEIVED = (
    b"Received: from b (b [192.0.2.1])\r\n\tby mx.example.net with ESMTPS id 2;"
    b" Tue, 10 Nov 2026 12:09:00 +0000\r\n"
    b"Received: by relay.example.com (Postfix, from userid 0)\r\n\tid 1;"
    b" Tue, 10 Nov 2026 13:00:00 +0100\r\n\r\n"
)


def test_the_time_in_transit_is_that_of_the_received_fields() -> None:
    """The time counts from the first field, and names the host that had the mail for longest."""
    assert read_transit(RECEIVED, at("10 12:10")) == Transit(600, "relay.example.com", 540)
    assert read_transit(RECEIVED, at("10 12:30")) == Transit(1_800, "mx.example.net", 1_260)
    behind = read_transit(RECEIVED, at("10 11:00"))
    assert behind is not None
    assert behind.seconds == 0  # a clock is wrong


@rows(b"", b"Received: nonsense\r\n\r\n", b"Subject: x\r\n\r\n", b"\xff")
def test_a_mail_without_dates_has_no_time_in_transit(raw: bytes) -> None:
    """Without a readable Received field the time is unknown, not zero."""
    assert read_transit(raw, at("10 12:00")) is None
