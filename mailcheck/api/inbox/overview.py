"""JSON shapes of an inbox: overview, address, list of messages, raw mail."""

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
from mailcheck.core.accounts import InboxState, retention_of
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.cursors import format_cursor
from mailcheck.core.instants import HOUR, format_instant
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.operations.inbox.release_mail import Released
from mailcheck.store.messages import InboxOverview

MessageIdField = Annotated[str, doc("id of the message"), schema_keywords(format="uuid")]


class InboxAddress(Shape):
    """An inbox address, with the cursor to wait from. Request it before you trigger the mail."""

    address: Annotated[str, doc("inbox address")]
    email: Annotated[str, doc("the same as address")]
    tag: Annotated[str, doc("+tag of the address; empty if there is none")]
    mailbox: Annotated[str, doc("local part without the tag")]
    domain: str
    cursor: Cursor


class TagInUse(Shape):
    """A tag for which the inbox contains messages."""

    tag: str
    count: Annotated[int, doc("number of messages", ge=1)]
    latest_at: Timestamp


class Inbox(InboxAddress):
    """The inbox with its newest tags."""

    retention_hours: Annotated[
        float,
        doc("hours until a new message is deleted; a stored one has its own `expiresAt`", ge=0),
    ]
    total: Annotated[int, doc("number of messages in the inbox", ge=0)]
    tags: Annotated[tuple[TagInUse, ...], doc("newest first")]
    tag_total: Annotated[int, doc("number of tags in use, including those not shown", ge=0)]
    mail_server: Annotated[
        str, doc("host:port for local programs; the MX record of the domain is for other servers")
    ]
    hint: Annotated[
        str | Absent, doc("how to find mail to tags that are not shown; absent: all are shown")
    ] = ABSENT


NextPage = Annotated[Annotated[int, doc("page number", ge=2)] | None, doc("null on the last page")]


NotSearched = Annotated[
    Count | Absent,
    doc(
        "further messages that may match: they have just arrived and their content is not parsed "
        "yet; absent: 0"
    ),
]


class Messages(Shape):
    """A page of messages."""

    messages: Annotated[
        tuple[ListedMessage, ...], doc("newest first; without text, html and headers")
    ]
    next_page: NextPage
    total: Annotated[int, doc("number of matching messages", ge=0)]
    cursor: Cursor
    not_searched: NotSearched = ABSENT


class RawMessage(Shape):
    """The raw mail: as text if it is valid UTF-8, otherwise in Base64."""

    id: MessageIdField
    raw: Annotated[str, doc("the mail")]
    encoding: Literal["utf-8", "base64"]


class Deleted(Shape):
    """Confirmation that a message was deleted."""

    success: Always
    id: MessageIdField


class DeletedMany(Shape):
    """Confirmation that messages were deleted."""

    success: Always
    deleted: Count


class Share(Shape):
    """Share link of a message."""

    id: MessageIdField
    share_url: Annotated[str, doc("public; requires no API key")]
    expires_at: Timestamp


def render_overview(
    overview: InboxOverview, domain: str, retention: int, mail_server: str
) -> Inbox:
    """Render an inbox with its newest tags. ``retention`` is the configured one, in ms."""
    retention = retention_of(overview.state.retention_hours, retention)
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
        hint=explain_hidden_tags(overview) or ABSENT,
    )


def explain_hidden_tags(overview: InboxOverview) -> str:
    """Return how to find mail to the tags that are not shown, or an empty string if all are."""
    shown = len(overview.tags)
    if overview.tag_total <= shown:
        return ""
    return (
        f"tags has the newest {shown} of {overview.tag_total:,} tags; list the mail to another one"
        " with GET /inbox/messages?tag=NAME, or to several with tagPrefix=BEGINNING"
    )


class ReleasedTo(Shape):
    """What the relay answered about a recipient."""

    address: str
    accepted: bool
    reply: Annotated[str, doc("code and text of the relay's answer")]


class ReleasedMessage(Shape):
    """A message that the relay has accepted."""

    id: MessageIdField
    recipients: tuple[ReleasedTo, ...]
    warnings: Annotated[
        tuple[str, ...], doc("why a receiver may reject the mail, such as a DMARC policy")
    ]


def render_released(found: Released) -> ReleasedMessage:
    """Render a released message."""
    return ReleasedMessage(
        found.message_id,
        tuple(
            ReleasedTo(reply.address, reply.is_accepted, f"{reply.code} {reply.text}".rstrip())
            for reply in found.replies
        ),
        found.warnings,
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
    """Render the raw mail of a message."""
    return RawMessage(message_id, *encode_raw(raw_message))


def encode_raw(raw_message: bytes) -> tuple[str, Literal["utf-8", "base64"]]:
    """Return the mail as text and the encoding: UTF-8 if the mail is valid UTF-8, or Base64."""
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
