"""The contract of `WatchStore` on every engine."""

import pytest
from msgspec.structs import replace
from pytest_twisted import async_fixture

from mailcheck.core.domains.watches import (
    MOST_WATCHES,
    AlertId,
    Ended,
    Raised,
    Watch,
    WatchChange,
    WatchId,
    WatchScore,
    WatchSettings,
)
from mailcheck.core.errors import TooManyWatches, TooManyWebhooks, WatchExists
from mailcheck.core.identifiers import AccountId, WebhookId
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.core.webhooks import MOST_WEBHOOKS, Webhook
from mailcheck.engines.database import DatabaseEngine
from mailcheck.store.domains.watch_store import History, RunRecord
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, at, copy_watch, noted, watch, webhook

ANN, BOB = AccountId("ann"), AccountId("bob")
MINE, OTHER = "this daemon", "another one"
LEASE = 2 * MINUTE

RAISED = Raised("SPF: record", "warning", "SPF is bad.", is_new=True)


async def prepared(stores: Stores, *names: str) -> list[Watch]:
    """Add watches for one account."""
    return [await stores.watches.add(watch(name)) for name in names]


async def run(stores: Stores, one: Watch, seconds: float = 0, **what: object) -> Watch:
    """Claim a watch, store the result of a run, and return the watch after it."""
    claimed = await stores.watches.claim_one(ANN, one.id, MINE, at(seconds), LEASE)
    assert claimed is not None
    recorded = RunRecord(claimed, at(seconds), at(seconds + 3_600), "state", **what)  # type: ignore[arg-type]
    assert await stores.watches.record(MINE, recorded)
    after = await stores.watches.find(ANN, one.id)
    assert after is not None
    return after


def change(number: int, seconds: float = 0) -> WatchChange:
    """Return a change."""
    return WatchChange(at(seconds), "SPF", f"p{number}", None, "found", "It is new.", "error")


@async_fixture
async def one(stores: Stores) -> Watch:
    """Add a watch."""
    (one,) = await prepared(stores, "one")
    return one


async def test_a_watch_is_kept_whole(stores: Stores, one: Watch) -> None:
    """A watch is found by its account only, unchanged; a list leaves out its state."""
    assert one == watch("one")
    assert await stores.watches.find(ANN, one.id) == one
    assert await stores.watches.find(BOB, one.id) is None
    after = await run(stores, one)
    assert after == replace(
        one, next_run_at=at(3_600), last_run_at=NOON, state="state", problem_count=0
    )
    second = await stores.watches.add(watch("a"))
    page = await stores.watches.of_account(ANN, 1)
    assert page == ([second], 2)
    page = await stores.watches.of_account(ANN, 5, 1)
    assert page == ([replace(after, state="")], 2)
    assert await stores.watches.of_account(BOB, 5) == ([], 0)


async def test_the_worst_watch_is_first(stores: Stores) -> None:
    """Watches are listed by score, then by problems; those without results come last."""
    names = ("good", "bad", "worse", "new", "listed", "fine")
    watches = dict(zip(names, await prepared(stores, *names), strict=True))
    for name, scores in (("good", (40, 95)), ("bad", (60,)), ("worse", (80, 60))):
        for hour, score in enumerate(scores):
            made = WatchScore(at(3_600 * hour), score, "B", {"SPF": score})
            count = 3 if name == "worse" else 1
            await run(stores, watches[name], 3_600 * hour, score=made, problem_count=count)
    await run(stores, watches["listed"], problem_count=2)
    await run(stores, watches["fine"], problem_count=0)
    found = await stores.watches.worst_first(ANN, 80, at(3_600), 10, 0)
    order = [str(one.id) for one in found.watches]
    assert order == ["listed", "worse", "bad", "good", "fine", "new"]
    assert (found.total, found.failing) == (6, 3)
    # The score before the period applies at its start.
    assert [one.score for one in found.scores[WatchId("good")]] == [40, 95]
    assert found.scores[WatchId("new")] == []
    later = await stores.watches.worst_first(ANN, 80, at(7_200), 2, 3)
    assert [str(one.id) for one in later.watches] == ["good", "fine"]
    assert [one.score for one in later.scores[WatchId("good")]] == [95]
    assert await stores.watches.worst_first(BOB, 80, NOON, 10, 0) == ([], {}, 0, 0)
    assert await stores.watches.find_target(ANN, watches["bad"].target) == (
        await stores.watches.find(ANN, WatchId("bad"))
    )
    assert await stores.watches.find_target(BOB, watches["bad"].target) is None


