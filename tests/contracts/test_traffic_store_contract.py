"""The contract of `TrafficStore`."""

from typing import Any

from msgspec.structs import replace

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.store.domains.traffic_store import (
    MAX_ROWS,
    OTHERS,
    DayTraffic,
    SenderTraffic,
    SourceTraffic,
    TrafficCount,
    TrafficKey,
)
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON

ANN, BOB = AccountId("ann"), AccountId("bob")
TODAY = Instant(NOON - NOON % DAY)
KEY = TrafficKey(
    TODAY, "shop.example", "bounce.example", "192.0.2.7", "shop.example", "pass", "pass", "pass"
)
ONE = TrafficCount(mails=1, filtered=1, spam=0, tenths=-5)


def changed(days: int = 0, **changes: Any) -> TrafficKey:
    """Return a key of some days ago, with changes."""
    return replace(KEY, day=Instant(TODAY - days * DAY), **changes)


async def test_counts_are_added(stores: Stores) -> None:
    """Counts of the same sender and day are added, those of others are separate."""
    traffic = stores.traffic
    await traffic.add(ANN, [(KEY, ONE), (changed(1), ONE)])
    await traffic.add(ANN, [(KEY, TrafficCount(2, 1, 1, 85)), (changed(dmarc="fail"), ONE)])
    await traffic.add(ANN, [(changed(author_domain="x.example", dmarc="temperror"), ONE)])
    assert await traffic.senders(ANN, TODAY, 10, 0) == (
        SenderTraffic("shop.example", 4, 4, 4, 3, 1, 0, 3, 1, 75, 1, TODAY),
        SenderTraffic("x.example", 1, 1, 1, 0, 0, 1, 1, 0, -5, 1, TODAY),
    )
    assert [one.author_domain for one in await traffic.senders(ANN, TODAY, 1, 1)] == ["x.example"]
    passing, failing = await traffic.sources(ANN, "shop.example", Instant(TODAY - DAY), 10, 0)
    assert passing == SourceTraffic(
        "192.0.2.7", "bounce.example", "shop.example", "pass", "pass", "pass", 4, 3, 1, 75, TODAY
    )
    assert (failing.dmarc, failing.mails) == ("fail", 1)
    assert await traffic.days(ANN, Instant(0)) == (
        DayTraffic(Instant(TODAY - DAY), 1, 1, 1, 0),
        DayTraffic(TODAY, 5, 3, 4, 1),
    )


async def test_accounts_are_separate(stores: Stores) -> None:
    """An account has its own counts, and an account that is missing has none."""
    for owner in (ANN, AccountId("missing")):
        await stores.traffic.add(owner, [(KEY, ONE)])
    assert await stores.traffic.days(AccountId("missing"), Instant(0)) == ()
    assert await stores.traffic.days(BOB, Instant(0)) == ()
    assert await stores.traffic.senders(BOB, Instant(0), 10, 0) == ()


async def test_the_rows_of_a_day_are_limited(stores: Stores) -> None:
    """Senders beyond the maximum of a day are counted together, and known ones on their own."""
    many = [(changed(author_domain=f"d{number}.example"), ONE) for number in range(MAX_ROWS)]
    await stores.traffic.add(ANN, many)
    more = [(changed(author_domain=f"e{number}.example"), ONE) for number in range(3)]
    await stores.traffic.add(ANN, [*more, (changed(author_domain="d7.example"), ONE)])
    await stores.traffic.add(ANN, [(changed(1, author_domain="e1.example"), ONE)])
    first, second, *_ = await stores.traffic.senders(ANN, TODAY, 10, 0)
    assert (first.author_domain, first.mails) == (OTHERS, 3)
    assert (second.author_domain, second.mails) == ("d7.example", 2)
    (day, _) = await stores.traffic.days(ANN, Instant(0))
    assert (day.day, day.mails) == (TODAY - DAY, 1)


async def test_old_counts_are_forgotten(stores: Stores) -> None:
    """Days before a time are deleted in batches."""
    await stores.traffic.add(ANN, [(changed(days), ONE) for days in range(5)])
    before = Instant(TODAY - 2 * DAY)
    assert await stores.traffic.forget(before, 1) == 1
    assert await stores.traffic.forget(before, 10) == 1
    assert await stores.traffic.forget(before, 10) == 0
    assert [one.day for one in await stores.traffic.days(ANN, Instant(0))] == [
        TODAY - 2 * DAY,
        TODAY - DAY,
        TODAY,
    ]
