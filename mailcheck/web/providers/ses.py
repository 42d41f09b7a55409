"""The API of Amazon SES, version 2."""

from collections.abc import Iterable, Mapping, Sequence
from email.parser import BytesParser
from email.policy import compat32
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from mailcheck.api.shapes import dump_json
from mailcheck.core.addresses import Mailbox
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
from mailcheck.core.instants import format_instant
from mailcheck.core.webhooks import EventKind
from mailcheck.operations.write_mail import (
    File,
    OutgoingMail,
    Person,
    RawMail,
    make_headers,
    read_people,
)
from mailcheck.web.providers.bodies import (
    Template,
    convert,
    decode_base64,
    read_json,
    require_bodies,
    require_few,
)
from mailcheck.web.providers.events import BOUNCE, Event, fold_test_recipient
from mailcheck.web.providers.provider import (
    AskRoute,
    BadBody,
    FieldMissing,
    KeyMissing,
    Mails,
    Outcome,
    Posting,
    Provider,
    Sending,
    SendRoute,
    Submission,
    Support,
    WrongSignature,
    kind_of,
)
from mailcheck.web.providers.signatures import read_key, request_id, verify
from mailcheck.web.site.bodies import decode_json
from mailcheck.web.site.failures import Crash, PathUnknown, WrongMethod
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply, json_reply

MAX_BULK = 50

NEVER_VERIFIED = "invalid"
"""The top level domain of senders that are rejected."""

