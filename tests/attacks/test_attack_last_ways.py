"""Attacks that a review of the accounts had left out, each from a list of tries."""

import sqlite3
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from html import escape
from typing import Any

import pytest

from mailcheck.assembly.running.services import mail_factory
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import MilterOptions
from mailcheck.connections.policies import offer_no_tls
from mailcheck.core.audit import Actor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.messages import Session
from mailcheck.core.signing_in.passkeys import Passkey
from mailcheck.workers.scheduling import DirectWorker
from tests.attacks.strangers import CountedWorker
from tests.corpus.report_files import document, gzipped, report_mail
from tests.engines.deliveries import noted
from tests.fakes.company import ISSUER, Company
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, mail, result_of, run
from tests.imap import imap_talk, pop3_talk
from tests.operations.scored_mails import zone_with
from tests.smtp.talk import Talk as SmtpTalk
from tests.table import rows
from tests.web.compatible import mailosaur, mailslurp
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.test_dashboard_company import company_house
from tests.web.mcp.agent import Agent
from tests.web.raw_http import RawHttp, request
from tests.web.reporting import reporting_house, send

pytestmark = pytest.mark.attack

PASSWORD = "correct horse battery"
BY = Actor("ann", "192.0.2.1")


# The metadata of the company's sign-in service.

ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
ADDRESSES = (
    "http://login.company.example/x",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "//evil.example/x",
    "https://",
    "https://user:pass@evil.example/",
    "https://evil.example/#x",
    "https://evil.example/\r\nSet-Cookie: a=b",
    "https://evil.example/\u00e4",
    "https://[::1",
    "",
    None,
    7,
    ["https://login.company.example/x"],
    {"a": 1},
)


@rows(*ENDPOINTS)
def test_metadata_of_the_sign_in_service(endpoint: str) -> None:
    """An address in the metadata that is not a plain https URL is not used."""
    for address in ADDRESSES:
        company = Company()
        house = company_house(company)
        company.metadata[endpoint] = address
        answer = Browser(house).open("/sign-in/company")
        assert (answer.status, "location" in answer.headers) == (503, False), address
        assert not company.forms
        house.close()


ISSUERS = (
    f"{ISSUER}/",
    f"{ISSUER}.",
    ISSUER.upper(),
    "https://evil.example",
    "",
    None,
    7,
    [ISSUER],
)


@rows(*ISSUERS)
def test_metadata_of_another_issuer(issuer: object) -> None:
    """Metadata is used only if its issuer is exactly the configured one."""
    company = Company()
    company.metadata["issuer"] = issuer
    assert Browser(company_house(company)).open("/sign-in/company").status == 503


# The last way to sign in.


def add_passkey(house: House, account: Any, name: str) -> None:
    """Add a passkey as a browser does."""
    now = house.assembly.runtime.now()
    passkey = Passkey(name, account.id, name.encode(), b"key", 0, name, now)
    result_of(house.assembly.accounts.passkey_store.add_passkey(passkey, noted()))


WAYS = [
    (has_password, is_linked, passkeys, passwords)
    for has_password in (False, True)
    for is_linked in (False, True)
    for passkeys in (1, 2)
    for passwords in (False, True)
]


@rows(*WAYS)
def test_the_last_way_to_sign_in(
    has_password: bool, is_linked: bool, passkeys: int, passwords: bool
) -> None:
    """A person removes passkeys and links as long as another way to sign in is left."""
    house = company_house(Company(), passwords)
    accounts, ann = house.assembly.accounts, house.add_account("ann")
    assert accounts.passkeys is not None
    assert accounts.company is not None
    if has_password:
        run(accounts.sign_in.set_password(ann, PASSWORD))
    if is_linked:
        run(accounts.company.link(ann, "ann-1"))
    for number in range(passkeys):
        add_passkey(house, ann, f"p{number}")
    for number in range(passkeys):
        is_last = number == passkeys - 1 and not (is_linked or (has_password and passwords))
        removal = accounts.passkeys.remove(ann, f"p{number}", BY)
        if is_last:
            with pytest.raises(InvalidParameter, match="only way to sign in"):
                run(removal)
        else:
            run(removal)
    if is_linked and not (has_password and passwords):
        with pytest.raises(InvalidParameter, match="no password"):
            run(accounts.company.unlink(ann, BY))


# Links under a forged name of the host.

