"""The state machine of one lookup: it chooses the next server and interprets replies.

It has no I/O and no clock. As in dnspython's resolver, the decisions are separate from the sockets:
`resolver` sends each `Attempt` and reports its outcome, one at a time.
"""

from typing import NamedTuple

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
from dns.rdata import Rdata
from msgspec import Struct

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.servers import Server
from mailcheck.dns.wire_format import MAX_CACHED_TTL, Outcome, pack_question, read_reply

_ADDITIONAL_COUNT = 10  # offset in the header


class MalformedReply(ValueError):
    """The reply is not a DNS message, or it does not answer its question."""


class Chain(Struct, frozen=True):
    """The content of one reply about the name in the question.

    ``canonical_name`` is the end of its CNAMEs, and ``status`` is the status of that name. It is
    `None` if this server does not know the name, which must then be asked for. ``ttl`` is the
    smallest of all records used, or 0 if the answer must not be cached.
    """

    status: DnsStatus | None
    canonical_name: str
    records: tuple[Rdata, ...]
    ttl: int


def read_positive(message: bytes) -> Chain:
    """Parse a reply that is not truncated and whose question has been compared.

    :raises MalformedReply: it is malformed, has a loop, or has records of other names or types.
    """
    # The additional section is cut off by setting its count to 0.
    message = message[:_ADDITIONAL_COUNT] + b"\0\0" + message[_ADDITIONAL_COUNT + 2 :]
    try:
        reply = dns.message.from_wire(message, ignore_trailing=True)
        if not isinstance(reply, dns.message.QueryMessage):
            raise MalformedReply("not a reply to a query")
        chain = reply.resolve_chaining()
    except dns.exception.DNSException as failure:
        raise MalformedReply(str(failure)) from failure
    canonical_name = text_of(chain.canonical_name)
    if chain.answer is not None and reply.rcode() == dns.rcode.NOERROR:
        ttl = chain.minimum_ttl
        return Chain(DnsStatus.FOUND, canonical_name, tuple(chain.answer), _cacheable(ttl))
    if not chain.cnames:
        raise MalformedReply("records of other names or types")
    has_soa = any(rrset.rdtype == dns.rdatatype.SOA for rrset in reply.authority)
    ttl = _cacheable(chain.minimum_ttl) if has_soa else 0  # RFC 2308 5
    if reply.rcode() == dns.rcode.NXDOMAIN:  # of the last name, RFC 6604 3
        return Chain(DnsStatus.NXDOMAIN, canonical_name, (), ttl)
    if reply.rcode() != dns.rcode.NOERROR:
        raise MalformedReply(f"records with {dns.rcode.to_text(reply.rcode())}")
    if has_soa:
        return Chain(DnsStatus.NODATA, canonical_name, (), ttl)
    links = min(rrset.ttl for rrset in chain.cnames)
    return Chain(None, canonical_name, (), _cacheable(links))


def text_of(name: dns.name.Name) -> str:
    """Return a name in the form of `DnsQuestion`: lower case, no trailing dot."""
    return name.to_text().lower().removesuffix(".")


def _cacheable(ttl: int) -> int:
    return ttl if ttl <= MAX_CACHED_TTL else 0


MAX_LINKS = 16  # further questions along one chain of CNAMEs; the limit of BIND and Unbound, too


class ResolverSettings(Struct, frozen=True):
    """Timeouts and limits of lookups; times in seconds.

    ``try_timeouts`` has one entry for each round over all servers. A recursive resolver may need
    seconds for an answer, and then answers a repeated question with the first. ``deadline`` covers
    a whole lookup with all attempts, CNAMEs and the time in the queue.

    At most ``max_in_flight`` lookups run at the same time. At most ``max_burst`` of them began in
    the last ``burst_age`` seconds. That many queries fit into the receive buffer of a server: Linux
    accounts 768 octets for each, and its default buffer has 208 KiB. Dead names thus block other
    lookups only for that time.
    """

    try_timeouts: tuple[float, ...] = (1.0, 2.0, 3.0)
    deadline: float = 6.0
    max_in_flight: int = 2000
    max_burst: int = 200
    burst_age: float = 0.1


class Attempt(NamedTuple):
    """Send this packed question to this server, and wait for ``timeout`` seconds."""

    server: Server
    question: bytes
    timeout: float
    has_edns: bool = True
    is_tcp: bool = False


Step = Attempt | DnsAnswer

_NEGATIVE = {Outcome.NXDOMAIN: DnsStatus.NXDOMAIN, Outcome.NODATA: DnsStatus.NODATA}

# A lookup without an answer ends with its most significant failure. A failure of the name is more
# significant than a failure of our servers, or than a timeout.
_BY_SIGNIFICANCE = [DnsStatus.TIMEOUT, DnsStatus.REFUSED, DnsStatus.SERVFAIL]


