"""Rate limits of requests (docs/reference/contract.md, "Rate limits")."""

import pytest

from mailcheck.config.options import LimitsOptions
from tests.house import Answer, House, config_in_memory
from tests.table import rows
from tests.web.raw_http import RawHttp

REMAINING = "x-ratelimit-remaining"
DAILY = "x-ratelimit-daily-remaining"


@pytest.fixture
def key(house: House) -> str:
    """A key with the default limits: 60 requests a minute, 1,000 a day."""
    return house.issue_key(house.account, per_minute=None, per_day=None)


def spend(house: House, key: str, count: int) -> list[int]:
    """Send requests, and return their statuses."""
    return [house.get("/inbox", key=key).status for _ in range(count)]


def left(answer: Answer) -> tuple[int, int]:
    """Return the remaining requests of the minute and of the day, from the headers."""
    return int(answer.headers[REMAINING]), int(answer.headers[DAILY])


def test_the_headers_count_down(house: House, key: str) -> None:
    """Each request counts against 60 a minute and 1,000 a day, including the first."""
    assert left(house.get("/inbox", key=key)) == (59, 999)
    assert left(house.get("/inbox/address", key=key)) == (58, 998)


def test_the_61st_request_in_a_minute_is_refused(house: House, key: str) -> None:
    """The 61st request in a minute is 429 with a correct Retry-After and an explanation."""
    house.pass_time(12.25)
    assert spend(house, key, 60) == [200] * 60
    answer = house.get("/inbox", key=key)
    assert answer.status == 429
    assert answer.headers["retry-after"] == "48"  # whole seconds to the end of 47.75
    assert answer.json["error"] == (
        "the limit of 60 requests per minute of this API key is reached; "
        "it resets at 2026-11-21T12:01:00.000Z; "
        "`mailcheck key issue NAME --per-minute 6000` issues a key with a higher limit"
    )
    assert answer.headers[REMAINING] == "0"


def test_a_429_has_its_reason_phrase(house: House, key: str) -> None:
    """The status line of a 429 has the phrase of RFC 6585, and of a 408 that of RFC 9110."""
    head = f"Host: a\r\nX-API-Key: {key}\r\n\r\n"
    waiting = RawHttp(house)
    waiting.send(f"GET /api/v1/inbox/wait?timeout=1 HTTP/1.1\r\n{head}".encode())
    house.pass_time(1)
    assert waiting.received().startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    spend(house, key, 60)
    limited = RawHttp(house)
    limited.send(f"GET /api/v1/inbox HTTP/1.1\r\n{head}".encode())
    assert limited.received().startswith(b"HTTP/1.1 429 Too Many Requests\r\n")


def test_the_day_limit(house: House) -> None:
    """After the daily limit, requests are 429 until the UTC day ends."""
    key = house.issue_key(house.account, per_minute=60, per_day=70)
    spend(house, key, 60)
    house.pass_time(60)
    spend(house, key, 10)
    answer = house.get("/inbox", key=key)
    assert answer.status == 429
    assert answer.json["error"] == (
        "the limit of 70 requests per day of this API key is reached; "
        "it resets at 2026-11-22T00:00:00.000Z; "
        "`mailcheck key issue NAME --per-day 1000000` issues a key with a higher limit"
    )
    assert answer.headers["retry-after"] == str(12 * 3600 - 60)
    assert left(answer) == (50, 0)
    house.pass_time(12 * 3600 - 61)
    assert house.get("/inbox", key=key).status == 429
    house.pass_time(1)
    assert left(house.get("/inbox", key=key)) == (59, 69)


def test_the_operator_sets_the_defaults() -> None:
    """[limits] sets the default limits of keys."""
    house = House(config_in_memory(limits=LimitsOptions(2, 3, 100)))
    key = house.issue_key(house.account, per_minute=None, per_day=None)
    assert spend(house, key, 3) == [200, 200, 429]


@rows(
    ("GET", "/inbox/messages?limit=0", 400),
    ("GET", "/inbox/messages/none", 404),
    ("GET", "/nowhere", 404),
    ("PUT", "/inbox", 405),
    ("HEAD", "/inbox", 200),
)
def test_errors_cost_a_request_and_carry_the_headers(
    house: House, method: str, path: str, status: int
) -> None:
    """Every response to a valid key is counted once, and has the rate limit headers."""
    key = house.issue_key(house.account, per_minute=None, per_day=None)
    answer = house.ask(method, path, key=key).answer()
    assert answer.status == status
    assert left(answer) == (59, 999)


def test_a_long_poll_costs_one_request(house: House, key: str) -> None:
    """A wait counts as one request when it begins; its headers are from that time."""
    pending = house.ask("GET", "/inbox/wait?timeout=60", key=key)
    assert left(house.get("/inbox", key=key)) == (58, 998)
    house.pass_time(60)
    answer = pending.answer()
    assert answer.status == 408
    assert left(answer) == (59, 999)
    assert left(house.get("/inbox", key=key)) == (59, 997)


def test_a_401_costs_the_key_nothing(house: House, key: str) -> None:
    """Unauthorized requests do not count for any key."""
    for _ in range(5):
        headers = {"Authorization": f"Bearer {house.key}", "X-API-Key": key}
        assert house.get("/inbox", key=None, headers=headers).status == 401
    assert left(house.get("/inbox", key=key)) == (59, 999)


def test_an_address_without_a_key_has_60_a_minute(house: House, key: str) -> None:
    """The 61st invalid key in a minute from one address is 429, which limits guessing."""
    answer = house.get("/inbox", key="wrong")
    assert left(answer) == (59, 999)
    statuses = [house.get("/inbox", key=f"wrong{n}").status for n in range(60)]
    assert statuses == [401] * 59 + [429]
    refused = house.get("/inbox", key=None)
    assert refused.status == 429
    assert refused.headers["retry-after"] == "60"
    assert "60 requests per minute" in refused.json["error"]
    assert "key issue" not in refused.json["error"]
    assert refused.headers[REMAINING] == "0"
    # A valid key from the same address is not affected.
    assert left(house.get("/inbox", key=key)) == (59, 999)
    house.pass_time(60)
    assert house.get("/inbox", key="wrong").status == 401


@rows(
    (["192.0.2.1"], "192.0.2.1", "192.0.2.2"),
    ([f"2001:db8:0:1::{n:x}" for n in range(1, 61)], "2001:db8:0:1::ffff", "2001:db8:0:2::1"),
    (["::ffff:192.0.2.1"], "192.0.2.1", "::ffff:192.0.2.2"),
)
def test_the_budget_is_of_one_client(
    house: House, spenders: list[str], same: str, other: str
) -> None:
    """Invalid keys use the budget of their address, or of its /64, and no other client's."""
    for number in range(60):
        peer = spenders[number % len(spenders)]
        assert RawHttp(house, peer).ask("/api/v1/inbox").status == 401
    assert RawHttp(house, same).ask("/api/v1/inbox").status == 429
    assert RawHttp(house, other).ask("/api/v1/inbox").status == 401
    house.pass_time(60)


def test_open_pages_are_not_metered(house: House) -> None:
    """Pages that need no key are not counted, and have no rate limit headers."""
    for path in ("/healthz", "/readyz", "/share/none", "/nowhere"):
        answer = house.open(path).answer()
        assert answer.status in (200, 404)
        assert REMAINING not in answer.headers
    assert house.get("/inbox", key=None).headers[REMAINING] == "59"
