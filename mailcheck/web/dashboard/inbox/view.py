"""What the inbox page shows: the list of messages, the filter that made it, and where to send."""

from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.requests.fields import INTEGER, RECIPIENT, TAG
from mailcheck.api.requests.parsing import Query
from mailcheck.core.addresses import fold_tag
from mailcheck.core.filters import EXAMPLES, Field, MessageFilter, parse_search, split_terms
from mailcheck.core.instants import Instant
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.store.messages import InboxOverview

SHORTCUTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("j", "k"), "next and previous mail"),
    (("Enter",), "open it"),
    (("u",), "back to the list"),
    (("x",), "select it; with Shift, all up to it"),
    (("#", "Del"), "delete it, or what is selected"),
    (("c",), "copy its code"),
    (("o",), "open its link"),
    (("s",), "score it"),
    (("/",), "search"),
    (("g i", "g d", "g t"), "go to the inbox, the domain check, the tests"),
    (("Ctrl K",), "find a page or something to do"),
    (("?",), "show this"),
)
"""Keys and what they do, as the page shows them; its script obeys them."""

_COMPLETE = (Field.HAS, Field.IS, Field.NEWER, Field.OLDER, Field.LARGER)

SEARCH_OFFERS: tuple[tuple[str, str], ...] = tuple(
    (example if Field(prefix) in _COMPLETE else f"{prefix}:", meaning)
    for example, meaning in EXAMPLES
    for prefix, colon, _ in [example.partition(":")]
    if colon
)
"""What the search field offers while somebody types: prefixes, and terms that are whole."""

DEFAULT_PAGE, LARGEST_PAGE, LAST_PAGE = 50, 500, 1_000_000
"""Messages of a list at a time."""

SHOWN_TAGS = 8
"""Tags beside the list; the others are one click away."""


class TagLink(Struct, frozen=True):
    """A tag to filter by; ``tag`` is nothing for all mail."""

    tag: str | None
    message_count: int
    is_current: bool


class Chip(Struct, frozen=True):
    """One thing that a list is filtered by; ``query`` asks for the list without it."""

    text: str
    query: str


class ListRequest(Struct, frozen=True):
    """What somebody wants to see of an inbox; ``written`` is what the search field holds."""

    wanted: MessageFilter
    written: str
    limit: int
    page: int

    @property
    def is_filtered(self) -> bool:
        """Tell whether anything is asked of a message."""
        return not self.wanted.asks_only() or bool(self.written)

    @property
    def is_live(self) -> bool:
        """Tell whether new mail belongs on top of the list; only the store can search."""
        return self.page == 1 and not self.written

    def query(self, **changes: object) -> str:
        """Write the query string of the first page of the same list, but for what is changed."""
        asked: dict[str, object] = {
            **self.fields,
            "limit": None if self.limit == DEFAULT_PAGE else self.limit,
            **changes,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return f"?{urlencode(given)}" if given else ""

    @property
    def chips(self) -> list[Chip]:
        """List what the list is filtered by beside its tag."""
        recipient, terms = self.wanted.recipient, split_terms(self.written)
        chips = []
        if recipient is not None:
            chips.append(Chip(f"Only mail to {recipient}", self.query(to=None)))
        for number, term in enumerate(terms):
            others = " ".join(terms[:number] + terms[number + 1 :])
            chips.append(Chip(term, self.query(q=others or None)))
        return chips

    @property
    def fields(self) -> dict[str, str]:
        """Give what the list is filtered by, as fields of a form or a query."""
        asked = {"tag": self.wanted.tag, "to": self.wanted.recipient, "q": self.written or None}
        return {name: value for name, value in asked.items() if value is not None}

    def here(self, **more: object) -> str:
        """Write the query string of this page of the list: a mail leads back to it."""
        return self.query(page=self.page if self.page > 1 else None, **more)


def read_list_request(query: Query, now: Instant) -> ListRequest:
    """Read what is asked for.

    :raises InvalidParameter: it can't be asked for.
    """
    request = read_without_search(query)
    return replace(
        request, wanted=replace(request.wanted, search=parse_search(request.written, now))
    )


def read_without_search(query: Query) -> ListRequest:
    """Read what is asked for, but do not understand the search: it is kept as it was written.

    :raises InvalidParameter: it can't be asked for.
    """
    return ListRequest(
        MessageFilter(tag=query.value("tag", TAG), recipient=query.value("to", RECIPIENT)),
        query.text("q") or "",
        query.value("limit", INTEGER, DEFAULT_PAGE, 1, LARGEST_PAGE),
        query.value("page", INTEGER, 1, 1, LAST_PAGE),
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
    unknown = f"; {messages.not_searched:,} not searched yet" if messages.not_searched else ""
    if not messages.messages:
        return f"0 of {messages.total:,}{unknown}"
    return f"{first:,} to {last:,} of {messages.total:,}{unknown}"
