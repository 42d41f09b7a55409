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
from tests.web.provider_requests import newest, post, raw_mail, received, sample

URL = "https://app.example.com/events"

SEND = {
    "resend": "/providers/resend/emails",
    "postmark": "/providers/postmark/email",
    "sendgrid": "/providers/sendgrid/v3/mail/send",
    "mailgun": "/providers/mailgun/v3/<domain>/messages",
    "ses": "/providers/ses/v2/email/outbound-emails",
    "brevo": "/providers/brevo/v3/smtp/email",
    "mailtrap": "/providers/mailtrap/api/send",
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


def event_in(posted: Post) -> dict[str, Any]:
    """Return the event in a body, without what the provider wraps it in."""
    body = json.loads(posted.body)
    if isinstance(body, list):
        (body,) = body
    if "Message" in body and "TopicArn" in body:
        body = json.loads(body["Message"])
    (found,) = body.get("events", [body.get("event-data", body)])
    event: dict[str, Any] = found
    return event


def name_of(event: dict[str, Any]) -> str:
    """Return the name of an event, whatever its field is called."""
    names = ("RecordType", "eventType", "event", "type")
    return str(next(event[name] for name in names if name in event))


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
    ("ses", ["Delivery", "Bounce", "Complaint", "Open"]),
    ("brevo", ["delivered", "hard_bounce", "spam", "opened"]),
    ("mailtrap", ["delivery", "bounce", "spam", "open"]),
)
def test_the_tag_chooses_the_event(house: House, provider: str, expected: list[str]) -> None:
    """A mail is delivered, or bounced, complained or opened as its tag says."""
    create(house, provider)
    found = []
    for tag in ("", *EVENT_TAGS):
        body = event_in(send(house, provider, tag))
        found.append(name_of(body))
        assert f"you{'+' if tag else ''}{tag}@customer.example" in json.dumps(body)
    assert found == [*expected, expected[0]]
    tags = ["event.bounce", "event.complaint", "event.open", "event.delivery"]
    assert list(EVENT_TAGS) == tags


@rows(*SEND)
def test_an_event_has_the_id_that_sending_returned(house: House, provider: str) -> None:
    """A program can match the event with the mail that it has sent."""
    made = create(house, provider)
    event = send(house, provider)
    message = newest(house)
    message_id = raw_mail(house, message)["Message-ID"].strip("<>")
    body = event.body.decode()
    assert message["deliveryId"] in body or message_id in body
    assert house.ask("DELETE", f"/inbox/webhooks/{made['id']}").answer().status == 200


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


@rows("postmark", "brevo")
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


@rows("smtp", "mailfrog", "")
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


SIMULATOR = "simulator.amazonses.com"
BLACK_HOLE = "bounce-testing.postmarkapp.com"


@rows(
    ("resend", "delivered@resend.dev", "email.delivered", ""),
    ("resend", "bounced@resend.dev", "email.bounced", '"Permanent"'),
    ("resend", "Bounced+signup@Resend.dev", "email.bounced", '"General"'),
    ("resend", "complained+a@resend.dev", "email.complained", ""),
    ("resend", "suppressed@resend.dev", "email.suppressed", '"OnAccountSuppressionList"'),
    ("resend", "bounced+event.open@resend.dev", "email.opened", ""),
    ("resend", "bounced@example.com", "email.delivered", ""),
    ("ses", f"success@{SIMULATOR}", "Delivery", ""),
    ("ses", f"bounce@{SIMULATOR}", "Bounce", '"General"'),
    ("ses", f"bounce+label2@{SIMULATOR}", "Bounce", '"5.1.1"'),
    ("ses", f"complaint@{SIMULATOR}", "Complaint", '"abuse"'),
    ("ses", f"ooto@{SIMULATOR}", "Delivery", ""),
    ("ses", f"suppressionlist@{SIMULATOR}", "Bounce", '"Suppressed"'),
    ("postmark", f"HardBounce@{BLACK_HOLE}", "Bounce", '"TypeCode": 1,'),
    ("postmark", f"Hard_Bounce@{BLACK_HOLE}", "Bounce", '"Inactive": true'),
    ("postmark", f"softbounce@{BLACK_HOLE}", "Bounce", '"TypeCode": 4096'),
    ("postmark", f"Blocked@{BLACK_HOLE}", "Bounce", '"Name": "ISP block"'),
    ("postmark", f"dns_error+a@{BLACK_HOLE}", "Bounce", '"Type": "DnsError"'),
    ("postmark", f"anything@{BLACK_HOLE}", "Bounce", '"Type": "HardBounce"'),
    ("sendgrid", "a@sink.sendgrid.net", "delivered", ""),
    ("sendgrid", "bounced@resend.dev", "delivered", ""),
)
def test_test_recipients_behave_as_documented(
    house: House, provider: str, to: str, expected: str, said: str
) -> None:
    """Mail to a test recipient is accepted, stored, and reported as the provider documents."""
    made = create(house, provider)
    assert post(house, SEND[provider], sample(SEND[provider], to)).status < 300
    house.pass_time(1)
    event = event_in(house.receivers.posts[-1])
    assert name_of(event) == expected
    assert said in json.dumps(event)
    assert to in json.dumps(event)
    assert house.get("/inbox/messages?limit=1").json["messages"][0]["to"] == to
    assert house.ask("DELETE", f"/inbox/webhooks/{made['id']}").answer().status == 200


