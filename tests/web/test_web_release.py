"""Release of captured mail to real mailboxes: over REST and on the page, and what is refused."""

import json
from email import message_from_bytes
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from msgspec.structs import replace

from mailcheck.config.options import InboxOptions, ReleaseOptions, SmtpOptions
from mailcheck.core.audit import Action, AuditEntry
from mailcheck.ports.probes import Relayed, RelayReply
from tests.fakes.mail_signer import RSA
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, mail, run
from tests.operations.scored_mails import MAIL, PERFECT
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.inbox_visit import receive, sign_up

OPTIONS = ReleaseOptions(
    relay="relay.example:25",
    sender="release@here.example",
    allow_recipients=("first=ops@there.example", "first=@team.example", "*=all@there.example"),
    per_hour=4,
)
OPS = "ops@there.example"


def house_with(options: ReleaseOptions = OPTIONS, **sections: Any) -> House:
    """Return an application whose operator allows the release of mail."""
    sections.setdefault("inbox", InboxOptions(domain="in.here.example"))
    return House(
        config_in_memory(release=options, accounts=CHEAP, **sections), zone=MemoryZone(PERFECT)
    )


@pytest.fixture
def ready() -> House:
    """An application that releases mail."""
    return house_with()


def received(house: House, raw: bytes | None = None) -> str:
    """Receive a mail and return the id of its message."""
    return receive(house, house.account, raw)


def ask(house: House, message_id: str, *to: str, key: str = "", **more: Any) -> Any:
    """Release a message over REST, and return the answer."""
    asked = {"to": list(to), **more}
    return house.ask("POST", f"/inbox/messages/{message_id}/release", key, json=asked).answer()


def noted(house: House, action: Action) -> AuditEntry:
    """Return the entry of the audit log about an action."""
    entries: list[AuditEntry] = run(house.assembly.accounts.audit.newest())
    return next(one for one in entries if one.action == action)


def test_the_mail_leaves_as_it_was_received() -> None:
    """Resent fields are added in front; every octet behind them is unchanged."""
    house = house_with()
    raw = b"Received: here\r\n" + MAIL + b".\r\n..\r\n\xfc\x00\r\n"
    answer = ask(house, received(house, raw), OPS, "Ann@Team.example")
    assert answer.status == 200
    ((sender, recipients, sent),) = house.hosts.released
    assert (sender, recipients) == ("release@here.example", (OPS, "Ann@Team.example"))
    assert sent.endswith(b"\r\n" + raw)
    resent = message_from_bytes(sent.removesuffix(raw) + b"\r\n")
    assert resent.keys() == ["Resent-Date", "Resent-From", "Resent-To", "Resent-Message-ID"]
    assert resent["Resent-From"] == "release@here.example"
    assert resent["Resent-To"].replace("\r\n", "") == f"{OPS}, Ann@Team.example"
    assert resent["Resent-Message-ID"].endswith(".released@in.here.example>")
    assert parsedate_to_datetime(resent["Resent-Date"]).timestamp() == house.clock.seconds()
    assert [one["address"] for one in answer.json["recipients"]] == [OPS, "Ann@Team.example"]
    assert house.get(f"/inbox/messages/{answer.json['id']}").status == 200, "it stays"


@rows(
    "bob@there.example",
    "ops@sub.there.example",
    "ann@sub.team.example",
    "ops@there.example.evil.example",
    "ops@there.example@evil.example",
    "evil.example!ops@team.example",
    "ops%evil.example@team.example",
    "ops@evil.example,ops@there.example",
    "ops@there.example\r\nBcc: x@evil.example",
    "ops@there.example\nRCPT TO:<x@evil.example>",
    "<ops@there.example>",
    "Ops <ops@there.example>",
    '"ops"@there.example',
    "@evil.example:ops@there.example",
    "ops@there.example ",
    "ops@there.example> SIZE=1 <x@evil.example",
    "ops@[192.0.2.1]",
    "ops@there.example.",
    "\u00f6ps@team.example",
    "ops@t\u0435am.example",
    "|cat@team.example",
    "a@b@team.example",
    "@team.example",
    "",
)
def test_only_allowed_addresses_are_sent_to(ready: House, address: str) -> None:
    """No other address is reached, however it is written, and no command or field is injected."""
    message_id = received(ready)
    for to in ((address,), (OPS, address)):
        answer = ask(ready, message_id, *to)
        assert answer.status == 400, address
        assert answer.json["error"].startswith("to")
    assert ready.hosts.released == []


