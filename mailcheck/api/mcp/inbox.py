"""Arguments and structured content of the tools for addresses, waits and lists of messages."""

from typing import Annotated, Any, TypeVar

from mailcheck.api.inbox.messages import (
    Cursor,
)
from mailcheck.api.inbox.overview import NotSearched
from mailcheck.api.inbox.waits import explain_timed_out, explain_unexpected_message
from mailcheck.api.mcp.untrusted import (
    MAIL_NOTICE,
    Untrusted,
    clean_line,
)
from mailcheck.api.mcp.views import MessageView
from mailcheck.api.requests.fields import (
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    FLAG,
    INTEGER,
    LONGEST_TASK,
    MAX_WAIT_COUNT,
    TAG,
    After,
    Limit,
    PageNumber,
    Since,
    Timeout,
)
from mailcheck.api.requests.inbox import SearchTerms, Selection, WaitFilters, search_for
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, doc
from mailcheck.core.accounts import InboxState
from mailcheck.core.addresses import join_subaddress, join_subdomain
from mailcheck.core.cursors import format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant
from mailcheck.core.messages import ListedMessage, MessageSummary, Refusal, StoredMessage
from mailcheck.operations.inbox.explain_wait import SeenMessage, TimedOut
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.operations.inbox.wait_for_message import Messages, NoMessage, UnexpectedMessage

FEW_SEEN = 3
"""Maximum number of non-matching messages after a timeout."""

FEW_CODES = 3
"""Maximum number of codes in short results, the best first. A mail has one, rarely two."""

SHORT_AUTHOR, SHORT_SUBJECT = 40, 80
"""Maximum number of characters of an author and a subject in a list."""


class NewAddressArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``new_address``. Without a tag, a unique one is generated."""

    tag: Annotated[
        Annotated[str, TAG] | None,
        Description(brief="+tag instead of a unique one"),
    ] = None


class WaitForMessageArguments(WaitFilters, frozen=True, kw_only=True):
    """Arguments of ``wait_for_message``: a wait for one message, several, or none."""

    timeout: Annotated[
        Timeout | None,
        Description(
            brief=f"seconds; {DEFAULT_SILENCE:g} with none",
            default=DEFAULT_WAIT,
        ),
    ] = None
    count: Annotated[
        Annotated[int, INTEGER] | None,
        Description(brief="wait for this many mails", low=1, high=MAX_WAIT_COUNT),
    ] = None
    none: Annotated[bool, FLAG, Description(brief="expect none within timeout")] = False

    @property
    def seconds(self) -> float:
        """The duration of the wait in seconds.

        :raises InvalidParameter: both ``none`` and ``count`` are given.
        """
        if self.none and self.count is not None:
            raise InvalidParameter("none", "none and count cannot be combined: send only one")
        default = DEFAULT_SILENCE if self.none else DEFAULT_WAIT
        return default if self.timeout is None else self.timeout


class LongWaitArguments(WaitForMessageArguments, frozen=True, kw_only=True):
    """Arguments of ``wait_for_message`` for clients of tasks."""

    timeout: Annotated[
        Timeout | None,
        Description(
            brief=f"seconds; {DEFAULT_SILENCE:g} with none", default=DEFAULT_WAIT, high=LONGEST_TASK
        ),
    ] = None


class ListMessagesArguments(Selection, frozen=True, kw_only=True):
    """Arguments of ``list_messages``, with small pages that fit into the context of a model."""

    tag: Annotated[Annotated[str, TAG] | None, Description(brief="+tag; empty: no tag")] = None
    q: SearchTerms = None
    after: After = None
    since: Since = None
    limit: Limit = 20
    page: PageNumber = 1

    def wanted_at(self, now: Instant) -> MessageFilter:
        """Return the filter with the search, see `search_for`."""
        return search_for(self, self.q, now)


class NewAddress(Shape):
    """An inbox address, with the cursor to wait from."""

    address: str
    tag: str
    cursor: Cursor
    plus_free: Annotated[
        str | Absent, doc("the same tag, for forms that refuse +; absent: the tag has a +")
    ] = ABSENT


class ListedMail(Shape):
    """A mail in a list. Its cursor is valid as the id for the tools for one mail."""

    cursor: Cursor
    from_: str
    subject: str
    codes: Texts | Absent = ABSENT


class SeenMail(ListedMail):
    """A mail that arrived, and why it did not match."""

    tag: str = ""
    reasons: Texts = ()


class RejectedMail(Shape):
    """A mail for this inbox that was rejected."""

    to: str
    from_: str
    reason: str


class ArrivedMail(Shape):
    """The short form of a mail. `get_message` returns the rest."""

    id: str
    from_: str
    subject: str
    codes: Annotated[Texts, doc("one-time codes, best first")]
    best_link: Annotated[str | None, doc("the link a person would click; null if unclear")]
    hides_text: Annotated[bool, doc("the mail contains text that people do not see")]


A = TypeVar("A", bound=ArrivedMail)


class WaitResult(Shape):
    """The result of a wait, with or without a message."""

    untrusted: Untrusted
    timed_out: Annotated[bool, doc("true: no match before the timeout; call again with the cursor")]
    message: Annotated[ArrivedMail | None, doc("null after a timeout, and with count")]
    cursor: Cursor
    waited: Annotated[float | Absent, doc("seconds; absent if a message arrived")] = ABSENT
    hint: Annotated[str | Absent, doc("why no message matched and what to do")] = ABSENT
    seen: Annotated[
        tuple[SeenMail, ...] | Absent, doc("messages that arrived but did not match")
    ] = ABSENT
    rejected: Annotated[tuple[RejectedMail, ...] | Absent, doc("rejected mail for this inbox")] = (
        ABSENT
    )
    messages: Annotated[
        tuple[ListedMail, ...] | Absent, doc("with count: that many, oldest first")
    ] = ABSENT
    none: Annotated[bool | Absent, doc("with none: whether no such mail arrived")] = ABSENT


class ListResult(Shape):
    """A page of messages."""

    untrusted: Untrusted
    messages: Annotated[tuple[ListedMail, ...], doc("newest first")]
    total: Annotated[int, doc("number of matching messages")]
    cursor: Cursor
    next_page: Annotated[int | Absent, doc("absent on the last page")] = ABSENT
    not_searched: NotSearched = ABSENT


def render_new_address(inbox: InboxState, tag: str, domain: str) -> NewAddress:
    """Render an address of the inbox."""
    name = inbox.mailbox_name
    return NewAddress(
        join_subaddress(name, tag, domain),
        tag,
        format_cursor(inbox.last_position),
        join_subdomain(name, tag, domain) or ABSENT,
    )


def render_arrival(message: StoredMessage, view: MessageView) -> WaitResult:
    """Render a wait that returned a message."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=render_arrived(ArrivedMail, message, view),
        cursor=format_cursor(message.summary.position),
    )


