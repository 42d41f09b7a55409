"""The contract of `ExpiryStore` on every engine."""

from mailcheck.core.accounts import AccountLimits
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.messages import UNDO_TIME
from tests.contracts.conftest import Stores
from tests.engines.deliveries import (
    NOON,
    RETENTION,
    account,
    at,
    content,
    delivery,
    noted,
    recipient,
    refusal,
)

ANN = AccountId("ann")

EXPIRY = Instant(NOON + RETENTION)


async def test_expiry(stores: Stores) -> None:
    """Expired messages are deleted with their bytes and subtracted from counters; others stay."""
    old = delivery(recipient("ann", "a"), recipient("bob", "b"))
    new = delivery(recipient("ann", "a"), received_at=at(1))
    for one in (old, new):
        await stores.deliveries.deliver(one)
        await stores.contents.save_content(one.id, content())
    assert await stores.expiry.expire(Instant(EXPIRY - 1), 10) == 0
    assert await stores.expiry.expire(EXPIRY, 10) == 2
    assert await stores.expiry.expire(EXPIRY, 10) == 0
    assert await stores.contents.raw_message(old.id) is None
    assert await stores.contents.find_content(old.id) is None
    assert await stores.contents.raw_message(new.id) == new.raw_message
    page = await stores.messages.page(ANN, MessageFilter(), NOON, 10, 0)
    assert [summary.id for summary, _ in page.entries] == list(new.message_ids)
    assert page.total == 1
    for name, count in (("ann", 1), ("bob", 0)):
        overview = await stores.messages.overview(AccountId(name), NOON, 10)
        assert overview.state.message_count == count
        assert overview.state.byte_count == count * len(new.raw_message)
        assert sum(tag.message_count for tag in overview.tags) == count


async def test_a_shorter_retention(stores: Stores) -> None:
    """Mail that expires too late is found by its owner's retention, and expires earlier."""
    await stores.accounts.set_limits(AccountId("bob"), AccountLimits(retention_hours=48), noted())
    sent = delivery(recipient("ann"), recipient("bob"), expires_at=Instant(NOON + 100 * HOUR))
    await stores.deliveries.deliver(sent)
    assert await stores.expiry.own_retentions() == {"bob": 48}
    for owner, name, hours in ((None, "ann", 24), (AccountId("bob"), "bob", 48)):
        found, _ = await stores.expiry.expiring_after(owner, hours * HOUR, 10)
        assert [account_id for account_id, _ in found] == [name]
        await stores.expiry.shorten(found, hours * HOUR)
        assert await stores.expiry.expiring_after(owner, hours * HOUR, 10) == ([], None)
        page = await stores.messages.page(AccountId(name), MessageFilter(), NOON, 10, 0)
        ((summary, _),) = page.entries
        assert summary.expires_at - summary.received_at == hours * HOUR


async def test_mail_that_expires_too_late_is_read_once(stores: Stores) -> None:
    """Each call goes on behind the last message of the call before, for both kinds of owners."""
    await stores.accounts.set_limits(AccountId("bob"), AccountLimits(retention_hours=48), noted())
    for _ in range(3):
        late = Instant(NOON + 100 * HOUR)
        await stores.deliveries.deliver(
            delivery(recipient("ann"), recipient("bob"), expires_at=late)
        )
    for owner in (None, AccountId("bob")):
        first, last = await stores.expiry.expiring_after(owner, 48 * HOUR, 2)
        second, end = await stores.expiry.expiring_after(owner, 48 * HOUR, 2, last)
        assert (len(set(first + second)), end) == (3, None)


async def test_expiry_makes_room(empty: Stores) -> None:
    """A full inbox has room again after its mail has expired."""
    await empty.accounts.add_account(account("ann", max_messages=1), noted())
    await empty.deliveries.deliver(delivery(recipient("ann")))
    await empty.expiry.expire(EXPIRY, 10)
    assert await empty.deliveries.deliver(delivery(recipient("ann"))) == (2,)


async def test_expiry_in_pieces(stores: Stores) -> None:
    """A run deletes a maximum number of messages, those that expired first."""
    for number in range(5):
        await stores.deliveries.deliver(
            delivery(recipient("ann"), expires_at=Instant(EXPIRY - number))
        )
    assert await stores.expiry.expire(EXPIRY, 3) == 3
    page = await stores.messages.page(ANN, MessageFilter(), NOON, 10, 0)
    assert [summary.position for summary, _ in page.entries] == [2, 1]
    assert await stores.expiry.expire(EXPIRY, 3) == 2


async def test_old_refusals(stores: Stores) -> None:
    """Refusals older than a given time are deleted; others stay."""
    for number in range(4):
        await stores.deliveries.note_refusal(refusal("ann", number))
    assert await stores.expiry.forget_refusals(at(2), 10) == 2
    left = await stores.messages.recent_refusals(ANN, NOON, 10)
    assert [one.refused_at for one in left] == [at(3), at(2)]
    assert await stores.expiry.forget_refusals(at(2), 10) == 0


async def test_space_is_given_back(stores: Stores) -> None:
    """Returning space is safe at any time and loses no data."""
    await stores.expiry.reclaim_space()
    sent = [delivery(recipient("ann"), raw=bytes(100_000)) for _ in range(10)]
    for one in sent:
        await stores.deliveries.deliver(one)
    for one in sent[1:]:
        await stores.messages.delete_message(ANN, one.message_ids[0], NOON)
    await stores.expiry.reclaim_space()
    assert await stores.contents.raw_message(sent[0].id) == bytes(100_000)


async def test_a_deletion_can_be_undone(stores: Stores) -> None:
    """Hidden messages are restored with their expiry until `UNDO_TIME` has passed.

    Messages of other accounts, other deletions and mail that expired by itself are not restored.
    """
    both = delivery(recipient("ann", "a"), recipient("bob", "b"))
    other = delivery(recipient("ann", "c"))
    for one in (both, other):
        await stores.deliveries.deliver(one)
    store, ids, deleted_at = stores.messages, list(both.message_ids), at(5)
    assert await store.hide(ANN, ids, deleted_at) == 1
    assert await store.hide(ANN, ids, at(6)) == 0
    assert await store.hide_matches(ANN, MessageFilter(tag="c"), at(7), 10) == 1
    assert (await store.page(ANN, MessageFilter(), at(7), 10, 0)).total == 0
    assert (await store.page(AccountId("bob"), MessageFilter(), at(7), 10, 0)).total == 1
    assert await store.restore(AccountId("bob"), deleted_at, at(8)) == 0
    almost = Instant(deleted_at + UNDO_TIME - 1)
    assert await stores.expiry.expire(almost, 10) == 0
    assert await store.restore(ANN, deleted_at, almost) == 1
    page = await store.page(ANN, MessageFilter(), almost, 10, 0)
    assert [(summary.id, summary.expires_at) for summary, _ in page.entries] == [(ids[0], EXPIRY)]
    too_late = Instant(at(7) + UNDO_TIME)
    assert await store.restore(ANN, at(7), too_late) == 0
    assert await stores.expiry.expire(too_late, 10) == 1
    assert await stores.contents.raw_message(other.id) is None
    assert await store.restore(ANN, EXPIRY, EXPIRY) == 0
