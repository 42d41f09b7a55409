"""The time of day, and expiry when it is set."""

from typing import Any
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from mailcheck.core.instants import DAY, HOUR, SECOND
from mailcheck.daemon.wall_clock import WallClock, run_on_monotonic_clock
from tests.house import House, mail, result_of
from tests.web.raw_http import RawHttp, request

KEPT = 100.0
"""The retention in seconds in these tests."""

EVENTS = st.lists(st.tuples(st.integers(0, 60), st.integers(-500, 500)), max_size=30)
"""Seconds that pass, and seconds by which the clock is set then."""


@given(EVENTS)
def test_nothing_expires_before_its_time_has_passed(events: list[tuple[int, int]]) -> None:
    """Data is kept for its full retention, however the clock is set."""
    clock, set_ahead = Clock(), [10_000.0]
    wall_clock = WallClock(lambda: clock.seconds() + set_ahead[0], clock, KEPT)
    kept = [(clock.seconds(), wall_clock.now() + KEPT * SECOND)]
    for passed, step in events:
        clock.advance(passed)
        set_ahead[0] += step
        now = wall_clock.expiry_now()
        for began, expires_at in kept:
            assert now < expires_at or clock.seconds() - began >= KEPT
        kept.append((clock.seconds(), wall_clock.now() + KEPT * SECOND))
    clock.advance(KEPT)
    assert wall_clock.expiry_now() == wall_clock.now()


def test_a_clock_that_is_set_is_told() -> None:
    """Each step is logged once with direction and size; slewing is not."""
    clock, set_ahead = Clock(), [0.0]
    wall_clock = WallClock(lambda: clock.seconds() + set_ahead[0], clock, KEPT)
    with capturedLogs() as events:
        for ahead in (0.4, 86_400, 86_400, 82_800):
            set_ahead[0] = ahead
            wall_clock.expiry_now()
    told = [(event["direction"], round(event["seconds"])) for event in events]
    assert told == [("ahead", 86_400), ("back", 3_600)]


def test_a_reactor_on_the_monotonic_clock() -> None:
    """The reactor measures delays by the monotonic clock."""
    from twisted.internet.epollreactor import EPollReactor  # one of its own: ours runs

    reactor: Any = EPollReactor()
    run_on_monotonic_clock(reactor)
    call = reactor.callLater(5, lambda: None)
    assert abs(call.getTime() - reactor.seconds() - 5) < 1
    assert reactor.seconds() < 1_000_000_000  # since the machine was started, not since 1970


def test_a_wait_while_the_clock_is_set_back(house: House) -> None:
    """A wait ends after its seconds even if the clock was set back by an hour."""
    pending = house.ask("GET", "/inbox/wait?timeout=5")
    house.set_ahead = -HOUR / SECOND
    house.pass_time(4.9)
    assert not pending.is_answered
    house.pass_time(0.1)
    assert pending.answer().status == 408
    assert pending.answer().json["waited"] == 5.0


def test_mail_while_the_clock_is_set_ahead(house: House) -> None:
    """Setting the clock ahead by a day does not hide or delete mail early."""
    sweep = house.assembly.mail.retention.sweep
    house.receive(house.address("a"), raw=mail("before"))
    house.pass_time(HOUR / SECOND)
    house.set_ahead = DAY / SECOND
    result_of(Deferred.fromCoroutine(sweep()))
    assert house.get("/inbox/messages").json["total"] == 1
    found = house.get("/inbox/wait?tag=a&since=2026-01-01T00:00:00Z")
    assert found.json["subject"] == "before"
    assert house.get(f"/inbox/messages/{found.json['id']}").status == 200
    house.pass_time(23 * HOUR / SECOND)
    assert house.get("/inbox/messages").json["total"] == 0


def test_sharing_while_the_clock_is_set_ahead(house: House) -> None:
    """New share links of a stored mail and test work after the step."""
    house.receive(raw=mail("before"))
    message = house.get("/inbox/messages").json["messages"][0]
    test = house.ask("POST", "/test/generate").answer().json
    house.set_ahead = 30 * DAY / SECOND
    for path in (f"/inbox/messages/{message['id']}", f"/test/{test['testId']}"):
        shared = house.ask("POST", f"{path}/share").answer().json
        assert house.open(urlsplit(shared["shareUrl"]).path).answer().status == 200


def test_waits_while_the_clock_is_set_ahead(house: House) -> None:
    """A wait for a test continues, and followers of an inbox see the test's mail."""
    house.receive(raw=mail("before"))
    test = house.ask("POST", "/test/generate").answer().json
    house.set_ahead = DAY / SECOND
    pending = house.ask("GET", f"/test/{test['testId']}/wait?timeout=5")
    house.pass_time(4.9)
    assert not pending.is_answered
    house.pass_time(0.1)
    assert pending.answer().status == 408
    connection = RawHttp(house)
    connection.send(request("/api/v1/inbox/events?after=c0", f"X-API-Key: {house.key}"))
    house.pass_time(0)
    assert b"before" in connection.received()
    connection.hang_up()
