"""Every expected failure at every door: each is answered, and none is a crash.

A worker of the store fails each request with each failure: once while the caller is looked up, and
once after that. A crash is logged, and a test that logs a failure fails.
"""

import importlib
import inspect
import json
import pkgutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

import mailcheck
from mailcheck.assembly.doors.compatible import build_open
from mailcheck.assembly.mail_programs import imap_factory, pop3_factory
from mailcheck.assembly.running.services import mail_factory
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import MailpitOptions, WebOptions
from mailcheck.connections.policies import offer_no_tls
from mailcheck.core.errors import (
    ExpectedFailure,
    InboxFull,
    LimitExceeded,
    Overloaded,
    StoreFull,
    StoreUnavailable,
    nearest,
)
from mailcheck.core.oauth.grants import RefusalCode
from mailcheck.core.rights import Rights, Scope
from mailcheck.core.signing_in.provisioning import Kind
from mailcheck.web.site.failures import CONFLICT, SERVICE_UNAVAILABLE, STATUSES, problem_of
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.mcp.agent import Agent
from tests.web.oauth.program import add_client
from tests.web.provider_requests import encode, headers_for, sample
from tests.web.raw_http import RawHttp, request
from tests.web.workers import FaultyWorker

FACTS: dict[str, Any] = {
    "problem": "a sentence about what is wrong",
    "why": "a sentence about what is wrong",
    "name": "limit",
    "retry_after": 7,
    "reply": (451, "4.3.0"),
    "is_running": True,
    "account_id": "a",
    "cursor": None,
    "allowed": "GET",
    "status": 501,
    "has_mail": True,
    "code": RefusalCode.INVALID_REQUEST,
    "kind": Kind.INVALID_VALUE,
}
"""Arguments of the failures, by their names."""

WITHOUT_A_ROW = {
    # Operators meet these on the command line, and never over HTTP.
    "CopyDiffers",
    "CopyUndetermined",
    "SchemaTooNew",
    "StoreInUse",
    "TargetNotEmpty",
}


def all_kinds() -> list[type[ExpectedFailure]]:
    """Return all classes of expected failures of the package."""
    for module in pkgutil.walk_packages(mailcheck.__path__, "mailcheck."):
        importlib.import_module(module.name)

    def below(kind: type[ExpectedFailure]) -> Iterator[type[ExpectedFailure]]:
        for one in kind.__subclasses__():
            if one.__module__.startswith("mailcheck."):
                yield one
                yield from below(one)

    return sorted(set(below(ExpectedFailure)), key=lambda kind: kind.__name__)


def failure_of(kind: type[ExpectedFailure]) -> ExpectedFailure:
    """Return a failure of a class."""
    if kind.__init__ is ExpectedFailure.__init__:
        return kind(FACTS["problem"])
    names = inspect.signature(kind).parameters.values()
    needed = [one for one in names if one.default is one.empty]
    return kind(**{one.name: FACTS[one.name] for one in needed if one.name in FACTS})


KINDS = all_kinds()


