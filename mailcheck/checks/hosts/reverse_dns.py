"""The name of a sending address, and whether that name stands for the address (RFC 8601 3).

Google asks every sender for a PTR record whose name leads back to the address.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dns_records import ip_addresses, ptr_names
from mailcheck.checks.findings import Finding, RecordToPublish, Severity, undetermined
from mailcheck.checks.generic_names import is_generic_name
from mailcheck.checks.lookups import Presence, look_up, presence_of
from mailcheck.core.network_addresses import IpAddress

MAX_NAMES = 10  # names that are confirmed, as many as RFC 7208 4.6.4 allows


@dataclass(frozen=True, slots=True)
class ReverseDnsVerdict:
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
        yield _unconfirmed(address, verdict.ptr_names[0])
    elif verdict.is_generic:
        yield _generic(address, verdict.validated_names[0], host_name)


def _pointer(address: IpAddress, host_name: str) -> RecordToPublish | None:
    if not host_name:
        return None
    return RecordToPublish(reverse_name(address), "PTR", f"{host_name}.")


def _absent(address: IpAddress, host_name: str) -> Finding:
    return Finding(
        "rdns.absent",
        Severity.ERROR,
        f"The address {address} has no name (no PTR record); Google and many others refuse mail"
        " from such addresses.",
        "Ask whoever gave you the address (host or network provider) to set its reverse name to"
        " the name of your mail server.",
        _pointer(address, host_name),
    )


def _unconfirmed(address: IpAddress, name: str) -> Finding:
    rdtype = "A" if address.version == 4 else "AAAA"
    return Finding(
        "rdns.unconfirmed",
        Severity.WARNING,
        f"The address {address} is called {name}, but that name does not lead back to the"
        " address, so receivers do not trust it.",
        f"Publish the address for {name}, or have the reverse name changed to one that leads here.",
        RecordToPublish(name, rdtype, str(address)),
    )


def _generic(address: IpAddress, name: str, host_name: str) -> Finding:
    return Finding(
        "rdns.generic",
        Severity.WARNING,
        f"The name {name} looks made from the address {address}, as home and dial-up connections"
        " have it; filters count that against mail.",
        "Have the reverse name set to a name of your own, such as that of your mail server.",
        None if is_generic_name(host_name, address) else _pointer(address, host_name),
    )
