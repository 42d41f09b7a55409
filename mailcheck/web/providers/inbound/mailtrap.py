"""The event ``inbound.message_received`` of Mailtrap. The mail itself is behind its API."""

from uuid import UUID

from mailcheck.core.inbound import (
    InboundMail,
    InboundMoment,
    InboundRequest,
    InboundRoute,
)
from mailcheck.web.providers.inbound.received import ReceivedMail
from mailcheck.web.providers.inbound.signing import (
    digest_of,
    json_request,
    signed_by_mailtrap,
    uuid_of,
)


def write(mail: InboundMail, route: InboundRoute, moment: InboundMoment) -> InboundRequest:
    """Return the request, which has one event."""
    event = {
        "event": "inbound.message_received",
        "event_id": uuid_of("mailtrap", moment.delivery_id),
        "timestamp": mail.received_at,
        "inbox_id": inbox_id(route),
        "message_id": decimal_id(mail),
        "from": ReceivedMail(mail.raw_message).author.shown,
    }
    return json_request(route, moment, {"events": [event]}, signed_by_mailtrap)


def inbox_id(route: InboundRoute) -> int:
    """Return the number of the inbox, which stands for the route."""
    # Receivers ignore the number 1, which Mailtrap's own test has.
    return int.from_bytes(digest_of("mailtrap inbox", route.id)[:3], "big") + 2


def decimal_id(mail: InboundMail) -> str:
    """Return the first 64 bits of the id of a mail in decimal."""
    return str(UUID(mail.id).int >> 64)
