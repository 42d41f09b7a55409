"""Inbound Parse of SendGrid."""

import re
from collections.abc import Sequence

from mailcheck.api.shapes import dump_json
from mailcheck.core.inbound import (
    InboundMail,
    InboundMoment,
    InboundRequest,
    InboundRoute,
    InboundVerdict,
)
from mailcheck.web.providers.inbound.forms import FormFile, write_multipart
from mailcheck.web.providers.inbound.received import UTF_8, ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.signing import authorized, digest_of, signed_by_sendgrid
from mailcheck.web.providers.inbound.trace import mail_date

BOUNDARY = "xYzZY"

_UNSAFE = re.compile(r"[^\w .()@+-]")


def write_fields(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the request with the fields of the mail. Texts stay in their charsets."""
    received = ReceivedMail(mail.raw_message)
    fields, charsets = _common_fields(mail, received)
    lines = [f"{field.name}: {field.as_text()}" for field in received.fields]
    fields.insert(0, ("headers", "".join(f"{line}\n" for line in (_trace(mail), *lines))))
    for name, body in (("text", received.text), ("html", received.html)):
        if body is not None:
            fields.append((name, body.data))
            charsets[name] = body.charset
    fields.append(("attachments", str(len(received.files))))
    if received.files:
        facts = {f"attachment{file.number}": _facts_of(file) for file in received.files}
        fields.append(("attachment-info", dump_json(facts)))
    inline = {
        file.content_id: f"attachment{file.number}" for file in received.files if file.content_id
    }
    if inline:
        fields.append(("content-ids", dump_json(inline)))
    fields.append(("charsets", dump_json(charsets)))
    files = [
        FormFile(
            f"attachment{file.number}",
            file.filename or f"attachment{file.number}",
            file.full_type,
            file.data,
        )
        for file in received.files
    ]
    return _request(route, moment, fields, files)


def write_raw(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the request of ``send_raw``, with the whole mail."""
    received = ReceivedMail(mail.raw_message)
    fields, charsets = _common_fields(mail, received)
    fields.append(("charsets", dump_json(charsets)))
    top = f"{_trace(mail)}\r\n".encode("utf-8", "replace")
    fields.insert(0, ("email", top + received.raw_message))
    return _request(route, moment, fields, ())


def _common_fields(
    mail: InboundMail, received: ReceivedMail
) -> tuple[list[tuple[str, str | bytes]], dict[str, str]]:
    """Return the fields of both modes, and the charsets of those that have one."""
    verdicts = mail.verdicts
    named = {
        name: received.shown(name)
        for name in ("to", "cc", "from", "subject")
        if name != "cc" or received.find(name)
    }
    envelope = dump_json({"to": mail.recipients, "from": mail.envelope_sender})
    fields: list[tuple[str, str | bytes]] = [
        ("dkim", _dkim(mail, received)),
        *named.items(),
        ("sender_ip", mail.client_ip),
        ("envelope", envelope),
        ("SPF", verdicts.spf.value),
        ("spam_score", f"{verdicts.spam_score:g}"),
        ("spam_report", _spam_report(mail)),
    ]
    return fields, dict.fromkeys(named, UTF_8)


def _dkim(mail: InboundMail, received: ReceivedMail) -> str:
    """Return the results by domain in the form of SendGrid, which is not JSON."""
    if mail.verdicts.dkim is InboundVerdict.NONE:
        return "none"
    results = (f"@{domain} : {mail.verdicts.dkim.value}" for domain in received.signing_domains)
    return f"{{{', '.join(results)}}}"


def _spam_report(mail: InboundMail) -> str:
    shown = "spam" if mail.verdicts.is_spam else "no spam"
    score = f"{mail.verdicts.spam_score:g}"
    return f"Spam detection software (simulated by mailcheck): {shown}, {score} points\n"


def _facts_of(file: ReceivedFile) -> dict[str, str]:
    name = file.filename or f"attachment{file.number}"
    facts = {
        "filename": _UNSAFE.sub("", name),
        "name": name,
        "type": file.content_type,
        "content-id": file.content_id,
        "charset": file.charset if file.content_type.startswith("text/") else "",
    }
    return {key: value for key, value in facts.items() if value}


def _trace(mail: InboundMail) -> str:
    number = digest_of("sendgrid", mail.id).hex()[:10]
    return f"Received: by mx0001.sendgrid.net with SMTP id {number} {mail_date(mail)} (UTC)"


def _request(
    route: InboundRoute,
    moment: InboundMoment,
    fields: Sequence[tuple[str, str | bytes]],
    files: Sequence[FormFile],
) -> InboundRequest:
    content_type, body = write_multipart(fields, files, BOUNDARY)
    headers = (
        ("Content-Type", content_type),
        *authorized(route, moment),
        *signed_by_sendgrid(route, moment, body),
    )
    return InboundRequest(route.url, headers, body)
