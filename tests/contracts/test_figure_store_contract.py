"""The contract of `FigureStore` on every engine."""

from mailcheck.core.accounts import Quota
from mailcheck.core.instants import Instant
from mailcheck.store.figures import StoreFigures
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, delivery, noted, recipient


async def test_an_empty_store(empty: Stores) -> None:
    """A store without mail has no oldest message, and uses no quota."""
    assert await empty.figures.figures(Quota(10, 1_000)) == StoreFigures(0, 0, 0, None, 0.0)
    await empty.accounts.add_account(account("ann"), noted())
    assert await empty.figures.figures(Quota(10, 1_000)) == StoreFigures(0, 0, 1, None, 0.0)


async def test_figures(empty: Stores) -> None:
    """Messages and bytes are counted; the fullest inbox counts with its own quota."""
    await empty.accounts.add_account(account("ann"), noted())
    await empty.accounts.add_account(account("bob", max_messages=4), noted())
    for number in range(2):
        sent = delivery(recipient("ann"), recipient("bob"), raw=b"x" * 50, received_at=at(number))
        await empty.deliveries.deliver(sent)
    found = await empty.figures.figures(Quota(10, 1_000))
    assert found == StoreFigures(4, 200, 2, Instant(NOON), 0.5)
    found = await empty.figures.figures(Quota(10, 125))
    assert found.fullest == 0.8
