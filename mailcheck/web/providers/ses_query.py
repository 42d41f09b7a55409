"""The query API of Amazon SES, version 1: forms, and answers in XML."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
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
)
from mailcheck.operations.write_mail import OutgoingMail, RawMail, read_people
from mailcheck.web.providers.bodies import Form, decode_base64, read_form, require_few
from mailcheck.web.providers.provider import (
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
from mailcheck.web.providers.ses import (
    MAX_BULK,
    QUOTA,
    Body,
    BulkContent,
    BulkEntry,
    Content,
    Destination,
    Header,
    NamedTemplate,
    Replacement,
    ReplacementContent,
    SendBulkEmail,
    SendEmail,
    Simple,
    Text,
    mail_of,
    mails_of,
    raw_mail,
)
from mailcheck.web.providers.signatures import read_key, request_id, verify
from mailcheck.web.site.failures import Crash, PathUnknown, WrongMethod
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply

NAMESPACE = "http://ses.amazonaws.com/doc/2010-12-01/"
XML = "text/xml"
BULK = "SendBulkTemplatedEmail"

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

MAX_IDENTITIES = 100
"""Maximum number of identities of a question."""


def read_mail(posting: Posting) -> Mails | Reply:
    """Return the mails of an action, or the answer to a question."""
    form = read_form(posting)
    action = form.require("Action")
    if action in QUESTIONS:
        return _response(action, QUESTIONS[action](form, posting), posting)
    read = ACTIONS.get(action)
    if read is None:
        known = ", ".join((*ACTIONS, *QUESTIONS))
        raise InvalidParameter(
            "Action", f"Action {action[:100]!r} is not offered; there are {known}"
        )
    source, shown = form.shown, {"action": action}
    return (Sending(mail, source, shown) for mail in read(form))


def _read_raw(form: Form) -> Iterable[OutgoingMail | RawMail]:
    raw = decode_base64("RawMessage.Data", form.require("RawMessage.Data"))
    people = read_people("Destinations", _members(form, "Destinations"))
    return [raw_mail(raw, form.get("Source"), people)]


def _read_simple(form: Form) -> Iterable[OutgoingMail | RawMail]:
    text, html = form.get("Message.Body.Text.Data"), form.get("Message.Body.Html.Data")
    simple = Simple(
        Text(form.require("Message.Subject.Data")),
        Body(None if text is None else Text(text), None if html is None else Text(html)),
    )
    return [_mail_of(form, Content(simple=simple))]


def _read_templated(form: Form) -> Iterable[OutgoingMail | RawMail]:
    return [_mail_of(form, Content(template=_template(form, "TemplateData")))]


def _template(form: Form, data: str) -> NamedTemplate:
    return NamedTemplate(form.require("Template"), template_data=form.get(data))


def _mail_of(form: Form, content: Content) -> OutgoingMail | RawMail:
    return mail_of(
        SendEmail(
            content,
            form.get("Source"),
            _destination(form, "Destination."),
            _members(form, "ReplyToAddresses"),
            _tags(form, "Tags"),
            configuration_set_name=form.get("ConfigurationSetName"),
            feedback_forwarding_email_address=form.get("ReturnPath"),
        )
    )


def _read_bulk(form: Form) -> Iterable[OutgoingMail | RawMail]:
    template = _template(form, "DefaultTemplateData")
    numbers = dict.fromkeys(
        name.partition(".")[0] for name, _ in form.beginning("Destinations.member.")
    )
    require_few("Destinations", [*numbers], MAX_BULK, "destinations")
    if not numbers:
        raise FieldMissing("Destinations", "`Destinations` is missing")
    request = SendBulkEmail(
        BulkContent(template),
        [_entry(form, f"Destinations.member.{number}.") for number in numbers],
        form.get("Source"),
        _members(form, "ReplyToAddresses"),
        _tags(form, "DefaultTags"),
        configuration_set_name=form.get("ConfigurationSetName"),
        feedback_forwarding_email_address=form.get("ReturnPath"),
    )
    return mails_of(request)


def _entry(form: Form, place: str) -> BulkEntry:
    data = form.get(f"{place}ReplacementTemplateData")
    own = None if data is None else ReplacementContent(Replacement(data))
    tags = _tags(form, f"{place}ReplacementTags")
    return BulkEntry(_destination(form, f"{place}Destination."), own, tags)


def _destination(form: Form, place: str) -> Destination:
    names = ("ToAddresses", "CcAddresses", "BccAddresses")
    return Destination(*(_members(form, f"{place}{name}") for name in names))


def _members(form: Form, name: str) -> list[str]:
    return [value for place, value in form.beginning(f"{name}.member.") if place.isdigit()]


def _tags(form: Form, name: str) -> list[Header]:
    given = form.beginning(f"{name}.member.")
    names, values = [pair for pair in given if pair[0].endswith(".Name")], dict(given)
    return [Header(tag, values.get(place.replace(".Name", ".Value"), "")) for place, tag in names]


ACTIONS: Mapping[str, Callable[[Form], Iterable[OutgoingMail | RawMail]]] = {
    "SendEmail": _read_simple,
    "SendRawEmail": _read_raw,
    "SendTemplatedEmail": _read_templated,
    BULK: _read_bulk,
}
"""The actions that send mail."""


def _text(name: str, value: str) -> str:
    return f"<{name}>{escape(_NOT_XML.sub('?', value))}</{name}>"


def _list(name: str, values: Iterable[str]) -> str:
    return f"<{name}>{''.join(_text('member', value) for value in values)}</{name}>"


def _tell_identities(name: str, facts: str, form: Form, _: Posting) -> str:
    asked = _members(form, "Identities")
    require_few("Identities", asked, MAX_IDENTITIES, "identities")
    entries = (
        f"<entry>{_text('key', identity)}<value>{facts}</value></entry>" for identity in asked
    )
    return f"<{name}>{''.join(entries)}</{name}>"


def _tell_quota(_: Form, __: Posting) -> str:
    return "".join(_text(name, str(value)) for name, value in QUOTA.items())


def _list_identities(form: Form, posting: Posting) -> str:
    is_wanted = form.get("IdentityType") in (None, "", "Domain")
    return _list("Identities", [posting.domain] if is_wanted else [])


def _tell(text: str, _: Form, __: Posting) -> str:
    return text


_VERIFIED = _text("VerificationStatus", "Success")
_DKIM = _text("DkimEnabled", "false") + _text("DkimVerificationStatus", "Success")

QUESTIONS: Mapping[str, Callable[[Form, Posting], str]] = {
    "GetAccountSendingEnabled": partial(_tell, _text("Enabled", "true")),
    "GetIdentityDkimAttributes": partial(_tell_identities, "DkimAttributes", _DKIM),
    "GetIdentityVerificationAttributes": partial(
        _tell_identities, "VerificationAttributes", _VERIFIED
    ),
    "GetSendQuota": _tell_quota,
    "GetSendStatistics": partial(_tell, _list("SendDataPoints", ())),
    "ListConfigurationSets": partial(_tell, _list("ConfigurationSets", ())),
    "ListIdentities": _list_identities,
    "ListTemplates": partial(_tell, _list("TemplatesMetadata", ())),
    "ListVerifiedEmailAddresses": partial(_tell, _list("VerifiedEmailAddresses", ())),
    "VerifyDomainIdentity": partial(_tell, _text("VerificationToken", "mailcheck")),
    "VerifyEmailAddress": partial(_tell, ""),
    "VerifyEmailIdentity": partial(_tell, ""),
}
"""The actions that ask about the account, with the content of their results. Each address may send,
so verifying one changes nothing."""


def answer(sent: Submission) -> Reply:
    """Return the ids of the mails in the element that is named after the action.

    :raises ExpectedFailure: the only mail of an action was rejected.
    """
    action = sent.outcomes[0].shown["action"]
    if action == BULK:
        results = "".join(f"<member>{_status(outcome)}</member>" for outcome in sent.outcomes)
        return _response(action, f"<Status>{results}</Status>", sent.posting)
    if sent.outcomes[0].failure is not None:
        raise sent.outcomes[0].failure
    return _response(action, _text("MessageId", sent.outcomes[0].id), sent.posting)


def _status(outcome: Outcome) -> str:
    if outcome.failure is None:
        return _text("Status", "Success") + _text("MessageId", outcome.id)
    is_busy = kind_of(outcome.failure) is LimitExceeded
    status = "AccountThrottled" if is_busy else "Failed"
    return _text("Status", status) + _text("Error", str(outcome.failure))


def _response(action: str, result: str, posting: Posting) -> Reply:
    number = request_id(posting)
    text = (
        f'<{action}Response xmlns="{NAMESPACE}"><{action}Result>{result}</{action}Result>'
        f"<ResponseMetadata>{_text('RequestId', number)}</ResponseMetadata></{action}Response>"
    )
    return Reply(200, text.encode("utf-8", "replace"), XML, {"x-amzn-RequestId": number})


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of SES as XML."""
    kind = "Sender" if status < 500 else "Receiver"
    text = (
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{kind}</Type><Code>{code}</Code>'
        f"{_text('Message', message)}</Error><RequestId>mailcheck</RequestId></ErrorResponse>"
    )
    return Reply(status, text.encode("utf-8", "replace"), XML)