def render_arrivals(found: Messages) -> WaitResult:
    """Render all messages that a wait expected."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=None,
        cursor=format_cursor(found.cursor),
        messages=tuple(map(_listed, found.messages)),
    )


def render_none_result(outcome: NoMessage) -> WaitResult:
    """Render the result of a wait in which no message arrived, as expected."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=None,
        cursor=format_cursor(outcome.cursor),
        waited=outcome.waited,
        none=True,
    )


def render_unexpected_result(outcome: UnexpectedMessage, view: MessageView | None) -> WaitResult:
    """Render a message that arrived or was rejected although none was expected."""
    message, refusal = outcome.message, outcome.refusal
    arrived = None
    if message is not None and view is not None:
        arrived = render_arrived(ArrivedMail, message, view)
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=arrived,
        cursor=format_cursor(outcome.cursor),
        waited=outcome.waited,
        hint=explain_unexpected_message(outcome),
        rejected=ABSENT if refusal is None else (_rejected(refusal),),
        none=False,
    )


def render_timed_out_wait(outcome: TimedOut) -> WaitResult:
    """Render a wait that timed out, which is a result and not an error."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=True,
        message=None,
        cursor=format_cursor(outcome.cursor),
        waited=outcome.waited,
        hint=explain_timed_out(outcome),
        seen=tuple(map(_seen, outcome.seen[:FEW_SEEN])) or ABSENT,
        rejected=tuple(map(_rejected, outcome.rejected[:FEW_SEEN])) or ABSENT,
    )


def render_message_list(found: MessageList) -> ListResult:
    """Render a page of messages."""
    return ListResult(
        MAIL_NOTICE,
        tuple(map(_listed, found.messages)),
        found.total,
        format_cursor(found.cursor),
        found.next_page or ABSENT,
        found.not_searched or ABSENT,
    )


def render_arrived(kind: type[A], message: StoredMessage, view: MessageView, **others: Any) -> A:
    """Render the short form of a mail, with the other fields of a longer one."""
    header, content = message.summary.header, message.content
    return kind(
        id=message.summary.id,
        from_=clean_line(header.author_text),
        subject=clean_line(header.subject),
        codes=tuple(content.codes[:FEW_CODES]),
        best_link=content.best_link,
        hides_text=view.hides_text,
        **others,
    )


def _listed(message: ListedMessage) -> ListedMail:
    codes = message.extracted.codes[:FEW_CODES]
    return ListedMail(**_in_short(message.summary), codes=tuple(codes) or ABSENT)


def _in_short(summary: MessageSummary) -> dict[str, Any]:
    header = summary.header
    return {
        "cursor": format_cursor(summary.position),
        "from_": clean_line(header.author_address or header.author_name, SHORT_AUTHOR),
        "subject": clean_line(header.subject, SHORT_SUBJECT),
    }


def _seen(seen: SeenMessage) -> SeenMail:
    return SeenMail(
        **_in_short(seen.message),
        tag=clean_line(seen.message.tag),
        reasons=tuple(map(clean_line, seen.reasons)),
    )


def _rejected(refusal: Refusal) -> RejectedMail:
    return RejectedMail(
        clean_line(refusal.recipient),
        clean_line(refusal.envelope_sender),
        clean_line(refusal.reason),
    )
