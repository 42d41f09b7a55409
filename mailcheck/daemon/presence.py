"""The presence of this daemon on a database that several can work on."""

from collections.abc import Callable, Collection
from typing import Protocol

from twisted.application.service import Service
from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure, StoreAway
from mailcheck.daemon.listening import CannotStart

INTERVAL = 10.0
"""Seconds between looks whether the database still knows of us."""


class Presence(Protocol):
    """What tells daemons of each other."""

    def begin(self) -> None:
        """Be there, or find out that one may not."""

    def keep(self) -> Collection[str] | None:
        """Be there again where that was forgotten.

        Gives the names of all daemons that are there, nothing where nobody can tell.
        """

    def end(self) -> None:
        """Be there no more."""


RETRY = 1.0
"""Seconds between two tries to reach a database that is away."""


class PresenceService(Service):
    """Keeps a daemon from a database that another one has for itself.

    A database that is away when the machine starts is waited for. Nothing listens yet, and the
    reactor does not run: a signal ends the wait and the process.

    :param pause: waits for some seconds; is told what is waited for.
    """

    _log = Logger()

    def __init__(self, presence: Presence, pause: Callable[[float, str], None]) -> None:
        self._presence = presence
        self._pause = pause

    def startService(self) -> None:
        """Be there.

        :raises CannotStart: another daemon has the database for itself.
        """
        has_waited = False
        while not self._has_begun(has_waited):
            has_waited = True
            self._pause(RETRY, "waiting for the database")
        if has_waited:
            self._log.info("the database is there")
        super().startService()

    def _has_begun(self, has_waited: bool) -> bool:
        try:
            self._presence.begin()
        except StoreAway as failure:
            if not has_waited:
                self._log.warn("waiting for the database: {reason}", reason=failure)
            return False
        except ExpectedFailure as failure:
            raise CannotStart(f"mailcheck: {failure}") from failure
        return True

    def stopService(self) -> None:
        """Be there no more."""
        super().stopService()
        self._presence.end()
