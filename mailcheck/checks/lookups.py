"""Asking for answers inside an evaluation, and what an answer says about a thing's presence."""

from dataclasses import dataclass
from enum import Enum

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.dns_records import ip_addresses
from mailcheck.core.network_addresses import IpAddress


class Presence(Enum):
    """The three things that can be known of a record, a host or a policy."""

    FOUND = "found"
    ABSENT = "absent"
    UNDETERMINED = "undetermined"


def look_up(answers: Answers, name: str, rdtype: str) -> DnsAnswer:
    """Give the answer; one that isn't known yet reads as undetermined.

    An evaluation that met one is run again with the answer, so what it
    concluded from this stand-in is never seen.
    """
    answer = answers.lookup(name, rdtype)
    if answer is None:
        return DnsAnswer(DnsQuestion(name, rdtype), DnsStatus.TIMEOUT, canonical_name=name)
    return answer


def presence_of(answer: DnsAnswer) -> Presence:
    """Say whether there are records of the asked type."""
    if not answer.status.is_determined:
        return Presence.UNDETERMINED
    return Presence.FOUND if answer.records else Presence.ABSENT


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """The addresses of a host, IPv4 before IPv6.

    ``is_complete`` is false when one of the two families could not be
    determined. ``canonical_name`` differs from ``name`` for an alias.
    """

    name: str
    addresses: tuple[IpAddress, ...]
    presence: Presence
    is_complete: bool
    canonical_name: str

    @property
    def is_alias(self) -> bool:
        """Tell whether a CNAME stands at the name."""
        return self.canonical_name != self.name


def look_up_addresses(answers: Answers, name: str) -> HostAddresses:
    """Ask for A and AAAA at once."""
    both = (look_up(answers, name, "A"), look_up(answers, name, "AAAA"))
    addresses = tuple(address for answer in both for address in ip_addresses(answer))
    is_complete = all(answer.status.is_determined for answer in both)
    if addresses:
        presence = Presence.FOUND
    else:
        presence = Presence.ABSENT if is_complete else Presence.UNDETERMINED
    canonical = next((a.canonical_name for a in both if a.canonical_name not in ("", name)), name)
    return HostAddresses(name, addresses, presence, is_complete, canonical)
