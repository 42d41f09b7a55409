"""What all facades have in common: keys, scopes, parameters, errors, and the hold."""

import base64
from typing import Any

import pytest
from msgspec import Struct
from twisted.logger import LogEvent
from twisted.web.server import Request

from mailcheck.assembly.doors.access import build_access
from mailcheck.core.errors import InvalidCredentials
from mailcheck.core.filters import ANY
from mailcheck.core.rights import Scope, make_rights
from mailcheck.web.compatible.facade import SENDS_NOTHING, make_facade, not_offered
from mailcheck.web.compatible.hold import Hold
from mailcheck.web.site.application import Application, Call, OpenDoor, Route, admit_with_key
from mailcheck.web.site.costs import FREE
from mailcheck.web.site.failures import Problem
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.web.site.requests import ClientAddresses, header_values
from tests.house import House, run
from tests.table import rows
from tests.web.compatible.sites import Requests


class Find(Struct, frozen=True):
    """The request of the route below."""

    subject: str = ""
    limit: int = 10
    ids: list[str] | str = ()  # type: ignore[assignment]
    isRead: bool = False  # noqa: N815


class Toy:
    """A product with one search."""

    def __init__(self, house: House, hold: Hold) -> None:
        self._read = house.assembly.inbox.read
        self._hold = hold

    async def find(self, call: Call[Find]) -> Reply:
        """Return the number of messages, and the request."""

        async def look() -> int:
            return (await self._read.page(call.caller.account_id, ANY, 10, 1)).total

        total = await self._hold.until(call.caller, look, bool)
        return json_reply({"total": total, "asked": call.request, "base": call.base})

    async def fail(self, call: Call[Find]) -> Reply:
        """Fail as a bug does."""
        raise RuntimeError("secret")


def read_key(request: Request) -> str:
    """Return the user name of Basic authentication."""
    (value, *_) = [*header_values(request, b"Authorization"), ""]
    if not value.startswith("Basic "):
        raise InvalidCredentials("send the API key as the user")
    return base64.b64decode(value.removeprefix("Basic ")).decode().partition(":")[0]


def write_error(problem: Problem) -> Reply:
    """Return an error of the product."""
    return json_reply({"Error": problem.sentence, "field": problem.parameter}, problem.status)


TOY = make_facade(
    "toy",
    "Toy",
    "/toy",
    (
        Route("GET", "/find", Toy.find, Find, FREE, (Scope.INBOX_READ,)),
        Route("POST", "/find", Toy.find, Find, FREE, (Scope.INBOX_READ,)),
        Route("GET", "/crash", Toy.fail, Find, FREE, (Scope.INBOX_READ,)),
        not_offered("POST", "/release/<id>", SENDS_NOTHING),
    ),
    read_key,
    write_error,
)


def as_user(key: str) -> dict[str, str]:
    """Return the header of Basic authentication with a key as the user."""
    return {"Authorization": "Basic " + base64.b64encode(f"{key}:".encode()).decode()}


def toy_of(house: House, seconds: float = 2.0) -> Requests:
    """Return requests to the facade, with the key of the first account."""
    inbox = house.assembly.inbox
    hold = Hold(inbox.follow, inbox.read, seconds)
    addresses = ClientAddresses([])
    admit = admit_with_key(build_access(house.assembly, addresses), TOY.read_key)
    base, toy = "http://mail.example/toy", Toy(house, hold)
    opened = OpenDoor(TOY, admit, base=lambda _: base, operations=toy)
    resource = Application([opened], addresses, house.assembly.runtime.now)
    return Requests(house, resource, headers=as_user(house.key))


@pytest.fixture
def toy(house: House) -> Requests:
    """Requests to the facade."""
    return toy_of(house)


def test_parameters_and_body_are_one_request(house: House, toy: Requests) -> None:
    """Names are compared without case, texts become numbers, and unknown names are ignored."""
    house.receive()
    answer = toy.ask("POST", "/toy/find?LIMIT=5&other=1", json={"Subject": "a", "ids": None})
    asked = answer.answer().json["asked"]
    assert asked == {"subject": "a", "limit": 5, "ids": [], "isRead": False}
    asked = toy.get("/toy/find?ids=a&ids=b&isRead=true").json["asked"]
    assert (asked["ids"], asked["isRead"]) == (["a", "b"], True)


def test_a_form_is_a_request_too(house: House, toy: Requests) -> None:
    """The fields of a form are the names of a request."""
    house.receive()
    asked = toy.submit("POST", "/toy/find", subject="a b").answer().json["asked"]
    assert asked["subject"] == "a b"


