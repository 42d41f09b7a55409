"""What all provider APIs have in common: keys, scopes, limits, faults, and what a message shows."""

import json
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from mailcheck.assembly.doors.providers import build_provider_site
from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidCredentials,
    LimitExceeded,
    MailTooLarge,
    NotPermitted,
    RecipientUnknown,
)
from mailcheck.core.rights import make_rights
from mailcheck.web.providers.catalogue import PROVIDERS
from mailcheck.web.providers.provider import AskRoute, KeyMissing, Provider, SendRoute
from mailcheck.web.site.failures import Crash, PathUnknown, WrongMethod
from mailcheck.web.site.server import BoundedSite
from tests.house import House, config_in_memory
from tests.table import rows
from tests.web.provider_requests import (
    ask,
    encode,
    filled,
    headers_for,
    post,
    received,
    sample,
    signed,
    take,
    with_fields,
)
from tests.web.raw_http import RawHttp, read_answer, request

ROUTES = [
    f"/providers/{provider.name}{route.path}"
    for provider in PROVIDERS
    for route in provider.routes
    if isinstance(route, SendRoute)
]
FIRST = [f"/providers/{provider.name}{provider.routes[0].path}" for provider in PROVIDERS]


def provider_of(path: str) -> Provider:
    """Return the provider of a path."""
    return next(
        one
        for one in PROVIDERS
        if path in {f"/providers/{one.name}{route.path}" for route in one.routes}
    )


def status(path: str, kind: type[ExpectedFailure]) -> int:
    """Return the status of a problem."""
    return provider_of(path).status_of(kind)[0]


def to_fault(path: str, tag: str) -> object:
    """Return a request with a mail to an address with a tag of a fault."""
    return sample(path, f"you+{tag}@customer.example")


@rows(*ROUTES)
def test_a_posted_mail_is_in_the_inbox_of_the_key(house: House, path: str) -> None:
    """A mail to any address is stored in the inbox of the key, with the request that was posted."""
    assert post(house, path).status < 300
    (message,) = take(house)
    assert message["to"] == "you@customer.example"
    assert message["from"]["address"] == "shop@example.com"
    assert message["via"] == provider_of(path).name
    assert "you@customer.example" in message["request"]
    assert house.key not in json.dumps(message)


@rows(*FIRST)
def test_a_search_finds_the_mail_of_a_provider(house: House, path: str) -> None:
    """``via:`` with the name of the provider finds its mail and no other; case is ignored."""
    name = provider_of(path).name
    post(house, path)
    house.receive()
    found = house.get(f"/inbox/messages?q=via:{name.upper()}").json["messages"]
    assert [one["via"] for one in found] == [name]
    found = house.get("/inbox/messages?q=via:smtp").json["messages"]
    assert [one["via"] for one in found] == ["smtp"]
    take(house)


@rows(*ROUTES)
def test_a_request_without_a_key_is_rejected(house: House, path: str) -> None:
    """Without a key, and with an unknown one, no mail is stored; the error is the provider's."""
    assert post(house, path, key=None).status == status(path, KeyMissing)
    assert post(house, path, key="unknown").status == status(path, InvalidCredentials)
    assert received(house) == []


@rows(*ROUTES)
def test_a_key_needs_the_scope_to_submit_mail(house: House, path: str) -> None:
    """A key that may only read sends no mail, and the error names the scope."""
    key = house.issue_key(house.account, rights=make_rights(["inbox:read"]))
    answer = post(house, path, key=key)
    assert answer.status == status(path, NotPermitted)
    assert b"inbox:write" in answer.body
    assert received(house) == []


RESEND, POSTMARK = "/providers/resend/emails", "/providers/postmark/email"
SENDGRID, MAILGUN = "/providers/sendgrid/v3/mail/send", "/providers/mailgun/v3/<domain>/messages"
BREVO, MAILTRAP = "/providers/brevo/v3/smtp/email", "/providers/mailtrap/api/send"
SES = "/providers/ses/v2/email/outbound-emails"
MISSING, INVALID, BAD = "missing_required_field", "validation_error", "BadRequestException"
CODE = '"ErrorCode":300'


