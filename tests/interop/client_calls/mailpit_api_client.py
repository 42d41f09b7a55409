"""Does each call of mailpit-api-client."""

import os

from calls import call, finish, send
from mailpit.client.api import API

api = API(os.environ["RECORDER"], timeout=60)
api.delete_messages([])
for name in ("ann", "bob"):
    send(f"{name}@customer.example")


def get_messages() -> None:
    """List the messages."""
    found = api.get_messages(limit=10)
    assert (found.total, len(found.messages)) == (2, 2)
    assert found.messages[0].to[0].address == "bob@customer.example"
    assert api.get_messages(limit=1, start=1).messages[0].to[0].address == "ann@customer.example"


def get_message() -> None:
    """Get a message."""
    message = api.get_message(newest)
    assert message.subject == "Welcome"
    assert message.text.endswith("token=abc\r\n")


def get_message_attachment() -> None:
    """Get a file."""
    files = {one.file_name: one for one in api.get_message(newest).attachments}
    assert api.get_message_attachment(newest, files["a.csv"].part_id) == "one,two"


def get_message_headers() -> None:
    """Get the headers."""
    headers = api.get_message_headers(newest)
    assert headers.message_id == [f"<{api.get_message(newest).message_id}>"]
    assert headers.additional["Subject"] == ["Welcome"]


def put_messages() -> None:
    """Mark a message, which the client sends as a form."""
    api.put_messages([newest], "Read", "true")
    assert api.get_messages().unread == 1


def delete_messages() -> None:
    """Delete a message, which the client sends as a form."""
    api.delete_messages([newest])
    assert api.get_messages().total == 1


newest = api.get_messages(limit=1).messages[0].id
for one in (
    get_messages,
    get_message,
    get_message_attachment,
    get_message_headers,
    put_messages,
    delete_messages,
):
    call(one.__name__, one)
finish(name for name in dir(API) if name.islower() and not name.startswith("_"))
