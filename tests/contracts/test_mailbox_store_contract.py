"""The contract of `MailboxStore`, on every engine."""

from msgspec.structs import replace

from mailcheck.core.conditions import WITH_KEYWORD, WITHOUT_KEYWORDS, Not, Term
from mailcheck.core.cursors import Position
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.messages import UNDO_TIME, Delivery, Recipient
from mailcheck.store.mailbox_store import MailStructure, Marking
from tests.contracts.conftest import Stores
from tests.engines.deliveries import (
    NOON,
    RETENTION,
    content,
    delivery,
    mail,
    recipient,
    refusal,
)

ANN = AccountId("ann")
EXPIRY = Instant(NOON + RETENTION)


async def receive(stores: Stores, *tags: str) -> list[Delivery]:
    """Deliver a mail for each tag."""
    sent = [delivery(recipient("ann", tag)) for tag in tags]
    for one in sent:
        await stores.deliveries.deliver(one)
    return sent


def positions(*numbers: int) -> tuple[Position, ...]:
    """Return positions."""
    return tuple(map(Position, numbers))


async def test_state(stores: Stores) -> None:
    """A mailbox has the positions of its messages, and the moment of the account's creation."""
    await receive(stores, "a", "b", "A")
    store = stores.mailboxes
    everything = await store.state(ANN, ANY, NOON)
    assert (list(everything.positions), everything.last_position) == ([1, 2, 3], 3)
    assert everything.uid_validity == NOON // SECOND % 2**32
    assert list((await store.state(ANN, MessageFilter(tag="a"), NOON)).positions) == [1, 3]
    assert list((await store.state(ANN, ANY, EXPIRY)).positions) == []
    nobody = await store.state(AccountId("gone"), ANY, NOON)
    assert (list(nobody.positions), nobody.uid_validity) == ([], 1)


async def test_caught_mail(stores: Stores) -> None:
    """Mail for recipients of other domains can be told from mail for addresses of this server."""
    await receive(stores, "a")
    for address in ("ann@shop.example", "postmaster", "x@sub.mailcheck.example"):
        await stores.deliveries.deliver(delivery(Recipient(address, ANN, "")))
    caught = MessageFilter(foreign_to=("mailcheck.example", "other.example"))
    assert list((await stores.mailboxes.state(ANN, caught, NOON)).positions) == [2, 4]
    rows, _ = await stores.messages.oldest_matches(ANN, ANY, NOON, 10)
    assert [caught.matches(row.summary) for row in rows] == [False, True, False, True]


async def test_keywords_of_new_mail(stores: Stores) -> None:
    """Keywords that a mail arrives with are stored with it, and are found in any case."""
    await receive(stores, "a")
    envelope = replace(delivery(recipient("ann", "")).envelope, keywords=("paid", "New=20order"))
    await stores.deliveries.deliver(replace(delivery(recipient("ann", "")), envelope=envelope))
    store = stores.mailboxes
    assert await store.keywords(ANN) == {"paid", "New=20order"}
    none = Term(WITHOUT_KEYWORDS, "")
    for where, expected in (
        (Term(WITH_KEYWORD, "PAID"), [2]),
        (Term(WITH_KEYWORD, "pai"), []),
        (Not(none), [2]),
    ):
        wanted = MessageFilter(search=(where,))
        assert list((await store.state(ANN, wanted, NOON)).positions) == expected, where
    flagged = frozenset({"\\Flagged", "\\Seen"})
    await store.mark(ANN, positions(1, 2), Marking.ADD, flagged, None, NOON)
    without = MessageFilter(search=(none,))
    assert list((await store.state(ANN, without, NOON)).positions) == [1], "flags are no keywords"
    result = await store.mark(
        ANN, positions(1, 2), Marking.REPLACE_KEYWORDS, frozenset({"x"}), None, NOON
    )
    assert [(one.flags, one.is_read) for one in result.marked] == [("\\Flagged x", True)] * 2