@rows(
    (RESEND, {"from": None}, (MISSING, "`from`")),
    (RESEND, {"to": None}, (MISSING, "`to`")),
    (RESEND, {"to": []}, (MISSING, "`to`")),
    (RESEND, {"subject": None}, (MISSING, "`subject`")),
    (RESEND, {"html": None, "text": None}, (MISSING, "html")),
    (RESEND, {"to": ["nobody"]}, (INVALID, "nobody")),
    (RESEND, {"to": [f"a{n}@b.de" for n in range(51)]}, (INVALID, "51")),
    (RESEND, {"from": "a@b.de, c@d.de"}, (INVALID, "one address")),
    (RESEND, {"subject": 7}, (INVALID, "`subject`")),
    (RESEND, {"attachments": [{"content": "§"}]}, (INVALID, "Base64")),
    (RESEND, {"attachments": [{"content": [256]}]}, (INVALID, "255")),
    (RESEND, {"attachments": [{"filename": "x"}]}, (MISSING, "content")),
    (POSTMARK, {"From": None}, (CODE, "From")),
    (POSTMARK, {"To": None}, (CODE, "recipients")),
    (POSTMARK, {"TextBody": None, "HtmlBody": None}, (CODE, "HtmlBody or TextBody")),
    (POSTMARK, {"To": "nobody"}, (CODE, "nobody")),
    (POSTMARK, {"From": "a@b.de, c@d.de"}, (CODE, "From")),
    (POSTMARK, {"Subject": 7}, (CODE, "`Subject`")),
    (POSTMARK, {"Attachments": [{"Name": "x", "Content": "%"}]}, (CODE, "Base64")),
    (POSTMARK, {"Attachments": [{"Name": "x"}]}, (CODE, "Content")),
    (POSTMARK, {"To": "x+fault.rcpt-550@customer.example"}, ("406", "fault.rcpt-550")),
    (SENDGRID, {"personalizations": None}, ("personalizations",)),
    (SENDGRID, {"personalizations": [{}]}, ("to array",)),
    (SENDGRID, {"from": None}, ("from",)),
    (SENDGRID, {"content": []}, ("content",)),
    (SENDGRID, {"personalizations": [{"to": [{"email": "nobody"}]}]}, ("nobody",)),
    (SENDGRID, {"attachments": [{"content": "%", "filename": "x"}]}, ("Base64",)),
    (MAILGUN, {"from": None}, ("from parameter",)),
    (MAILGUN, {"to": None}, ("to parameter",)),
    (MAILGUN, {"text": None, "html": None}, ("text or html",)),
    (MAILGUN, {"to": "nobody"}, ("nobody",)),
    (MAILGUN, {"recipient-variables": "{"}, ("recipient-variables",)),
    (BREVO, {"sender": None}, ("sender",)),
    (BREVO, {"to": []}, ("to is missing",)),
    (BREVO, {"subject": None}, ("subject",)),
    (BREVO, {"htmlContent": None, "textContent": None}, ("htmlContent",)),
    (BREVO, {"to": [{"email": "nobody"}]}, ("nobody",)),
    (BREVO, {"attachment": [{"name": "x"}]}, ("content or url",)),
    (MAILTRAP, {"from": None}, ("'from'",)),
    (MAILTRAP, {"to": []}, ("'to'",)),
    (MAILTRAP, {"subject": None}, ("'subject'",)),
    (MAILTRAP, {"text": None, "html": None}, ("text or html",)),
    (MAILTRAP, {"to": [{"name": "x"}]}, ("email",)),
    (SES, {"Content": {}}, (BAD, "Simple, Raw or Template")),
    (SES, {"Content": None}, (BAD, "Content")),
    (SES, {"Destination": None}, (BAD, "Destination")),
    (SES, {"FromEmailAddress": None}, (BAD, "FromEmailAddress")),
    (SES, {"Destination": {"ToAddresses": ["nobody"]}}, (BAD, "nobody")),
    (SES, {"Content": {"Raw": {"Data": "%"}}}, (BAD, "Base64")),
    (SES, {"Content": {"Template": {"TemplateData": "{"}}}, (BAD, "TemplateData")),
)
def test_an_invalid_field_is_named(
    house: House, path: str, fields: dict[str, Any], said: tuple[str, ...]
) -> None:
    """The error has the status and the form of the provider, and says which field is wrong."""
    answer = post(house, path, with_fields(path, **fields))
    assert answer.status == (422 if path in (RESEND, POSTMARK) else 400)
    shown = f"{answer.headers} {answer.body.decode()}"
    assert [one for one in said if one not in shown] == [], shown
    assert received(house) == []


