"""How many connections there are, in all and of each client."""

from collections import Counter
from typing import Generic, TypeVar

from mailcheck.core.network_addresses import counting_key

Connection = TypeVar("Connection")


class ConnectionCounts(Generic[Connection]):
    """Connections, each counted for its client (`counting_key`)."""

    def __init__(self) -> None:
        self._keys: dict[Connection, str] = {}
        self._of_client: Counter[str] = Counter()

    def __len__(self) -> int:
        """Say how many there are."""
        return len(self._keys)

    def __contains__(self, connection: Connection) -> bool:
        """Tell whether a connection is counted."""
        return connection in self._keys

    def of_client(self, client_ip: str) -> int:
        """Say how many there are of one client."""
        return self._of_client[counting_key(client_ip)]

    def add(self, connection: Connection, client_ip: str) -> None:
        """Count a connection that is not counted yet."""
        key = self._keys[connection] = counting_key(client_ip)
        self._of_client[key] += 1

    def remove(self, connection: Connection) -> None:
        """Uncount a connection, if it is counted."""
        key = self._keys.pop(connection, None)
        if key is not None:
            self._of_client[key] -= 1
            if not self._of_client[key]:
                del self._of_client[key]
