"""Every kind of open stream, wait and connection, and the credentials that open it."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import Deferred

from mailcheck.assembly.accounts import account_services
from mailcheck.assembly.doors.compatible import build_open
from mailcheck.assembly.running.services import mail_factory
from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.config.options import CompatibleOptions, MailpitOptions, WebOptions
from mailcheck.connections.policies import offer_no_tls
from mailcheck.core.accounts import Account
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.projects import Role
from mailcheck.core.rights import Scope, make_rights
from mailcheck.web.dashboard.addresses import address_in
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, mail, run
from tests.imap import imap_talk, pop3_talk
from tests.smtp.talk import Talk as SmtpTalk
from tests.web.compatible.mailslurp import INBOX
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.mcp.agent import STATELESS, TASKS, Agent
from tests.web.oauth.program import ISSUER, Program, add_client, returned
from tests.web.raw_http import RawHttp, request

PASSWORD = "correct horse"
SECRET = "ONLY-FOR-MEMBERS"


@dataclass
class Opened:
    """An open stream: what it has sent, and whether it is over."""

    sent: Callable[[], bytes]
    is_over: Callable[[], bool]


class SlowZone(MemoryZone):
    """A zone that answers no question about one domain, so that checks of it go on."""

    domain = "slow.example"

    def lookup(self, question: DnsQuestion) -> "Deferred[DnsAnswer]":
        """Return an answer, or wait until the question is given up."""
        return Deferred() if self.domain in question.name else super().lookup(question)


class World:
    """A daemon with all doors, a person with a project, and the credentials for both."""

    def __init__(self) -> None:
        config = config_in_memory(
            accounts=CHEAP,
            web=WebOptions(public_url=ISSUER),
            mailpit=MailpitOptions(project="shop"),
            compatible=CompatibleOptions(hold=60),
        )
        self.house = house = House(config, zone=SlowZone({}))
        self.browser = Browser(house)
        self.browser.sign_up("ann", PASSWORD)
        accounts = house.assembly.accounts
        self.ann: Account = run(accounts.keep.find("ann"))
        self.shop: Account = run(accounts.projects.create(self.ann, "shop"))
        bob = house.add_account("bob")
        run(accounts.projects.set_member(self.shop, bob, Role.OWNER))
        self.services = account_services(house.assembly.runtime, accounts)
        for service in self.services:
            service.startService()

    def close(self) -> None:
        """Stop everything."""
        for service in self.services:
            service.stopService()
        self.house.close()

    def send_secret(self, account: Account) -> None:
        """Receive a mail in the inbox of an account."""
        self.house.receive(self.house.address(account=account), raw=mail(SECRET))


@dataclass
class Credential:
    """What opens streams of an account: a secret, a session or nothing."""

    world: World
    account: Account
    secret: str = ""
    program: Program | None = None


KEY_LIFE = 20
"""Seconds until the key of the person expires."""


def _key(world: World, account: Account, expires_at: Instant | None = None) -> str:
    """Return a key with all ordinary scopes, and that of administrators of projects."""
    scopes = [str(one) for one in Scope if one is not Scope.OPERATOR]
    return world.house.issue_key(account, rights=make_rights(scopes), expires_at=expires_at)


def own_key(world: World) -> Credential:
    """Return an API key of the person, which expires soon."""
    expires_at = Instant(world.house.assembly.runtime.now() + KEY_LIFE * SECOND)
    return Credential(world, world.ann, _key(world, world.ann, expires_at))


def key_of_project(world: World) -> Credential:
    """Return an API key of the project."""
    return Credential(world, world.shop, _key(world, world.shop))


def token(world: World) -> Credential:
    """Return an access token for the project, which the person has granted to a program."""
    client, _ = add_client(world.house)
    program = Program(world.browser, client.id)
    program.ask()
    code = returned(program.submit(account=world.shop.id))["code"]
    found = program.exchange(code).json
    return Credential(world, world.shop, found["access_token"], program)


def own_session(world: World) -> Credential:
    """Return the session of the person, for the pages of the own account."""
    return Credential(world, world.ann)


def session_in_project(world: World) -> Credential:
    """Return the session of the person, for the pages of the project."""
    return Credential(world, world.shop)


def password(world: World) -> Credential:
    """Return the password of the person, as programs send it."""
    return Credential(world, world.ann, PASSWORD)


def open_listener(world: World) -> Credential:
    """Return nothing: the listeners of Mailpit's clients need no credential."""
    return Credential(world, world.shop)


