"""Objects of another account are 404, never 403, and appear nowhere."""

import json
from typing import Any

import pytest

from mailcheck.assembly.doors.rest import build_routes
from mailcheck.core.rights import ORDINARY
from tests.house import Answer, House, run
from tests.web.reporting import store_report

UNKNOWN = ("nobodys", "a" * 13, "NO-ID", "%C3%BC")


@pytest.fixture
def objects(house: House) -> dict[str, str]:
    """One object of the first account of each kind, by the variable of its routes."""
    house.receive(
        house.address("secret"),
        raw=(
            b"From: a@example.com\r\nSubject: secret plans\r\n"
            b'Content-Type: application/pdf; name="p.pdf"\r\n'
            b"Content-Disposition: attachment\r\n\r\nsecret\r\n"
        ),
    )

    def create(path: str, **body: Any) -> Any:
        answer = house.ask("POST", path, data=json.dumps(body).encode()).answer()
        assert answer.status == 200, answer.json
        return answer.json

    url = "http://app.example.com/in"
    run(house.assembly.inbound.deliver.start())
    route = create("/inbound/routes", to="a@*", format="mailcheck", url=url)
    create(f"/inbound/routes/{route['id']}/messages", text="Hi")
    return {
        "message_id": house.get("/inbox/messages").json["messages"][0]["id"],
        "webhook_id": create("/inbox/webhooks", url=url)["id"],
        "route_id": route["id"],
        "watch_id": create("/watches", target="secret.example")["id"],
        "heartbeat_name": create("/heartbeats", name="nightly", everyMinutes=60)["name"],
        "report_id": store_report(house, "secretreports").id,
        "test_id": create("/test/generate")["testId"],
    }


@pytest.fixture
def stranger(house: House) -> str:
    """A key of another account."""
    return house.issue_key(house.add_account("stranger"))


def test_an_object_of_another_account_is_not_found(
    house: House, objects: dict[str, str], stranger: str
) -> None:
    """Every route of an object responds to another account as for an unknown id, and does nothing.

    ``test_web_table_of_rights.py`` has the routes of projects and accounts.
    """
    seen: dict[str, Answer] = {}
    for route in build_routes(house.assembly):
        name = next((one for one in objects if f"<{one}>" in route.path), None)
        if name is None:
            continue
        path = route.path.replace("<attachment_id>", "1").replace("<alert_id>", "1")
        own = path.replace(f"<{name}>", objects[name])
        if route.method == "GET" and not own.endswith("/wait"):
            seen[own] = house.get(own)
            assert seen[own].status != 404, own
        body = route.operation.request.example.encode() if route.operation.reads_body else None
        theirs, *nobodys = (
            house.ask(route.method, asked, stranger, data=body).answer()
            for asked in (own, *(path.replace(f"<{name}>", one) for one in UNKNOWN))
        )
        shown = theirs.body.replace(objects[name].encode(), UNKNOWN[0].encode())
        assert (theirs.status, shown) == (404, nobodys[0].body), (route.method, route.path)
        assert {one.status for one in nobodys} == {404}, (route.method, route.path)
    assert {path: house.get(path).body for path in seen} == {
        path: answer.body for path, answer in seen.items()
    }
    assert house.get("/reports").json["total"] == 1
    assert (house.receivers.posts, house.hosts.looked_at) == ([], [])
    assert len(house.receivers.inbound) == 1
    shared = house.get(f"/inbox/messages/{objects['message_id']}").json["shareUrl"]
    assert house.open(shared.partition("8080")[2]).answer().status == 200


def test_nothing_of_another_account_is_listed(
    house: House, objects: dict[str, str], stranger: str
) -> None:
    """Overviews, lists, searches and counts of another account do not include the objects."""
    searches = [
        f"/inbox/messages?{query}"
        for query in ("tag=secret", "q=secret", "subject=plans", "from=a%40example.com")
    ]
    lists = [
        one.path
        for one in build_routes(house.assembly)
        if one.method == "GET" and "<" not in one.path and one.operation.scopes[0] in ORDINARY
    ]
    listed: set[str] = set()
    for path in [*lists, *searches]:
        for key in (house.key, stranger):
            pending = house.ask("GET", path, key)
            if pending.media_type.startswith("application/json"):
                text = pending.answer().body.decode()
                found = {name for name, one in objects.items() if one in text}
                assert key is not stranger or not found, (path, found)
                listed |= found
            pending.hang_up()
    assert listed == set(objects)
    body = house.get("/inbox", key=stranger).json
    assert (body["total"], body["tags"], body["cursor"]) == (0, [], "c0")
    assert body["address"] != house.address()