class Resolution:
    """The state of one lookup."""

    __slots__ = (
        "_attempt",
        "_canonical_name",
        "_excluded",
        "_failure",
        "_is_authenticated",
        "_octets",
        "_packed",
        "_question",
        "_seen",
        "_servers",
        "_timeouts",
        "_tries",
        "_ttl",
    )

    def __init__(
        self,
        question: DnsQuestion,
        packed: bytes,
        servers: tuple[Server, ...],
        timeouts: tuple[float, ...],
    ) -> None:
        """Store the question, also in packed form, and the servers in the order to ask them."""
        self._question = question
        self._packed = packed
        self._servers = servers
        self._timeouts = timeouts
        self._canonical_name = question.name.lower().removesuffix(".")
        self._seen: tuple[bytes, ...] = ()
        self._excluded: tuple[Server, ...] = ()
        self._tries = 0
        self._octets = 0
        self._ttl = MAX_CACHED_TTL
        self._is_authenticated = True
        self._failure = DnsStatus.TIMEOUT
        self._attempt: Attempt

    def start(self) -> Step:
        """Return the first attempt."""
        return self._next_attempt()

    def attempt_failed(self) -> Step:
        """Return the next step after an attempt without a reply."""
        return self._next_attempt()

    def reply_received(self, message: bytes) -> Step:
        """Return the next step after a reply to the current attempt."""
        self._octets += len(message)
        reply = read_reply(message, self._packed)
        outcome = reply.outcome
        if outcome is Outcome.POSITIVE:
            return self._follow(message, reply.is_authenticated)
        status = _NEGATIVE.get(outcome)
        if status is not None:
            return self._answer(status, reply.negative_ttl, reply.is_authenticated)
        if outcome is Outcome.EXCESSIVE:
            return self.reply_too_large()
        if outcome is Outcome.TRUNCATED and not self._attempt.is_tcp:
            self._attempt = self._attempt._replace(is_tcp=True)
            return self._attempt
        if outcome is Outcome.UNSUPPORTED and self._attempt.has_edns:  # RFC 6891 7
            self._attempt = self._attempt._replace(has_edns=False)
            return self._attempt
        if outcome in (Outcome.REFUSED, Outcome.UNSUPPORTED):
            self._excluded += (self._attempt.server,)  # its next reply would be the same
        refused = outcome is Outcome.REFUSED
        return self._fail(DnsStatus.REFUSED if refused else DnsStatus.SERVFAIL)

    def reply_too_large(self) -> DnsAnswer:
        """End the lookup: the reply is larger than allowed, and would be so again."""
        self._failure = DnsStatus.EXCESSIVE
        return self.give_up()

    def give_up(self) -> DnsAnswer:
        """End the lookup without an answer: after the deadline, or after the last server."""
        return DnsAnswer(
            self._question, self._failure, (), self._canonical_name, octets=self._octets
        )

    def _next_attempt(self) -> Step:
        while self._tries < len(self._servers) * len(self._timeouts):
            timeout_index, server_index = divmod(self._tries, len(self._servers))
            self._tries += 1
            server = self._servers[server_index]
            if server not in self._excluded:
                self._attempt = Attempt(server, self._packed, self._timeouts[timeout_index])
                return self._attempt
        return self.give_up()

    def _fail(self, status: DnsStatus) -> Step:
        self._failure = max(self._failure, status, key=_BY_SIGNIFICANCE.index)
        return self._next_attempt()

    def _answer(
        self, status: DnsStatus, ttl: int, is_authenticated: bool, records: tuple[Rdata, ...] = ()
    ) -> DnsAnswer:
        return DnsAnswer(
            self._question,
            status,
            records,
            self._canonical_name,
            min(ttl, self._ttl),
            is_authenticated=is_authenticated and self._is_authenticated,
            octets=self._octets,
        )

    def _follow(self, message: bytes, is_authenticated: bool) -> Step:
        """Use the records of a reply, or ask for the name that its CNAMEs lead to."""
        try:
            chain = read_positive(message)
        except MalformedReply:
            return self._fail(DnsStatus.SERVFAIL)
        self._canonical_name = chain.canonical_name
        if chain.status is not None:
            return self._answer(chain.status, chain.ttl, is_authenticated, chain.records)
        self._ttl = min(self._ttl, chain.ttl)
        self._is_authenticated = self._is_authenticated and is_authenticated
        self._seen += (self._packed,)
        self._packed = pack_question(DnsQuestion(chain.canonical_name, self._question.rdtype))
        if self._packed in self._seen or len(self._seen) > MAX_LINKS:
            self._failure = DnsStatus.SERVFAIL
            return self.give_up()
        self._tries = 0
        return self._next_attempt()
