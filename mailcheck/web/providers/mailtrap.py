"""The API of Mailtrap."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct, field

from mailcheck.api.shapes import dump_json
from mailcheck.core.errors import InboxFull, InvalidParameter
from mailcheck.core.inbound import InboundFormat, InboundMail, InboundRoute
from mailcheck.core.instants import format_instant
from mailcheck.core.webhooks import EventKind
from mailcheck.operations.write_mail import OutgoingMail, make_headers
from mailcheck.web.providers.bodies import (
    MAX_BATCH,
    Attachment,
    Template,
    convert,
    convert_each,
    file_of,
    read_each,
    read_json,
    require_bodies,
    require_few,
)
from mailcheck.web.providers.events import BOUNCE, Event
from mailcheck.web.providers.inbound.mailtrap import decimal_id, inbox_id
from mailcheck.web.providers.inbound.received import ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.signing import uuid_of
from mailcheck.web.providers.people import Named, people_of, person_of
from mailcheck.web.providers.provider import (
    STATUSES_WITHOUT_CODES,
    AskRoute,
    Fetched,
    FetchListRoute,
    FetchRoute,
    FieldMissing,
    KeyMissing,
    Mails,
    Outcome,
    Page,
    Posting,
    Provider,
    Sending,
    SendRoute,
    Submission,
    Support,
    bearer_key,
    header_key,
)
from mailcheck.web.providers.received_files import RAW
from mailcheck.web.site.failures import PathUnknown
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply, json_reply

MAX_PEOPLE = 1_000


class SendEmail(Struct):
    """The body of ``POST /api/send``."""

    from_: Named | None = field(name="from", default=None)
    to: list[Named] | None = None
    cc: list[Named] | None = None
    bcc: list[Named] | None = None
    reply_to: Named | list[Named] | None = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    category: str | None = None
    headers: dict[str, str] | None = None
    custom_variables: dict[str, Any] | None = None
    attachments: list[Attachment] | None = None
    template_uuid: str | None = None
    template_variables: Any = None


def read_email(posting: Posting) -> Mails:
    """Return the mail of ``POST /api/send``."""
    return [_sending_of(read_json(posting))]


def read_batch(posting: Posting) -> Mails:
    """Return the mails of ``POST /api/batch``: each has the fields of ``base`` that it lacks."""
    value = read_json(posting)
    if not isinstance(value, dict):
        raise InvalidParameter("body", "the body must be an object with `requests`")
    base = value.get("base") or {}
    if not isinstance(base, dict):
        raise InvalidParameter("base", "`base` must be an object")
    requests = convert_each("requests", value.get("requests"), MAX_BATCH)
    merged = ({**base, **request} if isinstance(request, dict) else request for request in requests)
    return read_each(merged, _sending_of)


def _sending_of(value: object) -> Sending:
    return Sending(_mail_of(convert(value, SendEmail)), value)


def _mail_of(request: SendEmail) -> OutgoingMail:
    if request.from_ is None:
        raise FieldMissing("from", "'from' is required")
    to, cc, bcc = (
        people_of(name, given)
        for name, given in (("to", request.to), ("cc", request.cc), ("bcc", request.bcc))
    )
    if not (to or cc or bcc):
        raise FieldMissing("to", "'to' address is required")
    require_few("to, cc and bcc", (*to, *cc, *bcc), MAX_PEOPLE)
    text = request.text
    if request.template_uuid is not None:
        text = Template(request.template_uuid, request.template_variables).text
    elif not request.subject:
        raise FieldMissing("subject", "'subject' is required")
    require_bodies("text or html", request.html, text)
    replies = [request.reply_to] if isinstance(request.reply_to, Named) else request.reply_to
    return OutgoingMail(
        author=person_of("from", request.from_),
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=people_of("reply_to", replies),
        subject=request.subject or "",
        text=text,
        html=request.html,
        headers=make_headers("headers", _headers_of(request).items()),
        files=tuple(map(file_of, request.attachments or ())),
    )


def _headers_of(request: SendEmail) -> Mapping[str, str]:
    headers = dict(request.headers or {})
    if request.category:
        headers["X-MT-Category"] = request.category
    if request.custom_variables:
        headers["X-MT-Custom-Variables"] = dump_json(request.custom_variables).decode()
    if request.template_uuid is not None:
        headers["X-Template"] = request.template_uuid
    return headers


def answer_email(sent: Submission) -> Reply:
    """Return the id of the mail."""
    return json_reply(_facts_of(sent.outcomes[0]))


def answer_batch(sent: Submission) -> Reply:
    """Return the id or the errors of each mail."""
    facts = [_facts_of(outcome) for outcome in sent.outcomes]
    return json_reply({"success": True, "responses": facts})


def _facts_of(outcome: Outcome) -> Mapping[str, object]:
    if outcome.failure is not None:
        return {"success": False, "errors": [str(outcome.failure)]}
    return {"success": True, "message_ids": [outcome.id]}


def read_key(headers: Mapping[str, str]) -> str:
    """Return the key from ``Api-Token`` or from ``Authorization: Bearer``."""
    try:
        return header_key("Api-Token", headers)
    except KeyMissing:
        return bearer_key(headers)


_EVENTS: Mapping[EventKind, Mapping[str, object]] = {
    EventKind.DELIVERED: {"event": "delivery"},
    EventKind.BOUNCED: {
        "event": "bounce",
        "response": BOUNCE,
        "response_code": 550,
        "bounce_category": "badmailbox",
    },
    EventKind.COMPLAINED: {"event": "spam"},
    EventKind.OPENED: {"event": "open", "ip": "127.0.0.1", "user_agent": "mailcheck"},
}


def write_event(event: Event) -> object:
    """Return an event of Mailtrap, in a list as it sends them."""
    facts = {
        "event_id": event.id,
        "message_id": event.delivery_id,
        "email": event.recipient,
        "timestamp": event.seconds,
        "sending_stream": "transactional",
        "sending_domain_name": event.author.rpartition("@")[2],
    }
    names = ("category", "custom_variables")
    marks = {name: event.sent[name] for name in names if event.sent.get(name)}
    return {"events": [{**_EVENTS[event.kind], **facts, **marks}]}


def list_accounts(posting: Posting) -> Reply:
    """Return the account of the key."""
    return json_reply([{"id": 1, "name": posting.domain, "access_levels": [1000]}])


PAGE = 20
"""Number of mails of a page of a list."""

_LISTED_HEADERS = frozenset(
    (
        *("from", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id"),
        *("in-reply-to", "references"),
    )
)
"""The header fields of ``headers``."""


def has_received(route: InboundRoute, posting: Posting) -> bool:
    """Return whether a route is the inbox in the path."""
    is_there = route.format is InboundFormat.MAILTRAP
    return is_there and posting.path["inbox"] == str(inbox_id(route))


def find_received(posting: Posting) -> tuple[str, str]:
    """Return the lowest and the highest id of a mail with a number.

    :raises PathUnknown: the text is not a number.
    """
    return _ids_of(posting.path["id"])


def _ids_of(text: str) -> tuple[str, str]:
    if not text.isascii() or not text.isdigit() or len(text) > 20 or int(text) >= 1 << 64:
        raise PathUnknown("the id of a message is a number")
    first = int(text) << 64
    return str(UUID(int=first)), str(UUID(int=first | (1 << 64) - 1))


def show_message(fetched: Fetched) -> Reply:
    """Return the mail, with URLs of its bytes and its files."""
    mail, received = fetched.mail, ReceivedMail(fetched.mail.raw_message)
    html, text = received.html, received.text
    value = {
        **_received_facts(mail, fetched.route, received),
        "html_body": None if html is None else html.text,
        "text_body": None if text is None else text.text,
        "raw_message_url": fetched.file_url(RAW),
        "raw_message_expires_at": format_instant(fetched.ends_at),
        "attachments": [_received_file(fetched, file) for file in received.files],
    }
    return json_reply(value)


def show_listed(fetched: Fetched) -> object:
    """Return the facts of a mail in a list."""
    return _received_facts(fetched.mail, fetched.route, ReceivedMail(fetched.mail.raw_message))


def read_page(posting: Posting) -> Page:
    """Return the page after the mail ``last_id``."""
    last = posting.query.get("last_id", "")
    return Page(PAGE, _ids_of(last)[0] if last else None)


def answer_list(found: Sequence[object], has_more: bool) -> Reply:
    """Return a list. ``last_id`` is where the next page begins."""
    last = found[-1] if found and has_more else None
    value = {
        "data": found,
        "total_count": len(found),
        "last_id": last["id"] if isinstance(last, dict) else None,
    }
    return json_reply(value)


def _received_facts(
    mail: InboundMail, route: InboundRoute, received: ReceivedMail
) -> Mapping[str, object]:
    people = {
        name: [person.address for person in received.people(name)] for name in ("to", "cc", "bcc")
    }
    headers = {
        field.name.lower(): field.decode().strip()
        for field in received.fields
        if field.name.lower() in _LISTED_HEADERS
    }
    return {
        "id": decimal_id(mail),
        "inbox_id": inbox_id(route),
        "from": received.author.shown,
        **people,
        "reply_to": received.shown("reply-to") or None,
        "subject": received.find("subject"),
        "message_id": received.message_id,
        "in_reply_to": received.find("in-reply-to") or None,
        "references": received.find("references").split(),
        "headers": headers,
        "size": len(received.raw_message),
        "html_size": 0 if received.html is None else len(received.html.data),
        "text_size": 0 if received.text is None else len(received.text.data),
        "received_at": format_instant(mail.received_at),
    }


def _received_file(fetched: Fetched, file: ReceivedFile) -> Mapping[str, object]:
    return {
        "attachment_id": uuid_of("mailtrap file", fetched.mail.id, str(file.number)),
        "size": len(file.data),
        "filename": file.filename or None,
        "content_type": file.content_type,
        "content_disposition": file.disposition or None,
        "content_id": file.content_id or None,
        "download_url": fetched.file_url(str(file.number)),
        "download_url_expires_at": format_instant(fetched.ends_at),
    }


INBOX = "/api/inbound/inboxes/<inbox>/messages"

RECEIVING = (
    FetchListRoute(INBOX, has_received, read_page, show_listed, answer_list),
    FetchRoute(f"{INBOX}/<id>", has_received, show_message, find_received),
)
"""The routes of Mailtrap's API for received mail."""


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of Mailtrap, which has no codes."""
    return json_reply({"success": False, "errors": [message]}, status)


MAILTRAP = Provider(
    name="mailtrap",
    read_key=read_key,
    routes=(
        SendRoute("/api/send", read_email, answer_email),
        SendRoute("/api/send/<inbox_id>", read_email, answer_email),
        SendRoute("/api/batch", read_batch, answer_batch, is_partial=True),
        SendRoute("/api/batch/<inbox_id>", read_batch, answer_batch, is_partial=True),
        AskRoute("/api/accounts", list_accounts),
        *RECEIVING,
    ),
    statuses={**STATUSES_WITHOUT_CODES, InboxFull: (402, "")},
    write_error=write_error,
    write_event=write_event,
    switches=(
        ("any HTTP client", "`{base}/api/send`; the Node client has fixed hosts"),
        ("django-anymail", "`ANYMAIL = {{'MAILTRAP_API_URL': '{base}/api/'}}`"),
    ),
    support=(
        Support("`POST /api/send`, `POST /api/batch`", Like.SAME),
        Support(
            "`POST /api/send/{inbox_id}`, `POST /api/batch/{inbox_id}` of the sandbox",
            Like.SAME,
            "the number is ignored",
        ),
        Support("`category`, `custom_variables`", Like.SAME, "as X-MT-... in the mail"),
        Support("errors with `success` and `errors`", Like.CLOSE, "one error at a time"),
        Support("`template_uuid`", Like.CLOSE, "the text contains the id and the variables"),
        Support("events", Like.SAME, "signed with HMAC; four kinds, one event in a request"),
        Support("`GET /api/accounts`", Like.CLOSE, "one account, with the domain of this server"),
        Support(
            "`GET /api/inbound/inboxes/{inbox}/messages` and `.../messages/{id}`",
            Like.CLOSE,
            "mail that a route has brought to an application; `total_count` is that of the page",
        ),
        Support("sandbox inboxes, contacts, domains", Like.NOT_OFFERED),
    ),
)
