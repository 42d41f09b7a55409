r"""A client for spamd: one connection per command and answer (SPAMC/1.5).

REPORT SPAMC/1.5              SPAMD/1.1 0 EX_OK
Content-length: 4            Content-length: 9
                              Spam: False ; 0.2 / 5.0
...\n
                              ...

A request always ends within its deadline. At most `MAX_ANSWER` octets of its
answer are kept.
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
"""Seconds for connecting. A spamd is nearby, so a slower one counts as unreachable."""


class SpamdReactor(IReactorTime, IReactorTCP, IReactorUNIX):
    """Time, TCP and Unix sockets, as a reactor provides them."""


def spamd_endpoint(spamd: SpamdAddress, reactor: SpamdReactor) -> IStreamClientEndpoint:
    """Return the endpoint for connections to a spamd."""
    if spamd.path:
        return UNIXClientEndpoint(reactor, spamd.path, timeout=CONNECT_SECONDS)
    address = parse_ip_address(spamd.host)
    # Host names are resolved by the system, since containers have names that DNS does not know.
    kind: Any = HostnameEndpoint
    if address is not None:
        kind = TCP4ClientEndpoint if address.version == 4 else TCP6ClientEndpoint
    endpoint: IStreamClientEndpoint = kind(reactor, spamd.host, spamd.port, timeout=CONNECT_SECONDS)
    return endpoint


MAX_ANSWER = 128 * KIB
"""Maximum size of an answer in octets. A report with a hundred rules has 10 KiB."""

MAX_HEADER_LINES = 20

ANSWER_SECONDS = 30.0
"""Seconds for connecting, filtering and answering. Most mails take 0.3 s; 300 KB in one line took
longer."""

PING_SECONDS = 2.0
"""Seconds for a PING. It takes 3 ms if a child is free, otherwise as long as a mail."""

_STATUS = re.compile(rb"SPAMD/\d{1,3}\.\d{1,3} (\d{1,3}) ([\x20-\x7e]{1,500})")
_FIELD = re.compile(rb"([A-Za-z-]{1,40}):[ \t]*([\x20-\x7e]{0,500})")
_LENGTH = re.compile(rb"\d{1,7}")

_PROBLEMS = {
    69: FilterProblem.UNREACHABLE,  # EX_UNAVAILABLE: service unavailable
    75: FilterProblem.BUSY,  # EX_TEMPFAIL
    79: FilterProblem.TIMEOUT,  # EX_TIMEOUT: --timeout-child
}
"""The meaning of spamd's status codes. All others are broken answers."""


class SpamdAnswer(Struct, frozen=True):
    """A complete answer with status 0. Field names are in lower case."""

    status_text: str
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class SpamdClient(Struct, frozen=True, eq=False):
    """A client for the spamd at one address."""

    reactor: SpamdReactor
    address: SpamdAddress

    async def answers(self) -> bool:
        """Return whether a spamd answers correctly."""
        try:
            answer = await self._ask(b"PING SPAMC/1.5\r\n\r\n", PING_SECONDS)
        except FilterFailed:
            return False
        return answer.status_text == "PONG"

    async def report(self, mail: bytes) -> FilterVerdict:
        """Return the verdict about a mail, which must end with a line break.

        :raises FilterFailed: there is no verdict.
        """
        head = b"REPORT SPAMC/1.5\r\nContent-length: %d\r\n\r\n" % len(mail)
        answer = await self._ask(head + mail, ANSWER_SECONDS)
        try:
            verdict = read_verdict(answer.fields["spam"], _text_of(answer))
        except (KeyError, ValueError, ReportUnreadable) as problem:
            raise FilterFailed(FilterProblem.BROKEN_ANSWER, str(problem)) from problem
        if any(rule.name == OUT_OF_TIME for rule in verdict.rules):
            raise FilterFailed(FilterProblem.TIMEOUT, "it ran out of time")
        return verdict

    async def _ask(self, request: bytes, seconds: float) -> SpamdAnswer:
        def too_late(_: object, __: float) -> SpamdAnswer:
            raise FilterFailed(FilterProblem.TIMEOUT, f"no answer in {seconds:.0f} s")

        asking = Deferred.fromCoroutine(self._exchange(request))
        return await asking.addTimeout(seconds, self.reactor, too_late)

    async def _exchange(self, request: bytes) -> SpamdAnswer:
        endpoint = spamd_endpoint(self.address, self.reactor)
        conversation = SpamdConversation(request)
        try:
            await endpoint.connect(quiet_factory(lambda: conversation))
        except error.ConnectingCancelledError:
            raise CancelledError from None
        except (error.ConnectError, error.DNSLookupError, OSError) as failure:
            # The message is not logged because it contains addresses.
            raise FilterFailed(FilterProblem.UNREACHABLE, type(failure).__name__) from failure
        return read_answer(await conversation.ended)


class SpamdConversation(Protocol):
    """Sends one request and collects the answer until the server closes the connection.

    ``ended`` fires with the received octets or with `FilterFailed`. Cancelling it aborts the
    connection.
    """

    transport: ITCPTransport

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._pieces: list[bytes] = []
        self._size = 0
        self._problem: FilterFailed | None = None
        self.ended: Deferred[bytes] = Deferred(lambda _: self._cut_off())

    def connectionMade(self) -> None:
        """Send the whole request. The server answers after reading it."""
        self.transport.write(self._request)

    def dataReceived(self, data: bytes) -> None:
        """Collect the answer up to the maximum size."""
        self._size += len(data)
        if self._size > MAX_ANSWER:
            self._pieces.clear()
            self._problem = FilterFailed(FilterProblem.BROKEN_ANSWER, "the answer is too large")
            self._cut_off()
        else:
            self._pieces.append(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Return the answer. `read_answer` detects an incomplete one."""
        if self.ended.called:
            return
        if self._problem is not None:
            self.ended.errback(self._problem)
        elif not self._size:
            problem = FilterFailed(FilterProblem.UNREACHABLE, "it closed the connection")
            self.ended.errback(problem)
        else:
            self.ended.callback(b"".join(self._pieces))

    def _cut_off(self) -> None:
        self.transport.abortConnection()


def read_answer(octets: bytes) -> SpamdAnswer:
    """Parse a complete answer.

    :raises FilterFailed: the answer is invalid, incomplete or reports an error.
    """
    head, separator, body = octets.partition(b"\r\n\r\n")
    # An answer without fields, such as to PING, ends with its first line.
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
    """Return the body if it has the announced length.

    :raises ReportUnreadable: its length differs.
    """
    length = answer.fields.get("content-length", "").encode("ascii")
    if _LENGTH.fullmatch(length) is None or int(length) != len(answer.body):
        raise ReportUnreadable("the answer does not have the announced length")
    return answer.body.decode("utf-8", "replace")
