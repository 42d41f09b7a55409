"""The API of Postmark."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType, field

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
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.webhooks import EventKind
from mailcheck.operations.write_mail import File, OutgoingMail, Person, make_headers, read_people
from mailcheck.web.providers.bodies import (
    Template,
    convert,
    convert_each,
    decode_base64,
    pairs_of,
    read_each,
    read_json,
    require_bodies,
    require_few,
    text_of,
)
from mailcheck.web.providers.events import BOUNCE, Event, fold_test_recipient
from mailcheck.web.providers.provider import (
    AskRoute,
    BadBody,
    FieldMissing,
    Mails,
    Outcome,
    Posting,
    Provider,
    Sending,
    SendRoute,
    Submission,
    Support,
    header_key,
    kind_of,
)
from mailcheck.web.site.failures import Crash, PathUnknown, WrongMethod
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply, json_reply

MAX_BATCH = 500


STATUSES = {
    InvalidCredentials: (401, "10"),
    NotPermitted: (401, "10"),
    BadBody: (422, "402"),
    InvalidParameter: (422, "300"),
    MailTooLarge: (413, "300"),
    PathUnknown: (404, "404"),
    WrongMethod: (405, "405"),
    LimitExceeded: (429, "429"),
    InboxFull: (422, "405"),
    RecipientUnknown: (422, "406"),
    RequestRepeated: (409, "409"),
    ExpectedFailure: (503, "100"),
    Crash: (500, "500"),
}
"""405 is "Not allowed to send" (no credits), 406 "Inactive recipient", 100 "Maintenance"."""


class Header(Struct, rename="pascal"):
    """A header field."""

    name: str
    value: str


class Attachment(Struct, rename="pascal"):
    """A file in Base64."""

    name: str
    content: str
    content_type: str = ""
    content_id: str | None = field(name="ContentID", default=None)


class SendEmail(Struct, rename="pascal"):
    """The body of ``POST /email`` and of ``POST /email/withTemplate``."""

    from_: str | None = field(name="From", default=None)
    to: str | None = None
    cc: str | None = None
    bcc: str | None = None
    subject: str | None = None
    tag: str | None = None
    html_body: str | None = None
    text_body: str | None = None
    reply_to: str | None = None
    headers: list[Header] | None = None
    attachments: list[Attachment] | None = None
    metadata: dict[str, Any] | None = None
    message_stream: str | None = None
    template_id: int | None = None
    template_alias: str | None = None
    template_model: Any | UnsetType = UNSET


def read_email(posting: Posting) -> Mails:
    """Return the mail of ``POST /email``."""
    return [_sending_of(read_json(posting))]


def read_templated(posting: Posting) -> Mails:
    """Return the mail of ``POST /email/withTemplate``."""
    return [_sending_of(read_json(posting), is_templated=True)]


def read_batch(posting: Posting) -> Mails:
    """Return the mails of ``POST /email/batch``. Each invalid one is rejected by itself."""
    return read_each(convert_each("body", read_json(posting), MAX_BATCH), _sending_of)


def read_templated_batch(posting: Posting) -> Mails:
    """Return the mails of ``POST /email/batchWithTemplates``."""
    value = read_json(posting)
    messages = value.get("Messages") if isinstance(value, dict) else None
    values = convert_each("Messages", messages, MAX_BATCH)
    return read_each(values, partial(_sending_of, is_templated=True))


def _sending_of(value: object, *, is_templated: bool = False) -> Sending:
    request = convert(value, SendEmail)
    if not request.from_:
        raise FieldMissing("From", "Invalid 'From' address: ''.")
    authors = read_people("From", request.from_)
    if len(authors) != 1:
        raise InvalidParameter("From", f"Invalid 'From' address: '{request.from_[:100]}'.")
    to, cc, bcc = (
        read_people(name, given)
        for name, given in (("To", request.to), ("Cc", request.cc), ("Bcc", request.bcc))
    )
    require_few("To, Cc and Bcc", (*to, *cc, *bcc))
    if not (to or cc or bcc):
        raise FieldMissing("To", "Zero recipients specified")
    text = request.text_body
    headers = [(header.name, header.value) for header in request.headers or ()]
    if is_templated:
        name = request.template_alias or text_of(request.template_id or "")
        if not name:
            raise FieldMissing("TemplateId", "`TemplateId` or `TemplateAlias` is missing")
        if request.template_model is UNSET:
            raise FieldMissing("TemplateModel", "`TemplateModel` is missing")
        text = Template(name, request.template_model).text
        headers.append(("X-Template", name))
    require_bodies("HtmlBody or TextBody", request.html_body, text)
    if request.tag:
        headers.append(("X-PM-Tag", request.tag))
    headers.extend(pairs_of("X-PM-Metadata-", request.metadata))
    if request.message_stream:
        headers.append(("X-PM-Message-Stream", request.message_stream))
    mail = OutgoingMail(
        author=authors[0],
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=read_people("ReplyTo", request.reply_to),
        subject=request.subject or "",
        text=text,
        html=request.html_body,
        headers=make_headers("Headers", headers),
        files=tuple(map(_file_of, request.attachments or ())),
    )
    shown = {"To": _joined(to), "Cc": _joined(cc), "Bcc": _joined(bcc)}
    return Sending(mail, value, {name: given for name, given in shown.items() if given})


def _joined(people: Sequence[Person]) -> str:
    return ", ".join(person.shown for person in people)


def _file_of(attachment: Attachment) -> File:
    data = decode_base64("Attachments.Content", attachment.content)
    content_id = (attachment.content_id or "").removeprefix("cid:")
    return File(
        attachment.name, attachment.content_type, data, content_id, is_inline=bool(content_id)
    )


def answer_email(sent: Submission) -> Reply:
    """Return the facts of the mail."""
    return json_reply(_facts_of(sent.outcomes[0], sent.sent_at))


def answer_batch(sent: Submission) -> Reply:
    """Return the facts or the error of each mail. The status is 200 even if all were rejected."""
    return json_reply([_facts_of(outcome, sent.sent_at) for outcome in sent.outcomes])


def _facts_of(outcome: Outcome, sent_at: Instant) -> Mapping[str, object]:
    if outcome.failure is not None:
        return _error_of(outcome.failure)
    addressed = {name: outcome.shown[name] for name in ("To", "Cc", "Bcc") if name in outcome.shown}
    return {
        **addressed,
        "SubmittedAt": format_instant(sent_at),
        "MessageID": outcome.id,
        "ErrorCode": 0,
        "Message": "OK",
    }


def _error_of(failure: ExpectedFailure) -> Mapping[str, object]:
    _, code = POSTMARK.status_of(kind_of(failure))
    return {"ErrorCode": int(code), "Message": str(failure)}


_RECORDS = {
    EventKind.DELIVERED: ("Delivery", "Recipient", "DeliveredAt"),
    EventKind.BOUNCED: ("Bounce", "Email", "BouncedAt"),
    EventKind.COMPLAINED: ("SpamComplaint", "Email", "BouncedAt"),
    EventKind.OPENED: ("Open", "Recipient", "ReceivedAt"),
}
"""The type of the record of each event, and its fields for the recipient and the time."""

BOUNCE_TESTING = "bounce-testing.postmarkapp.com"
"""The domain of test recipients. The local part is the type of the bounce."""


class BounceType(NamedTuple):
    """A type of bounces. After some types, Postmark sends no more mail to the address."""

    type: str
    code: int
    name: str
    is_final: bool = False


HARD_BOUNCE = BounceType("HardBounce", 1, "Hard bounce", is_final=True)
SPAM_COMPLAINT = BounceType("SpamComplaint", 100_001, "Spam complaint", is_final=True)

_BOUNCE_TYPES = {
    bounce.type.lower(): bounce
    for bounce in (
        HARD_BOUNCE,
        BounceType("Transient", 2, "Message delayed"),
        BounceType("Unsubscribe", 16, "Unsubscribe request"),
        BounceType("Subscribe", 32, "Subscribe request"),
        BounceType("AutoResponder", 64, "Auto responder"),
        BounceType("AddressChange", 128, "Address change"),
        BounceType("DnsError", 256, "DNS error"),
        BounceType("SpamNotification", 512, "Spam notification"),
        BounceType("OpenRelayTest", 1_024, "Open relay test"),
        BounceType("Unknown", 2_048, "Unknown"),
        BounceType("SoftBounce", 4_096, "Soft bounce"),
        BounceType("VirusNotification", 8_192, "Virus notification"),
        BounceType("ChallengeVerification", 16_384, "Spam challenge verification"),
        BounceType("BadEmailAddress", 100_000, "Invalid email address", is_final=True),
        BounceType("ManuallyDeactivated", 100_002, "Manually deactivated", is_final=True),
        BounceType("Unconfirmed", 100_003, "Registration not confirmed"),
        BounceType("Blocked", 100_006, "ISP block"),
        BounceType("SMTPApiError", 100_007, "SMTP API error"),
        BounceType("InboundError", 100_008, "Processing failed"),
        BounceType("DMARCPolicy", 100_009, "DMARC policy"),
        BounceType("TemplateRenderingFailed", 100_010, "Template rendering failed"),
    )
}


def _bounce_type_of(event: Event) -> BounceType:
    if event.kind is EventKind.COMPLAINED:
        return SPAM_COMPLAINT
    local_part, domain = fold_test_recipient(event.recipient)
    if domain != BOUNCE_TESTING:
        return HARD_BOUNCE
    headers = {
        header["Name"].lower(): header["Value"] for header in event.sent.get("Headers") or ()
    }
    asked = headers.get("x-pm-bounce-type", local_part).lower().replace("_", "")
    return _BOUNCE_TYPES.get(asked, HARD_BOUNCE)


def write_event(event: Event) -> object:
    """Return an event of Postmark, which is not signed."""
    record, recipient, moment = _RECORDS[event.kind]
    sent = event.sent
    facts = {
        "RecordType": record,
        "MessageID": event.delivery_id,
        recipient: event.recipient,
        moment: format_instant(event.at),
        "ServerID": 1,
        "MessageStream": "outbound",
        "Tag": sent.get("Tag") or "",
        "Metadata": sent.get("Metadata") or {},
    }
    if event.kind in (EventKind.BOUNCED, EventKind.COMPLAINED):
        kind = _bounce_type_of(event)
        said = BOUNCE if kind is HARD_BOUNCE else f"{kind.name} (simulated)"
        return {
            **facts,
            "ID": 1,
            "Type": kind.type,
            "TypeCode": kind.code,
            "Name": kind.name,
            "From": event.author,
            "Subject": event.subject,
            "Inactive": kind.is_final,
            "CanActivate": kind.is_final and kind is not SPAM_COMPLAINT,
            "DumpAvailable": False,
            "Description": said,
            "Details": said,
        }
    if event.kind is EventKind.OPENED:
        return {**facts, "FirstOpen": True, "UserAgent": "mailcheck"}
    return {**facts, "Details": "250 OK"}


def tell_server(posting: Posting) -> Reply:
    """Return the facts of the server, without its tokens."""
    facts: dict[str, object] = {
        "ID": 1,
        "Name": posting.domain,
        "ApiTokens": [],
        "Color": "blue",
        "SmtpApiActivated": False,
        "RawEmailEnabled": False,
        "DeliveryType": "Sandbox",
        "InboundAddress": "",
        "InboundHash": "",
        "InboundSpamThreshold": 0,
        "ServerLink": "",
        "PostFirstOpenOnly": False,
        "TrackOpens": False,
        "TrackLinks": "None",
        "IncludeBounceContentInHook": False,
        "EnableSmtpApiErrorHooks": False,
    }
    return json_reply(facts)


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of Postmark."""
    return json_reply({"ErrorCode": int(code), "Message": message}, status)


