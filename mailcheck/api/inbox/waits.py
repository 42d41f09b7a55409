"""JSON shapes of waits: for several messages, for no message, and after a timeout."""

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
        f"number of messages to other tags that are not in `seen`, among the newest {COUNTED:,}; "
        "absent: 0"
    ),
]


class TimedOutBase(Shape):
    """The fields of every response to a wait that timed out."""

    error: Annotated[str, doc("what to do next")]
    cursor: Cursor
    waited: SecondsWaited
    seen: Annotated[
        tuple[SeenMessage, ...],
        doc(
            "closest matches first: since the cursor passed as `after`, or since 10 minutes before "
            "the request",
            max_length=5,
        ),
    ]
    rejected: Annotated[
        tuple[RefusedMail, ...],
        doc("rejected mail that may have matched, newest first"),
    ]


class TimedOut(TimedOutBase):
    """No matching message arrived before the timeout."""

    other_tags: OtherTags = ABSENT


class ManyTimedOut(TimedOutBase):
    """Fewer matching messages arrived than the wait expected."""

    matched: Annotated[Count, doc("number of matching messages that arrived")]
    other_tags: OtherTags = ABSENT


class GatheredMessages(Shape):
    """All messages that the wait expected."""

    messages: Annotated[tuple[ListedMessage, ...], doc("oldest first")]
    cursor: Annotated[Cursor, doc("cursor of the last message")]


class NoMessage(Shape):
    """No matching message arrived."""

    none: Always
    waited: SecondsWaited
    cursor: Annotated[Cursor, doc("no message up to this position matches")]


class UnwantedMessage(Shape):
    """A message arrived although none was expected, or a possible match was rejected."""

    error: str
    message: Annotated[Message | None, doc("oldest match; null if the mail was rejected")]
    cursor: Cursor
    rejected: Annotated[
        tuple[RefusedMail, ...], doc("the rejected mail, if no message was accepted")
    ]


def render_wait_for_many(found: Messages, urls: PublicUrls) -> GatheredMessages:
    """Render all messages that a wait expected."""
    return GatheredMessages(
        tuple(render_listed_message(message, urls) for message in found.messages),
        format_cursor(found.cursor),
    )


def render_no_message(outcome: NoneArrived) -> NoMessage:
    """Render the result of a wait in which no message arrived, as expected."""
    return NoMessage(none=True, waited=outcome.waited, cursor=format_cursor(outcome.cursor))


def render_unexpected_message(outcome: UnexpectedMessage, urls: PublicUrls) -> UnwantedMessage:
    """Render a message that arrived although none was expected."""
    message, refusal = outcome.message, outcome.refusal
    return UnwantedMessage(
        error=explain_unexpected_message(outcome),
        message=None if message is None else render_message(message, urls),
        cursor=format_cursor(outcome.cursor),
        rejected=() if refusal is None else (render_refusal(refusal),),
    )


def explain_unexpected_message(outcome: UnexpectedMessage) -> str:
    """Return one sentence about a message that arrived although none was expected."""
    if outcome.refusal is None:
        return f"a matching message arrived within {outcome.waited:g} s, but none was expected"
    return (
        "a mail to the address was rejected, so it is not known whether it matches: "
        f"{outcome.refusal.reason}"
    )


def render_timed_out(outcome: WaitInVain) -> TimedOut:
    """Render a wait that timed out, with the messages that did arrive and how to continue."""
    return TimedOut(**_timed_out(outcome))


def render_many_timed_out(outcome: WaitInVain) -> ManyTimedOut:
    """Render a wait for several messages that timed out."""
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
    """Return why a wait timed out and what to do, in sentences without text of the sender."""
    if outcome.count == 1:
        error = f"no matching message arrived within {outcome.timeout:g} s"
    else:
        error = (
            f"{outcome.matched} of {outcome.count} matching messages arrived within "
            f"{outcome.timeout:g} s: repeat with after={format_cursor(outcome.cursor)}"
        )
    came = [
        *(["mail for this inbox was rejected, see rejected"] if outcome.rejected else ()),
        *_explain_others(outcome),
    ]
    if outcome.missed is None:
        return "; ".join((error, *came))
    # If nothing else arrived, the missed message explains the timeout on its own.
    first = (error, *came) if came or outcome.count > 1 else ()
    return "; ".join((*first, _explain_missed(outcome, outcome.missed)))


def _explain_others(outcome: WaitInVain) -> list[str]:
    if outcome.has_near_miss:
        return ["other messages arrived, see seen"]
    if not outcome.other_tags or outcome.rejected:
        return []
    some = "1 message" if outcome.other_tags == 1 else f"{outcome.other_tags} messages"
    return [f"{some} to other tags arrived"]


def _explain_missed(outcome: WaitInVain, missed: MessageSummary) -> str:
    before = format_cursor(Position(missed.position - 1))
    side = "before this request" if outcome.missed_by >= 0 else "after this request began"
    without = " and without since" if outcome.gave_since else ""
    return (
        f"a matching message arrived {abs(outcome.missed_by) / 1000:.1f} s {side}: "
        f"repeat with after={before}{without}"
    )
