"""What the inbox page shows: the list of messages, the filter that made it, and where to send."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from mailcheck.core.addresses import fold_tag
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant
from mailcheck.operations.inbox.read_inbox import MessageList
from mailcheck.operations.ports import InboxOverview
from mailcheck.wire.parameters import Query

DEFAULT_PAGE, LARGEST_PAGE, LAST_PAGE = 50, 500, 1_000_000
"""Messages of a list at a time."""

SHOWN_TAGS = 8
"""Tags beside the list; the others are one click away."""


@dataclass(frozen=True, slots=True)
class TagLink:
    """A tag to filter by; ``tag`` is nothing for all mail."""

    tag: str | None
    message_count: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What somebody wants to see of an inbox; ``written`` is what the search field holds."""

    wanted: MessageFilter
    written: str
    limit: int
    page: int

    @property
    def is_filtered(self) -> bool:
        """Tell whether anything is asked of a message."""
        return self.wanted != MessageFilter() or bool(self.written)

    @property
    def is_live(self) -> bool:
        """Tell whether new mail belongs on top of the list; only the store can search."""
        return self.page == 1 and not self.written

    def query(self, **changes: object) -> str:
        """Write the query string of the first page of the same list, but for what is changed."""
        asked: dict[str, object] = {
            "tag": self.wanted.tag,
            "q": self.written or None,
            "limit": None if self.limit == DEFAULT_PAGE else self.limit,
            **changes,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return f"?{urlencode(given)}" if given else "?"


def read_list_request(query: Query, now: Instant) -> ListRequest:
    """Read what is asked for.

    :raises InvalidParameter: it can't be asked for.
    """
    request = read_unsearched(query)
    return replace(request, wanted=replace(request.wanted, search=query.search(now)))


def read_unsearched(query: Query) -> ListRequest:
    """Read what is asked for, but do not understand the search: it is kept as it was written.

    :raises InvalidParameter: it can't be asked for.
    """
    return ListRequest(
        MessageFilter(tag=query.tag()),
        query.needle("q") or "",
        query.whole_number("limit", 1, LARGEST_PAGE, DEFAULT_PAGE),
        query.whole_number("page", 1, LAST_PAGE, 1),
    )


def list_tags(overview: InboxOverview, wanted: MessageFilter) -> list[TagLink]:
    """List the tags to filter by: all mail first, then those with the newest mail."""
    current = None if wanted.tag is None else fold_tag(wanted.tag)
    links = [TagLink(None, overview.state.message_count, current is None)]
    links += [
        TagLink(tag.tag, tag.message_count, fold_tag(tag.tag) == current) for tag in overview.tags
    ]
    if wanted.tag is not None and not any(link.is_current for link in links):
        links.insert(1, TagLink(wanted.tag, 0, is_current=True))
    return links


def write_range(request: ListRequest, messages: MessageList) -> str:
    """Say which messages of how many are shown."""
    first = (request.page - 1) * request.limit + 1
    last = first + len(messages.messages) - 1
    if not messages.messages:
        return f"0 of {messages.total:,}"
    return f"{first:,} to {last:,} of {messages.total:,}"
