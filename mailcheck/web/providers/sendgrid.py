"""The API of SendGrid."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mailcheck.api.shapes import dump_json
from mailcheck.core.errors import InboxFull, InvalidParameter
from mailcheck.core.webhooks import EventKind
from mailcheck.operations.write_mail import (
    Alternative,
    MediaType,
    OutgoingMail,
    make_headers,
    parse_media_type,
)
from mailcheck.web.providers.bodies import (
    MAX_BATCH,
    Attachment,
    Template,
    convert,
    file_of,
    read_json,
    require_bodies,
    require_few,
    substitute,
)
from mailcheck.web.providers.events import BOUNCE, Event
from mailcheck.web.providers.people import Named, people_of, person_of
from mailcheck.web.providers.provider import (
    STATUSES_WITHOUT_CODES,
    AskRoute,
    FieldMissing,
    Mails,
    Posting,
    Provider,
    Sending,
    SendRoute,
    Submission,
    Support,
    bearer_key,
)
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import JSON, Reply, json_reply

MAX_PEOPLE = 1_000
"""Maximum number of addresses of one mail."""

MAX_ALTERNATIVES = 10
"""Maximum number of alternatives of the text of one mail."""


class Content(Struct):
    """A body with its media type."""

    type: str
    value: str


class Personalization(Struct):
    """The recipients of one mail, and its own fields."""

    to: list[Named] | None = None
    cc: list[Named] | None = None
    bcc: list[Named] | None = None
    from_: Named | None = field(name="from", default=None)
    subject: str | None = None
    headers: dict[str, str] | None = None
    substitutions: dict[str, str] | None = None
    dynamic_template_data: dict[str, Any] | None = None
    custom_args: dict[str, Any] | None = None
    send_at: int | None = None


class Setting(Struct):
    """A setting that is on or off."""

    enable: bool = False


class MailSettings(Struct):
    """The settings that matter here."""

    sandbox_mode: Setting | None = None


class SendMail(Struct):
    """The body of ``POST /v3/mail/send``."""

    personalizations: list[Personalization] | None = None
    from_: Named | None = field(name="from", default=None)
    reply_to: Named | None = None
    reply_to_list: list[Named] | None = None
    subject: str | None = None
    content: list[Content] | None = None
    attachments: list[Attachment] | None = None
    template_id: str | None = None
    headers: dict[str, str] | None = None
    categories: list[str] | None = None
    custom_args: dict[str, Any] | None = None
    send_at: int | None = None
    mail_settings: MailSettings | None = None


def read_mails(posting: Posting) -> Mails:
    """Return a mail for each personalization. In the sandbox mode none is stored."""
    value = read_json(posting)
    request = convert(value, SendMail)
    if not request.personalizations:
        raise FieldMissing("personalizations", "The personalizations field is required.")
    require_few("personalizations", request.personalizations, MAX_BATCH, "items")
    content = [(_media_type_of(part), part.value) for part in request.content or ()]
    require_few("content", content, MAX_ALTERNATIVES, "items")
    mails = (
        _mail_of(request, personalization, f"personalizations.{number}", content)
        for number, personalization in enumerate(request.personalizations)
    )
    mode = (request.mail_settings or MailSettings()).sandbox_mode
    is_stored = mode is None or not mode.enable
    return (Sending(mail, value, is_stored=is_stored) for mail in mails)


def _mail_of(
    request: SendMail, one: Personalization, place: str, content: Sequence[tuple[MediaType, str]]
) -> OutgoingMail:
    author = one.from_ or request.from_
    if author is None:
        raise FieldMissing("from", "The from object must be provided for every email send.")
    if not one.to:
        raise FieldMissing(
            f"{place}.to", "The to array is required for all personalization objects."
        )
    to, cc, bcc = (
        people_of(f"{place}.{name}", given)
        for name, given in (("to", one.to), ("cc", one.cc), ("bcc", one.bcc))
    )
    require_few(f"{place}.to, cc and bcc", (*to, *cc, *bcc), MAX_PEOPLE)
    subject, text, substitutions = one.subject or request.subject, None, one.substitutions or {}
    headers = {**(request.headers or {}), **(one.headers or {})}
    if request.template_id is not None:
        headers["X-Template"] = request.template_id
        text = Template(request.template_id, one.dynamic_template_data or substitutions).text
    elif not subject:
        raise FieldMissing("subject", "The subject is required.")
    alternatives = [
        Alternative(kind, substitute(text, substitutions) or "") for kind, text in content
    ]
    require_bodies("content", text, *(alternative.text for alternative in alternatives))
    send_at = one.send_at or request.send_at
    if send_at is not None:
        headers["X-Scheduled-At"] = str(send_at)
    marks = _marks_of(request, one)
    if marks:
        headers["X-SMTPAPI"] = dump_json(marks).decode()
    replies = [request.reply_to] if request.reply_to else request.reply_to_list
    return OutgoingMail(
        author=person_of("from", author),
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=people_of("reply_to", replies),
        subject=substitute(subject, substitutions) or "",
        text=text,
        other_forms=tuple(alternatives),
        headers=make_headers("headers", headers.items()),
        files=tuple(map(file_of, request.attachments or ())),
    )


def _media_type_of(part: Content) -> MediaType:
    kind = parse_media_type(part.type)
    if kind is None or kind.main in ("multipart", "message"):
        problem = f"`content.type` must be a media type like text/plain; got {part.type[:100]!r}"
        raise InvalidParameter("content.type", problem)
    return kind


def _marks_of(request: SendMail, one: Personalization) -> Mapping[str, object]:
    arguments = {**(request.custom_args or {}), **(one.custom_args or {})}
    marks = {"category": request.categories, "unique_args": arguments}
    return {name: value for name, value in marks.items() if value}


def answer(sent: Submission) -> Reply:
    """Return 202 without a body, and the id of the first mail in a header."""
    first = sent.outcomes[0]
    if not first.id:  # the sandbox mode
        return Reply(200, b"", JSON)
    return Reply(202, b"", JSON, {"X-Message-Id": first.id})


_EVENTS = {
    EventKind.DELIVERED: {"event": "delivered", "response": "250 OK"},
    EventKind.BOUNCED: {"event": "bounce", "type": "bounce", "reason": BOUNCE, "status": "5.1.1"},
    EventKind.COMPLAINED: {"event": "spamreport"},
    EventKind.OPENED: {"event": "open", "useragent": "mailcheck"},
}


def write_event(event: Event) -> object:
    """Return an event of SendGrid, in a list as it sends them."""
    facts = {
        "email": event.recipient,
        "timestamp": event.seconds,
        "smtp-id": f"<{event.message_id}>",
        "sg_event_id": event.id,
        "sg_message_id": f"{event.delivery_id}.recvd",
    }
    return [{**_marks_of_event(event), **facts, **_EVENTS[event.kind]}]


def _marks_of_event(event: Event) -> dict[str, object]:
    """Return the categories, and the custom arguments by their names, of the mail of an event."""
    sent = event.sent
    marks: dict[str, object] = {**(sent.get("custom_args") or {})}
    for personalization in sent.get("personalizations") or ():
        fields = (personalization.get(name) or () for name in ("to", "cc", "bcc"))
        people = [person["email"].lower() for field in fields for person in field]
        if event.recipient.lower() in people:
            marks |= personalization.get("custom_args") or {}
    if sent.get("categories"):
        marks["category"] = sent["categories"]
    return marks


def tell_scopes(_: Posting) -> Reply:
    """Return the scope of the key, which sends mail."""
    return json_reply({"scopes": ["mail.send"]})


def tell_account(_: Posting) -> Reply:
    """Return the facts of the account."""
    return json_reply({"type": "paid", "reputation": 100})


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of SendGrid. The code is always null in this API."""
    error = {"message": message, "field": code or None, "help": None}
    headers = {"X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "0"} if status == 429 else None
    return json_reply({"errors": [error]}, status, headers)


SENDGRID = Provider(
    name="sendgrid",
    read_key=bearer_key,
    routes=(
        SendRoute("/v3/mail/send", read_mails, answer),
        AskRoute("/v3/scopes", tell_scopes),
        AskRoute("/v3/user/account", tell_account),
    ),
    statuses={**STATUSES_WITHOUT_CODES, InboxFull: (401, "")},
    write_error=write_error,
    write_event=write_event,
    switches=(
        (
            "@sendgrid/mail (npm)",
            "`client.setDefaultRequest('baseUrl', '{base}')`, and `sgMail.setClient(client)`",
        ),
        ("sendgrid (PyPI)", "`SendGridAPIClient(key, host='{base}')`"),
        ("django-anymail", "`ANYMAIL = {{'SENDGRID_API_URL': '{base}/v3/'}}`"),
    ),
    support=(
        Support("`POST /v3/mail/send`", Like.SAME, "a mail for each personalization"),
        Support("`substitutions`, `headers`, `reply_to_list`, inline images", Like.SAME),
        Support("`mail_settings.sandbox_mode`", Like.SAME, "the mail is checked and not stored"),
        Support("`categories`, `custom_args`", Like.SAME, "as X-SMTPAPI in the mail"),
        Support("errors", Like.CLOSE, "one error at a time; `field` and `help` are null"),
        Support("`template_id` with template data", Like.CLOSE, "the text contains both"),
        Support("`send_at`", Like.CLOSE, "the mail is delivered at once, with X-Scheduled-At"),
        Support("`GET /v3/scopes`, `GET /v3/user/account`", Like.CLOSE, "the answers are fixed"),
        Support("test recipients at `sink.sendgrid.net`", Like.SAME, "reported as delivered"),
        Support("events", Like.SAME, "signed with ECDSA; four kinds, one event in a request"),
        Support("contacts, templates, statistics, suppressions", Like.NOT_OFFERED),
    ),
    ignored=(
        *("tracking_settings", "asm", "ip_pool_name", "batch_id", "sections"),
        *(f"mail_settings.{name}" for name in ("bcc", "footer", "spam_check")),
        *(f"mail_settings.bypass_{name}_management" for name in ("list", "spam", "bounce")),
        "mail_settings.bypass_unsubscribe_management",
    ),
)