async def test_marks(stores: Stores) -> None:
    """Flags are added, removed and replaced; each change takes the next position of the inbox."""
    await receive(stores, "a", "b", "c")
    store = stores.mailboxes
    added = await store.mark(
        ANN, positions(1, 3, 9), Marking.ADD, frozenset({"\\Flagged", "$Todo"}), None, NOON
    )
    assert [(one.position, one.flags, one.mod_sequence) for one in added.marked] == [
        (1, "$Todo \\Flagged", 4),
        (3, "$Todo \\Flagged", 4),
    ]
    again = await store.mark(ANN, positions(1), Marking.ADD, frozenset({"$Todo"}), None, NOON)
    assert [one.mod_sequence for one in again.marked] == [4], "nothing has changed"
    replaced = await store.mark(
        ANN, positions(1, 2), Marking.REPLACE, frozenset({"\\Seen"}), None, NOON
    )
    assert [(one.flags, one.is_read, one.mod_sequence) for one in replaced.marked] == [
        ("", True, 5),
        ("", True, 5),
    ]
    await store.mark(ANN, positions(2), Marking.REMOVE, frozenset({"\\Seen"}), None, NOON)
    marks = await store.marks(ANN, ANY, NOON)
    assert [(one.position, sorted(one.all_flags), one.mod_sequence) for one in marks] == [
        (1, ["\\Seen"], 5),
        (2, [], 6),
        (3, ["$Todo", "\\Flagged"], 4),
    ]
    assert await store.first_unread(ANN, ANY, NOON) == 2
    assert await store.first_unread(ANN, MessageFilter(tag="a"), NOON) is None
    assert await store.keywords(ANN) == {"$Todo", "\\Flagged"}
    assert await store.flagged(ANN, MessageFilter(tag="c"), NOON, "\\Flagged") == [3]
    assert await store.flagged(ANN, MessageFilter(tag="a"), NOON, "\\Flagged") == []


async def test_conditional_marks(stores: Stores) -> None:
    """A message that was changed since the given mod-sequence keeps its flags."""
    await receive(stores, "a", "b")
    store = stores.mailboxes
    await store.mark(ANN, positions(1), Marking.ADD, frozenset({"one"}), None, NOON)
    result = await store.mark(ANN, positions(1, 2), Marking.ADD, frozenset({"two"}), 2, NOON)
    assert [(one.position, one.flags) for one in result.marked] == [(2, "two")]
    assert result.modified == (1,)


async def test_changes(stores: Stores) -> None:
    """Readers find new messages, new marks of earlier ones, and the number of messages."""
    first, *_ = await receive(stores, "a", "b")
    store = stores.mailboxes
    await stores.messages.mark_read(ANN, [first.message_ids[0]])
    await stores.messages.mark_read(ANN, [first.message_ids[0]])
    await stores.deliveries.deliver(delivery(recipient("ann", "a")))
    await stores.deliveries.note_refusal(refusal("ann"))
    changes = await store.changes(ANN, MessageFilter(tag="a"), NOON, Position(2))
    assert (changes.arrived, changes.message_count, changes.last_position) == ((4,), 2, 5)
    assert [(one.position, one.is_read, one.mod_sequence) for one in changes.marked] == [
        (1, True, 3)
    ]
    assert await stores.messages.mark_matches(ANN, ANY, NOON, 10, 1) == 2
    changes = await store.changes(ANN, ANY, NOON, Position(5))
    assert [(one.position, one.mod_sequence) for one in changes.marked] == [(2, 6), (4, 6)]
    changes = await store.changes(ANN, ANY, NOON, Position(6))
    assert (changes.arrived, changes.marked, changes.message_count) == ((), (), 3)