def test_each_account_has_its_own_recipients() -> None:
    """A recipient of one account is not one of another, and the key must be allowed to write."""
    house = house_with()
    other = house.add_account("second")
    key, message_id = house.issue_key(other), receive(house, other)
    assert ask(house, message_id, OPS, key=key).status == 400
    assert ask(house, message_id, OPS).status == 404, "a message of another account"
    assert ask(house, message_id, "all@there.example", key=key).status == 200
    reader = house.issue_key(house.account, rights=_reading())
    assert ask(house, received(house), OPS, key=reader).status == 403


def _reading() -> Any:
    from mailcheck.core.rights import make_rights

    return make_rights(["inbox:read"])


def test_no_mail_comes_back() -> None:
    """Addresses of this service, and mail that it has released before, are refused."""
    allowed = ("*=@in.here.example", "*=@tag.in.here.example", "*=ops@there.example")
    house = house_with(replace(OPTIONS, allow_recipients=allowed))
    message_id = received(house)
    for domain in ("in.here.example", "IN.here.example", "tag.in.here.example"):
        answer = ask(house, message_id, f"dev-x@{domain}")
        assert (answer.status, "come back" in answer.json["error"]) == (400, True)
    assert ask(house, message_id, OPS).status == 200
    back = received(house, house.hosts.released[0][2])
    answer = ask(house, back, OPS)
    assert (answer.status, "has come back" in answer.json["error"]) == (400, True)
    assert len(house.hosts.released) == 1


def test_the_hour_is_limited() -> None:
    """The recipients of an account are counted, and the mails to one recipient of all accounts."""
    house = house_with()
    message_id = received(house)
    assert ask(house, message_id, OPS, "a@team.example", "b@team.example").status == 200
    answer = ask(house, message_id, OPS, "a@team.example")
    assert answer.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 3600
    assert ask(house, message_id, OPS).status == 200
    house.pass_time(3600)
    assert ask(house, message_id, OPS).status == 200
    names = [house.add_account(f"account {number}") for number in range(5)]
    answers = [
        ask(house, receive(house, one), "all@there.example", key=house.issue_key(one)).status
        for one in names
    ]
    assert answers == [200, 200, 200, 200, 429]


@rows(0, 11)
def test_a_release_has_a_few_recipients(count: int) -> None:
    """A release has one to ten recipients, and each is sent to once."""
    house = house_with(replace(OPTIONS, per_hour=100))
    message_id = received(house)
    assert ask(house, message_id, *(f"a{n}@team.example" for n in range(count))).status == 400
    assert ask(house, message_id, OPS, OPS.upper(), OPS).status == 200
    assert house.hosts.released[0][1] == (OPS,)


@rows(
    (Relayed(550, "the relay answered 550 no such user", is_permanent=True), 502),
    (Relayed(451, "the relay answered 451 later"), 503),
    (Relayed(problem="the relay does not answer, or closed the connection"), 503),
)
def test_what_the_relay_rejects_is_told(relayed: Relayed, status: int) -> None:
    """A rejection is an error with the relay's answer; the mail stays in the inbox."""
    house = house_with()
    house.hosts.relayed = relayed
    message_id = received(house)
    answer = ask(house, message_id, OPS)
    assert answer.status == status
    assert answer.json["error"] == f"{relayed.problem}; the mail stays in the inbox"
    assert house.get(f"/inbox/messages/{message_id}").status == 200
    assert relayed.problem in noted(house, Action.MESSAGE_RELEASED).detail


def test_some_recipients_are_rejected() -> None:
    """If the relay accepts one recipient, the answer says which."""
    house = house_with()
    replies = RelayReply(OPS, 250, "ok"), RelayReply("a@team.example", 550, "no such user")
    house.hosts.relayed = Relayed(250, replies=replies)
    answer = ask(house, received(house), OPS, "a@team.example")
    assert answer.status == 200
    assert [one["accepted"] for one in answer.json["recipients"]] == [True, False]
    assert answer.json["recipients"][1]["reply"] == "550 no such user"


def test_the_audit_log_says_who() -> None:
    """The log has the key or the person, the message and the recipients, before the relay."""
    house = house_with()
    message_id = received(house)
    ask(house, message_id, OPS)
    asked, given = noted(house, Action.RELEASE_ASKED), noted(house, Action.MESSAGE_RELEASED)
    assert asked.actor.startswith("API key ")
    assert asked.detail == f"{message_id} to {OPS}"
    assert given.detail == f"{message_id}: {OPS} 250"


