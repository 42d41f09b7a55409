"""Extreme numbers, depths, lengths and bytes end in an error for the client, never in a crash."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from msgspec import Struct
from twisted.logger import LogLevel, capturedLogs, formatEvent

from mailcheck.operations.write_mail import MAX_HEADER_TEXT, MAX_NAME
from mailcheck.web.site.bodies import MAX_DEPTH, decode_json
from tests.attacks.extreme_values import IN_PROJECT, Extreme, ExtremeTarget
from tests.attacks.strangers import declared_costs
from tests.table import rows
from tests.web.provider_requests import post

pytestmark = pytest.mark.attack

DOORS = {
    "REST": r"\w+ /api/v1",
    "Mailosaur": r"\w+ /mailosaur",
    "MailSlurp": r"\w+ /mailslurp",
    "providers": r"\w+ /providers",
    "SCIM": r"\w+ /scim",
    "open listener": "open ",
    "MCP": r"\w+ /mcp|tool ",
    "OAuth": r"\w+ /(token|register|revoke|authorize|\.well-known)",
    "pages": r"\w+ /",
}
"""The doors with the beginnings of their entries. An entry belongs to the first match."""

SLOW = 3.0
"""Seconds of CPU time that no request may take. Usual requests take a millisecond."""

OUT = ("POST /sign-out", "POST /account/delete", "POST /account/sessions/end")
"""Pages that end the session of the test."""


@pytest.fixture(scope="module")
def target() -> Iterator[ExtremeTarget]:
    """Return an application with one of everything."""
    target = ExtremeTarget()
    yield target
    target.house.close()


class Harm(Struct, frozen=True):
    """A request, and the harm that it has caused."""

    entry: str
    place: str
    sent: str
    what: str


def belongs(entry: str) -> str:
    """Return the door of an entry point, or an empty text for other protocols."""
    return next((name for name, begins in DOORS.items() if re.match(begins, entry)), "")


def harm_of(target: ExtremeTarget, one: Extreme) -> str:
    """Send a request, and return the harm that it does."""
    with capturedLogs() as logs:
        begun = time.process_time()
        status = target.send(one)
        took = time.process_time() - begun
    failures = [formatEvent(event) for event in logs if is_failure(event)]
    if status >= 500 and status not in (501, 503):
        return f"status {status}"
    if failures:
        return f"logged: {failures[0][:200]}"
    return f"took {took:.1f} seconds" if took > SLOW else ""


def is_failure(event: dict[str, object]) -> bool:
    """Return whether a line of the log is a traceback or an error."""
    return event.get("log_failure") is not None or event.get("log_level") in (
        LogLevel.error,
        LogLevel.critical,
    )


def try_door(target: ExtremeTarget, door: str, *, all_values: bool = False) -> list[Harm]:
    """Send requests to all places of the routes of a door, and return the harms.

    A place gets one of its values, and the next place of its kind gets the next one. So the pages
    and the provider APIs get each value somewhere. The tools have half as many arguments as values.
    A page of a project also has an address without it, which only redirects: one place is enough.
    """
    count = 2 if door == "MCP" else 1
    harms: list[Harm] = []
    kinds: Counter[str] = Counter()
    for entry in declared_costs():
        if belongs(entry) != door or entry.startswith(OUT):
            continue
        target.prepare()
        method, _, path = entry.partition(" ")
        is_redirect = f"{method} {IN_PROJECT}{path}" in declared_costs()
        for place in islice(target.places(entry), 1 if is_redirect and not all_values else None):
            kind = place.name.partition(" ")[0]
            first = kinds[kind] % len(place.values)
            kinds[kind] += count
            for value in place.values if all_values else place.values[first : first + count]:
                one = target.write(place.put(value))
                if harm := harm_of(target, one):
                    sent = one.body[:80] or one.head.partition(b"\r\n")[0][:200]
                    harms.append(Harm(entry, place.name, repr(sent), harm))
    return harms


@pytest.mark.parametrize("door", DOORS)
def test_no_value_crashes_a_door(target: ExtremeTarget, door: str) -> None:
    """Each parameter and body of each route gets one of the worst values, which does no harm."""
    assert try_door(target, door) == []


@pytest.mark.soak
@pytest.mark.parametrize("door", DOORS)
def test_no_value_at_all_crashes_a_door(target: ExtremeTarget, door: str) -> None:
    """All extreme values at each parameter and body of each route do no harm."""
    assert try_door(target, door, all_values=True) == []


@rows(
    {"subject": "\u00df" * (MAX_HEADER_TEXT + 1)},
    {"headers": {"X-A": "x" * MAX_HEADER_TEXT}},
    {"from": f"{'x' * (MAX_NAME + 1)} <a@shop.example>"},
    {"to": [f"{'x' * MAX_NAME} <a{n}@shop.example>" for n in range(50)] * 2},
)
def test_long_texts_are_rejected_before_they_are_folded(
    target: ExtremeTarget, fields: dict[str, Any]
) -> None:
    """A posted mail with a long subject, name or header field is rejected."""
    given = {"from": "a@shop.example", "to": ["b@shop.example"], "subject": "x", "text": "x"}
    answer = post(target.house, "/providers/resend/emails", {**given, **fields})
    assert answer.status in (400, 422)
    assert re.search("may have|at most", answer.json["message"])


@rows(
    *(
        b"\xff",
        b'{"a":"caf\xe9"}',
        b'"\xed\xa0\x80"',
        b"1e999",
        b"9" * 5_000,
        b"nan",
        b"",
        b"{",
    ),
    *(b"[" * 200_000, b"[" * 101 + b"]" * 101, b'{"a":' * 101 + b"1" + b"}" * 101, "\ud800"),
)
def test_json_that_no_request_has(text: bytes | str) -> None:
    """JSON that is not UTF-8, too deep or out of range is a `ValueError`."""
    with pytest.raises(ValueError, match=r"."):
        decode_json(text)


def test_deep_json() -> None:
    """JSON may have a hundred levels."""
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert decode_json(text) is not None
