"""The connection to the Redis server that all daemons share: commands and published messages.

There are two connections, one for commands and one for subscriptions. Both are closed
at once when the server's process ends. A server that hangs keeps its connections open, so a PING is
sent on the subscribing connection every `BEAT` seconds.

While Redis is unavailable, commands fail at once. Messages may be lost meanwhile, so the listeners
for lost hints are called every second, and once more when Redis is available again.
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
from mailcheck.core.memory.instruments import RedisFigures
from mailcheck.core.memory.keys import Key, key_of, keys_below

PROJECT = "mailcheck"
"""Prefix of all keys, since other programs may use the same Redis."""

ANSWER_SECONDS = 1.0
"""Seconds to wait for an answer. A command takes less than a millisecond."""

BEAT = 0.5
"""Seconds between PINGs. A silent server counts as unavailable after twice this time, because a
wait must end within two seconds of its event."""

DOUBTFUL = 2
"""Beats without an answer after which Redis counts as unavailable and hints may be missing."""

DEAD = 4
"""Beats without an answer after which the connections are closed."""

LOOK_BEATS = 2
"""Beats between reads of the database while hints may be missing."""

PAUSE = 0.5
"""Seconds between attempts to connect."""

PROBE_BEATS = 4
"""Beats between test writes, which show without traffic whether Redis accepts writes. A full
server (OOM) or a replica (READONLY) answers all other commands."""

PROBE = "redis.call('SET', KEYS[1], '1', 'PX', 60000)"
"""A script with a write. Limits are counted by scripts and values are stored by SET, so both
are probed."""

CONNECT_SECONDS = 2.0
"""Timeout in seconds for the connection, and then for the login."""


_ERROR = re.compile(r"\b[A-Z]{3,}\b")
"""Pattern of the code in an error of Redis: ``WRONGPASS invalid username-password pair ...``."""


class RedisAway(Exception):
    """Redis does not answer or rejects the command. The message is the reason."""


class Redis(Service):
    """The connections to a Redis server, kept open while the service runs.

    :param endpoint: connects to ``address``, with TLS if the address requires it.
    :param note: called with a public description of a problem and with the error message of
        Redis. Both are empty when the problem is over.
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
        self._commands, self._subscriber = (
            _Link(kind, self, address, endpoint, clock)
            for kind in (_CommandConnection, _SubscriberConnection)
        )
        self._beats = LoopingCall(self._beat)
        self._beats.clock = clock
        self._silent_beats = 0
        self._away_beats = 0
        self._away_since: float | None = 0.0
        self._is_reported = False
        self._reason = "no connection"
        self._rejected: set[str] = set()
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
        """Whether Redis answers."""
        return self._away_since is None and bool(self.running)

    def startService(self) -> None:
        """Connect, and reconnect after each loss."""
        super().startService()
        self._away_since = self._clock.seconds()
        self._commands.connect()
        self._subscriber.connect()
        self._beats.start(BEAT, now=False)

    def stopService(self) -> Deferred[Any]:
        """Close the connections. Fires when they are closed."""
        super().stopService()
        if self._beats.running:
            self._beats.stop()
        return DeferredList([self._commands.stop(), self._subscriber.stop()])

    def run(self, command: str, key: Key, *arguments: str | int) -> Deferred[Any]:
        """Run a command about a key. Fires with its answer: text, a number, or a list of them.

        :raises RedisAway: Redis does not answer in time, or rejects the command.
        """
        return self._ask(command, lambda one: one.execute_command(command, key, *arguments))

    def run_script(self, script: str, keys: Sequence[Key], args: Sequence[str | int]) -> Any:
        """Run a Lua script. The result is as for `run`."""
        return self._ask("EVAL", lambda one: one.eval(script, list(keys), list(args)))

    def publish(self, channel: str, text: str) -> Deferred[Any]:
        """Publish a message to the other daemons. Fires when Redis has received it.

        Messages published while Redis is unavailable are lost.
        """
        if not self.is_there:
            return succeed(None)
        self._figures.messages.add("told")
        published = self.run("PUBLISH", self.key(channel), text)
        return published.addErrback(lambda failure: failure.trap(RedisAway))

    def listen(self, channel: str, heard: Callable[[str], None]) -> None:
        """Call ``heard`` for all messages published on a channel from now on."""
        self._heard[self.key(channel)] = heard

    def when_hints_are_lost(self, look: Callable[[], None]) -> None:
        """Call ``look`` each second while hints may be lost, and once when Redis is back."""
        self._lost.append(look)

    def _ask(self, name: str, ask: Callable[[Any], Deferred[Any]]) -> Deferred[Any]:
        connection = self._commands.connection
        if connection is None or not self.is_there:
            return fail(RedisAway(self._reason))
        # A separate Deferred, since the answer must be read after a timeout too.
        answer: Deferred[Any] = Deferred()
        began = self._clock.seconds()
        ask(connection).addBoth(_fire_with_answer(answer))
        answer.addTimeout(ANSWER_SECONDS, self._clock)
        return answer.addCallbacks(
            self._measure, self._explain, (began, name), errbackArgs=(connection, name)
        )

    def _measure(self, result: Any, began: float, name: str) -> Any:
        self._figures.answers.observe(self._clock.seconds() - began)
        if name in self._rejected:
            self._rejected.remove(name)
            if not self._rejected:
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
        self._rejected.add(name)
        code = _public_reason(reason)
        self._note(f"rejects {name}: {code}. This daemon counts rate limits on its own", reason)
        raise RedisAway(reason)

    def hear(self, channel: str, text: str) -> None:
        """Pass a received message to the listener of its channel."""
        heard = self._heard.get(channel)
        if heard is not None:
            self._figures.messages.add("heard")
            heard(text)

    def note_life(self) -> None:
        """Record an answer on the subscribing connection."""
        self._silent_beats = 0
        self.note_change()

    def note_lost(self, reason: str) -> None:
        """Record a failed connection attempt, or the end of a connection."""
        self._reason = reason
        self.note_change()

    def note_change(self) -> None:
        """Update whether Redis is available, and report a change once."""
        commands, subscriber = self._commands.connection, self._subscriber.connection
        has_both = commands is not None and subscriber is not None and self._subscriber.is_heard
        is_there = has_both and self._silent_beats < DOUBTFUL
        if is_there and self._away_since is not None:
            self._away_since = None
            self._note("", "")
            self.look()
        elif not is_there and self._away_since is None:
            self._away_since, self._away_beats = self._clock.seconds(), 0
            self._report_unavailable()

    def _report_unavailable(self) -> None:
        self._is_reported = True
        if self.running:
            self._rejected.clear()
            self._note(
                f"unavailable: {_public_reason(self._reason)}. This daemon counts rate limits on "
                "its own and checks every inbox with a wait each second",
                self._reason,
            )

    def _beat(self) -> None:
        if self._subscriber.connection is not None:
            self._silent_beats += 1
            if self._silent_beats >= DOUBTFUL:
                self._reason = f"no answer for {DOUBTFUL * BEAT:g} s"
            if self._silent_beats > DEAD:
                self._subscriber.connection.transport.abortConnection()
            else:
                self._subscriber.connection.execute_command("PING").addErrback(_forget)
            self.note_change()
        self._count += 1
        if self._away_since is None:
            if self._count % PROBE_BEATS == 0:
                self._probe()
            return
        self._away_beats += 1
        if not self._is_reported and self._away_beats * BEAT > CONNECT_SECONDS:
            self._report_unavailable()
        if self._away_beats % LOOK_BEATS == 0:
            self.look()

    def _probe(self) -> None:
        """Check whether Redis accepts writes; `_ask` records errors."""
        key = self.key("probe")
        for answer in (self.run("SET", key, "1", "PX", 60_000), self.run_script(PROBE, [key], [])):
            answer.addErrback(lambda failure: failure.trap(RedisAway))

    def look(self) -> None:
        """Call all listeners that read what a lost hint may have announced."""
        for look in self._lost:
            look()


