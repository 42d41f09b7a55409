"""Detection of the machine's own addresses."""

import socket
from ipaddress import ip_address

from mailcheck.probes.guarded_dialer import is_own_address
from tests.table import rows


@rows("127.0.0.1", "127.1.2.3", "0.0.0.0", "::1")
def test_addresses_of_this_machine_are_known(text: str) -> None:
    """The kernel knows the addresses of this machine."""
    assert is_own_address(ip_address(text)) == (text != "::1" or _has_ipv6_loopback())


@rows("8.8.8.8", "2606:4700::1", "255.255.255.255")
def test_addresses_of_others_are_not_ours(text: str) -> None:
    """The address of another host is not ours, with or without a route to it."""
    assert not is_own_address(ip_address(text))


def _has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as attempt:
            attempt.bind(("::1", 0))
    except OSError:
        return False
    return True
