"""Requests of the developer inbox: filters, lists, waits, streams, webhooks.

A field with the same name as a field of `MessageFilter` becomes part of the filter. Each request
inherits only the filters that its operation supports. A deletion must not accept a filter that
the store would ignore.
"""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, ClassVar

from msgspec import field
from msgspec.structs import replace

from mailcheck.api.requests.fields import (
    CURSOR,
    DEFAULT_PAGE,
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    FLAG,
    HEADER,
    INTEGER,
    LONG_TEXT,
    LONGEST_STREAM,
    MAX_HEADERS,
    MAX_WAIT_COUNT,
    NAME,
    RECIPIENT,
    SEARCH_TEXT,
    SECONDS,
    SHORTEST_WAIT,
    TAG,
    TAG_PREFIX,
    TEXT,
    After,
    Limit,
    PageNumber,
    Since,
    Timeout,
    filled,
    one_of,
    required_text,
)
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.core.accounts import MOST_RECIPIENTS
from mailcheck.core.addresses import MAX_TAG
from mailcheck.core.content import LINK_METHODS, LINKS_AT_ONCE
from mailcheck.core.cursors import Position
from mailcheck.core.faults import LARGEST_EVERY
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.core.instants import Instant
from mailcheck.core.searches import EXAMPLES, parse_search
from mailcheck.core.webhooks import EVENT_PROVIDERS, LONGEST_URL, EventKind


class Selection(Request, frozen=True, kw_only=True):
    """Fields that select messages."""

    @property
    def wanted(self) -> MessageFilter:
        """The filter for the store. Its type is exact, because stores compare filters."""
        return MessageFilter(**{name: getattr(self, name) for name in _filters_of(type(self))})


@cache
def _filters_of(request: type[Selection]) -> Sequence[str]:
    known = MessageFilter.__struct_fields__
    return [name for name in request.__struct_fields__ if name in known]


class MessageFilters(Selection, frozen=True, kw_only=True):
    """Filters by the fields that lists show."""

    tag: Annotated[
        Annotated[str, TAG] | None,
        Description(
            "Only mail to the address with this +tag, case-insensitive. Empty: only mail without a "
            f"tag. At most {MAX_TAG} octets of UTF-8.",
            brief="+tag; empty: no tag",
            example="signup",
        ),
    ] = None
    tag_prefix: Annotated[
        Annotated[str, TAG_PREFIX] | None,
        Description(
            "Only mail to addresses whose +tag begins with this text, case-insensitive. Empty: any "
            "tag. Use one prefix for all tags of a test run.",
            brief="beginning of the +tag",
            example="run-7-",
        ),
    ] = None
    recipient: Annotated[
        Annotated[str, RECIPIENT] | None,
        Description(
            "Only mail to this complete address, case-insensitive. Use it for mail over the "
            "submission port, which accepts any recipient. Empty: any address.",
            brief="whole address",
        ),
    ] = field(name="to", default=None)
    author: Annotated[
        Annotated[str, SEARCH_TEXT] | None,
        Description(
            "Only mail whose author's address or name contains this text, case-insensitive.",
            brief="part of the author's name or address",
        ),
    ] = field(name="from", default=None)
    subject: Annotated[
        Annotated[str, SEARCH_TEXT] | None,
        Description(
            "Only mail whose subject contains this text, case-insensitive.",
            brief="part of the subject",
        ),
    ] = None


class ContentFilters(MessageFilters, frozen=True, kw_only=True):
    """Filters by the fields that lists show and by the content of messages."""

    headers: Annotated[
        tuple[Annotated[tuple[str, str], HEADER], ...],
        Description(
            "Only mail with this header field: a field name, a colon and part of the value, "
            "case-insensitive. Repeat the parameter to require several fields. A list covers only "
            "messages whose content is parsed already; a wait parses them first.",
            brief="each as Name:part of value",
            at_most=MAX_HEADERS,
        ),
    ] = field(name="header", default=())
    text: Annotated[
        Annotated[str, SEARCH_TEXT] | None,
        Description(
            "Only mail whose text, or the visible text of its HTML, contains this, "
            "case-insensitive. For lists see `header`.",
            brief="part of the text",
        ),
    ] = None
    has_attachment: Annotated[
        Annotated[bool, FLAG] | None,
        Description(
            "true: only mail with attachments; false: only mail without. Images that are embedded "
            "in the HTML do not count. For lists see `header`.",
            brief="with attachments, or without",
        ),
    ] = None


