"""Errors of the API (docs/reference/contract.md, "Errors")."""

import ast
import re
import sqlite3
from pathlib import Path

import pytest
from twisted.logger import LogEvent

import mailcheck.web
from mailcheck.assembly.workers import Workers
from mailcheck.core.errors import StoreUnavailable
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory
from tests.table import rows
from tests.web.workers import FaultyWorker

SECRET = "SELECT digest FROM api_key -- /srv/mailcheck/var/mailcheck.db"


def house_with(reader: FaultyWorker) -> House:
    """Create a house that reads from the store through the worker."""
    return House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))


@rows("/nowhere", "/inbox/nowhere", "/inbox/messages/x/y", "/", "")
def test_an_unknown_path_is_404(house: House, path: str) -> None:
    """An unknown path of the API is a JSON 404 that repeats it."""
    answer = house.get(path)
    assert answer.status == 404
    assert answer.json["error"].startswith(f"the path /api/v1{path} does not exist")


@rows(
    ("/api/v1/inbox/message", "/api/v1/inbox/messages"),
    ("/api/v1/inbox/mesages/x/raw", "/api/v1/inbox/messages/x/raw"),
    ("/api/v1/inbox/wiat", "/api/v1/inbox/wait"),
    ("/api/inbox/messages", "/api/v1/inbox/messages"),
    ("/api/v2/inbox", "/api/v1/inbox"),
    ("/inbox/messages", "/api/v1/inbox/messages"),
    ("/openapi.json", "/api/v1/openapi.json"),
    ("/api/v1/tools/blocklist-check", "/api/v1/tools/blacklist-check"),
    ("/api/v1/nowhere", ""),
    ("/api/v1/inbox/messages/x/y/z/1/2/3", ""),
    ("/wp-login.php", ""),
    ("/" + "a" * 500, ""),
)
def test_the_path_that_was_meant(house: House, path: str, meant: str) -> None:
    """An unknown path names the most similar one, with its values, if there is one."""
    answer = house.open(path, key=house.key).answer()
    assert answer.status == 404
    assert (f"did you mean {meant}?" in answer.body.decode()) is bool(meant), answer.body
    assert meant or b"did you mean" not in answer.body


@rows("/nowhere", "/apis", "/api/v2/inbox", "/share", "/clients/x")
def test_an_unknown_page_is_404(house: House, path: str) -> None:
    """An unknown path outside the API is 404 as well."""
    answer = house.open(path).answer()
    assert answer.status == 404


@rows(
    ("POST", "/inbox", "GET, HEAD"),
    ("PUT", "/inbox/messages", "DELETE, GET, HEAD"),
    ("PATCH", "/inbox/messages/x", "DELETE, GET, HEAD"),
    ("GET", "/inbox/messages/x/share", "POST"),
    ("DELETE", "/inbox/wait", "GET, HEAD"),
    ("OPTIONS", "/inbox/messages", "DELETE, GET, HEAD"),
)
def test_a_wrong_method_is_405(house: House, method: str, path: str, allowed: str) -> None:
    """An unsupported method is 405, with the supported methods in Allow."""
    answer = house.ask(method, path).answer()
    assert answer.status == 405
    assert answer.headers["allow"] == allowed
    assert answer.json["error"] == f"/api/v1{path} supports {allowed}, not {method}"


@rows("/inbox", "/inbox/address?tag=a", "/inbox/messages?limit=1")
def test_head_is_get_without_the_body(house: House, path: str) -> None:
    """HEAD returns the headers of GET and no body."""
    house.receive()
    get, head = house.get(path), house.ask("HEAD", path).answer()
    assert (head.status, head.body) == (200, b"")
    for name in ("content-type", "cache-control"):
        assert head.headers[name] == get.headers[name]
    assert house.ask("HEAD", "/inbox/messages/none").answer().status == 404


@pytest.mark.parametrize("path", ["/inbox", "/inbox/messages", "/inbox/address", "/inbox/wait"])
def test_an_internal_error_is_500(path: str, logged_failures: list[LogEvent]) -> None:
    """An internal error is 500 with a reference. The log has the cause under the reference."""
    reader = FaultyWorker()
    house = house_with(reader)
    house.get("/inbox")
    reader.good_calls = 1  # the key is found, then
    reader.fault = sqlite3.IntegrityError(SECRET)
    answer = house.get(path)
    assert answer.status == 500
    assert (
        answer.json["error"]
        == "internal error; its cause is in the log of the service under the reference"
    )
    assert set(answer.json) == {"error", "reference"}
    assert SECRET not in str(answer)
    (event,) = logged_failures
    assert event["reference"] == answer.json["reference"]
    assert event["log_failure"].value is reader.fault
    assert "mck_" not in str(event.get("path"))


