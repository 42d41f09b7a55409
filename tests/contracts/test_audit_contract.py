"""The contract of `AuditStore` and `AccountRemoval` on every engine."""

from msgspec.structs import replace

from mailcheck.core.accounts import AccountLimits, AccountUse
from mailcheck.core.audit import Action, AuditEntry, AuditFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.store.accounts.account_removal import Holdings
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, delivery, noted, recipient

ANN = AccountId("ann")


def entry(name: str, seconds: float = 0, owner: str = "ann") -> AuditEntry:
    """Return an entry as it is stored."""
    action = Action.KEY_ISSUED
    return AuditEntry(name, at(seconds), AccountId(owner), owner, "bob", "192.0.2.7", action, "k1")


async def test_entries_are_listed_newest_first(stores: Stores) -> None:
    """Entries of one account or of all come back whole, in pages, newest first."""
    for number in range(3):
        await stores.audit.add(entry(f"e{number}", number))
    await stores.audit.add(entry("e3", 3, "bob"))
    # The accounts have the positions 1 and 2.
    own = [replace(entry(f"e{n}", n), position=n + 3) for n in (2, 1, 0)]
    assert await stores.audit.newest(AuditFilter(ANN), 0, 10) == own
    assert [one.id for one in await stores.audit.newest(AuditFilter(), 0, 2)] == ["e3", "e2"]
    assert [one.id for one in await stores.audit.newest(AuditFilter(), own[0].position, 2)] == [
        "e1",
        "e0",
    ]
    assert await stores.audit.newest(AuditFilter(AccountId("gone")), 0, 10) == []


async def test_entries_keep_the_name_of_the_account(stores: Stores) -> None:
    """An entry has the name that its account had then, also after the account is gone."""
    await stores.audit.add(replace(entry("e1"), account_name=""))
    await stores.accounts.rename(ANN, "Anna", noted())
    await stores.audit.add(replace(entry("e2"), account_name=""))
    assert await stores.removal.delete(ANN, noted())
    await stores.audit.add(entry("e3"))
    found = [
        one
        for one in await stores.audit.newest(AuditFilter(), 0, 10)
        if one.id in ("e1", "e2", "e3")
    ]
    assert [one.account_id for one in found] == [None, None, None]
    assert [one.account_name for one in found] == ["ann", "Anna", "ann"]


async def test_old_entries_are_deleted(empty: Stores) -> None:
    """Only entries from before a moment are deleted, at most so many at once."""
    await empty.accounts.add_account(account("ann"), noted(at(3)))
    for number in range(4):
        await empty.audit.add(entry(f"e{number}", number))
    assert await empty.audit.forget(at(3), 2) == 2
    assert await empty.audit.forget(at(3), 2) == 1
    assert await empty.audit.forget(at(3), 2) == 0
    assert [one.happened_at for one in await empty.audit.newest(AuditFilter(), 0, 10)] == [
        at(3)
    ] * 2


async def test_too_many_entries_of_one_account(stores: Stores) -> None:
    """The oldest entries beyond a maximum are found and deleted, for each account alone."""
    for number in range(4):
        await stores.audit.add(entry(f"e{number}", number))
    await stores.audit.add(entry("e4", 4, "bob"))
    await stores.audit.add(entry("e5", 5, "gone"))
    await stores.audit.add(entry("e6", 6, "gone"))
    assert await stores.audit.crowded(4) == []
    assert sorted(await stores.audit.crowded(1), key=str) == [(ANN, 3), (None, 3)]
    assert await stores.audit.forget_oldest(ANN, 3) == 3
    assert await stores.audit.forget_oldest(None, 3) == 3
    assert [one.id for one in await stores.audit.newest(AuditFilter(), 0, 10)] == ["e6", "e4", "e3"]


