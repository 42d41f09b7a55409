"""Calendar invitations: the first event of an iCalendar part (RFC 5545, RFC 5546)."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime

from msgspec import Struct

CALENDAR_TYPES = frozenset(("text/calendar", "application/ics"))
"""Media types of calendar parts."""

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


def read_invitation(data: bytes) -> Invitation | None:
    """Return the first event of an iCalendar object, or `None` if there is no event."""
    method = ""
    event: list[_Property] = []
    inside = 0
    for one in _properties(data[:MAX_CALENDAR].decode("utf-8", "replace")):
        if one.name == "METHOD":
            method = method or one.value.upper()
        elif (one.name, one.value.upper()) == ("BEGIN", "VEVENT"):
            inside = 1
        elif one.name == "BEGIN" and inside:
            inside += 1  # an alarm within the event
        elif one.name == "END" and inside:
            inside -= 1
            if not inside:
                return _invitation(method, event)
        elif inside == 1:
            event.append(one)
    return None


def _invitation(method: str, event: list[_Property]) -> Invitation:
    first = {one.name: one for one in reversed(event)}

    def text(name: str) -> str:
        return _unescape(first[name].value) if name in first else ""

    people = [one for one in event if one.name == "ATTENDEE"][:MAX_ATTENDEES]
    is_cancelled = text("STATUS").upper() == "CANCELLED"
    return Invitation(
        METHODS["CANCEL"] if is_cancelled else METHODS.get(method, "Event"),
        text("SUMMARY"),
        _time(first.get("DTSTART")),
        _time(first.get("DTEND")),
        text("LOCATION"),
        _person(first["ORGANIZER"]) if "ORGANIZER" in first else "",
        tuple(
            Attendee(_person(one), ANSWERS.get(one.parameters.get("PARTSTAT", "").upper(), ""))
            for one in people
        ),
        repeats="RRULE" in first or "RDATE" in first,
    )


def _properties(text: str) -> Iterator[_Property]:
    """Yield the properties of unfolded content lines (RFC 5545 3.1)."""
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        parameters = {
            name.upper(): value.strip('"')
            for name, value in _PARAMETER.findall(match["parameters"])
        }
        yield _Property(match["name"].upper(), parameters, match["value"].strip())


_LINE = re.compile(
    r'(?P<name>[A-Za-z0-9-]+)(?P<parameters>(?:;[^":;=]+=(?:"[^"]*"|[^":;]*))*):(?P<value>.*)'
)
_PARAMETER = re.compile(r';([^":;=]+)=("[^"]*"|[^":;]*)')
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
    text = moment.strftime("%Y-%m-%d %H:%M")
    if is_utc:
        return EventTime(moment, text, "UTC")
    return EventTime(None, text, one.parameters.get("TZID", ""))
