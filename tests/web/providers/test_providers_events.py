"""Events in the format of a provider: their content, their signatures, and their webhooks."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key
from standardwebhooks import Webhook

from mailcheck.core.webhooks import EVENT_PROVIDERS, EVENT_TAGS
from mailcheck.ports.probes import Post
from mailcheck.probes.webhook_sender import headers_of
from mailcheck.web.providers.catalogue import PROVIDERS
from tests.house import House, run
from tests.table import rows
from tests.web.provider_requests import post, raw_mail, received, sample

URL = "https://app.example.com/events"

SEND = {
    "resend": "/providers/resend/emails",
    "postmark": "/providers/postmark/email",
    "sendgrid": "/providers/sendgrid/v3/mail/send",
    "mailgun": "/providers/mailgun/v3/<domain>/messages",
    "brevo": "/providers/brevo/v3/smtp/email",
}


def create(house: House, provider: str, **filters: Any) -> dict[str, Any]:
    """Create a webhook for the events of a provider."""
    run(house.assembly.webhooks.deliver.start())
    body = json.dumps({"url": URL, "provider": provider, **filters}).encode()
    answer = house.ask("POST", "/inbox/webhooks", data=body).answer()
    assert answer.status == 200, answer.json
    created: dict[str, Any] = answer.json
    return created


def send(house: House, provider: str, tag: str = "") -> Post:
    """Send a mail over the API of a provider, and return the event that was posted."""
    to = f"you+{tag}@customer.example" if tag else "you@customer.example"
    assert post(house, SEND[provider], sample(SEND[provider], to)).status < 300
    house.pass_time(1)
    sent: Post = house.receivers.posts[-1]
    return sent


def headers(event: Post) -> dict[str, str]:
    """Return the headers of an event by lower-case name."""
    return {name.decode().lower(): one[0].decode() for name, one in headers_of(event).items()}


def test_the_providers_with_events_are_known() -> None:
    """Requests for webhooks accept exactly the providers that can write events."""
    assert set(EVENT_PROVIDERS) == {one.name for one in PROVIDERS if one.write_event}


@rows(
    (
        "resend",
        ["email.delivered", "email.bounced", "email.complained", "email.opened"],
    ),
    ("postmark", ["Delivery", "Bounce", "SpamComplaint", "Open"]),
    ("sendgrid", ["delivered", "bounce", "spamreport", "open"]),
    ("mailgun", ["delivered", "failed", "complained", "opened"]),
    ("brevo", ["delivered", "hard_bounce", "spam", "opened"]),
)
def test_the_tag_chooses_the_event(house: House, provider: str, expected: list[str]) -> None:
    """A mail is delivered, or bounced, complained or opened as its tag says."""
    create(house, provider)
    found = []
    for tag in ("", *EVENT_TAGS):
        body = json.loads(send(house, provider, tag).body)
        body = body[0] if isinstance(body, list) else body.get("event-data", body)
        found.append(body.get("type") if provider == "resend" else None)
        found[-1] = found[-1] or body.get("RecordType") or body["event"]
        assert f"you{'+' if tag else ''}{tag}@customer.example" in json.dumps(body)
    assert found == expected
    assert list(EVENT_TAGS) == ["event.bounce", "event.complaint", "event.open"]


@pytest.mark.parametrize("provider", SEND)
def test_an_event_has_the_id_that_sending_returned(house: House, provider: str) -> None:
    """A program can match the event with the mail that it has sent."""
    create(house, provider)
    event = send(house, provider)
    (message,) = received(house)
    message_id = raw_mail(house, message)["Message-ID"].strip("<>")
    body = event.body.decode()
    assert message["deliveryId"] in body or message_id in body


def test_resend_signs_as_svix_does(house: House) -> None:
    """The signature is that of Standard Webhooks, under the names of Svix."""
    secret = create(house, "resend")["secret"]
    event = send(house, "resend", "event.bounce")
    given = headers(event)
    found = json.loads(event.body)
    sent_at = datetime.fromtimestamp(int(given["svix-timestamp"]), UTC)
    signature = Webhook(secret).sign(given["svix-id"], sent_at, event.body.decode())
    assert given["svix-signature"] == signature
    assert found["data"]["bounce"]["type"] == "Permanent"


def test_sendgrid_signs_with_a_key_that_is_shown(house: House) -> None:
    """The signature is valid for the shown public key, and not for another body."""
    made = create(house, "sendgrid")
    event = send(house, "sendgrid")
    given = headers(event)
    key = load_der_public_key(base64.b64decode(made["verificationKey"]))
    assert isinstance(key, EllipticCurvePublicKey)
    signature = base64.b64decode(given["x-twilio-email-event-webhook-signature"])
    timestamp = given["x-twilio-email-event-webhook-timestamp"].encode()
    key.verify(signature, timestamp + event.body, ECDSA(SHA256()))
    with pytest.raises(InvalidSignature):
        key.verify(signature, timestamp + event.body + b" ", ECDSA(SHA256()))


def test_mailgun_signs_inside_the_body(house: House) -> None:
    """The signature is the HMAC of time and token, with the secret as the signing key."""
    secret = create(house, "mailgun")["secret"]
    signed = json.loads(send(house, "mailgun").body)["signature"]
    text = f"{signed['timestamp']}{signed['token']}".encode()
    assert hmac.new(secret.encode(), text, hashlib.sha256).hexdigest() == signed["signature"]


@pytest.mark.parametrize("provider", ["postmark", "brevo"])
def test_other_providers_do_not_sign(house: House, provider: str) -> None:
    """Postmark and Brevo do not sign their events, so there is no signature."""
    create(house, provider)
    assert set(headers(send(house, provider))) == {"content-type", "user-agent"}


def test_filters_choose_the_mail(house: House) -> None:
    """A webhook for events has filters like any other."""
    create(house, "resend", tagPrefix="event.")
    send(house, "resend", "event.open")
    send(house, "resend")
    assert len(house.receivers.posts) == 1


def test_a_test_is_in_the_format_of_the_provider(house: House) -> None:
    """The test of a webhook sends an event of a delivered mail."""
    made = create(house, "postmark")
    house.ask("POST", f"/inbox/webhooks/{made['id']}/test").answer()
    assert json.loads(house.receivers.posts[-1].body)["RecordType"] == "Delivery"


@pytest.mark.parametrize("provider", ["ses", "mailfrog", ""])
def test_a_provider_without_events_is_named(house: House, provider: str) -> None:
    """Only providers with events are accepted, and the error lists them."""
    body = json.dumps({"url": URL, "provider": provider}).encode()
    answer = house.ask("POST", "/inbox/webhooks", data=body).answer()
    assert answer.status == 400
    assert "sendgrid" in answer.json["error"]


def test_a_call_chooses_the_event_of_a_stored_mail(house: House) -> None:
    """The test of a webhook sends an event about a stored mail, with the id of that mail."""
    made = create(house, "resend")
    delivered = json.loads(send(house, "resend").body)
    (message,) = house.get("/inbox/messages").json["messages"]
    path = f"/inbox/webhooks/{made['id']}/test?event=bounced&messageId={message['id']}"
    assert house.ask("POST", path).answer().status == 200
    bounced = json.loads(house.receivers.posts[-1].body)
    assert bounced["type"] == "email.bounced"
    assert bounced["data"]["email_id"] == delivered["data"]["email_id"]
    assert bounced["data"]["to"] == delivered["data"]["to"]


def test_a_wrong_test_of_a_webhook(house: House) -> None:
    """An unknown event or message, or an event for a webhook without a provider, is an error."""
    made = create(house, "resend")
    body = json.dumps({"url": URL}).encode()
    plain = house.ask("POST", "/inbox/webhooks", data=body).answer().json
    for webhook, query, status in (
        (made, "event=exploded", 400),
        (made, "messageId=01a1fc41-0219-76dd-ac7e-95beebac7c40", 404),
        (plain, "event=bounced", 400),
        (plain, "", 200),
    ):
        path = f"/inbox/webhooks/{webhook['id']}/test?{query}"
        assert house.ask("POST", path).answer().status == status, query