HOSTS = (
    ("Host: evil.example",),
    ("Host: evil.example:8080",),
    ("Host: 127.0.0.1:8080", "X-Forwarded-Host: evil.example"),
    ("Host: 127.0.0.1:8080", "Forwarded: host=evil.example;proto=https"),
    ("Host: 127.0.0.1:8080", "X-Original-Host: evil.example", "X-Rewrite-URL: //evil.example/"),
    ("Host: 127.0.0.1:8080@evil.example",),
    ("Host: evil.example#127.0.0.1",),
)
CALLS = (
    ("POST", "/api/v1/test/generate", b""),
    ("POST", "/api/v1/inbox/messages/<id>/share", b""),
    ("POST", "/api/v1/watches", b'{"targets": ["sender.example"]}'),
    ("GET", "/api/v1/reports", b""),
    ("GET", "/api/v1/inbox/address", b""),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
)


def dump(house: House) -> str:
    """Return everything that is stored, as SQL."""
    connection: sqlite3.Connection = house.sqlite._connection
    return "\n".join(connection.iterdump())


@rows(*HOSTS)
def test_links_under_a_forged_host(fields: tuple[str, ...]) -> None:
    """A name that a client sends is stored nowhere, so no alert and no report leads there."""
    house = House(config_in_memory(accounts=CHEAP), zone=zone_with())
    house.receive(raw=mail("before"))
    (message,) = house.get("/inbox/messages").json["messages"]
    for method, path, body in CALLS:
        connection = RawHttp(house)
        lines = (f"X-API-Key: {house.key}", "Content-Type: application/json")
        head = request(path.replace("<id>", message["id"]), *lines, method=method)
        own = b"Host: 127.0.0.1:8080\r\n"
        head = head.replace(own, "".join(f"{one}\r\n" for one in fields).encode())
        end = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        connection.send(head.removesuffix(b"\r\n") + end + body)
        assert connection.received().startswith((b"HTTP/1.1 20", b"HTTP/1.1 40"))
    house.pass_time(3_600)
    assert "evil.example" not in dump(house)


# Keys and links that expire.


def try_rest(house: House, key: str) -> bool:
    """Return whether the REST API accepts a key."""
    return bool(house.get("/inbox", key=key).status == 200)


def try_mcp(house: House, key: str) -> bool:
    """Return whether the MCP endpoint accepts a key."""
    return Agent(house, key).request("tools/list").status == 200


def try_mailosaur(house: House, key: str) -> bool:
    """Return whether the API of Mailosaur accepts a key."""
    return mailosaur.Client(house, key).send("GET", "/api/servers").status == 200


def try_mailslurp(house: House, key: str) -> bool:
    """Return whether the API of MailSlurp accepts a key."""
    return mailslurp.Client(house, key).send("GET", "/inboxes").status == 200


def log_in_to_imap(house: House, name: str, password: str) -> bytes:
    """Return the reply to a login over IMAP, without its tag."""
    return imap_talk.Talk(house).do(f'LOGIN "{name}" "{password}"'.encode())


def log_in_to_pop3(house: House, name: str, password: str) -> bytes:
    """Return the reply to a login over POP3."""
    talk = pop3_talk.Talk(house)
    return talk.say(f"USER {name}".encode(), f"PASS {password}".encode()).partition(b"\r\n")[2]


def log_in_to_smtp(house: House, name: str, password: str) -> bytes:
    """Return the reply to a login over submission."""
    factory = mail_factory(house.assembly, offer_no_tls, is_submission=True)
    talk = SmtpTalk(factory, "127.0.0.1")
    talk.say(b"EHLO client\r\n")
    response = b64encode(f"\0{name}\0{password}".encode())
    return talk.say(b"AUTH PLAIN " + response + b"\r\n")


LOGINS = (log_in_to_imap, log_in_to_pop3, log_in_to_smtp)


def try_program(log_in: Callable[[House, str, str], bytes]) -> Callable[[House, str], bool]:
    """Return whether a protocol of mail programs accepts a key."""
    return lambda house, key: log_in(house, "any", key).startswith((b"x OK", b"+OK", b"235"))


DOORS = (try_rest, try_mcp, try_mailosaur, try_mailslurp, *map(try_program, LOGINS))


@rows(*DOORS)
def test_keys_expire_at_every_door(door: Callable[[House, str], bool]) -> None:
    """A key works until the last moment before its expiry, and not from then on."""
    house = House(config_in_memory(accounts=CHEAP))
    ends_at = Instant(house.assembly.runtime.now() + 10 * SECOND)
    key = house.issue_key(house.account, expires_at=ends_at)
    assert door(house, key)
    house.clock.advance(9.999)
    assert door(house, key)
    for seconds in (0.001, 0.001, 3_600):
        house.clock.advance(seconds)
        assert not door(house, key)


