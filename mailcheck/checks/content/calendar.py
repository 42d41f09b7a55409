"""Calendar invitations: the first event of an iCalendar (RFC 5545, RFC 5546) or a vCalendar."""

import binascii
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from mailcheck.checks.content.charsets import find_codec
from mailcheck.checks.content.decoding import decode_text

CALENDAR_TYPES = frozenset(
    ("text/calendar", "application/ics", "text/vcalendar", "text/x-vcalendar")
)
"""Media types of calendar parts. The last two are of vCalendar 1.0, which old programs send."""

MAX_CALENDAR = 256 * 1024
"""Maximum number of bytes of a calendar part that are read."""

MAX_ATTENDEES = 100
"""Maximum number of attendees that are read."""

METHODS = {
    "REQUEST": "Invitation",
    "PUBLISH": "Event",
    "REPLY": "Reply to an invitation",
    "CANCEL": "Cancelled event",
    "COUNTER": "Counter-proposal",
    "DECLINECOUNTER": "Declined counter-proposal",
    "REFRESH": "Request for the event",
    "ADD": "Additional dates",
}
"""The methods of RFC 5546 1.4, with their titles."""

ANSWERS = {
    "ACCEPTED": "accepted",
    "DECLINED": "declined",
    "TENTATIVE": "tentative",
    "DELEGATED": "delegated",
}
"""Values of PARTSTAT (RFC 5545 3.2.12). An attendee with another value has not answered."""


QUOTED = "QUOTED-PRINTABLE"

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_FOLD = re.compile(rb"(?:\r*\n|\r)[ \t]")
_LINE_END = re.compile(r"\r*\n|\r")
_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9-]++)"
    r'(?P<parameters>(?>(?:;[^":;=]++(?>(?:=(?:"[^"]*+"|[^":;]*+))?))*)):(?P<value>.*)',
    re.DOTALL,
)
_PARAMETER = re.compile(r';([^":;=]+)(?:=("[^"]*"|[^":;]*))?')


class EventTime(Struct, frozen=True):
    """The begin or end of an event.

    A moment in UTC, or the date and time of a time zone, which is empty for local time. Without a
    time it is a whole day.
    """

    moment: datetime | None
    text: str
    zone: str = ""


class Attendee(Struct, frozen=True):
    """A person of an event. ``answer`` is empty if the person has not answered."""

    name: str
    answer: str


class Invitation(Struct, frozen=True):
    """An event in a mail. ``title`` is the kind of the mail; unknown parts are empty."""

    title: str
    summary: str
    starts: EventTime | None
    ends: EventTime | None
    place: str
    organizer: str
    attendees: tuple[Attendee, ...]
    repeats: bool


class _Property(Struct, frozen=True):
    name: str
    parameters: dict[str, str]
    value: str


def read_invitation(data: bytes, charset: str = "", method: str = "") -> Invitation | None:
    """Return the first event of an iCalendar object, or `None` if there is no event.

    :param charset: label of the media type, or empty.
    :param method: the method of the media type (RFC 6047 2.4), for an object without one.
    """
    said = ""
    event: list[_Property] = []
    inside = 0
    for line in _properties(data, charset):
        if line.name == "METHOD":
            said = said or line.value
        elif (line.name, line.value.upper()) == ("BEGIN", "VEVENT"):
            inside = 1
        elif line.name == "BEGIN" and inside:
            inside += 1  # an alarm within the event
        elif line.name == "END" and inside:
            inside -= 1
            if not inside:
                return _invitation((said or method).upper(), event)
        elif inside == 1:
            event.append(line)
    return None


def _invitation(method: str, event: list[_Property]) -> Invitation:
    first = {line.name: line for line in reversed(event)}

    def text(name: str) -> str:
        return _unescape(first[name].value) if name in first else ""

    people = [line for line in event if line.name == "ATTENDEE"][:MAX_ATTENDEES]
    hosts = [line for line in event if line.name == "ORGANIZER" or _is_organizer(line)]
    starts, ends = _time(first.get("DTSTART")), _time(first.get("DTEND"))
    if ends is None and starts is not None and "DURATION" in first:
        ends = _end_after(starts, first["DURATION"].value)
    is_cancelled = text("STATUS").upper() == "CANCELLED"
    return Invitation(
        METHODS["CANCEL"] if is_cancelled else METHODS.get(method, "Event"),
        text("SUMMARY"),
        starts,
        ends,
        text("LOCATION"),
        organizer=_person(hosts[0]) if hosts else "",
        attendees=tuple(
            Attendee(_person(person), ANSWERS.get(_answer(person).upper(), ""))
            for person in people
            if not _is_organizer(person)
        ),
        repeats="RRULE" in first or "RDATE" in first,
    )


