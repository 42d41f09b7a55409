"""Parsing of instants in many forms, and formatting in one."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.instants import Instant, format_instant, instant_of, parse_instant
from tests.table import rows

NOON = Instant(1_795_262_400_000)
"""2026-11-21T12:00:00Z."""

MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30))


@rows(
    "2026-11-21T12:00:00.000Z",
    "2026-11-21T12:00:00Z",
    "2026-11-21t12:00:00z",
    "2026-11-21T12:00Z",
    "2026-11-21T12Z",
    "2026-11-21 12:00:00",
    "  2026-11-21T12:00:00.000Z  ",
    "2026-11-21T12:00:00 Z",
    "20261121T120000Z",
    "2026-11-21T120000Z",
    "20261121T12:00:00Z",
    "2026-11-21T13:30:00+01:30",
    "2026-11-21T13:30:00+0130",
    "2026-11-21T13:00:00+01",
    "2026-11-21T13:00:00 +01:00",
    "2026-11-21T04:00:00-08:00",
    "2026-11-21T12:00:00-00:00",
    "2026-11-22T02:00:00+14:00",
    "2026-11-21T12:00:00,000Z",
    "2026-11-21T12:00:00.000999Z",
)
def test_the_same_moment_in_many_spellings(text: str) -> None:
    """Every ISO 8601 form of a moment, with or without an offset, is parsed."""
    assert parse_instant(text) == NOON


@rows(("2026-11-21T12:00:00 02:00", 2), ("2026-11-21T12:00:00.000 0530", 5.5))
def test_a_plus_that_was_not_encoded(text: str, hours: float) -> None:
    """A space before an offset is a plus sign that was not percent-encoded."""
    assert parse_instant(text) == NOON - hours * 3_600_000


@rows(
    "",
    "now",
    "2026-11-21",
    "1795262400",
    "12:00:00",
    "2026-11-21T",
    "2026-11-21T25:00:00Z",
    "2026-11-21T12:60:00Z",
    "2026-13-21T12:00:00Z",
    "2026-02-30T12:00:00Z",
    "0000-01-01T00:00:00Z",
    "2026-11-21T12:00:00+99:99",
    "2026-11-21T12:00:00+",
    "2026-11-21T12:00:00 2",
    "2026-11-21T12:00.5Z",
    "2026-11-21T12:00:00ZZ",
    "2026-11-21T12:00:00Z+01:00",
    "2026-11-21T12:00:00UTC",
    "2026-11-21T12:00:00\x00Z",
    "Sat, 21 Nov 2026 12:00:00 +0000",
    "٢٠٢٦-11-21T12:00:00Z",
)
def test_invalid_moments(text: str) -> None:
    """Anything but a date with a time of day is rejected."""
    with pytest.raises(ValueError):  # noqa: PT011 - some of the words are the standard library's
        parse_instant(text)


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_a_moment_survives_its_offset(moment: datetime, minutes: int) -> None:
    """A moment in any time zone is parsed to the same milliseconds."""
    local = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert parse_instant(local.isoformat()) == (local - epoch) // timedelta(milliseconds=1)


@given(MOMENTS)
def test_a_written_moment_reads_as_itself(moment: datetime) -> None:
    """The text has a fixed width, three decimals and Z, and is parsed to the same moment."""
    instant = parse_instant(moment.isoformat())
    text = format_instant(instant)
    assert len(text) == len("2026-11-21T12:00:00.000Z")
    assert text.endswith("Z")
    assert text[-5] == "."
    assert parse_instant(text) == instant


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_written_moments_sort_as_text(number: int) -> None:
    """Texts of moments sort by time."""
    earlier, later = Instant(number), Instant(min(number + 1, 253_402_300_799_999))
    assert format_instant(earlier) <= format_instant(later)


def test_a_clock_reading_is_cut_to_milliseconds() -> None:
    """A clock time is rounded down to milliseconds."""
    assert instant_of(1_795_262_400.0) == NOON
    assert instant_of(1_795_262_400.9999) == NOON + 999


@rows("9" * 100_000, "2026-11-21T12:00:00." + "0" * 100_000 + "x")
def test_long_nonsense(text: str) -> None:
    """Long invalid text is rejected in linear time."""
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_instant(text)
