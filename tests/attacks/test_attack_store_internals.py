"""Error messages of the database are logged, and never sent to a client."""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from twisted.logger import LogEvent, capturedLogs

from mailcheck.assembly.running.services import mail_factory
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import SmtpOptions
from mailcheck.connections.policies import offer_no_tls
from mailcheck.core.accounts import Account
from mailcheck.core.errors import StoreFull, StoreUnavailable, WorkerDied
from mailcheck.core.filters import MessageFilter
from mailcheck.ports.engine import RetryableError
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, result_of, run
from tests.smtp.talk import Talk
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.inbox_visit import sign_up
from tests.web.mcp.agent import Agent
from tests.web.raw_http import RawHttp, request
from tests.web.workers import FaultyWorker

pytestmark = pytest.mark.attack

CAUSES = {
    "away": StoreUnavailable(
        'the database can\'t be reached: connection to server at "10.9.8.7", port 6543 failed: '
        'FATAL: password authentication failed for user "mailrole"'
    ),
    "lost": RetryableError("the connection to the database was lost: 10.9.8.7:6543 mailrole FATAL"),
    "full": StoreFull('could not extend file "/srv/secret/16384": 10.9.8.7 6543 mailrole FATAL'),
    "dead": WorkerDied("the writer process 6543 has died: 10.9.8.7 mailrole FATAL"),
}
INTERNAL = re.compile(r"10\.9\.8\.7|6543|mailrole|FATAL|secret|16384")
OTHER = "staple battery"
TEST = "01970000-0000-7000-8000-000000000000"
REFERENCE = re.compile(r"reference ([0-9a-f]{12})")


class BrokenHouse:
    """An application with an account, a key and a browser, whose store can be broken."""

    def __init__(self) -> None:
        self.reader, self.writer, self.content = FaultyWorker(), FaultyWorker(), FaultyWorker()
        workers = Workers(self.writer, self.reader, self.content, DirectWorker())
        smtp = SmtpOptions(auth_without_tls="always")
        self.house = House(config_in_memory(accounts=CHEAP, smtp=smtp), workers)
        self.browser = Browser(self.house)
        self.account = sign_up(self.browser)
        self.browser.open("/p/me/keys")
        self.form_token = {"form-token": self.browser.page.form_token}
        self.agent = Agent(self.house)

    def break_store(self, cause: StoreUnavailable, good_reads: int = 0) -> None:
        """Let writes fail, and reads after a number of good ones."""
        self.reader.fault = self.writer.fault = cause
        self.reader.good_calls = good_reads

    def mend(self) -> None:
        """Repair the store."""
        self.reader.fault = self.writer.fault = self.content.fault = None
        self.reader.good_calls = 0

    def talk(self, *commands: bytes, is_submission: bool = False) -> bytes:
        """Send commands on a new connection, and return all replies."""
        factory = mail_factory(self.house.assembly, offer_no_tls, is_submission=is_submission)
        talk = Talk(factory, "192.0.2.7")
        said = talk.say(b"EHLO client.example\r\n", *commands)
        talk.leave()
        return said


@pytest.fixture
def broken() -> Iterator[BrokenHouse]:
    """An application whose store can be broken."""
    broken = BrokenHouse()
    yield broken
    broken.mend()
    broken.house.close()


@pytest.fixture
def log() -> Iterator[Sequence[LogEvent]]:
    """The events that are logged during the test."""
    with capturedLogs() as events:
        yield events


def require_hidden(said: bytes | str, log: Sequence[LogEvent]) -> None:
    """Check that a response shows no internals, and that each reference is in the log."""
    text = said.decode() if isinstance(said, bytes) else said
    assert INTERNAL.search(text) is None, text
    references = REFERENCE.findall(text)
    assert references, text
    told = {str(event["reference"]): str(event["cause"]) for event in log if "cause" in event}
    for reference in references:
        assert INTERNAL.search(told[reference]) or "has died" in told[reference]


def at_recipient(broken: BrokenHouse) -> bytes:
    """Send a recipient on the mail port."""
    address = broken.house.address().encode()
    return broken.talk(b"MAIL FROM:<a@example.com>\r\n", b"RCPT TO:<%b>\r\n" % address)


def at_data(broken: BrokenHouse) -> bytes:
    """Send a whole mail."""
    broken.reader.good_calls = 9
    address = broken.house.address().encode()
    commands = (b"MAIL FROM:<a@example.com>\r\n", b"RCPT TO:<%b>\r\n" % address, b"DATA\r\n")
    return broken.talk(*commands, b"Subject: x\r\n\r\nx\r\n.\r\n")


def at_submission(broken: BrokenHouse) -> bytes:
    """Authenticate on the submission port."""
    plain = base64.b64encode(b"\0key\0" + broken.house.key.encode())
    return broken.talk(b"AUTH PLAIN %b\r\n" % plain, is_submission=True)