# How streams are opened.


def _http(
    credential: Credential,
    method: str,
    path: str,
    *headers: str,
    body: object = None,
    site: Any = None,
) -> Opened:
    data = b"" if body is None else json.dumps(body).encode()
    lines = ["Connection: close", *headers]
    if data:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    connection = RawHttp(site or credential.world.house)
    connection.send(request(path, *lines, method=method) + data)

    def is_over() -> bool:
        connection.received()
        return connection.is_closed

    return Opened(connection.received, is_over)


def rest(path: str) -> Callable[[Credential], Opened]:
    """Return the opener of a route of the REST API."""

    def open_stream(credential: Credential) -> Opened:
        filled = path.replace("<test_id>", _test_of(credential)).replace("<project_id>", "me")
        return _http(credential, "GET", f"/api/v1{filled}", f"X-API-Key: {credential.secret}")

    return open_stream


def page(path: str) -> Callable[[Credential], Opened]:
    """Return the opener of a page that is a stream."""

    def open_stream(credential: Credential) -> Opened:
        cookies = credential.world.browser.cookies.items()
        cookie = "; ".join(f"{name}={value}" for name, value in cookies)
        filled = path.replace("<test_id>", _test_of(credential))
        filled = address_in(credential.account.id, filled.replace("<domain>", SlowZone.domain))
        return _http(credential, "GET", filled, f"Cookie: {cookie}", "Accept: text/event-stream")

    return open_stream


def tool(name: str, *, is_of_test: bool = False) -> Callable[[Credential], Opened]:
    """Return the opener of a call of a tool that waits."""

    def open_stream(credential: Credential) -> Opened:
        arguments = {"testId": _test_of(credential)} if is_of_test else {"timeout": 55}
        agent = Agent(credential.world.house, credential.secret)
        reply = agent.call(name, arguments)
        return Opened(lambda: bytes(reply.body), lambda: reply.is_over)

    return open_stream


def send_inbound(credential: Credential) -> Opened:
    """Send a mail to an application, which never takes it, since no daemon delivers here."""
    house, body = credential.world.house, '{"to": "*", "format": "rails", "url": "http://a.test/"}'
    secret = _key(credential.world, credential.account)
    made = house.ask("POST", "/inbound/routes", key=secret, data=body.encode()).answer().json
    agent = Agent(house, credential.secret)
    reply = agent.call("send_inbound", {"text": "Hi", "route": made["id"], "wait": 50})
    return Opened(lambda: bytes(reply.body), lambda: reply.is_over)


def task_poll(credential: Credential) -> Opened:
    """Begin a long wait as a task, and poll it."""
    agent = Agent(credential.world.house, credential.secret, STATELESS, TASKS)
    begun = agent.call("wait_for_message", {"timeout": 600})
    credential.world.house.pass_time(0)
    reply = agent.request("tasks/get", {"taskId": begun.result["taskId"]})
    return Opened(lambda: bytes(reply.body), lambda: reply.is_over)


def mailosaur(credential: Credential) -> Opened:
    """Search as a client of Mailosaur does."""
    basic = f"{credential.secret}:".encode()
    return _http(
        credential,
        "POST",
        "/mailosaur/api/messages/search?server=abcd1234",
        f"Authorization: Basic {b64encode(basic).decode()}",
        body={"sentTo": "nobody@abcd1234.example"},
    )


def mailslurp(credential: Credential) -> Opened:
    """Wait as a client of MailSlurp does."""
    key = f"x-api-key: {credential.secret}"
    path = f"/mailslurp/waitForLatestEmail?timeout=60000&inboxId={INBOX}"
    return _http(credential, "GET", path, key)


def _open_site(credential: Credential) -> Any:
    return build_open(credential.world.house.assembly, offer_no_tls)


def mailpit(credential: Credential) -> Opened:
    """List messages as a client of Mailpit does."""
    site = _open_site(credential)
    return _http(credential, "GET", "/api/v1/search?query=tag%3Anone", site=site)


