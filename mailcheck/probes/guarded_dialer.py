"""The guarded dialer, which makes all connections to hosts chosen by users or mails.

A host name that others control may lead anywhere: to the metadata service of a cloud, to a database
behind the firewall, or back to this service. The **address** is therefore checked, never the name,
and exactly that address is dialled. The name is not looked up again (DNS rebinding).
Every hop of a redirect is dialled, and so checked, anew.
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
from mailcheck.operations.concurrency import stop_timer
from mailcheck.operations.dns_evaluation import QuestionBudget, evaluate_with_dns
from mailcheck.ports.resolver import Resolver


class ProbeReactor(IReactorTime, IReactorTCP):
    """Time and TCP. Every reactor of Twisted provides them."""


def quiet_factory(make: Callable[[], Protocol]) -> Factory[Protocol]:
    """Return a factory of the protocols that ``make`` returns. It writes no log messages."""
    factory = Factory.forProtocol(make)
    factory.noisy = False
    return factory


class DialFailed(Exception):
    """No connection was made."""


class HostNotFound(DialFailed):
    """The host name has no address in DNS."""


class HostUndetermined(DialFailed):
    """The addresses of the host could not be determined."""


class AddressRefused(DialFailed):
    """No address of the host may be connected to. The message has the reason in a few words."""


class NotConnected(DialFailed):
    """No address accepted the connection in time."""


class ConnectionsRefused(NotConnected):
    """All addresses refused the connection: the host is up, but no service listens."""


class FetchProblem(Enum):
    """Reasons for a missing response. A value follows the words "cannot be fetched:"."""

    NO_HOST = "its host has no public address"
    """The host has no address, or none that may be connected to."""
    NO_CONNECTION = "its host refuses connections"
    """The host refuses connections, or TLS."""
    BAD_CERTIFICATE = "the certificate of its host is not valid"
    BAD_REDIRECT = "its URL cannot be used"
    """The target is not a web address, leads from https to http, or is one redirect too many."""
    TOO_LARGE = "it is too large"
    NO_HTTP = "its host did not answer with plain HTTP"
    """The response is not HTTP, is compressed although we asked for none, or is incomplete."""
    SILENT = "it did not arrive in time"
    """There was no answer in time, from the host or DNS, or the failure is on our side."""


class FetchFailed(Exception):
    """A web resource could not be fetched."""

    def __init__(self, problem: FetchProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


_DISCARD = 9  # any port would do, since no packet is sent


def source_towards(address: IpAddress) -> IpAddress | None:
    """Return the source address for connections to an address, or `None` without a route.

    It is read from the kernel's routing table, without sending a packet.
    """
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as unsent:
            unsent.connect((str(address), _DISCARD))
            return ip_address(unsent.getsockname()[0])
    except OSError:
        return None


def is_own_address(address: IpAddress) -> bool:
    """Return whether an address belongs to this machine.

    A machine uses the same address, or the loopback, as source for its own addresses. Addresses
    that a router translates to this machine cannot be recognised.
    """
    source = source_towards(address)
    return source is not None and (source == address or source.is_loopback)


ATTEMPT_DELAY = 0.25
"""Seconds until the next address is tried concurrently (RFC 8305 5)."""


def connect_first(
    reactor: ProbeReactor,
    addresses: Sequence[IpAddress],
    port: int,
    factory: IProtocolFactory,
    seconds: float,
) -> Deferred[IProtocol]:
    """Connect to one of several addresses, given best first, and return the protocol.

    The next address is tried at once when one refuses, and after `ATTEMPT_DELAY` when one does not
    answer. The factory builds one protocol, for the first connection. Cancelling ends all attempts.

    :raises ConnectionsRefused: all addresses refused.
    :raises NotConnected: an address is unreachable, or ``seconds`` have passed.
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
        """Try the next address. Fail when no address and no attempt is left."""
        stop_timer(self._next_attempt)
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
        if attempt in self._attempts:  # it was not cancelled by `_stop`
            self._attempts.discard(attempt)
            if not failure.check(error.ConnectionRefusedError):
                self._have_all_refused = False
            self.try_next()

    def _stop(self) -> None:
        stop_timer(self._next_attempt)
        self._next_attempt = None
        attempts, self._attempts = self._attempts, set()
        for attempt in attempts:
            attempt.cancel()


