"""A client that negotiates with a milter endpoint, to see whether it answers."""

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime, IStreamClientEndpoint, ITCPTransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from mailcheck.milter.packets import NEGOTIATE, VERSION, WANTED, Negotiation, Packet, negotiate

SECONDS = 3.0
"""Seconds for connecting and the reply."""

_HEAD = 5
"""Octets of a packet before its data."""


class _Negotiating(Protocol):
    transport: ITCPTransport

    def __init__(self) -> None:
        self._held = b""
        self.answered: Deferred[bool] = Deferred()

    def connectionMade(self) -> None:
        """Send the offer, which has the form of the reply."""
        offer = Negotiation(VERSION, 0, WANTED)
        self.transport.write(negotiate(offer).encoded())

    def dataReceived(self, data: bytes) -> None:
        """Read the command of the reply."""
        self._held += data
        if len(self._held) >= _HEAD and not self.answered.called:
            self.answered.callback(self._held[_HEAD - 1 : _HEAD] == NEGOTIATE)
            self.transport.write(Packet(b"Q").encoded())
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End without a reply."""
        if not self.answered.called:
            self.answered.callback(False)


async def answers(endpoint: IStreamClientEndpoint, clock: IReactorTime) -> bool:
    """Return whether a milter endpoint answers a negotiation."""
    try:
        return await Deferred.fromCoroutine(_ask(endpoint)).addTimeout(SECONDS, clock)
    except Exception:  # no connection, or no reply in time
        return False


async def _ask(endpoint: IStreamClientEndpoint) -> bool:
    protocol = await endpoint.connect(Factory.forProtocol(_Negotiating))
    assert isinstance(protocol, _Negotiating)
    return await protocol.answered
