"""The long poll while mail arrives (docs/reference/contract.md, "Waiting for mail")."""

import pytest

from mailcheck.assembly.workers import Workers
from mailcheck.core.errors import StoreUnavailable
from mailcheck.operations.inbox.contents import SAVE_DELAY
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, Pending, config_in_memory, mail
from tests.web.workers import FaultyWorker


def wait(house: House, query: str = "", key: str = "") -> Pending:
    """Begin a wait."""
    return house.ask("GET", f"/inbox/wait?{query}", key=key)


def subjects(*pending: Pending) -> list[str]:
    """Return the subjects of the messages that these waits received."""
    answers = [one.answer() for one in pending]
    assert {answer.status for answer in answers} == {200}
    return [answer.json["subject"] for answer in answers]


def test_mail_ends_a_wait(house: House) -> None:
    """A waiting request is answered when mail arrives, with the message and its codes and links."""
    pending = wait(house)
    house.pass_time(10)
    assert not pending.is_answered
    house.receive(house.address("Sign.Up"))
    answer = pending.answer()
    assert answer.status == 200
    message = answer.json
    assert message["to"] == house.address("Sign.Up")
    assert message["tag"] == "Sign.Up"
    assert message["from"] == {"address": "shop@example.com", "name": "Shop"}
    assert message["receivedAt"] == "2026-11-21T12:00:10.000Z"
    assert message["expiresAt"] == "2026-11-22T12:00:10.000Z"
    assert message["links"] == ["https://example.com/confirm?t=7f3a"]
    assert message["codes"] == ["482913"]


def test_a_tag_waits_for_its_mail_only(house: House) -> None:
    """With a tag, only mail to that +tag matches, ignoring case."""
    pending = wait(house, "tag=alice")
    house.receive(house.address("bob"), raw=mail("for bob"))
    house.receive(house.address(), raw=mail("for nobody"))
    house.receive(house.address("alice2"), raw=mail("nearly"))
    assert not pending.is_answered
    house.receive(house.address("Alice"), raw=mail("for alice"))
    assert subjects(pending) == ["for alice"]
    assert pending.answers[0].code == 200


def test_an_empty_tag_waits_for_untagged_mail(house: House) -> None:
    """``tag=`` means the address without a tag."""
    pending = wait(house, "tag=")
    house.receive(house.address("alice"), raw=mail("tagged"))
    assert not pending.is_answered
    house.receive(house.address(), raw=mail("bare"))
    assert subjects(pending) == ["bare"]


@pytest.mark.parametrize(
    ("query", "wanted", "unwanted"),
    [
        ("from=ACME", mail("x", author="Acme <a@example.com>"), mail("x")),
        ("from=news%40example", mail("x", author="n <news@example.com>"), mail("x")),
        ("subject=C%C3%9CDE", mail("Your cüde is here"), mail("Your code is here")),
        ("subject=50%25_", mail("now 50%_ off"), mail("now 50 % off")),
    ],
)
def test_other_filters_wait_too(house: House, query: str, wanted: bytes, unwanted: bytes) -> None:
    """``from`` and ``subject`` match a part of the value, ignoring case."""
    pending = wait(house, query)
    house.receive(raw=unwanted)
    assert not pending.is_answered
    house.receive(raw=wanted)
    assert pending.answer().status == 200


def test_to_waits_for_a_whole_address(house: House) -> None:
    """``to`` matches the complete recipient, ignoring case."""
    address = house.address("a+b").replace("+", "%2B")
    pending = wait(house, f"to={address.upper()}")
    house.receive(house.address("a"))
    assert not pending.is_answered
    house.receive(house.address("a+b"))
    assert pending.answer().json["tag"] == "a+b"


def test_all_filters_must_match(house: House) -> None:
    """Several filters must all match the same message."""
    pending = wait(house, "tag=a&subject=two&from=shop")
    house.receive(house.address("a"), raw=mail("one"))
    house.receive(house.address("b"), raw=mail("two"))
    assert not pending.is_answered
    house.receive(house.address("a"), raw=mail("two"))
    assert subjects(pending) == ["two"]