@rows(("DnsError", 256), ("soft_bounce", 4096), ("Nothing", 1))
def test_a_header_chooses_the_type_of_a_bounce(house: House, header: str, code: int) -> None:
    """X-PM-Bounce-Type chooses the type for a test recipient of Postmark."""
    create(house, "postmark")
    value = sample(SEND["postmark"], f"anything@{BLACK_HOLE}")
    value["Headers"] = [{"Name": "X-PM-Bounce-Type", "Value": header}]
    post(house, SEND["postmark"], value)
    house.pass_time(1)
    assert event_in(house.receivers.posts[-1])["TypeCode"] == code


def test_a_spam_complaint_of_postmark_has_its_code(house: House) -> None:
    """The type of a complaint is 100001. 512 is that of a spam notification."""
    create(house, "postmark")
    assert event_in(send(house, "postmark", "event.complaint"))["TypeCode"] == 100_001


def test_a_test_of_a_webhook_overrules_the_test_recipient(house: House) -> None:
    """An event that a call chooses is sent, whoever the recipient of the mail is."""
    made = create(house, "resend")
    post(house, SEND["resend"], sample(SEND["resend"], "bounced@resend.dev"))
    (message,) = received(house)
    path = f"/inbox/webhooks/{made['id']}/test?event=delivered&messageId={message['id']}"
    assert house.ask("POST", path).answer().status == 200
    assert json.loads(house.receivers.posts[-1].body)["type"] == "email.delivered"


def test_mailtrap_signs_the_body(house: House) -> None:
    """The signature is the HMAC of the body, with the secret as text."""
    secret = create(house, "mailtrap")["secret"]
    event = send(house, "mailtrap", "event.bounce")
    expected = hmac.new(secret.encode(), event.body, hashlib.sha256).hexdigest()
    assert headers(event)["mailtrap-signature"] == expected
    (found,) = json.loads(event.body)["events"]
    assert (found["response_code"], found["sending_stream"]) == (550, "transactional")
    assert isinstance(found["timestamp"], int)


def test_a_notification_of_ses_has_the_headers_of_sns(house: House) -> None:
    """The headers repeat type, id and topic of the notification. It has no signature."""
    create(house, "ses")
    event = send(house, "ses")
    body, given = json.loads(event.body), headers(event)
    assert given["x-amz-sns-message-type"] == body["Type"] == "Notification"
    assert given["x-amz-sns-message-id"] == body["MessageId"]
    assert given["x-amz-sns-topic-arn"] == body["TopicArn"]
    assert given["content-type"] == "text/plain; charset=UTF-8"
    assert (body["Signature"], body["SigningCertURL"]) == ("", "")
    assert json.loads(body["Message"])["mail"]["messageId"] == received(house)[0]["deliveryId"]


@rows(
    ("resend", {"tags": [{"name": "kind", "value": "order"}]}, '"tags": {"kind": "order"}'),
    ("resend", {"from": "Shop <a@x.test>"}, '"from": "Shop <a@x.test>"'),
    (
        "postmark",
        {"Tag": "order", "Metadata": {"a": "1"}},
        '"Tag": "order", "Metadata": {"a": "1"}',
    ),
    ("sendgrid", {"categories": ["a", "b"]}, '"category": ["a", "b"]'),
    ("sendgrid", {"custom_args": {"id": "7", "email": "x"}}, '"id": "7"'),
    ("mailgun", {"o:tag": ["a", "b"]}, '"tags": ["a", "b"]'),
    ("mailgun", {"o:tag": "a", "v:id": "7"}, '"tags": ["a"], "user-variables": {"id": "7"}'),
    ("ses", {"EmailTags": [{"Name": "a", "Value": "1"}]}, '"tags": {"a": ["1"]}'),
    ("brevo", {"tags": ["a"]}, '"tags": ["a"]'),
    ("mailtrap", {"category": "a", "custom_variables": {"id": 7}}, '"custom_variables": {"id": 7}'),
)
def test_an_event_has_the_marks_of_the_request(
    house: House, provider: str, fields: dict[str, Any], said: str
) -> None:
    """Tags, categories, metadata and variables come back with the event, as at the provider."""
    made = create(house, provider)
    value = {**sample(SEND[provider], "you@customer.example"), **fields}
    assert post(house, SEND[provider], value).status < 300
    house.pass_time(1)
    event = event_in(house.receivers.posts[-1])
    assert said in json.dumps(event)
    assert "you@customer.example" in json.dumps(event)
    assert house.ask("DELETE", f"/inbox/webhooks/{made['id']}").answer().status == 200


def test_an_argument_of_one_personalization_is_in_its_event(house: House) -> None:
    """A custom argument of SendGrid belongs to the recipients of its personalization."""
    create(house, "sendgrid")
    people = [
        {"to": [{"email": f"{name}@customer.example"}], "custom_args": {"name": name}}
        for name in ("ann", "bob")
    ]
    value = {**sample(SEND["sendgrid"], "x@y.example"), "personalizations": people}
    post(house, SEND["sendgrid"], value)
    house.pass_time(1)
    events = [event_in(one) for one in house.receivers.posts]
    assert [one["name"] for one in events] == ["ann", "bob"]


def test_an_event_of_other_mail_has_no_marks(house: House) -> None:
    """Mail over another API, and a request that was cut, have events without marks."""
    create(house, "resend")
    fields = {"tags": [{"name": "kind", "value": "order"}], "text": "x" * 20_000}
    headers = {f"X-{number}": "y" * 1_000 for number in range(18)}
    post(house, SEND["resend"], {**sample(SEND["resend"], "a@b.de"), **fields, "headers": headers})
    post(house, SEND["brevo"], {**sample(SEND["brevo"], "a@b.de"), "tags": ["a"]})
    house.pass_time(1)
    assert [event_in(one)["data"].get("tags") for one in house.receivers.posts] == [None, None]