class _Link(Factory):
    """Opens one of the connections and reopens it. ``connection`` is `None` while unusable."""

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
        """Connect now, and again after each loss."""
        self._trying = self._endpoint.connect(self).addCallbacks(self._log_in, self._try_again)

    def stop(self) -> Deferred[None]:
        """Close the connection. Fires when it is closed."""
        self._is_stopped = True
        self._trying.cancel()
        if self._open is None:
            return succeed(None)
        self._open.transport.abortConnection()
        return self._when_stopped

    def _log_in(self, connection: Any) -> None:
        """Wait for the login, with a timeout in case the server hangs."""
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
        """Create the protocol of a connection."""
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
        """Record the end of a connection. Commands under way have failed with it."""
        self._open = self.connection = None
        self.is_heard = False
        self._login.cancel()
        if self._is_stopped:
            self._when_stopped.callback(None)
        else:
            self._trying = succeed(None).addCallback(lambda _: self._try_again(reason))

    def stopTrying(self) -> None:
        """Ignore a failed login: the next attempt may find another password on the server."""

    def connectionError(self, reason: str) -> None:
        """Record why a login failed. The later end of the connection has no details."""
        self._login_problem = reason
        self.redis.note_lost(reason)


class _ReadAtOnce(LineReceiver):
    """Reads all data in the reactor iteration in which it arrived.

    txredisapi pauses after each bulk string and continues by a delayed call in the next iteration.
    That takes four iterations for each message, and the call may outlive the connection.
    """

    _rest = b""

    def dataReceived(self, data: bytes, unpause: bool = False) -> None:
        """Read lines and bulk strings alternately until no data is left."""
        self._rest = data
        while self._rest:
            data, self._rest = self._rest, b""
            super().dataReceived(data)

    def setLineMode(self, extra: bytes = b"") -> None:  # noqa: N802
        """Continue with lines, from the data after a bulk string."""
        self.line_mode = 1
        self._rest = extra


