"""Since when a domain is registered, read from RDAP (RFC 9083).

Fetching is somebody else's: here a document, or the fact that there is none,
becomes a verdict. A registry that publishes no date leaves it undetermined.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec import Struct

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.core.instants import DAY, Instant, parse_instant

DAYS_PER_YEAR = 365.2425  # mean Gregorian year
YOUNG_DAYS = 30  # blocklists of fresh domains go up to a month (SEM-FRESH30)
FIRST_DAY = Instant(5479 * DAY)  # 1985-01-01: the first domain was registered in that year
MAX_EVENTS = 100  # of a document that are looked at

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

REGISTRATION = "registration"  # RFC 9083 10.2.3; "reregistration" begins a new life as well
_ACTIONS = (REGISTRATION, "reregistration")


class RegistrationVerdict(Struct, frozen=True):
    """How old a domain is.

    ``presence`` is ``ABSENT`` when the registry says that the domain is not
    registered. ``registered_at`` is nothing unless a date was found;
    ``age_days`` counts whole days and is never negative. ``name`` is the
    registered name that was found.
    """

    name: str
    presence: Presence
    registered_at: Instant | None
    age_days: int | None
    findings: tuple[Finding, ...]

    @property
    def registration_date(self) -> date | None:
        """Give the calendar date (UTC)."""
        if self.registered_at is None:
            return None
        return (_EPOCH + timedelta(milliseconds=self.registered_at)).date()

    @property
    def years(self) -> float | None:
        """Give the age in years, with one decimal."""
        return None if self.age_days is None else round(self.age_days / DAYS_PER_YEAR, 1)


def read_registration(name: str, document: object, now: Instant) -> RegistrationVerdict:
    """Read an RDAP domain object (RFC 9083 5.3), whatever was sent instead of one.

    The latest registration counts: a domain that was dropped and registered
    again is as young as that.
    """
    moments = [moment for moment in _registrations(document) if FIRST_DAY <= moment <= now]
    if not moments:
        return undetermined_registration(name, "the registry publishes no date of registration")
    registered_at = max(moments)
    age_days = (now - registered_at) // DAY
    findings = (_describe_young_domain(name, age_days),) if age_days < YOUNG_DAYS else ()
    return RegistrationVerdict(name, Presence.FOUND, registered_at, age_days, findings)


def unregistered(name: str) -> RegistrationVerdict:
    """Make the verdict for a domain that the registry does not know (HTTP 404)."""
    finding = make_finding(
        "registration.absent", f"The registry does not know {name}: nobody has registered it."
    )
    return RegistrationVerdict(name, Presence.ABSENT, None, None, (finding,))


def undetermined_registration(name: str, reason: str) -> RegistrationVerdict:
    """Make the verdict for when no date could be found out.

    :param reason: half a sentence, such as "the registry did not answer".
    """
    finding = make_finding("registration.undetermined", f"Could not be determined: {reason}.")
    return RegistrationVerdict(name, Presence.UNDETERMINED, None, None, (finding,))


def registrable_candidates(domain: str, suffix: str) -> tuple[str, ...]:
    """Give the names to ask a registry about, shortest first.

    DNS does not tell where a registry's names begin (``example.com`` but
    ``example.co.uk``), so the name one label below the registry's suffix is
    asked first, then longer ones until the registry knows one.
    """
    labels = domain.split(".")
    first = suffix.count(".") + 2
    return tuple(".".join(labels[-count:]) for count in range(first, len(labels) + 1))


def _registrations(document: object) -> list[Instant]:
    events = document.get("events") if isinstance(document, Mapping) else None
    if not isinstance(events, list):
        return []
    moments = []
    for event in events[:MAX_EVENTS]:
        moment = _read_event(event)
        if moment is not None:
            moments.append(moment)
    return moments


def _read_event(event: Any) -> Instant | None:
    if not isinstance(event, Mapping):
        return None
    action, moment = event.get("eventAction"), event.get("eventDate")
    if not isinstance(action, str) or action.strip().lower() not in _ACTIONS:
        return None
    return _read_moment(moment) if isinstance(moment, str) else None


MAX_MOMENT = 64
"""Characters of a date that is read."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_WEEKDAY, _YEAR = r"(?:[a-z]{3},? +)?", "(?P<year>[0-9]{4})"
_TIME = r"(?:[0-9:.]+ +)?(?:[a-z]{2,5} +)?"

# RFC 9083 4.2 asks for RFC 3339; some registries write the dates of their WHOIS.
_DATES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"(?P<year>[0-9]{4})(?P<mark>[-/.]?)(?P<month>[0-9]{2})(?P=mark)(?P<day>[0-9]{2})(?![0-9])",
        _WEEKDAY + r"(?P<day>[0-9]{1,2})[-. ]+(?P<name>[a-z]{3})[a-z]*[-., ]+(?P<year>[0-9]{4})",
        _WEEKDAY + r"(?P<name>[a-z]{3})[a-z]*\.? +(?P<day>[0-9]{1,2}),? +" + _TIME + _YEAR,
        r"(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.(?P<year>[0-9]{4})",
        r"(?P<first>[0-9]{1,2})/(?P<second>[0-9]{1,2})/(?P<year>[0-9]{4})",
    )
)


def _read_moment(text: str) -> Instant | None:
    """Return the moment, or the beginning of the day (UTC) where the text has no readable time.

    Return None where the text has no date, or one of which day and month cannot be told apart.
    """
    text = text.strip()[:MAX_MOMENT]
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        pass
    found = next(filter(None, (one.match(text) for one in _DATES)), None)
    if found is None:
        return None
    parts = found.groupdict()
    day, month = _day_and_month(parts)
    try:
        moment = datetime(int(parts["year"]), month, day, tzinfo=UTC)
    except ValueError:
        return None
    return Instant((moment - _EPOCH).days * DAY)


def _day_and_month(parts: Mapping[str, str]) -> tuple[int, int]:
    """Return both; 0 where they cannot be read."""
    if "name" in parts:
        name = parts["name"].lower()
        return int(parts["day"]), _MONTHS.index(name) + 1 if name in _MONTHS else 0
    if "first" in parts:
        first, second = int(parts["first"]), int(parts["second"])
        if first > 12 or first == second:
            return first, second
        return (second, first) if second > 12 else (0, 0)
    return int(parts["day"]), int(parts["month"])


def _describe_young_domain(name: str, age_days: int) -> Finding:
    days = "1 day" if age_days == 1 else f"{age_days} days"
    return make_finding(
        "registration.young",
        f"{name} was registered {days} ago; many filters distrust mail from such young domains.",
    )
