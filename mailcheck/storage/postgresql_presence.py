"""Who works on a PostgreSQL database: one daemon, or several that share a Redis.

Each daemon holds an advisory lock as long as it lives, on a connection that is
used for nothing else: alone it holds it for itself, else together with others.
The server lets go of it when the daemon has gone, however that came.
"""

import time
from typing import Any

import psycopg2
from twisted.logger import Logger

from mailcheck.core.errors import StoreUnavailable
from mailcheck.storage.postgresql_connection import connect

LOCK = 0x6D61_696F

PATIENCE = 5.0
"""Seconds: a daemon that is started again must not stumble over what is left of itself."""

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

    def __init__(self, url: str, *, is_alone: bool) -> None:
        self._url = url
        self._is_alone = is_alone
        self._connection: Any = None

    def begin(self) -> None:
        """Take the lock.

        :raises StoreUnavailable: who holds it already, or why the server can't be asked.
        """
        deadline = time.monotonic() + PATIENCE
        while not self._take():
            if time.monotonic() > deadline:
                raise StoreUnavailable(_REFUSAL[self._is_alone])
            time.sleep(POLL)

    def keep(self) -> None:
        """Look whether the server still knows of us; after its restart it does not."""
        try:
            if not self._is_known() and not self._take():
                self._log.error("{problem}", problem=_REFUSAL[self._is_alone])
        except StoreUnavailable:
            return  # whoever needs the database says so

    def end(self) -> None:
        """Let go."""
        if self._connection is not None:
            self._connection.close()

    def _is_known(self) -> bool:
        if self._connection is None or self._connection.closed:
            return False
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except psycopg2.Error:
            self._connection.close()
            return False
        return True

    def _take(self) -> bool:
        kind = "" if self._is_alone else "_shared"
        try:
            connection = connect(self._url)
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_try_advisory_lock{kind}(%s)", (LOCK,))
                (has_lock,) = cursor.fetchone()
        except psycopg2.Error as error:
            said = " ".join(str(error).split())
            raise StoreUnavailable(f"the database can't be opened: {said}") from error
        if not has_lock:
            connection.close()
            return False
        self._connection = connection
        return True
