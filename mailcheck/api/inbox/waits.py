"""JSON shapes of waits: for several messages, for none, in vain (docs/reference/contract.md)."""

from typing import Annotated, Any

from mailcheck.api.inbox.messages import (
    Cursor,
    ListedMessage,
    Message,
    RefusedMail,
    SeenMessage,
    render_listed_message,
    render_message,
    render_refusal,
    render_seen_message,
)
from mailcheck.api.shapes import ABSENT, Absent, Always, Count, Shape, doc
from mailcheck.api.urls import PublicUrls
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.messages import MessageSummary
from mailcheck.operations.inbox.explain_wait import COUNTED
from mailcheck.operations.inbox.explain_wait import TimedOut as WaitInVain
from mailcheck.operations.inbox.wait_for_message import Messages, UnexpectedMessage
from mailcheck.operations.inbox.wait_for_message import NoMessage as NoneArrived

SecondsWaited = Annotated[float, doc("seconds", ge=0)]


OtherTags = Annotated[
    Count | Absent,
    doc(
        f"messages that came to other tags and are not in seen, among the newest {COUNTED:,} "
        "messages; absent for 0"
    ),
]


class TimedOutBase(Shape):
    """What every wait in vain is told."""

    error: Annotated[str, doc("what to do next")]
    cursor: Cursor
    waited: SecondsWaited
    seen: Annotated[
        tuple[SeenMessage, ...],
        doc(
            "what came closest, the closest first: since the cursor given as after, else since "
            "10 minutes before the request",
            max_length=5,
        ),
    ]
    rejected: Annotated[
        tuple[RefusedMail, ...],
        doc("mail for this inbox that was refused, what may have been waited for first"),
    ]


class TimedOut(TimedOutBase):
    """No matching message in time."""

    other_tags: OtherTags = ABSENT


class ManyTimedOut(TimedOutBase):
    """Not as many messages as were waited for."""

    matched: Annotated[Count, doc("messages that match and did come")]
    other_tags: OtherTags = ABSENT


class GatheredMessages(Shape):
    """All the messages that were waited for."""

    messages: Annotated[tuple[ListedMessage, ...], doc("oldest first")]
    cursor: Annotated[Cursor, doc("of the last one")]


class NoMessage(Shape):
    """No message that matches came."""

    none: Always
    waited: SecondsWaited
    cursor: Annotated[Cursor, doc("up to here there is none")]


class UnwantedMessage(Shape):
    """A message came where none should have, or one was refused that may have matched."""

    error: str
    message: Annotated[Message | None, doc("the oldest that matches; null where it was refused")]
    cursor: Cursor
    rejected: Annotated[
        tuple[RefusedMail, ...], doc("the mail that was refused, where none was taken")
    ]


def render_wait_for_many(found: Messages, urls: PublicUrls) -> GatheredMessages:
    """Render all the messages that were waited for."""
    return GatheredMessages(
        tuple(render_listed_message(message, urls) for message in found.messages),
        format_cursor(found.cursor),
    )


def render_no_message(outcome: NoneArrived) -> NoMessage:
    """Render that none came."""
    return NoMessage(none=True, waited=outcome.waited, cursor=format_cursor(outcome.cursor))


def render_unexpected_message(outcome: UnexpectedMessage, urls: PublicUrls) -> UnwantedMessage:
    """Render the message that should not have come."""
    message, refusal = outcome.message, outcome.refusal
    return UnwantedMessage(
        error=explain_unexpected_message(outcome),
        message=None if message is None else render_message(message, urls),
        cursor=format_cursor(outcome.cursor),
        rejected=() if refusal is None else (render_refusal(refusal),),
    )


def explain_unexpected_message(outcome: UnexpectedMessage) -> str:
    """Say in a sentence of ours what came where none should have."""
    if outcome.refusal is None:
        return f"a matching message arrived within {outcome.waited:g} s: none was expected"
    return (
        f"a mail to where none was expected was refused, so what it said is not known: "
        f"{outcome.refusal.reason}"
    )


def render_timed_out(outcome: WaitInVain) -> TimedOut:
    """Render a wait in vain, with what did arrive and how to go on."""
    return TimedOut(**_timed_out(outcome))


def render_many_timed_out(outcome: WaitInVain) -> ManyTimedOut:
    """Render a wait for several messages that was in vain."""
    return ManyTimedOut(**_timed_out(outcome), matched=outcome.matched)


def _timed_out(outcome: WaitInVain) -> dict[str, Any]:
    return {
        "error": explain_timed_out(outcome),
        "cursor": format_cursor(outcome.cursor),
        "waited": outcome.waited,
        "seen": tuple(render_seen_message(seen.message, seen.reasons) for seen in outcome.seen),
        "rejected": tuple(map(render_refusal, outcome.rejected)),
        "other_tags": outcome.other_tags or ABSENT,
    }


def explain_timed_out(outcome: WaitInVain) -> str:
    """Say in a sentence of ours why a wait was in vain, and what to do."""
    if outcome.count == 1:
        error = f"no matching message arrived within {outcome.timeout:g} s"
    else:
        error = (
            f"{outcome.matched} of {outcome.count} matching messages arrived within "
            f"{outcome.timeout:g} s: repeat with after={format_cursor(outcome.cursor)}"
        )
    came = [
        *(["mail for this inbox was refused, see rejected"] if outcome.is_refused else ()),
        *_explain_others(outcome),
    ]
    if outcome.missed is None:
        return "; ".join((error, *came))
    # What was sent before is the whole story where nothing else came.
    told = (error, *came) if came or outcome.count > 1 else ()
    return "; ".join((*told, _explain_missed(outcome, outcome.missed)))


def _explain_others(outcome: WaitInVain) -> list[str]:
    if outcome.has_near_miss:
        return ["other messages did, see seen"]
    if not outcome.other_tags or outcome.is_refused:
        return []
    some = "1 message" if outcome.other_tags == 1 else f"{outcome.other_tags} messages"
    return [f"{some} to other tags did"]


def _explain_missed(outcome: WaitInVain, missed: MessageSummary) -> str:
    before = format_cursor(Position(missed.position - 1))
    side = "before this request" if outcome.missed_by >= 0 else "after this request began"
    without = " and without since" if outcome.gave_since else ""
    return (
        f"a matching message arrived {abs(outcome.missed_by) / 1000:.1f} s {side}: "
        f"repeat with after={before}{without}"
    )
