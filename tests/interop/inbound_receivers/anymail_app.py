"""An application with the inbound views of django-anymail. It prints its port, then each mail.

The argument is JSON: the settings of Anymail, without the API's URLs, which follow from ``url``.
"""

import json
import logging
import os
import sys
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from anymail.signals import inbound
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import include, path

given = json.loads(sys.argv[1])
url = given["url"]
# boto3 confirms the subscription to a topic at this endpoint.
os.environ.update(
    AWS_ENDPOINT_URL_SNS=f"{url}/sns", AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any"
)
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of the test",
    LOGGING_CONFIG=None,
    # Mails are larger than the bodies that Django accepts by default.
    DATA_UPLOAD_MAX_MEMORY_SIZE=None,
    ANYMAIL={
        "WEBHOOK_SECRET": given["password"],
        "SENDGRID_API_KEY": given["key"],
        "MAILGUN_API_KEY": given["key"],
        "MAILGUN_WEBHOOK_SIGNING_KEY": given["secret"],
        "MAILGUN_API_URL": f"{url}/mailgun/v3",
        "BREVO_API_KEY": given["key"],
        "BREVO_API_URL": f"{url}/brevo/v3/",
        "RESEND_API_KEY": given["key"],
        "RESEND_API_URL": f"{url}/resend/",
        "RESEND_INBOUND_SECRET": given["secret"],
        "MAILTRAP_API_TOKEN": given["key"],
        "MAILTRAP_API_URL": f"{url}/mailtrap/api/",
        "MAILTRAP_INBOUND_SECRET": given["secret"],
    },
)
logging.basicConfig(level=logging.WARNING)
urlpatterns = [path("anymail/", include("anymail.urls"))]


def show(sender: object, event: Any, esp_name: str, **_: object) -> None:
    """Print what a view made of a mail."""
    message = event.message
    files = message.attachments + list(message.content_id_map.values())
    shown = {
        "by": esp_name,
        "id": event.event_id,
        "from": str(message.from_email),
        "to": [address.addr_spec for address in message.to],
        "envelope_recipient": message.envelope_recipient,
        "envelope_sender": message.envelope_sender,
        "subject": message.subject,
        "text": message.text,
        "html": message.html,
        "stripped_text": message.stripped_text,
        "is_spam": message.spam_detected,
        "spam_score": message.spam_score,
        "files": {file.get_filename(): file.get_content_bytes().hex() for file in files},
        "inline": sorted(message.content_id_map),
    }
    print(json.dumps(shown), flush=True)


class Silent(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""


inbound.connect(show)
django.setup()
server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Silent)
print(server.server_port, flush=True)
server.serve_forever()
