"""The API of Brevo."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from mailcheck.core.errors import (
    ExpectedFailure,
    InboxFull,
    InvalidCredentials,
    InvalidParameter,
    LimitExceeded,
    MailTooLarge,
    NotPermitted,
    RecipientUnknown,
    RequestRepeated,
)
from mailcheck.core.inbound import InboundFormat
from mailcheck.core.instants import format_instant
from mailcheck.core.webhooks import EventKind
from mailcheck.operations.write_mail import (
    File,
    OutgoingMail,
    Person,
    make_headers,
    make_person,
)
from mailcheck.web.providers.bodies import (
    MAX_BATCH,
    Template,
    convert,
    decode_base64,
    file_of_url,
    read_json,
    require_bodies,
    require_few,
    substitute,
    text_of,
)
from mailcheck.web.providers.events import BOUNCE, Event
from mailcheck.web.providers.inbound.brevo import read_token
from mailcheck.web.providers.inbound.received import ReceivedMail
from mailcheck.web.providers.people import Named, people_of
from mailcheck.web.providers.provider import (
    AskRoute,
    BadBody,
    Fetched,
    FetchRoute,
    FieldMissing,
    Mails,
    Posting,
    Provider,
    Sending,
    SendRoute,
    Submission,
    Support,
    has_format,
    header_key,
)
from mailcheck.web.providers.received_files import file_response
from mailcheck.web.site.failures import Crash, PathUnknown, WrongMethod
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply, json_reply

MAX_PEOPLE = 99

SANDBOX = "x-sib-sandbox"
"""The header field of a request that is checked only."""


class Attachment(Struct):
    """A file in Base64, or a URL."""

    name: str | None = None
    content: str | None = None
    url: str | None = None


class Sender(Struct):
    """The author: an address, or the number of a sender of the account at Brevo."""

    email: str | None = None
    name: str | None = None
    id: int | None = None


class Version(Struct, rename="camel"):
    """The recipients of one mail of a batch, and its own fields."""

    to: list[Named]
    cc: list[Named] | None = None
    bcc: list[Named] | None = None
    reply_to: Named | None = None
    subject: str | None = None
    html_content: str | None = None
    text_content: str | None = None
    params: dict[str, Any] | None = None


class SendSmtpEmail(Struct, rename="camel"):
    """The body of ``POST /v3/smtp/email``."""

    sender: Sender | None = None
    to: list[Named] | None = None
    cc: list[Named] | None = None
    bcc: list[Named] | None = None
    reply_to: Named | None = None
    subject: str | None = None
    html_content: str | None = None
    text_content: str | None = None
    headers: dict[str, Any] | None = None
    params: dict[str, Any] | None = None
    template_id: int | None = None
    tags: list[str] | None = None
    attachment: list[Attachment] | None = None
    scheduled_at: str | None = None
    message_versions: list[Version] | None = None


def read_mails(posting: Posting) -> Mails:
    """Return the mail, or a mail for each version."""
    value = read_json(posting)
    request = convert(value, SendSmtpEmail)
    headers = {name.lower(): item for name, item in (request.headers or {}).items()}
    is_stored = headers.get(SANDBOX) != "drop"
    versions = request.message_versions or []
    require_few("messageVersions", versions, MAX_BATCH, "versions")
    requests = (_merged(request, version) for version in versions) if versions else [request]
    return (Sending(_mail_of(email), value, is_stored=is_stored) for email in requests)


def _merged(request: SendSmtpEmail, version: Version) -> SendSmtpEmail:
    given = {name: getattr(version, name) for name in Version.__struct_fields__}
    differing = {name: value for name, value in given.items() if value is not None}
    params = {**(request.params or {}), **(version.params or {})}
    return msgspec.structs.replace(request, **{**differing, "params": params})


def _mail_of(request: SendSmtpEmail) -> OutgoingMail:
    if request.sender is None and request.template_id is None:
        raise FieldMissing("sender", "sender is missing")
    if not request.to:
        raise FieldMissing("to", "to is missing")
    if not request.subject and request.template_id is None:
        raise FieldMissing("subject", "subject is missing")
    to, cc, bcc = (
        people_of(name, given)
        for name, given in (("to", request.to), ("cc", request.cc), ("bcc", request.bcc))
    )
    require_few("to, cc and bcc", (*to, *cc, *bcc), MAX_PEOPLE)
    text, headers = request.text_content, dict(_headers_of(request))
    if request.template_id is not None:
        text = Template(str(request.template_id), request.params).text
    require_bodies("htmlContent or textContent", request.html_content, text)
    params = {
        f"{{{{params.{name}}}}}": text_of(value) for name, value in (request.params or {}).items()
    }
    replies = [request.reply_to] if request.reply_to else []
    return OutgoingMail(
        author=_author(request.sender or Sender("template@brevo.example")),
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=people_of("replyTo", replies),
        subject=substitute(request.subject, params) or "",
        text=substitute(text, params),
        html=substitute(request.html_content, params),
        headers=make_headers("headers", headers.items()),
        files=tuple(map(_file_of, request.attachment or ())),
    )


def _author(sender: Sender) -> Person:
    address = sender.email
    if address is None and sender.id is not None:
        address = f"sender-{sender.id}@brevo.example"
    if address is None:
        raise FieldMissing("sender.email", "sender must have either email or id")
    return make_person("sender", sender.name or "", address)


def _headers_of(request: SendSmtpEmail) -> Mapping[str, str]:
    headers = {name: text_of(value) for name, value in (request.headers or {}).items()}
    if request.tags:
        headers["X-Mailin-Tag"] = ", ".join(request.tags)
    if request.template_id is not None:
        headers["X-Template"] = str(request.template_id)
    if request.scheduled_at is not None:
        headers["X-Scheduled-At"] = request.scheduled_at
    return headers


def _file_of(attachment: Attachment) -> File:
    if attachment.content is not None:
        data = decode_base64("attachment.content", attachment.content)
        return File(attachment.name or "attachment", "", data)
    if attachment.url is None:
        raise FieldMissing("attachment.content", "attachment must have either content or url")
    return file_of_url(attachment.name or "attachment", attachment.url)


def answer(sent: Submission) -> Reply:
    """Return the Message-ID of the mail, or of each version."""
    ids = [f"<{outcome.shown['message_id']}>" for outcome in sent.outcomes]
    is_batch = b'"messageVersions"' in sent.posting.body
    return json_reply({"messageIds": ids} if is_batch else {"messageId": ids[0]}, 201)


_EVENTS = {
    EventKind.DELIVERED: {"event": "delivered"},
    EventKind.BOUNCED: {"event": "hard_bounce", "reason": BOUNCE},
    EventKind.COMPLAINED: {"event": "spam"},
    EventKind.OPENED: {"event": "opened"},
}


def write_event(event: Event) -> object:
    """Return an event of Brevo, which is not signed."""
    facts = {
        "id": 1,
        "email": event.recipient,
        "message-id": f"<{event.message_id}>",
        "subject": event.subject,
        "date": format_instant(event.at)[:19].replace("T", " "),
        "ts": event.seconds,
        "ts_event": event.seconds,
        "ts_epoch": event.at,
        "tags": event.sent.get("tags") or [],
    }
    return {**facts, **_EVENTS[event.kind]}


def tell_account(posting: Posting) -> Reply:
    """Return the facts of the account."""
    facts: dict[str, object] = {
        "organization_id": "mailcheck",
        "user_id": 1,
        "enterprise": False,
        "email": f"postmaster@{posting.domain}",
        "firstName": "mailcheck",
        "lastName": "",
        "companyName": posting.domain,
        "plan": [{"type": "payAsYouGo", "credits": 50_000, "creditsType": "sendLimit"}],
        "relay": {
            "enabled": False,
            "data": {"userName": "", "relay": posting.domain, "port": 587},
        },
    }
    return json_reply(facts)


def list_senders(posting: Posting) -> Reply:
    """Return a sender at the domain of this server. Mail from any address is sent."""
    address = f"postmaster@{posting.domain}"
    sender = {"id": 1, "name": "mailcheck", "email": address, "active": True, "ips": []}
    return json_reply({"senders": [sender]})


def find_received(posting: Posting) -> tuple[str, str]:
    """Return the id of the mail in a token.

    :raises PathUnknown: the text is not a token.
    """
    identifier, _ = _require_token(posting)
    return identifier, identifier


def show_file(fetched: Fetched) -> Reply:
    """Return the bytes of a file.

    :raises PathUnknown: the mail has no such file.
    """
    _, number = _require_token(fetched.posting)
    for file in ReceivedMail(fetched.mail.raw_message).files:
        if file.number == number:
            return file_response(file)
    raise PathUnknown("the mail has no such attachment")


def _require_token(posting: Posting) -> tuple[str, int]:
    try:
        return read_token(posting.path["token"])
    except (ValueError, RecursionError):
        raise PathUnknown("the token is not one of a file") from None


_HAS = partial(has_format, InboundFormat.BREVO)

RECEIVING = (FetchRoute("/v3/inbound/attachments/<token>", _HAS, show_file, find_received),)
"""The routes of Brevo's API for received mail."""


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of Brevo."""
    return json_reply({"code": code, "message": message}, status)


BREVO = Provider(
    name="brevo",
    read_key=partial(header_key, "api-key"),
    routes=(
        SendRoute("/v3/smtp/email", read_mails, answer),
        AskRoute("/v3/account", tell_account),
        AskRoute("/v3/senders", list_senders),
        *RECEIVING,
    ),
    statuses={
        InvalidCredentials: (401, "unauthorized"),
        NotPermitted: (403, "permission_denied"),
        BadBody: (400, "bad_request"),
        FieldMissing: (400, "missing_parameter"),
        InvalidParameter: (400, "invalid_parameter"),
        MailTooLarge: (413, "out_of_range"),
        PathUnknown: (404, "document_not_found"),
        WrongMethod: (405, "method_not_allowed"),
        LimitExceeded: (429, "too_many_requests"),
        InboxFull: (402, "not_enough_credits"),
        RecipientUnknown: (400, "invalid_parameter"),
        RequestRepeated: (409, "duplicate_request"),
        ExpectedFailure: (503, "service_unavailable"),
        Crash: (500, "internal_error"),
    },
    write_error=write_error,
    write_event=write_event,
    switches=(
        ("@getbrevo/brevo (npm)", "`new BrevoClient({{apiKey: key, baseUrl: '{base}/v3'}})`"),
        ("django-anymail", "`ANYMAIL = {{'BREVO_API_URL': '{base}/v3/'}}`"),
    ),
    support=(
        Support("`POST /v3/smtp/email`, `messageVersions`", Like.SAME),
        Support("errors with `code` and `message`", Like.SAME),
        Support("`GET /v3/account`, `GET /v3/senders`", Like.CLOSE, "the answers are fixed"),
        Support("`sender.id`", Like.CLOSE, "the author is sender-N@brevo.example"),
        Support(
            "the header `X-Sib-Sandbox: drop`", Like.SAME, "the mail is checked and not stored"
        ),
        Support("`tags`", Like.SAME, "as X-Mailin-Tag in the mail"),
        Support("`params`", Like.CLOSE, "`{{params.name}}` is replaced; other tags are not"),
        Support("`templateId`", Like.CLOSE, "the text contains the number and the parameters"),
        Support("attachments with `url`", Like.CLOSE, "the file contains the URL"),
        Support("`scheduledAt`", Like.CLOSE, "the mail is delivered at once, with X-Scheduled-At"),
        Support("events", Like.SAME, "not signed, as by Brevo; four kinds"),
        Support(
            "`GET /v3/inbound/attachments/{token}`",
            Like.SAME,
            "of mail that a route has brought to an application",
        ),
        Support("contacts, campaigns, templates, events of inbound mail", Like.NOT_OFFERED),
    ),
    ignored=("batchId", "contactPixelTrackingConsent"),
)
