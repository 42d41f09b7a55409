"""The contract of `WebhookStore` on every engine."""

import pytest
from msgspec.structs import replace
from pytest_twisted import async_fixture

from mailcheck.core.cursors import Position
from mailcheck.core.errors import InvalidParameter, TooManyWebhooks, WebhookEnded
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, WebhookId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.webhooks import (
    DELIVERIES_KEPT,
    MOST_WEBHOOKS,
    Attempt,
    Webhook,
    WebhookDelivery,
    failed,
    told,
)
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, at, delivery, noted, recipient, webhook

ANN, BOB = AccountId("ann"), AccountId("bob")
MINE, OTHER = "this daemon", "another one"
LEASE = 15 * SECOND

WANTED = MessageFilter(
    tag="", author="shop", headers=(("Reply-To", "a"), ("X-Run", "7")), has_attachment=False
)


@async_fixture
async def stores(stores: Stores) -> Stores:
    """Add mails for one account."""
    for _ in range(3):
        await stores.deliveries.deliver(delivery(recipient("ann")))
    return stores


async def added(stores: Stores, name: str = "one", position: int = 0) -> Webhook:
    """Add a webhook of Ann's."""
    one = replace(webhook(name), position=Position(position))
    return await stores.webhooks.add(one, noted(), is_from_now=False)


def tried(number: int = 1, status: int | None = 200) -> WebhookDelivery:
    """Return a delivery."""
    attempt = Attempt(status, "" if status == 200 else "it failed")
    return WebhookDelivery(f"msg_{number}", at(number), attempt, 7 + number)


async def test_a_webhook_is_kept_whole(stores: Stores) -> None:
    """A webhook is found by its account only, unchanged; its position is the newest."""
    one = replace(webhook("one"), wanted=WANTED)
    kept = await stores.webhooks.add(one, noted(), is_from_now=True)
    assert kept == replace(one, account_name="ann", position=Position(3))
    assert await stores.webhooks.find(ANN, one.id) == kept
    assert await stores.webhooks.find(BOB, one.id) is None
    assert await stores.webhooks.of_account(BOB) == []
    second = await added(stores, "two", 2)
    assert await stores.webhooks.of_account(ANN) == [kept, second]
    assert second.position == 2


class Asked(MessageFilter, frozen=True, kw_only=True):
    """A filter with a separate field, as a request may have."""

    url: str


async def test_a_webhook_keeps_the_filter_alone(stores: Stores) -> None:
    """Additional fields of a request are not stored."""
    one = replace(webhook("one"), wanted=Asked(tag="a", url="https://a.example/"))
    kept = await stores.webhooks.add(one, noted(), is_from_now=True)
    assert kept.wanted == MessageFilter(tag="a")


async def test_a_position_that_was_not_reached(stores: Stores) -> None:
    """A cursor of another inbox is rejected, when a webhook is created and later."""
    with pytest.raises(InvalidParameter):
        await added(stores, position=4)
    one = await added(stores)
    with pytest.raises(InvalidParameter):
        await stores.webhooks.restart(ANN, one.id, Position(4))


async def test_the_maximum_of_webhooks(stores: Stores) -> None:
    """A further webhook is rejected until one is deleted; another account has its own."""
    for number in range(MOST_WEBHOOKS):
        await added(stores, f"w{number}")
    with pytest.raises(TooManyWebhooks):
        await added(stores, "more")
    await stores.webhooks.add(replace(webhook("bobs"), account_id=BOB), noted(), is_from_now=True)
    assert not await stores.webhooks.delete(BOB, WebhookId("w3"), noted())
    assert await stores.webhooks.delete(ANN, WebhookId("w3"), noted())
    assert not await stores.webhooks.delete(ANN, WebhookId("w3"), noted())
    await added(stores, "more")


async def test_secrets(stores: Stores) -> None:
    """A new secret replaces the old one, which also signs until a given time."""
    one = await added(stores)
    changed = await stores.webhooks.replace_secret(ANN, one.id, "whsec_new", at(60), noted())
    assert changed is not None
    assert changed == await stores.webhooks.find(ANN, one.id)
    assert changed.secrets(at(59)) == ("whsec_new", one.secret)
    assert changed.secrets(at(60)) == ("whsec_new",)
    assert await stores.webhooks.replace_secret(BOB, one.id, "whsec_his", at(60), noted()) is None
    assert await stores.webhooks.find(ANN, one.id) == changed


async def test_the_lease(stores: Stores) -> None:
    """One holder has it at a time, until its end; without a webhook it is not needed."""
    webhooks = stores.webhooks
    assert not await webhooks.is_wanted(MINE, NOON)
    await added(stores)
    assert await webhooks.is_wanted(MINE, NOON)
    assert await webhooks.claim(MINE, NOON, LEASE)
    assert not await webhooks.is_wanted(OTHER, at(14))
    assert not await webhooks.claim(OTHER, at(14), LEASE)
    assert await webhooks.is_wanted(MINE, at(14))
    assert await webhooks.claim(MINE, at(14), LEASE)
    assert not await webhooks.claim(OTHER, at(28), LEASE)
    assert await webhooks.claim(OTHER, at(30), LEASE)
    assert not await webhooks.claim(MINE, at(31), LEASE)
    await webhooks.release(MINE)
    assert not await webhooks.claim(MINE, at(31), LEASE)
    await webhooks.release(OTHER)
    assert await webhooks.claim(MINE, at(31), LEASE)