@rows(*FIRST)
def test_a_request_over_the_rate_limit_gets_429(house: House, path: str) -> None:
    """Requests count like those of the REST API, and the answer says when to retry."""
    key = house.issue_key(house.account, per_minute=1)
    post(house, path, key=key)
    answer = post(house, path, key=key)
    assert answer.status == status(path, LimitExceeded)
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert len(take(house)) == 1


FAULTS = {
    "fault.data-451": Crash,
    "fault.rcpt-451": Crash,
    "fault.quota": LimitExceeded,
    "fault.greylist-9": LimitExceeded,
    "fault.data-554": RecipientUnknown,
    "fault.rcpt-550": RecipientUnknown,
}


@rows(*FIRST)
def test_a_fault_is_answered_as_the_provider_does(house: House, path: str) -> None:
    """A tag of a fault gets the status of the provider, and nothing is stored."""
    for tag, kind in FAULTS.items():
        assert post(house, path, to_fault(path, tag)).status == status(path, kind), tag
    assert received(house) == []


@rows(*FIRST)
def test_every_second_mail_of_a_key_fails(house: House, path: str) -> None:
    """A key whose every second mail fails gets the provider's 5xx for it."""
    answer = house.ask("PUT", "/inbox/faults", data=b'{"every": 2}').answer()
    assert answer.status == 200
    statuses = [post(house, path).status for _ in range(4)]
    assert [one < 300 for one in statuses] == [True, False, True, False]
    assert statuses[1] == status(path, Crash)


@rows(*FIRST)
def test_a_slow_answer_comes_when_the_fault_says(house: House, path: str) -> None:
    """With ``fault.slow-N`` the mail is stored at once, and the answer comes N seconds later."""
    data = encode(path, to_fault(path, "fault.slow-5"))
    headers = headers_for(path, house.key, data)
    pending = house.open(filled(path), "POST", data=data, headers=headers)
    assert len(take(house)) == 1
    assert not pending.is_answered
    house.pass_time(5)
    assert pending.answer().status < 300


@rows(*product(FIRST, (("fault.drop-data", 0), ("fault.drop-after", 1))))
def test_a_dropped_connection_has_no_answer(
    house: House, path: str, fault: tuple[str, int]
) -> None:
    """These faults close the connection without a byte; one of them stores the mail before."""
    tag, stored = fault
    body = encode(path, to_fault(path, tag))
    lines = [f"{name}: {value}" for name, value in headers_for(path, house.key, body).items()]
    visit = RawHttp(house)
    visit.send(request(filled(path), *lines, f"Content-Length: {len(body)}", method="POST") + body)
    assert visit.received() == b""
    assert visit.is_closed
    assert len(take(house)) == stored


@pytest.fixture
def small_house() -> House:
    """An application that accepts mails of 70,000 bytes."""
    config = config_in_memory()
    return House(config_in_memory(smtp=type(config.smtp)(max_message_size=70_000)))


@rows(*FIRST)
def test_a_mail_over_the_maximum_is_rejected(small_house: House, path: str) -> None:
    """A mail that is too large for SMTP is too large here, and so is a body of one and a half."""
    large = encode(path, sample(path, "you@customer.example")).replace(b"482913", b"x" * 71_000)
    answer = post(small_house, path, large)
    assert answer.status == status(path, MailTooLarge)
    assert post(small_house, path, b" " * 105_001).status == status(path, MailTooLarge)
    assert received(small_house) == []


