"""One Redis for all daemons: commands that are answered in time, and what others publish.

It is reached by two connections, one for commands and one that listens. A
server that was killed is noticed at once; one that hangs keeps its connections,
so the one that listens is asked for a sign of life at every beat.

While Redis is away commands fail at once, and whoever listens is told that
hints are lost: each second, and once more when it is back.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, fail, succeed
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IAddress, IReactorTime, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.task import LoopingCall, deferLater
from twisted.python.failure import Failure
from txredisapi import BaseRedisProtocol, LineReceiver, RedisError, SubscriberProtocol
from txredisapi import ConnectionError as ConnectionLost

from mailcheck.cluster.redis_address import RedisAddress
from mailcheck.core.instruments import SECONDS, Distribution, Tally
from mailcheck.core.keys import Key, key_of, keys_below


class RedisFigures:
    """``answers``: seconds from a command to its answer. ``messages``: told, and heard."""

    def __init__(self) -> None:
        self.answers = Distribution(SECONDS)
        self.messages = Tally()


PROJECT = "mailcheck"
"""Begins all keys: other programs may use the same Redis."""

ANSWER_SECONDS = 1.0
"""A command takes less than a millisecond; a server that needs longer than this hangs."""

BEAT = 0.5
"""Seconds between signs of life that are asked for; twice as often as hints may be missing, since
a wait is to end within two seconds of when it should."""

DOUBTFUL = 2
"""Beats without a sign of life after which Redis counts as away: hints may be missing."""

DEAD = 4
"""Beats without a sign of life after which its connections are given up."""

LOOK_BEATS = 2
"""Beats between looks for what hints would have told."""

PAUSE = 0.5
"""Seconds between tries to connect."""

PROBE_BEATS = 4
"""Beats between test writes, which show without traffic whether Redis accepts writes. A full
server (OOM) or a replica (READONLY) answers all other commands."""

PROBE = "redis.call('SET', KEYS[1], '1', 'PX', 60000)"
"""Limits are counted by scripts, values are kept by SET: a probe of both."""

CONNECT_SECONDS = 2.0
"""For a connection, and then for the answer to its password."""


_ERROR = re.compile(r"\b[A-Z]{3,}\b")
"""The name of an error, as Redis writes it: ``WRONGPASS invalid username-password pair ...``."""


class RedisAway(Exception):
    """Redis does not answer, or not to this; says why."""


class Redis(Service):
    """The connections to one Redis, kept as long as the service runs.

    :param endpoint: connects to ``address``, encrypted where that is said there.
    :param note: is told what is wrong, in words that anybody may read, and what Redis says of it;
        two empty texts when it is well again.
    """

    def __init__(
        self,
        address: RedisAddress,
        endpoint: IStreamClientEndpoint,
        clock: IReactorTime,
        note: Callable[[str, str], None],
        figures: RedisFigures,
    ) -> None:
        self._note = note
        self._figures = figures
        self._clock = clock
        self._database = str(address.database)
        self._commands, self._ears = (
            _Link(kind, self, address, endpoint, clock) for kind in (_Commands, _Ears)
        )
        self._beats = LoopingCall(self._beat)
        self._beats.clock = clock
        self._silent_beats = 0
        self._away_beats = 0
        self._away_since: float | None = 0.0
        self._is_said = False
        self._reason = "no connection"
        self._refused: set[str] = set()
        self._count = 0
        self._heard: dict[str, Callable[[str], None]] = {}
        self._lost: list[Callable[[], None]] = []

    def key(self, kind: str, *parts: str) -> Key:
        """Return the name of a key or channel that the daemons of this mailcheck share."""
        return key_of(PROJECT, self._database, kind, *parts)

    @property
    def all_keys(self) -> str:
        """Return the pattern of all keys and channels of this mailcheck."""
        return keys_below(PROJECT, self._database)

    @property
    def is_there(self) -> bool:
        """Tell whether Redis answers."""
        return self._away_since is None and bool(self.running)

    def startService(self) -> None:
        """Connect, and stay connected."""
        super().startService()
        self._away_since = self._clock.seconds()
        self._commands.connect()
        self._ears.connect()
        self._beats.start(BEAT, now=False)

    def stopService(self) -> Deferred[Any]:
        """Hang up; fires when that is done."""
        super().stopService()
        if self._beats.running:
            self._beats.stop()
        return DeferredList([self._commands.stop(), self._ears.stop()])

    def run(self, command: str, key: Key, *arguments: str | int) -> Deferred[Any]:
        """Run a command about a key; fires with its answer as text, numbers and lists of them.

        :raises RedisAway: Redis does not answer in time, or refuses the command.
        """
        return self._ask(command, lambda one: one.execute_command(command, key, *arguments))

    def run_script(self, script: str, keys: Sequence[Key], args: Sequence[str | int]) -> Any:
        """Run a Lua script; as `run`."""
        return self._ask("EVAL", lambda one: one.eval(script, list(keys), list(args)))

    def publish(self, channel: str, text: str) -> Deferred[Any]:
        """Tell all others that listen; fires when that is done.

        What is published while Redis is away is lost.
        """
        if not self.is_there:
            return succeed(None)
        self._figures.messages.add("told")
        published = self.run("PUBLISH", self.key(channel), text)
        return published.addErrback(lambda failure: failure.trap(RedisAway))

    def listen(self, channel: str, heard: Callable[[str], None]) -> None:
        """Call ``heard`` with all that is published on a channel from now on."""
        self._heard[self.key(channel)] = heard

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Call ``look`` each second while hints may be lost, and once when that is over."""
        self._lost.append(look)

    def _ask(self, name: str, ask: Callable[[Any], Deferred[Any]]) -> Deferred[Any]:
        connection = self._commands.connection
        if connection is None or not self.is_there:
            return fail(RedisAway(self._reason))
        # Of its own: an answer that nobody waits for any more must still be read.
        answer: Deferred[Any] = Deferred()
        began = self._clock.seconds()
        ask(connection).addBoth(_answer_to(answer))
        answer.addTimeout(ANSWER_SECONDS, self._clock)
        return answer.addCallbacks(
            self._measure, self._explain, (began, name), errbackArgs=(connection, name)
        )

    def _measure(self, result: Any, began: float, name: str) -> Any:
        self._figures.answers.observe(self._clock.seconds() - began)
        if name in self._refused:
            self._refused.remove(name)
            if not self._refused:
                self._note("", "")
        return result

    def _explain(self, failure: Failure, connection: Any, name: str) -> Any:
        if failure.check(DeferredTimeout):
            self._reason = f"no answer within {ANSWER_SECONDS:g} s"
            connection.transport.abortConnection()
            self.note_change()
            raise RedisAway(self._reason)
        failure.trap(RedisError)
        reason = failure.getErrorMessage()
        if failure.check(ConnectionLost):
            raise RedisAway(reason)
        self._refused.add(name)
        problem = f"refuses {name}: {_name(reason)}. Meanwhile this daemon counts limits alone"
        self._note(problem, reason)
        raise RedisAway(reason)

    def hear(self, channel: str, text: str) -> None:
        """Take what the server says on the listening connection."""
        heard = self._heard.get(channel)
        if heard is not None:
            self._figures.messages.add("heard")
            heard(text)

    def note_life(self) -> None:
        """Take a sign of life of the listening connection."""
        self._silent_beats = 0
        self.note_change()

    def note_lost(self, reason: str) -> None:
        """Learn that a connection could not be used or has ended."""
        self._reason = reason
        self.note_change()

    def note_change(self) -> None:
        """Judge anew whether Redis is there; say so, once, when that has changed."""
        commands, ears = self._commands.connection, self._ears.connection
        has_both = commands is not None and ears is not None and self._ears.is_heard
        is_there = has_both and self._silent_beats < DOUBTFUL
        if is_there and self._away_since is not None:
            self._away_since = None
            self._note("", "")
            self.look()
        elif not is_there and self._away_since is None:
            self._away_since, self._away_beats = self._clock.seconds(), 0
            self._say_lost()

    def _say_lost(self) -> None:
        self._is_said = True
        if self.running:
            self._refused.clear()
            self._note(
                f"away: {_name(self._reason)}. Until it is back this daemon counts limits alone, "
                f"and looks every second into each inbox that is waited for",
                self._reason,
            )

    def _beat(self) -> None:
        if self._ears.connection is not None:
            self._silent_beats += 1
            if self._silent_beats >= DOUBTFUL:
                self._reason = f"no sign of life for {DOUBTFUL * BEAT:g} s"
            if self._silent_beats > DEAD:
                self._ears.connection.transport.abortConnection()
            else:
                self._ears.connection.execute_command("PING").addErrback(_forget)
            self.note_change()
        self._count += 1
        if self._away_since is None:
            if self._count % PROBE_BEATS == 0:
                self._probe()
            return
        self._away_beats += 1
        if not self._is_said and self._away_beats * BEAT > CONNECT_SECONDS:
            self._say_lost()
        if self._away_beats % LOOK_BEATS == 0:
            self.look()

    def _probe(self) -> None:
        """Find out whether Redis takes writes; `_ask` records what it says."""
        key = self.key("probe")
        for answer in (self.run("SET", key, "1", "PX", 60_000), self.run_script(PROBE, [key], [])):
            answer.addErrback(lambda failure: failure.trap(RedisAway))

    def look(self) -> None:
        """Look for all that a lost hint may have told of."""
        for look in self._lost:
            look()