class _CommandConnection(_ReadAtOnce, BaseRedisProtocol):
    """The connection for commands."""

    def begin(self) -> None:
        """Start using the connection, which is ready for commands."""

    def connectionLost(self, why: Failure) -> None:
        """Fail all commands under way."""
        self.factory.note_end(self, why)
        super().connectionLost(why)


class _SubscriberConnection(_ReadAtOnce, SubscriberProtocol):
    """The connection for subscriptions."""

    def begin(self) -> None:
        """Subscribe to all channels with one pattern, which gets one answer."""
        subscribed = self.execute_command("PSUBSCRIBE", self.factory.redis.all_keys)
        subscribed.addErrback(self._end_rejected)

    def _end_rejected(self, failure: Failure) -> None:
        """Reconnect if Redis rejects the subscription (NOAUTH, NOPERM)."""
        if not failure.check(ConnectionLost):
            self.factory.connectionError(failure.getErrorMessage())
            self.transport.abortConnection()

    def replyReceived(self, reply: Any) -> None:
        """Process an answer or a message, and record that the server is alive.

        All answers after a successful subscription are lists.
        """
        super().replyReceived(reply)
        if isinstance(reply, list):
            self.factory.is_heard = True
            self.factory.redis.note_life()

    def messageReceived(self, pattern: str, channel: str, message: str) -> None:
        """Pass a message to its listener."""
        self.factory.redis.hear(channel, message)

    def connectionLost(self, why: Failure) -> None:
        """Record the end of the connection."""
        self.factory.note_end(self, why)
        super().connectionLost(why)


def _public_reason(reason: str) -> str:
    """Return the public part of a reason: the code of Redis' error, if it has one."""
    error = _ERROR.search(reason)
    return error[0] if error else "it does not answer"


def _fire_with_answer(answer: "Deferred[Any]") -> Callable[[Any], None]:
    """Return a callback that fires a Deferred with an answer unless it has timed out."""

    def fire(result: Any) -> None:
        if not answer.called:
            answer.callback(result)

    return fire


def _forget(_: Failure) -> None:
    """Ignore a failure that the end of the connection reports too."""