MAX_ADDRESSES = 4
"""Maximum number of addresses tried per host. More would let a name scan a network."""

LOCALHOST = "localhost"
LOOPBACK: tuple[IpAddress, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
"""The addresses of localhost, regardless of DNS (RFC 6761 6.3)."""

AddressRule = Callable[[IpAddress], bool]

Choice = Callable[[Sequence[IpAddress]], Awaitable[Sequence[IpAddress]]]
"""Selects the addresses that may be dialled."""


async def any_address(addresses: Sequence[IpAddress]) -> Sequence[IpAddress]:
    """Allow all public addresses."""
    return addresses


class GuardedDialer:
    """Connects only to hosts on the public Internet.

    :param is_own_address: returns whether an address is of this machine; those are rejected too.
    :param allow_private: dial any address. For tests; a warning is logged.
    :param own_ports: listening ports of this daemon, which are never dialled on this machine.
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
                "Probes may connect to private addresses (allow_private). Use this for tests only:"
                " the sender of a domain name chooses the connected address"
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
        """Connect to a host name or address, and return the protocol of the factory.

        :param seconds: time limit for DNS and connecting together.
        :param may_use: filters the addresses that may be dialled; called once.
        :param allowed: networks that may be dialled although they are not public.
        :raises HostNotFound: the name has no address.
        :raises HostUndetermined: DNS does not answer.
        :raises AddressRefused: no address may be dialled. No packet was sent.
        :raises NotConnected: no address accepted the connection (`ConnectionsRefused`: all of
            them refused it).
        """
        ends_at = self._reactor.seconds() + seconds
        dialled = await self.choose(host, port, seconds=seconds, may_use=may_use, allowed=allowed)
        remaining = max(0.0, ends_at - self._reactor.seconds())
        return await connect_first(self._reactor, dialled, port, factory, remaining)

    async def choose(
        self,
        host: str,
        port: int,
        *,
        seconds: float,
        may_use: Choice = any_address,
        allowed: Sequence[IpNetwork] = (),
    ) -> Sequence[IpAddress]:
        """Return the addresses of a host that may be dialled, best first; see `dial`."""
        found = await self._find_addresses(host, self._reactor.seconds() + seconds)
        dialled = await may_use(self._check(found, port, allowed))
        if not dialled:
            raise AddressRefused("too many recent connections")
        return dialled

    async def _find_addresses(self, host: str, ends_at: float) -> tuple[IpAddress, ...]:
        # A zone index (fe80::1%eth0) selects an interface, which others must not choose.
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
        """Return the addresses to try, best first. The others are never contacted.

        :raises AddressRefused: no address may be dialled.
        """
        ordered = _interleave_families(addresses)
        if self._allow_private:
            return ordered[:MAX_ADDRESSES]
        inside = [address for address in ordered if any(address in network for network in allowed)]
        if inside:
            foreign = [
                address
                for address in inside[:MAX_ADDRESSES]
                if not self._is_own_port(address, port)
            ]
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
        answers.missing.clear()  # one family is enough to connect; do not wait for the slower one
    return found


def _interleave_families(addresses: tuple[IpAddress, ...]) -> list[IpAddress]:
    """Alternate the address families (RFC 8305 4), IPv4 first, in case IPv6 does not work."""
    fours = [address for address in addresses if address.version == 4]
    sixes = [address for address in addresses if address.version == 6]
    pairs = zip_longest(fours, sixes)
    return [address for address in chain.from_iterable(pairs) if address is not None]
