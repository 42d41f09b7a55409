r"""Talking to a spamd: one connection, one command, one answer (SPAMC/1.5).

REPORT SPAMC/1.5              SPAMD/1.1 0 EX_OK
Content-length: 4            Content-length: 9
                              Spam: False ; 0.2 / 5.0
...\n
                              ...

Whatever the other side does, it ends within the deadline, and no more than
`MAX_ANSWER` octets of it are kept.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from twisted.internet import error
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import (
    HostnameEndpoint,
    TCP4ClientEndpoint,
    TCP6ClientEndpoint,
    UNIXClientEndpoint,
)
from twisted.internet.interfaces import (
    IReactorTCP,
    IReactorTime,
    IReactorUNIX,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.checks.content.limits import KIB
from mailcheck.checks.deliverability.content_filter import (
    OUT_OF_TIME,
    FilterProblem,
    FilterVerdict,
    ReportUnreadable,
    read_verdict,
)
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.ports.probes import FilterFailed
from mailcheck.probes.guarded_dialer import quiet_factory
from mailcheck.probes.spamd_address import SpamdAddress

CONNECT_SECONDS = 5.0
"""A spamd is near; one that takes longer is not there."""


class SpamdReactor(IReactorTime, IReactorTCP, IReactorUNIX):
    """What a reactor needs for this: time, and streams by TCP or Unix sockets."""


def spamd_endpoint(spamd: SpamdAddress, reactor: SpamdReactor) -> IStreamClientEndpoint:
    """Give what connects there."""
    if spamd.path:
        return UNIXClientEndpoint(reactor, spamd.path, timeout=CONNECT_SECONDS)
    address = parse_ip_address(spamd.host)
    # A name is looked up by the system: containers have such names.
    kind: Any = HostnameEndpoint
    if address is not None:
        kind = TCP4ClientEndpoint if address.version == 4 else TCP6ClientEndpoint
    endpoint: IStreamClientEndpoint = kind(reactor, spamd.host, spamd.port, timeout=CONNECT_SECONDS)
    return endpoint


MAX_ANSWER = 128 * KIB
"""Octets of an answer; a report of a hundred rules has 10 KiB."""

MAX_HEADER_LINES = 20

ANSWER_SECONDS = 30.0
"""For connecting, judging and answering. 300 KB in one line took longer; most mails take 0.3 s."""

PING_SECONDS = 2.0
"""A PING takes 3 ms where a child is free, and as long as a mail where none is."""

_STATUS = re.compile(rb"SPAMD/\d{1,3}\.\d{1,3} (\d{1,3}) ([\x20-\x7e]{1,500})")
_FIELD = re.compile(rb"([A-Za-z-]{1,40}):[ \t]*([\x20-\x7e]{0,500})")
_LENGTH = re.compile(rb"\d{1,7}")

_PROBLEMS = {
    69: FilterProblem.UNREACHABLE,  # EX_UNAVAILABLE: service unavailable
    75: FilterProblem.BUSY,  # EX_TEMPFAIL
    79: FilterProblem.TIMEOUT,  # EX_TIMEOUT: --timeout-child
}
"""What the status numbers of spamd's own table mean; any other is a broken answer."""