@rows(
    ("GET", "/inbox"),
    ("GET", "/inbox/messages?after=c1"),
    ("GET", "/inbox/wait?after=c1"),
    ("GET", "/inbox/messages/x/raw"),
    ("PUT", "/inbox"),
    ("GET", "/nowhere"),
)
def test_an_unavailable_store_is_503(method: str, path: str) -> None:
    """An unavailable database is 503 with Retry-After, never 401, 404 or 408."""
    reader = FaultyWorker()
    house = house_with(reader)
    reader.fault = StoreUnavailable("the database cannot answer now: disk I/O error")
    answer = house.ask(method, path).answer()
    assert answer.status == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.json["error"].startswith("the database cannot answer now")
    reader.fault = None
    assert house.get("/inbox").status == 200


def test_a_store_that_fails_after_authentication_is_503() -> None:
    """A database that fails after authentication is 503, with the rate limits of the key."""
    reader = FaultyWorker()
    house = house_with(reader)
    reader.good_calls = 1
    reader.fault = StoreUnavailable("the database cannot answer now: locked")
    answer = house.get("/inbox")
    assert answer.status == 503
    assert answer.headers["x-ratelimit-remaining"] == "999999"


def test_an_unavailable_store_does_not_limit_an_address() -> None:
    """Requests during an outage remain 503, because the client is not at fault."""
    reader = FaultyWorker()
    house = house_with(reader)
    reader.fault = StoreUnavailable("the database cannot answer now: locked")
    assert {house.get("/inbox").status for _ in range(70)} == {503}
    reader.fault = None
    assert house.get("/inbox").status == 200


def test_a_write_that_fails_is_503() -> None:
    """A delete that the database cannot write is 503, and no message is deleted."""
    writer = FaultyWorker()
    house = House(config_in_memory(), Workers(writer, DirectWorker(), DirectWorker()))
    house.receive()
    message_id = house.get("/inbox/messages").json["messages"][0]["id"]
    writer.fault = StoreUnavailable("the database cannot answer now: disk full")
    for method, path in (
        ("DELETE", f"/inbox/messages/{message_id}"),
        ("DELETE", "/inbox/messages"),
        ("POST", f"/inbox/messages/{message_id}/share"),
    ):
        assert house.ask(method, path).answer().status == 503
    writer.fault = None
    assert house.get(f"/inbox/messages/{message_id}").status == 200


WEB = Path(mailcheck.web.__file__).parent
STATUS = re.compile(r"[45]\d\d|HTTP/1\.[01] [45].*", re.ASCII)
NAMED_ELSEWHERE = {
    # The documented statuses; every response in the tests is checked against them.
    "api/calls.py": {400, 401, 403, 404, 405, 413, 415, 429, 500, 503},
    # The title of a page for a status.
    "dashboard/door.py": {400, 403, 404, 405, 409, 413, 429, 500, 503},
    # The protocol defines the status of JSON-RPC errors (Streamable HTTP).
    "mcp/protocol_modes.py": {400, 404},
    # Not statuses: costs, sizes of compressed bodies, lengths of texts, rows of a page.
    "site/costs.py": {500},
    "site/replies.py": {512},
    "dashboard/inbox/message_view.py": {512},
    "dashboard/inbox/view.py": {500},
}


def statuses_in(path: Path) -> set[int | str]:
    """Return the numbers and texts in a module that look like error statuses.

    The module-level constants of routes are excluded, because they document statuses.
    """
    tree = ast.parse(path.read_text("utf-8"))
    if path.name.endswith("_routes.py"):
        tree.body = [node for node in tree.body if not isinstance(node, ast.Assign)]
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    numbers = {one for one in values if isinstance(one, int) and 400 <= one < 600}
    return numbers | {
        one for one in values if isinstance(one, str) and STATUS.fullmatch(one.strip())
    }


def test_error_statuses_are_defined_in_one_module() -> None:
    """No module defines error statuses, except those that are listed here with a reason."""
    found = {
        path.relative_to(WEB).as_posix(): statuses
        for path in sorted(WEB.rglob("*.py"))
        # The statuses of a provider or another product are part of its API.
        if path != WEB / "site" / "failures.py"
        and not {"providers", "compatible"} & set(path.relative_to(WEB).parts)
        and (statuses := statuses_in(path))
    }
    assert found == NAMED_ELSEWHERE
