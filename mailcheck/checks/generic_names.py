"""Names that a provider made from the address: what spam filters call generic or dynamic.

The rules are those of SpamAssassin's RDNS_DYNAMIC and of postfix tables in
common use: the address in the name, or a word for a home connection with a
number beside it ("dsl-7", but not "dynamic" alone).
"""

import re

from mailcheck.core.network_addresses import IpAddress

DYNAMIC_WORDS = frozenset(
    {
        "adsl",
        "broadband",
        "cable",
        "cust",
        "customer",
        "customers",
        "dhcp",
        "dial",
        "dialin",
        "dialup",
        "dip",
        "dsl",
        "dyn",
        "dynamic",
        "dynip",
        "fiber",
        "ftth",
        "home",
        "pool",
        "pools",
        "ppp",
        "pppoe",
        "residential",
        "user",
        "vdsl",
        "xdsl",
    }
)
"""Labels or parts of labels, between dots, hyphens and digits."""

OWN_LABELS = 2  # at the end, the domain of the provider: "dsl.example" may be a shop

MIN_IPV6_DIGITS = 8  # hexadecimal digits of the address in a row that are no accident

_WORD = re.compile(r"[a-z]+")
_NUMBER = re.compile(r"[0-9]+")


def is_generic_name(name: str, address: IpAddress) -> bool:
    """Tell whether the name seems made from the address, or names a home connection."""
    host = ".".join(name.lower().split(".")[:-OWN_LABELS])
    if _NUMBER.search(host) and not DYNAMIC_WORDS.isdisjoint(_WORD.findall(host)):
        return True
    if address.version == 4:
        return _holds_ipv4(host, str(address).split("."), int(address))
    return _holds_ipv6(host, address.exploded.replace(":", ""))


def _holds_ipv4(host: str, octets: list[str], number: int) -> bool:
    """Find the four octets in either order, padded, or as eight hexadecimal digits."""
    numbers = [part.lstrip("0") or "0" for part in _NUMBER.findall(host)]
    wanted = [octets, octets[::-1]]
    if any(numbers[i : i + 4] in wanted for i in range(len(numbers) - 3)):
        return True
    padded = ["".join(octet.zfill(3) for octet in order) for order in wanted]
    little = int.from_bytes(number.to_bytes(4, "little"), "big")
    return any(text in host for text in (*padded, f"{number:08x}", f"{little:08x}"))


def _holds_ipv6(host: str, digits: str) -> bool:
    """Find eight digits in a row of the address, with or without separators, either order."""
    plain = host.replace("-", "").replace(".", "")
    return any(
        order[i : i + MIN_IPV6_DIGITS] in plain
        for order in (digits, digits[::-1])
        for i in range(len(digits) - MIN_IPV6_DIGITS + 1)
        if order[i : i + MIN_IPV6_DIGITS].strip("0")
    )
