"""The contract of `DigestStore` on every engine."""

from mailcheck.core.domains.digests import Digest, DigestInterval, DigestSettings
from mailcheck.core.domains.watches import AlertId, Ended, Raised, WatchKind, parse_quiet_time
from mailcheck.core.identifiers import AccountId
from mailcheck.store.domains.watch_store import RunRecord
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, at, watch

ANN, BOB = AccountId("ann"), AccountId("bob")
WEEKLY = DigestSettings(DigestInterval.WEEK, ("ops@example.com",), parse_quiet_time("22:00-06:00"))


async def test_settings(stores: Stores) -> None:
    """An account has the settings that it has chosen last, or none."""
    store = stores.digests
    assert await store.find(ANN) == DigestSettings()
    await store.save(ANN, WEEKLY, NOON, at(60))
    assert await store.find(ANN) == WEEKLY
    assert await store.find(BOB) == DigestSettings()
    await store.delete(ANN)
    assert await store.find(ANN) == DigestSettings()


async def test_a_digest_is_due_once(stores: Stores) -> None:
    """A digest is due at its time, later for those that it did not reach, and then anew."""
    store = stores.digests
    await store.save(ANN, WEEKLY, NOON, at(60))
    assert await store.due(at(59), 10) == []
    digest = Digest(ANN, "ann", "ann", WEEKLY, NOON)
    (found,) = await store.due(at(60), 10)
    assert found == Digest(ANN, "ann", found.mailbox_name, WEEKLY, NOON)
    await store.put_off(ANN, at(90), ["ops@example.com"])
    assert await store.due(at(89), 10) == []
    (found,) = await store.due(at(90), 10)
    assert found.left == ("ops@example.com",)
    await store.note_sent(ANN, at(90), at(120))
    (found,) = await store.due(at(120), 10)
    assert (found.begins_at, found.left, digest.left) == (at(90), (), ())


async def test_alerts_of_a_period(stores: Stores) -> None:
    """Open alerts come first; of ended ones, only those that ended in the period."""
    one = await stores.watches.add(watch("one"))
    runs: list[tuple[int, list[tuple[AlertId, Raised | Ended]]]] = [
        (0, [(AlertId("a1"), Raised("SPF", "error", "Bad.", is_new=True))]),
        (
            60,
            [
                (AlertId("a2"), Raised("MX", "error", "Bad.", is_new=True)),
                (AlertId(""), Ended("SPF", "Fine.")),
            ],
        ),
    ]
    for seconds, events in runs:
        claimed = await stores.watches.claim_one(ANN, one.id, "me", at(seconds), 60_000)
        assert claimed is not None
        recorded = RunRecord(claimed, at(seconds), at(9_999), "{}", (), tuple(events))
        assert await stores.watches.record("me", recorded)
    for since, expected in ((at(60), ["a2", "a1"]), (at(61), ["a2"])):
        found = await stores.digests.alerts_since(ANN, since, 10)
        assert [alert.id for alert in found] == expected
    assert found[0].kind is WatchKind.DOMAIN
    assert await stores.digests.alerts_since(BOB, NOON, 10) == []
