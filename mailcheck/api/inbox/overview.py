"""JSON shapes of an inbox: overview, address, list, raw mail (docs/reference/contract.md)."""

import base64
from typing import Annotated, Any, Literal

from mailcheck.api.inbox.messages import Cursor, ListedMessage, render_listed_message
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Always,
    Count,
    Shape,
    Timestamp,
    doc,
    schema_keywords,
)
from mailcheck.api.urls import PublicUrls
from mailcheck.core import messages
from mailcheck.core.accounts import InboxState
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.cursors import format_cursor
from mailcheck.core.instants import HOUR, format_instant
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.store.messages import InboxOverview

MessageIdField = Annotated[str, doc("names a message"), schema_keywords(format="uuid")]


class InboxAddress(Shape):
    """An address of the inbox, with the cursor to take before the mail is triggered."""

    address: Annotated[str, doc("inbox address")]
    email: Annotated[str, doc("the same")]
    tag: Annotated[str, doc("its +tag; empty without one")]
    mailbox: Annotated[str, doc("local part without the tag")]
    domain: str
    cursor: Cursor


class TagInUse(Shape):
    """A tag that there is mail for."""

    tag: str
    count: Annotated[int, doc("messages", ge=1)]
    latest_at: Timestamp


class Inbox(InboxAddress):
    """The inbox with its newest tags."""

    retention_hours: Annotated[float, doc("messages are kept so long", ge=0)]
    total: Annotated[int, doc("messages in the inbox", ge=0)]
    tags: Annotated[tuple[TagInUse, ...], doc("the newest first")]
    tag_total: Annotated[int, doc("tags in use, those that are not shown too", ge=0)]
    mail_server: Annotated[
        str, doc("host:port at which programs near by hand in mail; the inbox domain: by its MX")
    ]


NextPage = Annotated[Annotated[int, doc("a number", ge=2)] | None, doc("null on the last page")]


NotSearched = Annotated[
    Count | Absent,
    doc(
        "messages that may match as well: they have just come, and what is in them is not known "
        "yet; absent for 0"
    ),
]


class Messages(Shape):
    """A page of messages."""

    messages: Annotated[
        tuple[ListedMessage, ...], doc("newest first; without text, html and headers")
    ]
    next_page: NextPage
    total: Annotated[int, doc("all that match", ge=0)]
    cursor: Cursor
    not_searched: NotSearched = ABSENT


class RawMessage(Shape):
    """The bytes of a mail: as text where they are UTF-8, else in base64."""

    id: MessageIdField
    raw: Annotated[str, doc("the mail")]
    encoding: Literal["utf-8", "base64"]


class Deleted(Shape):
    """A message was deleted."""

    success: Always
    id: MessageIdField


class DeletedMany(Shape):
    """Messages were deleted."""

    success: Always
    deleted: Count


class Share(Shape):
    """The share link of a message."""

    id: MessageIdField
    share_url: Annotated[str, doc("public, needs no key")]
    expires_at: Timestamp


def render_overview(
    overview: InboxOverview, domain: str, retention: int, mail_server: str
) -> Inbox:
    """Render an inbox with its newest tags."""
    return Inbox(
        **_address(overview.state, "", domain),
        retention_hours=retention / HOUR if retention % HOUR else retention // HOUR,
        total=overview.state.message_count,
        tags=tuple(
            TagInUse(tag.tag, tag.message_count, format_instant(tag.latest_at))
            for tag in overview.tags
        ),
        tag_total=overview.tag_total,
        mail_server=mail_server,
    )


def render_address(inbox: InboxState, tag: str, domain: str) -> InboxAddress:
    """Render an address of the inbox."""
    return InboxAddress(**_address(inbox, tag, domain))


def _address(inbox: InboxState, tag: str, domain: str) -> dict[str, Any]:
    address = join_subaddress(inbox.mailbox_name, tag, domain)
    return {
        "address": address,
        "email": address,
        "tag": tag,
        "mailbox": inbox.mailbox_name,
        "domain": domain,
        "cursor": format_cursor(inbox.last_position),
    }


def render_list(found: MessageList, urls: PublicUrls) -> Messages:
    """Render a page of messages."""
    return Messages(
        tuple(render_listed_message(message, urls) for message in found.messages),
        found.next_page,
        found.total,
        format_cursor(found.cursor),
        found.not_searched or ABSENT,
    )


def render_raw_message(message_id: str, raw_message: bytes) -> RawMessage:
    """Render the bytes of a mail."""
    return RawMessage(message_id, *encode_raw(raw_message))


def encode_raw(raw_message: bytes) -> tuple[str, Literal["utf-8", "base64"]]:
    """Write the bytes of a mail as text, and say how: in base64 where they are not UTF-8."""
    try:
        return raw_message.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(raw_message).decode("ascii"), "base64"


def render_share(message: messages.StoredMessage, urls: PublicUrls) -> Share:
    """Render the share link of a message."""
    summary = message.summary
    return Share(
        summary.id,
        urls.share_url(summary.id, summary.share_token),
        format_instant(summary.expires_at),
    )
