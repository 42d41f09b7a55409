"""Tests for the age of a domain from RDAP."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.registration import (
    read_registration,
    registrable_candidates,
    undetermined_registration,
    unregistered,
)
from mailcheck.core.instants import Instant, parse_instant
from tests.table import rows

NOW = parse_instant("2026-11-21T12:00:00Z")


def document(*events: tuple[str, Any]) -> dict[str, Any]:
    """Return an RDAP domain object with these events."""
    return {
        "objectClassName": "domain",
        "ldhName": "EXAMPLE.COM",
        "events": [{"eventAction": action, "eventDate": when} for action, when in events],
    }


@rows(
    ("1985-01-01T00:00:00Z", "1985-01-01", 15299, 41.9),
    ("1995-08-14T04:00:00Z", "1995-08-14", 11422, 31.3),
    ("2025-11-21T12:00:00Z", "2025-11-21", 365, 1.0),
    ("2026-11-20T23:30:00+02:00", "2026-11-20", 0, 0.0),
    ("2026-11-21T12:00:00.000Z", "2026-11-21", 0, 0.0),
    ("2020-01-31", "2020-01-31", 2486, 6.8),
)
def test_the_date_of_registration_is_read(when: str, day: str, age: int, years: float) -> None:
    """The event "registration" has the date; the age is in whole days."""
    verdict = read_registration("example.com", document(("registration", when)), NOW)
    assert verdict.presence is Presence.FOUND
    assert (str(verdict.registration_date), verdict.age_days, verdict.years) == (day, age, years)


@rows(
    "2020-03-31",
    "2020/03/31",
    "2020.03.31",
    "20200331",
    "2020-03-31 12:13:14",
    "2020-03-31 12:13:14 UTC",
    "2020-03-31T12:13:14.123456789Z",
    "2020-03-31T12:13:14+0000",
    "2020-03-31 (JST)",
    "2020/03/31 12:13:14 (JST)",
    "31-Mar-2020",
    "31-mar-2020 12:13:14 UTC",
    "31 March 2020",
    "31. Mar. 2020",
    "Tue, 31 Mar 2020 12:13:14 GMT",
    "Mar 31 2020",
    "March 31, 2020",
    "Tue Mar 31 12:13:14 2020",
    "Tue Mar 31 12:13:14 UTC 2020",
    "31.03.2020",
    "31.3.2020",
    "31/03/2020",
    "03/31/2020",
)
def test_dates_are_read_as_registries_write_them(when: str) -> None:
    """Dates in other formats are read; ambiguous dates are not guessed."""
    verdict = read_registration("example.com", document(("Registration", when)), NOW)
    assert str(verdict.registration_date) == "2020-03-31"


@rows("", "soon", "2020", "2020-13-01", "31-Foo-2020", "03/04/2020", "0000-00-00", "2020031")
def test_a_date_that_is_not_clear_is_undetermined(when: str) -> None:
    """If day and month are ambiguous or missing, the age is undetermined."""
    verdict = read_registration("example.com", document(("registration", when)), NOW)
    assert verdict.presence is Presence.UNDETERMINED


def test_other_events_do_not_count() -> None:
    """Renewals and transfers do not change the age."""
    events = [
        ("last changed", "2026-11-01T00:00:00Z"),
        ("registration", "2010-01-01T00:00:00Z"),
        ("transfer", "2026-10-01T00:00:00Z"),
        ("expiration", "2030-01-01T00:00:00Z"),
    ]
    verdict = read_registration("example.com", document(*events), NOW)
    assert str(verdict.registration_date) == "2010-01-01"


def test_a_domain_that_was_registered_again_is_young() -> None:
    """After a new registration, the earlier one does not count."""
    events = [
        ("registration", "2001-01-01T00:00:00Z"),
        ("reregistration", "2026-11-11T12:00:00Z"),
    ]
    verdict = read_registration("example.com", document(*events), NOW)
    assert verdict.age_days == 10
    assert [finding.id for finding in verdict.findings] == ["registration.young"]


@rows(
    None,
    [],
    "text",
    {},
    {"events": None},
    {"events": [None, 1, {}]},
    document(),
    document(("registration", None)),
    document(("registration", "soon")),
    document(("registration", "2026-13-41T00:00:00Z")),
    document(("registration", "2036-01-01T00:00:00Z")),
    document(("registration", "1984-12-31T23:59:59Z")),
    document(("registration", "0001-01-01T00:00:00+14:00")),
    document(("expiration", "2030-01-01T00:00:00Z")),
)
def test_no_date_is_not_a_young_domain(answer: object) -> None:
    """Without a valid date, the age is undetermined."""
    verdict = read_registration("example.com", answer, NOW)
    assert (verdict.presence, verdict.age_days) == (Presence.UNDETERMINED, None)
    assert [finding.id for finding in verdict.findings] == ["registration.undetermined"]


def test_not_registered_differs_from_undetermined() -> None:
    """A missing domain is a fact; a failed lookup is undetermined."""
    assert unregistered("example.com").presence is Presence.ABSENT
    silent = undetermined_registration("example.com", "the registry did not answer")
    assert silent.presence is Presence.UNDETERMINED
    assert silent.findings[0].meaning == "Could not be determined: the registry did not answer."


@rows(
    ("example.com", "com", ("example.com",)),
    ("mail.example.com", "com", ("example.com", "mail.example.com")),
    ("example.co.uk", "uk", ("co.uk", "example.co.uk")),
    ("a.example.co.uk", "co.uk", ("example.co.uk", "a.example.co.uk")),
)
def test_the_shortest_names_are_queried_first(
    domain: str, suffix: str, names: tuple[str, ...]
) -> None:
    """The registered name is the shortest name that the registry has."""
    assert registrable_candidates(domain, suffix) == names


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_any_json_can_be_read(answer: object) -> None:
    """Any JSON value gives a verdict."""
    nested = {"events": [{"eventAction": "registration", "eventDate": answer}, answer]}
    assert read_registration("example.com", answer, Instant(NOW)).age_days is None
    assert read_registration("example.com", nested, Instant(NOW)).age_days is None
