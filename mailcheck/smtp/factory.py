"""Makes the connections of one port and keeps count of them."""

from collections import Counter

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.mail.smtp import SMTPFactory

from mailcheck.core.client_limits import ConnectionCounts
from mailcheck.core.identifiers import AccountId
from mailcheck.core.network_addresses import is_local_client
from mailcheck.smtp import replies
from mailcheck.smtp.ports import MailJournal, MailReceiver
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.settings import SmtpSettings
from mailcheck.smtp.transaction import MemoryBudget
from mailcheck.smtp.verbs import VERBS


class MailFactory(SMTPFactory):
    """twisted.mail's factory with our own receive path.

    Listen with it on any endpoint. To stop: close the port, then `drain`.
    """

    noisy = False

    def __init__(
        self,
        receiver: MailReceiver,
        settings: SmtpSettings,
        clock: IReactorTime,
        journal: MailJournal,
    ) -> None:
        self.domain = settings.host_name.encode("ascii")
        self._receiver = receiver
        self._settings = settings
        self._clock = clock
        self.journal = journal
        self.memory = MemoryBudget(settings.limits.held_bytes)
        self.slow_replies: Counter[AccountId] = Counter()
        self._connections: set[MailProtocol] = set()
        self._admitted: ConnectionCounts[MailProtocol] = ConnectionCounts()
        self._by_activity: dict[MailProtocol, None] = {}
        self._drained: Deferred[None] | None = None

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    def buildProtocol(self, addr: IAddress | None) -> MailProtocol:
        """Make the protocol of a new connection."""
        connection = MailProtocol(self._receiver, self._settings, self._clock, VERBS, self)
        connection.factory = self
        self._connections.add(connection)
        return connection

    def admit(self, connection: MailProtocol) -> bytes | None:
        """Count a connection under its client's address, or give the reply that turns it away."""
        self._admitted.remove(connection)
        self._by_activity.pop(connection, None)
        limits = self._settings.limits
        if self._drained is not None:
            return replies.SHUTTING_DOWN
        client_ip = connection.client.claimed_ip
        if len(self._admitted) >= limits.connections and not self._make_room(client_ip):
            return replies.TOO_MANY_CONNECTIONS
        has_its_share = self._admitted.of_client(client_ip) >= limits.connections_per_address
        if has_its_share and not is_local_client(client_ip):
            return replies.TOO_MANY_CONNECTIONS
        self._admitted.add(connection, client_ip)
        self._by_activity[connection] = None
        return None

    def note_activity(self, connection: MailProtocol) -> None:
        """Put a connection behind all that have been idle for longer."""
        if connection in self._by_activity:
            del self._by_activity[connection]
            self._by_activity[connection] = None

    def _make_room(self, client_ip: str) -> bool:
        """Hang up on who has been idle longest without a mail, for a client who has nothing yet.

        Who waits for a reply that is to come late gets it now.
        """
        if self._admitted.of_client(client_ip):
            return False
        for idlest in self._by_activity:
            if idlest.is_dawdling or (idlest.is_at_rest and idlest.transaction is None):
                self._admitted.remove(idlest)
                del self._by_activity[idlest]
                if idlest.is_dawdling:
                    idlest.drain(replies.ROOM_FOR_OTHERS)
                else:
                    idlest.part(replies.ROOM_FOR_OTHERS)
                return True
        return False

    def forget(self, connection: MailProtocol) -> None:
        """Uncount a connection that has ended."""
        self._admitted.remove(connection)
        self._by_activity.pop(connection, None)
        self._connections.discard(connection)
        self._look_whether_drained()

    def drain(self, grace: float) -> Deferred[None]:
        """Hang up on everyone, idle clients at once, those with a mail on its way after it.

        Fires when all are gone; after ``grace`` seconds the rest are cut off.
        """
        cut_off = self._clock.callLater(grace, self._cut_off)

        def when_gone(_: None) -> None:
            if cut_off.active():
                cut_off.cancel()

        drained: Deferred[None] = Deferred()
        drained.addCallback(when_gone)
        self._drained = drained
        for connection in tuple(self._connections):
            connection.drain()
        self._look_whether_drained()
        return drained

    def _look_whether_drained(self) -> None:
        if self._drained is not None and not self._connections and not self._drained.called:
            self._drained.callback(None)

    def _cut_off(self) -> None:
        for connection in tuple(self._connections):
            connection.cut_off()
