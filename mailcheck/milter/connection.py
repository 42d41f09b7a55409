"""Connections of mail servers to the milter endpoint.

The reply to a command is sent before the next command is read, and it always lets the mail go on.
The copy of a mail is evaluated after the reply at its end. Nothing is read from a mail server that
does not read its replies.
"""

from typing import Any

from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.connections.policies import client_ip_of, is_in_networks
from mailcheck.connections.server import CountingFactory
from mailcheck.connections.wire import Watchdog
from mailcheck.core.memory.client_limits import ConnectionLimits
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import IpNetwork, is_local_client
from mailcheck.milter import packets
from mailcheck.milter.packets import ACCEPT, CONTINUE, BadPacket, Packet, Steps
from mailcheck.operations.traffic.score_traffic import MailCopy, ScoreTraffic

IDLE_SECONDS = 900.0
"""Seconds until a silent connection is closed. It lasts as long as an SMTP session."""

MAX_REPLIES = 20
"""Maximum number of replies to the commands of one read. A mail server waits for the reply to each
command that has one, so it sends no such command beside another."""

AUTHENTICATED = "auth_authen"
"""The macro with the name of an authenticated client, which sends mail of this site."""


@implementer(IPushProducer)
class MilterConnection(Protocol):
    """A connection of a mail server, with one mail after the other."""

    transport: Any
    factory: "MilterFactory"
    _log = Logger()

    def __init__(self, traffic: ScoreTraffic, clock: IReactorTime) -> None:
        self._traffic = traffic
        self._watchdog = Watchdog(clock, self.abort)
        self._reader = packets.PacketReader()
        self._steps: Steps | None = None
        self._client_ip = self._helo_name = ""
        self._is_authenticated = False
        self._copy: MailCopy | None = None
        self._is_in_mail = self._is_draining = self._is_closed = False
        self._replies = 0
        self.peer = ""

    # Methods that Twisted calls.

    def connectionMade(self) -> None:
        """Admit the mail server, or close the connection."""
        self.peer = client_ip_of(getattr(self.transport.getPeer(), "host", ""))
        if not self.factory.admits(self):
            self.abort()
        else:
            self._watchdog.watch(IDLE_SECONDS)
            self.transport.registerProducer(self, True)

    def dataReceived(self, data: bytes) -> None:
        """Run the complete commands. A peer that does not speak the protocol is disconnected."""
        self._watchdog.reset()
        self._replies = 0
        try:
            for packet in self._reader.feed(data):
                if self._is_closed:
                    return
                self._run(packet)
        except BadPacket as problem:
            self._log.warn(
                "The milter connection of {peer} is closed: {problem}",
                peer=self.peer,
                problem=problem,
            )
            self.abort()
        except Exception:
            self._log.failure("Failure in the milter connection of {peer}", peer=self.peer)
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release everything."""
        self._is_closed = True
        self._watchdog.stop()
        self._drop()
        self.factory.open.remove(self)

    # Methods of `LimitedConnection`.

    is_displaceable = False
    """A mail server keeps its connection as long as its own client stays."""

    def displace(self) -> None:
        """Close the connection."""
        self.abort()

    def drain(self) -> None:
        """Close the connection after the mail that is being received."""
        self._is_draining = True
        if not self._is_in_mail:
            self._close()

    def abort(self) -> None:
        """Abort the connection."""
        self._is_closed = True
        self.transport.abortConnection()

    # Methods of `IPushProducer`, whose replies wait while their buffer is full.

    def pauseProducing(self) -> None:  # noqa: N802
        """Read no commands while the mail server does not read the replies."""
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:  # noqa: N802
        """Read commands again."""
        self.transport.resumeProducing()

    def stopProducing(self) -> None:  # noqa: N802
        """Do nothing: `connectionLost` follows."""

    # The commands.

    def _close(self) -> None:
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def _run(self, packet: Packet) -> None:
        command, data = packet.command, packet.data
        if command == packets.NEGOTIATE:
            offer = packets.read_negotiation(data)
            self._steps = offer.steps
            self._reply(packets.negotiate(offer).encoded())
            return
        if self._steps is None:
            raise BadPacket(f"the command {command!r} before the negotiation")
        if command == packets.QUIT:
            self._close()
        elif command == packets.MACROS:
            if data[:1] == packets.MAIL:
                self._is_authenticated = bool(packets.read_macros(data).get(AUTHENTICATED))
        elif command in (packets.ABORT, packets.QUIT_BUT_KEEP):
            self._end_mail()
        elif command == packets.MAIL:
            self._begin_mail(packets.read_envelope_address(data))
        elif command == packets.END_OF_MAIL:
            self._finish_mail(data)
        else:
            self._take(command, data)
            if packets.SKIPPABLE[command] not in self._steps:
                self._reply(CONTINUE)

    def _reply(self, octets: bytes) -> None:
        self._replies += 1
        if self._replies > MAX_REPLIES:
            raise BadPacket("commands that were sent without waiting for the replies")
        self.transport.write(octets)

    def _take(self, command: bytes, data: bytes) -> None:
        """Take the data of a command whose reply may be left out."""
        if command == packets.CONNECT:
            self._end_mail()
            self._client_ip = client_ip_of(packets.read_connect(data))
            self._helo_name = ""
        elif command == packets.HELO:
            self._helo_name = packets.text_of(data.partition(b"\0")[0])
        elif command == packets.HEADER:
            has_space = Steps.LEADING_SPACE in (self._steps or Steps(0))
            self._add(packets.read_field(data, has_space=has_space))
        elif command == packets.END_OF_HEADER:
            self._add(b"\r\n")
        elif command == packets.BODY:
            self._add(data)

    def _begin_mail(self, sender: str) -> None:
        self._drop()
        self._is_in_mail = True
        session = Session(self._client_ip, self._helo_name, is_extended=True)
        is_authenticated, self._is_authenticated = self._is_authenticated, False
        self._copy = self._traffic.begin(session, sender, is_authenticated=is_authenticated)
        # Without a copy, the mail server does not need to send the mail.
        self._reply(CONTINUE if self._copy is not None else ACCEPT)

    def _add(self, octets: bytes) -> None:
        if self._copy is not None and not self._copy.add(octets):
            self._copy = None

    def _finish_mail(self, octets: bytes) -> None:
        self._add(octets)
        self._reply(CONTINUE)
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.finish()
        self._end_mail()

    def _end_mail(self) -> None:
        self._drop()
        self._is_in_mail = False
        if self._is_draining:
            self._close()

    def _drop(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.drop()


class MilterFactory(CountingFactory):
    """Creates the connections of mail servers and limits their number.

    :param allowed: networks of mail servers besides this machine and its private network. They may
        be changed.
    """

    _log = Logger()

    def __init__(
        self,
        traffic: ScoreTraffic,
        allowed: tuple[IpNetwork, ...],
        limits: ConnectionLimits,
        clock: IReactorTime,
    ) -> None:
        super().__init__(limits, clock)
        self._traffic = traffic
        self.allowed = allowed

    def make(self) -> MilterConnection:
        """Return a new connection."""
        return MilterConnection(self._traffic, self.clock)

    def admits(self, connection: MilterConnection) -> bool:
        """Return whether a mail server may use the endpoint."""
        peer = connection.peer
        is_allowed = is_in_networks(peer, self.allowed) if self.allowed else is_local_client(peer)
        if not is_allowed:
            self._log.warn("{peer} may not use the milter: see [milter] allow_from", peer=peer)
            return False
        rejection = self.open.admit(connection, peer)
        if rejection is not None:
            self._log.warn(
                "A milter connection of {peer} is closed: {problem}",
                peer=peer,
                problem=rejection.value,
            )
        return rejection is None
