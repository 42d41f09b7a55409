"""The page of the API reference, which is rendered from the OpenAPI document."""

import gzip
from urllib.parse import urlsplit

import pytest

from mailcheck.web.dashboard.api_reference.view import describe_type, list_fields, shorten
from mailcheck.web.dashboard.rendering import render_code
from tests.house import Answer, House, mail, run
from tests.spec.description import load_document
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import receive

DOCUMENT = load_document()


GROUPS = [tag["name"].lower().replace(" ", "-") for tag in DOCUMENT["tags"]]
OPERATIONS = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]


@pytest.fixture
def page(house: House) -> Browser:
    """Open the reference without signing in."""
    browser = Browser(house)
    assert browser.open("/api").status == 200
    return browser


def test_every_operation_is_shown(page: Browser) -> None:
    """Each operation and each type is on a page, and every link leads to an existing id.

    Compressed, each page has at most 60 % of the 80 kB of a page.
    """
    ids, addresses, text, source = {}, {}, "", ""
    for group in ("", *GROUPS, "responses", "types"):
        answer = page.open(f"/api{group and '/'}{group}")
        assert answer.status == 200
        assert len(gzip.compress(answer.body, 6)) < 48_000, group
        ids[group], addresses[group] = page.page.ids, page.page.addresses
        text += page.page.text
        source += page.page.source
    assert {one["operationId"] for one in OPERATIONS} <= ids[""]
    assert {one["operationId"] for one in OPERATIONS} <= {
        one for group in GROUPS for one in ids[group]
    }
    assert {f"schema-{name}" for name in DOCUMENT["components"]["schemas"]} <= ids["types"]
    for group, some in addresses.items():
        for address in some:
            target, _, fragment = address.partition("#")
            named = target.removeprefix("/api").removeprefix("/") if target else group
            if fragment and (not target or target == "types" or target.startswith("/api")):
                assert fragment in ids[named], (group, address)
    for path, methods in DOCUMENT["paths"].items():
        assert path in text
        for operation in methods.values():
            assert operation["summary"] in text
            for parameter in operation.get("parameters", ()):
                assert parameter["name"] in text
    for status in ("400", "401", "404", "405", "413", "429", "500", "503"):
        assert status in text
    assert page.open("/api/nonsense").status == 404
    assert_commands_are_shown(source)


def assert_commands_are_shown(body: str) -> None:
    """Fail unless every command can be copied, and calls that do not wait for long be tried."""
    ids = [one["operationId"] for one in OPERATIONS]
    for name in ids:
        assert f'data-copy="command-{name}"' in body
    tried = {name for name in ids if f'action="answers/{name}"' in body}
    reading = {"getInbox", "listMessages", "getMessage", "listTests", "getTest"}
    assert {*reading, "deleteMessage", "getReputation"} <= tried
    assert not {name for name in tried if name.lower().startswith("wait")}
    assert not {"createWebhook", "deleteWebhook"} & tried


def test_page_and_document_lead_to_each_other(page: Browser, house: House) -> None:
    """The page links to the OpenAPI document, and every dashboard page links to the page."""
    (target,) = {one for one in page.page.addresses if one.endswith("/openapi.json")}
    assert house.open(target).answer().json == DOCUMENT
    assert urlsplit(DOCUMENT["externalDocs"]["url"]).path == "/api"
    page.open("/sign-in")
    assert "/api" in page.page.addresses


def test_types_are_described() -> None:
    """Types are described in words: references are links, and enums list their values."""
    assert describe_type({"$ref": "#/components/schemas/Message"}) == (
        '<a href="types#schema-Message">Message</a>'
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


def attempt(browser: Browser, name: str, *fields: str, **form: str) -> Answer:
    """Try a call as the script does, and return the response."""
    if not browser.page.form_token:
        browser.open("/api/responses")
    return browser.submit(f"/api/answers/{name}", *fields, **form)


def test_a_call_is_tried(house: House) -> None:
    """Tried calls use the data of the signed-in account; other visitors are rejected."""
    ann, bob = Browser(house, "192.0.2.7"), Browser(house, "192.0.2.8")
    ann.sign_up("ann")
    bob.sign_up("bob")
    accounts = {one.name: one for one in run(house.assembly.accounts.keep.accounts())}
    message_id = receive(house, accounts["ann"], mail("Your code"))
    receive(house, accounts["ann"], mail("Later"))

    def text(browser: Browser, name: str, **form: str) -> str:
        assert attempt(browser, name, **form).status == 200
        return browser.page.text

    listed = text(ann, "listMessages", **{"query-limit": "1"})
    assert "GET /inbox/messages?limit=1" in listed
    assert '"subject": "Later"' in listed
    assert message_id not in listed
    assert '"subject": "Later"' in text(ann, "getMessage"), "the newest one"
    assert '"subject": "Your code"' in text(ann, "getMessage", **{"path-id": message_id})
    assert '"messages": []' in text(bob, "listMessages")
    assert '"success": true' in text(ann, "deleteMessage", **{"path-id": message_id})
    assert attempt(ann, "getMessage", **{"path-id": message_id}).status == 404
    assert attempt(bob, "getMessage").status == 400
    for name in ("waitForMessage", "createWebhook", "nonsense"):
        assert attempt(ann, name).status == 400
    assert attempt(ann, "listMessages", **{"query-limit": "x"}).status == 400


def test_a_try_is_protected_like_a_form(house: House, ann: Browser) -> None:
    """A try needs a session, the form token and the same site, and no key."""
    assert ann.post("/api/answers/getInbox").status == 403
    assert attempt(ann, "getInbox", "Sec-Fetch-Site: cross-site").status == 403
    assert attempt(ann, "getInbox", "Sec-Fetch-Site: same-origin").status == 200
    stranger = Browser(house, "192.0.2.9")
    assert attempt(stranger, "getInbox").status == 303
    assert ann.open("/api/answers/getInbox").status == 405


def test_a_check_that_is_tried_counts(ann: Browser) -> None:
    """Checks and changes that are tried count as checks of the account; reading does not."""
    for name, form, used in (
        ("getInbox", {}, 0),
        ("checkMx", {"query-domain": "example.com"}, 1),
        ("deleteMessages", {}, 2),
    ):
        attempt(ann, name, **form)
        assert f"{used} of 1,000 checks today" in ann.read("/keys")
