"""Requests that are meant to delete some messages never delete others.

They are drawn from the list of routes. Each is wrong in one way: an unknown field, an empty value,
or a body that the route does not read. So none of them may delete anything.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from msgspec.structs import fields

from mailcheck.api.requests.parsing import Request, request_fields
from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.config.options import LimitsOptions
from mailcheck.web.site.bodies import FORM, JSON
from tests.house import Answer, House, config_in_memory, mail
from tests.table import rows
from tests.web.compatible import mailosaur, mailslurp
from tests.web.compatible.open_site import OpenSite
from tests.web.compatible.sites import Requests

pytestmark = pytest.mark.attack

EMPTY = ("", " ", "%20", "\t", "%E2%80%8B", "%C2%AD%EF%BB%BF", "%CC%81")
"""Values of variables that are not set, or that have only characters that searches ignore."""

WITH_A_MEANING = {"tag", "reporter"}
"""Parameters of our API whose empty value selects something."""

FOREIGN = ("ID", "ids", "inboxId", "tga", "query", "all", "")
"""Names that some client or some other route uses."""

MANY = 1_000_000
"""A limit that no test reaches."""

OTHER_TYPES = ("", FORM, "application/xml")


class Deletion(NamedTuple):
    """A request to delete."""

    path: str
    data: bytes = b""
    content_type: str = ""


def _wrong_queries(path: str, known: Sequence[str]) -> Iterator[Deletion]:
    for name in known:
        for value in EMPTY if name not in WITH_A_MEANING else ():
            yield Deletion(f"{path}?{name}={value}")
    folded = {name.lower() for name in known}
    for name in FOREIGN:
        if name.lower() not in folded:
            yield Deletion(f"{path}?{urlencode({name: 'x'})}")
    if known:
        yield Deletion(f"{path}?{known[0]}=x&{known[0]}s=x")


EMPTY_VALUES: Sequence[Any] = (None, "", " ", "\u200b", [], {}, [""], [None], ["\u200b"])


def _wrong_bodies(path: str, known: Sequence[str]) -> Iterator[Deletion]:
    folded = {name.lower() for name in known}
    objects = [{name: "x"} for name in FOREIGN if name.lower() not in folded]
    objects += [{name: value} for name in known for value in EMPTY_VALUES]
    bodies = [json.dumps(one).encode() for one in objects]
    bodies += [b'["x"]', b'"x"', b"7", b"{", b"tag=run-1", b"id=x&all=", b"<ids><id>x</id></ids>"]
    for body, other_type in zip(bodies, cycle(OTHER_TYPES)):
        yield Deletion(path, body, JSON)
        yield Deletion(path, body, other_type)


def wrong_requests(path: str, known: Sequence[str]) -> Iterator[Deletion]:
    """Return requests to a path that are wrong in one way.

    :param known: the parameters of its route.
    """
    yield from _wrong_queries(path, known)
    yield from _wrong_bodies(path, known)


Ask = Callable[[Deletion], Answer]


def attack(house: House, ask: Ask, requests: Iterator[Deletion]) -> None:
    """Send requests, and check that each is rejected and deletes nothing."""
    count = len(house.get("/inbox/messages").json["messages"])
    assert count > 1
    tried = 0
    for request in requests:
        answer = ask(request)
        assert answer.status in (400, 415), (request, answer.status, answer.body)
        tried += 1
    assert tried
    assert len(house.get("/inbox/messages").json["messages"]) == count


def _names_of(kind: Any) -> list[str]:
    if issubclass(kind, Request):
        return list(request_fields(kind))
    return [one.encode_name for one in fields(kind)]


def _filled(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"<{name}>", value)
    return path


def _ask_of(site: Requests) -> Ask:
    def ask(request: Deletion) -> Answer:
        headers = {"Content-Type": request.content_type} if request.content_type else {}
        return site.ask("DELETE", request.path, data=request.data, headers=headers).answer()

    return ask


def _unlimited_house() -> House:
    limits = LimitsOptions(requests_per_minute=MANY, requests_per_day=MANY)
    return House(config_in_memory(limits=limits))


def test_our_own_routes() -> None:
    """No request that is wrong in one way deletes anything over our API."""
    house = _unlimited_house()
    for tag in ("run-1", "precious", ""):
        house.receive(house.address(tag), raw=mail(tag))
    (first, *_) = house.get("/inbox/messages").json["messages"]

    def ask(request: Deletion) -> Answer:
        headers = {"Content-Type": request.content_type} if request.content_type else {}
        return house.ask("DELETE", request.path, data=request.data, headers=headers).answer()

    house.use_every_scope()
    for route in build_routes(house.assembly):
        if route.is_destructive:
            path = _filled(route.path, {"message_id": first["id"]})
            attack(house, ask, wrong_requests(path, _names_of(route.request)))


@rows(*FACADES)
def test_routes_of_other_products(door: Any) -> None:
    """No request that is wrong in one way deletes anything over the API of another product."""
    if door.name in ("mailpit", "mailhog"):
        site: Any = OpenSite()
        for subject in ("one", "two"):
            site.send(raw=mail(subject))
        house = site.house
    else:
        house = _unlimited_house()
        client = {"mailosaur": mailosaur, "mailslurp": mailslurp}[door.name]
        site = client.Client(house)
        for tag in ("run-1", "precious"):
            house.receive(house.address(tag), raw=mail(tag))
    (first, *_) = house.get("/inbox/messages").json["messages"]
    values = {"id": first["id"], "tag": "run-1", "hook": "none"}
    for route in door.routes:
        if route.is_destructive and route.like.value != "not offered":
            path = _filled(route.path, values)
            attack(house, _ask_of(site), wrong_requests(path, _names_of(route.request)))


@rows(
    *("\u200b", " \0", "-\u200b", "from:\u200b", "!subject:\xad", 'tag:"\u0301"', '"\u2060" \ufeff')
)
def test_a_search_for_characters_that_searches_ignore(query: str) -> None:
    """A search with such characters only selects no message to delete."""
    site = OpenSite()
    site.send()
    answer = site.ask("DELETE", f"/api/v1/search?{urlencode({'query': query})}").answer()
    assert answer.status == 400
    assert site.house.get("/inbox").json["total"] == 1