class Doors:
    """An application whose store fails, and one request for each door."""

    def __init__(self) -> None:
        self.store = FaultyWorker()
        config = config_in_memory(
            accounts=CHEAP, web=WebOptions(oauth="on"), mailpit=MailpitOptions(project="first")
        )
        workers = Workers(self.store, self.store, DirectWorker())
        self.house = House(config, workers)
        self.house.receive()
        self.open = build_open(self.house.assembly, offer_no_tls)
        report_url = self.house.get("/reports").json["addresses"]["tlsUrl"]
        self.report_path = "/" + report_url.split("/", 3)[3]
        rights = Rights(frozenset({Scope.OPERATOR}))
        self.directory_key = self.house.issue_key(self.house.account, rights=rights)
        self.client = add_client(self.house)[0].id
        self.browser = Browser(self.house)
        self.browser.sign_up()
        self.cookie = "; ".join(f"{name}={one}" for name, one in self.browser.cookies.items())

    def http(self, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
        """Send a request to the site, and return everything that it sends within a second."""
        return self._send(self.house, path, headers, method, body)

    def http_open(self, path: str) -> bytes:
        """Send a request to the listener without keys."""
        return self._send(self.open, path, (), "GET", b"")

    def _send(self, site: Any, path: str, headers: Any, method: str, body: bytes) -> bytes:
        connection = RawHttp(site)
        length = [f"Content-Length: {len(body)}"] if body else []
        connection.send(request(path, *headers, *length, method=method) + body)
        self.house.pass_time(1)
        received = connection.received()
        if not received and connection.transport.disconnected:
            received = b"(the connection was closed)"
        connection.hang_up()
        return received

    def talk(self, factory: Any, *lines: bytes) -> bytes:
        """Send lines to a server for mail, and return the reply to the last one."""
        protocol = factory.buildProtocol(None)
        transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 40_000))
        protocol.makeConnection(transport)
        *first, last = lines
        fault, self.store.fault = self.store.fault, None
        for line in first:
            protocol.dataReceived(line + b"\r\n")
        self.store.fault = fault
        transport.clear()
        protocol.dataReceived(last + b"\r\n")
        self.house.pass_time(1)
        received: bytes = transport.value()
        protocol.connectionLost(None)
        return received


def _provider(doors: Doors) -> bytes:
    path = "/providers/resend/emails"
    body = encode(path, sample(path, "you@customer.example"))
    headers = headers_for(path, doors.house.key, body).items()
    fields = [f"{name}: {value}" for name, value in headers]
    return doors.http(path, *fields, method="POST", body=body)


def _mcp(doors: Doors) -> bytes:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "list_messages", "arguments": {}},
    }
    fields = (f"X-API-Key: {doors.house.key}", "Content-Type: application/json", "Accept: */*")
    return doors.http("/mcp", *fields, method="POST", body=json.dumps(call).encode())


def _token(doors: Doors) -> bytes:
    body = f"client_id={doors.client}&grant_type=refresh_token&refresh_token=x".encode()
    return doors.http(
        "/token", "Content-Type: application/x-www-form-urlencoded", method="POST", body=body
    )


def _key(doors: Doors) -> str:
    return f"X-API-Key: {doors.house.key}"


def _basic(doors: Doors) -> str:
    return "Authorization: Basic " + b64encode(f"{doors.house.key}:".encode()).decode()


def _mail(doors: Doors) -> bytes:
    domain = doors.house.assembly.runtime.config.inbox.domain
    recipient = f"RCPT TO:<dev-{doors.store.calls}@{domain}>".encode()  # not in the cache
    factory = mail_factory(doors.house.assembly, offer_no_tls, is_submission=False)
    return doors.talk(factory, b"EHLO client", b"MAIL FROM:<shop@example.com>", recipient)


def _imap(doors: Doors, *lines: bytes) -> bytes:
    return doors.talk(imap_factory(doors.house.assembly, offer_no_tls, is_tls=False), *lines)


def _pop3(doors: Doors, *lines: bytes) -> bytes:
    factory = pop3_factory(doors.house.assembly, offer_no_tls, is_tls=False)
    return doors.talk(factory, b"USER any", *lines)


def _login(doors: Doors) -> bytes:
    return b"a LOGIN any " + doors.house.key.encode()


