"""Formats whose body is the mail itself: wrangler's local handler, and Rails Action Mailbox."""

from urllib.parse import urlencode

from mailcheck.core.inbound import InboundMail, InboundMoment, InboundRequest, InboundRoute
from mailcheck.web.providers.inbound.received import ReceivedMail
from mailcheck.web.providers.inbound.signing import ACTION_MAILBOX, authorized, digest_of
from mailcheck.web.providers.inbound.trace import OWN_NAME, on_top, received_from


def write_for_cloudflare(
    mail: InboundMail, route: InboundRoute, moment: InboundMoment
) -> InboundRequest:
    """Return the request to the local handler of Email Workers for one recipient.

    The local handler adds no header fields, so the mail stays as it is.
    """
    recipient = mail.recipients[0] if mail.recipients else ""
    query = urlencode({"from": mail.envelope_sender, "to": recipient})
    mark = "&" if "?" in route.url else "?"
    headers = (("Content-Type", "message/rfc822"),)
    body = ReceivedMail(mail.raw_message).raw_message
    return InboundRequest(f"{route.url}{mark}{query}", headers, body)


def write_for_rails(
    mail: InboundMail, route: InboundRoute, moment: InboundMoment
) -> InboundRequest:
    """Return the request of the relay of Action Mailbox for one recipient.

    The fields on top are those of a mail server. They are the same for all attempts, since Rails
    recognises a repeated mail by its digest.
    """
    recipient = mail.recipients[0] if mail.recipients else ""
    raw_message = on_top(
        ReceivedMail(mail.raw_message).raw_message,
        ("Return-Path", f"<{mail.envelope_sender}>"),
        ("X-Original-To", recipient),
        ("Delivered-To", recipient),
        ("Received", received_from(mail, OWN_NAME, digest_of("rails", mail.id).hex()[:12])),
    )
    headers = (
        ("Content-Type", "message/rfc822"),
        ("User-Agent", "Action Mailbox relayer v8.0.0"),
        *authorized(route, moment, ACTION_MAILBOX),
    )
    return InboundRequest(route.url, headers, raw_message)
