"""The only way out: every connection whose target a user, a mail or a server can choose.

A host name that somebody else controls may lead anywhere: to the metadata
service of a cloud, to a database behind the firewall, back to us. So the
**address** is checked, never the name, and the address that was checked is the
one that is dialled: nothing looks the name up again (DNS rebinding). Whoever
follows a redirect dials anew, and is checked anew.
"""

from collections.abc import Callable
from functools import partial
from itertools import chain, zip_longest
from typing import NoReturn

from twisted.internet.interfaces import IProtocol, IProtocolFactory
from twisted.logger import Logger

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.lookups import HostAddresses, Presence, look_up_addresses
from mailcheck.core.network_addresses import IpAddress, parse_ip_address, why_not_public
from mailcheck.operations.ask import QuestionBudget, ask_until_known
from mailcheck.operations.dns_ports import Resolver
from mailcheck.probes.connecting import connect_first
from mailcheck.probes.failures import AddressRefused, HostNotFound, HostUndetermined
from mailcheck.probes.reactor import ProbeReactor

MAX_ADDRESSES = 4
"""Of one host that are tried: more would make one name a scan of a network."""

AddressRule = Callable[[IpAddress], bool]


def any_address(_: IpAddress) -> bool:
    """Admit every address that is public."""
    return True


class GuardedDialer:
    """Connects to hosts on the public Internet, and to nothing else.

    :param is_own_address: tells addresses of this machine, which are refused too.
    :param allow_private: dial any address; for tests, and said in the log.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: ProbeReactor,
        resolver: Resolver,
        *,
        is_own_address: AddressRule,
        allow_private: bool,
    ) -> None:
        self._reactor = reactor
        self._resolver = resolver
        self._is_own_address = is_own_address
        self._allow_private = allow_private
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
        may_use: AddressRule = any_address,
    ) -> IProtocol:
        """Connect to a host by name or address; gives the protocol that the factory made.

        :param seconds: for finding the addresses and connecting together.
        :param may_use: a further rule that an address must pass; asked once for each.
        :raises HostNotFound: the name has no address.
        :raises HostUndetermined: DNS does not answer.
        :raises AddressRefused: no address of it may be dialled; nothing was sent to any.
        :raises NotConnected: no address took the connection (`Refused`: all refused it).
        """
        ends_at = self._reactor.seconds() + seconds
        found = await self._find_addresses(host, ends_at)
        dialled = [address for address in self._check(found) if may_use(address)]
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
        found = await ask_until_known(
            self._resolver,
            partial(_addresses_so_far, name),
            clock=self._reactor,
            budget=QuestionBudget(ends_at),
        )
        if not found.addresses:
            _explain_absence(found.presence)
        return found.addresses

    def _check(self, addresses: tuple[IpAddress, ...]) -> list[IpAddress]:
        """Give the addresses to try, best first; none of the others is sent a packet.

        :raises AddressRefused: none may be dialled.
        """
        ordered = _interleave_families(addresses)
        if self._allow_private:
            return ordered[:MAX_ADDRESSES]
        public = [address for address in ordered if why_not_public(address) is None]
        foreign = [a for a in public[:MAX_ADDRESSES] if not self._is_own_address(a)]
        if not foreign:
            reason = "this machine's own" if public else why_not_public(ordered[0])
            raise AddressRefused(reason)
        return foreign


def _addresses_so_far(name: str, answers: Answers) -> HostAddresses:
    found = look_up_addresses(answers, name)
    if found.addresses:
        answers.missing.clear()  # enough to connect; the slower family is not waited for
    return found


def _explain_absence(presence: Presence) -> NoReturn:
    raise HostNotFound if presence is Presence.ABSENT else HostUndetermined


def _interleave_families(addresses: tuple[IpAddress, ...]) -> list[IpAddress]:
    """Alternate the families (RFC 8305 4), IPv4 first: a broken IPv6 path costs nobody time."""
    fours = [address for address in addresses if address.version == 4]
    sixes = [address for address in addresses if address.version == 6]
    pairs = zip_longest(fours, sixes)
    return [address for address in chain.from_iterable(pairs) if address is not None]