def test_a_search_is_rejected(house: House) -> None:
    """A search is rejected by a wait, which does not support it."""
    house.receive(house.address(), raw=mail("stored"))
    for query in ("q=stored&after=c0", "q=&after=c0"):
        answer = wait(house, query).answer()
        assert answer.status == 400
        assert answer.json["error"].startswith("'q' is not a parameter of this route")


def test_a_wait_is_a_broadcast(house: House) -> None:
    """Every matching wait receives the message. It is not consumed."""
    parked = [wait(house), wait(house, "tag=a"), wait(house, "tag=A&subject=Wel")]
    others = [wait(house, "tag=b")]
    house.receive(house.address("a"))
    ids = {one.answer().json["id"] for one in parked}
    assert len(ids) == 1
    assert not any(one.is_answered for one in others)
    again = wait(house, "since=2026-11-21T12:00:00Z")
    assert {again.answer().json["id"]} == ids


def test_waits_share_one_read() -> None:
    """A mail that ends 90 waits is read and rendered once."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    house.receive(raw=mail("known inbox"))
    house.pass_time(1)
    parked = [wait(house) for _ in range(90)]
    before = reader.calls
    reader.is_slow, reader.good_calls = True, 1  # the feed's look; then all load at a time
    house.receive(raw=mail("broadcast"))
    reader.catch_up()
    bodies = {one.answer().body for one in parked}
    assert len(bodies) == 1
    assert reader.calls - before < 6
    house.close()


def test_each_recipient_has_a_message_of_its_own(house: House) -> None:
    """One mail to +a and +b ends both waits, each with its own id, to and tag."""
    waits = [wait(house, "tag=a"), wait(house, "tag=b")]
    house.receive(house.address("a"), house.address("b"))
    first, second = (one.answer().json for one in waits)
    assert (first["tag"], second["tag"]) == ("a", "b")
    assert first["id"] != second["id"]
    assert first["deliveryId"] == second["deliveryId"]


def test_since_is_the_moment_of_the_request(house: House) -> None:
    """Without since and after, only mail that arrives after the request matches."""
    house.receive(raw=mail("before"))
    house.pass_time(1)
    pending = wait(house)
    assert not pending.is_answered
    house.receive(raw=mail("after"))
    assert subjects(pending) == ["after"]


def test_a_wait_begins_where_the_inbox_is_when_its_key_is_read() -> None:
    """Mail that arrives while the rest of the request is processed matches the wait."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    house.receive(raw=mail("known inbox"))
    house.pass_time(0.5)
    pending = wait(house)
    reader.is_slow = True
    house.receive(raw=mail("sent right after the request"))
    house.pass_time(0.25)
    reader.catch_up()
    assert subjects(pending) == ["sent right after the request"]
    house.close()


def test_the_oldest_match_is_returned_at_once(house: House) -> None:
    """With since or after in the past, the oldest stored match is returned at once."""
    for subject in ("first", "second", "third"):
        house.pass_time(1)
        house.receive(raw=mail(subject))
    since_first = wait(house, "since=2026-11-21T12:00:01.000Z")
    since_second = wait(house, "since=2026-11-21T12:00:01.001Z")
    assert subjects(since_first, since_second) == ["first", "second"]


def test_since_includes_its_own_moment(house: House) -> None:
    """A message received in the same millisecond as since matches."""
    house.pass_time(0.123)
    house.receive(raw=mail("on the dot"))
    received_at = house.get("/inbox/messages").json["messages"][0]["receivedAt"]
    assert received_at == "2026-11-21T12:00:00.123Z"
    assert subjects(wait(house, f"since={received_at}")) == ["on the dot"]
    assert not wait(house, "since=2026-11-21T12:00:00.124Z").is_answered


