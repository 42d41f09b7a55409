"""Connecting to the first of several addresses that answers (RFC 8305 5)."""

from collections import deque
from collections.abc import Sequence
from ipaddress import IPv6Address

from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.interfaces import IDelayedCall, IProtocol, IProtocolFactory
from twisted.python.failure import Failure

from mailcheck.core.network_addresses import IpAddress
from mailcheck.probes.failures import NotConnected, Refused
from mailcheck.probes.reactor import ProbeReactor

ATTEMPT_DELAY = 0.25  # seconds until the next address is tried beside the last, RFC 8305 5


def connect_first(
    reactor: ProbeReactor,
    addresses: Sequence[IpAddress],
    port: int,
    factory: IProtocolFactory,
    seconds: float,
) -> Deferred[IProtocol]:
    """Connect to one of these addresses, given best first; gives the connected protocol.

    An address that refuses is followed by the next one at once, one that does
    not answer after `ATTEMPT_DELAY`; the factory makes one protocol, for the
    connection that is made first. Cancelling gives all attempts up.

    :raises Refused: all have refused.
    :raises NotConnected: there is no way to some, or ``seconds`` have passed.
    """
    race = _Race(reactor, addresses, port, factory)
    race.try_next()

    def too_late(_: object, __: float) -> IProtocol:
        raise NotConnected

    return race.connected.addTimeout(seconds, reactor, too_late)


class _Race:
    def __init__(
        self,
        reactor: ProbeReactor,
        addresses: Sequence[IpAddress],
        port: int,
        factory: IProtocolFactory,
    ) -> None:
        self._reactor = reactor
        self._untried = deque(addresses)
        self._port = port
        self._factory = factory
        self._attempts: set[Deferred[IProtocol]] = set()
        self._next_attempt: IDelayedCall | None = None
        self._have_all_refused = True
        self.connected: Deferred[IProtocol] = Deferred(lambda _: self._stop())

    def try_next(self) -> None:
        """Try the next address; give up when there is none left and nobody answers any more."""
        self._forget_timer()
        if not self._untried:
            if not self._attempts:
                self.connected.errback(Refused() if self._have_all_refused else NotConnected())
            return
        address = self._untried.popleft()
        kind = TCP6ClientEndpoint if isinstance(address, IPv6Address) else TCP4ClientEndpoint
        attempt: Deferred[IProtocol] = kind(self._reactor, str(address), self._port).connect(
            self._factory
        )
        self._attempts.add(attempt)
        if self._untried:
            self._next_attempt = self._reactor.callLater(ATTEMPT_DELAY, self.try_next)
        attempt.addCallbacks(self._win, self._lose, callbackArgs=(attempt,), errbackArgs=(attempt,))

    def _win(self, protocol: IProtocol, attempt: Deferred[IProtocol]) -> None:
        self._attempts.discard(attempt)
        self._stop()
        self.connected.callback(protocol)

    def _lose(self, failure: Failure, attempt: Deferred[IProtocol]) -> None:
        if attempt in self._attempts:  # else we have stopped it ourselves
            self._attempts.discard(attempt)
            if not failure.check(error.ConnectionRefusedError):
                self._have_all_refused = False
            self.try_next()

    def _stop(self) -> None:
        self._forget_timer()
        attempts, self._attempts = self._attempts, set()
        for attempt in attempts:
            attempt.cancel()

    def _forget_timer(self) -> None:
        if self._next_attempt is not None and self._next_attempt.active():
            self._next_attempt.cancel()
        self._next_attempt = None
