"""Counters, notifications, locks and semaphores that all daemons share in one Redis.

While Redis is unavailable, each daemon counts requests on its own. It reads the database for
changes that other daemons would have announced.
"""

import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, cast

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from mailcheck.cluster.local import (
    CountersOrAlone,
    LocalMemory,
    LocalNotifications,
)
from mailcheck.cluster.redis import BEAT, LOOK_BEATS, Redis, RedisAway
from mailcheck.core.instants import SECOND
from mailcheck.core.memory.keys import Key
from mailcheck.core.version import installed_version
from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS, Hit, Subject
from mailcheck.ports.workers import Result

SILENT = 1.2
"""Seconds without a beat after which notifications of a daemon may be missing."""

GIVEN_UP = 3_600.0
"""Seconds after which a silent daemon is forgotten, even if the database still lists it. If its
whole machine is gone, the database server may keep its connection for a long time."""

ABSENCES = 2
"""Number of checks without the daemon in the database after which a silent daemon counts as dead.
After a restart of the database, each daemon has reconnected before the second check."""

CHANNEL = "beats"
OWN_NAME_BYTES = 8
GOODBYE = " ends"


class OtherDaemons(Service):
    """Tracks the other daemons by their beats while the service runs.

    While a known daemon is silent, the listeners for lost hints are called each second, and once
    when its beats are back.
    """

    def __init__(self, redis: Redis, clock: IReactorTime) -> None:
        self._redis = redis
        self._clock = clock
        self.own_name = os.urandom(OWN_NAME_BYTES).hex()
        self._heard_at: dict[str, float] = {}
        self._silent: set[str] = set()
        self._absences: Counter[str] = Counter()
        self._silent_beats = 0
        self._beats = LoopingCall(self._beat)
        self._beats.clock = clock
        redis.listen(CHANNEL, self._hear)

    def startService(self) -> None:
        """Start sending beats."""
        super().startService()
        self._beats.start(BEAT, now=False)

    def stopService(self) -> Deferred[Any]:
        """Announce the end of this daemon. Fires when Redis has the message or is unavailable."""
        super().stopService()
        self._beats.stop()
        return self._redis.publish(CHANNEL, self.own_name + GOODBYE)

    @property
    def known_names(self) -> Collection[str]:
        """Names of the daemons that are not known to have ended."""
        return self._heard_at.keys()

    def note_present(self, names: Collection[str]) -> None:
        """Record which daemons the database knows. Forget silent daemons that are gone."""
        absent = {name for name in self._silent if name not in names}
        self._absences = Counter({name: self._absences[name] + 1 for name in absent})
        for name in absent:
            if self._absences[name] >= ABSENCES:
                self._forget(name)

    def _forget(self, name: str) -> None:
        self._heard_at.pop(name, None)
        self._silent.discard(name)

    def _beat(self) -> None:
        self._redis.publish(CHANNEL, self.own_name)
        now = self._clock.seconds()
        # While Redis is unavailable, no beat arrives, and Redis calls the listeners itself.
        if not self._redis.is_there:
            self._heard_at = dict.fromkeys(self._heard_at, now)
            return
        self._forget_before(now - GIVEN_UP)
        self._silent = {name for name, at in self._heard_at.items() if now - at > SILENT}
        self._silent_beats = self._silent_beats + 1 if self._silent else 0
        if self._silent_beats % LOOK_BEATS == 1:
            self._redis.look()

    def _forget_before(self, moment: float) -> None:
        self._heard_at = {name: at for name, at in self._heard_at.items() if at > moment}

    def _hear(self, text: str) -> None:
        name = text.removesuffix(GOODBYE)
        if name == self.own_name:
            return
        if name != text:
            self._forget(name)
            return
        self._heard_at[name] = self._clock.seconds()
        if name in self._silent:
            self._silent.discard(name)
            self._redis.look()


PACE = 0.015
"""Minimum seconds between messages on a channel. Each message costs every daemon a tenth of a
millisecond, so under load a message has all subjects since the last one. After a pause, it is sent
at once."""

