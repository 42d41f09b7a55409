"""Which addresses are this machine's own."""

import socket
from ipaddress import IPv6Address, ip_address

from mailcheck.core.network_addresses import IpAddress

_DISCARD = 9  # any port would do: nothing is sent


def is_own_address(address: IpAddress) -> bool:
    """Tell whether packets to an address would stay on this machine.

    Asks the kernel's routing table, without sending anything: towards an
    address of its own a machine talks from that very address, or from the
    loopback. An address that a router in front of us translates into ours can't
    be known here.
    """
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as unsent:
            unsent.connect((str(address), _DISCARD))
            source = ip_address(unsent.getsockname()[0])
    except OSError:  # no way to it at all
        return False
    return source == address or source.is_loopback
