"""The room for large request bodies, which only the APIs of providers accept."""

from tests.house import House
from tests.web.provider_requests import headers_for
from tests.web.raw_http import RawHttp, read_answer, request

PATH = "/providers/resend/emails"
LARGE = 30_000_000


def begin(house: House, path: str, peer: str, size: int = LARGE) -> RawHttp:
    """Send the head of a request with a large body, and nothing of the body."""
    given = {"X-API-Key": house.key, **headers_for(PATH, house.key)}
    lines = [f"{name}: {value}" for name, value in given.items()]
    visit = RawHttp(house, peer)
    visit.send(request(path, *lines, f"Content-Length: {size}", method="POST"))
    return visit


def test_the_bodies_of_a_client_have_limited_room(house: House) -> None:
    """The fifth body of 30 MB is rejected at once, until an earlier request has ended."""
    held = [begin(house, PATH, "192.0.2.1") for _ in range(4)]
    assert [visit.received() for visit in held] == [b""] * 4
    rejected = read_answer(begin(house, PATH, "192.0.2.1").received(), "POST")[0]
    assert rejected.status == 503
    assert int(rejected.headers["retry-after"]) > 0
    held[0].hang_up()
    assert begin(house, PATH, "192.0.2.1").received() == b""


def test_the_bodies_of_all_clients_have_limited_room(house: House) -> None:
    """Many clients together cannot fill the disk, and small bodies are accepted nevertheless."""
    for number in range(8):
        assert begin(house, PATH, f"192.0.2.{number}").received() == b""
    rejected = read_answer(begin(house, PATH, "192.0.2.99").received(), "POST")[0]
    assert rejected.status == 503
    assert begin(house, PATH, "192.0.2.99", 1_000).received() == b""


def test_other_paths_accept_no_large_bodies(house: House) -> None:
    """A body over 65,536 bytes is still too large for the REST API."""
    answer = read_answer(begin(house, "/api/v1/inbox/webhooks", "192.0.2.1").received(), "POST")[0]
    assert answer.status == 413