def test_the_cursor_needs_no_clock(house: House) -> None:
    """A cursor from before the mail finds it, both before and during the wait."""
    cursor = house.get("/inbox/address").json["cursor"]
    house.receive(raw=mail("before the wait"))
    house.pass_time(3_600)
    first = wait(house, f"after={cursor}")
    assert subjects(first) == ["before the wait"]
    cursor = wait(house, f"after={cursor}").answer().json["cursor"]
    second = wait(house, f"after={cursor}")
    assert not second.is_answered
    house.receive(raw=mail("during the wait"))
    assert subjects(second) == ["during the wait"]


def test_continuing_after_each_message_misses_none(house: House) -> None:
    """Waiting after the cursor of each message returns every message once, in order."""
    sent = [f"mail {number}" for number in range(7)]
    for subject in sent:
        house.receive(raw=mail(subject))
    cursor, got = "c0", []
    for _ in sent:
        message = wait(house, f"after={cursor}").answer().json
        got.append(message["subject"])
        cursor = message["cursor"]
    assert got == sent
    assert not wait(house, f"after={cursor}").is_answered


def test_after_and_since_both_count(house: House) -> None:
    """With both after and since, a message must satisfy both."""
    house.receive(raw=mail("early"))
    house.pass_time(10)
    house.receive(raw=mail("late"))
    pending = wait(house, "after=c0&since=2026-11-21T12:00:05Z")
    assert subjects(pending) == ["late"]


def test_a_disconnect_leaves_no_waiter(house: House) -> None:
    """A disconnect ends the wait of that client only."""
    gone, stays = wait(house), wait(house)
    assert house.assembly.mail.feeds.count() == 2
    gone.hang_up()
    assert house.assembly.mail.feeds.count() == 1
    house.receive()
    assert stays.answer().status == 200
    assert house.assembly.mail.feeds.count() == 0
    house.pass_time(SAVE_DELAY)
    assert not house.clock.getDelayedCalls()


def test_an_answered_wait_leaves_nothing(house: House) -> None:
    """Neither a match nor a timeout leaves a waiter or a timer."""
    matched, timed_out = wait(house), wait(house, "tag=other&timeout=5")
    house.receive()
    matched.answer()
    house.pass_time(5)
    assert timed_out.answer().status == 408
    assert house.assembly.mail.feeds.count() == 0
    assert not house.clock.getDelayedCalls()


def test_a_head_waits_too(house: House) -> None:
    """HEAD on the long poll waits like GET and is answered without a body."""
    pending = house.ask("HEAD", "/inbox/wait")
    assert not pending.is_answered
    house.receive()
    answer = pending.answer()
    assert (answer.status, answer.body) == (200, b"")


def test_shutdown_ends_waits_with_503_and_a_cursor(house: House) -> None:
    """A daemon that stops answers its waits with 503, Retry-After, and a cursor."""
    house.receive()
    house.pass_time(1)
    pending = wait(house)
    house.assembly.mail.feeds.close()
    answer = pending.answer()
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json["cursor"] == "c1"
    later = wait(house, "after=c1").answer()
    assert (later.status, later.json["cursor"]) == (503, "c1")
    without_cursor = wait(house).answer()
    assert without_cursor.status == 503
    assert without_cursor.json["cursor"] == "c1"


def test_a_store_that_fails_during_a_wait_is_503() -> None:
    """A store that fails when mail arrives is 503 with the cursor, never 408."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    house.receive()
    house.pass_time(1)
    pending = wait(house)
    reader.fault = StoreUnavailable("the database cannot answer now: disk I/O error")
    house.assembly.mail.feeds.on_hint(house.account.id)  # as of mail at another daemon
    answer = pending.answer()
    assert answer.status == 503
    assert answer.json["cursor"] == "c1"
    assert "interrupted" in answer.json["error"]
    reader.fault = None
    house.receive()
    message = wait(house, "after=c1").answer()
    assert message.status == 200
    house.close()


def test_a_store_that_fails_at_the_end_of_a_wait_is_503() -> None:
    """A store that fails at the timeout is 503, because the result is not known."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    pending = wait(house, "timeout=5")
    reader.fault = StoreUnavailable("the database cannot answer now: disk I/O error")
    house.pass_time(5)
    assert pending.answer().status == 503
    assert house.assembly.mail.feeds.count() == 0
    house.close()
