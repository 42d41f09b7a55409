"""Valid and invalid parameters: a 400 names the parameter, what was sent, and what is allowed."""

from tests.house import House
from tests.table import rows

CURSOR_ADVICE = "after must be a cursor from an earlier response, unchanged; got "
INSTANT_ADVICE = "since must be an ISO 8601 date and time like 2026-11-21T10:00:00.000Z; got "
TAG_ADVICE = (
    "tag: a tag is a dot-atom: letters, digits and !#$%&'*+-/=?^_`{|}~, with single dots inside"
)


def problem(house: House, path: str) -> str:
    """Return the error of a request that must be a 400."""
    answer = house.get(path)
    assert answer.status == 400, answer
    error: str = answer.json["error"]
    return error


@rows(
    *((one, f"{one}. Did you send milliseconds?") for one in ("30000", "60.001", "60000")),
    *((one, one) for one in ("60001", "0.999", "-5", "ten", "nan", "1e400", "5s", "0x10")),
    ("", "an empty text"),
    ("%D9%A1%D9%A0", "\u0661\u0660"),  # 10 in Arabic digits
)
def test_a_bad_timeout(house: House, timeout: str, ending: str) -> None:
    """An invalid timeout names the range and the value, and mentions milliseconds if plausible."""
    error = problem(house, f"/inbox/wait?timeout={timeout}")
    assert error == f"timeout must be a number of seconds from 1 to 60; got {ending}"


def test_every_way_to_write_a_moment(house: House) -> None:
    """Z, any offset, no offset (UTC), and a space instead of + mean the same instant."""
    house.pass_time(4.999)
    house.receive(house.address("early"))
    house.pass_time(0.001)
    house.receive(house.address("late"))
    for since in ("2026-11-21T12:00:05Z", "2026-11-21T13:00:05+01:00", "2026-11-21 12:00:05"):
        listed = house.get(f"/inbox/messages?since={since}").json["messages"]
        assert [one["tag"] for one in listed] == ["late"], since


@rows("", "yesterday", "2026-11-21", "٢٠٢٦-11-21T12:00:05Z")
def test_a_bad_since(house: House, since: str) -> None:
    """An invalid ISO 8601 date and time is 400 on every route with since."""
    for route in ("/inbox/wait", "/inbox/messages"):
        answer = house.ask("GET", route, params={"since": since}).answer()
        assert answer.status == 400
        assert answer.json["error"] == INSTANT_ADVICE + (since or "an empty text")


@rows("", "0", "c", "C1", "c01", "c1 ", "cg", "1", "c-1", "cfffffffffffffffff", "null")
def test_a_bad_cursor(house: House, after: str) -> None:
    """A text that is not a cursor of this service is 400."""
    for route in ("/inbox/wait", "/inbox/messages"):
        answer = house.ask("GET", route, params={"after": after}).answer()
        assert (answer.status, answer.json["error"]) == (
            400,
            CURSOR_ADVICE + (after or "an empty text"),
        )


def test_a_cursor_of_another_inbox(house: House) -> None:
    """A cursor that the inbox has not reached is 400; its newest one is valid."""
    other = house.issue_key(house.add_account("second"))
    house.receive()
    for route in ("/inbox/messages", "/inbox/wait"):
        answer = house.get(f"{route}?after=c1", key=other)
        assert (answer.status, answer.json["error"]) == (400, "after is a cursor of another inbox")
    assert house.get("/inbox/messages?after=c1").status == 200
    assert house.ask("DELETE", "/inbox/messages?after=c7").answer().status == 400


@rows(
    ("a b", TAG_ADVICE),
    ("a..b", TAG_ADVICE),
    (".a", TAG_ADVICE),
    ("a.", TAG_ADVICE),
    ("a@b", TAG_ADVICE),
    ("a,b", TAG_ADVICE),
    ('"a"', TAG_ADVICE),
    ("a" * 47, "tag: a tag has at most 46 octets; you sent 47"),
    ("ü" * 24, "tag: a tag has at most 46 octets; you sent 48"),
    ("a" * 501, "tag must have at most 500 characters; got 501"),
)
def test_a_bad_tag(house: House, tag: str, error: str) -> None:
    """A tag that is invalid in an address is 400 on every route with a tag."""
    for route in ("/inbox/wait", "/inbox/messages", "/inbox/address"):
        answer = house.ask("GET", route, params={"tag": tag}).answer()
        assert (answer.status, answer.json["error"]) == (400, error)
    answer = house.ask("DELETE", "/inbox/messages", params={"tag": tag}).answer()
    assert (answer.status, answer.json["error"]) == (400, error)