async def test_records(stores: Stores) -> None:
    """Deliveries are stored with the state of the webhook after them."""
    webhooks = stores.webhooks
    one = await added(stores)
    await webhooks.claim(MINE, NOON, LEASE)
    failing = failed(one, Attempt(500, "it answered 500"), at(1), 0.5)
    assert await webhooks.record(MINE, failing, [tried(1, 500)])
    assert await webhooks.find(ANN, one.id) == failing
    # A delivery without an answer has no status.
    assert await webhooks.record(MINE, failing, [tried(2, None)])
    after = told(failing, Position(2))
    assert await webhooks.record(MINE, after, [tried(3)])
    assert await webhooks.find(ANN, one.id) == after
    assert await webhooks.open_webhooks() == [after]
    assert await webhooks.deliveries(one.id) == [tried(3), tried(2, None), tried(1, 500)]


async def test_records_of_several(stores: Stores) -> None:
    """Deliveries that are recorded together are stored like single ones, up to the last ones."""
    webhooks = stores.webhooks
    one = await added(stores)
    await webhooks.claim(MINE, NOON, LEASE)
    await webhooks.record(MINE, told(one, Position(1)), [tried(1), tried(2)])
    await webhooks.record(MINE, told(one, Position(2)), [tried(3)])
    assert await webhooks.deliveries(one.id) == [tried(3), tried(2), tried(1)]
    many = [tried(number) for number in range(4, 4 + DELIVERIES_KEPT + 3)]
    await webhooks.record(MINE, told(one, Position(3)), many)
    assert await webhooks.deliveries(one.id) == many[: -DELIVERIES_KEPT - 1 : -1]
    await webhooks.note(one.id, tried(90))
    assert await webhooks.deliveries(one.id) == [tried(90), *many[:-DELIVERIES_KEPT:-1]]


async def test_records_that_come_too_late(stores: Stores) -> None:
    """Without the lease, after a change by the owner, or after the end, no record is stored."""
    webhooks = stores.webhooks
    one = await added(stores)
    await webhooks.claim(MINE, NOON, LEASE)
    assert not await webhooks.record(OTHER, told(one, Position(1)), [tried()])
    assert await webhooks.record(MINE, told(one, Position(2)), [tried()])
    assert not await webhooks.record(MINE, told(one, Position(1)), [tried(2)])
    restarted = await webhooks.restart(ANN, one.id, Position(0))
    assert restarted is not None
    assert not await webhooks.record(MINE, told(one, Position(3)), [tried(3)])
    assert await webhooks.find(ANN, one.id) == restarted
    assert await webhooks.deliveries(one.id) == [tried()]
    await webhooks.delete(ANN, one.id, noted())
    assert not await webhooks.record(MINE, told(restarted, Position(3)), [tried(4)])
    assert await webhooks.deliveries(one.id) == []


async def test_a_restart(stores: Stores) -> None:
    """It resets failures, and keeps or moves the position; an ended webhook stays ended."""
    webhooks = stores.webhooks
    one = await added(stores, position=1)
    await webhooks.claim(MINE, NOON, LEASE)
    await webhooks.record(MINE, failed(one, tried(1, 500).attempt, NOON, 0.0), [tried(1, 500)])
    restarted = await webhooks.restart(ANN, one.id, None)
    assert restarted == replace(one, revision=1)
    moved = await webhooks.restart(ANN, one.id, Position(3))
    assert moved == replace(one, revision=2, position=Position(3))
    assert await webhooks.restart(BOB, one.id, None) is None
    ended = failed(moved, Attempt(410, "it answered 410"), NOON, 0.0)
    await webhooks.record(MINE, ended, [tried(2, 410)])
    with pytest.raises(WebhookEnded):
        await webhooks.restart(ANN, one.id, None)
    assert await webhooks.open_webhooks() == []
    assert not await webhooks.is_wanted(MINE, NOON)


async def test_the_last_deliveries(stores: Stores) -> None:
    """A maximum is stored, including those of the owner, newest first."""
    webhooks = stores.webhooks
    one = await added(stores)
    await webhooks.claim(MINE, NOON, LEASE)
    for number in range(DELIVERIES_KEPT + 5):
        if number % 2:
            await webhooks.record(MINE, told(one, Position(0)), [tried(number)])
        else:
            await webhooks.note(one.id, tried(number))
    kept = await webhooks.deliveries(one.id)
    assert kept == [tried(number) for number in range(DELIVERIES_KEPT + 4, 4, -1)]
    await webhooks.note(WebhookId("gone"), tried())
    assert await webhooks.deliveries(WebhookId("gone")) == []


async def test_moments_are_kept_whole(stores: Stores) -> None:
    """All times are stored in milliseconds."""
    one = await added(stores)
    until = Instant((1 << 45) + 1)
    changed = await stores.webhooks.replace_secret(ANN, one.id, "whsec_new", until, noted())
    assert changed is not None
    assert changed.earlier_until == until
