"""Digests by mail: their content, their times, and who gets them."""

from email import message_from_bytes
from email.policy import SMTP
from typing import Any

import pytest

from mailcheck.core.domains.digests import DIGEST_TAG, DigestInterval, next_digest
from mailcheck.core.instants import DAY, MINUTE, SECOND, parse_instant
from mailcheck.core.webhooks import Attempt
from mailcheck.operations.digests.digest_mail import (
    MOST_LINES,
    DigestLine,
    DigestPage,
    make_part,
    write_digest,
)
from mailcheck.operations.domains.watches.send_alerts import MailHead
from tests.engines.deliveries import NOON
from tests.house import run
from tests.table import rows
from tests.web.test_web_watches import Watching

OPS = "ops@example.com"


@pytest.fixture
def watching() -> Watching:
    """A house with a watched domain. It is Saturday noon."""
    return Watching()


def digests(watching: Watching, milliseconds: int = 0) -> list[Any]:
    """Pass some time, send digests that are due, and return all in the inbox, oldest first."""
    watching.house.clock.advance(milliseconds / SECOND)
    run(watching.house.assembly.digests.send.send_due())
    listed = watching.house.get(f"/inbox/messages?tag={DIGEST_TAG}").json["messages"]
    return [watching.house.get(f"/inbox/messages/{one['id']}").json for one in reversed(listed)]


def choose(watching: Watching, **choice: Any) -> Any:
    """Choose a digest."""
    return watching.ask("PUT", "/digest", choice)


@rows(
    ("week", "2026-11-21T12:00:00Z", "2026-11-23T06:00:00Z"),
    ("week", "2026-11-23T05:59:59Z", "2026-11-23T06:00:00Z"),
    ("week", "2026-11-23T06:00:00Z", "2026-11-30T06:00:00Z"),
    ("month", "2026-11-21T12:00:00Z", "2026-12-01T06:00:00Z"),
    ("month", "2026-12-01T06:00:00Z", "2027-01-01T06:00:00Z"),
    ("month", "2027-01-31T12:00:00Z", "2027-02-01T06:00:00Z"),
)
def test_times(every: str, after: str, expected: str) -> None:
    """Digests are sent at 06:00 UTC on Mondays, or on the first day of a month."""
    found = next_digest(DigestInterval(every), parse_instant(after))
    assert found == parse_instant(expected)


def test_it_is_off_by_default(watching: Watching) -> None:
    """Nobody gets a digest without choosing it, and ``never`` ends it."""
    off: dict[str, Any] = {"every": None, "to": [], "quiet": None, "nextAt": None}
    assert watching.ask("GET", "/digest") == off
    assert digests(watching, 40 * DAY) == []
    assert choose(watching, every="week")["every"] == "week"
    assert choose(watching, every="never") == off
    assert digests(watching, 40 * DAY) == []


def test_a_week(watching: Watching) -> None:
    """A digest says what to do, what changed, and the state of all watches, once."""
    path = watching.watch("good.example")
    watching.ask("POST", f"{path}/run")
    assert choose(watching, every="week")["nextAt"] == "2026-11-23T06:00:00.000Z"
    watching.zone.publish("_dmarc.good.example", "TXT")
    watching.ask("POST", f"{path}/run")
    assert digests(watching) == []
    (one,) = digests(watching, 2 * DAY)
    assert one["subject"] == "first: 1 to do, 2 changed this week"
    for part in ("What to do next", "What changed", "Watched domains", "good.example: ", "DMARC"):
        assert part in one["text"]
    assert "Score " in one["text"]
    assert one["html"].count("<h2") == 3
    # Mail is kept for a day.
    assert digests(watching, 6 * DAY) == []
    assert len(digests(watching, DAY)) == 1


def test_quiet_hours(watching: Watching) -> None:
    """A digest waits for the end of the quiet hours."""
    choose(watching, every="week", quiet="05:00-08:00")
    assert digests(watching, DAY + 18 * 60 * MINUTE) == []
    assert digests(watching, 60 * MINUTE) == []
    assert len(digests(watching, 60 * MINUTE)) == 1


def test_others_get_it_by_mail(watching: Watching) -> None:
    """Allowed addresses get it as text and HTML. A failure is repeated for them alone."""
    choose(watching, every="week", to=[OPS])
    receivers = watching.house.receivers
    receivers.answers = [Attempt(451, "try later")]
    assert len(digests(watching, 2 * DAY)) == 1
    assert len(digests(watching, 30 * MINUTE)) == 1
    assert len(digests(watching, 30 * MINUTE)) == 1
    failed, sent = receivers.posts
    assert failed.url == sent.url == f"mailto:{OPS}"
    mail = message_from_bytes(sent.body, policy=SMTP)
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    (plain, _) = mail.iter_parts()
    assert "Change or end it: " in plain.get_content()


@rows(
    ({"every": "day"}, "every"),
    ({"every": "week", "to": ["https://ops.example.com/"]}, "is not a mail address"),
    ({"every": "week", "to": ["ops@"]}, "is not a mail address"),
    ({"every": "week", "quiet": "late"}, "quiet"),
)
def test_wrong_choices(watching: Watching, choice: dict[str, Any], problem: str) -> None:
    """A wrong choice is rejected, and changes nothing."""
    assert problem in watching.ask("PUT", "/digest", choice, 400)["error"]
    assert watching.ask("GET", "/digest")["every"] is None


def test_a_page_is_one_page() -> None:
    """Each part has few lines; texts of strangers are escaped and stay on their lines."""
    evil = DigestLine("a.example", "x\r\n\r\n<script>alert(1)</script>\r\nBcc: b@c.example")
    part = make_part("What to do next", [evil] * 50)
    empty = make_part("What changed", [], empty="Nothing.")
    page = DigestPage("shop", DigestInterval.MONTH, NOON, NOON, (part, empty), "https://a", "b")
    head = MailHead("digest@example.com", OPS, "token", NOON)
    mail = message_from_bytes(write_digest(head, page, "why"), policy=SMTP)
    assert mail["Bcc"] is None
    text, html = (part.get_content() for part in mail.iter_parts())
    assert text.count("* a.example") == html.count("<strong>") == MOST_LINES
    assert f"... and {50 - MOST_LINES} more" in text
    assert "Nothing." in html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
