"""The contract of `HeartbeatStore` on every engine."""

import pytest
from msgspec.structs import replace

from mailcheck.checks.watching.heartbeats import Reception
from mailcheck.core.domains.heartbeats import (
    BeatFacts,
    BeatVerdict,
    DayOfBeats,
    HeartbeatSettings,
    JudgedBeat,
    Schedule,
)
from mailcheck.core.domains.watches import (
    AlertId,
    Ended,
    Raised,
    Watch,
    WatchKind,
    WatchSettings,
)
from mailcheck.core.errors import WatchExists
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, HOUR, MINUTE, Instant
from mailcheck.store.domains.heartbeat_store import (
    GAP,
    MOST_BEATS,
    SEEN_EVERY,
    HeartbeatRecord,
)
from mailcheck.store.domains.watch_store import RunRecord
from mailcheck.store.mail_delivery import MOST_WAITING
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, at, delivery, recipient, watch

ANN, BOB = AccountId("ann"), AccountId("bob")
MINE = "this daemon"
LEASE = 2 * MINUTE

FACTS = BeatFacts(score=95, is_complete=True, spf=True, tls=None, signed_by=("example.com",))


def heartbeat(name: str, owner: str = "ann") -> Watch:
    """Return a heartbeat that is due in an hour; its id is its name."""
    return replace(
        watch(name, owner),
        kind=WatchKind.HEARTBEAT,
        target=name,
        settings=WatchSettings(heartbeat=HeartbeatSettings(Schedule(every=HOUR))),
        next_run_at=at(3_600),
    )


async def prepared(stores: Stores, *names: str) -> None:
    """Add heartbeats for one account."""
    for name in names:
        await stores.heartbeats.add(heartbeat(name))


async def record(
    stores: Stores, one: Watch, *judged: JudgedBeat, days: tuple[DayOfBeats, ...] = ()
) -> bool:
    """Store the result of an evaluation of a claimed heartbeat."""
    run = RunRecord(one, NOON, at(7_200), "state")
    return await stores.heartbeats.record_beats(MINE, HeartbeatRecord(run, judged, days))


async def test_heartbeats_and_watches_are_apart(stores: Stores) -> None:
    """Neither store lists, finds, claims or deletes what belongs to the other."""
    await prepared(stores, "backup")
    domain = await stores.watches.add(watch("one"))
    with pytest.raises(WatchExists, match="there is a heartbeat backup already"):
        await stores.heartbeats.add(replace(heartbeat("backup"), id="other"))
    assert [one.id for one in await stores.heartbeats.all_of(ANN)] == ["backup"]
    assert (await stores.watches.of_account(ANN, 9)).total == 1
    assert await stores.watches.find(ANN, heartbeat("backup").id) is None
    assert await stores.watches.find_target(ANN, "backup") is None
    assert await stores.heartbeats.find(ANN, domain.id) is None
    assert not await stores.watches.delete(ANN, heartbeat("backup").id)
    later = at(4_000)
    assert [one.id for one in await stores.watches.claim(MINE, later, LEASE, 9)] == ["one"]
    (claimed,) = await stores.heartbeats.claim(MINE, later, LEASE, 9)
    assert claimed == heartbeat("backup")
    assert (await stores.watches.worst_first(ANN, 80, NOON, 9, 0)).total == 1


async def test_mail_to_a_heartbeat_makes_it_due(stores: Stores) -> None:
    """Mail with the tag of a heartbeat waits for its verdict; other mail does not."""
    await prepared(stores, "backup", "paused")
    settings = replace(heartbeat("paused").settings, is_paused=True)
    await stores.heartbeats.change(ANN, heartbeat("paused").id, settings, NOON)
    for number, (owner, tag) in enumerate(
        [
            ("ann", "Beat.Backup"),
            ("ann", "beat.other"),
            ("ann", "beat.paused"),
            ("ann", "backup"),
            ("bob", "beat.backup"),
        ]
    ):
        await stores.deliveries.deliver(delivery(recipient(owner, tag), received_at=at(number)))
    (claimed,) = await stores.heartbeats.claim(MINE, at(9), LEASE, 9)
    assert (claimed.target, claimed.next_run_at) == ("backup", NOON)
    (waiting,) = await stores.heartbeats.waiting(claimed.id, 9)
    assert (waiting.received_at, waiting.attempts) == (NOON, 0)
    mail = await stores.heartbeats.read_mail(waiting)
    assert mail is not None
    assert (mail.delivery_id, mail.received_at) == (waiting.delivery_id, NOON)


async def test_mail_during_an_evaluation_is_not_forgotten(stores: Stores) -> None:
    """Mail that arrives while a heartbeat is evaluated makes it due again afterwards."""
    await prepared(stores, "backup")
    to_backup = recipient("ann", "beat.backup")
    await stores.deliveries.deliver(delivery(to_backup))
    (claimed,) = await stores.heartbeats.claim(MINE, NOON, LEASE, 9)
    await stores.deliveries.deliver(delivery(to_backup))  # in the same millisecond
    assert await record(stores, claimed)
    (again,) = await stores.heartbeats.claim(MINE, NOON, LEASE, 9)
    assert await record(stores, again)
    assert await stores.heartbeats.claim(MINE, NOON, LEASE, 9) == []


