"""The long poll while mail arrives (docs/reference/contract.md, "Waiting for mail")."""

from mailcheck.assembly.workers import Workers
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


def test_a_search_is_rejected(house: House) -> None:
    """A search is rejected by a wait, which does not support it."""
    house.receive(house.address(), raw=mail("stored"))
    for query in ("q=stored&after=c0", "q=&after=c0"):
        answer = wait(house, query).answer()
        assert answer.status == 400
        assert answer.json["error"].startswith("'q' is not a parameter of this route")


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


def test_since_includes_its_own_moment(house: House) -> None:
    """A message received in the same millisecond as since matches."""
    house.pass_time(0.123)
    house.receive(raw=mail("on the dot"))
    received_at = house.get("/inbox/messages").json["messages"][0]["receivedAt"]
    assert received_at == "2026-11-21T12:00:00.123Z"
    assert subjects(wait(house, f"since={received_at}")) == ["on the dot"]
    assert not wait(house, "since=2026-11-21T12:00:00.124Z").is_answered


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