async def test_status_and_removal(stores: Stores) -> None:
    """The counts of a mailbox follow its messages."""
    await receive(stores, "a", "a", "b")
    store = stores.mailboxes
    await store.mark(ANN, positions(1), Marking.ADD, frozenset({"\\Seen", "\\Deleted"}), None, NOON)
    size = len(mail())
    status = await store.status(ANN, MessageFilter(tag="a"), NOON)
    counts = status.message_count, status.unseen_count, status.deleted_count, status.byte_count
    assert counts == (2, 1, 1, 2 * size)
    assert await store.remove(ANN, positions(1, 3, 7), NOON) == 2
    assert await store.remove(ANN, positions(1), NOON) == 0
    status = await store.status(ANN, ANY, NOON)
    counts = status.message_count, status.unseen_count, status.deleted_count, status.byte_count
    assert counts == (1, 1, 0, size)
    state = await stores.messages.find_account_inbox(ANN)
    assert state is not None
    assert (state.message_count, state.byte_count) == (1, size)
    assert await store.tags(ANN, ANY) == ["a"]
    assert await store.has_tag(ANN, "A")
    assert not await store.has_tag(ANN, "b")


async def test_structures(stores: Stores) -> None:
    """A structure is stored once for a mail, and not for a mail that was deleted."""
    first, second = await receive(stores, "a", "b")
    store = stores.mailboxes
    made = MailStructure(b'("x")', b"(\xff)", Instant(0))
    await store.remove(ANN, positions(2), NOON)
    await store.save_structures([(first.id, made), (second.id, made)])
    await store.save_structures([(first.id, made)])
    ((entry, structure),) = await store.structured_entries(ANN, positions(1, 2), NOON)
    assert (entry.delivery_id, entry.size, entry.received_at) == (first.id, len(mail()), NOON)
    assert structure == made
    assert await store.entries(ANN, positions(1), NOON) == [entry]
    assert await store.entries(ANN, (), NOON) == []


async def test_octets(stores: Stores) -> None:
    """Parts of a mail are read as they were received."""
    (sent,) = await receive(stores, "a")
    store = stores.mailboxes
    assert await store.octets(sent.id, 2, 5) == mail()[2:7]
    assert await store.octets(sent.id, len(mail()), 5) == b""
    assert await store.beginnings([sent.id], 4) == {sent.id: mail()[:4]}
    gone = delivery(recipient("ann"))
    assert await store.octets(gone.id, 0, 5) is None
    empty = delivery(recipient("ann"), raw=b"")
    await stores.deliveries.deliver(empty)
    assert await store.octets(empty.id, 0, 5) == b""
    assert await store.beginnings([empty.id, gone.id], 4) == {empty.id: b""}


async def test_matches(stores: Stores) -> None:
    """A filter on the content returns the messages whose content is not derived separately."""
    first, second, third = await receive(stores, "a", "b", "c")
    store = stores.mailboxes
    await stores.contents.save_content(first.id, content("blue", searched="blue"))
    await stores.contents.save_content(second.id, content("red", searched="red"))
    wanted = MessageFilter(text="blue")
    certain, possible = await store.matches(ANN, wanted, NOON)
    assert (sorted(certain), [one.delivery_id for one in possible]) == ([1], [third.id])
    certain, possible = await store.matches(ANN, MessageFilter(tag="b"), NOON)
    assert (sorted(certain), possible) == ([2], ())


async def test_deletions_that_can_be_undone(stores: Stores) -> None:
    """A message whose deletion can be undone stays in its mailbox until it is removed."""
    store, (first, _) = stores.mailboxes, await receive(stores, "a", "b")
    assert await stores.messages.hide(ANN, first.message_ids, NOON) == 1
    final = Instant(NOON + UNDO_TIME)
    assert await stores.expiry.final_deletions(Instant(final - 1)) == []
    assert list((await store.state(ANN, ANY, final)).positions) == [1, 2]
    assert [one.position for one in await store.entries(ANN, positions(1), final)] == [1]
    assert await stores.expiry.final_deletions(final) == [ANN]
    assert await stores.expiry.expire(final, 10) == 1
    assert await stores.expiry.final_deletions(final) == []
    assert list((await store.state(ANN, ANY, final)).positions) == [2]
    assert list((await store.state(ANN, ANY, EXPIRY)).positions) == [], "expiry hides at once"
