"""Counters equal the rows after any deliveries, deletions and expiry."""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from twisted.internet.defer import DeferredList

from mailcheck.core.accounts import Quota
from mailcheck.core.errors import InboxFull, RecipientUnknown
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Session
from mailcheck.engines.sqlite import IN_MEMORY, SqliteEngine
from mailcheck.ports.engine import Transaction
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.engines.deliveries import (
    NOON,
    SESSION,
    account,
    content,
    delivery,
    mail,
    noted,
    recipient,
)
from tests.house import result_of

OWNERS = ("ann", "bob", "gone")
QUOTA = Quota(max_messages=12, max_bytes=600)

BROKEN = Session("\udcff", "", False)
"""An integer that no database can store: the mail fails in the middle of its group."""

RECIPIENTS = st.lists(
    st.builds(recipient, st.sampled_from(OWNERS[:2]), st.sampled_from(["", "a", "A", "b"])),
    min_size=1,
    max_size=3,
    unique_by=lambda one: one.address,
)


WANTED = (
    MessageFilter(author="shop"),
    MessageFilter(subject="1"),
    MessageFilter(author="example", subject="code"),
)


class StoreMachine(RuleBasedStateMachine):
    """Groups of mails, with every kind of fault among them, deletions and expiry."""

    def __init__(self) -> None:
        super().__init__()
        self.worker = BlockedWorker()
        self.engine = SqliteEngine(IN_MEMORY, self.worker, DirectWorker())
        self.engine.open()
        self.store = MailStore(self.engine, QUOTA, min_cached_messages=1)
        self.contents = ContentStore(self.engine)
        self.expiry = ExpiryStore(self.engine)
        self.now = NOON
        self.positions: dict[str, list[int]] = {name: [] for name in OWNERS[:2]}
        for name in OWNERS[:2]:
            result_of(AccountStore(self.engine).add_account(account(name), noted()))

    def teardown(self) -> None:
        """Close the store."""
        result_of(self.engine.close())

    @rule(
        group=st.lists(
            st.tuples(
                RECIPIENTS,
                st.sampled_from([0, 1, 60, 199]),
                st.sampled_from(["good"] * 6 + ["gone", "broken"]),
            ),
            min_size=1,
            max_size=6,
        )
    )
    def deliver(self, group: list[tuple[Any, int, str]]) -> None:
        """Deliver mails together."""
        mails = [
            delivery(
                *recipients,
                *([recipient("gone")] if fate == "gone" else []),
                raw=(mail(subject=f"Code {len(self.positions[OWNERS[0]])}") + b"x" * 199)[:size],
                received_at=self.now,
                session=BROKEN if fate == "broken" else SESSION,
            )
            for recipients, size, fate in group
        ]
        self.worker.hold_calls()
        given = DeferredList([self.store.deliver(one) for one in mails], consumeErrors=True)
        self.worker.let_go()
        for (was_stored, outcome), one, (_, _, fate) in zip(
            result_of(given), mails, group, strict=True
        ):
            if was_stored:
                assert fate == "good"
                for position, to in zip(outcome, one.envelope.recipients, strict=True):
                    self.positions[to.account_id].append(position)
            else:
                kind = {"good": InboxFull, "gone": RecipientUnknown, "broken": UnicodeEncodeError}
                assert outcome.check(kind[fate], InboxFull), outcome
            if was_stored and len(one.raw_message) % 2:
                result_of(self.contents.save_content(one.id, content()))

    @rule(
        owner=st.sampled_from(OWNERS), tag=st.sampled_from([None, "", "a"]), limit=st.integers(1, 4)
    )
    def delete(self, owner: str, tag: str | None, limit: int) -> None:
        """Delete some messages."""
        wanted = MessageFilter(tag=tag)
        result_of(self.store.delete_matches(AccountId(owner), wanted, self.now, limit))

    @rule(owner=st.sampled_from(OWNERS[:2]), number=st.integers(0, 5))
    def delete_one(self, owner: str, number: int) -> None:
        """Delete one message."""
        page = result_of(self.store.page(AccountId(owner), MessageFilter(), self.now, 1, number))
        for summary, _ in page.entries:
            assert result_of(self.store.delete_message(AccountId(owner), summary.id, self.now))

    @rule(hours=st.integers(0, 10))
    def pass_time(self, hours: int) -> None:
        """Advance the clock."""
        self.now = Instant(self.now + hours * 3_600_000)

    @rule(limit=st.integers(1, 5))
    def expire(self, limit: int) -> None:
        """Delete some expired messages."""
        assert result_of(self.expiry.expire(self.now, limit)) <= limit

    @invariant()
    def positions_are_dense(self) -> None:
        """Each inbox has assigned the positions 1, 2, 3 and so on, in order and once."""
        for positions in self.positions.values():
            assert positions == list(range(1, len(positions) + 1))

    @invariant()
    def lists_tell_what_is_there(self) -> None:
        """A list by author or subject has the matching messages of the whole list."""
        for owner in map(AccountId, OWNERS[:2]):
            everything = result_of(self.store.page(owner, MessageFilter(), self.now, 100, 0))
            for wanted in WANTED:
                page = result_of(self.store.page(owner, wanted, self.now, 100, 0))
                expected = [one for one in everything.entries if wanted.matches(one[0])]
                assert (list(page.entries), page.total) == (expected, len(expected))

    @invariant()
    def counters_tell_what_a_recount_tells(self) -> None:
        """The counters of messages, bytes and tags equal the rows, and no orphans are left."""
        result_of(self.engine.read(self.recount))

    def recount(self, transaction: Transaction) -> None:
        """Compare the counters with all rows."""
        messages = transaction.rows(
            "SELECT account_id, tag_key, size, delivery_id, position, tag, received_at "
            "FROM message ORDER BY position"
        )
        counted = Counter(row[0] for row in messages)
        sizes = {owner: sum(row[2] for row in messages if row[0] == owner) for owner in OWNERS}
        tagged = Counter(owner for owner, _ in {(row[0], row[1]) for row in messages})
        for owner, last, count, size, tags in transaction.rows(
            "SELECT account_id, last_position, message_count, byte_count, tag_count FROM inbox"
        ):
            assert (count, size, tags) == (counted[owner], sizes[owner], tagged[owner])
            assert count <= QUOTA.max_messages
            assert size <= QUOTA.max_bytes
            assert last == len(self.positions[owner])
        by_tag = Counter((row[0], row[1]) for row in messages)
        newest = {(row[0], row[1]): (row[5], row[6]) for row in messages}
        rows = transaction.rows(
            "SELECT account_id, tag_key, message_count, tag, latest_at FROM inbox_tag"
        )
        assert {(row[0], row[1]): row[2] for row in rows} == by_tag
        assert {(row[0], row[1]): (row[3], row[4]) for row in rows} == newest
        deliveries = {one for (one,) in transaction.rows("SELECT id FROM delivery")}
        assert deliveries == {row[3] for row in messages}
        contents = {one for (one,) in transaction.rows("SELECT delivery_id FROM content")}
        assert contents <= deliveries


StoreMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20)


class TestStore(StoreMachine.TestCase):  # type: ignore[misc,valid-type]
    """After any sequence of steps the counters equal a recount of the rows."""
