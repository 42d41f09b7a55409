"""The requests of the developer inbox: filters, lists, waits, streams, webhooks.

A field that has the name of one of `MessageFilter` becomes that part of the filter. Each request
starts from the smallest group of filters and adds others: deletion must not take a filter that the
store would ignore.
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
    NEEDLE,
    RECIPIENT,
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
)
from mailcheck.api.requests.parsing import Description, FieldType, Request
from mailcheck.core.addresses import MAX_TAG
from mailcheck.core.content import LINK_METHODS, LINKS_AT_ONCE
from mailcheck.core.cursors import Position
from mailcheck.core.faults import LARGEST_EVERY
from mailcheck.core.filters import EXAMPLES, MessageFilter, parse_search
from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.core.instants import Instant
from mailcheck.core.webhooks import LONGEST_URL


class MessageFilters(Request, frozen=True, kw_only=True):
    """Filters by fields that lists show."""

    tag: Annotated[
        Annotated[str, TAG] | None,
        Description(
            "Only mail to the address with this +tag, compared without case; empty: untagged "
            f"mail. At most {MAX_TAG} octets of UTF-8.",
            brief="only mail to this +tag, without case; an empty string means untagged mail",
            example="signup",
        ),
    ] = None
    tag_prefix: Annotated[
        Annotated[str, TAG_PREFIX] | None,
        Description(
            "Only mail to addresses whose +tag begins with this, compared without case; empty: "
            "any. One run of a suite gives all its tags one beginning.",
            brief="only mail to +tags that begin with this",
            example="run-7-",
        ),
    ] = None
    recipient: Annotated[
        Annotated[str, RECIPIENT] | None,
        Description(
            "Only mail to this whole address, compared without case; for mail that came in over "
            "the submission port, where any recipient is taken. Empty: any.",
            brief="only mail to exactly this address, without case",
        ),
    ] = field(name="to", default=None)
    author: Annotated[
        Annotated[str, NEEDLE] | None,
        Description(
            "Only mail whose author's address or name contains this, without case.",
            brief="only mail whose sender's name or address contains this, without case",
        ),
    ] = field(name="from", default=None)
    subject: Annotated[
        Annotated[str, NEEDLE] | None,
        Description(
            "Only mail whose subject contains this, without case.",
            brief="only mail whose subject contains this, without case",
        ),
    ] = None

    @property
    def wanted(self) -> MessageFilter:
        """The filter that a store takes; it is exactly that type, which stores compare."""
        return MessageFilter(**{name: getattr(self, name) for name in _filters_of(type(self))})


@cache
def _filters_of(request: type[MessageFilters]) -> Sequence[str]:
    known = MessageFilter.__struct_fields__
    return [name for name in request.__struct_fields__ if name in known]


class ContentFilters(MessageFilters, frozen=True, kw_only=True):
    """Filters by fields that lists show, and by the content of messages."""

    headers: Annotated[
        tuple[Annotated[tuple[str, str], HEADER], ...],
        Description(
            "Only mail with this header field: its name, a colon and a part of its value, without "
            "case; repeat it for more, all of which must be there. Known as soon as a mail was "
            "taken apart: a wait sees to that, a list shows what is known.",
            brief="only mail with these header fields, each as Name:part of value",
            at_most=MAX_HEADERS,
        ),
    ] = field(name="header", default=())
    text: Annotated[
        Annotated[str, NEEDLE] | None,
        Description(
            "Only mail whose text contains this, without case; of a mail that has HTML alone, "
            "what is seen of it. Known as `header` is.",
            brief="only mail whose text contains this, without case",
        ),
    ] = None
    has_attachment: Annotated[
        Annotated[bool, FLAG] | None,
        Description(
            "true: only mail with an attachment; false: without. Pictures that the HTML shows in "
            "its text do not count. Known as `header` is.",
            brief="only mail with an attachment, or without",
        ),
    ] = None


class DeleteMessages(MessageFilters, frozen=True, kw_only=True):
    """The messages to delete."""

    after: After = None
    since: Since = None


class ListMessages(ContentFilters, frozen=True, kw_only=True):
    """The messages to list."""

    q: Annotated[
        Annotated[str, TEXT] | None,
        Description(
            'Only mail that matches all of this: words and "phrases" in subject, text, addresses '
            "or attachments' names, and terms: "
            + "; ".join(f"`{one}` ({meaning})" for one, meaning in EXAMPLES if ":" in one)
            + ". Case and accents don't count. Another prefix is text, like the `https:` of a "
            "link.",
            brief='a search: words and "phrases", which must all be there, and terms like '
            "from:shop subject:welcome text:code has:code has:attachment newer:2h "
            "older:2026-11-21 larger:100k is:unread",
            example="from:shop newer:2h",
        ),
    ] = None
    after: After = None
    since: Since = None
    limit: Limit = DEFAULT_PAGE
    page: PageNumber = 1

    def wanted_at(self, now: Instant) -> MessageFilter:
        """Return the filter with the search, whose ages count from ``now``.

        :raises InvalidParameter: the search is wrong.
        """
        search = None if self.q is None else parse_search(self.q, now)
        return replace(self.wanted, search=search)


class WaitFilters(ContentFilters, frozen=True, kw_only=True):
    """The messages of a wait or a stream."""

    after: After = None
    since: Annotated[
        Since,
        Description(
            "Only mail received at or after this moment: an ISO 8601 date and time; without an "
            "offset it is UTC. Without it, and without `after`: the moment of the request.",
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
        Description("Messages to wait for.", example="3", low=1, high=MAX_WAIT_COUNT),
    ] = 1
    timeout: Timeout = DEFAULT_WAIT


class ExpectNoMessage(WaitFilters, frozen=True, kw_only=True):
    """A wait that expects no message."""

    seconds: Annotated[
        Timeout,
        Description("Seconds from the request on in which none is to come.", example="5"),
    ] = DEFAULT_SILENCE


class FollowInbox(WaitFilters, frozen=True, kw_only=True):
    """A stream of messages."""

    seconds: Annotated[
        Annotated[float, SECONDS] | None,
        Description(
            "Seconds after which the stream ends; without it goes on.",
            low=SHORTEST_WAIT,
            high=LONGEST_STREAM,
        ),
    ] = None


class TakeAddress(Request, frozen=True, kw_only=True):
    """An address of the inbox."""

    tag: Annotated[
        str, TAG, Description("The +tag of the address; none without it.", example="signup")
    ] = ""
    unique: Annotated[
        bool,
        CURSOR,
        FLAG,
        Description(
            "true: the service picks a tag that never collides, or puts such an ending behind "
            f"`tag`, which then has at most {MAX_TAG - SHORT_ID_LENGTH - 1} octets."
        ),
    ] = False


class NewWebhook(ContentFilters, frozen=True, kw_only=True):
    """A webhook to be made."""

    example: ClassVar = '{"url": "https://ci.example.com/mail", "tag": "signup"}'
    may_be_single: ClassVar = ("header",)

    url: Annotated[
        str,
        FieldType({"type": "string", "minLength": 1, "maxLength": LONGEST_URL}, longest=None),
        Description("http or https address that messages are posted to"),
    ]
    after: Annotated[
        Annotated[Position, CURSOR] | None,
        Description("cursor after which it is told; without it what comes from now on"),
    ] = None


class WebhookReplay(Request, frozen=True, kw_only=True):
    """Where a webhook is to be told from once more."""

    example: ClassVar = '{"after": "c0"}'

    after: Annotated[Position, CURSOR, Description("cursor; c0: all that the inbox holds")]


def _read_method(text: str) -> str:
    if text not in LINK_METHODS:
        raise ValueError(text)
    return text


class LinksToCheck(Request, frozen=True, kw_only=True):
    """The links to be asked for."""

    example: ClassVar = '{"urls": ["https://example.com/welcome"], "method": "HEAD"}'
    may_be_null: ClassVar = ("urls",)

    urls: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | None,
        Description(
            "links of the mail; without it all but the best one and those that leave a list",
            at_most=LINKS_AT_ONCE,
        ),
    ] = None
    method: Annotated[
        str,
        FieldType(
            {"type": "string", "enum": list(LINK_METHODS)},
            _read_method,
            "{name} is HEAD or GET; you sent {sent}",
        ),
        Description("HEAD unless it is given; GET asks for one link"),
    ] = "HEAD"


class KeyFault(Request, frozen=True, kw_only=True):
    """The fault of a key."""

    example: ClassVar = '{"every": 3}'
    may_be_null: ClassVar = ("every",)

    every: Annotated[
        Annotated[int, INTEGER] | None,
        Description(
            "of so many mails that this key hands in on the submission port the last gets 451 "
            "after its DATA; counted from midnight UTC; null: none does",
            low=1,
            high=LARGEST_EVERY,
        ),
    ]
