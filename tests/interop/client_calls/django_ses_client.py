"""Sends mail with django-ses, over both versions of SES, and runs its commands."""

import os
from io import StringIO

import django
from calls import call, finish, received
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=["django_ses"],
    AWS_ACCESS_KEY_ID=os.environ["API_KEY"],
    AWS_SECRET_ACCESS_KEY=os.environ["API_KEY"],
    AWS_SES_REGION_NAME="eu-central-1",
    AWS_SES_REGION_ENDPOINT_URL=f"{os.environ['RECORDER']}/providers/ses",
    USE_TZ=True,
)
django.setup()


def send(version: int, **options: bool) -> None:
    """Send a mail with the default options, which ask for the quota before."""
    to = f"v{version}.django-ses@customer.example"
    connection = get_connection("django_ses.SESBackend", **options)
    mail = EmailMessage("Welcome", "hello", "shop@example.com", [to], connection=connection)
    assert mail.send() == 1
    assert received(to)["deliveryId"] == mail.extra_headers["message_id"]


def ses_email_address() -> None:
    """Verify an address, and list all addresses."""
    call_command("ses_email_address", add="shop@example.com", stdout=StringIO())
    call_command("ses_email_address", list=True, stdout=StringIO())


call("SESBackend", lambda: send(1))
call("SESBackend (use_ses_v2)", lambda: send(2, use_ses_v2=True))
call("ses_email_address", ses_email_address)
finish(["SESBackend"])
