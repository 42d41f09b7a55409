"""The page of the API reference, which is rendered from the OpenAPI document."""

import gzip
import json
from urllib.parse import urlsplit

import pytest

from mailcheck.web.dashboard.api_reference.view import (
    describe_type,
    list_fields,
    render_code,
    shorten,
)
from tests.house import House, mail, run
from tests.spec.description import load_document
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import fetch, receive
from tests.web.raw_http import RawHttp

DOCUMENT = load_document()


@pytest.fixture
def page(house: House) -> Browser:
    """Open the page without signing in."""
    browser = Browser(house)
    assert browser.open("/api").status == 200
    return browser


def test_every_operation_is_shown(page: Browser) -> None:
    """Each operation and each type is on the page, and every link leads to an existing id."""
    operations = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]
    assert {one["operationId"] for one in operations} <= page.page.ids
    assert {f"schema-{name}" for name in DOCUMENT["components"]["schemas"]} <= page.page.ids
    fragments = [address[1:] for address in page.page.addresses if address.startswith("#")]
    assert [name for name in fragments if name not in page.page.ids] == []
    for path, methods in DOCUMENT["paths"].items():
        assert path in page.page.text
        for operation in methods.values():
            assert operation["summary"] in page.page.text
            for parameter in operation.get("parameters", ()):
                assert parameter["name"] in page.page.text
    for status in ("400", "401", "404", "405", "413", "429", "500", "503"):
        assert status in page.page.text


def test_page_and_document_lead_to_each_other(page: Browser, house: House) -> None:
    """The page links to the OpenAPI document, and every dashboard page links to the page."""
    (target,) = {one for one in page.page.addresses if one.endswith("/openapi.json")}
    assert house.open(target).answer().json == DOCUMENT
    assert urlsplit(DOCUMENT["externalDocs"]["url"]).path == "/api"
    page.open("/sign-in")
    assert "/api" in page.page.addresses


def test_the_compressed_page_is_small(house: House) -> None:
    """Compressed, the page with all examples has at most 75 % of the 80 kB of a first visit."""
    raw = RawHttp(house)
    raw.send(b"GET /api HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\n\r\n")
    _, _, body = raw.received().partition(b"\r\n\r\n")
    assert len(body) < 60_000
    assert b"</html>" in gzip.decompress(body)


def test_types_are_described() -> None:
    """Types are described in words: references are links, and enums list their values."""
    assert describe_type({"$ref": "#/components/schemas/Message"}) == (
        '<a href="#schema-Message">Message</a>'
    )
    assert describe_type({"type": ["string", "null"]}) == "string or null"
    assert describe_type({"type": "array", "items": {"type": "integer"}}) == "array of integer"
    assert describe_type({"type": "string", "format": "uuid"}) == "string (uuid)"
    assert describe_type({"anyOf": [{"type": "string"}, {"type": "null"}]}) == "string or null"
    assert describe_type({"const": True}) == "<code>true</code>"
    assert describe_type({"type": ["string", "null"], "enum": ["a", None]}) == (
        "<code>&#34;a&#34;</code>, <code>null</code>"
    )


def test_nested_fields_have_dotted_names() -> None:
    """Fields of nested objects without a name have dotted names."""
    inner = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
    schema = {
        "type": "object",
        "properties": {
            "a": inner,
            "c": {"type": "array", "items": inner, "maxItems": 3},
            "d": {"anyOf": [inner, {"type": "null"}]},
        },
        "required": ["a"],
    }
    rows = list(list_fields(schema))
    assert [row.name for row in rows] == ["a", "a.b", "c", "c[].b", "d", "d.b"]
    assert [row.is_required for row in rows] == [True, True, False, True, False, True]
    assert rows[2].description == "at most 3 entries"


def test_descriptions_are_escaped() -> None:
    """Markup in descriptions is escaped; code and bold text are rendered."""
    assert render_code("a `<b>` **c**") == "a <code>&lt;b&gt;</code> <b>c</b>"


def test_long_lists_are_cut_in_examples() -> None:
    """Long lists in examples are cut after two entries, with the number left out."""
    assert shorten({"a": [1, 2, 3, 4], "b": [1, 2]}) == {"a": [1, 2, "... 2 more"], "b": [1, 2]}


def test_each_command_can_be_copied(page: Browser) -> None:
    """Every command can be copied, and calls that only read data can be tried."""
    body = page.open("/api").body.decode()
    ids = [one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()]
    for name in ids:
        assert f'data-copy="command-{name}"' in body
    tried = {name for name in ids if f'href="/api/answers/{name}"' in body}
    assert {"getInbox", "listMessages", "getMessage", "listTests", "getTest"} <= tried
    reading = {
        operation["operationId"]
        for methods in DOCUMENT["paths"].values()
        for method, operation in methods.items()
        if method == "get"
    }
    assert tried <= reading
    assert not {name for name in tried if name.lower().startswith("wait")}


def test_a_call_is_tried(house: House) -> None:
    """Tried calls return the data of the signed-in account; other visitors are rejected."""
    ann, bob = Browser(house, "192.0.2.7"), Browser(house, "192.0.2.8")
    ann.sign_up("ann")
    bob.sign_up("bob")
    accounts = {one.name: one for one in run(house.assembly.accounts.keep.accounts())}
    message_id = receive(house, accounts["ann"], mail("Your code"))
    listed = json.loads(fetch(ann, "/api/answers/listMessages").body)
    assert (listed["called"], listed["status"]) == ("GET /inbox/messages?limit=3", 200)
    assert [one["id"] for one in listed["answer"]["messages"]] == [message_id]
    shown = json.loads(fetch(ann, "/api/answers/getMessage").body)
    assert shown["called"] == f"GET /inbox/messages/{message_id}"
    assert shown["answer"]["subject"] == "Your code"
    assert json.loads(fetch(bob, "/api/answers/listMessages").body)["answer"]["messages"] == []
    refused = fetch(bob, "/api/answers/getMessage")
    assert (refused.status, "inbox is empty" in refused.body.decode()) == (404, True)
    for name in ("deleteMessage", "waitForMessage", "nonsense"):
        assert fetch(ann, f"/api/answers/{name}").status == 400
    assert fetch(Browser(house, "192.0.2.9"), "/api/answers/getInbox").status == 303
