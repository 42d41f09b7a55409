"""Requests: the parser agrees with the published schemas, for queries, bodies and arguments."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import NODEFAULT, UNSET
from msgspec.structs import replace

from mailcheck.api.mcp import domains, inbox, messages, reports
from mailcheck.api.requests.checks import WatchChoice, WatchesToCreate
from mailcheck.api.requests.inbox import (
    ContentFilters,
    DeleteMessages,
    ExpectNoMessage,
    FollowInbox,
    KeyFault,
    LinksToCheck,
    ListMessages,
    MessageFilters,
    WaitForMessage,
    WaitForMessages,
    WebhookToCreate,
)
from mailcheck.api.requests.parsing import (
    Request,
    arguments_schema,
    body_schemas,
    read_arguments,
    read_body,
    read_query,
    read_texts,
    request_fields,
)
from mailcheck.clients.mailcheck_client import Filters
from mailcheck.core.conditions import SINCE, Term
from mailcheck.core.cursors import Position
from mailcheck.core.domains.watches import WatchSettings, parse_quiet_time
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import HOUR, MINUTE, Instant
from tests.table import rows

TOOL_REQUESTS: list[type[Request]] = [
    inbox.NewAddressArguments,
    inbox.WaitForMessageArguments,
    inbox.ListMessagesArguments,
    messages.MessageArguments,
    messages.GetMessageArguments,
    domains.CheckDomainArguments,
    reports.GetReportsArguments,
]

NAMES = ["tag", "after", "since", "from", "subject", "to", "q", "timeout", "limit", "page", "id"]
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
TYPE_KEYWORDS = ("type", "required", "additionalProperties")
TYPE_PROBLEMS = (
    "unknown argument",
    "is missing",
    "a string, not",
    "integer, not",
    "number, not",
    "array, not",
)

NOW = Instant(1_795_262_400_000)


def requests_under(request: type[Request]) -> Iterator[type[Request]]:
    """Return all request classes."""
    for kind in request.__subclasses__():
        yield kind
        yield from requests_under(kind)


@given(
    st.sampled_from(TOOL_REQUESTS), st.dictionaries(st.sampled_from(NAMES), ANY_JSON, max_size=3)
)
def test_the_schema_and_the_parser_agree(request: type[Request], arguments: dict[str, Any]) -> None:
    """The parser accepts the same types, names and required fields as the published schema."""
    schema = arguments_schema(request)
    given = {name: value for name, value in arguments.items() if value is not None}
    is_valid = all(
        problem.validator not in TYPE_KEYWORDS
        for problem in Draft202012Validator(schema).iter_errors(given)
    )
    # A name that is not known is refused even when it has no value.
    is_valid = is_valid and set(arguments) <= set(schema["properties"])
    try:
        read_arguments(request, arguments)
    except InvalidParameter as problem:
        is_of_type = any(info in str(problem) for info in TYPE_PROBLEMS)
        # An empty string counts as missing if the field is required.
        assert is_of_type != is_valid or "" in given.values()
    else:
        assert is_valid


def ranges() -> Iterator[tuple[type[Request], str]]:
    """Return the fields with a range, of all requests."""
    for request in requests_under(Request):
        for name, one in request_fields(request).items():
            if one.info.high is not None:
                yield request, name


@rows(*list(ranges()))
def test_the_parser_has_the_bounds_of_the_schema(request_: type[Request], name: str) -> None:
    """The bounds in the schema are accepted, and values beyond them are rejected."""
    field = request_fields(request_)[name]
    required = [
        one for one in request_fields(request_).values() if one.is_required and one != field
    ]
    others = {one.name: one.schema.get("enum", ["a"])[0] for one in required}
    low, high = field.schema["minimum"], field.schema["maximum"]
    for bound in (low, high):
        read = read_arguments(request_, {**others, name: bound})
        assert getattr(read, field.attribute) == bound
    for beyond in (low - 1, high + 1):
        with pytest.raises(InvalidParameter, match=rf"^{name} must be .*\b{low:g} to "):
            read_arguments(request_, {**others, name: beyond})
    default = field.default
    assert default in (None, UNSET, NODEFAULT) or low <= default <= high


@rows("a\0", "\ud800", "x\udfffy")
def test_text_that_no_store_can_hold_is_refused(text: str) -> None:
    """NUL and lone surrogates, which JSON can contain, are rejected."""
    with pytest.raises(InvalidParameter, match="a NUL or a lone surrogate"):
        read_arguments(messages.MessageArguments, {"id": text})


@rows(float("inf"), 1e308, 10**300, -(10**300))
def test_infinite_numbers_are_rejected(number: float) -> None:
    """An infinite number is out of range and does not cause a crash."""
    for name, request in (
        ("timeout", inbox.WaitForMessageArguments),
        ("limit", inbox.ListMessagesArguments),
    ):
        with pytest.raises(InvalidParameter):
            read_arguments(request, {name: number})


FILTERS: Mapping[str, list[str]] = {
    "tag": ["a"],
    "tagPrefix": ["run-"],
    "to": ["b@example.com"],
    "from": ["c"],
    "subject": ["d e"],
    "header": ["X-A: b", "X-C:d"],
    "text": ["f"],
    "hasAttachment": ["false"],
    "since": ["1970-01-01T00:00:01Z"],
    "after": ["c1f"],
}
MEANT = MessageFilter(
    tag="a",
    tag_prefix="run-",
    recipient="b@example.com",
    author="c",
    subject="d e",
    headers=(("X-A", "b"), ("X-C", "d")),
    text="f",
    has_attachment=False,
    since=Instant(1_000),
    after=Position(31),
)


@rows(ListMessages, WaitForMessage, WaitForMessages, ExpectNoMessage, FollowInbox)
def test_each_filter_becomes_its_part_of_the_core_filter(request_: type[Any]) -> None:
    """Lists, waits and streams support all filters, and the store receives a `MessageFilter`."""
    wanted = read_texts(request_, FILTERS).wanted
    assert wanted == MEANT
    assert type(wanted) is MessageFilter
    nothing = read_query(request_, b"").wanted
    assert (type(nothing), nothing) == (MessageFilter, MessageFilter())


def test_a_deletion_rejects_content_filters() -> None:
    """A deletion rejects filters for content that is available only after parsing."""
    ignored = request_fields(ContentFilters).keys() - request_fields(MessageFilters).keys()
    assert {"header", "text", "hasAttachment"} <= ignored
    for name in (*ignored, "q", "limit"):
        with pytest.raises(InvalidParameter, match=f"^'{name}' is not a parameter of this route"):
            read_texts(DeleteMessages, {name: FILTERS.get(name, ["1"])})
    known = {name: FILTERS[name] for name in request_fields(DeleteMessages)}
    wanted = read_texts(DeleteMessages, known).wanted
    assert wanted == replace(MEANT, headers=(), text=None, has_attachment=None)


def test_empty_filters_are_ignored() -> None:
    """Empty ``from``, ``subject``, ``to`` and prefixes are ignored; an empty ``tag`` is not."""
    asked = read_query(ListMessages, b"from=&subject=&to=&tagPrefix=&text=&q=&tag=")
    assert asked.wanted_at(NOW) == MessageFilter(tag="")


def test_an_empty_flag_is_true() -> None:
    """A flag without a value is true."""
    assert read_query(ListMessages, b"hasAttachment=").has_attachment is True
    assert read_query(ListMessages, b"hasAttachment").has_attachment is True


def test_ages_of_a_search_count_from_the_request() -> None:
    """Relative ages in a search refer to the time of the request."""
    asked = read_query(ListMessages, b"q=newer:2h")
    for now in (NOW, Instant(NOW + HOUR)):
        moment = Instant(now - 2 * HOUR)
        assert asked.wanted_at(now).search == (Term(SINCE, moment),)


def test_the_default_timeout_of_agents_depends_on_none() -> None:
    """The default timeout is 30 s, or 5 s with ``none``. A ``count`` of 1 differs from no count."""
    assert read_arguments(inbox.WaitForMessageArguments, {}).seconds == 30
    assert read_arguments(inbox.WaitForMessageArguments, {"none": True}).seconds == 5
    assert read_arguments(inbox.WaitForMessageArguments, {"none": True, "timeout": 7}).seconds == 7
    assert read_arguments(inbox.WaitForMessageArguments, {}).count is None
    assert read_arguments(inbox.WaitForMessageArguments, {"count": 1.0}).count == 1
    with pytest.raises(InvalidParameter, match="none and count cannot be combined"):
        _ = read_arguments(inbox.WaitForMessageArguments, {"none": True, "count": 1}).seconds


def test_agents_get_shorter_pages() -> None:
    """The default page has 20 messages for agents, and 50 in REST."""
    assert read_arguments(inbox.ListMessagesArguments, {}).limit == 20
    assert arguments_schema(inbox.ListMessagesArguments)["properties"]["limit"]["default"] == 20
    assert read_query(ListMessages, b"").limit == 50


def test_a_stream_goes_on_without_seconds() -> None:
    """A stream has no end by default. A duration of 0 is out of range."""
    assert read_query(FollowInbox, b"").seconds is None
    with pytest.raises(
        InvalidParameter, match="seconds must be a number of seconds from 1 to 86400; got 0"
    ):
        read_query(FollowInbox, b"seconds=0")


def test_filters_stand_in_the_order_in_which_they_are_documented() -> None:
    """The order of the fields is the order of the documentation, most important first."""
    filters = ["tag", "tagPrefix", "to", "from", "subject", "header", "text", "hasAttachment"]
    assert list(request_fields(ListMessages)) == [*filters, "q", "after", "since", "limit", "page"]
    assert list(request_fields(WaitForMessage)) == [*filters, "after", "since", "timeout"]


def test_the_served_client_knows_the_filters() -> None:
    """The Python client, which imports no mailcheck code, supports every filter."""
    taken = set(get_type_hints(Filters))
    assert {name.strip("_") for name in taken} <= request_fields(ContentFilters).keys() | {
        "tag_prefix",
        "has_attachment",
        "since",
    }


def test_the_nearest_name_is_suggested() -> None:
    """An error about an unknown name suggests the nearest one, in queries and in arguments."""
    with pytest.raises(
        InvalidParameter, match=r"Did you mean tag[?] Its parameters are tag, tagPrefix"
    ):
        read_query(ListMessages, b"tga=a")
    with pytest.raises(InvalidParameter, match=r"'sbject'\. Did you mean subject[?] The arguments"):
        read_arguments(inbox.WaitForMessageArguments, {"sbject": "a"})


def test_a_field_without_a_type_fails() -> None:
    """A class with a field without a type fails on first use."""

    class Vague(Request, frozen=True, kw_only=True):
        when: str = ""

    with pytest.raises(TypeError, match=r"Vague\.when has no field type"):
        request_fields(Vague)


WEBHOOK_URL = "https://ci.example.com/mail"


def webhook(**fields: Any) -> WebhookToCreate:
    """Parse the body of a new webhook."""
    return read_body(WebhookToCreate, json.dumps({"url": WEBHOOK_URL, **fields}).encode())


def test_a_webhook_stores_exactly_the_core_filter() -> None:
    """The filter contains no URL, and has the type that the store returns."""
    asked = webhook(tag="a", hasAttachment=True, after="c1f")
    assert (asked.url, type(asked.wanted)) == (WEBHOOK_URL, MessageFilter)
    assert asked.wanted == MessageFilter(tag="a", has_attachment=True, after=Position(31))


def test_a_webhook_takes_a_list_of_header_fields() -> None:
    """``header`` is a list of strings, as the published schema says."""
    assert webhook(header=["A:b", "C: d"]).headers == (("A", "b"), ("C", "d"))
    with pytest.raises(InvalidParameter, match="header must be an array, not a string"):
        read_arguments(inbox.WaitForMessageArguments, {"header": "A:b"})


@rows(
    ({"since": "2026-11-21T10:00:00Z"}, "which may contain only"),
    ({"tag": None}, "tag is missing: send {"),
    ({"url": None}, "url is missing: send {"),
    ({"url": 1}, "url must be a string, not the number 1"),
    ({"hasAttachment": "yes"}, "hasAttachment must be true or false, not a string"),
    ({"header": ["a:b"] * 11}, "header has 11 entries; send at most 10"),
    ({"subject": "\ud800"}, "subject contains a NUL or a lone surrogate"),
    ({"after": "12"}, "after must be a cursor from an earlier response"),
)
def test_a_bad_body_is_explained(fields: dict[str, Any], problem: str) -> None:
    """The error names the field, what it must be, and what was sent."""
    with pytest.raises(InvalidParameter, match=re.escape(problem)):
        webhook(**fields)


def test_null_is_a_value_only_where_it_is_named() -> None:
    """Null is accepted only for the fault of a key."""
    assert read_body(KeyFault, b'{"every": null}').every is None
    for body in (b'{"method": null}', b'{"urls": null}', b'{"urls": [null]}'):
        with pytest.raises(InvalidParameter):
            read_body(LinksToCheck, body)
    with pytest.raises(InvalidParameter, match="every is missing"):
        read_body(KeyFault, b"{}")


def test_absent_fields_of_a_watch_are_not_changed() -> None:
    """An empty list or time changes a setting; an absent field does not."""
    kept = WatchSettings(selectors=("a",), quiet=parse_quiet_time("22:00-06:00"), is_paused=True)
    assert read_body(WatchChoice, b"{}").changed(kept) == kept
    choice = read_body(WatchChoice, b'{"selectors": [], "quiet": "", "everyMinutes": 15}')
    assert choice.changed(kept) == WatchSettings(interval=15 * MINUTE, is_paused=True)


def test_one_of_many_watches_is_named_by_its_number() -> None:
    """An error in a list of objects names the number of the object."""
    with pytest.raises(InvalidParameter, match=r"^watches\[1\]: target is missing"):
        read_body(WatchesToCreate, b'{"watches": [{"target": "a.example"}, {}]}')
    with pytest.raises(InvalidParameter, match=r"^watches\[0\] must be an object"):
        read_body(WatchesToCreate, b'{"watches": [1]}')
    for body in (b'{"watches": []}', b'{"watches": {}}'):
        with pytest.raises(InvalidParameter, match=r"^watches must be a list of 1 to"):
            read_body(WatchesToCreate, body)


@rows(*[one for one in requests_under(Request) if one.example])
def test_the_example_of_a_body_is_one(request_: type[Request]) -> None:
    """The example in an error message is valid and matches the schema."""
    read_body(request_, request_.example.encode())
    schemas = body_schemas(request_)
    schema = {**schemas[request_.__name__], "components": {"schemas": schemas}}
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(request_.example))


BODIES = [one for one in requests_under(Request) if one.example]

ODD_VALUES: list[Any] = [None, "", "a\0", 7, -1, 0.5, True, {}, [], [""], [None], [7], "x" * 9_000]

JUDGED_LATER = {
    "everyMinutes",
    "graceMinutes",
    "slowMinutes",
    "timeZone",
    "days",
    "selectors",
    "addresses",
    "alertTo",
    "to",
    "urls",
}
"""Fields whose values the operation rejects, so that other watches of a request are created."""


def deviations(request: type[Request]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield bodies that differ from the example of a request in one field, with its name."""
    example = json.loads(request.example)
    yield "unheardOf", {**example, "unheardOf": 1}
    for name in request_fields(request):
        yield name, {other: value for other, value in example.items() if other != name}
        for value in ODD_VALUES:
            yield name, {**example, name: value}


@rows(*BODIES)
def test_a_body_is_rejected_exactly_if_its_schema_rejects_it(request_: type[Request]) -> None:
    """Unknown and missing fields, other types and empty texts are rejected by both or by none."""
    schema = Draft202012Validator(
        {
            "$ref": f"#/components/schemas/{request_.__name__}",
            "components": {"schemas": body_schemas(request_)},
        },
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    for name, body in deviations(request_):
        try:
            read_body(request_, json.dumps(body).encode())
        except InvalidParameter:
            assert not schema.is_valid(body), body
        else:
            assert schema.is_valid(body) or name in JUDGED_LATER, body