class SpamdAnswer(Struct, frozen=True):
    """A whole answer with status 0; names of fields in lower case."""

    status_text: str
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class SpamdClient:
    """Asks the spamd at one address."""

    def __init__(self, reactor: SpamdReactor, address: SpamdAddress) -> None:
        self._reactor = reactor
        self._address = address

    async def answers(self) -> bool:
        """Tell whether a spamd is there and well."""
        try:
            answer = await self._ask(b"PING SPAMC/1.5\r\n\r\n", PING_SECONDS)
        except FilterFailed:
            return False
        return answer.status_text == "PONG"

    async def report(self, mail: bytes) -> FilterVerdict:
        """Have a mail judged; it ends with a line break.

        :raises FilterFailed: there is no verdict.
        """
        head = b"REPORT SPAMC/1.5\r\nContent-length: %d\r\n\r\n" % len(mail)
        answer = await self._ask(head + mail, ANSWER_SECONDS)
        try:
            verdict = read_verdict(answer.fields["spam"], _text_of(answer))
        except (KeyError, ValueError, ReportUnreadable) as problem:
            raise FilterFailed(FilterProblem.BROKEN_ANSWER, str(problem)) from problem
        if any(rule.name == OUT_OF_TIME for rule in verdict.rules):
            raise FilterFailed(FilterProblem.TIMEOUT, "it stopped in the middle")
        return verdict

    async def _ask(self, request: bytes, seconds: float) -> SpamdAnswer:
        def too_late(_: object, __: float) -> SpamdAnswer:
            raise FilterFailed(FilterProblem.TIMEOUT, f"no answer in {seconds:.0f} s")

        asking = Deferred.fromCoroutine(self._exchange(request))
        return await asking.addTimeout(seconds, self._reactor, too_late)

    async def _exchange(self, request: bytes) -> SpamdAnswer:
        endpoint = spamd_endpoint(self._address, self._reactor)
        conversation = SpamdConversation(request)
        try:
            await endpoint.connect(quiet_factory(lambda: conversation))
        except error.ConnectingCancelledError:
            raise CancelledError from None
        except (error.ConnectError, error.DNSLookupError, OSError) as failure:
            # Not the message: it names addresses.
            raise FilterFailed(FilterProblem.UNREACHABLE, type(failure).__name__) from failure
        return read_answer(await conversation.ended)


class SpamdConversation(Protocol):
    """Says one request and collects the answer until the other side hangs up.

    ``ended`` fires with the octets, or with `FilterFailed`; cancelling it
    cuts the connection off.
    """

    transport: ITCPTransport

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._pieces: list[bytes] = []
        self._size = 0
        self._problem: FilterFailed | None = None
        self.ended: Deferred[bytes] = Deferred(lambda _: self._cut_off())

    def connectionMade(self) -> None:
        """Say everything at once; the answer comes when it was read."""
        self.transport.write(self._request)

    def dataReceived(self, data: bytes) -> None:
        """Collect, as long as it is not too much."""
        self._size += len(data)
        if self._size > MAX_ANSWER:
            self._pieces.clear()
            self._problem = FilterFailed(FilterProblem.BROKEN_ANSWER, "the answer is too large")
            self._cut_off()
        else:
            self._pieces.append(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Give what came; what is not whole is noticed where it is read."""
        if self.ended.called:
            return
        if self._problem is not None:
            self.ended.errback(self._problem)
        elif not self._size:
            problem = FilterFailed(FilterProblem.UNREACHABLE, "it hung up without an answer")
            self.ended.errback(problem)
        else:
            self.ended.callback(b"".join(self._pieces))

    def _cut_off(self) -> None:
        self.transport.abortConnection()


def read_answer(octets: bytes) -> SpamdAnswer:
    """Read a whole answer.

    :raises FilterFailed: it is none, not whole, or says that something went wrong.
    """
    head, separator, body = octets.partition(b"\r\n\r\n")
    # An answer without fields, as to PING, ends with its first line.
    lines = head.removesuffix(b"\r\n").split(b"\r\n")
    status = _STATUS.fullmatch(lines[0])
    if status is None or len(lines) > MAX_HEADER_LINES:
        raise FilterFailed(FilterProblem.BROKEN_ANSWER, "no status line")
    if int(status[1]):
        problem = _PROBLEMS.get(int(status[1]), FilterProblem.BROKEN_ANSWER)
        raise FilterFailed(problem, f"status {int(status[1])}")
    fields = {}
    for line in lines[1:]:
        found = _FIELD.fullmatch(line)
        if found is None:
            raise FilterFailed(FilterProblem.BROKEN_ANSWER, "a broken field")
        fields[found[1].decode("ascii").lower()] = found[2].decode("ascii").rstrip()
    if fields and not separator:
        raise FilterFailed(FilterProblem.BROKEN_ANSWER, "the answer breaks off")
    return SpamdAnswer(status[2].decode("ascii"), fields, body)


def _text_of(answer: SpamdAnswer) -> str:
    """Give the body; it is as long as was said.

    :raises ReportUnreadable: it is not.
    """
    length = answer.fields.get("content-length", "").encode("ascii")
    if _LENGTH.fullmatch(length) is None or int(length) != len(answer.body):
        raise ReportUnreadable("the answer is not as long as it says")
    return answer.body.decode("utf-8", "replace")
