"""Media types of request bodies, at every route that reads a body."""

import re
from base64 import b64encode
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from mailcheck.api.urls import API_PATH
from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.core.errors import ExpectedFailure
from mailcheck.web.site.application import Door, Route
from mailcheck.web.site.bodies import ANY_TYPE, FORM, JSON, UNCHOSEN, media_type_of
from mailcheck.web.site.failures import WrongMediaType
from mailcheck.web.site.likeness import Like
from tests.house import Answer, House
from tests.table import rows
from tests.web.compatible.open_site import OpenSite
from tests.web.raw_http import RawHttp, read_answer, request

UNREAD = ["application/xml", "text/html", "multipart/form-data; boundary=b", "nonsense"]


def reading(doors: Any) -> Iterator[tuple[Door, Route[Any]]]:
    """Yield the routes that read a body, with their doors."""
    for door in doors:
        for route in door.routes:
            reads = door.reads if route.reads is None else route.reads
            has_fields = getattr(route.request, "__struct_fields__", ())
            if reads and has_fields and route.like is not Like.NOT_OFFERED:
                yield door, route


ROUTES = [(door, one) for door, one in reading(FACADES) if one.method != "GET"]
HOSTED = [(door, one) for door, one in ROUTES if door.base]
OPEN = [one for door, one in ROUTES if not door.base]


def ask(site: Any, method: str, path: str, media_type: str, key: str, body: bytes) -> Answer:
    """Send a body with a media type, and return the answer."""
    basic = b64encode(f"{key}:".encode()).decode()
    fields = [f"X-API-Key: {key}", f"Authorization: Basic {basic}"] if key else []
    fields += [f"Content-Length: {len(body)}"]
    fields += [f"Content-Type: {media_type}"] if media_type else []
    connection = RawHttp(site)
    target = re.sub(r"<\w+>", "x", path)
    connection.send(request(target, *fields, method=method) + body)
    answer = read_answer(connection.received(), method)[0]
    connection.hang_up()
    return answer


@rows(*HOSTED)
def test_a_body_of_another_type_is_rejected(house: House, door: Door, route: Route[Any]) -> None:
    """A type that the client chose and the route does not read is 415, and nothing is done."""
    house.receive()
    before = house.get("/inbox/messages").json["total"]
    for media_type in UNREAD:
        answer = ask(house, route.method, door.base + route.path, media_type, house.key, b"<all/>")
        assert answer.status == 415, media_type
    assert house.get("/inbox/messages").json["total"] == before


@rows(*HOSTED)
def test_a_json_body_is_read_under_default_types(
    house: House, door: Door, route: Route[Any]
) -> None:
    """JSON with a type that clients send by default is read as JSON, and never as nothing."""
    house.receive()
    before = house.get("/inbox/messages").json["total"]
    for media_type in UNCHOSEN:
        answer = ask(house, route.method, door.base + route.path, media_type, house.key, b'{"a": ')
        assert answer.status == 400
        assert b"JSON" in answer.body, media_type
    assert house.get("/inbox/messages").json["total"] == before


def test_mailpit_and_mailhog_read_json_under_every_type() -> None:
    """A body that is not JSON is an error under every type, as for the products themselves."""
    site = OpenSite()
    site.send()
    for route, media_type in product(OPEN, ["", "text/plain", *UNREAD]):
        answer = ask(site, route.method, route.path, media_type, "", b"<all/>")
        assert (answer.status, b"JSON" in answer.body) == (400, True), (route.path, media_type)
    assert site.get("/api/v1/messages").json["total"] == 1


def test_the_rest_api_rejects_other_types(house: House) -> None:
    """Each route of the API that reads a body rejects other types."""
    house.use_every_scope()
    routes = [one for one in build_routes(house.assembly) if one.reads]
    assert routes
    for route in routes:
        for media_type in UNREAD:
            path = API_PATH + route.path
            answer = ask(house, route.method, path, media_type, house.key, b"<all/>")
            assert answer.status == 415, (path, media_type)


@rows(
    ("", b"{}", JSON),
    ("", b"a=1", JSON),
    (FORM, b'{"a": 1}', JSON),
    (FORM, b" [1]", JSON),
    (FORM, b"a=1", FORM),
    (f"{FORM}; charset=utf-8", b"a=1", FORM),
    ("Application/JSON; charset=utf-8", b"{}", JSON),
    ("application/vnd.api+json", b"{}", JSON),
    ("application/octet-stream", b"{}", JSON),
    ("application/xml", b"", JSON),
)
def test_the_type_of_a_body(sent: str, body: bytes, found: str) -> None:
    """The type that the client chose counts; otherwise the body decides, or the first type."""
    assert media_type_of((JSON, FORM), sent, body) == found


def test_a_type_that_is_not_read() -> None:
    """It is rejected, except where all types are read as the first one."""
    with pytest.raises(WrongMediaType) as rejected:
        media_type_of((JSON, FORM), "application/xml", b"<a/>")
    assert isinstance(rejected.value, ExpectedFailure)
    assert media_type_of((JSON, ANY_TYPE), "application/xml", b"<a/>") == JSON
    assert media_type_of((), "application/xml", b"<a/>") == ""
    assert media_type_of((FORM,), "text/plain", b"{}") == FORM
