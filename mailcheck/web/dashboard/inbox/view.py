"""Values of the inbox page: filters, tags, keyboard shortcuts and the range of messages."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.requests.fields import INTEGER, RECIPIENT, TAG
from mailcheck.api.requests.parsing import Query
from mailcheck.core.addresses import fold_tag
from mailcheck.core.conditions import CONDITIONS, RECEIVED_AT, SIZE
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant
from mailcheck.core.searches import parse_search, split_terms
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.store.messages import InboxOverview
from mailcheck.web.dashboard.rendering import format_number

SHORTCUTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("j", "k"), "next / previous message"),
    (("Enter",), "open"),
    (("u",), "back to the list"),
    (("x",), "select; with Shift: select a range"),
    (("a",), "select all"),
    (("#", "Del"), "delete the message or the selection"),
    (("z",), "undo the deletion"),
    (("c",), "copy the code"),
    (("o",), "open the link"),
    (("s",), "score the message"),
    (("/",), "search"),
    (("g i", "g d", "g t"), "go to inbox / domains / tests"),
    (("Ctrl K",), "command palette"),
    (("?",), "show this help"),
)
"""Keyboard shortcuts and their meanings, for the help. The script implements them."""

SEARCH_OFFERS: tuple[tuple[str, str], ...] = tuple(
    (row.example if is_complete else f"{row.prefix}:", row.meaning)
    for row in CONDITIONS
    if row.prefix
    for is_complete in [row.fixed is not None or row.places[0] in (RECEIVED_AT, SIZE)]
)
"""Suggestions of the search field: prefixes, and complete search terms."""

DEFAULT_PAGE, LARGEST_PAGE, LAST_PAGE = 50, 500, 1_000_000
"""Default and maximum number of messages on a page, and the maximum page number."""

SHOWN_TAGS = 8
"""Number of tags above the list. The others can be unfolded."""


class TagLink(Struct, frozen=True):
    """A tag to filter by. ``tag`` is `None` for all messages."""

    tag: str | None
    message_count: int
    is_current: bool


class Chip(Struct, frozen=True):
    """A filter of the list. ``query`` adds it, or removes it if it ``is_on``."""

    text: str
    query: str
    is_on: bool = True


OFFERED_FILTERS: Mapping[str, str] = {
    "is:unread": "Unread",
    "has:code": "Has code",
    "has:attachment": "Has attachment",
}
"""Search terms that are offered as chips, with their labels."""


class ListRequest(Struct, frozen=True):
    """A request for a list of messages. ``written`` is the text in the search field."""

    wanted: MessageFilter
    written: str
    limit: int
    page: int

    @property
    def is_filtered(self) -> bool:
        """Whether the list is filtered."""
        return not self.wanted.asks_only() or bool(self.written)

    @property
    def is_live(self) -> bool:
        """Whether new messages can be added to the list at once. A search needs the store."""
        return self.page == 1 and not self.written

    def query(self, **changes: object) -> str:
        """Return the query string of the first page of this list, with some changes."""
        asked: dict[str, object] = {
            **self.fields,
            "limit": None if self.limit == DEFAULT_PAGE else self.limit,
            **changes,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return f"?{urlencode(given)}" if given else ""

    @property
    def chips(self) -> list[Chip]:
        """The filters of the list other than its tag and those that are always offered."""
        recipient, terms = self.wanted.recipient, split_terms(self.written)
        chips = []
        if recipient is not None:
            chips.append(Chip(f"To {recipient}", self.query(to=None)))
        chips += [
            Chip(term, self._with_terms(terms[:number] + terms[number + 1 :]))
            for number, term in enumerate(terms)
            if term.lower() not in OFFERED_FILTERS
        ]
        return chips

    @property
    def offered(self) -> list[Chip]:
        """The filters that are offered, whether or not they are on."""
        terms = split_terms(self.written)
        return [
            Chip(
                label,
                self._with_terms(
                    [other for other in terms if other.lower() != term]
                    + ([] if term in map(str.lower, terms) else [term])
                ),
                is_on=term in map(str.lower, terms),
            )
            for term, label in OFFERED_FILTERS.items()
        ]

    def _with_terms(self, terms: Sequence[str]) -> str:
        return self.query(q=" ".join(terms) or None)

    @property
    def fields(self) -> dict[str, str]:
        """The filters of the list, as fields of a form or a query."""
        asked = {"tag": self.wanted.tag, "to": self.wanted.recipient, "q": self.written or None}
        return {name: value for name, value in asked.items() if value is not None}

    @property
    def place_fields(self) -> dict[str, str]:
        """The filters and the page of the list, as fields of a form."""
        return self.fields | {"limit": str(self.limit), "page": str(self.page)}

    def here(self, **more: object) -> str:
        """Return the query string of this page of the list, which messages link back to."""
        return self.query(page=self.page if self.page > 1 else None, **more)


def read_list_request(query: Query, now: Instant) -> ListRequest:
    """Return the request of a query string.

    :raises InvalidParameter: a parameter is not valid.
    """
    request = read_without_search(query)
    return replace(
        request, wanted=replace(request.wanted, search=parse_search(request.written, now))
    )


def read_without_search(query: Query) -> ListRequest:
    """Return the request of a query string without parsing its search text.

    :raises InvalidParameter: another parameter is not valid.
    """
    return ListRequest(
        MessageFilter(tag=query.value("tag", TAG), recipient=query.value("to", RECIPIENT)),
        query.text("q") or "",
        query.value("limit", INTEGER, DEFAULT_PAGE, 1, LARGEST_PAGE),
        query.value("page", INTEGER, 1, 1, LAST_PAGE),
    )


def list_tags(overview: InboxOverview, wanted: MessageFilter) -> list[TagLink]:
    """Return the tags to filter by: all messages, then the tags with the newest messages."""
    current = None if wanted.tag is None else fold_tag(wanted.tag)
    links = [TagLink(None, overview.state.message_count, current is None)]
    links += [
        TagLink(tag.tag, tag.message_count, fold_tag(tag.tag) == current) for tag in overview.tags
    ]
    if wanted.tag is not None and not any(link.is_current for link in links):
        links.insert(1, TagLink(wanted.tag, 0, is_current=True))
    return links


def write_range(request: ListRequest, messages: MessageList) -> str:
    """Return which messages of how many are shown."""
    first = (messages.page - 1) * request.limit + 1
    last = first + len(messages.messages) - 1
    total = format_number(messages.total)
    if messages.not_searched:
        total += f"; {format_number(messages.not_searched)} not searched yet"
    if not messages.messages:
        return f"0 of {total}"
    return f"{format_number(first)} to {format_number(last)} of {total}"
