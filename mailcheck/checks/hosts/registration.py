"""The registration date of a domain from RDAP data (RFC 9083).

This module evaluates RDAP documents that were fetched elsewhere. If a registry publishes no date,
the age is undetermined.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec import Struct

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.quality.wording import count_of
from mailcheck.core.instants import DAY, Instant, parse_instant

DAYS_PER_YEAR = 365.2425  # mean Gregorian year
YOUNG_DAYS = 30  # blocklists of new domains cover up to a month (SEM-FRESH30)
FIRST_DAY = Instant(5479 * DAY)  # 1985-01-01; the first domain was registered in that year
MAX_EVENTS = 100  # maximum number of events of a document that are read

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

REGISTRATION = "registration"  # RFC 9083 10.2.3; "reregistration" counts as well
_ACTIONS = (REGISTRATION, "reregistration")


class RegistrationVerdict(Struct, frozen=True):
    """The age of a domain.

    ``presence`` is ``ABSENT`` if the registry says that the domain is not registered.
    ``registered_at`` is `None` if no date was found. ``age_days`` is the number of whole days and
    never negative. ``name`` is the registered name.
    """

    name: str
    presence: Presence
    registered_at: Instant | None
    age_days: int | None
    findings: tuple[Finding, ...]

    @property
    def registration_date(self) -> date | None:
        """The calendar date (UTC)."""
        if self.registered_at is None:
            return None
        return (_EPOCH + timedelta(milliseconds=self.registered_at)).date()

    @property
    def years(self) -> float | None:
        """The age in years, with one decimal."""
        return None if self.age_days is None else round(self.age_days / DAYS_PER_YEAR, 1)


def read_registration(name: str, document: object, now: Instant) -> RegistrationVerdict:
    """Evaluate an RDAP domain object (RFC 9083 5.3), which may be any JSON value.

    The latest registration counts, since a domain can be dropped and registered again.
    """
    moments = [moment for moment in _registrations(document) if FIRST_DAY <= moment <= now]
    if not moments:
        return undetermined_registration(name, "the registry publishes no registration date")
    registered_at = max(moments)
    age_days = (now - registered_at) // DAY
    young = make_finding("registration.young", name=name, days=count_of(age_days, "day"))
    findings = (young,) if age_days < YOUNG_DAYS else ()
    return RegistrationVerdict(name, Presence.FOUND, registered_at, age_days, findings)


def unregistered(name: str) -> RegistrationVerdict:
    """Return the verdict for a domain that the registry does not have (HTTP 404)."""
    finding = make_finding("registration.absent", name=name)
    return RegistrationVerdict(name, Presence.ABSENT, None, None, (finding,))


def undetermined_registration(name: str, reason: str) -> RegistrationVerdict:
    """Return the verdict for a date that could not be determined.

    :param reason: a clause such as "the registry did not answer".
    """
    finding = make_finding("registration.undetermined", reason=reason)
    return RegistrationVerdict(name, Presence.UNDETERMINED, None, None, (finding,))


def registrable_candidates(domain: str, suffix: str) -> tuple[str, ...]:
    """Return the names to query at a registry, shortest first.

    DNS does not show at which level a registry registers names (``example.com`` but
    ``example.co.uk``). The name one label below the suffix of the registry comes first, then
    longer ones until the registry has one.
    """
    labels = domain.split(".")
    first = suffix.count(".") + 2
    return tuple(".".join(labels[-count:]) for count in range(first, len(labels) + 1))


def _registrations(document: object) -> list[Instant]:
    events = document.get("events") if isinstance(document, Mapping) else None
    if not isinstance(events, list):
        return []
    moments = map(_read_event, events[:MAX_EVENTS])
    return [moment for moment in moments if moment is not None]


def _read_event(event: Any) -> Instant | None:
    if not isinstance(event, Mapping):
        return None
    action, moment = event.get("eventAction"), event.get("eventDate")
    if not isinstance(action, str) or action.strip().lower() not in _ACTIONS:
        return None
    return _read_moment(moment) if isinstance(moment, str) else None


MAX_MOMENT = 64
"""Maximum length of a date, in characters."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_WEEKDAY, _YEAR = r"(?:[a-z]{3},? +)?", "(?P<year>[0-9]{4})"
_TIME = r"(?:[0-9:.]+ +)?(?:[a-z]{2,5} +)?"

# RFC 9083 4.2 requires RFC 3339; some registries use the date format of their WHOIS.
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
    """Return the time of a text, or the start of the day (UTC) if the text has no valid time.

    Return `None` if the text has no date, or if its day and month are ambiguous.
    """
    text = text.strip()[:MAX_MOMENT]
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        pass
    found = next(filter(None, (form.match(text) for form in _DATES)), None)
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
    """Return day and month; 0 means not readable."""
    if "name" in parts:
        name = parts["name"].lower()
        return int(parts["day"]), _MONTHS.index(name) + 1 if name in _MONTHS else 0
    if "first" in parts:
        first, second = int(parts["first"]), int(parts["second"])
        if first > 12 or first == second:
            return first, second
        return (second, first) if second > 12 else (0, 0)
    return int(parts["day"]), int(parts["month"])
