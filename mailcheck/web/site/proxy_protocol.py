"""HTTP behind a proxy that says by the PROXY protocol, version 1 or 2, who its client is."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any, cast

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    IProtocol,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.protocols.haproxy import proxyEndpoint
from zope.interface import implementer

from mailcheck.core.network_addresses import parse_ip_address


@implementer(IProtocolFactory)
class BehindProxies:
    """Lets hosts of some networks speak for others, as they then must; all else stays as it is."""

    def __init__(
        self, factory: IProtocolFactory, networks: Sequence[IPv4Network | IPv6Network]
    ) -> None:
        self._factory = factory
        self._networks = networks
        self._for_proxies = _reading_headers(factory)

    def buildProtocol(self, addr: IAddress) -> IProtocol | None:
        """Make a protocol; that of a proxy waits for its header."""
        peer = parse_ip_address(getattr(addr, "host", ""))
        is_proxy = peer is not None and any(peer in network for network in self._networks)
        return (self._for_proxies if is_proxy else self._factory).buildProtocol(addr)

    def doStart(self) -> None:
        """Begin to listen."""
        self._factory.doStart()

    def doStop(self) -> None:
        """Listen no more."""
        self._factory.doStop()


@implementer(IStreamServerEndpoint)
class _Caught:
    """Stands for an endpoint, to find out what would listen there."""

    factory: Any = None

    def listen(self, factory: Any) -> Deferred[IListeningPort]:
        self.factory = factory
        return succeed(cast(IListeningPort, None))


def _reading_headers(factory: IProtocolFactory) -> IProtocolFactory:
    # Twisted wraps endpoints only; here one port has both kinds of clients.
    caught = _Caught()
    proxyEndpoint(caught).listen(factory)
    return cast(IProtocolFactory, caught.factory)