async def test_accounts_take_turns(stores: Stores) -> None:
    """An account with many heartbeats, which are slow to evaluate, does not delay another one."""
    await prepared(stores, "one", "two", "three")
    await stores.heartbeats.add(replace(heartbeat("late", "bob"), next_run_at=at(3_601)))
    claimed = [
        [one.id for one in await stores.heartbeats.claim(MINE, at(4_000), LEASE, limit)]
        for limit in (1, 1, 9)
    ]
    assert claimed == [["one"], ["late"], ["three", "two"]]


async def test_verdicts_and_days_are_kept(stores: Stores) -> None:
    """Verdicts are stored with their facts; days are added up, and keep the lowest score."""
    await prepared(stores, "backup")
    one, watch_id = heartbeat("backup"), heartbeat("backup").id
    for _ in range(2):
        await stores.deliveries.deliver(delivery(recipient("ann", "beat.backup")))
    first, second = await stores.heartbeats.waiting(watch_id, 9)
    (claimed,) = await stores.heartbeats.claim(MINE, NOON, LEASE, 9)
    judged = JudgedBeat(first.id, NOON, BeatVerdict.LATE, FACTS, 90_000)
    day = DayOfBeats(Instant(NOON // DAY * DAY), on_time=1, missing=1, lowest=95)
    assert await record(stores, claimed, judged, JudgedBeat(second.id, NOON, None), days=(day,))
    assert await stores.heartbeats.waiting(watch_id, 9) == [replace(second, attempts=1)]
    assert not await record(stores, one)  # the claim has ended
    (claimed,) = await stores.heartbeats.claim(MINE, at(9_000), LEASE, 9)
    more = replace(day, on_time=0, late=1, missing=-1, lowest=90)
    assert await record(stores, claimed, days=(more, replace(day, day=Instant(0), lowest=None)))
    found = await stores.heartbeats.recent(watch_id, Instant(1))
    assert found.beats == (judged,)
    assert found.days == (replace(day, late=1, missing=0, lowest=90),)
    both = await stores.heartbeats.days([watch_id], Instant(0))
    assert [one.lowest for one in both[watch_id]] == [None, 90]
    assert await stores.heartbeats.forget(Instant(1), 9) == 1


async def test_beats_are_bounded(stores: Stores) -> None:
    """Strangers can make neither waiting nor judged beats pile up."""
    await prepared(stores, "backup")
    watch_id = heartbeat("backup").id
    to_backup = recipient("ann", "beat.backup")
    for _ in range(3):
        await stores.deliveries.deliver(delivery(*[to_backup] * (MOST_WAITING + 1)))
        waiting = await stores.heartbeats.waiting(watch_id, 2 * MOST_WAITING)
        assert len(waiting) == MOST_WAITING
        (claimed,) = await stores.heartbeats.claim(MINE, at(9_000), LEASE, 9)
        judged = [JudgedBeat(one.id, NOON, BeatVerdict.EXTRA) for one in waiting]
        assert await record(stores, claimed, *judged)
    found = await stores.heartbeats.recent(watch_id, NOON, 2 * MOST_BEATS)
    assert len(found.beats) == MOST_BEATS


async def test_the_events_of_an_evaluation_keep_their_order(stores: Stores) -> None:
    """A problem that ends and begins again in one evaluation is open afterwards."""
    await prepared(stores, "backup")
    raised = Raised("arrival", "warning", "It is late.", is_new=True)
    ended = Ended("arrival", "It is back.")
    (claimed,) = await stores.heartbeats.claim(MINE, at(9_000), LEASE, 9)
    run = RunRecord(
        claimed,
        NOON,
        at(60),
        "state",
        events=((AlertId("a0"), raised), (AlertId("a1"), ended), (AlertId("a2"), raised)),
    )
    assert await stores.heartbeats.record_beats(MINE, HeartbeatRecord(run, (), ()))
    (alert,) = await stores.heartbeats.open_alerts(ANN, 9)
    assert (alert.id, alert.kind, alert.target) == ("a2", WatchKind.HEARTBEAT, "backup")
    assert await stores.watches.open_alerts(ANN, 9) == []
    pending = await stores.watches.pending_alerts(9)
    assert [one.alert.id for one in pending] == ["a0", "a2"]


async def test_gaps_in_the_observed_time_are_known(stores: Stores) -> None:
    """A daemon learns of the last gap, whichever daemon observed the time before."""
    observe = stores.heartbeats.observe
    assert await observe(NOON) == Reception()  # there is no heartbeat
    await prepared(stores, "backup")
    late = Instant(NOON + HOUR)
    assert await observe(late) == Reception()
    last = late
    for _ in range(4):
        last = Instant(last + SEEN_EVERY)
        assert await observe(last) == Reception()
    up = Instant(last + GAP + 1)
    assert await observe(up) == Reception(last, up)
    assert await observe(Instant(up + 1)) == Reception(last, up)


async def test_a_clock_that_is_set_back_makes_heartbeats_due(stores: Stores) -> None:
    """Heartbeats that wait for a time that is far away now are evaluated again."""
    await prepared(stores, "backup")
    assert await stores.heartbeats.observe(at(1_800)) == Reception()
    assert await stores.heartbeats.observe(at(1_000)) == Reception()
    assert len(await stores.heartbeats.claim(MINE, at(1_000), LEASE, 9)) == 1
    assert await stores.heartbeats.observe(at(1_060)) == Reception()
