"""The API of Resend."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from msgspec import Struct, field

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
    RequestRunning,
)
from mailcheck.core.inbound import InboundFormat, InboundMail
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import StoredMessage
from mailcheck.core.webhooks import EventKind
from mailcheck.operations.write_mail import File, OutgoingMail, make_headers, read_people
from mailcheck.web.providers.bodies import (
    Template,
    convert,
    convert_each,
    decode_base64,
    file_of_url,
    pairs_of,
    read_each,
    read_json,
    require_bodies,
    require_few,
)
from mailcheck.web.providers.events import (
    BOUNCE,
    Event,
    TestRecipients,
    fold_test_recipient,
    kind_of,
)
from mailcheck.web.providers.inbound.received import ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.resend import file_facts, file_id, people_of
from mailcheck.web.providers.posted import read_request
from mailcheck.web.providers.provider import (
    CREATED_AT,
    AskRoute,
    BadBody,
    Fetched,
    FetchListRoute,
    FetchRoute,
    FieldMissing,
    KeyMissing,
    ListRoute,
    Mails,
    Page,
    Posting,
    Provider,
    Sending,
    SendRoute,
    ShowRoute,
    Submission,
    Support,
    bearer_key,
    has_format,
)
from mailcheck.web.providers.received_files import RAW
from mailcheck.web.site.failures import Crash, PathUnknown, WrongMethod
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply, json_reply

MAX_BATCH = 100

MAX_PAGE = 100
"""Maximum number of mails of a page."""

SUPPRESSED = "suppressed@resend.dev"
"""The test recipient that is reported as suppressed."""

TEST_RECIPIENTS: TestRecipients = {
    "bounced@resend.dev": EventKind.BOUNCED,
    "complained@resend.dev": EventKind.COMPLAINED,
    SUPPRESSED: EventKind.BOUNCED,
}

People = str | list[str] | None


class NodeBuffer(Struct):
    """A Buffer of Node.js in JSON."""

    data: list[int]


class Attachment(Struct):
    """A file: Base64, the numbers of its bytes, or a URL in ``path``."""

    content: str | list[int] | NodeBuffer | None = None
    filename: str | None = None
    path: str | None = None
    content_type: str | None = None
    content_id: str | None = None
    inline_content_id: str | None = None


class Tag(Struct):
    """A name and a value."""

    name: str
    value: str


class NamedTemplate(Struct):
    """A template of the account at Resend."""

    id: str
    variables: dict[str, Any] | None = None


class SendEmail(Struct):
    """The body of ``POST /emails``."""

    from_: str | None = field(name="from", default=None)
    to: People = None
    subject: str | None = None
    cc: People = None
    bcc: People = None
    reply_to: People = None
    html: str | None = None
    text: str | None = None
    headers: dict[str, str] | None = None
    scheduled_at: str | None = None
    attachments: list[Attachment] | None = None
    tags: list[Tag] | None = None
    template: NamedTemplate | None = None


def read_email(posting: Posting) -> Mails:
    """Return the mail of ``POST /emails``."""
    return [_sending_of(read_json(posting))]


def read_batch(posting: Posting) -> Mails:
    """Return the mails of ``POST /emails/batch``. One invalid mail rejects all, unless the header
    ``x-batch-validation`` is ``permissive``.
    """
    values = convert_each("emails", read_json(posting), MAX_BATCH)
    if posting.headers.get("x-batch-validation", "") == "permissive":
        return read_each(values, _sending_of)
    return map(_sending_of, values)


def _sending_of(value: object) -> Sending:
    return Sending(_mail_of(convert(value, SendEmail)), value)


def _mail_of(request: SendEmail) -> OutgoingMail:
    for name, given in (("from", request.from_), ("to", request.to), ("subject", request.subject)):
        if given is None and not (name != "to" and request.template):
            raise FieldMissing(name, f"Missing `{name}` field.")
    to = read_people("to", request.to)
    cc, bcc = read_people("cc", request.cc), read_people("bcc", request.bcc)
    for name, people in (("to", to), ("cc", cc), ("bcc", bcc)):
        require_few(name, people)
    if not to:
        raise FieldMissing("to", "Missing `to` field.")
    text, headers = request.text, [*(request.headers or {}).items()]
    template = request.template
    if template is not None:
        text = Template(template.id, template.variables).text if text is None else text
        headers.append(("X-Template", template.id))
    require_bodies("html", request.html, text)
    if request.scheduled_at is not None:
        headers.append(("X-Scheduled-At", request.scheduled_at))
    tags = {tag.name: tag.value for tag in request.tags or ()}
    headers.extend(pairs_of("X-Resend-Tag-", tags))
    return OutgoingMail(
        author=_author(request.from_ or "Template <template@resend.example>"),
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=read_people("reply_to", request.reply_to),
        subject=request.subject or "",
        text=text,
        html=request.html,
        headers=make_headers("headers", headers),
        files=tuple(map(_file_of, request.attachments or ())),
    )


def _author(text: str) -> Any:
    people = read_people("from", text)
    if len(people) != 1:
        raise InvalidParameter("from", f"`from` must be one address; got {text[:100]!r}")
    return people[0]


def _file_of(attachment: Attachment) -> File:
    name = attachment.filename or "attachment"
    content_id = attachment.content_id or attachment.inline_content_id or ""
    content = attachment.content
    if isinstance(content, str):
        data = decode_base64("attachments.content", content)
    elif content is not None:
        numbers = content.data if isinstance(content, NodeBuffer) else content
        try:
            data = bytes(numbers)
        except ValueError:
            raise InvalidParameter(
                "attachments.content", "`attachments.content` must be bytes from 0 to 255"
            ) from None
    elif attachment.path:
        return file_of_url(name, attachment.path, content_id)
    else:
        raise FieldMissing(
            "attachments.content", "Attachment must have either a `content` or `path`"
        )
    return File(name, attachment.content_type or "", data, content_id, is_inline=bool(content_id))


def answer_email(sent: Submission) -> Reply:
    """Return the id of the mail."""
    return json_reply({"id": sent.outcomes[0].id})


def answer_batch(sent: Submission) -> Reply:
    """Return the ids of the mails, and the errors of a permissive batch."""
    value: dict[str, object] = {
        "data": [{"id": outcome.id} for outcome in sent.outcomes if outcome.id]
    }
    errors = [
        {"index": number, "message": str(outcome.failure)}
        for number, outcome in enumerate(sent.outcomes)
        if outcome.failure is not None
    ]
    if errors:
        value["errors"] = errors
    return json_reply(value)


def show_email(message: StoredMessage) -> Reply:
    """Return the mail of ``GET /emails/{id}``."""
    content, sent = message.content, _request_of(message)
    return json_reply(
        {
            "object": "email",
            **_facts_of(message, sent),
            "html": _as_sent(content.html, sent.get("html")),
            "text": _as_sent(content.text, sent.get("text")),
            "tags": sent.get("tags") or [],
        }
    )


def list_emails(messages: Sequence[StoredMessage], has_more: bool) -> Reply:
    """Return the mails of ``GET /emails``, without their texts."""
    found = [_facts_of(message, _request_of(message)) for message in messages]
    return answer_list(found, has_more)


def confirm(message: StoredMessage) -> Reply:
    """Return the id of a mail that is to be changed or cancelled. It is delivered already."""
    return json_reply({"object": "email", "id": str(message.summary.delivery_id)})


def _request_of(message: StoredMessage) -> Mapping[str, Any]:
    return read_request(message.request) if message.summary.via == RESEND.name else {}


def _facts_of(message: StoredMessage, sent: Mapping[str, Any]) -> dict[str, object]:
    summary, content = message.summary, message.content

    def people(name: str) -> list[str]:
        return [person.address for person in content.people_in(name)]

    bcc = sent.get("bcc") or []
    return {
        "id": str(summary.delivery_id),
        "message_id": content.message_id,
        "to": people("to"),
        "from": sent.get("from") or summary.header.author_text,
        "created_at": format_instant(summary.received_at),
        "subject": summary.header.subject,
        "bcc": [bcc] if isinstance(bcc, str) else bcc,
        "cc": people("cc"),
        "reply_to": people("reply-to"),
        "last_event": _event_name(
            kind_of(summary.tag, summary.recipient, TEST_RECIPIENTS), summary.recipient
        ),
        "scheduled_at": sent.get("scheduled_at"),
        "topic_id": None,
    }


def _as_sent(stored: str, sent: object) -> str | None:
    """Return a text as the request had it. Mails have one kind of line break only."""
    if isinstance(sent, str) and "\n".join(re.split("\r\n?|\n", sent)) == stored:
        return sent
    return stored or None


def _event_name(kind: EventKind, recipient: str) -> str:
    is_suppressed = "@".join(fold_test_recipient(recipient)) == SUPPRESSED
    return "suppressed" if is_suppressed and kind is EventKind.BOUNCED else kind.value


def write_event(event: Event) -> object:
    """Return an event of Resend. Svix signs it."""
    at = format_instant(event.at)
    data: dict[str, object] = {
        "created_at": at,
        "email_id": event.delivery_id,
        "from": event.sent.get("from") or event.author,
        "to": [event.recipient],
        "subject": event.subject,
    }
    tags = {tag["name"]: tag["value"] for tag in event.sent.get("tags") or ()}
    if tags:
        data["tags"] = tags
    name = _event_name(event.kind, event.recipient)
    if name == "bounced":
        data["bounce"] = {"message": BOUNCE, "type": "Permanent", "subType": "General"}
    elif name == "suppressed":
        reason = "the address is on the suppression list (simulated)"
        data["suppressed"] = {"message": reason, "type": "OnAccountSuppressionList"}
    return {"type": f"email.{name}", "created_at": at, "data": data}


def list_domains(posting: Posting) -> Reply:
    """Return the domain of this server. Mail from any domain is sent."""
    domain = {
        "id": str(uuid5(NAMESPACE_DNS, posting.domain)),
        "name": posting.domain,
        "status": "verified",
        "created_at": CREATED_AT,
        "region": "us-east-1",
        "capabilities": {"sending": "enabled", "receiving": "enabled"},
    }
    return answer_list([domain], has_more=False)


LARGEST_INLINED = 8 * 1_024 * 1_024
"""Maximum number of bytes of all pictures that replace their ``cid:`` URLs in the HTML."""

_CONTENT_ID = re.compile(r"cid:([^\s\"'()<>]+)", re.IGNORECASE)


def show_received(fetched: Fetched) -> Reply:
    """Return the mail of ``GET /emails/receiving/{id}``.

    Inline pictures are in the HTML unless ``html_format`` is ``cid``.
    """
    mail, received = fetched.mail, ReceivedMail(fetched.mail.raw_message)
    html_format = fetched.posting.query.get("html_format", "data_uri")
    html = None if received.html is None else received.html.text
    if html is not None and html_format != "cid":
        html = _with_pictures(html, received)
    value = {
        "object": "email",
        **_received_facts(mail, received),
        "html": html,
        "text": None if received.text is None else received.text.text,
        "headers": _received_headers(received),
        "raw": {
            "download_url": fetched.file_url(RAW),
            "expires_at": format_instant(fetched.ends_at),
        },
        "attachments": [_sized_facts(mail, file) for file in received.files],
        "html_format": html_format,
    }
    return json_reply(value)


def show_listed(fetched: Fetched) -> object:
    """Return the facts of a mail in a list."""
    received = ReceivedMail(fetched.mail.raw_message)
    files = [_sized_facts(fetched.mail, file) for file in received.files]
    return {**_received_facts(fetched.mail, received), "attachments": files}


def read_page(posting: Posting) -> Page:
    """Return the page with ``limit``, ``after`` and ``before``.

    :raises InvalidParameter: the limit is invalid.
    """
    query = posting.query
    limit = query.get("limit", "20")
    number = int(limit) if limit.isascii() and limit.isdigit() and len(limit) < 9 else 0
    if not 1 <= number <= MAX_PAGE:
        problem = f"`limit` must be an integer from 1 to {MAX_PAGE}; got {limit[:100]!r}"
        raise InvalidParameter("limit", problem)
    return Page(number, query.get("after"), query.get("before"))


def answer_list(found: Sequence[object], has_more: bool) -> Reply:
    """Return a list."""
    return json_reply({"object": "list", "has_more": has_more, "data": found})


def list_files(fetched: Fetched) -> Reply:
    """Return the files of ``GET /emails/receiving/{id}/attachments``, all on one page."""
    files = ReceivedMail(fetched.mail.raw_message).files
    return answer_list([_downloadable(fetched, file) for file in files], has_more=False)


def show_file(fetched: Fetched) -> Reply:
    """Return the file of ``GET /emails/receiving/{id}/attachments/{file}``.

    :raises PathUnknown: the mail has no such file.
    """
    wanted = fetched.posting.path["file"]
    for file in ReceivedMail(fetched.mail.raw_message).files:
        if file_id(fetched.mail, file) == wanted:
            return json_reply({"object": "attachment", **_downloadable(fetched, file)})
    raise PathUnknown("the mail has no such attachment")


def _received_facts(mail: InboundMail, received: ReceivedMail) -> Mapping[str, object]:
    return {
        "id": mail.id,
        **people_of(mail, received),
        "created_at": format_instant(mail.received_at),
        "subject": received.find("subject"),
        "reply_to": [person.address for person in received.people("reply-to")],
        "received_for": mail.recipients,
        "message_id": received.message_id,
    }


def _received_headers(received: ReceivedMail) -> Mapping[str, object]:
    """Return the header fields by lower-case name: a text, or a list if a field is repeated."""
    found: dict[str, list[str]] = {}
    for header_field in received.fields:
        found.setdefault(header_field.name.lower(), []).append(header_field.decode().strip())
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _sized_facts(mail: InboundMail, file: ReceivedFile) -> dict[str, object]:
    return {**file_facts(mail, file), "size": len(file.data)}


def _downloadable(fetched: Fetched, file: ReceivedFile) -> dict[str, object]:
    return {
        **_sized_facts(fetched.mail, file),
        "download_url": fetched.file_url(str(file.number)),
        "expires_at": format_instant(fetched.ends_at),
    }


def _with_pictures(html: str, received: ReceivedMail) -> str:
    """Return HTML with inline pictures in place of their ``cid:`` URLs."""
    urls: dict[str, str] = {}
    room = LARGEST_INLINED
    wanted = {found.casefold() for found in _CONTENT_ID.findall(html)}
    for file in received.files:
        key = file.content_id.casefold()
        if key in wanted and key not in urls and len(file.data) <= room:
            room -= len(file.data)
            data = b64encode(file.data).decode()
            urls[key] = f"data:{file.content_type};base64,{data}"

    def replace(found: re.Match[str]) -> str:
        # Only the first use, so that the HTML grows by each picture once.
        return urls.pop(found[1].casefold(), found[0])

    return _CONTENT_ID.sub(replace, html)


_HAS = partial(has_format, InboundFormat.RESEND)

RECEIVING = (
    FetchListRoute("/emails/receiving", _HAS, read_page, show_listed, answer_list),
    FetchRoute("/emails/receiving/<id>", _HAS, show_received),
    FetchRoute("/emails/receiving/<id>/attachments", _HAS, list_files),
    FetchRoute("/emails/receiving/<id>/attachments/<file>", _HAS, show_file),
)
"""The routes of Resend's API for received mail."""


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of Resend."""
    value = {"statusCode": status, "name": code, "message": message}
    limits = {"ratelimit-limit": "2", "ratelimit-remaining": "0", "ratelimit-reset": "1"}
    return json_reply(value, status, limits if status == 429 else None)


RESEND = Provider(
    name="resend",
    read_key=bearer_key,
    routes=(
        SendRoute("/emails", read_email, answer_email, idempotency="idempotency-key"),
        SendRoute("/emails/batch", read_batch, answer_batch, idempotency="idempotency-key"),
        ListRoute("/emails", read_page, list_emails),
        AskRoute("/domains", list_domains),
        ShowRoute("/emails/<id>", show_email),
        ShowRoute("/emails/<id>", confirm, "PATCH"),
        ShowRoute("/emails/<id>/cancel", confirm, "POST"),
        *RECEIVING,
    ),
    statuses={
        KeyMissing: (401, "missing_api_key"),
        InvalidCredentials: (403, "invalid_api_key"),
        NotPermitted: (401, "restricted_api_key"),
        BadBody: (400, "validation_error"),
        FieldMissing: (422, "missing_required_field"),
        InvalidParameter: (422, "validation_error"),
        MailTooLarge: (413, "validation_error"),
        PathUnknown: (404, "not_found"),
        WrongMethod: (405, "method_not_allowed"),
        LimitExceeded: (429, "rate_limit_exceeded"),
        InboxFull: (429, "daily_quota_exceeded"),
        RecipientUnknown: (422, "validation_error"),
        RequestRepeated: (409, "invalid_idempotent_request"),
        RequestRunning: (409, "concurrent_idempotent_requests"),
        ExpectedFailure: (503, "application_error"),
        Crash: (500, "application_error"),
    },
    write_error=write_error,
    write_event=write_event,
    test_recipients=TEST_RECIPIENTS,
    switches=(
        ("resend (npm)", "the environment variable `RESEND_BASE_URL={base}`"),
        ("resend (PyPI)", "the environment variable `RESEND_API_URL={base}`"),
        ("django-anymail", "`ANYMAIL = {{'RESEND_API_URL': '{base}/'}}`"),
    ),
    support=(
        Support("`POST /emails`, `POST /emails/batch`", Like.SAME),
        Support("`Idempotency-Key`", Like.SAME, "kept for 24 hours"),
        Support("`x-batch-validation: permissive`", Like.SAME),
        Support("errors with status, `name` and `message`", Like.SAME),
        Support(
            "`GET /emails/{id}`, `GET /emails` with `limit`, `after` and `before`",
            Like.SAME,
            "without `bcc` and `tags` if the request has more than 16,384 characters",
        ),
        Support(
            "`PATCH /emails/{id}`, `POST /emails/{id}/cancel`",
            Like.CLOSE,
            "the answers are the same; the mail is delivered already",
        ),
        Support("attachments with `path`", Like.CLOSE, "the file contains the URL"),
        Support("`template`", Like.CLOSE, "the text contains the name and the variables"),
        Support("`scheduled_at`", Like.CLOSE, "the mail is delivered at once, with X-Scheduled-At"),
        Support("events", Like.SAME, "signed as by Svix; four kinds"),
        Support(
            "`bounced@resend.dev`, `complained@resend.dev`, `suppressed@resend.dev`, with labels",
            Like.SAME,
            "in events and in `last_event`; the mail is in the inbox",
        ),
        Support("`GET /domains`", Like.CLOSE, "the domain of this server, which is verified"),
        Support(
            "`GET /emails/receiving`, `GET /emails/receiving/{id}` and its attachments",
            Like.SAME,
            "mail that a route has brought to an application; downloads are valid for an hour",
        ),
        Support(
            "attachments, sharing and metrics of sent mails, contacts, broadcasts",
            Like.NOT_OFFERED,
        ),
    ),
    ignored=("topic_id",),
)
