"""The checker of responses finds every violation of the contract."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from jsonschema_rs import meta

from tests.house import Answer, House, mail
from tests.spec.good_report import GOOD_CHECKS, GOOD_REPORT, GOOD_TEST
from tests.spec.judge import BrokenPromise, judge_response, read_json, routes_at
from tests.spec.resources import (
    BLACKLIST_CHECK,
    BLOCKLISTS,
    FACTORS,
    MX_CHECK,
    RECHECK,
    REPUTATION,
    TEST,
    TEST_ADDRESS,
    grade_of,
)
from tests.spec.routes import ROUTES
from tests.spec.shapes import Shape, is_calendar_date, is_timestamp
from tests.table import rows

NOW = "2026-11-21T12:00:00.000Z"


@pytest.fixture
def message(house: House) -> Answer:
    """A real response of GET /inbox/messages/{id}."""
    house.receive(house.address("Sign"), raw=mail(author="Shop <shop@example.com>"))
    listed = house.get("/inbox/messages").json["messages"]
    return house.get(f"/inbox/messages/{listed[0]['id']}")


def path_of(message: Answer) -> str:
    """Return the path of the message."""
    return f"/api/v1/inbox/messages/{message.json['id']}"


def tampered(answer: Answer, change: Callable[[Any], None]) -> Answer:
    """Return the response with a changed body."""
    body = answer.json
    change(body)
    return replace(answer, body=json.dumps(body).encode())


def put(*way: str | int, value: object) -> Callable[[Any], None]:
    """Return a change that sets a value in a body."""

    def change(body: Any) -> None:
        for step in way[:-1]:
            body = body[step]
        body[way[-1]] = value

    return change


def without(field: str) -> Callable[[Any], None]:
    """Return a change that deletes a field."""
    return lambda body: body.pop(field)


SPEC_MESSAGE_FIELDS = [
    "id",
    "to",
    "tag",
    "from",
    "subject",
    "receivedAt",
    "expiresAt",
    "links",
    "codes",
    "shareUrl",
    "text",
    "html",
    "headers",
]


@rows(*SPEC_MESSAGE_FIELDS)
def test_every_field_of_an_inbox_message_is_missed(message: Answer, field: str) -> None:
    """A message without one of the fields of the contract is detected."""
    with pytest.raises(BrokenPromise, match=field):
        judge_response("GET", path_of(message), tampered(message, without(field)))


@rows(
    put("receivedAt", value="2026-11-21T12:00:00Z"),
    put("receivedAt", value="2026-11-21T12:00:00.000000Z"),
    put("receivedAt", value="2026-11-21T12:00:00.000+00:00"),
    put("receivedAt", value="2026-02-30T12:00:00.000Z"),
    put("receivedAt", value=1795262400000),
    put("id", value="17"),
    put("tag", value=None),
    put("from", value="shop@example.com"),
    put("from", "name", value=None),
    put("links", value="https://example.com"),
    put("codes", 0, value=482913),
    put("html", value=None),
    put("headers", "X-Upper", value="a name that is not in lower case"),
    put("headers", "from", value=["Shop <shop@example.com>"]),
    put("headers", "subject", value="another than in headerList"),
    put("shareUrl", value="/share/relative"),
    put("size", value=129.0),
    put("unlisted", value="a field that no table has"),
    put("envelope", "tls", value={"version": "TLSv1.3"}),
    put("links", value=["https://example.com", "https://example.com"]),
)
def test_a_changed_type_or_value_is_found(message: Answer, change: Callable[[Any], None]) -> None:
    """A field with another type, format or meaning than in the tables is detected."""
    with pytest.raises(BrokenPromise):
        judge_response("GET", path_of(message), tampered(message, change))


@rows(
    ("x-ratelimit-remaining", None),
    ("x-ratelimit-daily-remaining", None),
    ("x-ratelimit-remaining", "-1"),
    ("x-ratelimit-remaining", "many"),
    ("x-content-type-options", None),
    ("access-control-allow-origin", "*"),
    ("content-type", "text/html"),
    ("content-type", None),
)
def test_a_wrong_header_is_found(message: Answer, name: str, value: str | None) -> None:
    """Missing rate-limit headers and nosniff, a wrong type and a CORS header are detected."""
    headers = {**message.headers, name: value or ""}
    if value is None:
        del headers[name]
    with pytest.raises(BrokenPromise):
        judge_response("GET", path_of(message), replace(message, headers=headers))


@rows((401, "www-authenticate"), (429, "retry-after"), (503, "retry-after"))
def test_the_header_of_a_status_is_missed(message: Answer, status: int, header: str) -> None:
    """401 needs WWW-Authenticate; 429 and 503 need Retry-After with at least 1 whole second."""
    path = path_of(message)
    values = {"www-authenticate": "Bearer", "retry-after": "1"}
    headers = {**message.headers, header: values[header]}
    answer = replace(message, status=status, headers=headers, body=b'{"error":"why"}')
    judge_response("GET", path, answer)
    for bad in ("", "0", "0.5", "-3", "Sat, 21 Nov 2026 12:00:00 GMT"):
        with pytest.raises(BrokenPromise, match=r"Retry-After|WWW-Authenticate"):
            judge_response("GET", path, replace(answer, headers={**headers, header: bad}))


def test_a_405_needs_allow(message: Answer) -> None:
    """A wrong method on a known path is 405 with Allow, not 404."""
    answer = replace(message, status=405, body=b'{"error":"why"}')
    with pytest.raises(BrokenPromise, match="Allow"):
        judge_response("PUT", "/api/v1/inbox", answer)
    judge_response(
        "PUT", "/api/v1/inbox", replace(answer, headers={**answer.headers, "allow": "GET"})
    )
    with pytest.raises(BrokenPromise, match="404 is not promised"):
        judge_response("PUT", "/api/v1/inbox", replace(answer, status=404))


@rows(
    b"",
    b"not JSON",
    b'{"error":""}',
    b'{"error":["no text"]}',
    b'{"message":"no error"}',
    b'{"error":"why","code":17}',
    b'{"error":"one","error":"two"}',
    b'{"error":"\xff"}',
    b'{"error":"\\ud800"}',
    b'{"error":NaN}',
)
def test_an_error_is_one_readable_sentence_in_json(message: Answer, body: bytes) -> None:
    """An error that is not valid UTF-8 JSON with only ``error`` is detected."""
    with pytest.raises(BrokenPromise):
        judge_response("GET", path_of(message), replace(message, status=404, body=body))


@rows(201, 204, 301, 302, 304, 402, 408, 418, 502)
def test_a_status_that_is_not_promised_is_found(message: Answer, status: int) -> None:
    """A status that the contract does not list for a route is detected, for example 402."""
    answer = replace(message, status=status, body=b'{"error":"why"}')
    with pytest.raises(BrokenPromise, match=f"status {status} is not promised"):
        judge_response("GET", path_of(message), answer)


@rows("/api/v1/novelty", "/novelty", "/api/v2/inbox", "/")
def test_an_answer_of_an_unknown_route_is_found(message: Answer, path: str) -> None:
    """A new route fails until its shape is in the tables."""
    with pytest.raises(BrokenPromise, match="status 200 is not promised"):
        judge_response("GET", path, message)


def test_the_query_and_percent_encoding_do_not_hide_a_route(message: Answer) -> None:
    """The route is found despite a query and percent-encoded letters."""
    path = path_of(message).replace("inbox", "%69nbox") + "?a=b/c"
    judge_response("GET", path, message)
    with pytest.raises(BrokenPromise):
        judge_response("GET", path, tampered(message, without("id")))


def test_a_head_has_the_headers_and_no_body(message: Answer) -> None:
    """A HEAD is checked by the table of its GET; a body is detected."""
    judge_response("HEAD", path_of(message), replace(message, body=b""))
    with pytest.raises(BrokenPromise, match="HEAD has a body"):
        judge_response("HEAD", path_of(message), message)


@rows(
    ("content-disposition", "inline"),
    ("content-security-policy", "default-src 'none'"),
    ("content-type", "text/html\r\nX-Injected: 1"),
)
def test_a_download_must_stay_one(house: House, name: str, value: str) -> None:
    """Content of mail is sent as a download, in a sandbox, with a valid media type."""
    house.receive()
    message_id = house.get("/inbox/messages").json["messages"][0]["id"]
    path = f"/api/v1/inbox/messages/{message_id}/raw"
    answer = house.ask("GET", path[7:], headers={"Accept": "message/rfc822"}).answer()
    with pytest.raises(BrokenPromise):
        judge_response("GET", path, replace(answer, headers={**answer.headers, name: value}))


def test_house_judges_every_answer(house: House) -> None:
    """A test that uses the house fails if a response violates the contract."""
    pending = house.ask("GET", "/inbox")
    pending.path = "/api/v1/inbox/address"  # as if it had been asked for an address
    with pytest.raises(BrokenPromise, match="retentionHours"):
        pending.answer()


def test_all_schemas_are_schemas() -> None:
    """Every table is a valid JSON Schema."""
    given = [bodies for route in ROUTES for bodies in route.bodies.values()]
    shapes = [
        body
        for bodies in given
        for body in (bodies if isinstance(bodies, tuple) else (bodies,))
        if isinstance(body, Shape)
    ]
    # Each schema is checked once, although the errors occur in every route.
    for schema in {json.dumps(shape.schema): shape.schema for shape in shapes}.values():
        meta.validate(dict(schema))


def test_a_path_without_variables_hides_one_with() -> None:
    """POST /test/generate does not match the route of POST /test/{testId}."""
    assert [route.method for route in routes_at("/api/v1/test/generate")] == ["POST"]


def test_moments_and_dates() -> None:
    """The formats distinguish real dates and times from similar texts."""
    assert is_timestamp(NOW)
    assert not is_timestamp("2026-13-01T00:00:00.000Z")
    assert not is_timestamp(NOW + "\n")
    assert is_calendar_date("2001-02-28")
    assert not is_calendar_date("2001-02-30")
    assert not is_calendar_date("20010228")


def test_json_is_read_strictly() -> None:
    """JSON that only Python accepts is rejected."""
    assert read_json('{"a":["\u00e9",1.5]}'.encode()) == {"a": ["é", 1.5]}
    for body in (b"Infinity", b'["\\udc80"]', b'{"a":1,"a":2}', b"\xfe"):
        with pytest.raises(ValueError, match=r".+"):
            read_json(body)


# One valid body for each table, which shows that the tables
# can be satisfied.

GOOD_MX: dict[str, Any] = {
    "domain": "example.com",
    "hasMx": True,
    "records": [{"exchange": "mx.example.com", "priority": 10, "ip": ["192.0.2.1"]}],
    "hasSpf": True,
    "spfRecord": "v=spf1 -all",
    "hasDmarc": False,
}

GOOD_BLACKLIST: dict[str, Any] = {
    "query": "192.0.2.1",
    "queryType": "ip",
    "totalChecked": BLOCKLISTS,
    "totalListed": 1,
    "results": [
        {"name": f"list {n}", "zone": f"{n}.example", "listed": n == 0, "responseTime": 12}
        for n in range(BLOCKLISTS)
    ],
}

GOOD_REPUTATION: dict[str, Any] = {
    "domain": "example.com",
    "ip": "192.0.2.1",
    "score": 80,
    "grade": "A",
    "factors": [
        {"name": name, "status": "pass", "detail": "fine", "impact": 10} for name in FACTORS
    ],
    "details": {
        "mx": {"valid": True, "count": 1, "primary": "mx.example.com"},
        "spf": {"valid": False},
        "dkim": {"valid": True, "selectors": ["s1"]},
        "dmarc": {"valid": True, "policy": "none", "rua": []},
        "blacklists": {"checked": 32, "listed": 0, "clean": True},
        "tls": {"valid": True, "starttls": True},
        "domainAge": {"valid": True, "years": 1.5, "registrationDate": "2025-01-01"},
        "rdns": {"valid": True, "hostname": "mx.example.com"},
    },
    "checkedAt": NOW,
    "cached": False,
}

GOOD_ADDRESS: dict[str, Any] = {
    "testId": "a234567bcdefg",
    "email": "test-a234567bcdefg@mailcheck.example",
    "expiresAt": NOW,
    "checkUrl": "/test/a234567bcdefg",
}

GOOD_RECHECK: dict[str, Any] = {"success": True, "testId": "a234567bcdefg", "message": "started"}

TABLES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "2.1": (MX_CHECK, GOOD_MX),
    "2.2": (BLACKLIST_CHECK, GOOD_BLACKLIST),
    "2.3": (REPUTATION, GOOD_REPUTATION),
    "2.4": (TEST_ADDRESS, GOOD_ADDRESS),
    "2.5": (TEST, GOOD_TEST),
    "2.6": (RECHECK, GOOD_RECHECK),
}


@rows(*TABLES)
def test_a_table_takes_what_it_describes_and_misses_each_field(table: str) -> None:
    """A valid body matches its table, and does not without any of its fields."""
    shape, good = TABLES[table]
    assert shape.problems(good) == []
    for field in good:
        body = {name: value for name, value in good.items() if name != field}
        assert shape.problems(body), f"{table} does not miss {field}"
    assert shape.problems({**good, "novelty": 1})


@rows(
    ("2.1", {"hasDmarc": True}),
    ("2.1", {"hasSpf": False}),
    ("2.1", {"records": [{"exchange": "a", "priority": "10", "ip": []}]}),
    ("2.1", {"records": [{"exchange": "a", "priority": n, "ip": []} for n in (20, 10)]}),
    ("2.2", {"totalListed": 2}),
    ("2.2", {"queryType": "IP"}),
    ("2.2", {"results": GOOD_BLACKLIST["results"][1:]}),
    ("2.3", {"score": 101}),
    ("2.3", {"grade": "B"}),
    ("2.3", {"score": 79, "grade": "B"}),
    ("2.3", {"factors": GOOD_REPUTATION["factors"][:7]}),
    ("2.4", {"checkUrl": "/test/another"}),
    ("2.4", {"testId": "UPPER"}),
    ("2.4", {"address": "test-b234567bcdefg@mailcheck.example"}),
    ("2.5", {"score": 10.1}),
    ("2.5", {"score": 9.55}),
    ("2.5", {"status": "done"}),
    ("2.5", {"status": "pending"}),
    ("2.5", {"status": "processing"}),
    ("2.5", {"status": "expired"}),
    ("2.5", {"status": "error"}),
    ("2.5", {"score": 9.4}),
    ("2.5", {"deductions": []}),
    ("2.5", {"checks": {"spf": GOOD_CHECKS["spf"]}}),
    ("2.5", {"checks": {**GOOD_CHECKS, "rdns": GOOD_CHECKS["spf"]}}),
    ("2.5", {"checks": {**GOOD_CHECKS, "spf": {**GOOD_CHECKS["spf"], "deduction": 1.0}}}),
    ("2.5", {"checks": {**GOOD_CHECKS, "spf": {**GOOD_CHECKS["spf"], "result": "unknown"}}}),
    ("2.5", {"report": {**GOOD_REPORT, "checklists": []}}),
    ("2.6", {"success": "true"}),
)
def test_a_table_refuses_what_contradicts_it(table: str, change: dict[str, Any]) -> None:
    """Each change violates a promise of its table."""
    shape, good = TABLES[table]
    assert shape.problems({**good, **change})


@rows((100, "A+"), (90, "A+"), (89, "A"), (80, "A"), (79, "B"), (70, "B"), (69, "C"), (60, "C"),
     (59, "D"), (50, "D"), (49, "F"), (0, "F"))  # fmt: skip
def test_the_grading_scale(score: int, grade: str) -> None:
    """The grades begin at the scores in the contract."""
    assert grade_of(score) == grade


def test_details_need_their_fields_where_they_are_valid() -> None:
    """A detail that is valid must contain the fields that the table lists."""
    for name, detail in GOOD_REPUTATION["details"].items():
        bare = {"valid": True} if name != "blacklists" else {"checked": 32}
        details = {**GOOD_REPUTATION["details"], name: bare}
        assert REPUTATION.problems({**GOOD_REPUTATION, "details": details}), (name, detail)
