"""What to do next about one question: whom to ask, what a reply means. No I/O and no clock.

As in dnspython's resolver the decisions are apart from the sockets: `resolver`
sends what a `Try` says and reports what came of it, one try at a time.
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
    """The reply is no DNS message, or one that does not answer its question."""


class Chain(Struct, frozen=True):
    """What one reply says of the asked name.

    ``canonical_name`` is where its CNAMEs end. ``status`` is that of this last
    name, or None where this server does not know it: it is to be asked next.
    ``ttl`` is the least of all that was used, 0 for what must not be cached.
    """

    status: DnsStatus | None
    canonical_name: str
    records: tuple[Rdata, ...]
    ttl: int


def read_positive(message: bytes) -> Chain:
    """Read a reply whose question was compared and which is not truncated.

    :raises MalformedReply: garbage, a loop, or records that nobody asked for.
    """
    # Nothing is read from the additional section: it is cut off by its count.
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
    """Write a name as `DnsQuestion` has it: lower case, no trailing dot."""
    return name.to_text().lower().removesuffix(".")


def _cacheable(ttl: int) -> int:
    return ttl if ttl <= MAX_CACHED_TTL else 0


MAX_LINKS = 16  # further questions along one chain of CNAMEs; BIND and Unbound stop there, too


class ResolverSettings(Struct, frozen=True):
    """How long and how often is tried; times in seconds.

    ``try_timeouts`` has an entry for each round over all servers: a resolver
    that must go and find out takes seconds, and answers the second question
    together with the first. ``deadline`` is for a lookup with all its tries,
    CNAMEs and the wait for its turn.

    At most ``max_in_flight`` lookups are under way, and of those that began in
    the last ``burst_age`` no more than ``max_burst``: so many queries fit into
    the receive buffer of a server (Linux accounts 768 octets for each, and has
    208 KiB by default), while dead names hold up nobody for longer.
    """

    try_timeouts: tuple[float, ...] = (1.0, 2.0, 3.0)
    deadline: float = 6.0
    max_in_flight: int = 2000
    max_burst: int = 200
    burst_age: float = 0.1


class Try(NamedTuple):
    """Send this packed question to this server and wait for ``timeout`` seconds."""

    server: Server
    question: bytes
    timeout: float
    has_edns: bool = True
    is_stream: bool = False


Step = Try | DnsAnswer

_NEGATIVE = {Outcome.NXDOMAIN: DnsStatus.NXDOMAIN, Outcome.NODATA: DnsStatus.NODATA}

# The end of a lookup that got no answer is its most telling failure: one that
# is about the name says more than one that is about us, or than silence.
_TELLING = [DnsStatus.TIMEOUT, DnsStatus.REFUSED, DnsStatus.SERVFAIL]


class Resolution:
    """One question on its way to its answer."""

    __slots__ = (
        "_canonical_name",
        "_failure",
        "_is_authenticated",
        "_octets",
        "_packed",
        "_question",
        "_seen",
        "_servers",
        "_struck",
        "_timeouts",
        "_tries",
        "_try",
        "_ttl",
    )

    def __init__(
        self,
        question: DnsQuestion,
        packed: bytes,
        servers: tuple[Server, ...],
        timeouts: tuple[float, ...],
    ) -> None:
        """Take the question, also packed, and the servers in the order in which to ask them."""
        self._question = question
        self._packed = packed
        self._servers = servers
        self._timeouts = timeouts
        self._canonical_name = question.name.lower().removesuffix(".")
        self._seen: tuple[bytes, ...] = ()
        self._struck: tuple[Server, ...] = ()
        self._tries = 0
        self._octets = 0
        self._ttl = MAX_CACHED_TTL
        self._is_authenticated = True
        self._failure = DnsStatus.TIMEOUT
        self._try: Try

    def start(self) -> Step:
        """Say what to do first."""
        return self._next_try()

    def lost(self) -> Step:
        """Go on after a try that got no reply, in time or at all."""
        return self._next_try()

    def heard(self, message: bytes) -> Step:
        """Go on after a reply to the question of the current try."""
        self._octets += len(message)
        reply = read_reply(message, self._packed)
        outcome = reply.outcome
        if outcome is Outcome.POSITIVE:
            return self._follow(message, reply.is_authenticated)
        status = _NEGATIVE.get(outcome)
        if status is not None:
            return self._answer(status, reply.negative_ttl, reply.is_authenticated)
        if outcome is Outcome.EXCESSIVE:
            return self.exceeded()
        if outcome is Outcome.TRUNCATED and not self._try.is_stream:
            self._try = self._try._replace(is_stream=True)
            return self._try
        if outcome is Outcome.UNSUPPORTED and self._try.has_edns:  # RFC 6891 7
            self._try = self._try._replace(has_edns=False)
            return self._try
        if outcome in (Outcome.REFUSED, Outcome.UNSUPPORTED):
            self._struck += (self._try.server,)  # it would say so again
        refused = outcome is Outcome.REFUSED
        return self._fail(DnsStatus.REFUSED if refused else DnsStatus.SERVFAIL)

    def exceeded(self) -> DnsAnswer:
        """End: the reply is larger than is read, and would be so again."""
        self._failure = DnsStatus.EXCESSIVE
        return self.give_up()

    def give_up(self) -> DnsAnswer:
        """End without an answer: the deadline has passed, or nobody is left to ask."""
        return DnsAnswer(
            self._question, self._failure, (), self._canonical_name, octets=self._octets
        )

    def _next_try(self) -> Step:
        while self._tries < len(self._servers) * len(self._timeouts):
            timeout_index, server_index = divmod(self._tries, len(self._servers))
            self._tries += 1
            server = self._servers[server_index]
            if server not in self._struck:
                self._try = Try(server, self._packed, self._timeouts[timeout_index])
                return self._try
        return self.give_up()

    def _fail(self, status: DnsStatus) -> Step:
        self._failure = max(self._failure, status, key=_TELLING.index)
        return self._next_try()

    def _answer(
        self, status: DnsStatus, ttl: int, is_authenticated: bool, records: tuple[Rdata, ...] = ()
    ) -> DnsAnswer:
        return DnsAnswer(
            self._question,
            status,
            records,
            self._canonical_name,
            min(ttl, self._ttl),
            is_authenticated and self._is_authenticated,
            self._octets,
        )

    def _follow(self, message: bytes, is_authenticated: bool) -> Step:
        """Take the records of a reply, or ask for the name that its CNAMEs lead to."""
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
        return self._next_try()