async def test_a_target_is_watched_once(stores: Stores) -> None:
    """A second equal watch of an account is rejected; another account can have its own."""
    await prepared(stores, "one")
    with pytest.raises(WatchExists):
        await stores.watches.add(replace(watch("one"), id=WatchId("two")))
    await stores.watches.add(replace(watch("one", "bob"), id=WatchId("bobs")))


async def test_the_maximum_of_watches(stores: Stores, engine: DatabaseEngine) -> None:
    """The watch beyond MOST_WATCHES is rejected until one is deleted."""
    await prepared(stores, "one")
    await engine.write(copy_watch, MOST_WATCHES - 1)
    with pytest.raises(TooManyWatches):
        await stores.watches.add(watch("three"))
    assert not await stores.watches.delete(BOB, WatchId("one"))
    assert await stores.watches.delete(ANN, WatchId("one"))
    assert not await stores.watches.delete(ANN, WatchId("one"))
    await stores.watches.add(watch("three"))


async def test_what_is_due(stores: Stores) -> None:
    """Each due watch is claimed by one holder, the longest overdue first, not before its time."""
    await prepared(stores)
    watches = stores.watches
    for name, seconds in (("late", 5), ("first", 1), ("second", 2), ("future", 900)):
        await watches.add(replace(watch(name), next_run_at=at(seconds)))
    assert [one.id for one in await watches.claim(MINE, at(10), LEASE, 2)] == ["first", "second"]
    assert [one.id for one in await watches.claim(OTHER, at(10), LEASE, 9)] == ["late"]
    assert await watches.claim(OTHER, at(10), LEASE, 9) == []
    assert await watches.claim_one(ANN, WatchId("late"), MINE, at(10), LEASE) is None
    await watches.release(OTHER)
    assert await watches.claim_one(ANN, WatchId("late"), MINE, at(10), LEASE) is not None
    assert await watches.claim_one(BOB, WatchId("future"), MINE, at(10), LEASE) is None
    later = at(20 + LEASE / 1000)  # the clock of a busy database may seem to be late
    assert len(await watches.claim(OTHER, later, LEASE, 9)) == 3


async def test_a_watch_that_is_paused_is_not_due(stores: Stores, one: Watch) -> None:
    """The owner's setting wins over a run in progress."""
    (claimed,) = await stores.watches.claim(MINE, NOON, LEASE, 9)
    paused = WatchSettings(interval=15 * MINUTE, is_paused=True)
    assert await stores.watches.change(BOB, one.id, paused, at(7)) is None
    changed = await stores.watches.change(ANN, one.id, paused, at(7))
    assert changed is not None
    assert (changed.settings, changed.next_run_at) == (paused, at(7))
    assert await stores.watches.record(MINE, RunRecord(claimed, NOON, at(60), "{}"))
    kept = await stores.watches.find(ANN, one.id)
    assert kept is not None
    assert (kept.settings, kept.next_run_at, kept.last_run_at) == (paused, at(7), NOON)
    assert await stores.watches.claim(MINE, at(90), LEASE, 9) == []


async def test_a_lost_claim(stores: Stores, one: Watch) -> None:
    """A run of another holder, or of a deleted watch, is not stored."""
    recorded = RunRecord(one, NOON, at(60), "{}", (change(1),), ((AlertId("a"), RAISED),))
    assert not await stores.watches.record(MINE, recorded)
    assert await stores.watches.history(one.id, NOON, 9) == History((), ())
    assert await stores.watches.alerts(ANN, one.id, 9) == []
    await stores.watches.claim(MINE, NOON, LEASE, 1)
    await stores.watches.postpone(MINE, one.id, at(300))
    assert not await stores.watches.record(MINE, recorded)
    assert await stores.watches.claim(MINE, at(299), LEASE, 1) == []
    assert len(await stores.watches.claim(MINE, at(300), LEASE, 1)) == 1


