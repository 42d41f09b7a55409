"""The contract of `Memory` and `SelectorStore`."""

from typing import Any

from pytest_twisted import ensureDeferred

from mailcheck.cluster.shared import SharedMemory
from mailcheck.core.memory.keys import key_of
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS
from tests.contracts.conftest import PersistentState
from tests.servers.redis import RedisServer, connected_twice, until

WORK = key_of("work")
LONG = 60_000  # milliseconds


@ensureDeferred
async def test_texts_are_stored(persistent_state: PersistentState) -> None:
    """A text is stored unchanged, under its name only, until it is replaced."""
    memory = persistent_state.memory
    assert await memory.recall(key_of("a")) is None
    text = 'Grüße,\n\t"\\" \x7f  {}' * 9_000
    assert await memory.keep(key_of("a"), text, LONG)
    await memory.keep(key_of("b b:b*"), "", LONG)
    assert await memory.recall(key_of("a")) == text
    assert await memory.recall(key_of("b b:b*")) == ""
    assert await memory.recall(key_of("A")) is None
    await memory.keep(key_of("a"), "2", LONG)
    assert await memory.recall(key_of("a")) == "2"


@ensureDeferred
async def test_texts_expire(persistent_state: PersistentState) -> None:
    """A text is deleted after its time; a new one of the same name has its own time."""
    memory = persistent_state.memory
    found: list[Any] = ["unknown"]

    async def has_gone() -> bool:
        found[0] = await memory.recall(key_of("a"))
        return found[0] is None

    await memory.keep(key_of("a"), "1", LONG)
    await memory.keep(key_of("a"), "2", 30)
    await memory.keep(key_of("b"), "3", LONG)
    while not await has_gone():
        assert found == ["2"]
        await until(lambda: True)
    assert await memory.recall(key_of("b")) == "3"


@ensureDeferred
async def test_claims_of_one_daemon(persistent_state: PersistentState) -> None:
    """A single daemon can always claim work, repeatedly, and release it more than once."""
    memory = persistent_state.memory
    assert [await memory.acquire(WORK, LONG) for _ in range(2)] == [True, True]
    for _ in range(2):
        await memory.release(WORK)
    assert await memory.acquire(WORK, LONG)


@ensureDeferred
async def test_claims_of_several_daemons(redis_server: RedisServer) -> None:
    """One daemon holds a claim until it releases it or it expires; others cannot release it."""
    from twisted.internet import reactor

    clock: Any = reactor
    async with connected_twice(redis_server) as (here, there):
        one, other = (SharedMemory(redis, clock, "1") for redis in (here, there))
        assert [await one.acquire(WORK, LONG), await other.acquire(WORK, LONG)] == [
            True,
            False,
        ]
        assert await other.acquire(key_of("other work"), LONG)
        await other.release(WORK)
        assert not await other.acquire(WORK, LONG)
        await one.release(WORK)
        assert [await other.acquire(WORK, LONG), await one.acquire(WORK, LONG)] == [
            True,
            False,
        ]
        assert await other.acquire(WORK, 20)  # a claim of one's own gets the new time
        while not await one.acquire(WORK, LONG):
            await until(lambda: True)
        await one.keep(key_of("a"), "1", LONG)
        assert await other.recall(key_of("a")) == "1"
        # A daemon of another version uses it with another meaning.
        assert await SharedMemory(there, clock, "2").recall(key_of("a")) is None


@ensureDeferred
async def test_selectors(persistent_state: PersistentState) -> None:
    """The newest selectors come first, also repeated ones, up to a maximum."""
    store = persistent_state.selectors
    assert await store.selectors_of("a.example") == ()
    names = [f"s{number}" for number in range(KNOWN_SELECTORS + 2)]
    assert await store.note_selectors([("a.example", name) for name in names[:3]])
    assert await store.note_selectors([("a.example", "s0"), ("b.example", "s1")])
    assert await store.selectors_of("a.example") == ("s0", "s2", "s1")
    await store.note_selectors([("a.example", name) for name in names[3:]])
    kept = await store.selectors_of("a.example")
    assert len(kept) == KNOWN_SELECTORS
    assert kept[:2] == (names[-1], names[-2])
    assert set(names) - set(kept) == {"s1", "s2"}
    assert await store.selectors_of("b.example") == ("s1",)


@ensureDeferred
async def test_selectors_are_bounded(persistent_state: PersistentState) -> None:
    """With any number of domains the newest selectors are kept."""
    store = persistent_state.selectors
    await store.note_selectors([(f"d{number}.example", "s") for number in range(KNOWN_DOMAINS + 1)])
    assert await store.selectors_of("d0.example") == ()
    assert await store.selectors_of("d1.example") == ("s",)
    assert await store.selectors_of(f"d{KNOWN_DOMAINS}.example") == ("s",)
