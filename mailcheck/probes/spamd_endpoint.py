"""What connects to a spamd."""

from typing import Any

from twisted.internet.endpoints import (
    HostnameEndpoint,
    TCP4ClientEndpoint,
    TCP6ClientEndpoint,
    UNIXClientEndpoint,
)
from twisted.internet.interfaces import (
    IReactorTCP,
    IReactorTime,
    IReactorUNIX,
    IStreamClientEndpoint,
)

from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.probes.spamd_address import SpamdAddress

CONNECT_SECONDS = 5.0
"""A spamd is near; one that takes longer is not there."""


class SpamdReactor(IReactorTime, IReactorTCP, IReactorUNIX):
    """What a reactor needs for this: time, and streams by TCP or Unix sockets."""


def spamd_endpoint(spamd: SpamdAddress, reactor: SpamdReactor) -> IStreamClientEndpoint:
    """Give what connects there."""
    if spamd.path:
        return UNIXClientEndpoint(reactor, spamd.path, timeout=CONNECT_SECONDS)
    address = parse_ip_address(spamd.host)
    # A name is looked up by the system: containers have such names.
    kind: Any = HostnameEndpoint
    if address is not None:
        kind = TCP4ClientEndpoint if address.version == 4 else TCP6ClientEndpoint
    endpoint: IStreamClientEndpoint = kind(reactor, spamd.host, spamd.port, timeout=CONNECT_SECONDS)
    return endpoint
