"""The beats of the other daemons: one that falls silent may take mail in, and tell nobody.

A daemon that is cut off from Redis knows it, and looks for itself. Those that are not cut
off would wait for its hints: so each says every half second that it can be heard.
One that was killed falls silent too, but takes no mail in: the database, which it has left,
knows the one from the other.
"""

import os
from collections import Counter
from collections.abc import Collection
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from mailcheck.cluster.redis import BEAT, LOOK_BEATS, Redis

SILENT = 1.2
"""Seconds without a beat after which hints of a daemon may be missing."""

GIVEN_UP = 3_600.0
"""Seconds after which a silent daemon is given up whatever the database says: where its whole
machine has gone the server may take its connection for a living one for long."""

ABSENCES = 2
"""Looks in which the database does not know a silent daemon until it counts as dead: after a
restart of the database each daemon is there again before the second one."""

CHANNEL = "beats"
OWN_NAME_BYTES = 8
GOODBYE = " ends"


class OtherDaemons(Service):
    """Knows the daemons that share a Redis by their beats, as long as the service runs.

    While one is silent that was heard before, all is looked for that it may not tell of:
    each second, and once when it is heard again.
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
        """Begin to beat."""
        super().startService()
        self._beats.start(BEAT, now=False)

    def stopService(self) -> Deferred[Any]:
        """Take leave of the others; fires when Redis has heard it, or is away."""
        super().stopService()
        self._beats.stop()
        return self._redis.publish(CHANNEL, self.own_name + GOODBYE)

    def note_present(self, names: Collection[str]) -> None:
        """Learn which daemons the database knows; one that is silent and has gone is forgotten."""
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
        # While Redis is away from here nobody is heard, and all is looked for anyway.
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