POSTMARK = Provider(
    name="postmark",
    read_key=partial(header_key, "X-Postmark-Server-Token"),
    routes=(
        SendRoute("/email", read_email, answer_email),
        SendRoute("/email/batch", read_batch, answer_batch, is_partial=True),
        SendRoute("/email/withTemplate", read_templated, answer_email),
        SendRoute("/email/withTemplate/", read_templated, answer_email),
        SendRoute("/email/batchWithTemplates", read_templated_batch, answer_batch, is_partial=True),
        AskRoute("/server", tell_server),
    ),
    statuses=STATUSES,
    write_error=write_error,
    write_event=write_event,
    test_recipients={f"@{BOUNCE_TESTING}": EventKind.BOUNCED},
    switches=(
        (
            "postmark (npm)",
            "`new ServerClient(key, {{requestHost: '{host}', useHttps: false}})`",
        ),
        ("django-anymail", "`ANYMAIL = {{'POSTMARK_API_URL': '{base}/'}}`"),
    ),
    support=(
        Support("`POST /email`, `POST /email/batch`", Like.SAME, "500 mails in a batch"),
        Support("errors with `ErrorCode` and `Message`", Like.SAME),
        Support("`Tag`, `Metadata`", Like.SAME, "as X-PM-Tag and X-PM-Metadata-... in the mail"),
        Support(
            "`POST /email/withTemplate`, `/email/batchWithTemplates`",
            Like.CLOSE,
            "the text contains the name and the model",
        ),
        Support("events", Like.SAME, "not signed, as by Postmark; four kinds"),
        Support(
            f"test recipients `<type of bounce>@{BOUNCE_TESTING}`, and the header"
            " `X-PM-Bounce-Type` for them",
            Like.SAME,
            "events of all types of bounces; the mail is in the inbox",
        ),
        Support("`GET /server`", Like.CLOSE, "without tokens and hooks"),
        Support("`POST /email/bulk`, streams, statistics, suppressions", Like.NOT_OFFERED),
    ),
    ignored=("TrackOpens", "TrackLinks", "InlineCss"),
)