COUNTERS_KEPT = 60 * SECOND
"""Milliseconds for which a counter is stored after its window, since clocks differ."""

HELD = 90
"""Seconds after which a permit expires that its daemon does not renew."""

RENEWAL = 30.0
"""Seconds between renewals of the permits that a daemon holds."""

# The arguments of each hit: the number of windows, the amount, and a limit and lifetime a window.
COUNT = """
local results, argument, key = {}, 1, 1
while argument <= #ARGV do
    local windows, amount = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
    local counts, fits = {}, amount > 0
    for i = 1, windows do
        counts[i] = tonumber(redis.call('GET', KEYS[key + i - 1]) or 0) + amount
        fits = fits and counts[i] <= tonumber(ARGV[argument + 2 * i])
    end
    for i = 1, windows do
        if fits then
            redis.call('INCRBY', KEYS[key + i - 1], amount)
            if counts[i] == amount then
                redis.call('PEXPIRE', KEYS[key + i - 1], ARGV[argument + 2 * i + 1])
            end
        end
        results[#results + 1] = counts[i]
    end
    argument, key = argument + 2 + 2 * windows, key + windows
end
return results
"""

# Scores are the server's seconds at which a permit expires, so clocks of daemons do not matter.
ACQUIRE_PERMIT = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""

RENEW_PERMITS = """
local free_at = tonumber(redis.call('TIME')[1]) + ARGV[1]
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], free_at, ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 1
"""


ACQUIRE_LOCK = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

RELEASE_LOCK = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""

# Scores are increasing numbers, so entries of the same moment are ordered too. The first key lists
# the keys of the domains by their last update; the second is the last score.
NOTE_SELECTORS = """
local list, last, domains, selectors = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 3, #KEYS do
    local number, key = redis.call('INCR', last), KEYS[i]
    redis.call('ZADD', key, number, ARGV[i])
    redis.call('ZREMRANGEBYRANK', key, 0, -selectors - 1)
    redis.call('ZADD', list, number, key)
end
local excess = redis.call('ZCARD', list) - domains
if excess > 0 then
    for _, key in ipairs(redis.call('ZRANGE', list, 0, excess - 1)) do
        redis.call('DEL', key)
    end
    redis.call('ZREMRANGEBYRANK', list, 0, excess - 1)
end
return 1
"""


class SharedRateCounters(Struct, frozen=True, eq=False):
    """Implements the port `RateCounters` for all daemons. Each call is one script."""

    redis: Redis

    def hit(self, *hits: Hit) -> Deferred[list[list[int]]]:
        """Count requests if no window exceeds its limit. Fires with the counts after them.

        :raises RedisAway: Redis cannot count now.
        """
        keys: list[Key] = []
        arguments: list[int] = []
        for hit in hits:
            arguments += len(hit.windows), hit.amount
            for window, index, limit in hit.windows:
                keys.append(self.redis.key("count", window.name, str(index), hit.subject))
                arguments += limit, window.length + COUNTERS_KEPT
        counted = self.redis.run_script(COUNT, keys, arguments)
        split: Deferred[list[list[int]]] = counted.addCallback(_split_counts, hits)
        return split


def _split_counts(counts: Sequence[int], hits: Sequence[Hit]) -> list[list[int]]:
    rest = iter(counts)
    return [[int(next(rest)) for _ in hit.windows] for hit in hits]


