"""How many addresses a record lets send."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from math import log2

from msgspec import Struct

Network = IPv4Network | IPv6Network

ANYWHERE: tuple[Network, ...] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))

OPEN_LENGTH = 4
"""Prefix length of an address space that is as good as the whole: a sixteenth of it. Only an
eighth of IPv6 is in use (2000::/3)."""

WIDE_LENGTHS = (10, 16)
"""Prefix lengths, of IPv4 and IPv6, of more addresses than any sender has. The records of the
largest mail services come to a /13 and a /29."""


class Reach(Struct, frozen=True):
    """Numbers of addresses that pass.

    The one of IPv6 is rounded: kept values have no integers of more than 64 bits.
    """

    ipv4: int = 0
    ipv6: float = 0

    @property
    def is_open(self) -> bool:
        """Return whether practically everybody passes, over one of the two protocols."""
        return self.ipv4 >= 1 << (32 - OPEN_LENGTH) or self.ipv6 >= 1 << (128 - OPEN_LENGTH)

    @property
    def is_wide(self) -> bool:
        """Return whether more addresses pass than any sender has."""
        of_ipv4, of_ipv6 = WIDE_LENGTHS
        return self.ipv4 > 1 << (32 - of_ipv4) or self.ipv6 > 1 << (128 - of_ipv6)

    def __str__(self) -> str:
        """Say how many addresses they are, of the protocols that stand out."""
        every = "every {} address in the world"
        parts = []
        if self.ipv4 == 2**32 and self.ipv6 == 2**128:
            return "every address in the world"
        if self.ipv4 == 2**32:
            parts.append(every.format("IPv4") + f" ({self.ipv4:,})")
        elif self.ipv4 > 1 << (32 - WIDE_LENGTHS[0]):
            parts.append(f"{self.ipv4:,} IPv4 addresses")
        if self.ipv6 == 2**128:
            parts.append(every.format("IPv6"))
        elif self.ipv6 > 1 << (128 - WIDE_LENGTHS[1]):
            parts.append(f"about 2^{int(log2(self.ipv6))} IPv6 addresses")
        return " and ".join(parts)


NOBODY = Reach()


def count_addresses(networks: Iterable[Network]) -> Reach:
    """Count the public addresses in networks, each once."""
    distinct = {one for one in networks if one.is_global}
    ipv4 = collapse_addresses(one for one in distinct if isinstance(one, IPv4Network))
    ipv6 = collapse_addresses(one for one in distinct if isinstance(one, IPv6Network))
    every_ipv6 = float(sum(one.num_addresses for one in ipv6))
    return Reach(sum(one.num_addresses for one in ipv4), every_ipv6)
