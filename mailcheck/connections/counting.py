"""The open connections of one port: their limits, and their end when the daemon stops."""

from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.memory.client_limits import ConnectionCounts, ConnectionLimits
from mailcheck.core.network_addresses import is_local_client
from mailcheck.operations.concurrency import stop_timer


class Rejection(Enum):
    """Why a connection is not admitted."""

    SHUTTING_DOWN = "the daemon is stopping"
    TOO_MANY = "the maximum number of connections is reached"


class LimitedConnection(Protocol):
    """A connection that can be closed for another client or when the daemon stops."""

    @property
    def is_displaceable(self) -> bool:
        """Whether the connection may be closed for a client that has none."""

    def displace(self) -> None:
        """Close the connection for another client."""

    def drain(self) -> None:
        """Close the connection when the current command is complete."""

    def abort(self) -> None:
        """Abort the connection."""


C = TypeVar("C", bound=LimitedConnection)


class OpenConnections(Generic[C]):
    """The connections of one port.

    At the maximum, the connection that has been idle longest is closed for a client without one.
    Private and loopback clients are exempt from the limit of an address. ``limits`` may be changed.
    """

    def __init__(self, limits: ConnectionLimits, clock: IReactorTime) -> None:
        self.limits = limits
        self._clock = clock
        self._connections: set[C] = set()
        self._admitted: ConnectionCounts[C] = ConnectionCounts()
        self._by_activity: OrderedDict[C, None] = OrderedDict()
        self._drained: Deferred[None] | None = None

    def __iter__(self) -> Iterator[C]:
        """Iterate over the connections that are open now, admitted or not."""
        return iter(tuple(self._connections))

    def __len__(self) -> int:
        """Return the number of connections, admitted or not."""
        return len(self._connections)

    def add(self, connection: C) -> None:
        """Add a new connection."""
        self._connections.add(connection)

    @property
    def is_crowded(self) -> bool:
        """Whether so many connections are open that the next one cannot even be rejected."""
        return len(self._connections) >= self.limits.open

    def admit(self, connection: C, client_ip: str) -> Rejection | None:
        """Count a connection for its client's address, or return why it is rejected.

        It is called again when the address of the client changes.
        """
        self._admitted.remove(connection)
        self._by_activity.pop(connection, None)
        if self._drained is not None:
            return Rejection.SHUTTING_DOWN
        if len(self._admitted) >= self.limits.in_all and not self._displace_idlest(client_ip):
            return Rejection.TOO_MANY
        has_its_share = self._admitted.of_client(client_ip) >= self.limits.of_address
        if has_its_share and not is_local_client(client_ip):
            return Rejection.TOO_MANY
        self._admitted.add(connection, client_ip)
        self._by_activity[connection] = None
        return None

    def note_activity(self, connection: C) -> None:
        """Move an admitted connection to the end of the order of idle time."""
        if connection in self._by_activity:
            self._by_activity.move_to_end(connection)

    def remove(self, connection: C) -> None:
        """Remove a connection that has ended."""
        self._admitted.remove(connection)
        self._by_activity.pop(connection, None)
        self._connections.discard(connection)
        self._check_drained()

    def drain(self, grace: float) -> Deferred[None]:
        """Close all connections: idle ones at once, the others when they have finished.

        Fires when all connections are closed. Those left after ``grace`` seconds are aborted.
        """

        def abort_the_rest() -> None:
            for connection in tuple(self._connections):
                connection.abort()

        timeout = self._clock.callLater(grace, abort_the_rest)

        def when_gone(_: None) -> None:
            stop_timer(timeout)

        drained: Deferred[None] = Deferred()
        drained.addCallback(when_gone)
        self._drained = drained
        for connection in tuple(self._connections):
            connection.drain()
        self._check_drained()
        return drained

    def _displace_idlest(self, client_ip: str) -> bool:
        """Close the connection that has been idle longest; only for a client without one."""
        if self._admitted.of_client(client_ip):
            return False
        for idlest in self._by_activity:
            if idlest.is_displaceable:
                self._admitted.remove(idlest)
                del self._by_activity[idlest]
                idlest.displace()
                return True
        return False

    def _check_drained(self) -> None:
        if self._drained is not None and not self._connections and not self._drained.called:
            self._drained.callback(None)
