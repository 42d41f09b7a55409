"""Does each call of Mailosaur's client for Python."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from calls import call, finish, local, refused, send
from mailosaur import MailosaurClient
from mailosaur.models import (
    DeviceCreateOptions,
    MailosaurException,
    MessageCreateOptions,
    MessageForwardOptions,
    MessageReplyOptions,
    PreviewRequestOptions,
    SearchCriteria,
    ServerCreateOptions,
)

SERVER = "pyth1234"
EPOCH = datetime(1970, 1, 2, tzinfo=UTC)
client = MailosaurClient(os.environ["API_KEY"], f"{os.environ['RECORDER']}/mailosaur/")
address = client.servers.generate_email_address(SERVER)
client.messages.delete_all(SERVER)
send(address)
newest = client.messages.list(SERVER).items[0].id


def criteria(**given: str) -> SearchCriteria:
    """Return the criteria of a search."""
    found = SearchCriteria()
    for name, value in given.items():
        setattr(found, name, value)
    return found


@contextmanager
def fails(expected: Callable[[MailosaurException], bool]) -> Iterator[None]:
    """Check that the client raises the expected error."""
    raised = None
    try:
        yield
    except MailosaurException as error:
        raised = error
    assert raised is not None, "the call did not fail"
    assert expected(raised), str(raised)


def messages_list() -> None:
    """List the messages of a server."""
    (one,) = client.messages.list(SERVER, 0, 10, EPOCH).items
    assert (one.subject, one.server, one.type) == ("Welcome", SERVER, "Email")
    assert one.attachments >= 1
    assert one.sender[0].email == "shop@example.com"
    assert client.messages.list(SERVER, dir="Sent").items == []


def messages_get_by_id() -> None:
    """Get a message."""
    found = client.messages.get_by_id(newest)
    assert found.html.codes[0].value == "482913"
    assert found.html.links[0].href == "https://shop.example/verify?token=abc"
    assert found.html.images[0].alt == "A cat"
    assert found.to[0].email == address
    assert found.metadata.mail_from == "shop@example.com"
    assert [one.value for one in found.metadata.headers if one.field == "Subject"] == ["Welcome"]


def messages_search() -> None:
    """Search by each criterion."""
    for one in (
        criteria(sent_to=address),
        criteria(sent_from="shop@example.com"),
        criteria(subject="welcome"),
        criteria(body="482913"),
        criteria(subject="welcome", sent_to="nobody@example.com", match="ANY"),
    ):
        assert [each.id for each in client.messages.search(SERVER, one).items] == [newest]
    nothing = client.messages.search(SERVER, criteria(subject="none"), error_on_timeout=False)
    assert nothing.items == []


def messages_get() -> None:
    """Wait for a message."""
    assert client.messages.get(SERVER, criteria(sent_to=address), timeout=1_000).id == newest
    none = criteria(subject="none")
    with fails(lambda one: one.error_type == "search_timeout"):
        client.messages.get(SERVER, none, timeout=300)


def files_get_attachment() -> None:
    """Get a file."""
    files = client.messages.get_by_id(newest).attachments
    (file,) = [one for one in files if one.file_name == "a.csv"]
    assert (file.content_type, file.length) == ("text/csv", 7)
    assert b"".join(client.files.get_attachment(file.id)) == b"one,two"


def files_get_email() -> None:
    """Get the source of a message."""
    assert b"Subject: Welcome\r\n" in b"".join(client.files.get_email(newest))


def analysis_spam() -> None:
    """Analyse a message."""
    found = client.analysis.spam(newest)
    assert isinstance(found.score, float)
    assert found.spam_filter_results.spam_assassin[0].rule


def analysis_deliverability() -> None:
    """Check the authentication of a message."""
    found = client.analysis.deliverability(newest)
    assert found.spf.result.value in ("Pass", "Warning", "Fail", "Timeout")
    assert found.block_lists, "blockLists"
    assert found.content.text_size > 0, "content"


def servers_create() -> None:
    """Create a server."""
    made = client.servers.create(ServerCreateOptions("My tests"))
    assert (len(made.id), made.name, made.messages, made.users) == (8, "My tests", 0, [])


def servers_list() -> None:
    """List the servers."""
    assert {one["id"]: one["messages"] for one in client.servers.list().items}[SERVER] == 1


def servers_get() -> None:
    """Get a server."""
    assert client.servers.get(SERVER).messages == 1


def servers_update() -> None:
    """Rename a server."""
    server = client.servers.get(SERVER)
    server.name = "Yours"
    assert client.servers.update(SERVER, server).name == "Yours"
    assert client.servers.get(SERVER).name == "Yours"


def servers_get_password() -> None:
    """Get the password of a server."""
    assert client.servers.get_password(SERVER) == os.environ["API_KEY"]


def servers_delete() -> None:
    """Delete a server."""
    made = client.servers.create(ServerCreateOptions("Gone"))
    client.servers.delete(made.id)
    with fails(lambda one: one.http_status_code == 404):
        client.servers.get(made.id)


def usage_limits() -> None:
    """Get the limits."""
    assert client.usage.limits().email.limit > 0


def usage_transactions() -> None:
    """Get the numbers of messages."""
    assert client.usage.transactions().items[0].email >= 1


def messages_delete() -> None:
    """Delete a message."""
    client.messages.delete(newest)
    assert client.messages.list(SERVER).items == []


def messages_delete_all() -> None:
    """Delete all messages of a server."""
    client.messages.delete_all(SERVER)
    assert client.messages.list(SERVER).items == []


for one in (
    messages_list,
    messages_get_by_id,
    messages_search,
    messages_get,
    files_get_attachment,
    files_get_email,
    analysis_spam,
    analysis_deliverability,
    servers_create,
    servers_list,
    servers_get,
    servers_update,
    servers_get_password,
    servers_delete,
    usage_limits,
    usage_transactions,
):
    call(one.__name__.replace("_", ".", 1), one)

SENDS_NOTHING = "mailcheck sends no captured mail to the outside"
NO_DEVICES = "mailcheck has no devices for one-time passwords"
NO_PREVIEWS = "mailcheck takes no pictures of mail"
previews = PreviewRequestOptions(["OL2021"])
for name, reason, work in (
    (
        "messages.create",
        SENDS_NOTHING,
        lambda: client.messages.create(
            SERVER, MessageCreateOptions("a@example.com", True, "s", "t")
        ),
    ),
    (
        "messages.forward",
        SENDS_NOTHING,
        lambda: client.messages.forward(newest, MessageForwardOptions("a@example.com", "t")),
    ),
    (
        "messages.reply",
        SENDS_NOTHING,
        lambda: client.messages.reply(newest, MessageReplyOptions("t")),
    ),
    (
        "messages.generate_previews",
        NO_PREVIEWS,
        lambda: client.messages.generate_previews(newest, previews),
    ),
    ("files.get_preview", NO_PREVIEWS, lambda: client.files.get_preview(newest)),
    ("previews.list_email_clients", NO_PREVIEWS, lambda: client.previews.list_email_clients()),
    ("devices.list", NO_DEVICES, lambda: client.devices.list()),
    (
        "devices.create",
        NO_DEVICES,
        lambda: client.devices.create(DeviceCreateOptions({"name": "d"})),
    ),
    ("devices.otp", NO_DEVICES, lambda: client.devices.otp("ABCDEFGH")),
    ("devices.delete", NO_DEVICES, lambda: client.devices.delete("1")),
):
    refused(name, reason, work)
local("servers.generate_email_address")
call("messages.delete", messages_delete)
send(address)
call("messages.delete_all", messages_delete_all)
finish(
    f"{group}.{name}"
    for group in ("analysis", "devices", "files", "messages", "previews", "servers", "usage")
    for name in dir(getattr(client, group))
    if name.islower()
    and not name.startswith("_")
    and name not in ("base_url", "handle_http_error", "session")
    and (group, name) != ("devices", "generate_email_address")
)
