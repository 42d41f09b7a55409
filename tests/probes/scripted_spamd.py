r"""A spamd that a test scripts, on a clock that the test advances.

spamd = ScriptedSpamd()
results = collect(spamd.content_filter.judge(MAIL))
spamd.connection().send(answer(" 1.0 URI_HEX  text", points="1.0"))
"""

from typing import Any

from twisted.internet import error
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.checks.deliverability.content_filter import FilterProblem
from mailcheck.ports.probes import FilterFailed
from mailcheck.probes.spamd_address import SpamdAddress
from mailcheck.probes.spamd_client import SpamdClient, SpamdReactor
from mailcheck.probes.spamd_filter import ConfiguredFilter, FilterFinder, FilterLimits, QueuedFilter
from mailcheck.workers.scheduling import DirectWorker
from tests.probes.scripted_hosts import AcceptedConnection, Transport

ADDRESS = SpamdAddress("127.0.0.1", 783)
MAIL = b"Subject: lunch\r\n\r\nAt noon?\r\n"
PONG = b"SPAMD/1.5 0 PONG\r\n"


def answer(*rules: str, spam: str = "False", points: str = "0.0") -> bytes:
    """Return the answer of spamd to REPORT."""
    body = "\n".join(["---- ---------------------- --------------", *rules, "", ""]).encode()
    head = f"SPAMD/1.1 0 EX_OK\r\nContent-length: {len(body)}\r\nSpam: {spam} ; {points} / 5.0"
    return head.encode() + b"\r\n\r\n" + body


@implementer(SpamdReactor)
class Connections(MemoryReactorClock):
    """A reactor whose connections, by TCP or Unix socket, end in the test."""

    @property
    def dialled(self) -> list[str]:
        """Every address of a connection attempt, TCP first."""
        places = [f"{host}:{port}" for host, port, *_ in self.tcpClients]
        return places + [f"unix:{path}" for path, *_ in self.unixClients]

    def accept(self, index: int = -1) -> AcceptedConnection:
        """Accept a TCP connection, by default the newest."""
        return _accepted(self.tcpClients[index][2])

    def accept_unix(self, index: int = -1) -> AcceptedConnection:
        """Accept a connection to a Unix socket."""
        return _accepted(self.unixClients[index][1])

    def refuse(self, index: int = -1) -> None:
        """Refuse a TCP connection."""
        self._refuse(self.tcpClients[index][2])

    def refuse_unix(self, index: int = -1) -> None:
        """Refuse a connection to a Unix socket."""
        self._refuse(self.unixClients[index][1])

    def _refuse(self, factory: Any) -> None:
        factory.clientConnectionFailed(None, Failure(error.ConnectionRefusedError()))


def _accepted(factory: Any) -> AcceptedConnection:
    protocol = factory.buildProtocol(None)
    transport = Transport("127.0.0.1", 783)
    protocol.makeConnection(transport)
    return AcceptedConnection(protocol, transport)


class ScriptedSpamd:
    """A content filter whose spamd the test scripts."""

    def __init__(
        self, limits: FilterLimits | None = None, finder: FilterFinder | None = None
    ) -> None:
        self.connections = Connections()
        if finder is None:
            finder = ConfiguredFilter(SpamdClient(self.connections, ADDRESS))
        self.content_filter = QueuedFilter(finder, self.connections, DirectWorker(), limits)

    def connection(self, index: int = -1) -> AcceptedConnection:
        """Accept a connection."""
        return self.connections.accept(index)

    def pass_time(self, seconds: float) -> None:
        """Advance the clock, a tenth of a second at a time."""
        self.connections.pump([0.1] * round(seconds * 10))


class ScriptedPrivateSpamd:
    """A private spamd that the test starts."""

    def __init__(self) -> None:
        self.engine = "SpamAssassin 4.0.1"
        self.is_running = False
        self.asked = 0
        self.problem: FilterProblem | None = None

    def socket_path(self) -> Deferred[str]:
        """Return the path of the running spamd, or fail with its problem."""
        self.asked += 1
        if self.problem is not None:
            return fail(FilterFailed(self.problem))
        self.is_running = True
        return succeed("/private/socket")