def _is_organizer(one: _Property) -> bool:
    """Return whether an attendee of a vCalendar is the organizer."""
    return one.name == "ATTENDEE" and one.parameters.get("ROLE", "").upper() == "ORGANIZER"


def _answer(attendee: _Property) -> str:
    parameters = attendee.parameters
    return parameters.get("PARTSTAT", "") or parameters.get("STATUS", "")  # vCalendar has STATUS


def _properties(data: bytes, charset: str) -> Iterator[_Property]:
    """Yield the properties of unfolded content lines (RFC 5545 3.1)."""
    lines = iter(_unfold(data, charset))
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        parameters = {
            name.upper(): value.strip('"')
            for name, value in _PARAMETER.findall(match["parameters"])
        }
        value = match["value"].strip()
        # vCalendar 1.0 has the encoding also without a name.
        if QUOTED in (parameters.get("ENCODING", "").upper(), *parameters):
            pieces = [value]
            while pieces[-1].endswith("="):
                pieces.append(next(lines, "").strip())
            octets = binascii.a2b_qp("\r\n".join(pieces).encode("utf-8", "replace"))
            value = decode_text(octets, parameters.get("CHARSET", charset))[0]
        yield _Property(match["name"].upper(), parameters, value)


def _unfold(data: bytes, charset: str) -> Sequence[str]:
    """Return the content lines. A fold may be within a character, so decoding comes last.

    Only line breaks end a line: other marks, such as U+2028, belong to a value.
    """
    is_cut = len(data) > MAX_CALENDAR
    data = data[:MAX_CALENDAR].rpartition(b"\n")[0] if is_cut else data
    if data[:2] in _WIDE_MARKS or (find_codec(charset) or "").startswith(("utf-16", "utf-32")):
        data, charset = decode_text(data, charset)[0].encode("utf-8"), "utf-8"
    text, _ = decode_text(_FOLD.sub(b"", data), charset)
    return _LINE_END.split(text)


_SHOWN = "%Y-%m-%d %H:%M"
_ESCAPED = re.compile(r"\\(.)")


def _unescape(value: str) -> str:
    """Return the text of a value (RFC 5545 3.3.11) in one line."""
    text = _ESCAPED.sub(lambda found: " " if found[1] in "nN" else found[1], value)
    return " ".join(text.split())


def _person(one: _Property) -> str:
    address = re.sub(r"(?i)\Amailto:", "", one.value)
    name = " ".join(one.parameters.get("CN", "").split())
    return f"{name} <{address}>" if name and name != address else address


def _time(one: _Property | None) -> EventTime | None:
    """Return a date or a time (RFC 5545 3.3.4, 3.3.5), or `None` if it is not valid."""
    if one is None:
        return None
    try:
        if len(one.value) == len("20261201"):
            day = datetime.strptime(one.value, "%Y%m%d").replace(tzinfo=UTC)
            return EventTime(None, date.isoformat(day.date()))
        is_utc = one.value.endswith("Z")
        moment = datetime.strptime(one.value.removesuffix("Z"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    text = moment.strftime(_SHOWN)
    if is_utc:
        return EventTime(moment, text, "UTC")
    return EventTime(None, text, one.parameters.get("TZID", ""))


_DURATION = re.compile(
    r"\+?P(?:(?P<weeks>\d{1,6})W)?(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?:(?P<hours>\d{1,6})H)?(?:(?P<minutes>\d{1,6})M)?(?:(?P<seconds>\d{1,9})S)?)?",
    re.ASCII | re.IGNORECASE,
)


def _end_after(starts: EventTime, duration: str) -> EventTime | None:
    """Return the end of an event with a duration (RFC 5545 3.3.6), or `None` if it is not valid."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        return None
    lasts = timedelta(**{unit: int(number or 0) for unit, number in match.groupdict().items()})
    try:
        if len(starts.text) == len("2026-12-01"):
            return EventTime(None, date.isoformat(date.fromisoformat(starts.text) + lasts))
        ends = datetime.strptime(starts.text, _SHOWN).replace(tzinfo=UTC) + lasts
        moment = starts.moment and starts.moment + lasts
    except OverflowError:
        return None
    return EventTime(moment, ends.strftime(_SHOWN), starts.zone)
