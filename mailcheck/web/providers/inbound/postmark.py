"""The inbound webhook of Postmark."""

from base64 import b64encode

from mailcheck.core.inbound import InboundMail, InboundMoment, InboundRequest, InboundRoute
from mailcheck.web.providers.inbound.received import Address, ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.signing import json_request
from mailcheck.web.providers.inbound.trace import received_spf

_NOT_REPEATED = frozenset(("from", "to", "cc", "subject", "date"))
"""Header fields that have a key of their own."""


def write(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the request for one recipient, with the raw mail."""
    received = ReceivedMail(mail.raw_message)
    recipient = mail.recipients[0] if mail.recipients else ""
    to, cc, bcc = (received.people(name) for name in ("to", "cc", "bcc"))
    shown = [person.address.casefold() for person in (*to, *cc, *bcc)]
    if recipient.casefold() not in shown:
        bcc.append(Address("", recipient))
    value = {
        "FromName": received.author.name,
        "MessageStream": "inbound",
        "From": received.author.address,
        "FromFull": _full(received.author),
        "To": _listed(to),
        "ToFull": [_full(person) for person in to],
        "Cc": _listed(cc),
        "CcFull": [_full(person) for person in cc],
        "Bcc": _listed(bcc),
        "BccFull": [_full(person) for person in bcc],
        "OriginalRecipient": recipient,
        "Subject": received.find("subject"),
        "MessageID": moment.delivery_id,
        "ReplyTo": received.shown("reply-to"),
        "MailboxHash": _hash_of(recipient),
        "Date": received.find("date"),
        "TextBody": "" if received.text is None else received.text.text,
        "HtmlBody": "" if received.html is None else received.html.text,
        "StrippedTextReply": received.reply.text if received.reply.is_reply else "",
        "Tag": "",
        "Headers": [{"Name": name, "Value": text} for name, text in _headers(mail, received)],
        "Attachments": [_attachment(file) for file in received.files],
        "RawEmail": received.raw_message.decode("utf-8", "replace").replace("\r\n", "\n"),
    }
    return json_request(route, moment, value)


def _full(person: Address) -> dict[str, str]:
    return {
        "Email": person.address,
        "Name": person.name,
        "MailboxHash": _hash_of(person.address),
    }


def _listed(people: list[Address]) -> str:
    return ", ".join(
        f'"{person.name}" <{person.address}>' if person.name else person.address
        for person in people
    )


def _hash_of(address: str) -> str:
    """Return the text after the plus sign of an address."""
    return address.rpartition("@")[0].partition("+")[2]


def _headers(mail: InboundMail, received: ReceivedMail) -> list[tuple[str, str]]:
    """Return the header fields, with those of the checks on top."""
    verdicts = mail.verdicts
    spf = received_spf(mail, mail.recipients[0] if mail.recipients else "")
    return [
        ("Return-Path", f"<{mail.envelope_sender}>"),
        # Postmark writes the result with a capital letter.
        ("Received-SPF", spf[:1].upper() + spf[1:]),
        ("X-Spam-Status", "Yes" if verdicts.is_spam else "No"),
        ("X-Spam-Score", f"{verdicts.spam_score:g}"),
        *(
            (field.name, field.decode().strip())
            for field in received.fields
            if field.name.lower() not in _NOT_REPEATED
        ),
    ]


def _attachment(file: ReceivedFile) -> dict[str, object]:
    return {
        "Name": file.filename,
        "Content": b64encode(file.data).decode(),
        "ContentType": file.content_type,
        "ContentLength": len(file.data),
        "ContentID": file.content_id,
    }