@rows(
    (MAIL, "reject"),
    (RSA.sign(MAIL), ""),
    (mail(author="Ann <ann@unprotected.example>"), ""),
    (mail(author="Ann"), "Receivers may reject it"),
    (MAIL.replace(b"\r\n", b"\n"), "lone CR or LF"),
)
def test_warnings_name_the_policy_that_rejects_the_mail(raw: bytes, warned: str) -> None:
    """A mail without a signature of its author's domain is warned of if its policy is strict."""
    house = house_with()
    warnings = ask(house, received(house, raw), OPS).json["warnings"]
    assert (warned in " ".join(warnings)) if warned else warnings == []


def test_a_sender_of_the_same_organization_is_not_warned_of() -> None:
    """SPF may pass for the relay if the sender belongs to the author's domain."""
    house = house_with(replace(OPTIONS, sender="release@mail.sender.example"))
    assert ask(house, received(house, MAIL), OPS).json["warnings"] == []


def test_line_ends_that_end_a_mail_early_are_changed() -> None:
    """A lone CR or LF never reaches the relay, which could take it for the end of the mail."""
    house = house_with()
    raw = MAIL + b"a\n.\nMAIL FROM:<x@evil.example>\r.\rb\r\n"
    ask(house, received(house, raw), OPS)
    sent = house.hosts.released[0][2]
    assert sent.count(b"\r") == sent.count(b"\n") == sent.count(b"\r\n")


def test_without_the_option_nothing_is_released() -> None:
    """By default, REST answers 403 and the page has no form."""
    house = House(config_in_memory(accounts=CHEAP))
    message_id = received(house)
    answer = ask(house, message_id, OPS)
    assert (answer.status, "[release] relay" in answer.json["error"]) == (403, True)
    assert house.hosts.released == []
    browser = Browser(house)
    own = receive(house, sign_up(browser))
    assert "/release" not in browser.open(f"/inbox/messages/{own}").body.decode()
    browser.open(f"/inbox/messages/{own}/release")
    assert browser.submit(f"/inbox/messages/{own}/release", to=OPS).status == 403


@pytest.fixture
def visit() -> tuple[Browser, str]:
    """A person who may release mail, and a message."""
    house = house_with(replace(OPTIONS, allow_recipients=("*=ops@there.example",)))
    browser = Browser(house)
    message_id = receive(house, sign_up(browser), MAIL)
    return browser, f"/inbox/messages/{message_id}"


def test_the_page_releases_a_mail(visit: tuple[Browser, str]) -> None:
    """The form shows who may get mail, and then what the relay answered, with the warning."""
    browser, path = visit
    assert f'{path}/release" data-part-id="release-form"' in browser.open(path).body.decode()
    browser.open(f"{path}/release")
    assert "Allowed: ops@there.example" in browser.page.text
    assert "policy of sender.example is reject" in browser.page.text, "before it is released"
    answer = browser.submit(f"{path}/release", to=OPS)
    assert answer.status == 200
    assert f"{OPS}: given to the relay" in browser.page.text
    assert "policy of sender.example is reject" in browser.page.text
    assert len(browser.house.hosts.released) == 1
    assert noted(browser.house, Action.MESSAGE_RELEASED).actor == "ann"


def test_the_page_shows_why_a_mail_was_not_released(visit: tuple[Browser, str]) -> None:
    """A recipient that is not allowed, and an answer of the relay, are shown with the form."""
    browser, path = visit
    browser.open(f"{path}/release")
    answer = browser.submit(f"{path}/release", to="x@evil.example")
    assert (answer.status, "does not allow" in browser.page.text) == (400, True)
    browser.house.hosts.relayed = Relayed(450, "the relay answered 450 later")
    answer = browser.submit(f"{path}/release", to=OPS)
    assert (answer.status, "answered 450 later" in browser.page.text) == (503, True)


def test_a_host_name_of_the_smtp_server_is_in_the_message_id() -> None:
    """The mark of released mail has the host name of the service."""
    house = house_with(smtp=SmtpOptions(host_name="mx.here.example"))
    ask(house, received(house), OPS)
    assert b".released@mx.here.example>\r\n" in house.hosts.released[0][2]


def test_a_tried_release_is_noted_with_the_person(visit: tuple[Browser, str]) -> None:
    """The audit log names the visitor of the page of the API and the address, and no key."""
    browser, path = visit
    browser.open("/api/inbox")
    form = {
        "form-token": browser.page.form_token,
        "path-id": path.rpartition("/")[2],
        "body": json.dumps({"to": [OPS]}),
    }
    assert browser.post("/api/answers/releaseMessage", **form).status == 200
    entry = noted(browser.house, Action.MESSAGE_RELEASED)
    assert (entry.actor, bool(entry.client)) == (entry.account_name, True)