@rows(*FIRST)
def test_an_unknown_path_has_the_error_of_the_provider(house: House, path: str) -> None:
    """A path or method that is not offered is named, in the format of the provider."""
    headers = headers_for(path, house.key)
    unknown = f"/providers/{provider_of(path).name}/nowhere"
    answer = house.open(unknown, headers=headers).answer()
    assert answer.status == status(path, PathUnknown)
    assert b"/nowhere" in answer.body
    answer = house.open(filled(path), "PATCH", headers=headers).answer()
    assert answer.status == status(path, WrongMethod)
    assert "POST" in answer.headers["allow"]


@rows(*(one for one in ROUTES if one != "/providers/ses"))
def test_the_listener_has_the_paths_of_all_providers(house: House, path: str) -> None:
    """A site without the names of providers has the paths of all of them, and no other ones."""
    alone = filled(path.removeprefix(f"/providers/{provider_of(path).name}"))
    body = encode(path, sample(path, "you@customer.example"))
    headers = headers_for(path, house.key, body)
    if provider_of(path).name == "ses":
        headers |= signed(alone, house.key, body)
    lines = [f"{name}: {value}" for name, value in headers.items()]
    visit = RawHttp(Alone(build_provider_site(house.assembly)))
    head = request(alone, *lines, f"Content-Length: {len(body)}", method="POST")
    visit.send(head + body + request("/api/v1/inbox"))
    first, rest = read_answer(visit.received(), "POST")
    assert first.status < 300
    assert [one["via"] for one in take(house)] == [provider_of(path).name]
    assert read_answer(rest, "GET")[0].status == 404


@dataclass
class Alone:
    """A site to connect to."""

    site: BoundedSite


def test_an_unknown_provider_is_named(house: House) -> None:
    """The error lists the providers that there are."""
    answer = house.open("/providers/mailfrog/send", "POST").answer()
    assert answer.status == 404
    assert "resend" in answer.json["error"]
    assert "mailfrog" in answer.json["error"]


@rows(*FIRST)
def test_a_store_that_cannot_write_is_unavailable(house: House, path: str) -> None:
    """A store that cannot write is a 503 with Retry-After, without a word about the store."""
    house.sqlite.connection.execute("PRAGMA query_only = 1")
    answer = post(house, path)
    assert answer.status == 503
    assert b"sqlite" not in answer.body.lower()


QUESTIONS = {
    "/providers/resend/domains": ("data", 0, "status", "verified"),
    "/providers/postmark/server": ("Name", "mailcheck.example"),
    "/providers/sendgrid/v3/scopes": ("scopes", ["mail.send"]),
    "/providers/sendgrid/v3/user/account": ("type", "paid"),
    "/providers/mailgun/v3/domains": ("items", 0, "name", "mailcheck.example"),
    "/providers/mailgun/v3/domains/<domain>": ("domain", "state", "active"),
    "/providers/mailgun/v4/domains": ("total_count", 1),
    "/providers/mailgun/v4/domains/<domain>": ("domain", "name", "example.com"),
    "/providers/brevo/v3/account": ("plan", 0, "credits", 50_000),
    "/providers/brevo/v3/senders": ("senders", 0, "active", True),
    "/providers/mailtrap/api/accounts": (0, "access_levels", 0, 1000),
}


def test_what_senders_ask_before_the_first_mail_is_answered(house: House) -> None:
    """Each question has an answer with which senders go on, for a key that may only send."""
    asked = {
        f"/providers/{one.name}{route.path}"
        for one in PROVIDERS
        for route in one.routes
        if isinstance(route, AskRoute) and one.name != "ses"
    }
    assert asked == set(QUESTIONS)
    key = house.issue_key(house.account, rights=make_rights(["inbox:write"]))
    for path, (*steps, expected) in QUESTIONS.items():
        value = ask(house, filled(path), key=key).json
        for step in steps:
            value = value[step]
        assert value == expected, path
        assert ask(house, filled(path), key="unknown").status in (401, 403), path
    assert received(house) == []