class DeleteMessages(Selection, frozen=True, kw_only=True):
    """The messages to delete; all messages without a parameter.

    An empty value, for instance of an unset variable, is rejected, except that an empty tag selects
    mail without a tag.
    """

    tag: Annotated[
        Annotated[str, TAG] | None,
        Description(
            "All mail to the address with this +tag, case-insensitive. Empty: all mail without a "
            f"tag. At most {MAX_TAG} octets of UTF-8.",
            example="signup",
        ),
    ] = None
    tag_prefix: Annotated[
        Annotated[str, filled(TAG_PREFIX)] | None,
        Description(
            "All mail to addresses whose +tag begins with this text, case-insensitive. An empty "
            "text is rejected.",
            example="run-7-",
        ),
    ] = None
    recipient: Annotated[
        Annotated[str, filled(RECIPIENT)] | None,
        Description("All mail to this complete address, case-insensitive."),
    ] = field(name="to", default=None)
    author: Annotated[
        Annotated[str, filled(SEARCH_TEXT)] | None,
        Description("All mail whose author's address or name contains this, case-insensitive."),
    ] = field(name="from", default=None)
    subject: Annotated[
        Annotated[str, filled(SEARCH_TEXT)] | None,
        Description("All mail whose subject contains this text, case-insensitive."),
    ] = None
    after: After = None
    since: Since = None


SearchTerms = Annotated[
    Annotated[str, TEXT] | None,
    Description(
        'Only mail that matches every term: words and "phrases" in subject, text, addresses '
        "or names of attachments, and terms with a prefix: "
        + "; ".join(f"`{query}` ({meaning})" for query, meaning in EXAMPLES[2:])
        + ". Case and accents are ignored. Links are text; another unknown prefix is an error "
        "that names the most similar one.",
        brief='search: words, "phrases", -word, OR, and terms like from:shop to:ann tag:signup '
        "subject:welcome text:code filename:pdf has:code before:2026-11-21 newer:2h",
        example="from:shop newer:2h",
    ),
]


def search_for(selected: Selection, q: str | None, now: Instant) -> MessageFilter:
    """Return a filter that includes a search. Relative ages are relative to ``now``.

    :raises InvalidParameter: the search has a syntax error.
    """
    return replace(selected.wanted, search=() if q is None else parse_search(q, now))


class ListMessages(ContentFilters, frozen=True, kw_only=True):
    """The messages to list."""

    q: SearchTerms = None
    after: After = None
    since: Since = None
    limit: Limit = DEFAULT_PAGE
    page: PageNumber = 1

    def wanted_at(self, now: Instant) -> MessageFilter:
        """Return the filter with the search, see `search_for`."""
        return search_for(self, self.q, now)


class WaitFilters(ContentFilters, frozen=True, kw_only=True):
    """The messages of a wait or a stream."""

    after: After = None
    since: Annotated[
        Since,
        Description(
            "Only mail received at or after this instant, an ISO 8601 date and time. Without an "
            "offset it is in UTC. The default without `after` is the time of the request.",
            example="",
        ),
    ] = None


class WaitForMessage(WaitFilters, frozen=True, kw_only=True):
    """A wait for a message."""

    timeout: Timeout = DEFAULT_WAIT


class WaitForMessages(WaitFilters, frozen=True, kw_only=True):
    """A wait for several messages."""

    count: Annotated[
        int,
        INTEGER,
        Description("Number of messages.", example="3", low=1, high=MAX_WAIT_COUNT),
    ] = 1
    timeout: Timeout = DEFAULT_WAIT


