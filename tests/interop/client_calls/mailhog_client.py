"""Does each call of the client of MailHog for Python."""

import os
from urllib.parse import urlsplit

import mailhog
from calls import call, finish, send

address = urlsplit(os.environ["RECORDER"])
client = mailhog.Mailhog(address.hostname, address.port)
client.delete_all()
for name in ("ann", "bob"):
    send(f"{name}@customer.example")


def messages() -> None:
    """List the messages."""
    found = client.messages(limit=10)
    assert (found.total, found.count, found.start) == (2, 2, 0)
    newest = found.items[0]
    assert newest.get_sender() == "shop@example.com"
    assert newest.get_recipients() == ["bob@customer.example"]
    assert newest.get_subject() == "Welcome"
    missing = {"Message-ID", "Received", "Return-Path"} - set(newest.content.headers)
    assert not missing, sorted(missing)
    assert client.messages(start=1).items[0].get_recipients() == ["ann@customer.example"]


def search() -> None:
    """Search by each kind."""
    assert client.search("482913").total == 2
    assert client.search("ann@customer.example", "to").total == 1
    assert client.search("shop@example.com", "from", limit=1).count == 1


def delete() -> None:
    """Delete a message."""
    client.delete(client.messages().items[0])
    assert client.messages().total == 1


def delete_all() -> None:
    """Delete all messages."""
    client.delete_all()
    assert client.messages().total == 0


for one in (messages, search, delete, delete_all):
    call(one.__name__, one)
finish(name for name in dir(mailhog.Mailhog) if not name.startswith("_"))
