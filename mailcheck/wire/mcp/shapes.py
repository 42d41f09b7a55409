"""JSON shapes of what the tools give back as structured content (DECISIONS.md section 5).

The fields are those of REST. What a sender wrote is cleaned, unless a program
needs it exactly (links, codes); text and HTML stand within the call's fence.
"""

from collections.abc import Mapping

from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.core.cursors import format_cursor
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.read_inbox import MessageList
from mailcheck.operations.inbox.wait_for_message import TimedOut
from mailcheck.wire.inbox.message_schemas import SUMMARY_FIELDS
from mailcheck.wire.inbox.messages import render_listed_message, render_message
from mailcheck.wire.inbox.overview import render_timed_out
from mailcheck.wire.json_values import JsonObject, JsonValue
from mailcheck.wire.mcp.untrusted import Fence, clean_line
from mailcheck.wire.mcp.views import FEW_LINKS, MessageView, bound_links, view_html
from mailcheck.wire.urls import PublicUrls

EXACT = frozenset(
    ("id", "tag", "links", "bestLink", "codes", "value", "shareUrl", "url", "cursor", "deliveryId")
)
"""Fields whose strings a program passes on or opens: never changed. The rest is only read."""

MAX_HEADERS = 60
"""Header fields shown of a message; one with four relays and three signatures has about 40."""

MAX_CANDIDATE_CHARACTERS = 40_000
"""Characters of all candidates' values; they come best first."""

_RECEIVED = (*SUMMARY_FIELDS, "attachments")


def render_arrival(
    message: StoredMessage, view: MessageView, waited: float, fence: Fence, urls: PublicUrls
) -> JsonObject:
    """Render a wait that was not in vain."""
    return {
        "untrusted": render_fence(fence),
        "timedOut": False,
        "message": _render_received(message, view, fence, urls),
        "cursor": format_cursor(message.summary.position),
        "waited": waited,
        "hint": None,
        "seen": [],
        "rejected": [],
    }


def render_wait_in_vain(outcome: TimedOut, fence: Fence) -> JsonObject:
    """Render a wait in vain: data, not a failure."""
    shape = render_timed_out(outcome)
    return {
        "untrusted": render_fence(fence),
        "timedOut": True,
        "message": None,
        "cursor": shape["cursor"],
        "waited": shape["waited"],
        "hint": shape["error"],
        "seen": clean(shape["seen"]),
        "rejected": clean(shape["rejected"]),
    }


def render_whole_message(
    message: StoredMessage,
    view: MessageView,
    authentication: Authentication,
    fence: Fence,
    urls: PublicUrls,
) -> JsonObject:
    """Render a message with everything that is shown of it."""
    shape = render_message(message, urls, authentication)
    headers = shape["headers"]
    assert isinstance(headers, Mapping)
    html = message.content.html
    return {
        "untrusted": render_fence(fence),
        "message": {
            **_render_received(message, view, fence, urls),
            "html": fence.around(view_html(html)) if html else "",
            "headers": clean(dict(list(headers.items())[:MAX_HEADERS])),
            "envelope": clean(shape["envelope"]),
            "problems": clean(shape["problems"]),
            "authentication": clean(shape["authentication"]),
        },
    }


def render_message_list(messages: MessageList, fence: Fence, urls: PublicUrls) -> JsonObject:
    """Render a page of messages; of many links only the first are shown."""
    return {
        "untrusted": render_fence(fence),
        "messages": [
            {
                **_clean_fields(render_listed_message(message, urls)),
                "links": list(bound_links(message.extracted.links, FEW_LINKS)),
            }
            for message in messages.messages
        ],
        "nextPage": messages.next_page,
        "total": messages.total,
        "cursor": format_cursor(messages.cursor),
    }


def render_extraction(
    message: StoredMessage, view: MessageView, fence: Fence, urls: PublicUrls
) -> JsonObject:
    """Render what was extracted, with every candidate and the reasons for or against it."""
    left = MAX_CANDIDATE_CHARACTERS
    candidates = []
    for candidate, shape in zip(
        message.content.candidates, _extraction(message, urls), strict=True
    ):
        left -= len(candidate.value)
        if left >= 0:
            candidates.append(clean(shape))
    return {
        "untrusted": render_fence(fence),
        "id": message.summary.id,
        "links": list(view.links),
        "bestLink": message.content.best_link,
        "codes": list(message.content.codes),
        "candidates": candidates,
    }


def render_fence(fence: Fence) -> JsonObject:
    """Render what the fence's marker is, and what it means."""
    return {"marker": fence.marker, "notice": fence.notice}


def clean(value: JsonValue) -> JsonValue:
    """Clean every string of a shape but those a program needs exactly."""
    if isinstance(value, str):
        return clean_line(value)
    if isinstance(value, Mapping):
        return _clean_fields(value)
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def _clean_fields(shape: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        clean_line(name): value if name in EXACT else clean(value) for name, value in shape.items()
    }


def _render_received(
    message: StoredMessage, view: MessageView, fence: Fence, urls: PublicUrls
) -> JsonObject:
    shape = render_message(message, urls)
    return {
        **_clean_fields({name: shape[name] for name in _RECEIVED}),
        "links": list(view.links),
        "text": fence.around(view.text) if view.text else "",
        "hidesText": view.hides_text,
        "warnings": list(view.warnings),
    }


def _extraction(message: StoredMessage, urls: PublicUrls) -> list[JsonValue]:
    extraction = render_message(message, urls)["extraction"]
    assert isinstance(extraction, list)
    return extraction
