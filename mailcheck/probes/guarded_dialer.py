"""The one way out: connections to hosts that a user or a mail has chosen.

A host name that somebody else controls may lead anywhere: to the metadata
service of a cloud, to a database behind the firewall, back to us. So the
**address** is checked, never the name, and the address that was checked is the
one that is dialled: nothing looks the name up again (DNS rebinding). Whoever
follows a redirect dials anew, and is checked anew.
"""

import socket
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import Enum
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import chain, zip_longest

from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.interfaces import (
    IDelayedCall,
    IProtocol,
    IProtocolFactory,
    IReactorTCP,
    IReactorTime,
)
from twisted.internet.protocol import Factory, Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.checks.dns_answers import Answers, HostAddresses, Presence, look_up_addresses
from mailcheck.core.network_addresses import (
    IpAddress,
    IpNetwork,
    parse_ip_address,
    why_not_public,
)
from mailcheck.operations.dns_evaluation import QuestionBudget, evaluate_with_dns
from mailcheck.ports.resolver import Resolver


class ProbeReactor(IReactorTime, IReactorTCP):
    """Time and streams; every reactor of Twisted has them."""


def quiet_factory(make: Callable[[], Protocol]) -> Factory[Protocol]:
    """Return a factory of the protocols that ``make`` returns; it logs nothing."""
    factory = Factory.forProtocol(make)
    factory.noisy = False
    return factory


class DialFailed(Exception):
    """No connection came about."""


class HostNotFound(DialFailed):
    """DNS says that the name has no address."""


class HostUndetermined(DialFailed):
    """The addresses of the name could not be found out."""


class AddressRefused(DialFailed):
    """None of the host's addresses may be connected to; says why, in a few words."""


class NotConnected(DialFailed):
    """None of the addresses took the connection in time."""


class ConnectionsRefused(NotConnected):
    """All addresses refused: the host is there, and nobody listens."""


class FetchProblem(Enum):
    """Why there is no response to show."""

    NO_HOST = "no-host"
    """The host has no address, or none that may be connected to."""
    NO_CONNECTION = "no-connection"
    """The host refuses connections, or encrypting them."""
    BAD_CERTIFICATE = "bad-certificate"
    BAD_REDIRECT = "bad-redirect"
    """To something that is no web address, from https to http, or once too often."""
    TOO_LARGE = "too-large"
    NO_HTTP = "no-http"
    """What comes is not HTTP, compressed against our wish, or breaks off."""
    SILENT = "silent"
    """No answer in time, not from DNS either; or the fault is ours."""


