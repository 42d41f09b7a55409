"""What every `Memory` and every `SelectorStore` promises."""

from typing import Any

from pytest_twisted import ensureDeferred

from mailcheck.cluster.shared import SharedMemory
from mailcheck.core.keys import key_of
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS
from tests.contracts.conftest import Lasting
from tests.servers.redis import RedisServer, connected_twice, until

WORK = key_of("work")
LONG = 60_000  # milliseconds


@ensureDeferred
async def test_texts_are_kept(lasting: Lasting) -> None:
    """A text is there, as it was, under its name alone, until another takes its place."""
    memory = lasting.memory
    assert await memory.recall(key_of("a")) is None
    text = 'Grüße,\n\t"\\" \x7f  {}' * 9_000
    await memory.keep(key_of("a"), text, LONG)
    await memory.keep(key_of("b b:b*"), "", LONG)
    assert await memory.recall(key_of("a")) == text
    assert await memory.recall(key_of("b b:b*")) == ""
    assert await memory.recall(key_of("A")) is None
    await memory.keep(key_of("a"), "2", LONG)
    assert await memory.recall(key_of("a")) == "2"


@ensureDeferred
async def test_texts_are_kept_for_a_while(lasting: Lasting) -> None:
    """When its time is over a text is gone; a new one of the name has its own time."""
    memory = lasting.memory
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
async def test_claims_of_one_daemon(lasting: Lasting) -> None:
    """Work that nobody else does can be taken on, and again, and given up more than once."""
    memory = lasting.memory
    assert [await memory.claim(WORK, LONG) for _ in range(2)] == [True, True]
    for _ in range(2):
        await memory.give_up(WORK)
    assert await memory.claim(WORK, LONG)


@ensureDeferred
async def test_claims_of_several_daemons(redis_server: RedisServer) -> None:
    """One has the work until it gives it up or its time is over; only its own can be given up."""
    from twisted.internet import reactor

    clock: Any = reactor
    async with connected_twice(redis_server) as (here, there):
        one, other = (SharedMemory(redis, clock, "1") for redis in (here, there))
        assert [await one.claim(WORK, LONG), await other.claim(WORK, LONG)] == [
            True,
            False,
        ]
        assert await other.claim(key_of("other work"), LONG)
        await other.give_up(WORK)
        assert not await other.claim(WORK, LONG)
        await one.give_up(WORK)
        assert [await other.claim(WORK, 20), await one.claim(WORK, LONG)] == [
            True,
            False,
        ]
        while not await one.claim(WORK, LONG):
            await until(lambda: True)
        await one.keep(key_of("a"), "1", LONG)
        assert await other.recall(key_of("a")) == "1"
        # One of another version means something else by it.
        assert await SharedMemory(there, clock, "2").recall(key_of("a")) is None


@ensureDeferred
async def test_selectors(lasting: Lasting) -> None:
    """The newest come first, one that is noted again too, and only so many are kept."""
    store = lasting.selectors
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
async def test_selectors_are_bounded(lasting: Lasting) -> None:
    """However many domains mails name, the newest are kept."""
    store = lasting.selectors
    await store.note_selectors([(f"d{number}.example", "s") for number in range(KNOWN_DOMAINS + 1)])
    assert await store.selectors_of("d0.example") == ()
    assert await store.selectors_of("d1.example") == ("s",)
    assert await store.selectors_of(f"d{KNOWN_DOMAINS}.example") == ("s",)
