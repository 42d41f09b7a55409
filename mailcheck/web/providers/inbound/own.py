"""Our own JSON, signed according to Standard Webhooks."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial

from mailcheck.core.inbound import InboundMail, InboundMoment, InboundRequest, InboundRoute
from mailcheck.core.instants import format_instant
from mailcheck.web.providers.inbound.received import Address, ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.signing import json_request, signed_as_standard


def write(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the event ``mail.received``, which has the whole mail with its files."""
    received, verdicts = ReceivedMail(mail.raw_message), mail.verdicts
    data = {
        "id": mail.id,
        "routeId": route.id,
        "envelope": {"mailFrom": mail.envelope_sender, "rcptTo": mail.recipients},
        "from": _person(received.author),
        "to": _people(received, "to"),
        "cc": _people(received, "cc"),
        "replyTo": _people(received, "reply-to"),
        "subject": received.find("subject"),
        "messageId": received.message_id,
        "inReplyTo": received.find("in-reply-to"),
        "references": received.find("references").split(),
        "headerList": [(field.name, field.decode().strip()) for field in received.fields],
        "text": "" if received.text is None else received.text.text,
        "html": "" if received.html is None else received.html.text,
        "reply": received.reply.text,
        "attachments": [_attachment(file) for file in received.files],
        "verdicts": {
            "spf": verdicts.spf.value,
            "dkim": verdicts.dkim.value,
            "dmarc": verdicts.dmarc.value,
            "isSpam": verdicts.is_spam,
            "spamScore": verdicts.spam_score,
        },
    }
    at = format_instant(mail.received_at)
    event = {"type": "mail.received", "timestamp": at, "data": data}
    return json_request(route, moment, event, partial(signed_as_standard, prefix="webhook"))


def _people(received: ReceivedMail, name: str) -> Sequence[Mapping[str, str]]:
    return [_person(person) for person in received.people(name)]


def _person(person: Address) -> Mapping[str, str]:
    return {"address": person.address, "name": person.name}


def _attachment(file: ReceivedFile) -> Mapping[str, object]:
    return {
        "filename": file.filename,
        "contentType": file.content_type,
        "size": len(file.data),
        "contentId": file.content_id or None,
        "isInline": file.disposition == "inline",
        "content": b64encode(file.data).decode(),
    }