def in_stream(broken: BrokenHouse) -> bytes:
    """Read the event stream of an inbox while its store fails."""
    broken.reader.good_calls = 99
    connection = RawHttp(broken.house)
    connection.send(request("/api/v1/inbox/events", f"X-API-Key: {broken.house.key}"))
    broken.reader.good_calls = 0
    broken.house.assembly.mail.notifications.publish(broken.house.account.id)
    said = connection.received()
    connection.hang_up()
    return said


def in_page_stream(broken: BrokenHouse) -> bytes:
    """Read the stream of an inbox page while its store fails."""
    broken.reader.good_calls = 99
    cookies = "; ".join(f"{name}={value}" for name, value in broken.browser.cookies.items())
    connection = RawHttp(broken.house, broken.browser.peer)
    connection.send(request("/p/me/inbox/live", f"Cookie: {cookies}"))
    broken.reader.good_calls = 0
    broken.house.assembly.mail.notifications.publish(broken.account.id)
    said = connection.received()
    connection.hang_up()
    return said


def in_wait(broken: BrokenHouse) -> bytes:
    """Wait for mail while the store fails."""
    broken.reader.good_calls = 99
    pending = broken.house.ask("GET", "/inbox/wait?timeout=5")
    broken.reader.good_calls = 0
    broken.house.pass_time(5)
    return bytes(pending.answer().body)


def at_readiness(broken: BrokenHouse) -> bytes:
    """Request the readiness of the daemon."""
    run(broken.house.assembly.heartbeat.look())
    return bytes(broken.house.open("/readyz").answer().body)


def of_tool(broken: BrokenHouse) -> str:
    """Call a tool whose store fails after the authentication."""
    broken.reader.good_calls = 1
    return str(broken.agent.call("list_messages", {}).body)


def of_endpoint(broken: BrokenHouse) -> str:
    """Send a request to the MCP endpoint."""
    return str(broken.agent.request("tools/list").body)


def of_api(method: str, path: str) -> Callable[[BrokenHouse], bytes]:
    """Return a function that calls the API."""
    return lambda broken: bytes(broken.house.ask(method, path).answer().body)


def of_api_later(method: str, path: str) -> Callable[[BrokenHouse], bytes]:
    """Return a function that calls the API, with a store that fails after the authentication."""

    def ask(broken: BrokenHouse) -> bytes:
        broken.reader.good_calls = 1
        return bytes(broken.house.ask(method, path).answer().body)

    return ask


def of_page(path: str) -> Callable[[BrokenHouse], bytes]:
    """Return a function that opens a page."""
    return lambda broken: bytes(broken.browser.open(path).body)


def of_form(path: str, **form: str) -> Callable[[BrokenHouse], bytes]:
    """Return a function that submits a form, whose action fails after the authentication."""

    def submit(broken: BrokenHouse) -> bytes:
        broken.reader.good_calls = 1
        return bytes(broken.browser.post(path, **broken.form_token, **form).body)

    return submit


SURFACES: dict[str, Callable[[BrokenHouse], bytes | str]] = {
    "RCPT": at_recipient,
    "DATA": at_data,
    "AUTH": at_submission,
    "readyz": at_readiness,
    "events": in_stream,
    "live page": in_page_stream,
    "wait": in_wait,
    "tool": of_tool,
    "MCP": of_endpoint,
    "share": lambda broken: bytes(broken.house.open("/share/" + "a" * 52).answer().body),
    "sign in": of_form("/sign-in", name="ann", password="correct horse"),
    "new key": of_form("/keys", name="laptop"),
    "new webhook": of_form("/webhooks", url="https://example.com/hook"),
    "new watch": of_form("/domains/example.com/settings", every="60"),
    "password": of_form("/account/password", old="correct horse", new=OTHER, again=OTHER),
    **{path: of_page(path) for path in ("/", "/keys", "/account", "/inbox", "/domains")},
    **{
        f"{method} {path}": of_api(method, path)
        for method, path in (
            ("GET", "/inbox"),
            ("GET", "/inbox/messages?after=c1"),
            ("GET", f"/test/{TEST}"),
            ("GET", "/tools/reputation?domain=example.com"),
        )
    },
    **{
        f"{method} {path}, later": of_api_later(method, path)
        for method, path in (
            ("GET", "/inbox"),
            ("GET", "/inbox/messages/x"),
            ("GET", "/inbox/messages/x/raw"),
            ("DELETE", "/inbox/messages"),
            ("GET", "/inbox/wait"),
            ("GET", "/inbox/events"),
            ("GET", "/inbox/webhooks"),
            ("POST", "/test/generate"),
            ("GET", "/watches"),
        )
    },
}


IN_EACH_WAY = ("RCPT", "DATA", "readyz", "GET /inbox", "tool", "/keys")
"""Surfaces of all kinds, which are tried with each cause."""