async def test_a_history(stores: Stores, one: Watch) -> None:
    """Changes and scores since a given time are listed oldest first, up to the newest ones."""
    scores = [WatchScore(at(number), number, "F", {"SPF": number}) for number in range(2)]
    await run(stores, one, 0, changes=(change(1), change(2)), score=scores[0])
    after = await run(stores, one, 1, changes=(change(3, 1),), score=scores[1])
    assert after.changes == 5
    history = await stores.watches.history(one.id, NOON, 9)
    assert history == History((change(1), change(2), change(3, 1)), tuple(scores))
    assert await stores.watches.history(one.id, at(1), 9) == History((change(3, 1),), (scores[1],))
    cut = await stores.watches.history(one.id, NOON, 2)
    assert (cut.changes, cut.is_cut) == ((change(2), change(3, 1)), True)


async def test_the_life_of_an_alert(stores: Stores, one: Watch) -> None:
    """It is sent when it opens, gets worse and ends; one at a time is open."""
    watches = stores.watches
    await run(stores, one, 0, events=((AlertId("a"), RAISED),))
    (pending_alerts,) = await watches.pending_alerts(9)
    assert (pending_alerts.mailbox_name, pending_alerts.alert.target) == ("dev-ann", "one.example")
    assert pending_alerts.settings == watch("one").settings
    assert [pending_alerts.alert] == await watches.open_alerts(ANN, 9)
    assert await watches.open_alerts(BOB, 9) == []
    await watches.mark_alerts_sent([pending_alerts.alert])
    assert await watches.pending_alerts(9) == []
    same = replace(RAISED, sentence="SPF is bad in another way.", is_new=False)
    await run(stores, one, 1, events=((AlertId("b"), same),))
    assert await watches.pending_alerts(9) == []
    worse = replace(RAISED, severity="error")
    await run(stores, one, 2, events=((AlertId("c"), worse),))
    (told,) = await watches.pending_alerts(9)
    assert (told.alert.id, told.alert.severity, told.alert.opened_at) == ("a", "error", NOON)
    await run(stores, one, 3, events=((AlertId("e"), Ended(RAISED.key, "It is over.")),))
    await watches.mark_alerts_sent([told.alert])  # before it ended
    (over,) = await watches.pending_alerts(9)
    assert (over.alert.ended_at, over.alert.ending) == (at(3), "It is over.")
    await watches.mark_alerts_sent([over.alert])
    await run(stores, one, 4, events=((AlertId("d"), RAISED),))
    listed = await watches.alerts(ANN, one.id, 9)
    assert [alert.id for alert in listed] == ["d", "a"]


async def test_an_alert_that_is_acknowledged(stores: Stores, one: Watch) -> None:
    """Its opening and worsening are not sent any more; its end is sent."""
    watches = stores.watches
    await run(stores, one, 0, events=((AlertId("a"), RAISED),))
    assert await watches.acknowledge(BOB, one.id, AlertId("a"), at(1)) is None
    assert await watches.acknowledge(ANN, one.id, AlertId("b"), at(1)) is None
    known = await watches.acknowledge(ANN, one.id, AlertId("a"), at(1))
    assert known is not None
    assert known.acknowledged_at == at(1)
    assert await watches.pending_alerts(9) == []
    await run(stores, one, 2, events=((AlertId("b"), replace(RAISED, severity="error")),))
    assert await watches.pending_alerts(9) == []
    await run(stores, one, 3, events=((AlertId("e"), Ended(RAISED.key, "It is over.")),))
    assert len(await watches.pending_alerts(9)) == 1


async def test_old_data_is_deleted(stores: Stores, one: Watch) -> None:
    """Changes, scores and ended alerts are deleted in batches; an open alert is kept."""
    watches = stores.watches
    other = replace(RAISED, key="other")
    score = WatchScore(NOON, 1, "F", {})
    raised = ((AlertId("a"), RAISED), (AlertId("b"), other))
    await run(stores, one, 0, changes=(change(1), change(2)), score=score, events=raised)
    await run(
        stores,
        one,
        1,
        changes=(change(3, 1),),
        events=((AlertId("e"), Ended(RAISED.key, "Over.")),),
    )
    assert await watches.forget(NOON, 9) == 0
    assert await watches.forget(at(1), 2) == 2
    assert await watches.forget(at(1), 9) == 1
    assert await watches.history(one.id, Instant(0), 9) == History((change(3, 1),), ())
    assert await watches.forget(Instant(NOON + DAY), 9) == 2
    assert [alert.id for alert in await watches.alerts(ANN, one.id, 9)] == ["b"]