@rows("nobody", "@example.com", "a b@example.com", "a@", "a@b@c", "<a@b>")
def test_a_bad_recipient(house: House, to: str) -> None:
    """``to`` must be one complete address. Any other value is 400 and repeated in the error."""
    for route in ("/inbox/wait", "/inbox/messages"):
        answer = house.ask("GET", route, params={"to": to}).answer()
        assert answer.status == 400
        assert answer.json["error"].startswith(f"to must be one complete email address; got {to}: ")


@rows("tag", "since", "after", "from", "subject", "to", "q", "limit", "page")
def test_a_repeated_parameter(house: House, name: str) -> None:
    """A parameter that is sent twice is 400, even with the same value."""
    error = problem(house, f"/inbox/messages?{name}=1&{name}=1")
    assert error == f"{name} was sent 2 times; send it once"


@rows("tag", "since", "subject", "q", "unknown")
def test_a_value_that_is_not_utf_8(house: House, name: str) -> None:
    """A value that is not UTF-8, or contains a NUL, is 400; the error names the parameter."""
    for value in ("%ff", "a%c3", "%ed%a0%80", "%00", "a%00b", "%c0%80"):
        error = problem(house, f"/inbox/messages?{name}={value}")
        assert error == f"{name} is not percent-encoded UTF-8 text", value


def test_a_name_that_is_not_utf_8(house: House) -> None:
    """The name of a parameter must be valid text as well."""
    assert problem(house, "/inbox?%ff=1") == "name is not percent-encoded UTF-8 text"
    assert problem(house, "/inbox?%00") == "name is not percent-encoded UTF-8 text"


@rows(
    (
        "/inbox/messages?tga=secret",
        "from, subject, header, text, hasAttachment, q, after, since, limit, page",
    ),
    ("/inbox/address?Unique=1", "Did you mean unique? Its parameters are tag, unique"),
    ("/tools/mx-check?domian=secret.example", "Did you mean domain? Its parameters are domain"),
    ("/test/generate?_=secret", "'_' is not a parameter of this route. It has no parameters"),
    ("/inbox?=secret", "'' is not a parameter of this route. It has no parameters"),
    (
        "/inbox?" + "x" * 400,
        f"'{'x' * 80}...' is not a parameter of this route. It has no parameters",
    ),
)
def test_an_unknown_parameter(house: House, path: str, explained: str) -> None:
    """An unknown parameter is 400 with the nearest name, so that no filter is ignored."""
    method = "POST" if "generate" in path else "GET"
    answer = house.ask(method, path).answer()
    assert answer.status == 400
    assert answer.json["error"].endswith(explained)
    assert "secret" not in answer.json["error"]


def test_unknown_parameters_where_no_key_is_needed(house: House) -> None:
    """Routes without a key ignore unknown parameters, which browsers may add."""
    for path in ("/api/v1/openapi.json", "/healthz", "/readyz"):
        assert house.open(f"{path}?fbclid=1").answer().status == 200
    house.receive(house.address("a"))
    shared = house.get("/inbox/wait?since=2026-01-01T00:00:00Z").json["shareUrl"]
    link = f"/share/{shared.rpartition('/')[2]}"
    assert house.open(f"{link}?fbclid=1").answer().status == 200


def test_without_a_key_the_key_is_checked_first(house: House) -> None:
    """Without a key, the error about the key comes first and reveals no parameters."""
    assert house.ask("GET", "/inbox?tga=1", key=None).answer().status == 401


@rows(
    ("GET", "/inbox/messages?"),
    ("DELETE", "/inbox/messages?"),
    ("GET", "/inbox/wait?timeout=1&"),
    ("GET", "/inbox/wait/many?timeout=1&"),
    ("GET", "/inbox/wait/none?seconds=1&"),
    ("GET", "/inbox/events?seconds=1&"),
)
def test_a_plus_that_was_not_encoded(house: House, method: str, route: str) -> None:
    """A recipient whose plus arrived as a space gets the address to send, on every route."""
    answer = house.ask(method, f"{route}to=dev+sign-up@mailcheck.example").answer()
    assert answer.status == 400
    assert answer.json["error"].endswith(
        ". A + in a URL is a space: send dev%2Bsign-up@mailcheck.example"
    )
    other = house.ask(method, f"{route}to=dev+sign-up").answer()
    assert "%2B" not in other.json["error"]