@rows(
    *((surface, "away") for surface in SURFACES),
    *((surface, cause) for surface in IN_EACH_WAY for cause in CAUSES if cause != "away"),
)
def test_no_client_is_told_what_the_database_said(
    broken: BrokenHouse, log: Sequence[LogEvent], surface: str, cause: str
) -> None:
    """Every surface answers with a fixed sentence and a reference to the cause in the log.

    An unreachable server, a lost connection, a full disk and a dead writer are all hidden.
    """
    broken.break_store(CAUSES[cause])
    try:
        require_hidden(SURFACES[surface](broken), log)
    finally:
        broken.mend()


@pytest.fixture
def message_id(broken: BrokenHouse) -> str:
    """A mail of the account; that of the browser has one too."""
    broken.house.receive()
    broken.house.receive(broken.house.address(account=broken.account))
    return message_of(broken, broken.house.account)


@rows(*product(("message", "wait", "events", "tool", "page"), CAUSES))
def test_no_child_process_tells_it(
    broken: BrokenHouse, message_id: str, log: Sequence[LogEvent], surface: str, cause: str
) -> None:
    """A child process that parses mails and reads the database hides errors too."""
    house = broken.house
    broken.content.fault = CAUSES[cause]
    if surface == "message":
        said = bytes(house.ask("GET", f"/inbox/messages/{message_id}").answer().body)
    elif surface == "wait":
        said = bytes(house.ask("GET", "/inbox/wait?after=c0&hasCode=true").answer().body)
    elif surface == "events":
        connection = RawHttp(house)
        path = "/api/v1/inbox/events?after=c0&hasCode=true"
        connection.send(request(path, f"X-API-Key: {house.key}"))
        said = connection.received()
        connection.hang_up()
    elif surface == "tool":
        said = str(broken.agent.call("get_message", {"id": message_id}).body).encode()
    else:
        broken.browser.open("/inbox")
        page = broken.browser.open("/inbox/messages/" + message_of(broken, broken.account))
        said = bytes(page.body)
    if REFERENCE.search(said.decode()) is None:
        assert INTERNAL.search(said.decode()) is None  # it was read without that process
    else:
        require_hidden(said, log)


def message_of(broken: BrokenHouse, owner: Account) -> str:
    """Return the id of the oldest message of an account."""
    store, now = broken.house.assembly.mail.store, broken.house.assembly.runtime.now()
    found, _ = result_of(store.oldest_matches(owner.id, MessageFilter(), now, 1))
    return str(found[0].summary.id)


def test_the_line_of_a_503_has_its_reference(broken: BrokenHouse, log: Sequence[LogEvent]) -> None:
    """The log lines of responses with 503 have the reference of the response."""
    broken.break_store(CAUSES["away"])
    connection = RawHttp(broken.house)
    for path in ("/api/v1/inbox", "/share/" + "a" * 52):
        connection.send(request(path, f"X-API-Key: {broken.house.key}"))
    broken.browser.open("/p/me/keys")
    assert broken.agent.request("tools/list").status == 503
    (reference,) = set(REFERENCE.findall(connection.received().decode()))
    lines: list[Any] = [event for event in log if event.get("status") == 503]
    assert {str(line["path"]) for line in lines} >= {"/api/v1/inbox", "/p/me/keys", "/mcp"}
    assert {line["reference"] for line in lines} == {reference}


def test_an_outage_fills_no_log(broken: BrokenHouse, log: Sequence[LogEvent]) -> None:
    """The same cause is logged once a minute, however many requests fail."""
    broken.break_store(CAUSES["away"])
    for minute in range(3):
        for _ in range(20):
            broken.house.ask("GET", "/inbox").answer()
        broken.house.pass_time(60)
        assert len([event for event in log if "cause" in event]) == minute + 1


def test_each_cause_has_its_own_reference(broken: BrokenHouse, log: Sequence[LogEvent]) -> None:
    """Two causes have different references in the log."""
    told = []
    for cause in CAUSES.values():
        broken.break_store(cause)
        told += REFERENCE.findall(broken.house.ask("GET", "/inbox").answer().json["error"])
    assert len(set(told)) == len(CAUSES)


def test_a_disk_that_can_not_be_asked_is_not_named(tmp_path: Any, log: Sequence[LogEvent]) -> None:
    """If the disk of the database cannot be read, SMTP and /readyz do not name its folder."""
    folder = tmp_path / "secret"
    folder.mkdir()
    storage = config_in_memory().storage
    storage = type(storage)(url=f"sqlite:{folder / 'mail.db'}", min_free=1)
    house = House(type(config_in_memory())(storage=storage))
    folder.rename(tmp_path / "elsewhere")
    house.pass_time(1)
    factory = mail_factory(house.assembly, offer_no_tls, is_submission=False)
    commands = (b"EHLO x.example\r\n", b"MAIL FROM:<>\r\n", b"RCPT TO:<%b>\r\n")
    said = Talk(factory, "192.0.2.7").say(*commands[:2], commands[2] % house.address().encode())
    assert b"451" in said
    require_hidden(said, log)
