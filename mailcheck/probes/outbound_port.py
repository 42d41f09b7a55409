"""Finding out whether connections to port 25 leave this network at all.

Many providers block it without a word, and then every mail host in the world
looks dead. So where a host can't be reached, a few hosts are tried that take
connections from everybody. One that answers shows that the way is open, as
any probe that connects does; when none does, it is blocked, and nobody's mail
host is to blame. A single dead host, or several that somebody keeps for this
purpose, can't make it look so.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import Factory, Protocol

from mailcheck.core.instants import MINUTE, instant_of
from mailcheck.core.recent import Recent
from mailcheck.operations.concurrency import SharedCalls
from mailcheck.ports.probes import OutboundPort
from mailcheck.probes.guarded_dialer import DialFailed, GuardedDialer, NotConnected

REFERENCE_HOSTS = (
    "gmail-smtp-in.l.google.com",
    "mx01.mail.icloud.com",
    "mta5.am0.yahoodns.net",
)
"""Mail hosts of three operators who are hardly ever all down; each gets an empty connection."""

SMTP_PORT = 25
FRESHNESS = 10 * MINUTE
SECONDS = 5.0  # to connect


class _Goodbye(Protocol):
    """Says nothing but QUIT."""

    def connectionMade(self) -> None:
        """Hang up as soon as the host is there."""
        assert self.transport is not None
        self.transport.write(b"QUIT\r\n")
        self.transport.loseConnection()


class _GoodbyeFactory(Factory):
    protocol = _Goodbye
    noisy = False


class OutboundPortCheck:
    """Knows for some minutes what it found out.

    :param hosts: whom to ask about port 25. Of any other port, and without
        hosts, it stays unknown: nobody is known to listen there.
    """

    def __init__(
        self, dialer: GuardedDialer, clock: IReactorTime, port: int, hosts: Sequence[str]
    ) -> None:
        self._dialer = dialer
        self._hosts = tuple(hosts) if port == SMTP_PORT else ()
        self._checks = SharedCalls(self._check)
        self._found: Recent[int, OutboundPort] = Recent(1, FRESHNESS)
        self._clock = clock
        self._port = port

    @property
    def known(self) -> OutboundPort:
        """Give what is known now."""
        return self._recall() or OutboundPort.UNKNOWN

    def find_out(self) -> Deferred[OutboundPort]:
        """Give what is known, else try the reference hosts."""
        known = self._recall()
        return self._checks.call(self._port) if known is None else succeed(known)

    def suspect(self) -> None:
        """Learn that a host was not reached: find out in the background, unless it is known."""
        self.find_out().addErrback(lambda failure: failure.trap(CancelledError))

    def note_connection(self) -> None:
        """Learn that some host was reached."""
        self._note(OutboundPort.OPEN)

    def stop(self) -> None:
        """Give up a check under way."""
        self._checks.stop()

    async def _check(self, port: int) -> OutboundPort:
        tries = [Deferred.fromCoroutine(self._try(host, port)) for host in self._hosts]
        ends: list[tuple[bool, Any]] = await DeferredList(tries, consumeErrors=True)
        for is_result, end in ends:
            if not is_result:
                end.raiseException()
        found = _judge([outcome for _, outcome in ends])
        self._note(found)
        return found

    def _recall(self) -> OutboundPort | None:
        return self._found.get(self._port, instant_of(self._clock.seconds()))

    def _note(self, found: OutboundPort) -> None:
        self._found.put(self._port, found, instant_of(self._clock.seconds()))

    async def _try(self, host: str, port: int) -> OutboundPort:
        try:
            await self._dialer.dial(host, port, _GoodbyeFactory(), seconds=SECONDS)
        except NotConnected:
            return OutboundPort.BLOCKED
        except DialFailed:
            return OutboundPort.UNKNOWN
        return OutboundPort.OPEN


def _judge(outcomes: Sequence[OutboundPort]) -> OutboundPort:
    if OutboundPort.OPEN in outcomes:
        return OutboundPort.OPEN
    is_blocked = bool(outcomes) and OutboundPort.UNKNOWN not in outcomes
    return OutboundPort.BLOCKED if is_blocked else OutboundPort.UNKNOWN
