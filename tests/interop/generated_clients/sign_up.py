# mypy: ignore-errors
"""Wait for a sign-up mail with the client that openapi-python-client generates."""

import os
import smtplib

from generated import AuthenticatedClient
from generated.api.inbox import delete_message, get_inbox_address, wait_for_message
from generated.models import Message

client = AuthenticatedClient(os.environ["MAILCHECK_API"], os.environ["MAILCHECK_API_KEY"])
address = get_inbox_address.sync(client=client, tag="python", unique=True)
with smtplib.SMTP(os.environ["SMTP_HOST"], int(os.environ["SMTP_PORT"])) as smtp:
    smtp.sendmail("shop@example.com", [address.address], os.environ["MAIL"])
found = wait_for_message.sync(
    client=client, tag=address.tag, after=address.cursor, subject="Welcome", timeout=30.0
)
assert isinstance(found, Message), found
deleted = delete_message.sync(id=found.id, client=client)
print(found.codes[0], found.links[0], deleted.success)
