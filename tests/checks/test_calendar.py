"""Calendar invitations: what is read from iCalendar parts."""

from datetime import UTC, datetime

from mailcheck.checks.content.calendar import (
    MAX_ATTENDEES,
    MAX_CALENDAR,
    EventTime,
    read_invitation,
)
from tests.linear import assert_linear
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


@rows(
    ("DTSTART:20261201T100000Z", "PT1H30M", "2026-12-01 11:30"),
    ("DTSTART;TZID=Europe/Berlin:20261231T230000", "PT90M", "2027-01-01 00:30"),
    ("DTSTART:20261201T100000", "P1DT2H", "2026-12-02 12:00"),
    ("DTSTART:20261201T100000", "P1W", "2026-12-08 10:00"),
    ("DTSTART:20261201T100000", "PT0S", "2026-12-01 10:00"),
    ("DTSTART;VALUE=DATE:20261201", "P2D", "2026-12-03"),
    ("DTSTART:20261201T100000", "-PT1H", None),
    ("DTSTART:20261201T100000", "1 hour", None),
    ("DTSTART:20261201T100000", "P999999W", None),
    ("X:", "PT1H", None),
)
def test_an_event_may_have_a_duration(starts: str, duration: str, ends: str | None) -> None:
    """The end is the start and the duration, in the same zone (RFC 5545 3.3.6)."""
    found = read_invitation(calendar(starts, f"DURATION:{duration}"))
    assert found is not None
    assert (found.ends.text if found.ends else None) == ends
    if found.ends is not None and found.starts is not None:
        assert found.ends.zone == found.starts.zone
    given = read_invitation(calendar(starts, f"DURATION:{duration}", "DTEND:20270101T000000Z"))
    assert given is not None
    assert given.ends is not None
    assert given.ends.text == "2027-01-01 00:00"


@rows("", "REQUEST", "reply")
def test_the_method_may_be_in_the_media_type_alone(method: str) -> None:
    """The method of the object counts, or else the parameter (RFC 6047 2.4)."""
    data = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\nEND:VCALENDAR"
    titles = {"": "Event", "REQUEST": "Invitation", "reply": "Reply to an invitation"}
    found = read_invitation(data, method=method)
    own = read_invitation(data.replace(b"BEGIN:VEVENT", b"METHOD:CANCEL\nBEGIN:VEVENT"), "", method)
    assert found is not None
    assert own is not None
    assert (found.title, own.title) == (titles[method], "Cancelled event")


@rows(
    ("utf-8", "utf-8", "\r\n "),
    ("", "utf-8", "\r\n\t"),
    ("", "utf-8", "\n "),
    ("iso-8859-1", "iso-8859-1", "\r\n "),
    ("koi8-r", "koi8-r", "\r\n "),
    ("shift_jis", "shift_jis", "\r\n "),
    ("us-ascii", "utf-8", "\r\n "),
)
def test_lines_are_unfolded_before_they_are_decoded(label: str, charset: str, fold: str) -> None:
    """A fold within a character costs nothing, in the charset of the media type."""
    text = {"koi8-r": "Встреча", "shift_jis": "会議"}.get(charset, "Übergabe")
    octets = text.encode(charset)
    folded = fold.encode().join(octets[at : at + 1] for at in range(len(octets)))
    found = read_invitation(calendar("SUMMARY:X").replace(b"X", folded), label)
    assert found is not None
    assert found.summary == text


@rows("utf-16", "utf-16-le")
def test_a_calendar_may_be_in_utf_16(charset: str) -> None:
    """Lines of wide characters are decoded before they are unfolded."""
    found = read_invitation(calendar("SUMMARY:Über", " gabe").decode().encode(charset), charset)
    assert found is not None
    assert found.summary == "Übergabe"


@rows(*"\u2028\u2029\x85\x0b\x0c\x1c\x1e")
def test_only_line_breaks_end_a_line(mark: str) -> None:
    """Other marks belong to the value."""
    found = read_invitation(calendar(f"SUMMARY:one{mark}two", "LOCATION:x"))
    assert found is not None
    assert (found.summary, found.place) == ("one two", "x")


def test_a_vcalendar_is_read() -> None:
    """Values of version 1.0 are quoted-printable, in a charset of their own."""
    found = read_invitation(
        calendar(
            "DTSTART:20261201T100000Z",
            "SUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:=DCber=",
            "gabe =",
            "im Haus",
            "LOCATION;QUOTED-PRINTABLE:R=C3=A4ume=0D=0A 4",
            "ATTENDEE;ROLE=ORGANIZER:Ann <ann@example.com>",
            "ATTENDEE;STATUS=ACCEPTED:Bob <bob@example.com>",
        ).replace(b"VERSION:2.0", b"VERSION:1.0")
    )
    assert found is not None
    assert (found.summary, found.place) == ("Übergabe im Haus", "Räume 4")
    assert found.organizer == "Ann <ann@example.com>"
    assert [(one.name, one.answer) for one in found.attendees] == [
        ("Bob <bob@example.com>", "accepted")
    ]


@rows("A;B", "A;B=", 'A;B="', ";", "A:=\r\n", "\r\n ", "A;QUOTED-PRINTABLE:=\r\n", "P1", "\u2028")
def test_a_hostile_calendar_takes_linear_time(piece: str) -> None:
    """A repeated piece is read in one pass."""
    before = b"BEGIN:VEVENT\r\nSUMMARY;ENCODING=QUOTED-PRINTABLE:=\r\n"
    assert_linear(read_invitation, piece.encode(), before)


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