async def test_deleting_a_watch(stores: Stores, one: Watch) -> None:
    """Data of a deleted watch is neither sent nor listed."""
    raised = ((AlertId("a"), RAISED),)
    await run(stores, one, 0, changes=(change(1),), events=raised)
    assert await stores.watches.delete(ANN, one.id)
    assert await stores.watches.pending_alerts(9) == []
    assert await stores.watches.history(one.id, NOON, 9) == History((), ())


def named(*urls: str) -> WatchSettings:
    """Return settings with receivers of alerts."""
    return WatchSettings(alert_to=urls)


def receiver(name: str, url: str) -> Webhook:
    """Return a receiver of alerts; its id is its name."""
    return replace(webhook(name), url=url, is_of_watches=True)


async def urls_of(stores: Stores) -> list[str]:
    """Return the URLs of all webhooks of the account."""
    return sorted(one.url for one in await stores.webhooks.of_account(ANN))


async def test_receivers_exist_while_a_watch_names_them(stores: Stores) -> None:
    """All watches that name a URL share one webhook; the owner's own webhooks are kept."""
    await prepared(stores)
    own = await stores.webhooks.add(replace(webhook("own"), url="u:1"), noted(), is_from_now=True)
    settings = named("u:1", "u:2")
    both = [receiver("r1", "u:1"), receiver("r2", "u:2")]
    await stores.watches.add(replace(watch("one"), settings=settings), both)
    second = [receiver("r3", "u:2")]
    await stores.watches.add(replace(watch("two"), settings=named("u:2")), second)
    assert await urls_of(stores) == ["u:1", "u:1", "u:2"]
    assert await stores.webhooks.find(ANN, WebhookId("r3")) is None
    (kept,) = [one for one in await stores.webhooks.of_account(ANN) if one.id == "r2"]
    assert (kept.is_of_watches, own.is_of_watches) == (True, False)
    assert await stores.watches.delete(ANN, WatchId("one"))
    assert await urls_of(stores) == ["u:1", "u:2"]
    await stores.watches.change(ANN, WatchId("two"), named("u:3"), NOON, [receiver("r4", "u:3")])
    assert await urls_of(stores) == ["u:1", "u:3"]
    await stores.watches.delete(ANN, WatchId("two"))
    assert [one.id for one in await stores.webhooks.of_account(ANN)] == [own.id]


async def test_the_maximum_of_receivers(stores: Stores) -> None:
    """A watch with too many receivers for the account is not created or changed, and none of its
    receivers is.
    """
    await prepared(stores)
    for number in range(MOST_WEBHOOKS - 1):
        await stores.webhooks.add(webhook(f"w{number}"), noted(), is_from_now=True)
    settings, two = named("u:1", "u:2"), [receiver("r1", "u:1"), receiver("r2", "u:2")]
    with pytest.raises(TooManyWebhooks):
        await stores.watches.add(replace(watch("one"), settings=settings), two)
    one = await stores.watches.add(watch("one"))
    with pytest.raises(TooManyWebhooks):
        await stores.watches.change(ANN, one.id, settings, NOON, two)
    assert await stores.watches.find(ANN, one.id) == one
    assert len(await urls_of(stores)) == MOST_WEBHOOKS - 1
    assert await stores.watches.change(BOB, one.id, settings, NOON, two) is None


async def test_pending_alerts_have_their_receivers(stores: Stores) -> None:
    """A pending alert contains the receivers of its watch."""
    await prepared(stores)
    one = await stores.watches.add(
        replace(watch("one"), settings=named("u:1")), [receiver("r1", "u:1")]
    )
    await run(stores, one, events=((AlertId("a"), RAISED),))
    (pending_alerts,) = await stores.watches.pending_alerts(9)
    assert pending_alerts.settings.alert_to == ("u:1",)
