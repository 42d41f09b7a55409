"""Paths, ids and tags that try to reach other resources, or to be parsed as something else."""

from urllib.parse import quote

import pytest

from mailcheck.web.site.application import MAX_SHOWN
from tests.house import House, mail
from tests.table import rows
from tests.web.raw_http import RawHttp, read_answer, request

pytestmark = pytest.mark.attack

PDF = (
    b"From: a@example.com\r\nSubject: report\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: application/pdf; name="report.pdf"\r\n'
    b"Content-Disposition: attachment\r\n\r\n%PDF-1.7\r\n"
)


def key_header(house: House) -> str:
    """Return the header field with the application's key."""
    return f"X-API-Key: {house.key}"


HOSTILE = [
    *("..", "%2e%2e", "..%2f..%2f..%2fetc%2fpasswd", "..%5c..%5cetc", "%00", "1%00", "%ff%fe"),
    *("%c0%ae%c0%ae", "%", "%zz", "%u0031", "x%0d%0aX-Injected:%20yes", "%0d%0a%0d%0a<html>"),
    *("%e2%80%ae", "*", "|", ";", "'%20OR%20'1'='1", "%25", "%3Cscript%3E", "a" * 10_000),
    "%f0%9f%92%a9" * 500,
]


@pytest.fixture
def message_id(house: House) -> str:
    """The id of the only message."""
    house.receive()
    found: str = house.get("/inbox/messages").json["messages"][0]["id"]
    return found


@pytest.mark.usefixtures("message_id")
@rows(*HOSTILE)
def test_a_hostile_message_id_is_not_found(house: House, hostile: str) -> None:
    """A hostile message id is answered with a JSON 404, without a new header."""
    for suffix in ("", "/raw", "/html", "/attachments/1", "/share"):
        method = "POST" if suffix == "/share" else "GET"
        path = f"/api/v1/inbox/messages/{hostile}{suffix}"
        answer = RawHttp(house).ask(path, key_header(house), method=method)
        assert answer.status == 404
        assert "x-injected" not in answer.headers
        assert len(answer.body) < 10 * MAX_SHOWN
    answer = RawHttp(house).ask(
        f"/api/v1/inbox/messages/{hostile}", key_header(house), method="DELETE"
    )
    assert answer.status == 404
    assert house.get("/inbox").json["total"] == 1


@rows(*HOSTILE, "0", "2", "01", "+1", "1%20", "%201", "1.0", "\xb2", "%d9%a1", "-1")
def test_a_hostile_attachment_id_is_not_found(house: House, hostile: str) -> None:
    """Only the ids that the message lists lead to attachments, and no id leads to a file."""
    house.receive(raw=PDF)
    message_id = house.get("/inbox/messages").json["messages"][0]["id"]
    path = f"/api/v1/inbox/messages/{message_id}/attachments/"
    assert RawHttp(house).ask(path + "1", key_header(house)).body == b"%PDF-1.7\r\n"
    hostile = hostile.encode("latin-1").decode("latin-1")
    answer = RawHttp(house).ask(path + quote(hostile, safe="%"), key_header(house))
    assert answer.status == 404
    assert "x-injected" not in answer.headers


@rows(*HOSTILE)
def test_a_hostile_share_token_is_not_found(house: House, hostile: str) -> None:
    """A share token of any bytes is answered with a JSON 404."""
    answer = RawHttp(house).ask(f"/share/{hostile}")
    assert answer.status == 404
    assert "x-injected" not in answer.headers


@rows(*HOSTILE)
def test_a_path_that_leads_nowhere_is_repeated_in_part(house: House, hostile: str) -> None:
    """An unknown path is answered with a JSON 404 that repeats only its beginning."""
    for base in ("/", "/api/v1/", "/api/v1/inbox/messages/x/y/"):
        answer = RawHttp(house).ask(base + hostile, key_header(house))
        assert answer.status == 404
        assert len(answer.json["error"]) <= len("the path ... does not exist") + MAX_SHOWN


def test_encoded_letters_of_a_route_do_not_pass_the_gate(house: House) -> None:
    """A route with percent-encoded letters needs a key like any other spelling."""
    house.receive(raw=mail())
    for path in (
        "/api/v1/inbox",
        "/%61pi/v1/inbox",
        "/api/%761/inbox",
        "/api/v1/%69nbox",
        "/api/v1/inbox%2Fmessages",
        "/api/v1/inbox/%6dessages",
    ):
        assert RawHttp(house).ask(path).status == 401
        assert RawHttp(house).ask(path, key_header(house)).status == 200


def test_other_spellings_of_the_api_lead_nowhere(house: House) -> None:
    """The path of the API has no second spelling that could bypass a proxy's rule."""
    for path in ("//api/v1/inbox", "/api%2fv1/inbox", "/API/v1/inbox", "/api/v1/../v1/inbox"):
        assert RawHttp(house).ask(path, key_header(house)).status == 404
    for path in ("/api/v1/inbox/", "/api/v1/INBOX", "/api/v1/inbox%00", "/api/v1/./inbox"):
        assert RawHttp(house).ask(path, key_header(house)).status == 404


@rows("get", "Delete", "DELETe", "post", "delete" * 100)
def test_a_method_in_small_letters_is_another_method(
    house: House, message_id: str, method: str
) -> None:
    """Methods are case-sensitive (RFC 9110 9.1): no door takes ``delete`` for DELETE."""
    for path in (
        "/api/v1/inbox/messages",
        f"/api/v1/inbox/messages/{message_id}",
        f"/mailslurp/emails/{message_id}",
        "/sign-in",
    ):
        visit = RawHttp(house)
        visit.send(request(path, key_header(house), method=method))
        answer, _ = read_answer(visit.received(), method)
        assert answer.status == 405
        assert len(answer.body) < 10 * MAX_SHOWN
    assert house.get("/inbox").json["total"] == 1


@rows("/api/v1//inbox", "/inbox//messages", "/clients//x", "/x//y")
def test_a_path_with_an_empty_segment_does_not_exist(house: House, path: str) -> None:
    """A path with an empty segment is 404 with each method, and not the path without it."""
    for method in ("GET", "POST", "DELETE", "PATCH"):
        assert RawHttp(house).ask(path, key_header(house), method=method).status == 404