def mailpit_socket(credential: Credential) -> Opened:
    """Open the WebSocket of Mailpit's clients."""
    handshake = (
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    connection = RawHttp(_open_site(credential))
    connection.send(request("/api/events", "Connection: Upgrade", *handshake))

    def is_over() -> bool:
        connection.received()
        return connection.is_closed

    return Opened(connection.received, is_over)


def mailhog(credential: Credential) -> Opened:
    """Search as a client of MailHog does."""
    site = _open_site(credential)
    return _http(credential, "GET", "/api/v2/search?kind=containing&query=nothing", site=site)


def imap(credential: Credential) -> Opened:
    """Log in to IMAP, and wait in IDLE."""
    talk = imap_talk.Talk(credential.world.house)
    assert b"x OK" in talk.do(f'LOGIN "ann" "{credential.secret}"'.encode())
    talk.do(b"SELECT INBOX")
    talk.do(b"IDLE")
    return Opened(talk.transport.value, lambda: talk.is_closing)


def pop3(credential: Credential) -> Opened:
    """Log in to POP3."""
    talk = pop3_talk.Talk(credential.world.house)
    said = talk.say(b"USER ann", f"PASS {credential.secret}".encode())
    assert b"+OK logged in" in said
    return Opened(talk.transport.value, lambda: talk.is_closing)


def smtp(credential: Credential) -> Opened:
    """Log in to submission."""
    factory = mail_factory(credential.world.house.assembly, offer_no_tls, is_submission=True)
    return _log_in_to_smtp(credential, SmtpTalk(factory, "127.0.0.1"))


def mailpit_smtp(credential: Credential) -> Opened:
    """Log in to the mail listener of Mailpit's clients, which accepts any password."""
    return _log_in_to_smtp(credential, SmtpTalk(_open_site(credential).mail, "127.0.0.1"))


def _log_in_to_smtp(credential: Credential, talk: SmtpTalk) -> Opened:
    response = b64encode(f"\0ann\0{credential.secret}".encode())
    said = talk.say(b"EHLO client\r\n", b"AUTH PLAIN " + response + b"\r\n")
    assert b"\r\n235 " in said, said
    return Opened(talk.transport.value, lambda: talk.is_closed)


def _test_of(credential: Credential) -> str:
    manage = credential.world.house.assembly.tests.operations.manage
    return str(run(manage.create(credential.account.id)).id)


Open = Callable[[Credential], Opened]

OF_KEYS: Mapping[str, Open] = {
    **{
        path: rest(path)
        for path in (
            "/inbox/wait",
            "/inbox/wait/many?count=2",
            "/inbox/wait/none",
            "/inbox/events",
            "/test/<test_id>/wait",
            "/projects/<project_id>/audit?after=a9999&timeout=60",
            "/inbound/attempts?wait=60",
        )
    },
    "mailosaur": mailosaur,
    "mailslurp": mailslurp,
}
OF_AGENTS: Mapping[str, Open] = {
    "wait_for_message": tool("wait_for_message"),
    "wait_for_test": tool("wait_for_test", is_of_test=True),
    "send_inbound": send_inbound,
    "tasks/get": task_poll,
}
OF_PROGRAMS: Mapping[str, Open] = {"imap": imap, "pop3": pop3, "submission": smtp}
OF_PAGES: Mapping[str, Open] = {
    path: page(path)
    for path in (
        "/live",
        "/inbox/live",
        "/tests/<test_id>/live?seen=pending",
        "/domains/<domain>/live?view=row",
        "/domains/<domain>/blocklists/live",
    )
}
OF_OPEN_LISTENERS: Mapping[str, Open] = {
    "mailpit": mailpit,
    "mailhog": mailhog,
    "/api/events": mailpit_socket,
    "mailpit_mail": mailpit_smtp,
}

CREDENTIALS: Mapping[Callable[[World], Credential], Mapping[str, Open]] = {
    own_key: {**OF_KEYS, **OF_AGENTS, **OF_PROGRAMS},
    key_of_project: {**OF_KEYS, **OF_AGENTS, **OF_PROGRAMS},
    # No program gets the scope webhooks by OAuth.
    token: {name: one for name, one in OF_AGENTS.items() if name != "send_inbound"},
    own_session: OF_PAGES,
    session_in_project: OF_PAGES,
    password: OF_PROGRAMS,
    open_listener: OF_OPEN_LISTENERS,
}
"""All credentials, with all kinds of streams that each opens."""