@rows(
    (b"{", "the body is not JSON"),
    (b"[]", "must be a JSON object"),
    (b'{"limit": "many"}', "limit: Expected `int`, got `str`"),
)
def test_an_invalid_request_is_explained(toy: Requests, body: bytes, error: str) -> None:
    """A body that cannot be read is answered with 400, in the format of the product."""
    answer = toy.ask("POST", "/toy/find", data=body).answer()
    assert answer.status == 400
    assert error in answer.json["Error"]


def test_the_failure_is_given_to_the_error_writer(toy: Requests) -> None:
    """An error can name the field that was wrong."""
    assert toy.get("/toy/find?limit=x").json["field"] == "limit"


def test_a_key_is_needed(toy: Requests) -> None:
    """Without a key, and with an unknown one, the answer is 401 and names the scheme."""
    for headers in ({"Authorization": ""}, as_user("unknown")):
        answer = toy.ask("GET", "/toy/find", headers=headers).answer()
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Basic")


def test_a_limited_key_needs_the_scope(house: House, toy: Requests) -> None:
    """A key without the scope of the route gets 403."""
    key = house.issue_key(house.account, rights=make_rights(("tests",)))
    answer = toy.ask("GET", "/toy/find", headers=as_user(key)).answer()
    assert answer.status == 403
    assert "inbox:read" in answer.json["Error"]


def test_requests_are_counted(house: House, toy: Requests) -> None:
    """A key over its limit gets 429 and Retry-After."""
    house.receive()
    key = house.issue_key(house.account, per_minute=1)
    assert toy.get("/toy/find", headers=as_user(key)).status == 200
    answer = toy.get("/toy/find", headers=as_user(key))
    assert answer.status == 429
    assert int(answer.headers["retry-after"]) > 0


def test_a_route_that_is_not_offered_says_why(toy: Requests) -> None:
    """It is answered with 501 and the reason of its declaration."""
    answer = toy.ask("POST", "/toy/release/1").answer()
    assert (answer.status, answer.json["Error"]) == (501, SENDS_NOTHING)


def test_unknown_paths_and_methods(toy: Requests) -> None:
    """They are errors of the product; 405 lists the methods."""
    answer = toy.get("/toy/nowhere")
    assert (answer.status, "/toy/nowhere" in answer.json["Error"]) == (404, True)
    answer = toy.ask("DELETE", "/toy/find").answer()
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


def test_a_bug_shows_only_a_reference(toy: Requests, logged_failures: list[LogEvent]) -> None:
    """The answer to an internal error does not contain its cause."""
    answer = toy.get("/toy/crash")
    assert answer.status == 500
    assert "secret" not in answer.body.decode()
    assert len(logged_failures) == 1


def test_a_search_is_held_until_mail_arrives(house: House, toy: Requests) -> None:
    """A request that finds nothing is answered when mail arrives, or when its time is over.

    With a hold of 0 seconds, and with a result, it is answered at once.
    """
    assert toy_of(house, 0).get("/toy/find").json["total"] == 0
    for end, total in ((lambda: toy.pass_time(0.2), 0), (house.receive, 1)):
        asked = toy.ask("GET", "/toy/find")
        toy.pass_time(1.9)
        assert not asked.is_answered
        end()
        assert asked.answer().json["total"] == total
    assert toy.get("/toy/find").json["total"] == 1


def test_a_hold_without_a_free_slot_answers_at_once(house: House, toy: Requests) -> None:
    """If all wait slots of the key are in use, the search is answered with its result."""
    held = [toy.ask("GET", "/toy/find") for _ in range(100)]
    assert toy.get("/toy/find").json["total"] == 0
    for one in held:
        assert not one.is_answered
        one.hang_up()


def test_a_client_that_gives_up_frees_its_slot(house: House, toy: Requests) -> None:
    """A held request of a client that has disconnected holds nothing."""
    toy.ask("GET", "/toy/find").hang_up()
    feeds: Any = house.assembly.mail.feeds
    assert not feeds.waiters()


def test_mail_between_the_request_and_the_look_is_found(house: House) -> None:
    """A mail that arrives during the first look ends the hold."""
    inbox = house.assembly.inbox
    hold = Hold(inbox.follow, inbox.read, 2.0)
    caller = run(house.assembly.accounts.authenticator.identify(house.key))
    looks: list[int] = []

    async def look() -> int:
        looks.append(0)
        if len(looks) == 1:
            house.receive()
            return 0
        return 1

    assert run(hold.until(caller, look, bool)) == 1