ASK: dict[str, Callable[[Doors], bytes]] = {
    "REST": lambda doors: doors.http("/api/v1/inbox", _key(doors)),
    "REST, unknown path": lambda doors: doors.http("/api/v1/nowhere", _key(doors)),
    "MCP": _mcp,
    "Mailosaur": lambda doors: doors.http("/mailosaur/api/messages?server=abcd1234", _basic(doors)),
    "MailSlurp": lambda doors: doors.http("/mailslurp/emails", _key(doors)),
    "Mailpit": lambda doors: doors.http_open("/api/v1/messages"),
    "MailHog": lambda doors: doors.http_open("/api/v2/messages"),
    "Resend": _provider,
    "OAuth": _token,
    "SCIM": lambda doors: doors.http("/scim/v2/Users", f"X-API-Key: {doors.directory_key}"),
    "page": lambda doors: doors.http("/inbox", f"Cookie: {doors.cookie}", "Accept: text/html"),
    "page for a program": lambda doors: doors.http("/inbox", f"Cookie: {doors.cookie}"),
    "public page": lambda doors: doors.http(doors.report_path, method="POST", body=b"x"),
    "shared page": lambda doors: doors.http("/share/" + "x" * 26),
    "SMTP": _mail,
    "IMAP, login": lambda doors: _imap(doors, _login(doors)),
    "IMAP": lambda doors: _imap(doors, _login(doors), b"b SELECT INBOX"),
    "POP3, login": lambda doors: _pop3(doors, b"PASS " + doors.house.key.encode()),
}


@pytest.fixture
def doors() -> Iterator[Doors]:
    """An application whose store can fail."""
    doors = Doors()
    yield doors
    doors.house.close()


@rows(*ASK)
def test_every_failure_is_answered(doors: Doors, door: str) -> None:
    """A door answers every expected failure within a second, and it is not a crash."""
    calls = doors.store.calls
    assert ASK[door](doors)
    used = doors.store.calls - calls
    assert used, "the request does not read the store"
    for kind in KINDS:
        for good_calls in range(min(used, 2)):
            doors.store.fault, doors.store.good_calls = failure_of(kind), good_calls
            answer = ASK[door](doors)
            doors.store.fault, doors.store.good_calls = None, 0
            assert answer, f"no answer to {kind.__name__} after {good_calls} calls"
            assert b"its cause is in the log of the service" not in answer, kind.__name__


@rows(*KINDS)
def test_every_failure_has_a_row(kind: type[ExpectedFailure]) -> None:
    """Each class has a row in the table of HTTP, or a class that it inherits from has one."""
    statuses = {one: status for one, status in STATUSES.items() if one is not ExpectedFailure}
    assert (nearest(failure_of(kind), statuses) is None) == (kind.__name__ in WITHOUT_A_ROW)


def test_the_nearest_row_counts() -> None:
    """A new class has the status of the class that it inherits from, in any order of the rows."""

    class Novelty(ExpectedFailure):
        pass

    class NoRoom(Overloaded):
        pass

    assert problem_of(Novelty("new")).status == CONFLICT
    assert problem_of(NoRoom("no room")).status == SERVICE_UNAVAILABLE
    assert nearest(StoreFull("full"), {ExpectedFailure: 1, StoreUnavailable: 2}) == 2
    assert nearest(StoreFull("full"), {StoreUnavailable: 2, ExpectedFailure: 1}) == 2
    assert nearest(ValueError("a bug"), STATUSES) is None


@rows(
    (Overloaded("too many checks are running"), "; repeat the call in 2 seconds"),
    (InboxFull("the inbox is full"), "the inbox is full"),
)
def test_the_model_reads_why_a_tool_failed(
    doors: Doors, failure: ExpectedFailure, text: str
) -> None:
    """A failure of a tool is a result with a sentence for the model."""
    doors.store.fault, doors.store.good_calls = failure, 1
    reply = Agent(doors.house).call("list_messages")
    doors.store.fault = None
    assert reply.status == 200
    result = reply.messages[-1]["result"]
    assert result["isError"]
    assert result["content"][0]["text"] == f"{failure}{text if text.startswith(';') else ''}"


def test_the_program_handles_a_limit_of_a_tool(doors: Doors) -> None:
    """A limit is an HTTP status for the program of the agent, with Retry-After."""
    doors.store.fault, doors.store.good_calls = LimitExceeded("too many waits", 7), 1
    reply = Agent(doors.house).call("list_messages")
    doors.store.fault = None
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")
