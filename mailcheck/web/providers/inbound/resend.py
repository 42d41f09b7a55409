"""The event ``email.received`` of Resend. The mail itself is behind its API."""

from collections.abc import Mapping
from functools import partial

from mailcheck.core.inbound import (
    InboundMail,
    InboundMoment,
    InboundRequest,
    InboundRoute,
)
from mailcheck.core.instants import format_instant
from mailcheck.web.providers.inbound.received import ReceivedFile, ReceivedMail
from mailcheck.web.providers.inbound.signing import (
    json_request,
    signed_as_standard,
    uuid_of,
)


def write(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the event, which has neither bodies nor header fields."""
    received = ReceivedMail(mail.raw_message)
    value = {
        "type": "email.received",
        "created_at": format_instant(mail.received_at),
        "data": {
            "email_id": mail.id,
            "created_at": format_instant(mail.received_at),
            **people_of(mail, received),
            "received_for": mail.recipients,
            "message_id": received.message_id,
            "subject": received.find("subject"),
            "attachments": [file_facts(mail, file) for file in received.files],
        },
    }
    return json_request(route, moment, value, partial(signed_as_standard, prefix="svix"))


def people_of(mail: InboundMail, received: ReceivedMail) -> Mapping[str, object]:
    """Return the author and the addresses. Blind copies are recipients in no header field."""
    people = {name: received.people(name) for name in ("to", "cc", "bcc")}
    shown = {person.address.casefold() for found in people.values() for person in found}
    blind = [address for address in mail.recipients if address.casefold() not in shown]
    return {
        "from": received.author.shown,
        "to": [person.address for person in people["to"]],
        "cc": [person.address for person in people["cc"]],
        "bcc": [*(person.address for person in people["bcc"]), *blind],
    }


def file_id(mail: InboundMail, file: ReceivedFile) -> str:
    """Return the id of a file."""
    return uuid_of("resend file", mail.id, str(file.number))


def file_facts(mail: InboundMail, file: ReceivedFile) -> dict[str, object]:
    """Return the facts of a file in the event."""
    return {
        "id": file_id(mail, file),
        "filename": file.filename or None,
        "content_type": file.content_type,
        "content_disposition": file.disposition or None,
        "content_id": file.content_id or None,
    }
