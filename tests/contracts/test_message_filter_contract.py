"""A `MessageFilter` has the same result in memory and in a store."""

from collections.abc import Sequence

from hypothesis import assume, given
from hypothesis import strategies as st

from mailcheck.core.accounts import Quota
from mailcheck.core.addresses import fold_tag
from mailcheck.core.content import AttachmentFacts, MessageContent, fold_text
from mailcheck.core.cursors import Position
from mailcheck.core.filters import Field, MessageFilter, Search, Term
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, MessageSummary
from mailcheck.engines.sqlite import IN_MEMORY, SqliteEngine
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import (
    NOON,
    RETENTION,
    account,
    at,
    content,
    delivery,
    mail,
    recipient,
)
from tests.house import result_of

ANN = AccountId("ann")


class SqliteInMemory:
    """All stores on SQLite in memory, created for each example."""

    def __init__(self) -> None:
        self._engine = SqliteEngine(IN_MEMORY, DirectWorker(), DirectWorker())
        self._engine.open()
        mail_store = MailStore(self._engine, Quota(1_000, 10_000_000))
        self.deliveries = mail_store
        self.messages = mail_store
        self.contents = ContentStore(self._engine)
        self.accounts = AccountStore(self._engine)
        self.close = self._engine.close


IMPLEMENTATIONS = {"sqlite in memory": SqliteInMemory}

WORDS = [
    "",
    "a",
    "A",
    "b",
    "ab",
    "%",
    "_",
    "!",
    "a%b",
    "a_b",
    "ß",
    "SS",
    "İ",
    "ı",
    "K",
    "ﬁ",
    "FI",
    "Ǆ",
]
TAGS = st.sampled_from(["", "a", "A", "b", "ß", "ss", "İ", "a%", "a_"])
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("".join)
MOMENTS = st.integers(-3, 3).map(at)
"""A few times, so that clocks go back and mails arrive in the same millisecond."""


@st.composite
def mails(draw: st.DrawFn) -> Delivery:
    """Generate a mail with one or two recipients, of ANN or another account."""
    recipients = draw(
        st.lists(
            st.builds(recipient, st.sampled_from(["ann", "ann", "bob"]), TAGS),
            min_size=1,
            max_size=2,
            unique_by=lambda one: one.address,
        )
    )
    raw = mail(draw(TEXTS), "text", f'"{draw(TEXTS)}" <{draw(TEXTS)}x@example.com>')
    return delivery(*recipients, raw=raw, received_at=draw(MOMENTS))


TEXT = "Aß _% ﬁ"
"""Text of every mail with derived content; the content of other mails is unknown."""


def content_of(number: int) -> MessageContent:
    """Return the content of a mail; some have an attachment."""
    fields = [("SUBJECT", "a b"), ("X-a_", "A%b\n_"), ("Subject", WORDS[number % len(WORDS)])]
    files = (AttachmentFacts("1", "a.txt", "text/plain", 1, None),) if number % 4 else ()
    return content(TEXT, ["482913"], header_list=tuple(fields[number % 3 :]), attachments=files)


def may_match(wanted: MessageFilter, message: MessageSummary, known: MessageContent | None) -> bool:
    """Evaluate a filter in memory; unknown content may match, except for a search."""
    if known is not None and wanted.content_mismatches(known):
        return False
    search = wanted.search
    return search is None or all(
        satisfies(term.field, term.value, message, known) is (not term.is_negated)
        for term in search.terms
    )


def satisfies(
    field: Field, value: str | int, message: MessageSummary, known: MessageContent | None
) -> bool | None:
    """Evaluate a term in memory; `None` if that depends on unknown content."""
    if isinstance(value, int):
        return {
            Field.NEWER: message.received_at >= value,
            Field.OLDER: message.received_at < value,
            Field.LARGER: message.size > value,
        }[field]
    to = value.casefold() in message.recipient.casefold()
    author = fold_text(value) in message.header.author_key
    subject = fold_text(value) in message.header.subject_key
    is_said = None if known is None else fold_text(value) in fold_text(known.searched)
    unnamed = None if known is None else False
    return {
        Field.ANYWHERE: to or author or subject or is_said,
        Field.TO: to or unnamed,
        Field.FROM: author,
        Field.SUBJECT: subject,
        Field.TEXT: is_said,
        Field.TAG: fold_tag(value) == fold_tag(message.tag),
        Field.HAS: None if known is None else value == "code" or bool(known.attachments),
        Field.IS: value == ("read" if message.is_read else "unread"),
    }[field]


@st.composite
def parts_of(draw: st.DrawFn, text: str) -> str:
    """Generate a part of a text, in any case."""
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    part = text[start:end] or text
    return draw(st.sampled_from([text, part, part.upper(), part.swapcase()]))


