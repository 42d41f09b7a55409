"""A `MessageFilter` is one rule, whether it is judged in memory or in a store."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.accounts import Quota
from mailcheck.core.cursors import Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, MessageSummary
from mailcheck.operations.ports import AccountStore, DeliveryStore, MessageStore
from mailcheck.storage.account_store import SqlAccountStore
from mailcheck.storage.mail_store import SqlMailStore
from mailcheck.storage.sqlite import IN_MEMORY, SqliteEngine
from mailcheck.workers.direct import DirectWorker
from tests.house import result_of
from tests.storage.deliveries import NOON, RETENTION, account, at, delivery, mail, recipient

ANN = AccountId("ann")


class SqliteInMemory:
    """All stores on SQLite in memory, to be made for each example."""

    def __init__(self) -> None:
        self._engine = SqliteEngine(IN_MEMORY, DirectWorker(), DirectWorker())
        self._engine.open()
        mail_store = SqlMailStore(self._engine, Quota(1_000, 10_000_000))
        self.deliveries: DeliveryStore = mail_store
        self.messages: MessageStore = mail_store
        self.accounts: AccountStore = SqlAccountStore(self._engine)
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
TEXTS = st.lists(st.sampled_from(WORDS), max_size=3).map("".join)
MOMENTS = st.integers(-3, 3).map(at)
"""Few moments: clocks are set back, and mails come in the same millisecond."""


@st.composite
def mails(draw: st.DrawFn) -> Delivery:
    """Give a mail with one or two recipients, of ANN or another."""
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


FILTERS = st.builds(
    MessageFilter,
    tag=st.none() | TAGS,
    recipient=st.none() | TAGS.map(lambda tag: recipient("ann", tag).address.upper()),
    author=st.none() | TEXTS,
    subject=st.none() | TEXTS,
    since=st.none() | MOMENTS,
    after=st.integers(0, 9).map(Position),
    up_to=st.none() | st.integers(0, 9).map(Position),
)


@given(st.lists(mails(), max_size=8), FILTERS, st.integers(-4, 3))
def test_memory_and_store_agree(
    sent: Sequence[Delivery], wanted: MessageFilter, seconds: int
) -> None:
    """A store lists exactly those messages that match in memory and have not expired."""
    now = Instant(at(seconds) + RETENTION)
    for make in IMPLEMENTATIONS.values():
        stores = make()
        for name in ("ann", "bob"):
            result_of(stores.accounts.add_account(account(name)))
        for one in sent:
            result_of(stores.deliveries.deliver(one))
        everything, last = result_of(
            stores.messages.oldest_matches(ANN, MessageFilter(), NOON, 1_000)
        )
        expected = [
            message
            for message in everything
            if wanted.matches(message) and message.expires_at > now
        ]
        found = stores.messages.oldest_matches(ANN, wanted, now, 1_000)
        assert result_of(found) == (tuple(expected), last)
        page = result_of(stores.messages.page(ANN, wanted, now, 1_000, 0))
        assert [summary for summary, _ in page.entries] == expected[::-1]
        assert page.total == len(expected)
        first: Sequence[MessageSummary] = expected[:1]
        assert result_of(stores.messages.oldest_matches(ANN, wanted, now, 1))[0] == tuple(first)
        assert result_of(stores.messages.delete_matches(ANN, wanted, now, 1_000)) == len(expected)
        result_of(stores.close())
