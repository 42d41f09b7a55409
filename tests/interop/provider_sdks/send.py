"""Sends five mails with a Python SDK of a provider, and prints what came of each as JSON.

Usage: python send.py SDK, with MAILCHECK_URL and MAILCHECK_API_KEY.
"""

import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Any

SDK = sys.argv[1]
KEY = os.environ["MAILCHECK_API_KEY"]
PROVIDERS = os.environ["MAILCHECK_URL"] + "/providers"
FROM, SUBJECT, TEXT = "Shop <shop@example.com>", "Mail", "Your code is 482913"
HTML = '<p>Your code is <b>482913</b></p><img src="cid:logo">'
FILE, IMAGE = b"one\r\ntwo\0", bytes.fromhex("89504e470d0a1a0a")


def to(name: str) -> str:
    """Return an address of this SDK."""
    return f"{name}.{SDK}@customer.example"


def base64_of(data: bytes) -> str:
    """Return a file in Base64."""
    return base64.b64encode(data).decode()


class Resend:
    """The package ``resend``."""

    def __init__(self) -> None:
        os.environ["RESEND_API_URL"] = f"{PROVIDERS}/resend"
        import resend

        resend.api_key = KEY
        self.emails, self.batches = resend.Emails, resend.Batch

    def mail(self, address: str) -> dict[str, Any]:
        """Return a plain mail."""
        return {"from": FROM, "to": address, "subject": SUBJECT, "text": TEXT}

    def send(self, address: str) -> None:
        """Send a plain mail."""
        self.emails.send(self.mail(address))

    def html(self) -> None:
        """Send an HTML mail with a file and an inline image."""
        files = [
            {"filename": "a.bin", "content": list(FILE)},
            {"filename": "l.png", "content": base64_of(IMAGE), "content_id": "logo"},
        ]
        more = {"html": HTML, "reply_to": "help@example.com", "attachments": files}
        self.emails.send({**self.mail(to("html")), **more})

    def batch(self, *addresses: str) -> None:
        """Send a plain mail to each address."""
        self.batches.send([self.mail(one) for one in addresses])


class SendGrid:
    """The package ``sendgrid``."""

    def __init__(self) -> None:
        import sendgrid
        from sendgrid.helpers import mail

        self.client = sendgrid.SendGridAPIClient(KEY, host=f"{PROVIDERS}/sendgrid")
        self.helpers = mail

    def mail(self, address: str) -> Any:
        """Return a plain mail."""
        author = ("shop@example.com", "Shop")
        return self.helpers.Mail(author, address, SUBJECT, plain_text_content=TEXT)

    def send(self, address: str) -> None:
        """Send a plain mail."""
        self.client.send(self.mail(address))

    def html(self) -> None:
        """Send an HTML mail with a file and an inline image."""
        message, helpers = self.mail(to("html")), self.helpers
        message.add_content(helpers.Content("text/html", HTML))
        message.reply_to = "help@example.com"
        image = helpers.Attachment(base64_of(IMAGE), "l.png", "image/png", "inline", "logo")
        message.attachment = [helpers.Attachment(base64_of(FILE), "a.bin"), image]
        self.client.send(message)

    def batch(self, *addresses: str) -> None:
        """Send a plain mail to each address."""
        message = self.mail(addresses[0])
        for address in addresses[1:]:
            personal = self.helpers.Personalization()
            personal.add_to(self.helpers.To(address))
            message.add_personalization(personal)
        self.client.send(message)


class Boto:
    """The package ``boto3``, with either version of SES."""

    def __init__(self) -> None:
        import boto3
        from botocore.config import Config

        self.client = boto3.client(
            SDK,
            endpoint_url=f"{PROVIDERS}/ses",
            region_name="eu-west-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=KEY,
            config=Config(retries={"max_attempts": 0}),
        )

    def send(self, address: str) -> None:
        """Send a plain mail."""
        body = {"Text": {"Data": TEXT}}
        destination = {"ToAddresses": [address]}
        message = {"Subject": {"Data": SUBJECT}, "Body": body}
        if SDK == "ses":
            self.client.send_email(Source=FROM, Destination=destination, Message=message)
        else:
            content = {"Simple": message}
            self.client.send_email(FromEmailAddress=FROM, Destination=destination, Content=content)

    def html(self) -> None:
        """Send an HTML mail with a file and an inline image."""
        from email.message import EmailMessage

        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = FROM, to("html"), SUBJECT
        message["Reply-To"] = "help@example.com"
        message.set_content(TEXT)
        message.add_alternative(HTML, subtype="html")
        *_, part = message.iter_parts()
        part.add_related(IMAGE, "image", "png", cid="<logo>", filename="l.png")
        message.add_attachment(FILE, "application", "octet-stream", filename="a.bin")
        raw = {"Data": message.as_bytes()}
        if SDK == "ses":
            self.client.send_raw_email(RawMessage=raw)
        else:
            self.client.send_email(Content={"Raw": raw})

    def batch(self, *addresses: str) -> None:
        """Send a plain mail to each address."""
        if SDK == "ses":
            for address in addresses:
                self.client.send_templated_email(
                    Source=FROM,
                    Destination={"ToAddresses": [address]},
                    Template=f"Mail: {TEXT}",
                    TemplateData="{}",
                )
            return
        template = {"TemplateName": f"Mail: {TEXT}", "TemplateData": "{}"}
        entries = [{"Destination": {"ToAddresses": [address]}} for address in addresses]
        self.client.send_bulk_email(
            FromEmailAddress=FROM,
            DefaultContent={"Template": template},
            BulkEmailEntries=entries,
        )


