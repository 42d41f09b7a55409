"""JSON shapes of an inbox: overview, address, list, raw mail, a wait in vain (DECISIONS.md 4)."""

import base64

from mailcheck.core.accounts import InboxState
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.instants import HOUR, format_instant
from mailcheck.core.messages import StoredMessage
from mailcheck.core.subaddresses import join_subaddress
from mailcheck.operations.inbox.read_inbox import MessageList
from mailcheck.operations.inbox.wait_for_message import TimedOut
from mailcheck.operations.ports import InboxOverview
from mailcheck.wire.inbox.messages import render_listed_message, render_refusal, render_seen_message
from mailcheck.wire.json_values import JsonObject
from mailcheck.wire.urls import PublicUrls


def render_overview(overview: InboxOverview, domain: str, retention: int) -> JsonObject:
    """Render an inbox with its newest tags."""
    return {
        **render_address(overview.state, "", domain),
        "retentionHours": retention / HOUR if retention % HOUR else retention // HOUR,
        "total": overview.state.message_count,
        "tags": [
            {
                "tag": tag.tag,
                "count": tag.message_count,
                "latestAt": format_instant(tag.latest_at),
            }
            for tag in overview.tags
        ],
        "tagTotal": overview.tag_total,
    }


def render_address(inbox: InboxState, tag: str, domain: str) -> JsonObject:
    """Render an address of the inbox, with the cursor to take before the mail is triggered."""
    return {
        "address": join_subaddress(inbox.mailbox_name, tag, domain),
        "tag": tag,
        "mailbox": inbox.mailbox_name,
        "domain": domain,
        "cursor": format_cursor(inbox.last_position),
    }


def render_list(messages: MessageList, urls: PublicUrls) -> JsonObject:
    """Render a page of messages."""
    return {
        "messages": [render_listed_message(message, urls) for message in messages.messages],
        "nextPage": messages.next_page,
        "total": messages.total,
        "cursor": format_cursor(messages.cursor),
    }


def render_raw_message(message_id: str, raw_message: bytes) -> JsonObject:
    """Render the bytes of a mail: as text where they are UTF-8, else in base64."""
    try:
        return {"id": message_id, "raw": raw_message.decode("utf-8"), "encoding": "utf-8"}
    except UnicodeDecodeError:
        raw = base64.b64encode(raw_message).decode("ascii")
        return {"id": message_id, "raw": raw, "encoding": "base64"}


def render_share(message: StoredMessage, urls: PublicUrls) -> JsonObject:
    """Render the share link of a message."""
    summary = message.summary
    return {
        "id": summary.id,
        "shareUrl": urls.share_url(summary.id, summary.share_token),
        "expiresAt": format_instant(summary.expires_at),
    }


def render_timed_out(outcome: TimedOut) -> JsonObject:
    """Render a wait in vain, with what did arrive and how to go on."""
    return {
        "error": _explain(outcome),
        "cursor": format_cursor(outcome.cursor),
        "waited": outcome.waited,
        "seen": [render_seen_message(seen.message, seen.reasons) for seen in outcome.seen],
        "rejected": [render_refusal(refusal) for refusal in outcome.rejected],
    }


def _explain(outcome: TimedOut) -> str:
    if outcome.missed is not None:
        before = format_cursor(Position(outcome.missed.position - 1))
        side = "before this request" if outcome.missed_by >= 0 else "after this request began"
        without = " and without since" if outcome.gave_since else ""
        return (
            f"a matching message arrived {abs(outcome.missed_by) / 1000:.1f} s {side}: "
            f"repeat with after={before}{without}"
        )
    error = f"no matching message arrived within {outcome.waited:.0f} s"
    if outcome.rejected:
        error += "; mail for this inbox was refused, see rejected"
    elif outcome.seen:
        error += "; other messages did, see seen"
    return error
