"""The name of a sending address, and whether that name stands for the address (RFC 8601 3).

Google asks every sender for a PTR record whose name leads back to the address.
"""

import re
from collections.abc import Iterator, Sequence

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
"""Labels or parts of labels, between dots, hyphens and digits. A name with one of them and a number
beside it is a home connection's ("dsl-7", but not "dynamic" alone), as for SpamAssassin's
RDNS_DYNAMIC and for postfix tables in common use."""

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


MAX_NAMES = 10  # names that are confirmed, as many as RFC 7208 4.6.4 allows


class ReverseDnsVerdict(Struct, frozen=True):
    """The names of an address; ``validated_names`` are those that lead back to it.

    ``presence`` is about the PTR records. ``is_confirmed`` is undetermined
    (nothing) when no name leads back and one could not be looked up.
    ``is_generic`` tells that every validated name was made from the address.
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
        """Give the name to show: a validated one if there is any."""
        return next(iter((*self.validated_names, *self.ptr_names)), None)


def reverse_name(address: IpAddress) -> str:
    """Give the name under which the PTR records of an address stand (RFC 1035 3.5, 3596 2.5)."""
    return address.reverse_pointer


def evaluate_reverse_dns(
    address: IpAddress, answers: Answers, *, host_name: str = ""
) -> ReverseDnsVerdict:
    """Judge the reverse DNS of an address.

    :param host_name: what the host is called elsewhere (its MX name), to be proposed.
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
        address, presence, names, validated, is_confirmed, is_generic, findings=()
    )
    return replace(verdict, findings=tuple(_find(verdict, host_name, silent)))


def _find(verdict: ReverseDnsVerdict, host_name: str, silent: list[str]) -> Iterator[Finding]:
    address = verdict.address
    if verdict.presence is Presence.UNDETERMINED:
        yield undetermined("rdns.undetermined", [reverse_name(address)])
    elif verdict.presence is Presence.ABSENT:
        yield _absent(address, host_name)
    elif verdict.is_confirmed is None:
        yield undetermined("rdns.undetermined", silent)
    elif not verdict.is_confirmed:
        yield _unconfirmed(address, verdict.ptr_names, host_name)
    elif verdict.is_generic:
        yield _generic(address, verdict.validated_names[0], host_name)


def _pointer(address: IpAddress, host_name: str) -> RecordToPublish | None:
    if not host_name:
        return None
    return RecordToPublish(reverse_name(address), "PTR", f"{host_name}.")


def _absent(address: IpAddress, host_name: str) -> Finding:
    return make_finding(
        "rdns.absent",
        f"The address {address} has no name (no PTR record); Google and many others refuse mail"
        " from such addresses.",
        proposed=_pointer(address, host_name),
    )


def _unconfirmed(address: IpAddress, names: Sequence[str], host_name: str) -> Finding:
    name = names[0]
    wanted = host_name or "the name of your mail server"
    return make_finding(
        "rdns.unconfirmed",
        f"The address {address} is called {name}, but that name does not lead back to the"
        " address, so receivers do not trust it.",
        f"Ask whoever gave you the address (host or network provider) to set its reverse name to"
        f" {wanted}, which has to lead to {address}. Only if {name} is a name of your own, let that"
        " lead there instead.",
        None if host_name in names else _pointer(address, host_name),
    )


def _generic(address: IpAddress, name: str, host_name: str) -> Finding:
    return make_finding(
        "rdns.generic",
        f"The name {name} looks made from the address {address}, as home and dial-up connections"
        " have it; filters count that against mail.",
        proposed=None if is_generic_name(host_name, address) else _pointer(address, host_name),
    )