class SharedMemory:
    """Implements the port `Memory` for all daemons, with a local copy for Redis failures.

    Texts that this daemon stores are stored in its process too. They are available there while
    Redis is unavailable.

    :param version: the version of the daemon. Other versions may use other formats.
    """

    def __init__(self, redis: Redis, clock: IReactorTime, version: str) -> None:
        self._redis = redis
        self._alone = LocalMemory(clock)
        self._version = version
        self._own_name = os.urandom(OWN_NAME_BYTES).hex()

    def recall(self, name: Key) -> Deferred[str | None]:
        """Return the text for a name, or `None`."""
        found = self._redis.run("GET", self._key("kept", name))
        return _unless_away(found, lambda: self._alone.recall(name))

    def keep(self, name: Key, text: str, milliseconds: int) -> Deferred[bool]:
        """Store a text for a time, in place of any earlier one. Fires with whether Redis has it."""
        self._alone.keep(name, text, milliseconds)
        kept = self._redis.run("SET", self._key("kept", name), text, "PX", milliseconds)
        return _unless_away(kept.addCallback(lambda _: True), lambda: succeed(False))

    def acquire(self, work: Key, milliseconds: int) -> Deferred[bool]:
        """Acquire a lock for a time. Fires with whether it succeeded."""
        arguments: list[str | int] = [self._own_name, milliseconds]
        acquired = self._redis.run_script(ACQUIRE_LOCK, [self._key("claim", work)], arguments)
        return _unless_away(acquired.addCallback(bool), lambda: succeed(True))

    def release(self, work: Key) -> Deferred[None]:
        """Release a lock early."""
        ended = self._redis.run_script(RELEASE_LOCK, [self._key("claim", work)], [self._own_name])
        return _unless_away(ended.addCallback(lambda _: None), lambda: succeed(None))

    def _key(self, kind: str, name: Key) -> Key:
        return self._redis.key(kind, self._version, name)


class SharedSelectors(Struct, frozen=True, eq=False):
    """Implements the port `SelectorStore` for all daemons. Empty while Redis is unavailable."""

    redis: Redis

    def note_selectors(self, pairs: Sequence[tuple[str, str]]) -> Deferred[bool]:
        """Store domains and selectors, oldest first. Fires with false if Redis is unavailable."""
        keys = [self.redis.key("domains"), self.redis.key("domains", "last")]
        arguments: list[str | int] = [KNOWN_DOMAINS, KNOWN_SELECTORS]
        for domain, selector in pairs:
            keys.append(self.redis.key("selectors", domain))
            arguments.append(selector)
        noted = self.redis.run_script(NOTE_SELECTORS, keys, arguments)
        return _unless_away(noted.addCallback(bool), lambda: succeed(False))

    def selectors_of(self, domain: str) -> Deferred[tuple[str, ...]]:
        """Return the selectors of a domain, the newest first."""
        found = self.redis.run("ZREVRANGE", self.redis.key("selectors", domain), 0, -1)
        return _unless_away(found.addCallback(tuple), lambda: succeed(()))


def _unless_away(
    answer: Deferred[Result], alone: Callable[[], Deferred[Result]]
) -> Deferred[Result]:
    def answer_locally(failure: Failure) -> Deferred[Result]:
        failure.trap(RedisAway)
        return alone()

    return answer.addErrback(answer_locally)


class SharedNotifications(Generic[Subject]):
    """Implements the port `Notifications` for all daemons. Subjects are text.

    Listeners in this daemon are called at once, without Redis. All subjects of one reactor
    iteration, such as a group commit, are sent to the other daemons in one message. Subjects
    published within `PACE` of it are sent in the next message.
    """

    def __init__(self, redis: Redis, channel: str, clock: IReactorTime) -> None:
        self._redis = redis
        self._channel = channel
        self._clock = clock
        self._next_turn = clock.seconds()
        self._here: LocalNotifications[Subject] = LocalNotifications()
        self._pending: dict[str, None] = {}
        self._own_name = os.urandom(OWN_NAME_BYTES).hex()
        redis.listen(channel, self._hear)

    def publish(self, subject: Subject) -> None:
        """Call the listeners of this daemon at once, and of other daemons within `PACE`."""
        self._here.publish(subject)
        if not self._pending:
            # Bounded, in case the clock was set back.
            wait = min(max(0.0, self._next_turn - self._clock.seconds()), PACE)
            self._clock.callLater(wait, self._send_pending)
        self._pending[cast(str, subject)] = None

    def listen(self, heard: Callable[[Subject], None]) -> None:
        """Call ``heard`` for every notification from now on."""
        self._here.listen(heard)

    def _send_pending(self) -> None:
        self._next_turn = self._clock.seconds() + PACE
        subjects, self._pending = self._pending, {}
        self._redis.publish(self._channel, "\n".join([self._own_name, *subjects]))

    def _hear(self, text: str) -> None:
        name, *subjects = text.split("\n")
        if name == self._own_name:
            return
        for subject in subjects:
            self._here.publish(cast(Subject, subject))