def test_share_links_expire_with_their_mail() -> None:
    """Nothing behind a share link is left when the mail expires, or when the link is replaced."""
    house = House(config_in_memory(accounts=CHEAP))
    house.receive()
    (message,) = house.get("/inbox/messages").json["messages"]
    renew = f"/inbox/messages/{message['id']}/share"
    old = house.ask("POST", renew).answer().json["shareUrl"].partition(":8080")[2]
    new = house.ask("POST", renew).answer().json["shareUrl"].partition(":8080")[2]
    for path in ("", "/frame", "/attachments/1", "/attachments/1/preview"):
        assert house.open(old + path).answer().status == 404
    assert house.open(new).answer().status == 200
    house.pass_time(24 * 3_600)
    for path in ("", "/frame", "/attachments/1", "/attachments/1/preview"):
        assert house.open(new + path).answer().status == 404


# Names that logins tell.

NAMES = (
    "ann",
    "Ann",
    "nopassword",
    "gone",
    "needspasskey",
    "project",
    "nobody",
    "x" * 200,
    "\u00e4",
)


@rows(*LOGINS)
def test_names_told_by_logins(log_in: Callable[[House, str, str], bytes]) -> None:
    """A wrong password costs one hash and gets one reply, whether the name exists or not."""
    work: Counter[str] = Counter()
    direct = DirectWorker()
    workers = Workers(direct, direct, direct, passwords=CountedWorker("passwords", work))
    house = House(config_in_memory(accounts=CHEAP), workers)
    accounts = house.assembly.accounts
    people = {
        name: house.add_account(name) for name in ("ann", "nopassword", "gone", "needspasskey")
    }
    for name in ("ann", "gone", "needspasskey"):
        run(accounts.sign_in.set_password(people[name], PASSWORD))
    run(accounts.keep.disable(people["gone"]))
    add_passkey(house, people["needspasskey"], "p")
    result_of(
        accounts.passkey_store.require_passkey(people["needspasskey"].id, noted(), is_required=True)
    )
    run(accounts.projects.create(people["ann"], "project"))
    replies, hashes = set(), set()
    for name in NAMES:
        before = work["passwords"]
        replies.add(log_in(house, name, "wrong"))
        hashes.add(work["passwords"] - before)
        house.clock.advance(61)
    assert len(replies) == 1, replies
    assert hashes == {1}


# Texts of strangers on the pages of traffic and of the plan.

TEXTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "{{7*7}}",
    "</title><svg/onload=alert(1)>",
    "\u202eevil",
    "javascript:alert(1)",
    "a" * 5_000,
)


def look_at(house: House, *paths: str) -> None:
    """Open pages in a browser that rejects what could run, and look for the texts."""
    browser = Browser(house)
    browser.sign_in("first", PASSWORD)
    for path in paths:
        assert browser.open(path).status == 200
        assert "<script>alert" not in browser.page.source
        assert "<img src=x" not in browser.page.source
        assert "<svg/onload" not in browser.page.source


def test_texts_on_the_pages_of_traffic() -> None:
    """Names in copies of mails are shown as text."""
    milter = MilterOptions(listen=("127.0.0.1:1",))
    house = House(config_in_memory(milter=milter, accounts=CHEAP), zone=zone_with())
    run(house.assembly.accounts.sign_in.set_password(house.account, PASSWORD))
    for text in TEXTS:
        session = Session("192.0.2.7", text, is_extended=True)
        raw = f"From: {text} <a@sender.example>\r\nSubject: {text}\r\n\r\n{text}\r\n".encode()
        copy = house.assembly.traffic.score.begin(session, f"{text}@e.org", is_authenticated=False)
        assert copy is not None
        copy.add(raw)
        copy.finish()
        house.pass_time(0)
    run(house.assembly.traffic.score.flush())
    look_at(house, "/traffic", "/traffic/sources?domain=sender.example&days=30", "/domains")


def test_texts_on_the_pages_of_the_plan() -> None:
    """Names in reports of receivers are shown as text, also on the plan made from them."""
    house = reporting_house(MemoryZone({}), config_in_memory(accounts=CHEAP))
    run(house.assembly.accounts.sign_in.set_password(house.account, PASSWORD))
    for number, text in enumerate(TEXTS):
        report = document("google.xml").decode().replace("12048340712345678901", f"{number}")
        for name in ("google.com", "noreply-dmarc-support@google.com", "lists.example.net"):
            assert name in report
            report = report.replace(f">{name}<", f">{escape(text[:200])}<")
        send(house, report_mail(gzipped(report.encode()), "application/gzip", "a.xml.gz"))
    assert house.get("/reports").json["reports"]
    plan = "/domains/example.org/plan?days=366"
    look_at(house, "/domains/example.org/reports?days=366", plan, "/reports", "/domains")
