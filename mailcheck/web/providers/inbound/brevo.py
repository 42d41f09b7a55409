"""Inbound parsing of Brevo. Files are behind its API."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

from mailcheck.api.shapes import dump_json
from mailcheck.core.inbound import (
    InboundMail,
    InboundMoment,
    InboundRequest,
    InboundRoute,
)
from mailcheck.web.providers.inbound.received import Address, ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.signing import json_request, uuid_of


def write(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the request, which has one mail. Its files are fetched by their tokens."""
    received = ReceivedMail(mail.raw_message)
    reply_to = next(iter(received.people("reply-to")), None)
    item = {
        "Uuid": [uuid_of("brevo", mail.id, recipient) for recipient in mail.recipients],
        "MessageId": received.message_id,
        "InReplyTo": received.find("in-reply-to") or None,
        "From": _person(received.author),
        "To": [_person(person) for person in received.people("to")],
        "Cc": [_person(person) for person in received.people("cc")],
        "ReplyTo": _person(reply_to) if reply_to else None,
        "SentAtDate": received.find("date"),
        "Subject": received.find("subject"),
        "Attachments": [_attachment(mail, file) for file in received.files],
        "Headers": _headers(mail, received),
        "SpamScore": mail.verdicts.spam_score,
        "ExtractedMarkdownMessage": received.reply.text,
        "ExtractedMarkdownSignature": received.reply.signature or None,
        "RawHtmlBody": None if received.html is None else received.html.text,
        "RawTextBody": None if received.text is None else received.text.text.replace("\n", "\r\n"),
    }
    return json_request(route, moment, {"items": [item]})


def _person(person: Address) -> Mapping[str, str | None]:
    return {"Name": person.name or None, "Address": person.address}


def _headers(mail: InboundMail, received: ReceivedMail) -> Mapping[str, object]:
    """Return the header fields: a text, or a list if a field is repeated.

    A recipient that no field names is shown as Bcc.
    """
    found: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for field in received.fields:
        name = names.setdefault(field.name.lower(), field.name)
        value = field.decode().strip()
        found.setdefault(name, []).append(
            value.partition(";")[0] if name.lower() == "content-type" else value
        )
    people = [person for name in ("to", "cc") for person in received.people(name)]
    shown = {person.address.casefold() for person in people}
    blind = [address for address in mail.recipients if address.casefold() not in shown]
    if blind and "bcc" not in names:
        found["Bcc"] = [", ".join(blind)]
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _attachment(mail: InboundMail, file: ReceivedFile) -> Mapping[str, object]:
    return {
        "Name": "" if file.content_type == "message/rfc822" else file.filename,
        "ContentType": file.content_type,
        "ContentLength": len(file.data),
        "ContentID": file.content_id or None,
        "DownloadToken": download_token(mail, file),
    }


def download_token(mail: InboundMail, file: ReceivedFile) -> str:
    """Return the token of a file: Base64 of JSON with ``folder`` and ``filename``."""
    value = dump_json({"folder": mail.id, "filename": str(file.number)})
    return urlsafe_b64encode(value).decode().rstrip("=")


def read_token(token: str) -> tuple[str, int]:
    """Return the id of the mail and the number of the file.

    :raises ValueError: the text is not a token.
    """
    value = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    if not isinstance(value, dict):
        raise ValueError("not a token")
    return str(value.get("folder")), int(value.get("filename", ""))