class ExpectNoMessage(WaitFilters, frozen=True, kw_only=True):
    """A wait that expects no message."""

    seconds: Annotated[
        Timeout,
        Description("Seconds from the request in which no message may arrive.", example="5"),
    ] = DEFAULT_SILENCE


class FollowInbox(WaitFilters, frozen=True, kw_only=True):
    """An event stream of messages."""

    seconds: Annotated[
        Annotated[float, SECONDS] | None,
        Description(
            "Seconds after which the stream ends. The default is no end.",
            low=SHORTEST_WAIT,
            high=LONGEST_STREAM,
        ),
    ] = None


class TakeAddress(Request, frozen=True, kw_only=True):
    """The tag of an inbox address."""

    tag: Annotated[
        str, TAG, Description("The +tag of the address. The default is no tag.", example="signup")
    ] = ""
    unique: Annotated[
        bool,
        FLAG,
        Description(
            "true: generate a unique tag, or append a unique suffix to `tag`, which then has at "
            f"most {MAX_TAG - SHORT_ID_LENGTH - 1} octets."
        ),
    ] = False


class WebhookToCreate(ContentFilters, frozen=True, kw_only=True):
    """A new webhook."""

    example: ClassVar = '{"url": "https://ci.example.com/mail", "tag": "signup"}'

    url: Annotated[
        str,
        required_text(LONGEST_URL),
        Description("http or https URL that receives messages by POST"),
    ]
    provider: Annotated[
        str | None,
        one_of(EVENT_PROVIDERS),
        Description(
            "send the provider's own events: bounced, complained or opened for the tags "
            "event.bounce, event.complaint and event.open, and delivered for any other mail"
        ),
    ] = None
    after: Annotated[
        Annotated[Position, CURSOR] | None,
        Description("deliver messages after this cursor; the default is new messages only"),
    ] = None


class WebhookTest(Request, frozen=True, kw_only=True):
    """What a test of a webhook sends."""

    event: Annotated[
        str | None,
        one_of([kind.value for kind in EventKind]),
        Description(
            "For a webhook with the format of a provider: the event to send. Without it, the tag "
            "of the message decides."
        ),
    ] = None
    message_id: Annotated[
        str | None,
        NAME,
        Description("Id of a stored message to send. Without it, a sample is sent."),
    ] = None


class WebhookReplay(Request, frozen=True, kw_only=True):
    """The position from which messages are delivered again."""

    example: ClassVar = '{"after": "c0"}'

    after: Annotated[Position, CURSOR, Description("cursor; c0: all messages in the inbox")]


class LinksToCheck(Request, frozen=True, kw_only=True):
    """The links to request."""

    example: ClassVar = '{"urls": ["https://example.com/welcome"], "method": "HEAD"}'

    urls: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | None,
        Description(
            "links of the mail; by default all except the best link and unsubscribe links",
            at_most=LINKS_AT_ONCE,
        ),
    ] = None
    method: Annotated[
        str,
        one_of(LINK_METHODS),
        Description("HEAD is the default; GET requests exactly one link"),
    ] = "HEAD"


class ReleaseMessage(Request, frozen=True, kw_only=True):
    """The recipients of a released message."""

    example: ClassVar = '{"to": ["ops@example.org"]}'

    to: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...],
        Description(
            "addresses that the operator allows in `[release] allow_recipients`",
            at_most=MOST_RECIPIENTS,
        ),
    ]


class KeyFault(Request, frozen=True, kw_only=True):
    """The fault of a key."""

    example: ClassVar = '{"every": 3}'
    may_be_null: ClassVar = ("every",)

    every: Annotated[
        Annotated[int, INTEGER] | None,
        Description(
            "reject every Nth mail that this key submits over the submission port with 451 after "
            "DATA; counted from midnight UTC; null: none",
            low=1,
            high=LARGEST_EVERY,
        ),
    ]