QUOTA = {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": 0.0}
"""The sending quota of an account. It is not enforced here, and no mail uses it up."""


_EVENT_TYPES = {
    EventKind.DELIVERED: "Delivery",
    EventKind.BOUNCED: "Bounce",
    EventKind.COMPLAINED: "Complaint",
    EventKind.OPENED: "Open",
}


class Text(Struct, rename="pascal"):
    """A subject or a body. ``charset`` does not matter: JSON is in UTF-8."""

    data: str
    charset: str | None = None


class Body(Struct, rename="pascal"):
    """Text, HTML, or both."""

    text: Text | None = None
    html: Text | None = None


class Header(Struct, rename="pascal"):
    """A header field, or a tag."""

    name: str
    value: str


class Attachment(Struct, rename="pascal"):
    """A file in Base64."""

    raw_content: str
    file_name: str = "attachment"
    content_type: str | None = None
    content_disposition: str | None = None
    content_description: str | None = None
    content_id: str | None = None


class Simple(Struct, rename="pascal"):
    """A mail by its parts."""

    subject: Text
    body: Body
    headers: list[Header] | None = None
    attachments: list[Attachment] | None = None


class Raw(Struct, rename="pascal"):
    """A whole mail in Base64."""

    data: str


class TemplateContent(Struct, rename="pascal"):
    """An inline template."""

    subject: str | None = None
    text: str | None = None
    html: str | None = None


class NamedTemplate(Struct, rename="pascal"):
    """A template of the account at AWS, or an inline one, and the values for it."""

    template_name: str | None = None
    template_arn: str | None = None
    template_content: TemplateContent | None = None
    template_data: str | None = None
    headers: list[Header] | None = None
    attachments: list[Attachment] | None = None


class Content(Struct, rename="pascal"):
    """Exactly one of three forms of a mail."""

    simple: Simple | None = None
    raw: Raw | None = None
    template: NamedTemplate | None = None


class Destination(Struct, rename="pascal"):
    """The recipients."""

    to_addresses: list[str] | None = None
    cc_addresses: list[str] | None = None
    bcc_addresses: list[str] | None = None


class SendEmail(Struct, rename="pascal"):
    """The body of ``POST /v2/email/outbound-emails``."""

    content: Content
    from_email_address: str | None = None
    destination: Destination | None = None
    reply_to_addresses: list[str] | None = None
    email_tags: list[Header] | None = None
    configuration_set_name: str | None = None
    feedback_forwarding_email_address: str | None = None


class Replacement(Struct, rename="pascal"):
    """The values of one mail of a bulk."""

    replacement_template_data: str | None = None


class ReplacementContent(Struct, rename="pascal"):
    """The own content of one mail of a bulk."""

    replacement_template: Replacement | None = None


class BulkEntry(Struct, rename="pascal"):
    """One mail of a bulk."""

    destination: Destination
    replacement_email_content: ReplacementContent | None = None
    replacement_tags: list[Header] | None = None
    replacement_headers: list[Header] | None = None


class BulkContent(Struct, rename="pascal"):
    """The template of all mails of a bulk."""

    template: NamedTemplate


class SendBulkEmail(Struct, rename="pascal"):
    """The body of ``POST /v2/email/outbound-bulk-emails``."""

    default_content: BulkContent
    bulk_email_entries: list[BulkEntry]
    from_email_address: str | None = None
    reply_to_addresses: list[str] | None = None
    default_email_tags: list[Header] | None = None
    configuration_set_name: str | None = None
    feedback_forwarding_email_address: str | None = None


class CreateIdentity(Struct, rename="pascal"):
    """The body of ``POST /v2/email/identities``."""

    email_identity: str


def read_email(posting: Posting) -> Mails:
    """Return the mail of ``POST /v2/email/outbound-emails``."""
    value = read_json(posting)
    return [Sending(mail_of(convert(value, SendEmail)), value)]


def read_bulk(posting: Posting) -> Mails:
    """Return the mails of ``POST /v2/email/outbound-bulk-emails``."""
    value = read_json(posting)
    request = convert(value, SendBulkEmail)
    require_few("BulkEmailEntries", request.bulk_email_entries, MAX_BULK, "entries")
    return (Sending(mail, value) for mail in mails_of(request))


def mails_of(request: SendBulkEmail) -> Iterable[OutgoingMail | RawMail]:
    """Return the mails of a bulk, for both versions of the API.

    :raises InvalidParameter: one is invalid.
    """
    return (mail_of(_entry_of(request, entry)) for entry in request.bulk_email_entries)


def _entry_of(request: SendBulkEmail, entry: BulkEntry) -> SendEmail:
    template, own = request.default_content.template, entry.replacement_email_content
    if own is not None and own.replacement_template is not None:
        data = own.replacement_template.replacement_template_data
        template = msgspec.structs.replace(template, template_data=data)
    everything = [*(template.headers or ()), *(entry.replacement_headers or ())]
    headers = {header.name.lower(): header for header in everything}
    template = msgspec.structs.replace(template, headers=[*headers.values()])
    return SendEmail(
        Content(template=template),
        request.from_email_address,
        entry.destination,
        request.reply_to_addresses,
        [*(request.default_email_tags or ()), *(entry.replacement_tags or ())],
        configuration_set_name=request.configuration_set_name,
        feedback_forwarding_email_address=request.feedback_forwarding_email_address,
    )


def mail_of(request: SendEmail) -> OutgoingMail | RawMail:
    """Return the mail of a request, for both versions of the API.

    :raises InvalidParameter: it is invalid.
    """
    content, given = request.content, request.destination or Destination()
    to, cc, bcc = (
        read_people(f"Destination.{name}", some)
        for name, some in (
            ("ToAddresses", given.to_addresses),
            ("CcAddresses", given.cc_addresses),
            ("BccAddresses", given.bcc_addresses),
        )
    )
    require_few("Destination", (*to, *cc, *bcc))
    if content.raw is not None:
        raw = decode_base64("Content.Raw.Data", content.raw.data)
        returns_to = request.feedback_forwarding_email_address
        return raw_mail(raw, request.from_email_address, [*to, *cc, *bcc], returns_to)
    if not (to or cc or bcc):
        raise FieldMissing("Destination", "Destination is missing: send at least one address")
    subject, text, html, headers, attachments = _parts_of(content)
    if request.email_tags:
        tags = ", ".join(f"{tag.name}={tag.value}" for tag in request.email_tags)
        headers.append(("X-SES-MESSAGE-TAGS", tags))
    if request.configuration_set_name:
        headers.append(("X-SES-CONFIGURATION-SET", request.configuration_set_name))
    return OutgoingMail(
        author=_author(request.from_email_address),
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=read_people("ReplyToAddresses", request.reply_to_addresses),
        subject=subject,
        text=text,
        html=html,
        headers=make_headers("Headers", headers),
        files=tuple(map(_file_of, attachments)),
        returns_to=_returns_to(request.feedback_forwarding_email_address),
    )


_Parts = tuple[str, str | None, str | None, list[tuple[str, str]], Sequence[Attachment]]


def _parts_of(content: Content) -> _Parts:
    if content.simple is not None:
        simple, body = content.simple, content.simple.body
        text = None if body.text is None else body.text.data
        html = None if body.html is None else body.html.data
        require_bodies("Body", text, html)
        headers = [(header.name, header.value) for header in simple.headers or ()]
        return simple.subject.data, text, html, headers, simple.attachments or ()
    template = content.template
    if template is None:
        raise FieldMissing("Content", "Content must have Simple, Raw or Template")
    name = template.template_name or template.template_arn or "inline"
    shown = Template(name, _values(template.template_data)).text
    inline = template.template_content or TemplateContent()
    headers = [(header.name, header.value) for header in template.headers or ()]
    headers.append(("X-Template", name))
    text = f"{shown}\n{inline.text}" if inline.text else shown
    return inline.subject or "", text, inline.html, headers, template.attachments or ()


def _values(text: str | None) -> Any:
    try:
        return decode_json(text or "{}")
    except ValueError:
        raise InvalidParameter("TemplateData", "TemplateData must be JSON") from None


def raw_mail(
    raw: bytes, sender: str | None, people: Sequence[Person], returns_to: str | None = None
) -> RawMail:
    """Return a raw mail, by default for the recipients of its header.

    :param returns_to: the address for bounces, if it is not that of the author.
    :raises InvalidParameter: it has no sender or no recipients.
    """
    # The newer policies parse each field, and fail for some that are malformed.
    message = BytesParser(policy=compat32).parsebytes(raw, headersonly=True)
    author = _author(sender or str(message.get("From", "")))
    everyone = list(people)
    if not everyone:
        for name in ("To", "Cc", "Bcc"):
            everyone += read_people(name, [str(value) for value in message.get_all(name, [])])
    require_few("recipients", everyone)
    if not everyone:
        raise FieldMissing("Destination", "the mail has no recipients")
    recipients: dict[object, Mailbox] = {
        person.mailbox.folded: person.mailbox for person in everyone
    }
    envelope_sender = str((_returns_to(returns_to) or author).mailbox)
    return RawMail(envelope_sender, tuple(recipients.values()), raw)


def _author(text: str | None) -> Person:
    """Return the author.

    SES sends for verified identities. Here they all are, except names that cannot exist (RFC 6761
    6.4): Nodemailer verifies an account by a mail from ``invalid@invalid``, which must be rejected.
    """
    people = read_people("FromEmailAddress", text)
    if len(people) != 1:
        raise FieldMissing("FromEmailAddress", "FromEmailAddress must be one address")
    if people[0].mailbox.domain.lower().rpartition(".")[2] == NEVER_VERIFIED:
        raise RecipientUnknown(f"Email address is not verified: {people[0].mailbox}")
    return people[0]


def _returns_to(text: str | None) -> Person | None:
    people = read_people("FeedbackForwardingEmailAddress", text or [])
    return people[0] if people else None


def _file_of(attachment: Attachment) -> File:
    return File(
        attachment.file_name,
        attachment.content_type or "",
        decode_base64("Attachments.RawContent", attachment.raw_content),
        attachment.content_id or "",
        is_inline=attachment.content_disposition == "INLINE",
        description=attachment.content_description or "",
    )


def answer_email(sent: Submission) -> Reply:
    """Return the id of the mail."""
    return _response({"MessageId": sent.outcomes[0].id}, sent.posting)


def answer_bulk(sent: Submission) -> Reply:
    """Return the outcome of each mail."""
    results = [_result_of(outcome) for outcome in sent.outcomes]
    return _response({"BulkEmailEntryResults": results}, sent.posting)


def _result_of(outcome: Outcome) -> Mapping[str, str]:
    if outcome.failure is None:
        return {"Status": "SUCCESS", "MessageId": outcome.id}
    kind = kind_of(outcome.failure)
    status = "ACCOUNT_THROTTLED" if kind is LimitExceeded else "FAILED"
    return {"Status": status, "Error": str(outcome.failure)}


def tell_account(posting: Posting) -> Reply:
    """Return the facts of the account, which may send to any address."""
    facts: dict[str, object] = {
        "DedicatedIpAutoWarmupEnabled": False,
        "EnforcementStatus": "HEALTHY",
        "ProductionAccessEnabled": True,
        "SendQuota": QUOTA,
        "SendingEnabled": True,
        "SuppressionAttributes": {"SuppressedReasons": []},
    }
    return _response(facts, posting)


def list_identities(posting: Posting) -> Reply:
    """Return the domain of this server, which stands for all identities."""
    facts = {"IdentityName": posting.domain, "VerificationStatus": "SUCCESS"}
    identity = {"IdentityType": "DOMAIN", "SendingEnabled": True, **facts}
    return _response({"EmailIdentities": [identity]}, posting)


def tell_identity(posting: Posting) -> Reply:
    """Return the facts of any identity, which is verified."""
    facts = {
        **_identity(posting.path["identity"]),
        "FeedbackForwardingStatus": False,
        "Policies": {},
        "Tags": [],
        "VerificationStatus": "SUCCESS",
    }
    return _response(facts, posting)


def create_identity(posting: Posting) -> Reply:
    """Return the facts of an identity, as if it was created. Nothing is stored."""
    request = convert(read_json(posting), CreateIdentity)
    return _response(_identity(request.email_identity), posting)


def _identity(name: str) -> dict[str, object]:
    return {
        "IdentityType": "EMAIL_ADDRESS" if "@" in name else "DOMAIN",
        "VerifiedForSendingStatus": True,
        "DkimAttributes": {"SigningEnabled": False, "Status": "SUCCESS"},
    }


def list_nothing(name: str, posting: Posting) -> Reply:
    """Return an empty list."""
    return _response({name: []}, posting)


def _response(value: object, posting: Posting) -> Reply:
    return json_reply(value, headers={"x-amzn-RequestId": request_id(posting)})


SIMULATOR = "simulator.amazonses.com"

SUPPRESSED = f"suppressionlist@{SIMULATOR}"
"""The test recipient that is reported as suppressed."""


def write_event(event: Event) -> object:
    """Return an event of SES in a notification of SNS, which is not signed."""
    at = format_instant(event.at)
    recipients: list[dict[str, str]] = [{"emailAddress": event.recipient}]
    feedback = {"feedbackId": event.id, "timestamp": at}
    if event.kind is EventKind.BOUNCED:
        is_suppressed = "@".join(fold_test_recipient(event.recipient)) == SUPPRESSED
        recipients[0] |= {
            "action": "failed",
            "status": "5.1.1",
            "diagnosticCode": f"smtp; {BOUNCE}",
        }
        facts: dict[str, object] = {
            "bounceType": "Permanent",
            "bounceSubType": "Suppressed" if is_suppressed else "General",
            "bouncedRecipients": recipients,
            "reportingMTA": "dsn; mailcheck",
            **feedback,
        }
    elif event.kind is EventKind.COMPLAINED:
        facts = {"complainedRecipients": recipients, "complaintFeedbackType": "abuse", **feedback}
    elif event.kind is EventKind.OPENED:
        facts = {"timestamp": at, "userAgent": "mailcheck", "ipAddress": "127.0.0.1"}
    else:
        facts = {
            "timestamp": at,
            "processingTimeMillis": 0,
            "recipients": [event.recipient],
            "smtpResponse": "250 OK",
            "reportingMTA": "mailcheck",
        }
    name = _EVENT_TYPES[event.kind]
    mail = {
        "timestamp": at,
        "source": event.author,
        "sendingAccountId": "123456789012",
        "messageId": event.delivery_id,
        "destination": [event.recipient],
        "headersTruncated": True,
        "headers": [],
        "commonHeaders": {
            "from": [event.author],
            "to": [event.recipient],
            "messageId": f"<{event.message_id}>",
            "subject": event.subject,
        },
        "tags": {tag["Name"]: [tag["Value"]] for tag in event.sent.get("EmailTags") or ()},
    }
    message = {"eventType": name, name.lower(): facts, "mail": mail}
    return {
        "Type": "Notification",
        "MessageId": event.id,
        "TopicArn": "arn:aws:sns:us-east-1:123456789012:mailcheck",
        "Subject": "Amazon SES Email Event Notification",
        "Message": dump_json(message).decode(),
        "Timestamp": at,
        "SignatureVersion": "1",
        "Signature": "",
        "SigningCertURL": "",
        "UnsubscribeURL": "",
    }


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of SES. The SDKs choose their exception by the header."""
    return json_reply({"message": message}, status, {"x-amzn-ErrorType": code})


SES = Provider(
    name="ses",
    read_key=read_key,
    verify=verify,
    routes=(
        SendRoute("/v2/email/outbound-emails", read_email, answer_email),
        SendRoute("/v2/email/outbound-bulk-emails", read_bulk, answer_bulk, is_partial=True),
        AskRoute("/v2/email/account", tell_account),
        AskRoute("/v2/email/identities", list_identities),
        AskRoute("/v2/email/list-identities", list_identities, "POST"),
        AskRoute("/v2/email/identities", create_identity, "POST"),
        AskRoute("/v2/email/identities/<identity>", tell_identity),
        AskRoute("/v2/email/configuration-sets", partial(list_nothing, "ConfigurationSets")),
        AskRoute(
            "/v2/email/list-configuration-sets", partial(list_nothing, "ConfigurationSets"), "POST"
        ),
        AskRoute("/v2/email/templates", partial(list_nothing, "TemplatesMetadata")),
        AskRoute(
            "/v2/email/suppression/addresses",
            partial(list_nothing, "SuppressedDestinationSummaries"),
        ),
    ),
    statuses={
        KeyMissing: (403, "MissingAuthenticationTokenException"),
        InvalidCredentials: (403, "UnrecognizedClientException"),
        WrongSignature: (403, "InvalidSignatureException"),
        NotPermitted: (403, "AccessDeniedException"),
        BadBody: (400, "SerializationException"),
        InvalidParameter: (400, "BadRequestException"),
        MailTooLarge: (413, "BadRequestException"),
        PathUnknown: (404, "NotFoundException"),
        WrongMethod: (405, "UnknownOperationException"),
        LimitExceeded: (429, "TooManyRequestsException"),
        InboxFull: (400, "LimitExceededException"),
        RecipientUnknown: (400, "MessageRejected"),
        RequestRepeated: (409, "ConflictException"),
        ExpectedFailure: (503, "ServiceUnavailableException"),
        Crash: (500, "InternalServiceErrorException"),
    },
    write_error=write_error,
    write_event=write_event,
    test_recipients={
        f"bounce@{SIMULATOR}": EventKind.BOUNCED,
        f"complaint@{SIMULATOR}": EventKind.COMPLAINED,
        SUPPRESSED: EventKind.BOUNCED,
    },
    switches=(
        ("@aws-sdk/client-sesv2 (npm)", "the environment variable `AWS_ENDPOINT_URL={base}`"),
        ("boto3 (PyPI)", "`boto3.client('sesv2', endpoint_url='{base}')`"),
        (
            "django-anymail",
            "`ANYMAIL = {{'AMAZON_SES_CLIENT_PARAMS': {{'endpoint_url': '{base}'}}}}`",
        ),
    ),
    support=(
        Support("`SendEmail` of version 2: simple and raw", Like.SAME),
        Support(
            "Signature Version 4",
            Like.SAME,
            "the API key is the access key id and the secret access key; the date is not checked",
        ),
        Support("`EmailTags`, `ConfigurationSetName`", Like.SAME, "as X-SES-... in the mail"),
        Support("errors", Like.SAME, "the SDKs raise their own exceptions"),
        Support("templates, `SendBulkEmail`", Like.CLOSE, "the text contains name and values"),
        Support("`FeedbackForwardingEmailAddress`", Like.SAME, "as the sender of the envelope"),
        Support(
            "senders below the domain `invalid`",
            Like.SAME,
            "rejected with `MessageRejected`; `verify` of Nodemailer sends such a mail",
        ),
        Support(
            "`GetAccount`, `ListEmailIdentities`, `GetEmailIdentity`, `CreateEmailIdentity`",
            Like.CLOSE,
            "each identity is verified, and the quota is fixed",
        ),
        Support(
            "`ListConfigurationSets`, `ListEmailTemplates`, `ListSuppressedDestinations`",
            Like.CLOSE,
            "the lists are empty",
        ),
        Support(
            "notifications over SNS: `Delivery`, `Bounce`, `Complaint`, `Open`",
            Like.CLOSE,
            "not signed: the certificate of SNS cannot be verified offline",
        ),
        Support(
            f"the addresses of the mailbox simulator at `{SIMULATOR}`, with labels",
            Like.SAME,
            "`success`, `bounce`, `complaint`, `ooto`, `suppressionlist`, in notifications; the"
            " mail is in the inbox, and no automatic reply is sent",
        ),
        Support("other calls", Like.NOT_OFFERED),
    ),
    ignored=(
        *("FromEmailAddressIdentityArn", "FeedbackForwardingEmailAddressIdentityArn"),
        *("EndpointId", "TenantName", "ListManagementOptions", "ConfigurationOverrides"),
        "ContentTransferEncoding",
    ),
)
