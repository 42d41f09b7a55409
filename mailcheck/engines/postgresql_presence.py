"""Who works on a PostgreSQL database: one daemon, or several that share a Redis.

Each daemon holds an advisory lock as long as it lives, on a connection that is
used for nothing else: alone it holds it for itself, else together with others.
The server lets go of it when the daemon has gone, however that came. Beside it one that
shares holds a lock that is its name: so the others find out that it is alive.
"""

import time
from typing import Any

import psycopg2
from twisted.logger import Logger

from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.postgresql_connection import connect, require_sessions, unreachable

LOCK = 0x6D61_696F

_NAMES = """
    SELECT lpad(to_hex((classid::bigint << 32) | objid::bigint), 16, '0') FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ShareLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

PATIENCE = 5.0
"""Seconds: the server may still hold the lock of a daemon that was just restarted."""

POLL = 0.2

_REFUSAL = {
    True: "another daemon works on this database, and without [cluster] redis one serves it: "
    "stop that one, or name the same Redis for both",
    False: "a daemon without [cluster] redis works on this database: stop it, or name the same "
    "Redis for it",
}


class DaemonPresence:
    """The lock of one daemon."""

    _log = Logger()

    def __init__(self, url: str, *, is_alone: bool, name: str = "") -> None:
        """Prepare. ``name``: up to 16 hexadecimal digits, for one that is not alone."""
        self._url = url
        self._name = name
        self._is_alone = is_alone
        self._connection: Any = None

    def begin(self, patience: float = PATIENCE) -> None:
        """Acquire the lock, and retry for ``patience`` seconds while another daemon holds it.

        :raises StoreAway: the server takes no connections.
        :raises StoreUnavailable: who holds it already, or why the server is of no use.
        """
        require_sessions(self._url)
        deadline = time.monotonic() + patience
        while not self._take():
            if time.monotonic() > deadline:
                raise StoreUnavailable(_REFUSAL[self._is_alone])
            time.sleep(POLL)

    def keep(self) -> frozenset[str] | None:
        """Look whether the server still knows of us; after its restart it does not.

        Gives the names of all daemons that it knows, nothing where it can't be asked.
        """
        try:
            names = self._names()
            if names is None and not self._take():
                self._log.error("{problem}", problem=_REFUSAL[self._is_alone])
        except StoreUnavailable:
            return None  # whoever needs the database says so
        return names

    def end(self) -> None:
        """Let go."""
        if self._connection is not None:
            self._connection.close()

    def _names(self) -> frozenset[str] | None:
        if self._connection is None or self._connection.closed:
            return None
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(_NAMES)
                return frozenset(name for (name,) in cursor)
        except psycopg2.Error:
            self._connection.close()
            return None

    def _take(self) -> bool:
        kind = "" if self._is_alone else "_shared"
        try:
            connection = connect(self._url)
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_try_advisory_lock{kind}(%s)", (LOCK,))
                (has_lock,) = cursor.fetchone()
                if has_lock and self._name:
                    name = int.from_bytes(bytes.fromhex(self._name), signed=True)
                    cursor.execute("SELECT pg_advisory_lock_shared(%s)", (name,))
        except psycopg2.Error as error:
            raise unreachable(error) from error
        if not has_lock:
            connection.close()
            return False
        self._connection = connection
        return True
