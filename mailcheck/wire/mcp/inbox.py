"""What the tools of the inbox give back as structured content (DECISIONS.md section 5).

The fields are those of REST. What a sender wrote is cleaned, unless a program
needs it exactly (links, codes); text and HTML stand within the call's fence.
"""

from typing import Annotated, Any

import msgspec

from mailcheck.checks.deliverability import authentication as verdicts
from mailcheck.core.cursors import format_cursor
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.read_inbox import MessageList
from mailcheck.operations.inbox.wait_for_message import TimedOut
from mailcheck.wire.authentication import Authentication, render_authentication
from mailcheck.wire.inbox.messages import (
    Attachment,
    Candidate,
    Cursor,
    Envelope,
    ListedMessage,
    Message,
    RefusedMail,
    SeenMessage,
    SummarizedMessage,
    render_candidate,
    render_message,
)
from mailcheck.wire.inbox.overview import render_list, render_timed_out
from mailcheck.wire.mcp.untrusted import Fence, Untrusted, clean
from mailcheck.wire.mcp.views import FEW_LINKS, MessageView, bound_links, view_html
from mailcheck.wire.shapes import Shape, Texts, fields_of, said
from mailcheck.wire.urls import PublicUrls

MAX_HEADERS = 60
"""Header fields shown of a message; one with four relays and three signatures has about 40."""

MAX_CANDIDATE_CHARACTERS = 40_000
"""Characters of all candidates' values; they come best first."""


class ReceivedMessage(SummarizedMessage):
    """A message as an agent reads it."""

    attachments: tuple[Attachment, ...]
    text: Annotated[
        str, said("what a person reads, within the untrusted marker; empty without any")
    ]
    hides_text: Annotated[bool, said("the mail holds text that people do not see")]
    warnings: Annotated[Texts, said("about hidden text and what was cut")]


class WholeMessage(ReceivedMessage):
    """A message with everything that is shown of it."""

    html: Annotated[
        str, said("within the untrusted marker, images and scripts inert; empty without any")
    ]
    headers: Annotated[dict[str, str], said("header fields by lower-case name")]
    envelope: Envelope
    problems: Annotated[Texts, said("what was broken in the mail")]
    authentication: Authentication


class WaitResult(Shape):
    """The end of a wait, in vain or not."""

    untrusted: Untrusted
    timed_out: Annotated[
        bool, said("true: nothing that matches came in time; call again with the cursor")
    ]
    message: ReceivedMessage | None
    cursor: Cursor
    waited: Annotated[float, said("seconds")]
    hint: Annotated[str | None, said("why nothing came and what to do, null when a message came")]
    seen: Annotated[tuple[SeenMessage, ...], said("messages that came but did not match")]
    rejected: Annotated[tuple[RefusedMail, ...], said("mail for this inbox that was refused")]


class ListResult(Shape):
    """A page of messages."""

    untrusted: Untrusted
    messages: Annotated[
        tuple[ListedMessage, ...], said("newest first; of many links only the first ten")
    ]
    next_page: int | None
    total: Annotated[int, said("all that match")]
    cursor: Cursor


class MessageResult(Shape):
    """A message."""

    untrusted: Untrusted
    message: WholeMessage


class ExtractResult(Shape):
    """Codes and links of a message, and how they were judged."""

    untrusted: Untrusted
    id: str
    links: Annotated[Texts, said("http(s) links, in order")]
    best_link: Annotated[str | None, said("the link a person would click, null without one")]
    codes: Annotated[Texts, said("one-time codes, best first")]
    candidates: Annotated[tuple[Candidate, ...], said("best first, rejected ones too")]


class DeleteResult(Shape):
    """A message was deleted."""

    id: str
    deleted: bool


def render_arrival(
    message: StoredMessage, view: MessageView, waited: float, fence: Fence, urls: PublicUrls
) -> WaitResult:
    """Render a wait that was not in vain."""
    return WaitResult(
        untrusted=fence.shown,
        timed_out=False,
        message=ReceivedMessage(**_received(render_message(message, urls), view, fence)),
        cursor=format_cursor(message.summary.position),
        waited=waited,
        hint=None,
        seen=(),
        rejected=(),
    )


def render_wait_in_vain(outcome: TimedOut, fence: Fence) -> WaitResult:
    """Render a wait in vain: data, not a failure."""
    shape = render_timed_out(outcome)
    return WaitResult(
        untrusted=fence.shown,
        timed_out=True,
        message=None,
        cursor=shape.cursor,
        waited=shape.waited,
        hint=shape.error,
        seen=clean(shape.seen),
        rejected=clean(shape.rejected),
    )


def render_whole_message(
    message: StoredMessage,
    view: MessageView,
    authentication: verdicts.Authentication,
    fence: Fence,
    urls: PublicUrls,
) -> MessageResult:
    """Render a message with everything that is shown of it."""
    shape = render_message(message, urls)
    whole = WholeMessage(
        **_received(shape, view, fence),
        html=fence.around(view_html(shape.html)) if shape.html else "",
        headers=clean(dict(list(shape.headers.items())[:MAX_HEADERS])),
        envelope=clean(shape.envelope),
        problems=clean(shape.problems),
        authentication=clean(render_authentication(authentication)),
    )
    return MessageResult(fence.shown, whole)


def render_message_list(found: MessageList, fence: Fence, urls: PublicUrls) -> ListResult:
    """Render a page of messages; of many links only the first are shown."""
    page = render_list(found, urls)
    messages = tuple(
        msgspec.structs.replace(clean(one), links=bound_links(one.links, FEW_LINKS))
        for one in page.messages
    )
    return ListResult(fence.shown, messages, page.next_page, page.total, page.cursor)


def render_extraction(message: StoredMessage, view: MessageView, fence: Fence) -> ExtractResult:
    """Render what was extracted, with every candidate and the reasons for or against it."""
    left = MAX_CANDIDATE_CHARACTERS
    candidates = []
    for candidate in message.content.candidates:
        left -= len(candidate.value)
        if left >= 0:
            candidates.append(clean(render_candidate(candidate)))
    return ExtractResult(
        untrusted=fence.shown,
        id=message.summary.id,
        links=tuple(view.links),
        best_link=message.content.best_link,
        codes=tuple(message.content.codes),
        candidates=tuple(candidates),
    )


def _received(shape: Message, view: MessageView, fence: Fence) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(clean(SummarizedMessage(**fields_of(shape, SummarizedMessage)))),
        "links": tuple(view.links),
        "attachments": clean(shape.attachments),
        "text": fence.around(view.text) if view.text else "",
        "hides_text": view.hides_text,
        "warnings": tuple(view.warnings),
    }