class FetchFailed(Exception):
    """A web resource could not be fetched."""

    def __init__(self, problem: FetchProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


_DISCARD = 9  # any port would do: nothing is sent


def source_towards(address: IpAddress) -> IpAddress | None:
    """Return the address that this machine talks from to another one, or `None` without a route.

    The kernel's routing table is asked; nothing is sent.
    """
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as unsent:
            unsent.connect((str(address), _DISCARD))
            return ip_address(unsent.getsockname()[0])
    except OSError:
        return None


def is_own_address(address: IpAddress) -> bool:
    """Return whether packets to an address would stay on this machine.

    To an address of its own a machine talks from that same address, or from the loopback. An
    address that a router translates into one of this machine cannot be known here.
    """
    source = source_towards(address)
    return source is not None and (source == address or source.is_loopback)


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
                self.connected.errback(
                    ConnectionsRefused() if self._have_all_refused else NotConnected()
                )
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


MAX_ADDRESSES = 4
"""Of one host that are tried: more would make one name a scan of a network."""

LOCALHOST = "localhost"
LOOPBACK: tuple[IpAddress, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
"""What that name means, whatever a name server says (RFC 6761 6.3)."""

AddressRule = Callable[[IpAddress], bool]

Choice = Callable[[Sequence[IpAddress]], Awaitable[Sequence[IpAddress]]]
"""Gives those of some addresses that may be dialled."""


async def any_address(addresses: Sequence[IpAddress]) -> Sequence[IpAddress]:
    """Admit every address that is public."""
    return addresses


class GuardedDialer:
    """Connects to hosts on the public Internet, and to nothing else.

    :param is_own_address: tells addresses of this machine, which are refused too.
    :param allow_private: dial any address; for tests, and said in the log.
    :param own_ports: where this daemon listens: refused on this machine whatever is allowed.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: ProbeReactor,
        resolver: Resolver,
        *,
        is_own_address: AddressRule,
        allow_private: bool,
        own_ports: Collection[int] = (),
    ) -> None:
        self._reactor = reactor
        self._resolver = resolver
        self._is_own_address = is_own_address
        self._allow_private = allow_private
        self._own_ports = own_ports
        if allow_private:
            self._log.warn(
                "Probes may connect to private addresses (allow_private): for tests only,"
                " since whoever sends a domain name chooses what is connected to"
            )

    async def dial(
        self,
        host: str,
        port: int,
        factory: IProtocolFactory,
        *,
        seconds: float,
        may_use: Choice = any_address,
        allowed: Sequence[IpNetwork] = (),
    ) -> IProtocol:
        """Connect to a host by name or address; gives the protocol that the factory made.

        :param seconds: for finding the addresses and connecting together.
        :param may_use: chooses among the addresses that may be dialled; asked once.
        :param allowed: networks that may be dialled though they are not public.
        :raises HostNotFound: the name has no address.
        :raises HostUndetermined: DNS does not answer.
        :raises AddressRefused: no address of it may be dialled; nothing was sent to any.
        :raises NotConnected: no address took the connection (`ConnectionsRefused`: all refused it).
        """
        ends_at = self._reactor.seconds() + seconds
        found = await self._find_addresses(host, ends_at)
        dialled = await may_use(self._check(found, port, allowed))
        if not dialled:
            raise AddressRefused("connected to too often")
        remaining = max(0.0, ends_at - self._reactor.seconds())
        return await connect_first(self._reactor, dialled, port, factory, remaining)

    async def _find_addresses(self, host: str, ends_at: float) -> tuple[IpAddress, ...]:
        # A zone (fe80::1%eth0) chooses an interface: that is not for others to choose.
        literal = None if "%" in host else parse_ip_address(host)
        if literal is not None:
            return (literal,)
        name = host.lower().removesuffix(".")
        if name == LOCALHOST:
            return LOOPBACK
        found = await evaluate_with_dns(
            self._resolver,
            partial(_addresses_so_far, name),
            clock=self._reactor,
            budget=QuestionBudget(ends_at),
        )
        if not found.addresses:
            raise HostNotFound if found.presence is Presence.ABSENT else HostUndetermined
        return found.addresses

    def _check(
        self, addresses: tuple[IpAddress, ...], port: int, allowed: Sequence[IpNetwork]
    ) -> list[IpAddress]:
        """Give the addresses to try, best first; none of the others is sent a packet.

        :raises AddressRefused: none may be dialled.
        """
        ordered = _interleave_families(addresses)
        if self._allow_private:
            return ordered[:MAX_ADDRESSES]
        inside = [one for one in ordered if any(one in network for network in allowed)]
        if inside:
            foreign = [one for one in inside[:MAX_ADDRESSES] if not self._is_own_port(one, port)]
            if not foreign:
                raise AddressRefused("a port of this service")
            return foreign
        public = [address for address in ordered if why_not_public(address) is None]
        foreign = [a for a in public[:MAX_ADDRESSES] if not self._is_own_address(a)]
        if not foreign:
            reason = "this machine's own" if public else why_not_public(ordered[0])
            raise AddressRefused(reason)
        return foreign

    def _is_own_port(self, address: IpAddress, port: int) -> bool:
        return port in self._own_ports and self._is_own_address(address)


def _addresses_so_far(name: str, answers: Answers) -> HostAddresses:
    found = look_up_addresses(answers, name)
    if found.addresses:
        answers.missing.clear()  # enough to connect; the slower family is not waited for
    return found


def _interleave_families(addresses: tuple[IpAddress, ...]) -> list[IpAddress]:
    """Alternate the families (RFC 8305 4), IPv4 first: a broken IPv6 path costs nobody time."""
    fours = [address for address in addresses if address.version == 4]
    sixes = [address for address in addresses if address.version == 6]
    pairs = zip_longest(fours, sixes)
    return [address for address in chain.from_iterable(pairs) if address is not None]
