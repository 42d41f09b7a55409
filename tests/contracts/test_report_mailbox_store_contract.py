"""The contract of `ReportMailboxStore` on every engine."""

from mailcheck.core.domains.report_mailboxes import MailboxState
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.store.domains.report_mailbox_store import ABANDONED_AFTER
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, at

LEASE = MINUTE
MINE, OTHER = "this daemon", "another one"


async def test_one_daemon_reads_a_mailbox(stores: Stores) -> None:
    """A claim excludes others until it ends or is released, and each batch renews it."""
    store = stores.report_mailboxes
    new = MailboxState("a", Instant(0))
    assert await store.claim("a", MINE, NOON, LEASE) == new
    assert await store.claim("a", OTHER, NOON, LEASE) is None
    assert await store.claim("b", OTHER, NOON, LEASE) == MailboxState("b", Instant(0))
    assert await store.advance("a", MINE, (7, 5), 4, 3, at(30), LEASE)
    assert await store.claim("a", OTHER, at(61), LEASE) is None
    taken = await store.claim("a", OTHER, at(91), LEASE)
    assert taken == MailboxState("a", Instant(0), 7, 5, mails=4, reports=3)
    assert not await store.advance("a", MINE, (7, 9), 4, 3, at(92), LEASE)
    await store.finish("a", MINE, at(1_000), problem="late")
    await store.release(OTHER)
    assert await store.claim("a", MINE, at(92), LEASE) == taken


async def test_outcomes(stores: Stores) -> None:
    """A mailbox is due at its time; one that fails is due at once for an operator in a hurry."""
    store = stores.report_mailboxes
    assert await store.claim("a", MINE, NOON, LEASE)
    await store.finish("a", MINE, at(600), problem="It is shut.", failures=2)
    assert await store.claim("a", MINE, at(599), LEASE) is None
    state = await store.claim("a", MINE, at(1), LEASE, is_hurried=True)
    assert state == MailboxState("a", at(600), failures=2, problem="It is shut.")
    await store.keep_token("a", "new", "origin")
    await store.finish("a", MINE, at(600), succeeded_at=at(2))
    assert await store.claim("a", MINE, at(599), LEASE, is_hurried=True) is None
    found = await store.states(["a", "missing"])
    assert found == {
        "a": MailboxState(
            "a", at(600), refresh_token="new", refresh_origin="origin", succeeded_at=at(2)
        )
    }


async def test_abandoned_mailboxes_are_forgotten(stores: Stores) -> None:
    """The state of a mailbox that no daemon tries any more is deleted, with its token."""
    store = stores.report_mailboxes
    await store.claim("old", MINE, NOON, LEASE)
    await store.claim("new", MINE, Instant(NOON + DAY), LEASE)
    assert await store.forget(Instant(NOON + ABANDONED_AFTER + 1)) == 1
    assert list(await store.states(["old", "new"])) == ["new"]