class SharedSemaphore:
    """Implements the port `OwnerSemaphore` for all daemons. Permits of dead daemons expire.

    Each daemon counts its own permits too and uses that count while Redis is unavailable.
    """

    def __init__(self, redis: Redis, name: str, per_owner: int, clock: IReactorTime) -> None:
        self._redis = redis
        self._name = name
        self._alone: FairSemaphore[str] = FairSemaphore(clock, per_owner=per_owner)
        self._held: defaultdict[str, set[str]] = defaultdict(set)

    @property
    def per_owner(self) -> int:
        """Permits of one owner. Daemons with different limits share the permits that are held."""
        return self._alone.per_owner

    @per_owner.setter
    def per_owner(self, per_owner: int) -> None:
        self._alone.per_owner = per_owner

    @asynccontextmanager
    async def held(self, owner: str) -> AsyncIterator[None]:
        """Hold a permit while the block runs.

        :raises NoPermit: the owner holds the maximum number of permits.
        """
        async with self._alone.held(owner):
            permit = os.urandom(OWN_NAME_BYTES).hex()
            if not await self._acquire(owner, permit):
                raise NoPermit(is_owner_limit=True)
            self._held[owner].add(permit)
            try:
                yield
            finally:
                self._release(owner, permit)

    async def renew(self) -> None:
        """Renew the held permits, also after Redis has lost its data."""
        for owner, permits in list(self._held.items()):
            try:
                arguments: list[str | int] = [HELD, *permits]
                await self._redis.run_script(RENEW_PERMITS, [self._key(owner)], arguments)
            except RedisAway:
                return

    async def _acquire(self, owner: str, permit: str) -> bool:
        try:
            arguments: list[str | int] = [self.per_owner, HELD, permit]
            return bool(await self._redis.run_script(ACQUIRE_PERMIT, [self._key(owner)], arguments))
        except RedisAway:
            return True

    def _release(self, owner: str, permit: str) -> None:
        self._held[owner].discard(permit)
        if not self._held[owner]:
            del self._held[owner]
        freed = self._redis.run("ZREM", self._key(owner), permit)
        freed.addErrback(lambda failure: failure.trap(RedisAway))  # the permit expires

    def _key(self, owner: str) -> Key:
        return self._redis.key("places", self._name, owner)


class RedisCluster:
    """The state that daemons share in one Redis."""

    def __init__(self, redis: Redis, clock: IReactorTime) -> None:
        self._redis = redis
        self._clock = clock
        self._semaphores: list[SharedSemaphore] = []
        self.counters = CountersOrAlone(SharedRateCounters(redis), RedisAway)
        self.memory = SharedMemory(redis, clock, installed_version())
        self.selectors = SharedSelectors(redis)
        self.others = OtherDaemons(redis, clock)

    @property
    def own_name(self) -> str:
        """The name by which other daemons know this one."""
        return self.others.own_name

    def note_present(self, names: Collection[str]) -> None:
        """Record the names of the daemons that the database knows."""
        self.others.note_present(names)

    def notifications(self, channel: str) -> SharedNotifications[Any]:
        """Return the notifications of one channel."""
        return SharedNotifications(self._redis, channel, self._clock)

    def semaphore(self, name: str, per_owner: int) -> SharedSemaphore:
        """Return a semaphore with ``per_owner`` permits for each owner."""
        made = SharedSemaphore(self._redis, name, per_owner, self._clock)
        self._semaphores.append(made)
        return made

    async def renew(self) -> None:
        """Renew the held permits. Must be called every `RENEWAL` seconds."""
        for semaphore in self._semaphores:
            await semaphore.renew()

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Call ``look`` each second while hints may be lost, and once when Redis is back."""
        self._redis.when_hints_are_lost(look)