@st.composite
def terms(draw: st.DrawFn, message: MessageSummary) -> Term:
    """Generate a term that a message has, or that it must not have."""
    tag, moment, size = message.tag, message.received_at, message.size
    term: Term = draw(
        st.one_of(
            st.builds(Term, st.just(Field.TO), parts_of(message.recipient)),
            st.builds(Term, st.just(Field.FROM), parts_of(message.header.author_key)),
            st.builds(Term, st.just(Field.SUBJECT), parts_of(message.header.subject_key)),
            st.builds(Term, st.just(Field.TEXT), parts_of(TEXT)),
            st.builds(Term, st.just(Field.ANYWHERE), parts_of(message.header.subject_key)),
            st.builds(Term, st.just(Field.TAG), st.sampled_from([tag, tag.upper()])),
            st.builds(Term, st.just(Field.HAS), st.sampled_from(["code", "attachment"])),
            st.builds(Term, st.just(Field.IS), st.sampled_from(["unread", "read"])),
            st.builds(Term, st.just(Field.NEWER), st.sampled_from([moment, moment + 1])),
            st.builds(Term, st.just(Field.OLDER), st.sampled_from([moment, moment + 1])),
            st.builds(Term, st.just(Field.LARGER), st.sampled_from([size, size - 1])),
        )
    )
    return term._replace(is_negated=draw(st.sampled_from([False, False, True])))


FIELDS = st.tuples(st.sampled_from(["Subject", "x-A_", "X-A%"]), TEXTS)


@st.composite
def filters(draw: st.DrawFn, message: MessageSummary) -> MessageFilter:
    """Generate a filter with one or two conditions, which a message often satisfies."""
    tag, address, header = message.tag, message.recipient, message.header
    conditions: dict[str, st.SearchStrategy[object]] = {
        "search": st.builds(
            Search, st.just("?"), st.lists(terms(message), min_size=1, max_size=2).map(tuple)
        ),
        "tag": st.sampled_from([tag, tag.upper()]) | TAGS,
        "tag_prefix": st.sampled_from([tag[:1], tag.upper()]) | TAGS,
        "recipient": st.sampled_from([address, address.upper()]),
        "author": parts_of(header.author_key),
        "subject": parts_of(header.subject_key),
        "headers": st.lists(FIELDS, min_size=1, max_size=2).map(tuple),
        "text": parts_of(TEXT),
        "has_attachment": st.booleans(),
        "since": st.sampled_from([message.received_at, Instant(message.received_at + 1)]),
        "after": st.integers(0, 3).map(Position),
        "up_to": st.integers(1, 6).map(Position),
    }
    names = draw(st.lists(st.sampled_from(list(conditions)), min_size=1, max_size=2, unique=True))
    return MessageFilter(**{name: draw(conditions[name]) for name in names})  # type: ignore[arg-type]


@given(st.lists(mails(), min_size=4, max_size=8), st.integers(-4, 0), st.data())
def test_memory_and_store_agree(
    sent: Sequence[Delivery], seconds: int, data: st.DataObject
) -> None:
    """A store lists exactly the messages that match in memory and have not expired.

    Most of the filters select some of the messages, but not all.
    """
    now = Instant(at(seconds) + RETENTION)
    for make in IMPLEMENTATIONS.values():
        stores = make()
        try:
            compare(stores, sent, now, data)
        finally:
            result_of(stores.close())


def compare(
    stores: SqliteInMemory, sent: Sequence[Delivery], now: Instant, data: st.DataObject
) -> None:
    """Compare the answers of a store with the memory's."""
    for name in ("ann", "bob"):
        result_of(stores.accounts.add_account(account(name)))
    contents = {}
    for number, one in enumerate(sent):
        result_of(stores.deliveries.deliver(one))
        if number % 2 == 0:
            contents[one.id] = content_of(number)
            result_of(stores.contents.save_content(one.id, contents[one.id]))
        if number % 3 == 0:
            result_of(stores.messages.mark_read(ANN, [one.message_ids[0]]))
    everything, last = result_of(stores.messages.oldest_matches(ANN, MessageFilter(), NOON, 1_000))
    assume(len(everything) > 1)
    wanted = data.draw(filters(data.draw(st.sampled_from(everything)).summary))
    candidates = [
        message
        for message in everything
        if wanted.matches(message.summary)
        and may_match(wanted, message.summary, contents.get(message.summary.delivery_id))
        and message.summary.expires_at > now
    ]
    expected = [
        message
        for message in candidates
        if not wanted.asks_content or message.summary.delivery_id in contents
    ]
    if data.draw(st.integers(0, 9), label="whether any filter will do"):
        assume(0 < len(expected) < len(everything))
    found = stores.messages.oldest_matches(ANN, wanted, now, 1_000)
    assert result_of(found) == (tuple(candidates), last)
    found = stores.messages.oldest_matches(ANN, wanted, now, 1)
    assert result_of(found)[0] == tuple(candidates[:1])
    page = result_of(stores.messages.page(ANN, wanted, now, 1_000, 0))
    assert [summary for summary, _ in page.entries] == [one.summary for one in expected[::-1]]
    assert page.total == len(expected)
    assert result_of(stores.messages.delete_matches(ANN, wanted, now, 1_000)) == len(expected)
