"""The query API of Amazon SES, version 1: forms, and answers in XML."""

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape

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
from mailcheck.web.providers.bodies import Form, decode_base64, read_form
from mailcheck.web.providers.mime import read_people
from mailcheck.web.providers.provider import (
    BadBody,
    FieldMissing,
    KeyMissing,
    Posting,
    Provider,
    Response,
    Sending,
    SendRoute,
    Submission,
    Support,
    WrongSignature,
)
from mailcheck.web.providers.ses import (
    Body,
    Content,
    Destination,
    Header,
    NamedTemplate,
    SendEmail,
    Simple,
    Text,
    mail_of,
    raw_mail,
)
from mailcheck.web.providers.signatures import read_key, verify
from mailcheck.web.site.failures import Crash, PathUnknown, WrongMethod
from mailcheck.web.site.likeness import Like

NAMESPACE = "http://ses.amazonaws.com/doc/2010-12-01/"
XML = "text/xml"
ACTIONS = ("SendEmail", "SendRawEmail", "SendTemplatedEmail")


def read_mail(posting: Posting) -> Iterable[Sending | InvalidParameter]:
    """Return the mail of one of the `ACTIONS`."""
    form = read_form(posting)
    action = form.require("Action")
    if action not in ACTIONS:
        known = ", ".join(ACTIONS)
        raise InvalidParameter(
            "Action", f"Action {action[:100]!r} is not offered; there are {known}"
        )
    shown = {"action": action}
    if action == "SendRawEmail":
        raw = decode_base64("RawMessage.Data", form.require("RawMessage.Data"))
        people = read_people("Destinations", _members(form, "Destinations"))
        return [Sending(raw_mail(raw, form.get("Source"), people), form.shown, shown)]
    if action == "SendEmail":
        content = Content(simple=_simple(form))
    else:
        name, data = form.require("Template"), form.get("TemplateData")
        content = Content(template=NamedTemplate(template_name=name, template_data=data))
    request = SendEmail(
        content,
        form.get("Source"),
        Destination(
            _members(form, "Destination.ToAddresses"),
            _members(form, "Destination.CcAddresses"),
            _members(form, "Destination.BccAddresses"),
        ),
        _members(form, "ReplyToAddresses"),
        _tags(form),
        form.get("ConfigurationSetName"),
    )
    return [Sending(mail_of(request), form.shown, shown)]


def _simple(form: Form) -> Simple:
    text, html = form.get("Message.Body.Text.Data"), form.get("Message.Body.Html.Data")
    return Simple(
        Text(form.require("Message.Subject.Data")),
        Body(None if text is None else Text(text), None if html is None else Text(html)),
    )


def _members(form: Form, name: str) -> list[str]:
    return [value for place, value in form.beginning(f"{name}.member.") if place.isdigit()]


def _tags(form: Form) -> list[Header]:
    names = [one for one in form.beginning("Tags.member.") if one[0].endswith(".Name")]
    values = dict(form.beginning("Tags.member."))
    return [Header(name, values.get(place.replace(".Name", ".Value"), "")) for place, name in names]


def answer(sent: Submission) -> Response:
    """Return the id of the mail in the element that is named after the action."""
    outcome = sent.outcomes[0]
    action = outcome.shown["action"]
    return Response(
        200,
        f'<{action}Response xmlns="{NAMESPACE}"><{action}Result><MessageId>{outcome.id}</MessageId>'
        f"</{action}Result><ResponseMetadata><RequestId>{outcome.id}</RequestId></ResponseMetadata>"
        f"</{action}Response>".encode(),
        XML,
    )


def write_error(status: int, code: str, message: str) -> Response:
    """Return an error of SES as XML."""
    kind = "Sender" if status < 500 else "Receiver"
    shown = escape(_NOT_XML.sub("?", message))
    return Response(
        status,
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{kind}</Type><Code>{code}</Code>'
        f"<Message>{shown}</Message></Error><RequestId>mailcheck</RequestId></ErrorResponse>".encode(
            "utf-8", "replace"
        ),
        XML,
    )


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


SES_QUERY = Provider(
    name="ses",
    read_key=read_key,
    verify=verify,
    routes=(SendRoute("", read_mail, answer), SendRoute("/", read_mail, answer)),
    statuses={
        KeyMissing: (403, "MissingAuthenticationToken"),
        InvalidCredentials: (403, "InvalidClientTokenId"),
        WrongSignature: (403, "SignatureDoesNotMatch"),
        NotPermitted: (403, "AccessDenied"),
        BadBody: (400, "MalformedQueryString"),
        FieldMissing: (400, "MissingParameter"),
        InvalidParameter: (400, "InvalidParameterValue"),
        MailTooLarge: (413, "InvalidParameterValue"),
        PathUnknown: (404, "InvalidAction"),
        WrongMethod: (405, "InvalidAction"),
        LimitExceeded: (400, "Throttling"),
        InboxFull: (400, "LimitExceeded"),
        RecipientUnknown: (400, "MessageRejected"),
        RequestRepeated: (400, "InvalidParameterValue"),
        RequestRunning: (400, "InvalidParameterValue"),
        ExpectedFailure: (503, "ServiceUnavailable"),
        Crash: (500, "InternalFailure"),
    },
    write_error=write_error,
    switches=(("boto3 (PyPI), version 1", "`boto3.client('ses', endpoint_url='{base}')`"),),
    support=(
        Support(
            "`SendEmail`, `SendRawEmail` of version 1, the query API in XML",
            Like.SAME,
        ),
        Support(
            "`SendTemplatedEmail` of version 1", Like.CLOSE, "the text contains name and values"
        ),
    ),
)