async def test_deletion_of_an_account(stores: Stores) -> None:
    """An account is deleted with its mail; a mail to two accounts stays for the other."""
    shared, own = delivery(recipient("ann"), recipient("bob")), delivery(recipient("ann"))
    for one in (shared, own):
        await stores.deliveries.deliver(one)
    await stores.sessions.open_session(b"1" * 32, ANN, at(10), noted(NOON, "192.0.2.7"))
    size = len(shared.raw_message) + len(own.raw_message)
    assert await stores.removal.holdings(ANN) == Holdings(2, size, 0, 0, 0, 0, 0, 0, 1, 0)
    assert await stores.removal.delete_messages(ANN, 1) == 1
    assert await stores.removal.delete(ANN, noted())
    assert await stores.removal.holdings(ANN) is None
    assert await stores.accounts.find_account("ann") is None
    assert await stores.contents.raw_message(own.id) is None
    assert await stores.contents.raw_message(shared.id) == shared.raw_message
    assert await stores.removal.delete(AccountId("bob"), noted())
    assert await stores.contents.raw_message(shared.id) is None


async def test_what_accounts_use(empty: Stores) -> None:
    """Accounts are listed with the size of their inboxes and their last activity."""
    ann, bob = account("ann"), account("bob", created_at=at(1))
    for one in (ann, bob):
        await empty.accounts.add_account(one, noted())
    mail = delivery(recipient("ann"))
    await empty.deliveries.deliver(mail)
    await empty.sessions.open_session(b"1" * 32, ANN, at(10), noted(at(2), "192.0.2.7"))
    assert await empty.accounts.list_uses() == [
        AccountUse(ann, 1, len(mail.raw_message), at(2)),
        AccountUse(bob, 0, 0, None),
    ]


async def test_changes_of_an_account(empty: Stores) -> None:
    """Limits, the operator's role and the state of an account come back as they were set."""
    for one in (account("ann", is_operator=True), account("bob")):
        await empty.accounts.add_account(one, noted())
    bob = AccountId("bob")
    await empty.accounts.set_limits(bob, AccountLimits(5, None, 48), noted())
    await empty.accounts.make_operator(bob, noted())
    await empty.sessions.open_session(b"1" * 32, ANN, at(10), noted(NOON, "192.0.2.7"))
    assert await empty.accounts.disable(ANN, noted(at(3)))
    assert not await empty.accounts.disable(ANN, noted(at(4)))
    assert await empty.accounts.list_accounts() == [
        account("ann", disabled_at=at(3)),
        account("bob", is_operator=True, max_messages=5, retention_hours=48),
    ]
    assert await empty.sessions.find_session(b"1" * 32, at(4)) is None
    inbox = await empty.deliveries.find_inbox("dev-ann")
    assert inbox is not None
    assert inbox.is_disabled
    assert await empty.accounts.enable(ANN, noted())
    assert not await empty.accounts.enable(ANN, noted())
    assert await empty.accounts.find_account("ann") == account("ann")


async def test_entries_after_a_position(empty: Stores) -> None:
    """A reader continues after a position in the order of commits, with a filter or without."""
    await empty.accounts.add_account(account("ann"), noted())
    assert await empty.audit.last_position() == 1
    for number in (2, 0, 1):
        await empty.audit.add(entry(f"e{number}", number))
    found = await empty.audit.after(AuditFilter(ANN), 1, 2)
    assert [(one.id, one.position) for one in found] == [("e2", 2), ("e0", 3)]
    rest = await empty.audit.after(AuditFilter(ANN, Action.KEY_ISSUED), 3, 9)
    assert [one.id for one in rest] == ["e1"]
    assert await empty.audit.after(AuditFilter(ANN, Action.KEY_REVOKED), 0, 9) == []
    assert await empty.audit.last_position() == 4


async def test_entries_for_the_journal(empty: Stores) -> None:
    """An entry is offered until it is recorded as written."""
    assert await empty.audit.unjournaled(9) == []
    assert await empty.audit.last_position() == 0
    await empty.accounts.add_account(account("ann"), noted())
    await empty.audit.add(entry("e1"))
    assert [one.position for one in await empty.audit.unjournaled(1)] == [1]
    await empty.audit.note_journaled(1)
    assert [one.id for one in await empty.audit.unjournaled(9)] == ["e1"]
    await empty.audit.note_journaled(2)
    await empty.audit.note_journaled(1)
    assert await empty.audit.unjournaled(9) == []
