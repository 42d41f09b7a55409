"""One question under way: drives a `Resolution` over datagrams and streams, against the clock."""

from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.core.identifiers import RandomBytes
from mailcheck.dns.alarms import Alarm, Alarms
from mailcheck.dns.exchange import Exchange, Pending
from mailcheck.dns.reactor import DnsReactor
from mailcheck.dns.resolution import Resolution, ResolverSettings, Step, Try
from mailcheck.dns.servers import ServerRota
from mailcheck.dns.stream import ask_by_stream


@dataclass(frozen=True, slots=True)
class Upstream:
    """What all lookups of a resolver share."""

    reactor: DnsReactor
    alarms: Alarms
    rota: ServerRota
    exchange: Exchange
    settings: ResolverSettings
    random_bytes: RandomBytes


class Lookup:
    """A `Resolution`, what it waits for, and the timer of that; ``answer`` fires at its end."""

    __slots__ = (
        "_deadline",
        "_discard",
        "_pending",
        "_resolution",
        "_timer",
        "_try",
        "_upstream",
        "answer",
        "is_over",
    )

    def __init__(
        self,
        upstream: Upstream,
        question: DnsQuestion,
        packed: bytes,
        discard: Callable[["Lookup"], None],
    ) -> None:
        """Take a question, also packed; ``discard`` is called when it is over."""
        now = upstream.reactor.seconds()
        settings = upstream.settings
        servers = upstream.rota.order(now)
        self._upstream = upstream
        self._resolution = Resolution(question, packed, servers, settings.try_timeouts)
        self._deadline = now + settings.deadline
        self._discard = discard
        self._pending: Pending | Deferred[bytes] | None = None
        self._timer: Alarm | None = None
        self.answer: Deferred[DnsAnswer] = Deferred(self._cancel)
        self.is_over = False

    @property
    def has_time(self) -> bool:
        """Tell whether it is not over, nor about to be."""
        return not self.is_over and self._time_left() > 0

    def wait(self) -> None:
        """Wait for the turn to begin, until the deadline."""
        self._arm(self._time_left(), self.give_up)

    def begin(self) -> None:
        """Make the first try."""
        self._do(self._resolution.start())

    def heard(self, message: bytes) -> None:
        """Take the reply to the question of this try."""
        self._upstream.rota.note_answer(self._try.server)
        self._do(self._resolution.heard(message))

    def unreachable(self) -> None:
        """Learn that this try can't have a reply."""
        now = self._upstream.reactor.seconds()
        self._upstream.rota.note_silence(self._try.server, now, is_unreachable=True)
        self._do(self._resolution.lost())

    def give_up(self) -> None:
        """End now, without an answer."""
        self._end(self._resolution.give_up())

    def _do(self, step: Step) -> None:
        if isinstance(step, DnsAnswer):
            self._end(step)
            return
        self._disarm()
        self._try = step
        self._arm(min(step.timeout, self._time_left()), self._time_out)
        if step.is_stream:
            self._ask_by_stream(step)
            return
        try:
            self._pending = self._upstream.exchange.ask(
                step.server, step.question, step.has_edns, self
            )
        except OSError:
            self._disarm()
            self._arm(0, self.unreachable)

    def _ask_by_stream(self, step: Try) -> None:
        upstream = self._upstream
        ident = upstream.random_bytes(2)
        reply = ask_by_stream(upstream.reactor, step.server, ident, step.question, step.has_edns)
        self._pending = reply
        reply.addCallbacks(self.heard, self._lose_stream, errbackArgs=(reply,))

    def _lose_stream(self, _: Failure, reply: Deferred[bytes]) -> None:
        if self._pending is reply:  # else it was cancelled
            self.unreachable()

    def _time_out(self) -> None:
        now = self._upstream.reactor.seconds()
        self._upstream.rota.note_silence(self._try.server, now, is_unreachable=False)
        if now < self._deadline:
            self._do(self._resolution.lost())
        else:
            self.give_up()

    def _time_left(self) -> float:
        return max(0.0, self._deadline - self._upstream.reactor.seconds())

    def _arm(self, delay: float, action: Callable[[], None]) -> None:
        self._timer = self._upstream.alarms.set(delay, action)

    def _disarm(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()

    def _cancel(self, _: object) -> None:
        self._stop()

    def _stop(self) -> None:
        self._disarm()
        self.is_over = True
        del self.answer  # else a cycle for the garbage collector, in each lookup
        self._discard(self)

    def _end(self, answer: DnsAnswer) -> None:
        waiting = self.answer
        self._stop()
        waiting.callback(answer)
