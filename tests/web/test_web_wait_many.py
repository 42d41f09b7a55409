"""Waits for several messages and for none: GET /inbox/wait/many and /inbox/wait/none."""

from typing import Any

from tests.house import House, mail


def many(house: House, query: str) -> Any:
    """Wait for several messages. Return the response, which must be available."""
    return house.ask("GET", f"/inbox/wait/many?{query}").answer()


def test_several_messages(house: House) -> None:
    """Messages are returned as list entries, oldest first, with the cursor of the last one.

    The cursor can be used to wait for more.
    """
    pending = house.ask("GET", "/inbox/wait/many?count=2&tagPrefix=run-7-")
    house.receive(house.address("run-7-a"), raw=mail("one"))
    house.receive(house.address("run-8-a"), raw=mail("not ours"))
    assert not pending.is_answered
    house.receive(house.address("RUN-7-b"), raw=mail("two"))
    found = pending.answer()
    assert found.status == 200
    assert [one["subject"] for one in found.json["messages"]] == ["one", "two"]
    assert found.json["messages"][0]["codes"] == ["482913"]
    assert "text" not in found.json["messages"][0]
    assert found.json["cursor"] == "c3"
    more = house.ask("GET", f"/inbox/wait/many?after={found.json['cursor']}")
    house.receive(raw=mail("three"))
    assert [one["subject"] for one in more.answer().json["messages"]] == ["three"]


def test_too_few_messages(house: House) -> None:
    """A 408 contains the number of messages. Repeated with its cursor, they count again."""
    cursor = house.get("/inbox/address?tag=a").json["cursor"]
    pending = house.ask("GET", f"/inbox/wait/many?count=3&tag=a&timeout=1.5&after={cursor}")
    house.receive(house.address("a"), raw=mail("one"))
    house.receive(house.address("a"), raw=mail("two"))
    house.pass_time(1.5)
    answer = pending.answer()
    assert answer.status == 408
    assert answer.json == {
        "error": "2 of 3 matching messages arrived within 1.5 s: repeat with after=c0",
        "cursor": cursor,
        "matched": 2,
        "waited": 1.5,
        "seen": [],
        "rejected": [],
    }
    again = house.ask("GET", f"/inbox/wait/many?count=3&tag=a&after={answer.json['cursor']}")
    house.receive(house.address("a"), raw=mail("three"))
    subjects = [one["subject"] for one in again.answer().json["messages"]]
    assert subjects == ["one", "two", "three"]


def test_none(house: House) -> None:
    """After the given seconds from the request, the response confirms that no message arrived."""
    house.receive(house.address("a"))
    pending = house.ask("GET", "/inbox/wait/none?tag=a&seconds=2.5")
    house.receive(house.address("b"))
    house.pass_time(2.4)
    assert not pending.is_answered
    house.pass_time(0.1)
    answer = pending.answer()
    assert (answer.status, answer.json) == (200, {"none": True, "waited": 2.5, "cursor": "c2"})


def test_an_unexpected_message(house: House) -> None:
    """A message is returned completely as soon as it arrives, or at once since the cursor."""
    pending = house.ask("GET", "/inbox/wait/none?tag=a")
    house.pass_time(1)
    house.receive(house.address("a"), raw=mail("Unwanted"))
    answer = pending.answer()
    assert answer.status == 409
    assert answer.json["error"] == "a matching message arrived within 1 s, but none was expected"
    assert answer.json["message"]["subject"] == "Unwanted"
    assert answer.json["message"]["text"].startswith("Your code")
    assert (answer.json["cursor"], answer.json["rejected"]) == ("c1", [])
    assert house.get("/inbox/wait/none?tag=A&after=c0").status == 409
    assert not house.ask("GET", "/inbox/wait/none?tag=A&after=c1").is_answered


def test_a_rejected_mail_is_unexpected(house: House) -> None:
    """A rejected mail to the address ends the wait at once, with the reason."""
    house.refuse("a")
    pending = house.ask("GET", "/inbox/wait/none?tag=a&after=c1&subject=code")
    house.refuse("b")
    assert not pending.is_answered
    house.refuse("a", reason="the inbox is full")
    answer = pending.answer()
    assert answer.status == 409
    assert "rejected" in answer.json["error"]
    assert answer.json["error"].endswith("the inbox is full")
    assert (answer.json["message"], answer.json["cursor"]) == (None, "c3")
    assert answer.json["rejected"][0]["to"] == house.address("a")


def test_a_restart_interrupts_a_wait_for_none(house: House) -> None:
    """An interrupted wait is 503, with the cursor at its beginning."""
    pending = house.ask("GET", "/inbox/wait/none?tag=a")
    several = house.ask("GET", "/inbox/wait/many?count=2&tag=b&after=c0")
    house.receive(house.address("b"))
    house.assembly.mail.feeds.close()
    for one in (pending, several):
        answer = one.answer()
        assert (answer.status, answer.json["cursor"]) == (503, "c0")
