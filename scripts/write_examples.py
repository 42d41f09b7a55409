"""Write the examples of the OpenAPI document: real responses of a house in memory.

    python -m scripts.write_examples

Run it after a change of a shape. A test fails if the examples are outdated.
"""

import json
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, succeed

from mailcheck.api.requests.accounts import (
    AccountChoice,
    AccountToCreate,
    KeyRotation,
    KeyToCreate,
    MemberToSet,
    ProjectToCreate,
)
from mailcheck.api.requests.checks import (
    PreflightRecords,
    WatchChoice,
    WatchesToCreate,
    WatchToCreate,
)
from mailcheck.api.requests.digests import DigestChoice
from mailcheck.api.requests.heartbeats import HeartbeatChoice, HeartbeatToCreate
from mailcheck.api.requests.inbound import MailToSend, RouteChange, RouteToCreate
from mailcheck.api.requests.inbox import (
    KeyFault,
    LinksToCheck,
    ReleaseMessage,
    WebhookReplay,
    WebhookToCreate,
)
from mailcheck.checks.deliverability.content_filter import FilterRule, FilterVerdict
from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.config.options import InboxOptions, ReleaseOptions, WebOptions
from mailcheck.core.domains.receiver_reports import MAX_DECISIONS, SenderDecision
from mailcheck.core.inbound import MOST_ROUTES
from mailcheck.core.instants import SECOND, Instant, parse_instant
from mailcheck.core.rights import Scope, make_rights
from mailcheck.core.webhooks import MOST_WEBHOOKS, Attempt
from mailcheck.operations.accounts.own_keys import MAX_KEYS
from mailcheck.ports.probes import Relayed
from mailcheck.ports.workers import Lease
from mailcheck.store.domains.sender_store import SenderStore
from tests.corpus.feedback_mails import feedback_mail
from tests.corpus.report_files import document, gzipped
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.report_senders import (
    DOMAIN,
    ask_for_reports,
    reports_zone,
    signed_report,
    signer_of,
)
from tests.fakes.scripted_receivers import BROKEN
from tests.house import House, config_in_memory, mail, result_of, run
from tests.operations.scored_mails import MAIL, PERFECT, received
from tests.web.checking import GOOD, checking_house
from tests.web.scored_house import ScoredHouse

FILE = Path(__file__).parents[1] / "mailcheck" / "api" / "openapi" / "examples.json"

WEB = WebOptions(public_url="https://mailcheck.example")

CONTENT = FilterVerdict(
    points=0.1,
    threshold=5.0,
    is_spam=False,
    rules=(FilterRule("HTML_MESSAGE", 0.1, "BODY: HTML included in message"),),
)

SIGN_UP = (
    b"From: Shop <shop@example.com>\r\n"
    b"To: dev@mailcheck.example\r\n"
    b"Subject: Welcome\r\n"
    b"MIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n'
    b"\r\n"
    b"--b\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"\r\n"
    b"Your code is 482913: https://example.com/confirm?t=7f3a\r\n"
    b"--b\r\n"
    b"Content-Type: application/pdf\r\n"
    b'Content-Disposition: attachment; filename="terms.pdf"\r\n'
    b"Content-Transfer-Encoding: base64\r\n"
    b"\r\n"
    b"JVBERi0xLjQK\r\n"
    b"--b--\r\n"
)


WELCOME = (
    b"From: Shop <shop@example.com>\r\n"
    b"List-Unsubscribe: <https://example.com/unsubscribe/7f3a>\r\n"
    b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
    b"To: dev@mailcheck.example\r\n"
    b"Subject: Welcome to the shop\r\n"
    b"MIME-Version: 1.0\r\n"
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"\r\n"
    b"<html lang=en>\r\n"
    b'<body><p style="border-radius:4px">Hello <img src="https://example.com/logo.png"></p>\r\n'
    b'<a href="https://example.com/welcome">Visit the shop</a>\r\n'
    b'<a href="https://example.com/unsubscribe">Unsubscribe</a></body></html>\r\n'
)


RELEASE = ReleaseOptions(
    relay="mail.example.net:587",
    sender="release@example.net",
    allow_recipients=("*=@example.org",),
)