SES_QUERY = Provider(
    name="ses",
    read_key=read_key,
    verify=verify,
    routes=tuple(SendRoute(path, read_mail, answer, is_partial=True) for path in ("", "/")),
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
        ExpectedFailure: (503, "ServiceUnavailable"),
        Crash: (500, "InternalFailure"),
    },
    write_error=write_error,
    switches=(("boto3 (PyPI), version 1", "`boto3.client('ses', endpoint_url='{base}')`"),),
    support=(
        Support("`SendEmail`, `SendRawEmail` of version 1, the query API in XML", Like.SAME),
        Support(
            "`SendTemplatedEmail`, `SendBulkTemplatedEmail` of version 1",
            Like.CLOSE,
            "the text contains name and values",
        ),
        Support("`ReturnPath` of version 1", Like.SAME, "as the sender of the envelope"),
        Support(
            f"questions of version 1: {', '.join(f'`{question}`' for question in QUESTIONS)}",
            Like.CLOSE,
            "each identity is verified, the quota is fixed, and lists are empty",
        ),
        Support(
            "`Tags`, `ConfigurationSetName` of a raw mail",
            Like.NOT_OFFERED,
            "accepted; the mail is stored byte for byte",
        ),
    ),
    ignored=("SourceArn", "FromArn", "ReturnPathArn"),
)