class Anymail:
    """The package ``django-anymail`` with the backend that the name has at its end."""

    def __init__(self) -> None:
        from django.conf import settings

        name = SDK.removeprefix("anymail-")
        settings.configure(
            EMAIL_BACKEND=f"anymail.backends.{name}.EmailBackend",
            ANYMAIL={
                "RESEND_API_URL": f"{PROVIDERS}/resend/",
                "RESEND_API_KEY": KEY,
                "POSTMARK_API_URL": f"{PROVIDERS}/postmark/",
                "POSTMARK_SERVER_TOKEN": KEY,
                "SENDGRID_API_URL": f"{PROVIDERS}/sendgrid/v3/",
                "SENDGRID_API_KEY": KEY,
                "MAILGUN_API_URL": f"{PROVIDERS}/mailgun/v3/",
                "MAILGUN_API_KEY": KEY,
                "BREVO_API_URL": f"{PROVIDERS}/brevo/v3/",
                "BREVO_API_KEY": KEY,
                "MAILTRAP_API_URL": f"{PROVIDERS}/mailtrap/api/",
                "MAILTRAP_API_TOKEN": KEY,
                "AMAZON_SES_CLIENT_PARAMS": {
                    "endpoint_url": f"{PROVIDERS}/ses",
                    "region_name": "eu-west-1",
                    "aws_access_key_id": KEY,
                    "aws_secret_access_key": KEY,
                    "config": {"retries": {"max_attempts": 0}},
                },
            },
        )
        import django
        from django.core import mail

        django.setup()
        self.mails = mail

    def mail(self, *addresses: str) -> Any:
        """Return a plain mail."""
        return self.mails.EmailMultiAlternatives(SUBJECT, TEXT, FROM, addresses)

    def send(self, address: str) -> None:
        """Send a plain mail."""
        self.mail(address).send()

    def html(self) -> None:
        """Send an HTML mail with a file and an inline image."""
        message = self.mail(to("html"))
        message.reply_to = ["help@example.com"]
        message.attach("a.bin", FILE, "application/octet-stream")
        html = HTML
        if not SDK.endswith("brevo"):  # its API has no inline images
            from anymail.message import attach_inline_image

            cid = attach_inline_image(message, IMAGE, filename="l.png")
            html = HTML.replace("logo", cid)
        message.attach_alternative(html, "text/html")
        message.send()

    def batch(self, *addresses: str) -> None:
        """Send a plain mail to each address."""
        if SDK.endswith("amazon_ses"):  # its batches need a template
            for address in addresses:
                self.send(address)
            return
        message = self.mail(*addresses)
        message.merge_metadata = {address: {"name": address} for address in addresses}
        message.send()


def outcome(send: Callable[..., None], *arguments: str) -> Any:
    """Send, and return what came of it."""
    try:
        send(*arguments)
    except Exception as error:
        response = getattr(error, "response", None)
        if isinstance(response, dict):  # of botocore
            status = response["ResponseMetadata"]["HTTPStatusCode"]
        else:
            status = getattr(error, "status_code", None) or getattr(error, "code", None)
        said = f"{error} {getattr(error, 'body', '')}"
        return {"name": type(error).__name__, "status": status, "said": said}
    return "sent"


CLIENTS = {"resend": Resend, "sendgrid": SendGrid, "ses": Boto, "sesv2": Boto}
client: Any = CLIENTS.get(SDK, Anymail)()
print(
    json.dumps(
        {
            "plain": outcome(client.send, to("plain")),
            "html": outcome(client.html),
            "batch": outcome(client.batch, to("first"), to("second")),
            "invalid": outcome(client.send, "x@-bad.example"),
            "busy": outcome(client.send, "x+fault.quota@customer.example"),
            "down": outcome(client.send, "x+fault.data-451@customer.example"),
        }
    )
)
