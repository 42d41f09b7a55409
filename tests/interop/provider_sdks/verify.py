"""Verifies an event of a provider with its SDK, and prints its type and recipient as JSON.

Usage: python verify.py SDK < JSON with ``body``, ``headers`` and ``key``.
"""

import json
import sys
from typing import Any

SDK = sys.argv[1]
GIVEN = json.load(sys.stdin)
BODY, HEADERS, KEY = GIVEN["body"], GIVEN["headers"], GIVEN["key"]


def with_svix() -> list[Any]:
    """Verify with the package ``svix``."""
    from svix.webhooks import Webhook

    Webhook(KEY).verify(BODY, HEADERS)
    event = json.loads(BODY)
    return [event["type"], event["data"]["to"][0]]


def with_sendgrid() -> list[Any]:
    """Verify with the package ``sendgrid``."""
    from sendgrid.helpers.eventwebhook import EventWebhook

    webhook = EventWebhook()
    key = webhook.convert_public_key_to_ecdsa(KEY)
    prefix = "x-twilio-email-event-webhook-"
    signature, timestamp = HEADERS[f"{prefix}signature"], HEADERS[f"{prefix}timestamp"]
    assert webhook.verify_signature(BODY, signature, timestamp, key)
    assert not webhook.verify_signature(BODY + " ", signature, timestamp, key)
    (event,) = json.loads(BODY)
    return [event["event"], event["email"]]


def with_anymail(name: str) -> list[Any]:
    """Verify with the tracking view of ``django-anymail``."""
    import warnings

    from django.conf import settings

    secrets = {
        "resend": "RESEND_SIGNING_SECRET",
        "mailgun": "MAILGUN_WEBHOOK_SIGNING_KEY",
        "mailtrap": "MAILTRAP_TRACKING_SECRET",
    }
    key = {secrets[name]: KEY} if name in secrets else {}
    settings.configure(ANYMAIL=key, ALLOWED_HOSTS=["*"], USE_TZ=True)
    import django
    from anymail import signals
    from anymail.webhooks import amazon_ses, brevo, mailgun, mailtrap, postmark, resend
    from django.test import RequestFactory

    django.setup()
    warnings.simplefilter("ignore")
    views = {
        "resend": resend.ResendTrackingWebhookView,
        "mailgun": mailgun.MailgunTrackingWebhookView,
        "postmark": postmark.PostmarkTrackingWebhookView,
        "brevo": brevo.BrevoTrackingWebhookView,
        "mailtrap": mailtrap.MailtrapTrackingWebhookView,
        "amazon_ses": amazon_ses.AmazonSESTrackingWebhookView,
    }
    found: list[Any] = []

    def note(sender: Any, event: Any, **_: Any) -> None:
        found.extend([event.event_type, event.recipient])

    signals.tracking.connect(note)
    headers = {f"HTTP_{k.upper().replace('-', '_')}": v for k, v in HEADERS.items()}
    request = RequestFactory().post("/", BODY, content_type="application/json", **headers)
    response = views[name].as_view()(request)
    assert response.status_code == 200, response
    return found


def with_mailtrap() -> list[Any]:
    """Verify with the package ``mailtrap``."""
    from mailtrap.webhooks import verify_signature

    assert verify_signature(BODY, HEADERS["mailtrap-signature"], KEY)
    assert not verify_signature(BODY + " ", HEADERS["mailtrap-signature"], KEY)
    (event,) = json.loads(BODY)["events"]
    return [event["event"], event["email"]]


KINDS = {"svix": with_svix, "sendgrid": with_sendgrid, "mailtrap": with_mailtrap}
print(json.dumps(KINDS[SDK]() if SDK in KINDS else with_anymail(SDK.removeprefix("anymail-"))))
