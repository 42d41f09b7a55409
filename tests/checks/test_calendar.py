"""Calendar invitations: what is read from iCalendar parts."""

from datetime import UTC, datetime

from mailcheck.checks.content.calendar import (
    MAX_ATTENDEES,
    MAX_CALENDAR,
    EventTime,
    read_invitation,
)
from tests.table import rows


def calendar(*lines: str, method: str = "REQUEST") -> bytes:
    """Return a calendar with one event."""
    begin = ["BEGIN:VCALENDAR", "VERSION:2.0", f"METHOD:{method}", "BEGIN:VEVENT"]
    return "\r\n".join([*begin, *lines, "END:VEVENT", "END:VCALENDAR", ""]).encode()


def test_an_invitation_is_read() -> None:
    """Folded lines, escapes, quoted names and answers are read; those of an alarm are not."""
    found = read_invitation(
        calendar(
            "DTSTART;TZID=Europe/Berlin:20261201T100000",
            "DTEND:20261201T103000Z",
            "SUMMARY:Plan\\, part 2",
            " \\; all\\nof it",
            'ORGANIZER;CN="Ann, A.";ROLE=CHAIR:mailto:ann@example.com',
            "ATTENDEE;PARTSTAT=ACCEPTED:MAILTO:bob@example.com",
            "ATTENDEE;PARTSTAT=NEEDS-ACTION;CN=Eve:mailto:eve@example.com",
            "BEGIN:VALARM",
            "SUMMARY:Alarm",
            "END:VALARM",
            "LOCATION:Room 4",
            "RRULE:FREQ=DAILY",
        )
    )
    assert found is not None
    assert (found.title, found.summary) == ("Invitation", "Plan, part 2; all of it")
    assert found.starts == EventTime(None, "2026-12-01 10:00", "Europe/Berlin")
    moment = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)
    assert found.ends == EventTime(moment, "2026-12-01 10:30", "UTC")
    assert (found.place, found.repeats) == ("Room 4", True)
    assert found.organizer == "Ann, A. <ann@example.com>"
    assert [(one.name, one.answer) for one in found.attendees] == [
        ("bob@example.com", "accepted"),
        ("Eve <eve@example.com>", ""),
    ]


@rows(
    ("CANCEL", "", "Cancelled event"),
    ("REQUEST", "STATUS:CANCELLED", "Cancelled event"),
    ("reply", "", "Reply to an invitation"),
    ("X-OTHER", "", "Event"),
)
def test_the_title_says_what_is_asked(method: str, status: str, title: str) -> None:
    """The title is that of the method, and a cancelled event is one in any method."""
    found = read_invitation(calendar(*filter(None, [status]), method=method))
    assert found is not None
    assert found.title == title


@rows("20261301", "2026-12-01", "", "20261201T250000")
def test_an_invalid_time_is_left_out(value: str) -> None:
    """An event with a time that cannot be read has none."""
    found = read_invitation(calendar(f"DTSTART:{value}", "SUMMARY:x"))
    assert found is not None
    assert (found.starts, found.summary) == (None, "x")


def test_a_whole_day_has_no_time() -> None:
    """A date without a time is shown as it is."""
    found = read_invitation(calendar("DTSTART;VALUE=DATE:20261224"))
    assert found is not None
    assert found.starts == EventTime(None, "2026-12-24")


@rows(b"", b"\xff\xfe", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR", b"BEGIN:VEVENT\r\nSUMMARY:x")
def test_other_data_is_no_invitation(data: bytes) -> None:
    """Data without a complete event is no invitation."""
    assert read_invitation(data) is None


def test_a_huge_calendar_is_cut() -> None:
    """The number of attendees and the size of a calendar are limited."""
    people = ["ATTENDEE:mailto:a@example.com"] * (MAX_ATTENDEES + 1)
    found = read_invitation(calendar(*people))
    assert found is not None
    assert len(found.attendees) == MAX_ATTENDEES
    assert read_invitation(calendar("X:" + "x" * MAX_CALENDAR)) is None
