"""DNS questions and answers. A failed lookup is never treated as a missing record.

A check sends no queries. It reads the known answers and records the questions whose answers are
missing (`Answers`). The operation sends all missing questions at once and runs the check again.

Questions and answers are named tuples. A check creates and looks up hundreds of them several
times; as dataclasses they took a tenth of its time.

This module also converts record data from dnspython's objects to plain values.
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
    """Outcome of a question.

    NODATA is NOERROR without a record of the type (RFC 2308 2.2). NXDOMAIN is also the answer to
    a name that DNS cannot represent (RFC 1035 2.3.4: an empty label, a label over 63 octets, a
    name over 253 characters, or non-ASCII characters). Such a name cannot exist and is not
    queried. SERVFAIL is also the answer for an invalid response (garbage, a loop of CNAMEs).
    TIMEOUT is also the answer if the resolver cannot be reached. EXCESSIVE means that a limit
    was exceeded: of records in an answer, or of answers for a request. NO_INTERNET is a denial by a
    resolver that denies the name servers of the root zone too, and so all names of the Internet.
    """

    FOUND = "found"
    NODATA = "nodata"
    NXDOMAIN = "nxdomain"
    SERVFAIL = "servfail"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    EXCESSIVE = "excessive"
    NO_INTERNET = "no-internet"

    @property
    def is_determined(self) -> bool:
        """Whether the answer is a fact about the name. No other code decides this."""
        return self in (DnsStatus.FOUND, DnsStatus.NODATA, DnsStatus.NXDOMAIN)


class DnsQuestion(NamedTuple):
    """A question: ``name`` in lower-case A-labels without the final dot, ``rdtype`` like ``TXT``.

    A backslash escapes as in zone files (RFC 1035 5.1), as in names in record data. The empty
    name is the root.
    """

    name: str
    rdtype: str


class DnsAnswer(NamedTuple):
    """The answer to one question.

    ``records`` have the queried type. ``canonical_name`` is the target of the CNAMEs, or the
    queried name without any. ``ttl`` is in seconds; for negative answers it follows RFC 2308 5,
    and 0 means that the answer is not cached. ``is_authenticated`` is the AD bit: the resolver
    validated DNSSEC, which counts if the path to the resolver is trusted. ``octets`` is the size
    of the response.
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
    """Known answers, and the questions that are missing.

    An evaluation looks up everything it can use before it stops at a missing answer, so that one
    round sends as many questions as possible.
    """

    known: dict[DnsQuestion, DnsAnswer] = field(default_factory=dict)
    missing: dict[DnsQuestion, None] = field(default_factory=dict)
    given_up: set[DnsQuestion] = field(default_factory=set)
    """Questions that were sent but whose answers were not awaited."""

    def lookup(self, name: str, rdtype: str) -> DnsAnswer | None:
        """Return the answer, or record the question as missing and return `None`."""
        question = DnsQuestion(name.rstrip(".").lower(), rdtype)
        answer = self.known.get(question)
        if answer is None:
            self.missing[question] = None
        return answer


def host_name(name: Name) -> str:
    """Format a name in lower case without the final dot; the root is ``""``."""
    return name.to_text(omit_final_dot=True).lower().rstrip(".")


def txt_values(answer: DnsAnswer) -> tuple[str, ...]:
    """Return each TXT record as one text, its strings joined without a space (RFC 7208 3.3).

    Octets that are not UTF-8 become U+FFFD, which no record syntax contains.
    """
    return tuple(
        b"".join(record.strings).decode("utf-8", "replace")
        for record in answer.records
        if isinstance(record, TXT)
    )


def ip_addresses(answer: DnsAnswer) -> tuple[IpAddress, ...]:
    """Return the addresses of A or AAAA records, sorted so that every run is the same."""
    found = (
        ip_address(record.address) for record in answer.records if isinstance(record, A | AAAA)
    )
    return tuple(sorted(found, key=int))


def mx_records(answer: DnsAnswer) -> tuple[tuple[int, str], ...]:
    """Return ``(preference, exchange)`` pairs, lowest preference first; a null MX has ``""``."""
    return tuple(
        sorted(
            (record.preference, host_name(record.exchange))
            for record in answer.records
            if isinstance(record, MX)
        )
    )


def ptr_names(answer: DnsAnswer) -> tuple[str, ...]:
    """Return the names of PTR records, sorted."""
    return tuple(
        sorted({host_name(record.target) for record in answer.records if isinstance(record, PTR)})
    )


class Presence(Enum):
    """Whether a record, a host or a policy exists."""

    FOUND = "found"
    ABSENT = "absent"
    UNDETERMINED = "undetermined"


def look_up(answers: Answers, name: str, rdtype: str) -> DnsAnswer:
    """Return the answer, or an undetermined answer if it is not known yet.

    The evaluation runs again when the answer is known, so no caller sees a conclusion from
    this placeholder.
    """
    answer = answers.lookup(name, rdtype)
    if answer is None:
        return DnsAnswer(DnsQuestion(name, rdtype), DnsStatus.TIMEOUT, canonical_name=name)
    return answer


def presence_of(answer: DnsAnswer) -> Presence:
    """Return whether there are records of the queried type."""
    if not answer.status.is_determined:
        return Presence.UNDETERMINED
    return Presence.FOUND if answer.records else Presence.ABSENT


class HostAddresses(Struct, frozen=True):
    """The addresses of a host, IPv4 before IPv6.

    ``is_complete`` is false if one of the two families could not be determined. ``canonical_name``
    differs from ``name`` for an alias.
    """

    name: str
    addresses: tuple[IpAddress, ...]
    presence: Presence
    is_complete: bool
    canonical_name: str

    @property
    def is_alias(self) -> bool:
        """Whether there is a CNAME at the name."""
        return self.canonical_name != self.name


def look_up_addresses(answers: Answers, name: str) -> HostAddresses:
    """Look up A and AAAA in one round."""
    both = (look_up(answers, name, "A"), look_up(answers, name, "AAAA"))
    addresses = tuple(address for answer in both for address in ip_addresses(answer))
    is_complete = all(answer.status.is_determined for answer in both)
    if addresses:
        presence = Presence.FOUND
    else:
        presence = Presence.ABSENT if is_complete else Presence.UNDETERMINED
    canonical = next((a.canonical_name for a in both if a.canonical_name not in ("", name)), name)
    return HostAddresses(name, addresses, presence, is_complete, canonical)
