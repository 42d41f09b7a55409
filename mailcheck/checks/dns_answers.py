"""What a DNS question was answered with. "Could not find out" is never folded into "no".

A check never asks: it reads the answers it has and names the questions it
still needs (`Answers`), the operation asks them all at once and runs it again.

Questions and answers are named tuples: a check makes and looks up hundreds,
several times each, and as dataclasses they took a tenth of all its time.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from dns.rdata import Rdata


class DnsStatus(Enum):
    """How a question ended.

    NODATA is NOERROR without a record of the type (RFC 2308 2.2). NXDOMAIN is
    also the answer to a name that DNS can't carry (RFC 1035 2.3.4: an empty
    label or one over 63 octets, over 253 characters in all; anything but
    ASCII): it can't exist, and is not asked for. SERVFAIL is also an answer
    that makes no sense (garbage, a loop of CNAMEs), TIMEOUT also a resolver
    that can't be reached.
    """

    FOUND = "found"
    NODATA = "nodata"
    NXDOMAIN = "nxdomain"
    SERVFAIL = "servfail"
    REFUSED = "refused"
    TIMEOUT = "timeout"

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
    """

    question: DnsQuestion
    status: DnsStatus
    records: tuple[Rdata, ...] = ()
    canonical_name: str = ""
    ttl: int = 0
    is_authenticated: bool = False


@dataclass(slots=True)
class Answers:
    """The answers known so far; remembers what was asked for and is missing.

    An evaluation asks for all it can use before it gives up on a missing one,
    so that one round asks as much as possible at once.
    """

    known: dict[DnsQuestion, DnsAnswer] = field(default_factory=dict)
    missing: dict[DnsQuestion, None] = field(default_factory=dict)

    def lookup(self, name: str, rdtype: str) -> DnsAnswer | None:
        """Give the answer, or note the question as missing and give nothing."""
        question = DnsQuestion(name.rstrip(".").lower(), rdtype)
        answer = self.known.get(question)
        if answer is None:
            self.missing[question] = None
        return answer
