"""What a DNS question was answered with. "Could not find out" is never folded into "no".

A check never asks: it reads the answers it has and names the questions it
still needs (`Answers`), the operation asks them all at once and runs it again.

Questions and answers are named tuples: a check makes and looks up hundreds,
several times each, and as dataclasses they took a tenth of all its time.

Record data is read here too, from dnspython's objects to plain values, and what an answer
says of a thing's presence.
"""

from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from typing import NamedTuple

from dns.name import Name
from dns.rdata import Rdata
from dns.rdtypes.ANY.MX import MX
from dns.rdtypes.ANY.PTR import PTR
from dns.rdtypes.ANY.TXT import TXT
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA
from msgspec import Struct

from mailcheck.core.network_addresses import IpAddress


class DnsStatus(Enum):
    """How a question ended.

    NODATA is NOERROR without a record of the type (RFC 2308 2.2). NXDOMAIN is
    also the answer to a name that DNS can't carry (RFC 1035 2.3.4: an empty
    label or one over 63 octets, over 253 characters in all; anything but
    ASCII): it can't exist, and is not asked for. SERVFAIL is also an answer
    that makes no sense (garbage, a loop of CNAMEs), TIMEOUT also a resolver
    that can't be reached. EXCESSIVE is more than is read: of records in an answer, or of
    answers for a request.
    """

    FOUND = "found"
    NODATA = "nodata"
    NXDOMAIN = "nxdomain"
    SERVFAIL = "servfail"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    EXCESSIVE = "excessive"

    @property
    def is_determined(self) -> bool:
        """Tell whether the answer is a fact about the name; the only place that decides it."""
        return self in (DnsStatus.FOUND, DnsStatus.NODATA, DnsStatus.NXDOMAIN)


class DnsQuestion(NamedTuple):
    """One question: ``name`` in lower-case A-labels, no trailing dot; ``rdtype`` like ``TXT``.

    A backslash escapes as in zone files (RFC 1035 5.1), as in names that
    records hold; the empty name is the root.
    """

    name: str
    rdtype: str


class DnsAnswer(NamedTuple):
    """The answer to one question.

    ``records`` are of the asked type only; ``canonical_name`` is where CNAMEs
    led (the asked name without any); ``ttl`` is in seconds, for negative
    answers by RFC 2308 5 (0: not to be remembered); ``is_authenticated`` is
    the AD bit: DNSSEC validated by the resolver, if the way to it is trusted.
    ``octets`` is what was read for it.
    """

    question: DnsQuestion
    status: DnsStatus
    records: tuple[Rdata, ...] = ()
    canonical_name: str = ""
    ttl: int = 0
    is_authenticated: bool = False
    octets: int = 0


@dataclass(slots=True)
class Answers:
    """The answers known so far; remembers what was asked for and is missing.

    An evaluation asks for all it can use before it gives up on a missing one,
    so that one round asks as much as possible at once.
    """

    known: dict[DnsQuestion, DnsAnswer] = field(default_factory=dict)
    missing: dict[DnsQuestion, None] = field(default_factory=dict)
    given_up: set[DnsQuestion] = field(default_factory=set)
    """What was asked, and in the end not waited for."""

    def lookup(self, name: str, rdtype: str) -> DnsAnswer | None:
        """Give the answer, or note the question as missing and give nothing."""
        question = DnsQuestion(name.rstrip(".").lower(), rdtype)
        answer = self.known.get(question)
        if answer is None:
            self.missing[question] = None
        return answer


def host_name(name: Name) -> str:
    """Write a name as everywhere here: lower case, no trailing dot, the root as ``""``."""
    return name.to_text(omit_final_dot=True).lower().rstrip(".")


def txt_values(answer: DnsAnswer) -> tuple[str, ...]:
    """Give each TXT record as one text: its strings joined without a space (RFC 7208 3.3).

    What isn't UTF-8 is written as U+FFFD, which is no syntax in any record.
    """
    return tuple(
        b"".join(record.strings).decode("utf-8", "replace")
        for record in answer.records
        if isinstance(record, TXT)
    )


def ip_addresses(answer: DnsAnswer) -> tuple[IpAddress, ...]:
    """Give the addresses of A or AAAA records, sorted, so that every run shows the same."""
    found = (
        ip_address(record.address) for record in answer.records if isinstance(record, A | AAAA)
    )
    return tuple(sorted(found, key=int))


def mx_records(answer: DnsAnswer) -> tuple[tuple[int, str], ...]:
    """Give ``(preference, exchange)``, best first, then by name; a null MX has ``""``."""
    return tuple(
        sorted(
            (record.preference, host_name(record.exchange))
            for record in answer.records
            if isinstance(record, MX)
        )
    )


def ptr_names(answer: DnsAnswer) -> tuple[str, ...]:
    """Give the names of PTR records, sorted."""
    return tuple(
        sorted({host_name(record.target) for record in answer.records if isinstance(record, PTR)})
    )


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


class HostAddresses(Struct, frozen=True):
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