class _Link(Factory):
    """Makes one of the connections, again and again; ``connection`` is the one that is usable."""

    noisy = False
    isLazy = False

    def __init__(
        self,
        kind: type[BaseRedisProtocol],
        redis: Redis,
        address: RedisAddress,
        endpoint: IStreamClientEndpoint,
        clock: IReactorTime,
    ) -> None:
        self._kind = kind
        self.redis = redis
        self._address = address
        self._endpoint = endpoint
        self._clock = clock
        self._trying: Deferred[Any] = succeed(None)
        self._login: Deferred[Any] = succeed(None)
        self._open: Any = None
        self._is_stopped = False
        self._when_stopped: Deferred[None] = Deferred()
        self._login_problem = ""
        self.connection: Any = None
        self.is_heard = False

    def connect(self) -> None:
        """Connect, now and after each loss."""
        self._trying = self._endpoint.connect(self).addCallbacks(self._log_in, self._try_again)

    def stop(self) -> Deferred[None]:
        """Hang up; fires when that is done."""
        self._is_stopped = True
        self._trying.cancel()
        if self._open is None:
            return succeed(None)
        self._open.transport.abortConnection()
        return self._when_stopped

    def _log_in(self, connection: Any) -> None:
        """Wait until a connection has logged in, but not for long: the server may hang."""
        self._open = connection
        self._login = connection.whenConnected().addTimeout(CONNECT_SECONDS, self._clock)
        self._login.addCallbacks(
            self._note_usable, lambda _: connection.transport.abortConnection()
        )

    def _try_again(self, reason: Failure) -> "Deferred[Any] | None":
        self.redis.note_lost(self._login_problem or reason.getErrorMessage().rstrip("."))
        if self._is_stopped:
            return None
        return deferLater(self._clock, PAUSE, self.connect).addErrback(_forget)

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Make the protocol of a connection."""
        connection = self._kind(
            password=self._address.password or None,
            username=self._address.username or None,
            dbid=self._address.database or None,
            convertNumbers=False,
        )
        connection.factory = self
        return connection

    def _note_usable(self, connection: Any) -> None:
        self.connection, self.is_heard, self._login_problem = connection, False, ""
        connection.begin()
        self.redis.note_change()

    def note_end(self, connection: Any, reason: Failure) -> None:
        """Learn that a connection has ended; what it carried was answered with its end."""
        self._open = self.connection = None
        self.is_heard = False
        self._login.cancel()
        if self._is_stopped:
            self._when_stopped.callback(None)
        else:
            self._trying = succeed(None).addCallback(lambda _: self._try_again(reason))

    def stopTrying(self) -> None:
        """Learn that a login failed: the next try may find another password there."""

    def connectionError(self, reason: str) -> None:
        """Record why a login failed; the later end of the connection says less about it."""
        self._login_problem = reason
        self.redis.note_lost(reason)


class _ReadAtOnce(LineReceiver):
    """Reads all that has come in the turn in which it came.

    txredisapi stops reading after each text, and goes on by a call in the next turn: four turns
    for each message, and a call that outlives the connection.
    """

    _rest = b""

    def dataReceived(self, data: bytes, unpause: bool = False) -> None:
        """Read lines and texts in turn, until nothing is left."""
        self._rest = data
        while self._rest:
            data, self._rest = self._rest, b""
            super().dataReceived(data)

    def setLineMode(self, extra: bytes = b"") -> None:  # noqa: N802
        """Go on with lines, by what stands behind a text."""
        self.line_mode = 1
        self._rest = extra


class _Commands(_ReadAtOnce, BaseRedisProtocol):
    """The connection for commands."""

    def begin(self) -> None:
        """Wait for commands."""

    def connectionLost(self, why: Failure) -> None:
        """End all commands under way."""
        self.factory.note_end(self, why)
        super().connectionLost(why)


class _Ears(_ReadAtOnce, SubscriberProtocol):
    """The connection that hears what is published."""

    def begin(self) -> None:
        """Ask for everything of ours: in one pattern, so that there is one answer to it."""
        subscribed = self.execute_command("PSUBSCRIBE", self.factory.redis.all_keys)
        subscribed.addErrback(self._end_refused)

    def _end_refused(self, failure: Failure) -> None:
        """Reconnect if Redis refuses the subscription (NOAUTH, NOPERM)."""
        if not failure.check(ConnectionLost):
            self.factory.connectionError(failure.getErrorMessage())
            self.transport.abortConnection()

    def replyReceived(self, reply: Any) -> None:
        """Take an answer or a message: each is a sign of life.

        Once Redis lets it listen, all that it sends are lists.
        """
        super().replyReceived(reply)
        if isinstance(reply, list):
            self.factory.is_heard = True
            self.factory.redis.note_life()

    def messageReceived(self, pattern: str, channel: str, message: str) -> None:
        """Hand a message on."""
        self.factory.redis.hear(channel, message)

    def connectionLost(self, why: Failure) -> None:
        """End the waiting for signs of life."""
        self.factory.note_end(self, why)
        super().connectionLost(why)


def _name(reason: str) -> str:
    """Return the public part of a reason: the name of Redis' error, if it has one."""
    error = _ERROR.search(reason)
    return error[0] if error else "it does not answer"


def _answer_to(answer: "Deferred[Any]") -> Callable[[Any], None]:
    """Give what hands an answer on while somebody waits for it."""

    def hand_on(result: Any) -> None:
        if not answer.called:
            answer.callback(result)

    return hand_on


def _forget(_: Failure) -> None:
    """Take a failure that the end of the connection has told already."""