class ExampleHouse:
    """A house in which every operation was used once."""

    def __init__(self) -> None:
        zone = MemoryZone({**PERFECT, **_as_example_com(), **_listed()})
        self.zone = zone
        config = config_in_memory(web=WEB, inbox=InboxOptions(), release=RELEASE)
        self.scored = ScoredHouse(zone, config)
        self.scored.content_filter.outcome = CONTENT
        self.house = self.scored.house

    def get(self, path: str, status: int = 200, **options: Any) -> Any:
        """Send a GET request, and return the body."""
        return self.ask("GET", path, status, **options)

    def ask(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        """Send a request that must have the given status, and return the body."""
        pending = self.house.ask(method, path, **options)
        if not pending.is_answered:
            self.house.pass_time(60)
        answer = pending.answer()
        assert answer.status == status, (path, answer)
        return answer.json


def write_examples() -> dict[str, Any]:
    """Request everything once. Return the bodies by name."""
    world = ExampleHouse()
    try:
        return {
            **_refusals(world),
            **_tools(world),
            **_inbox(world),
            **_webhooks(world),
            **_inbound(world),
            **_watches(world),
            **_reports(),
            **_projects(),
            **_traffic(world),
            **_tests(world),
            **_heartbeats(world),
            **_digest(world),
        }
    finally:
        world.scored.close()


def _inbox(world: ExampleHouse) -> dict[str, Any]:
    house = world.house
    found = {"address": world.get("/inbox/address?tag=signup")}
    house.receive(house.address("signup"), raw=SIGN_UP)
    found["waited message"] = world.get("/inbox/wait?tag=signup&after=c0")
    house.pass_time(5)
    house.receive(house.address("reset"), raw=mail("Reset your password"))
    found |= {"inbox": world.get("/inbox"), "messages": world.get("/inbox/messages")}
    found["faults"] = world.get("/inbox/faults")
    found["faults set"] = world.ask("PUT", "/inbox/faults", data=KeyFault.example.encode())
    first = found["waited message"]["id"]
    found["timedOut"] = world.get("/inbox/wait?tag=news&timeout=1", 408)
    found["gathered"] = world.get("/inbox/wait/many?count=2&after=c0")
    found["manyTimedOut"] = world.get("/inbox/wait/many?count=2&after=c0&tag=reset&timeout=1", 408)
    found["none"] = world.get("/inbox/wait/none?seconds=5")
    found["unwanted"] = world.get("/inbox/wait/none?after=c0&tag=reset", 409)
    found["interrupted"] = {"error": "the service is shutting down", "cursor": "c2"}
    found["message"] = world.get(f"/inbox/messages/{first}")
    found["raw"] = world.get(f"/inbox/messages/{first}/raw")
    found["share"] = world.ask("POST", f"/inbox/messages/{first}/share")
    found["deleted"] = world.ask("DELETE", f"/inbox/messages/{first}")
    house.receive(house.address("reset"), raw=WELCOME)
    welcome = world.get("/inbox/messages").get("messages")[0]["id"]
    found["checks"] = world.get(f"/inbox/messages/{welcome}/checks")
    asked = f"/inbox/messages/{welcome}/checks/links"
    found["checked links"] = world.ask("POST", asked, data=LinksToCheck.example.encode())
    found["pressed unsubscribe"] = world.ask(
        "POST", f"/inbox/messages/{welcome}/checks/unsubscribe"
    )
    released = f"/inbox/messages/{welcome}/release"
    found["released"] = world.ask("POST", released, data=ReleaseMessage.example.encode())
    no_mailbox = "the relay answered 550 5.1.1 no such mailbox"
    house.hosts.relayed = Relayed(550, no_mailbox, is_permanent=True)
    found["relay rejected"] = world.ask("POST", released, 502, data=ReleaseMessage.example.encode())
    found["deleted many"] = world.ask("DELETE", "/inbox/messages?tag=reset")
    found["no message"] = world.get(f"/inbox/messages/{first}", 404)
    house.receive(house.address("signup"), raw=SIGN_UP)
    second = world.get("/inbox/messages").get("messages")[0]["id"]
    found["no attachment"] = world.get(f"/inbox/messages/{second}/attachments/9", 404)
    world.scored.content_filter.holds = True
    found["scored message"] = world.ask("POST", f"/inbox/messages/{second}/test")
    world.scored.content_filter.answer()
    world.scored.content_filter.holds = False
    return found


def _watches(world: ExampleHouse) -> dict[str, Any]:
    """Watch the domain, delete a record, and restore it."""
    watches = world.house.assembly.watches
    found: dict[str, Any] = {}

    def make(status: int = 200) -> Any:
        return world.ask("POST", "/watches", status, data=WatchToCreate.example.encode())

    found["watch made"] = make()
    found["watch exists"] = make(409)
    found["watches made"] = world.ask(
        "POST", "/watches/many", data=WatchesToCreate.example.encode()
    )
    one = f"/watches/{found['watch made']['id']}"
    found["watch changed"] = world.ask("PATCH", one, data=WatchChoice.example.encode())
    found["watch run"] = world.ask("POST", f"{one}/run")
    records = world.zone.published("_dmarc.example.com", "TXT")
    world.zone.publish("_dmarc.example.com", "TXT")
    world.house.pass_time(3_600)
    (alert,) = world.ask("POST", f"{one}/run")["alerts"]
    found["alert acknowledged"] = world.ask("POST", f"{one}/alerts/{alert['id']}/acknowledge")
    found["no alert"] = world.ask("POST", f"{one}/alerts/none/acknowledge", 404)
    world.zone.publish("_dmarc.example.com", "TXT", *records)
    world.house.pass_time(3_600)
    world.ask("POST", f"{one}/run")
    found |= {"watch": world.get(one), "watches": world.get("/watches")}
    found["watch history"] = world.get(f"{one}/history")
    account_id, name = world.house.account.id, found["watch made"]["id"]
    now = world.house.assembly.runtime.now()
    assert result_of(watches.store.claim_one(account_id, name, "other", now, 60_000))
    found["watch busy"] = world.ask("POST", f"{one}/run", 409)
    found["watch deleted"] = world.ask("DELETE", one)
    found["no watch"] = world.get(one, 404)
    return found


def _heartbeats(world: ExampleHouse) -> dict[str, Any]:
    """Expect a mail every morning, and receive two of them."""
    house, runner = world.house, world.house.assembly.watches.beats

    def make(status: int = 200) -> Any:
        return world.ask("POST", "/heartbeats", status, data=HeartbeatToCreate.example.encode())

    found = {"heartbeat made": make(), "heartbeat exists": make(409)}
    one = f"/heartbeats/{found['heartbeat made']['name']}"
    found["heartbeat changed"] = world.ask("PATCH", one, data=HeartbeatChoice.example.encode())
    run(runner.start())
    for _ in range(2):
        due = parse_instant(world.get(one)["dueAt"])
        house.pass_time((due - house.assembly.runtime.now()) / SECOND + 90)
        world.scored.deliver(found["heartbeat made"]["address"])
        run(runner.poll())
        house.pass_time(60)
    run(runner.stop())
    found |= {"heartbeat": world.get(one), "heartbeats": world.get("/heartbeats")}
    found["heartbeat deleted"] = world.ask("DELETE", one)
    found["no heartbeat"] = world.get(one, 404)
    return found


def _digest(world: ExampleHouse) -> dict[str, Any]:
    """Choose a digest."""
    found = {"digest set": world.ask("PUT", "/digest", data=DigestChoice.example.encode())}
    return found | {"digest": world.get("/digest")}


def _webhooks(world: ExampleHouse) -> dict[str, Any]:
    house = world.house
    path = "/inbox/webhooks"

    def make(status: int = 200) -> Any:
        return world.ask("POST", path, status, data=WebhookToCreate.example.encode())

    found = {"webhook made": make()}
    one = f"{path}/{found['webhook made']['id']}"
    run(house.assembly.webhooks.deliver.start())
    house.receivers.answers.append(BROKEN)
    house.receive(house.address("signup"))
    house.pass_time(10)
    found |= {"webhook": world.get(one), "webhooks": world.get(path)}
    found["webhook test"] = world.ask("POST", f"{one}/test")
    found["webhook rotated"] = world.ask("POST", f"{one}/secret")
    replay = WebhookReplay.example.encode()
    found["webhook replayed"] = world.ask("POST", f"{one}/replay", data=replay)
    found["webhook resumed"] = world.ask("POST", f"{one}/resume")
    house.receivers.answers.append(Attempt(410, "it answered 410"))
    house.receive(house.address("signup"))
    found["webhook ended"] = world.ask("POST", f"{one}/resume", 409)
    found["webhook deleted"] = world.ask("DELETE", one)
    found["no webhook"] = world.get(one, 404)
    for _ in range(MOST_WEBHOOKS):
        make()
    found["too many webhooks"] = make(409)
    watch = f"/watches/{world.ask('POST', '/watches', data=WatchToCreate.example.encode())['id']}"
    more = b'{"alertTo": ["https://ops.example.com/alerts"]}'
    found["too many receivers"] = world.ask("PATCH", watch, 409, data=more)
    world.ask("DELETE", watch)
    run(house.assembly.webhooks.deliver.stop())
    return found


def _projects() -> dict[str, Any]:
    """Set a project up with members and keys, and take it down again."""
    world = ExampleHouse()
    try:
        return {**_use_projects(world), **_use_accounts(world)}
    finally:
        world.scored.close()


def _use_projects(world: ExampleHouse) -> dict[str, Any]:
    house = world.house
    ann = house.add_account("ann")
    scopes = [str(scope) for scope in Scope]
    key = house.issue_key(house.account, rights=make_rights(scopes))

    def ask(method: str, path: str, body: str = "", status: int = 200) -> Any:
        data = {"data": body.encode()} if body else {}
        return world.ask(method, path, status, key=key, **data)

    found = {"project": ask("POST", "/projects", ProjectToCreate.example)}
    one = f"/projects/{found['project']['id']}"
    found["name taken"] = ask("POST", "/projects", ProjectToCreate.example, 409)
    found["projects"] = ask("GET", "/projects")
    member = f"{one}/members/{ann.id}"
    found["member"] = ask("PUT", member, MemberToSet.example)
    found["members"] = ask("GET", f"{one}/members")
    found["member removed"] = ask("DELETE", member)
    found["no member"] = ask("DELETE", member, status=404)
    owner = f"{one}/members/{house.account.id}"
    found["only owner"] = ask("DELETE", owner, status=409)
    found["invitation made"] = ask("POST", f"{one}/invitations", '{"role": "editor"}')
    found["invitations"] = ask("GET", f"{one}/invitations")
    invitation = f"{one}/invitations/{found['invitation made']['id']}"
    found["invitation revoked"] = ask("DELETE", invitation)
    found["no invitation"] = ask("DELETE", invitation, status=404)
    found["key made"] = ask("POST", f"{one}/keys", KeyToCreate.example)
    made = f"{one}/keys/{found['key made']['id']}"
    house.get("/inbox", key=found["key made"]["secret"])
    found |= {"key": ask("GET", made), "keys": ask("GET", f"{one}/keys")}
    found["key rotated"] = ask("POST", f"{made}/rotate", KeyRotation.example)
    found["key revoked"] = ask("DELETE", made)
    found["no key"] = ask("GET", made, status=404)
    for _ in range(MAX_KEYS - 1):
        ask("POST", f"{one}/keys", KeyToCreate.example)
    found["too many keys"] = ask("POST", f"{one}/keys", KeyToCreate.example, 409)
    found["project deleted"] = ask("DELETE", f"{one}?name=shop")
    found["no project"] = ask("GET", one, status=404)
    return found


def _inbound(world: ExampleHouse) -> dict[str, Any]:
    house = world.house
    path = "/inbound/routes"

    def make(status: int = 200) -> Any:
        return world.ask("POST", path, status, data=RouteToCreate.example.encode())

    run(house.assembly.inbound.deliver.start())
    found = {"inbound route made": make()}
    one = f"{path}/{found['inbound route made']['id']}"
    found |= {"inbound route": world.get(one), "inbound routes": world.get(path)}
    sent = world.ask("POST", f"{one}/messages", data=MailToSend.example.encode())
    found |= {
        "inbound mail sent": sent,
        "inbound attempts": world.get(f"/inbound/attempts?mail={sent['id']}&wait=5"),
        "inbound route changed": world.ask("PATCH", one, data=RouteChange.example.encode()),
        "inbound route deleted": world.ask("DELETE", one),
        "no inbound route": world.get(one, 404),
    }
    for _ in range(MOST_ROUTES):
        make()
    found["too many inbound routes"] = make(409)
    run(house.assembly.inbound.deliver.stop())
    return found


def _use_accounts(world: ExampleHouse) -> dict[str, Any]:
    house = world.house
    key = house.issue_key(house.account, rights=make_rights(["operator", "project:admin"]))

    def ask(method: str, path: str, body: str = "", status: int = 200) -> Any:
        data = {"data": body.encode()} if body else {}
        return world.ask(method, path, status, key=key, **data)

    found = {"account": ask("POST", "/accounts", AccountToCreate.example)}
    one = f"/accounts/{found['account']['id']}"
    found["accounts"] = ask("GET", "/accounts")
    found["account with access"] = ask("GET", one)
    found["account changed"] = ask("PATCH", one, AccountChoice.example)
    found["sign-in link"] = ask("POST", f"{one}/sign-in-link")
    found["access ended"] = ask("POST", f"{one}/end-access")
    found["account disabled"] = ask("POST", f"{one}/disable")
    found["account enabled"] = ask("POST", f"{one}/enable")
    found["identity linked"] = {"success": True, "id": found["account"]["id"]}
    taken = "this person signs in to another account; remove that link first"
    found["identity taken"] = {"error": taken}
    found["is operator"] = ask("POST", f"/accounts/{house.account.id}/disable", status=409)
    owned = ask("POST", "/projects", '{"name": "crew", "owner": "ann@example.com"}')
    found["sole owner"] = ask("DELETE", f"{one}?name=ann@example.com", status=409)
    found["audit"] = ask("GET", f"/projects/{owned['id']}/audit?after=a0")
    found["audit of all"] = ask("GET", "/audit?limit=3")
    ask("DELETE", f"/projects/{owned['id']}?name=crew")
    found["account deleted"] = ask("DELETE", f"{one}?name=ann@example.com")
    found["no account"] = ask("GET", one, status=404)
    return found


def _traffic(world: ExampleHouse) -> dict[str, Any]:
    """Score a copy of a mail."""
    house, mail = world.house, received()
    traffic = house.assembly.traffic.score
    copy = traffic.begin(mail.session, mail.envelope_sender, is_authenticated=False)
    assert copy is not None
    copy.add(mail.raw_message)
    copy.finish()
    house.pass_time(0)
    run(traffic.flush())
    return {
        "traffic": world.get("/traffic"),
        "traffic sources": world.get("/traffic/sources?domain=sender.example"),
    }


def _reports() -> dict[str, Any]:
    """Receive reports in a separate house, because their receivers have their own DNS."""
    zone = reports_zone()
    house = checking_house(zone, config_in_memory(web=WEB))
    addresses = house.get("/reports").json["addresses"]
    ask_for_reports(zone, addresses["dmarc"])
    zone.publish(f"_smtp._tls.{DOMAIN}", "TXT", f"v=TLSRPTv1; rua=mailto:{addresses['tls']}")
    run(house.assembly.reports.runner.start())
    for name in ("yahoo.xml",):
        house.receive(addresses["dmarc"], raw=signed_report(name, addresses["dmarc"]), sender="")
        house.pass_time(1)
    of_tls = gzipped(document("google.json"))
    raw = signed_report("google.xml", addresses["tls"], data=of_tls)
    house.receive(addresses["tls"], raw=raw, sender="")
    house.pass_time(1)
    found = {
        "reports": house.get("/reports").json,
        "dmarc plan": house.get(f"/reports/dmarc/plan?domain={DOMAIN}").json,
        "dmarc reports": house.get(f"/reports/dmarc?domain={DOMAIN}").json,
        "tls reports": house.get(f"/reports/tls?domain={DOMAIN}").json,
    }
    found |= _decisions(house)
    complaint = signer_of("google.com").sign(feedback_mail())
    house.receive(addresses["complaints"], raw=complaint, sender="")
    house.pass_time(1)
    found["imported"] = (
        house.ask(
            "POST", "/reports/import?name=google.xml.gz", data=gzipped(document("google.xml"))
        )
        .answer()
        .json
    )
    found["feedback"] = house.get(f"/reports/feedback?domain={DOMAIN}").json
    one = f"/reports/{found['reports']['reports'][0]['id']}"
    found["report deleted"] = house.ask("DELETE", one).answer().json
    found["no report"] = house.ask("DELETE", one).answer().json
    found["reports deleted"] = house.ask("DELETE", "/reports?day=2026-11-19").answer().json
    run(house.assembly.reports.runner.stop())
    house.receive(addresses["tls"], raw=raw, sender="")
    now = house.assembly.runtime.now()
    lease = Lease("other", Instant(now + 60_000))
    waiting = result_of(house.assembly.reports.store.claim(lease, now))
    found["report busy"] = house.ask("DELETE", f"/reports/{waiting.id}").answer().json
    house.close()
    return found


def _decisions(house: House) -> dict[str, Any]:
    """Return a decision about a sender, and the error of an account with too many."""
    path, body = "/reports/dmarc/senders", {"domain": DOMAIN, "sender": "newsmill.example"}
    mine = json.dumps({**body, "decision": "mine"}).encode()
    found = {"sender decided": house.ask("POST", path, data=mine).answer().json}
    store = SenderStore(house.assembly.runtime.engine)
    for number in range(MAX_DECISIONS):
        store.decide(
            house.account.id,
            DOMAIN,
            f"s{number}.example",
            SenderDecision.NOT_MINE,
            house.assembly.runtime.now(),
        ).addErrback(lambda _: None)
    house.pass_time(1)
    other = json.dumps({**body, "sender": "other.example", "decision": "mine"}).encode()
    found["too many decisions"] = house.ask("POST", path, data=other).answer().json
    return found


def _tools(world: ExampleHouse) -> dict[str, Any]:
    found = {
        "mx check": world.get("/tools/mx-check?domain=example.com"),
        "blacklist check": world.get("/tools/blacklist-check?query=192.0.2.1"),
        "blacklists": world.get("/tools/blacklists"),
        "reputation": world.get("/tools/reputation?domain=example.com"),
        "domain": world.get("/tools/domain?domain=example.com"),
    }
    return found | _undetermined()


def _undetermined() -> dict[str, Any]:
    late = {"late.example": {"MX": ["10 mx.late.example."]}, "mx.late.example": {"A": ["8.8.4.9"]}}
    half = MemoryZone(late, failing={"_dmarc.late.example": DnsStatus.TIMEOUT})
    asked: tuple[tuple[str, Any, str], ...] = (
        ("mx undetermined", half, "/tools/mx-check?domain=late.example"),
        ("reputation undetermined", SilentDns(), "/tools/reputation?domain=late.example"),
        ("blacklists unanswered", SilentDns(), "/tools/blacklist-check?query=192.0.2.1"),
    )
    found = {}
    for name, zone, path in asked:
        house = checking_house(zone, config_in_memory(web=WEB))
        pending = house.ask("GET", path)
        while not pending.is_answered:
            house.pass_time(1)
        found[name] = pending.answer().json
        house.close()
    return found


def _tests(world: ExampleHouse) -> dict[str, Any]:
    found = {"new test": world.ask("POST", "/test/generate")}
    test_id = found["new test"]["testId"]
    found["test wait over"] = world.get(f"/test/{test_id}/wait?timeout=1", 408)
    world.house.pass_time(10)
    world.scored.send(test_id, received(MAIL))
    found["test"] = world.get(f"/test/{test_id}")
    found["raw test mail"] = world.get(f"/test/{test_id}/raw")
    found["preflight"] = world.ask(
        "POST", f"/test/{test_id}/preflight", data=PreflightRecords.example.encode()
    )
    found["tests"] = world.get("/test")
    found["test share"] = world.ask("POST", f"/test/{test_id}/share")
    found["recheck"] = world.ask("POST", f"/test/{test_id}/recheck")
    found["deleted test"] = world.ask("DELETE", f"/test/{test_id}")
    found["no test"] = world.get("/test/aaaaaaaaaaaaa", 404)
    return found


def _refusals(world: ExampleHouse) -> dict[str, Any]:
    house = world.house
    key = house.issue_key(house.account, per_minute=1)
    house.get("/inbox", key=key)
    limited = house.issue_key(house.account, rights=make_rights(["inbox:read"]))
    return {
        "badParameter": world.get("/inbox/wait?timeout=30000", 400),
        "unauthorized": world.get("/inbox", 401, key=None),
        "forbidden": world.ask("DELETE", "/inbox/messages", 403, key=limited),
        "tooLarge": world.ask("POST", "/test/generate", 413, data=b"x" * 70_000),
        "wrongType": world.ask(
            "POST", "/watches", 415, data=b"<watch/>", headers={"Content-Type": "application/xml"}
        ),
        "tooMany": world.get("/inbox", 429, key=key),
        "nowhere": world.get("/inboxes", 404),
        "wrongMethod": world.ask("PUT", "/inbox", 405),
        "crash": {
            "error": "internal error; its cause is in the log of the service under the reference",
            "reference": "3f9a1c27d0b4",
        },
        "unavailable": {"error": "the store does not answer"},
    }


class SilentDns:
    """A resolver that cannot reach any name server."""

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Return a failure as `Resolver` defines it."""
        return succeed(DnsAnswer(question, DnsStatus.TIMEOUT))


def _as_example_com() -> dict[str, Any]:
    text = json.dumps(GOOD).replace("good.example", "example.com")
    found: dict[str, Any] = json.loads(text)
    return found


def _listed() -> dict[str, Any]:
    return {"1.2.0.192.zen.spamhaus.org": {"A": ["127.0.0.4"]}}


if __name__ == "__main__":
    FILE.write_text(json.dumps(write_examples(), ensure_ascii=False, indent=1) + "\n", "utf-8")
