"""The page about the REST API, which is rendered from its description."""

import gzip
from urllib.parse import urlsplit

import pytest

from mailcheck.web.dashboard.api_reference.types import code_words, list_fields, name_type, shorten
from tests.house import House
from tests.spec.description import load_document
from tests.web.dashboard.browser import Browser
from tests.web.raw_http import RawHttp

DOCUMENT = load_document()


@pytest.fixture
def page(house: House) -> Browser:
    """A visitor who is not signed in, on the page."""
    browser = Browser(house)
    assert browser.open("/api").status == 200
    return browser


def test_every_operation_is_shown(page: Browser) -> None:
    """Each has its place, and each type; every link on the page leads to one that is there."""
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
    """Who has found the one finds the other, from every page of the dashboard too."""
    (target,) = {one for one in page.page.addresses if one.endswith("/openapi.json")}
    assert house.open(target).answer().json == DOCUMENT
    assert urlsplit(DOCUMENT["externalDocs"]["url"]).path == "/api"
    page.open("/sign-in")
    assert "/api" in page.page.addresses


def test_it_is_small_over_the_wire(house: House) -> None:
    """Compressed, the page with all examples has less than 40 kB."""
    raw = RawHttp(house)
    raw.send(b"GET /api HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\n\r\n")
    _, _, body = raw.received().partition(b"\r\n\r\n")
    assert len(body) < 40_000
    assert b"</html>" in gzip.decompress(body)


def test_types_are_named_for_people() -> None:
    """A reference is a link, a choice its words, null and lists are said."""
    assert name_type({"$ref": "#/components/schemas/Message"}) == (
        '<a href="#schema-Message">Message</a>'
    )
    assert name_type({"type": ["string", "null"]}) == "string or null"
    assert name_type({"type": "array", "items": {"type": "integer"}}) == "array of integer"
    assert name_type({"type": "string", "format": "uuid"}) == "string (uuid)"
    assert name_type({"anyOf": [{"type": "string"}, {"type": "null"}]}) == "string or null"
    assert name_type({"const": True}) == "<code>true</code>"
    assert name_type({"type": ["string", "null"], "enum": ["a", None]}) == (
        "<code>&#34;a&#34;</code>, <code>null</code>"
    )


def test_objects_within_objects_are_rows_with_dots() -> None:
    """A field of a nameless object, or of one in a list, is listed under both names."""
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


def test_words_are_escaped() -> None:
    """Descriptions are text: markup in them is shown, code and bold words are marked."""
    assert code_words("a `<b>` **c**") == "a <code>&lt;b&gt;</code> <b>c</b>"


def test_long_lists_are_cut_in_examples() -> None:
    """Of a list two entries are shown, and how many more there are."""
    assert shorten({"a": [1, 2, 3, 4], "b": [1, 2]}) == {"a": [1, 2, "... 2 more"], "b": [1, 2]}
