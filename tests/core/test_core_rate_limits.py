"""Rate limits: the arithmetic of fixed windows."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.instants import DAY, MINUTE, Instant, parse_instant
from mailcheck.core.memory.client_limits import DAY_WINDOW, MINUTE_WINDOW, Window, judge_usage

MOMENTS = st.integers(0, 4_000_000_000_000).map(Instant)
WINDOWS = st.sampled_from([MINUTE_WINDOW, DAY_WINDOW])
LIMITS = st.builds(RequestLimits, st.integers(1, 50), st.integers(1, 50))


@given(WINDOWS, MOMENTS)
def test_a_moment_lies_in_its_window(window: Window, now: Instant) -> None:
    """A time belongs to exactly one window, which ends when the next window begins."""
    end = window.reset_at(now)
    assert end - window.length <= now < end
    assert end == (window.index(now) + 1) * window.length
    assert window.index(end) == window.index(now) + 1


@given(WINDOWS, MOMENTS)
def test_retry_after_is_true(window: Window, now: Instant) -> None:
    """After the returned seconds, the next window began at most one second ago."""
    seconds = window.seconds_left(now)
    assert seconds >= 1
    assert window.index(Instant(now + seconds * 1000)) == window.index(now) + 1
    assert now + (seconds - 1) * 1000 < window.reset_at(now)


def test_windows_are_those_of_the_clock() -> None:
    """Windows are clock minutes and UTC days."""
    now = parse_instant("2026-11-21T23:59:59.001Z")
    assert MINUTE_WINDOW.reset_at(now) == parse_instant("2026-11-22T00:00:00Z")
    assert DAY_WINDOW.reset_at(now) == parse_instant("2026-11-22T00:00:00Z")
    assert MINUTE_WINDOW.seconds_left(now) == 1
    assert (MINUTE_WINDOW.length, DAY_WINDOW.length) == (MINUTE, DAY)


@given(st.integers(1, 60), st.integers(1, 60), LIMITS)
def test_a_request_within_both_limits(minute: int, day: int, limits: RequestLimits) -> None:
    """A request is rejected if and only if it exceeds a limit. The daily limit is named first."""
    usage = judge_usage(minute, day, limits)
    assert (usage.exhausted is None) == (minute <= limits.per_minute and day <= limits.per_day)
    assert (usage.exhausted is DAY_WINDOW) == (day > limits.per_day)
    assert 0 <= usage.remaining <= limits.per_minute
    assert 0 <= usage.daily_remaining <= limits.per_day


@given(LIMITS, st.integers(0, 60), st.integers(0, 60))
def test_remaining_requests(limits: RequestLimits, minute: int, day: int) -> None:
    """The number of remaining requests is exact."""
    minute, day = min(minute, limits.per_minute), min(day, limits.per_day)
    usage = judge_usage(minute + 1, day + 1, limits)
    if usage.exhausted is None:
        minute, day = minute + 1, day + 1
    assert usage.remaining == limits.per_minute - minute
    assert usage.daily_remaining == limits.per_day - day
