"""Since when a domain is registered, read from RDAP (RFC 9083).

Fetching is somebody else's: here a document, or the fact that there is none,
becomes a verdict. A registry that publishes no date leaves it undetermined.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec import Struct

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import Finding, Severity
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
    findings = (_young(name, age_days),) if age_days < YOUNG_DAYS else ()
    return RegistrationVerdict(name, Presence.FOUND, registered_at, age_days, findings)


def unregistered(name: str) -> RegistrationVerdict:
    """Make the verdict for a domain that the registry does not know (HTTP 404)."""
    finding = Finding(
        "registration.absent",
        Severity.ERROR,
        f"The registry does not know {name}: nobody has registered it.",
        "Check the spelling, or register the domain.",
    )
    return RegistrationVerdict(name, Presence.ABSENT, None, None, (finding,))


def undetermined_registration(name: str, reason: str) -> RegistrationVerdict:
    """Make the verdict for when no date could be found out.

    :param reason: half a sentence, such as "the registry did not answer".
    """
    finding = Finding(
        "registration.undetermined",
        Severity.UNDETERMINED,
        f"Could not be determined: {reason}.",
        "Try again later. Where a registry publishes no date, nobody can mend it: half is counted.",
    )
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
    if not isinstance(event, Mapping) or event.get("eventAction") not in _ACTIONS:
        return None
    text = event.get("eventDate")
    if not isinstance(text, str):
        return None
    if len(text) == len("2024-01-31"):  # some registries leave the time out
        text += "T00:00:00Z"
    try:
        return parse_instant(text)
    except ValueError:
        return None


def _young(name: str, age_days: int) -> Finding:
    days = "1 day" if age_days == 1 else f"{age_days} days"
    return Finding(
        "registration.young",
        Severity.WARNING,
        f"{name} was registered {days} ago; many filters distrust mail from such young domains.",
        "Wait, and send little and wanted mail in the first weeks.",
    )
