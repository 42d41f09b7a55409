"""Amazon SES with the action SNS: notifications to a topic, posted by SNS to a subscription."""

import hmac
from base64 import b32encode
from collections.abc import Mapping
from urllib.parse import urlencode

from mailcheck.api.shapes import dump_json
from mailcheck.core.inbound import (
    InboundMail,
    InboundMoment,
    InboundRequest,
    InboundRoute,
    InboundRouteId,
    InboundVerdict,
)
from mailcheck.core.instants import format_instant
from mailcheck.web.providers.inbound import sns_key
from mailcheck.web.providers.inbound.received import ReceivedMail
from mailcheck.web.providers.inbound.signing import (
    basic_authorization,
    digest_of,
    uuid_of,
)
from mailcheck.web.providers.inbound.trace import on_top, received_from, received_spf

REGION = "us-east-1"

TOPIC = f"arn:aws:sns:{REGION}:000000000000:mailcheck-"
"""The beginning of the ARN of a topic. The id of the route follows."""

SUBJECT = "Amazon SES Email Receipt Notification"

MOST_HEADER_OCTETS = 10_240
"""Octets of the header from which ``mail.headers`` is cut."""

SIGNED = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
"""The keys that are signed in a notification, in this order."""

SIGNED_TO_CONFIRM = (
    *("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
)
"""The keys that are signed in a confirmation."""

_STATUSES = {
    InboundVerdict.PASS: "PASS",
    InboundVerdict.FAIL: "FAIL",
    InboundVerdict.TEMPERROR: "PROCESSING_FAILED",
    InboundVerdict.PERMERROR: "PROCESSING_FAILED",
}
_GRAY = "GRAY"


def write(
    mail: InboundMail, route: InboundRoute, moment: InboundMoment, base: str
) -> InboundRequest:
    """Return the notification of a mail. ``base`` is the URL of SNS here."""
    message = {
        "Type": "Notification",
        "MessageId": uuid_of("sns", moment.delivery_id),
        "TopicArn": topic_of(route.id),
        "Subject": SUBJECT,
        "Message": dump_json(write_notification(mail, route)).decode(),
        "Timestamp": format_instant(moment.signed_at),
        "SignatureVersion": "1",
    }
    query = {"Action": "Unsubscribe", "SubscriptionArn": subscription_of(route)}
    unsubscribe = {"UnsubscribeURL": f"{base}/?{urlencode(query, safe=':')}"}
    return _request(route, moment, message, SIGNED, base, unsubscribe)


def write_confirmation(route: InboundRoute, moment: InboundMoment, base: str) -> InboundRequest:
    """Return the request that an application must confirm before it gets notifications."""
    token, topic = token_of(route), topic_of(route.id)
    query = {"Action": "ConfirmSubscription", "TopicArn": topic, "Token": token}
    message = {
        "Type": "SubscriptionConfirmation",
        "MessageId": uuid_of("sns", moment.delivery_id),
        "Token": token,
        "TopicArn": topic,
        "Message": f"You have chosen to subscribe to the topic {topic}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message.",
        "SubscribeURL": f"{base}/?{urlencode(query, safe=':')}",
        "Timestamp": format_instant(moment.signed_at),
        "SignatureVersion": "1",
    }
    return _request(route, moment, message, SIGNED_TO_CONFIRM, base, {})


def text_to_sign(message: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """Return the text that SNS signs: each key and its value in lines of their own."""
    return "".join(f"{key}\n{message[key]}\n" for key in keys if key in message)


def topic_of(route_id: InboundRouteId) -> str:
    """Return the ARN of the topic of a route."""
    return f"{TOPIC}{route_id}"


def route_of(arn: str) -> InboundRouteId | None:
    """Return the id of the route of a topic or a subscription, or `None`."""
    if not arn.startswith(TOPIC):
        return None
    return InboundRouteId(arn.removeprefix(TOPIC).partition(":")[0])


def subscription_of(route: InboundRoute) -> str:
    """Return the ARN of the subscription of a route. Only its receiver knows it."""
    return f"{topic_of(route.id)}:{uuid_of('subscription', route.id, route.secret)}"


def token_of(route: InboundRoute) -> str:
    """Return the token with which an application confirms the subscription."""
    return hmac.digest(route.secret.encode(), b"mailcheck SNS confirmation", "sha256").hex()


def certificate_path(route: InboundRoute) -> str:
    """Return the path of the certificate of a route below the URL of SNS.

    It cannot be guessed, since a certificate takes long to make.
    """
    name = digest_of("certificate", route.id, route.secret).hex()[:32]
    return f"/{route.id}/SimpleNotificationService-{name}.pem"


def write_notification(mail: InboundMail, route: InboundRoute) -> Mapping[str, object]:
    """Return the JSON of SES, with the mail as text in ``content``."""
    raw_message = add_trace(mail)
    received = ReceivedMail(raw_message)
    verdicts, at = mail.verdicts, format_instant(mail.received_at)
    listed, is_cut = _listed_headers(received)
    statuses = {
        "spamVerdict": "FAIL" if verdicts.is_spam else "PASS",
        "virusVerdict": "PASS",
        "spfVerdict": _STATUSES.get(verdicts.spf, _GRAY),
        "dkimVerdict": _STATUSES.get(verdicts.dkim, _GRAY),
        "dmarcVerdict": _STATUSES.get(verdicts.dmarc, _GRAY),
    }
    people = [person for name in ("to", "cc") for person in received.people(name)]
    is_failed = verdicts.dmarc is InboundVerdict.FAIL
    return {
        "notificationType": "Received",
        "mail": {
            "timestamp": at,
            "source": mail.envelope_sender,
            "messageId": message_id_of(mail),
            "destination": [person.address for person in people],
            "headersTruncated": is_cut,
            "headers": listed,
            "commonHeaders": _common_headers(mail, received),
        },
        "receipt": {
            "timestamp": at,
            "processingTimeMillis": 100,
            "recipients": mail.recipients,
            **{name: {"status": status} for name, status in statuses.items()},
            **({"dmarcPolicy": "none"} if is_failed else {}),
            "action": {"type": "SNS", "topicArn": topic_of(route.id), "encoding": "UTF8"},
        },
        "content": raw_message.decode("utf-8", "replace"),
    }


def message_id_of(mail: InboundMail) -> str:
    """Return the id that SES gives a mail: 40 letters and digits."""
    return b32encode(digest_of("ses", mail.id)[:25]).decode().lower()


def add_trace(mail: InboundMail) -> bytes:
    """Return the mail with the fields that SES puts on top."""
    verdicts = mail.verdicts
    received = ReceivedMail(mail.raw_message)
    domain = received.author.address.rpartition("@")[2]
    results = (
        f"amazonses.com; spf={verdicts.spf} client-ip={mail.client_ip};"
        f" envelope-from={mail.envelope_sender}; helo={mail.helo_name};"
        f" dkim={verdicts.dkim} header.i=@{received.signing_domains[0]};"
        f" dmarc={verdicts.dmarc} header.from={domain};"
    )
    by = f"inbound-smtp.{REGION}.amazonaws.com"
    return on_top(
        received.raw_message,
        ("Return-Path", f"<{mail.envelope_sender}>"),
        ("Received", received_from(mail, by, message_id_of(mail))),
        ("X-SES-Spam-Verdict", "FAIL" if verdicts.is_spam else "PASS"),
        ("X-SES-Virus-Verdict", "PASS"),
        ("Received-SPF", received_spf(mail, "amazonses.com")),
        ("Authentication-Results", results),
    )


def _listed_headers(received: ReceivedMail) -> tuple[list[Mapping[str, str]], bool]:
    """Return the header fields up to `MOST_HEADER_OCTETS`, and whether some are left out."""
    listed: list[Mapping[str, str]] = []
    size = 0
    for field in received.fields:
        size += len(field.name) + len(field.body) + 4
        if size > MOST_HEADER_OCTETS:
            return listed, True
        listed.append({"name": field.name, "value": field.decode().strip()})
    return listed, False


def _common_headers(mail: InboundMail, received: ReceivedMail) -> Mapping[str, object]:
    """Return the usual header fields. A field that the mail lacks is left out."""
    found: dict[str, object] = {
        name: [person.shown for person in received.people(name)]
        for name in ("from", "to", "cc", "bcc", "reply-to")
    }
    found |= {name: received.find(name) for name in ("date", "sender", "message-id", "subject")}
    keys = {"reply-to": "replyTo", "message-id": "messageId"}
    there = {keys.get(name, name): value for name, value in found.items() if value}
    return {"returnPath": mail.envelope_sender, **there}


def _request(
    route: InboundRoute,
    moment: InboundMoment,
    message: dict[str, str],
    keys: tuple[str, ...],
    base: str,
    more: Mapping[str, str],
) -> InboundRequest:
    """Return a signed message of SNS.

    SNS sends the password of a URL only when it is asked for.
    """
    text = text_to_sign(message, keys)
    # The signature of another text, since another key takes long to derive.
    signature = sns_key.sign(route.secret, f"{text}{text}" if moment.has_wrong_signature else text)
    value = {
        **message,
        "Signature": signature,
        "SigningCertURL": f"{base}{certificate_path(route)}",
        **more,
    }
    headers = [
        ("Content-Type", "text/plain; charset=UTF-8"),
        ("User-Agent", "Amazon Simple Notification Service Agent"),
        ("x-amz-sns-message-type", message["Type"]),
        ("x-amz-sns-message-id", message["MessageId"]),
        ("x-amz-sns-topic-arn", message["TopicArn"]),
    ]
    if keys is SIGNED:
        headers.append(("x-amz-sns-subscription-arn", subscription_of(route)))
    return InboundRequest(
        route.url,
        tuple(headers),
        dump_json(value),
        authorization_if_asked=basic_authorization(route, moment),
    )
