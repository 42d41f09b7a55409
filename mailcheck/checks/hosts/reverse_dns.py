"""Reverse DNS of a sending address and its forward confirmation (RFC 8601 3).

Google requires a PTR record whose name resolves to the address.
"""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.dns_answers import (
    Answers,
    Presence,
    ip_addresses,
    look_up,
    presence_of,
    ptr_names,
)
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding, undetermined
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
"""Parts of labels, separated by dots, hyphens and digits, that mark a home connection. They count
only together with a number ("dsl-7", but not "dynamic" alone), as in SpamAssassin's RDNS_DYNAMIC
and in common Postfix tables."""

OWN_LABELS = 2  # labels of the provider's domain at the end: "dsl.example" may be a shop

MIN_IPV6_DIGITS = 8  # minimum number of hexadecimal digits of the address in a row

_WORD = re.compile(r"[a-z]+")
_NUMBER = re.compile(r"[0-9]+")


def is_generic_name(name: str, address: IpAddress) -> bool:
    """Return whether the name seems generated from the address or names a home connection."""
    host = ".".join(name.lower().split(".")[:-OWN_LABELS])
    if _NUMBER.search(host) and not DYNAMIC_WORDS.isdisjoint(_WORD.findall(host)):
        return True
    if address.version == 4:
        return _holds_ipv4(host, str(address).split("."), int(address))
    return _holds_ipv6(host, address.exploded.replace(":", ""))


def _holds_ipv4(host: str, octets: list[str], number: int) -> bool:
    """Return whether a name has the octets in either order, padded, or in hexadecimal."""
    numbers = [part.lstrip("0") or "0" for part in _NUMBER.findall(host)]
    wanted = [octets, octets[::-1]]
    if any(numbers[i : i + 4] in wanted for i in range(len(numbers) - 3)):
        return True
    padded = ["".join(octet.zfill(3) for octet in order) for order in wanted]
    little = int.from_bytes(number.to_bytes(4, "little"), "big")
    return any(text in host for text in (*padded, f"{number:08x}", f"{little:08x}"))


def _holds_ipv6(host: str, digits: str) -> bool:
    """Return whether a name has eight digits of the address in a row, in either order."""
    plain = host.replace("-", "").replace(".", "")
    return any(
        order[i : i + MIN_IPV6_DIGITS] in plain
        for order in (digits, digits[::-1])
        for i in range(len(digits) - MIN_IPV6_DIGITS + 1)
        if order[i : i + MIN_IPV6_DIGITS].strip("0")
    )


MAX_NAMES = 10  # maximum number of names that are confirmed, RFC 7208 4.6.4


class ReverseDnsVerdict(Struct, frozen=True):
    """The names of an address; ``validated_names`` resolve to it.

    ``presence`` is about the PTR records. ``is_confirmed`` is `None` (undetermined) if no name
    resolves to the address and one could not be looked up. ``is_generic`` is true if every
    validated name was generated from the address.
    """

    address: IpAddress
    presence: Presence
    ptr_names: tuple[str, ...]
    validated_names: tuple[str, ...]
    is_confirmed: bool | None
    is_generic: bool
    findings: tuple[Finding, ...]

    @property
    def host_name(self) -> str | None:
        """The name to show, preferably a validated one."""
        return next(iter((*self.validated_names, *self.ptr_names)), None)


def reverse_name(address: IpAddress) -> str:
    """Return the name of the PTR records of an address (RFC 1035 3.5, 3596 2.5)."""
    return address.reverse_pointer


def evaluate_reverse_dns(
    address: IpAddress, answers: Answers, *, host_name: str = ""
) -> ReverseDnsVerdict:
    """Evaluate the reverse DNS of an address.

    :param host_name: another name of the host (its MX name) to propose.
    """
    answer = look_up(answers, reverse_name(address), "PTR")
    names = ptr_names(answer)
    rdtype = "A" if address.version == 4 else "AAAA"
    forward = {name: look_up(answers, name, rdtype) for name in names[:MAX_NAMES]}
    validated = tuple(name for name, found in forward.items() if address in ip_addresses(found))
    silent = [name for name, found in forward.items() if not found.status.is_determined]
    is_generic = bool(validated) and all(is_generic_name(name, address) for name in validated)
    is_confirmed = None if silent and not validated else bool(validated)
    presence = presence_of(answer)
    verdict = ReverseDnsVerdict(
        address, presence, names, validated, is_confirmed, is_generic=is_generic, findings=()
    )
    return replace(verdict, findings=tuple(_find(verdict, host_name, silent)))


def _find(verdict: ReverseDnsVerdict, host_name: str, silent: list[str]) -> Iterator[Finding]:
    address = verdict.address
    if verdict.presence is Presence.UNDETERMINED:
        yield undetermined("rdns.undetermined", [reverse_name(address)])
    elif verdict.presence is Presence.ABSENT:
        yield make_finding("rdns.absent", proposed=_pointer(address, host_name), address=address)
    elif verdict.is_confirmed is None:
        yield undetermined("rdns.undetermined", silent)
    elif not verdict.is_confirmed:
        names = verdict.ptr_names
        yield make_finding(
            "rdns.unconfirmed",
            proposed=None if host_name in names else _pointer(address, host_name),
            address=address,
            name=names[0],
            wanted=host_name or "the name of your mail server",
        )
    elif verdict.is_generic:
        yield make_finding(
            "rdns.generic",
            proposed=None if is_generic_name(host_name, address) else _pointer(address, host_name),
            name=verdict.validated_names[0],
            address=address,
        )


def _pointer(address: IpAddress, host_name: str) -> RecordToPublish | None:
    if not host_name:
        return None
    return RecordToPublish(reverse_name(address), "PTR", f"{host_name}.")
