"""Routes of Mailgun: ``forward()``, and ``store()`` with a notification."""

from collections.abc import Mapping, Sequence

from mailcheck.api.shapes import dump_json
from mailcheck.core.inbound import (
    InboundMail,
    InboundMoment,
    InboundRequest,
    InboundRoute,
    InboundVerdict,
)
from mailcheck.web.providers.inbound.forms import (
    URLENCODED,
    FormFile,
    write_multipart,
    write_urlencoded,
)
from mailcheck.web.providers.inbound.quotes import strip_html
from mailcheck.web.providers.inbound.received import ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.signing import authorized, digest_of, signed_by_mailgun
from mailcheck.web.providers.inbound.trace import on_top

Pairs = list[tuple[str, str]]

_SPF = {
    InboundVerdict.PASS: "Pass",
    InboundVerdict.NEUTRAL: "Neutral",
    InboundVerdict.FAIL: "Fail",
    InboundVerdict.SOFTFAIL: "SoftFail",
}
_DKIM = {InboundVerdict.PASS: "Pass", InboundVerdict.FAIL: "Fail"}


def write_parsed(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the request of ``forward()`` with the fields of the mail."""
    received = ReceivedMail(mail.raw_message)
    fields = [*parsed_fields(mail, received), *signed_by_mailgun(route, moment)]
    headers = authorized(route, moment)
    if not received.files:
        return _urlencoded(route, headers, fields)
    fields.append(("attachment-count", str(len(received.files))))
    inline = {
        f"<{file.content_id}>": f"attachment-{file.number}"
        for file in received.files
        if file.content_id
    }
    if inline:
        fields.append(("content-id-map", dump_json(inline).decode()))
    files = [
        FormFile(
            f"attachment-{file.number}",
            file.filename,
            file.full_type,
            file.data,
        )
        for file in received.files
    ]
    content_type, body = write_multipart(fields, files, digest_of(mail.id).hex()[:32])
    return InboundRequest(route.url, (("Content-Type", content_type), *headers), body)


def write_mime(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the request of ``forward()`` to a URL that ends in ``mime``."""
    received = ReceivedMail(mail.raw_message)
    results = results_of(mail)
    fields: list[tuple[str, str | bytes]] = [
        *head_fields(mail, received),
        ("body-mime", on_top(received.raw_message, *results)),
        *_header_fields(received, results),
        *signed_by_mailgun(route, moment),
    ]
    return _urlencoded(route, authorized(route, moment), fields)


def write_stored(
    mail: InboundMail, route: InboundRoute, moment: InboundMoment, base: str
) -> InboundRequest:
    """Return the request of ``store(notify=...)``.

    ``base`` is the URL of Mailgun's API here. The application gets the files from there.
    """
    received = ReceivedMail(mail.raw_message)
    url = message_url(base, mail)
    fields = [
        *parsed_fields(mail, received),
        ("domain", domain_of(mail)),
        ("message-url", url),
        *signed_by_mailgun(route, moment),
    ]
    if received.files:
        files = stored_files(received, url)
        fields.append(("attachments", dump_json(files).decode()))
        fields.append(("content-id-map", dump_json(stored_ids(received, url)).decode()))
    return _urlencoded(route, authorized(route, moment), fields)


def message_url(base: str, mail: InboundMail) -> str:
    """Return the URL of a stored mail."""
    return f"{base}/v3/domains/{domain_of(mail)}/messages/{mail.id}"


def domain_of(mail: InboundMail) -> str:
    """Return the domain of the first recipient."""
    return mail.recipients[0].rpartition("@")[2] if mail.recipients else ""


def stored_files(received: ReceivedMail, url: str) -> Sequence[Mapping[str, object]]:
    """Return the files of a stored mail, whose URLs are numbered from 0."""
    return [
        {
            "url": _file_url(url, file),
            "content-type": file.content_type,
            "name": file.filename,
            "size": len(file.data),
        }
        for file in received.files
    ]


def stored_ids(received: ReceivedMail, url: str) -> Mapping[str, str]:
    """Return the URLs of the files with a Content-ID."""
    return {
        f"<{file.content_id}>": _file_url(url, file) for file in received.files if file.content_id
    }


def _file_url(url: str, file: ReceivedFile) -> str:
    return f"{url}/attachments/{file.number - 1}"


def parsed_fields(mail: InboundMail, received: ReceivedMail) -> Pairs:
    """Return the fields of a parsed mail, without its files and without a signature."""
    results = results_of(mail)
    reply = received.reply
    fields = [
        *head_fields(mail, received),
        ("body-plain", _with_crlf(received.words)),
        ("stripped-text", _with_crlf(reply.text)),
        ("stripped-signature", _with_crlf(reply.signature)),
    ]
    if received.html is not None:
        fields.append(("body-html", received.html.text))
        fields.append(("stripped-html", strip_html(received.html.text)))
    fields.append(("message-headers", dump_json(header_pairs(received, results)).decode()))
    return [*fields, *_header_fields(received, results)]


def results_of(mail: InboundMail) -> Pairs:
    """Return the fields with the results of checks, which Mailgun puts on top of a mail."""
    verdicts = mail.verdicts
    found = [("X-Mailgun-Incoming", "Yes"), ("X-Envelope-From", f"<{mail.envelope_sender}>")]
    if verdicts.spf in _SPF:
        found.append(("X-Mailgun-Spf", _SPF[verdicts.spf]))
    if verdicts.dkim in _DKIM:
        found.append(("X-Mailgun-Dkim-Check-Result", _DKIM[verdicts.dkim]))
    found.append(("X-Mailgun-Sflag", "Yes" if verdicts.is_spam else "No"))
    found.append(("X-Mailgun-Sscore", f"{verdicts.spam_score:g}"))
    return found


def header_pairs(received: ReceivedMail, results: Pairs) -> list[tuple[str, str]]:
    """Return all header fields with their names capitalised as Mailgun does."""
    return [
        *results,
        *((_capitalised(field.name), field.decode().strip()) for field in received.fields),
    ]


def _header_fields(received: ReceivedMail, results: Pairs) -> Pairs:
    """Return each header field as a field of the form, the first one of each name."""
    found: dict[str, str] = {}
    for name, value in header_pairs(received, results):
        found.setdefault(name, value)
    return list(found.items())


def head_fields(mail: InboundMail, received: ReceivedMail) -> Pairs:
    """Return the envelope, the author and the subject."""
    return [
        ("recipient", mail.recipients[0] if mail.recipients else ""),
        ("sender", mail.envelope_sender),
        ("from", received.shown("from")),
        ("subject", received.find("subject")),
    ]


def _capitalised(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


def _with_crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _urlencoded(
    route: InboundRoute,
    headers: Sequence[tuple[str, str]],
    fields: Sequence[tuple[str, str | bytes]],
) -> InboundRequest:
    body = write_urlencoded(fields)
    return InboundRequest(route.url, (("Content-Type", URLENCODED), *headers), body)
