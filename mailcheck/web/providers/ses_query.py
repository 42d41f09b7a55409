"""The query API of Amazon SES, version 1: forms, and answers in XML."""

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

from mailcheck.core.errors import InvalidParameter
from mailcheck.web.providers.bodies import Form, decode_base64, read_form
from mailcheck.web.providers.mime import read_people
from mailcheck.web.providers.provider import (
    Like,
    Posting,
    Problem,
    Provider,
    Response,
    Sending,
    SendRoute,
    Sent,
    Support,
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

NAMESPACE = "http://ses.amazonaws.com/doc/2010-12-01/"
XML = "text/xml"
ACTIONS = ("SendEmail", "SendRawEmail", "SendTemplatedEmail")


def read_mail(posting: Posting) -> Sequence[Sending | InvalidParameter]:
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


def answer(sent: Sent) -> Response:
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
        Problem.NO_KEY: (403, "MissingAuthenticationToken"),
        Problem.WRONG_KEY: (403, "InvalidClientTokenId"),
        Problem.WRONG_SIGNATURE: (403, "SignatureDoesNotMatch"),
        Problem.NOT_PERMITTED: (403, "AccessDenied"),
        Problem.NO_JSON: (400, "MalformedQueryString"),
        Problem.MISSING: (400, "MissingParameter"),
        Problem.INVALID: (400, "InvalidParameterValue"),
        Problem.TOO_LARGE: (413, "InvalidParameterValue"),
        Problem.NOT_FOUND: (404, "InvalidAction"),
        Problem.WRONG_METHOD: (405, "InvalidAction"),
        Problem.TOO_MANY: (400, "Throttling"),
        Problem.QUOTA: (400, "LimitExceeded"),
        Problem.REJECTED: (400, "MessageRejected"),
        Problem.OTHER_REQUEST: (400, "InvalidParameterValue"),
        Problem.STILL_RUNNING: (400, "InvalidParameterValue"),
        Problem.UNAVAILABLE: (503, "ServiceUnavailable"),
        Problem.INTERNAL: (500, "InternalFailure"),
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
