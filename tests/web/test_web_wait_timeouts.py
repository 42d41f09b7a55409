"""The 408 of a wait: what did arrive, why it did not match, and how to continue."""

import re
from typing import Any

import pytest

from mailcheck.core.errors import ExpectedFailure
from tests.house import House, mail


def wait_until_timeout(house: House, query: str = "", seconds: float = 5) -> Any:
    """Wait until the timeout. Return the body of the 408."""
    pending = house.ask("GET", f"/inbox/wait?timeout={seconds}&{query}")
    house.pass_time(seconds)
    answer = pending.answer()
    assert answer.status == 408
    return answer.json


def advice(body: Any) -> str:
    """Return the cursor that the error recommends for after."""
    found = re.search(r": repeat with after=(\w+)( and without since)?$", body["error"])
    assert found, body["error"]
    return found[1]


def test_nothing_arrived_at_all(house: House) -> None:
    """With an empty inbox, the error contains the duration, and seen is empty."""
    body = wait_until_timeout(house, seconds=7)
    assert body == {
        "error": "no matching message arrived within 7 s",
        "cursor": "c0",
        "waited": 7.0,
        "seen": [],
        "rejected": [],
    }


def test_what_arrived_meanwhile_is_shown_with_the_reason(house: House) -> None:
    """Near matches are listed, closest first, each with the reason why it did not match.

    Mail to other tags is only counted, because parallel tests are not interested in it.
    """
    pending = house.ask("GET", "/inbox/wait?timeout=5&tag=Alice&subject=code&from=shop")
    house.pass_time(1)
    house.receive(house.address("bob"), raw=mail("Your code"))
    house.pass_time(1)
    house.receive(house.address("alice"), raw=mail("Welcome"))
    house.receive(house.address("alice"), raw=mail("Welcome", author="News <news@example.com>"))
    house.receive(house.address("alices"), raw=mail("Your code"))
    house.pass_time(3)
    body = pending.answer().json
    assert (
        body["error"] == "no matching message arrived within 5 s; other messages arrived, see seen"
    )
    assert [(seen["tag"], seen["reasons"]) for seen in body["seen"]] == [
        ("alice", ["its subject is 'Welcome'"]),
        ("alices", ["its tag is 'alices', not 'Alice'"]),
        ("alice", ["its author is 'News <news@example.com>'", "its subject is 'Welcome'"]),
    ]
    assert body["seen"][0]["receivedAt"] == "2026-11-21T12:00:02.000Z"
    assert body["otherTags"] == 1
    assert body["cursor"] == "c4"


def test_mail_to_other_tags_alone(house: House) -> None:
    """If only mail to other tags arrived, the error contains their number."""
    for number in range(25):
        house.receive(house.address(f"other-{number}"))
    house.pass_time(1)
    body = wait_until_timeout(house, "tag=mine", seconds=1.5)
    assert body["error"] == (
        "no matching message arrived within 1.5 s; 25 messages to other tags arrived"
    )
    assert (body["seen"], body["otherTags"]) == ([], 25)


def test_the_order_of_the_explanation(house: House) -> None:
    """Rejected mail is named first, then near matches, then matches that arrived too early.

    If a cursor was given, the error does not refer to earlier mail.
    """
    house.receive(house.address("a"), raw=mail("Your code"))
    house.receive(house.address("a"), raw=mail("News"))
    house.refuse("a")
    house.pass_time(4)
    error = wait_until_timeout(house, "tag=a&subject=code")["error"]
    assert error == (
        "no matching message arrived within 5 s; mail for this inbox was rejected, see rejected; "
        "other messages arrived, see seen; a matching message arrived 4.0 s before this request: "
        "repeat with after=c0"
    )
    body = wait_until_timeout(house, "tag=a&subject=code&after=c3")
    assert body == {
        "error": "no matching message arrived within 5 s",
        "cursor": "c3",
        "waited": 5.0,
        "seen": [],
        "rejected": [],
    }
    body = wait_until_timeout(house, "tag=a&subject=code&after=c2")
    assert "before this request" not in body["error"]
    assert [one["reason"] for one in body["rejected"]] == ["too large"]


def test_a_match_before_the_request_is_named(house: House) -> None:
    """A match that arrived before the request is named; following the advice returns it."""
    house.receive(house.address("sign-up"), raw=mail("Your code"))
    house.pass_time(4)
    body = wait_until_timeout(house, "tag=sign-up")
    assert body["error"] == (
        "a matching message arrived 4.0 s before this request: repeat with after=c0"
    )
    assert body["seen"][0]["reasons"] == ["it arrived 4.0 s before since"]
    answer = house.get(f"/inbox/wait?tag=sign-up&after={advice(body)}")
    assert answer.status == 200
    assert answer.json["subject"] == "Your code"


def test_a_since_that_was_too_late_is_explained(house: House) -> None:
    """A since after the mail, for example from a fast clock, gets the same advice."""
    house.receive(raw=mail("here"))
    house.pass_time(2)
    body = wait_until_timeout(house, "since=2026-11-21T12:00:10Z")
    assert body["error"] == (
        "a matching message arrived 2.0 s before this request: "
        "repeat with after=c0 and without since"
    )
    assert house.get(f"/inbox/wait?after={advice(body)}").json["subject"] == "here"


def test_a_since_in_the_future_is_explained(house: House) -> None:
    """Mail that arrives during the wait, but before a since in the future, is named too."""
    pending = house.ask("GET", "/inbox/wait?timeout=5&since=2026-11-21T12:01:00Z")
    house.pass_time(3)
    house.receive(raw=mail("during"))
    house.pass_time(2)
    body = pending.answer().json
    assert body["error"] == (
        "a matching message arrived 3.0 s after this request began: "
        "repeat with after=c0 and without since"
    )
    assert house.get(f"/inbox/wait?after={advice(body)}").json["subject"] == "during"


def test_rejected_mail_is_listed(house: House) -> None:
    """Rejected mail for this inbox is listed with the reason, such as a full inbox."""
    account = house.add_account("tiny", max_messages=1)
    key = house.issue_key(account)
    house.receive(house.address("a", account), raw=mail("fits"))
    pending = house.ask("GET", "/inbox/wait?timeout=5&tag=b", key=key)
    house.pass_time(2)
    with pytest.raises(ExpectedFailure, match="full"):
        house.receive(house.address("b", account), raw=mail("refused"), sender="")
    house.pass_time(3)
    body = pending.answer().json
    assert body["error"] == (
        "no matching message arrived within 5 s; mail for this inbox was rejected, see rejected"
    )
    (rejected,) = body["rejected"]
    assert rejected == {
        "to": house.address("b", account),
        "from": "",
        "client": "192.0.2.7",
        "reason": "the inbox is full; delete mail, or wait until old mail expires",
        "refusedAt": "2026-11-21T12:00:02.000Z",
    }
