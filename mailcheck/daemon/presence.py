"""Registration of this daemon in a database that several daemons may share."""

from collections.abc import Callable, Collection
from typing import Protocol

from twisted.application.service import Service
from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure, StoreAway
from mailcheck.daemon.listening import CannotStart

INTERVAL = 10.0
"""Seconds between checks that the database still has the registration."""


class Presence(Protocol):
    """The registration of daemons in the database."""

    def begin(self) -> None:
        """Register this daemon, or fail if the database is in exclusive use."""

    def require_free(self) -> None:
        """Fail as `begin` would, and register nothing."""

    def keep(self) -> Collection[str] | None:
        """Register again if the registration was lost.

        Return the names of all registered daemons, or `None` if the database cannot tell.
        """

    def end(self) -> None:
        """Remove the registration."""


RETRY = 1.0
"""Seconds between attempts to reach an unavailable database."""


class PresenceService(Service):
    """Registers the daemon, and refuses a database that another daemon uses exclusively.

    If the database is unavailable at startup, the service waits for it. At that time no
    port is open and the reactor does not run, so a signal ends the process.

    :param pause: waits for a number of seconds; gets the reason too.
    """

    _log = Logger()

    def __init__(self, presence: Presence, pause: Callable[[float, str], None]) -> None:
        self._presence = presence
        self._pause = pause

    def startService(self) -> None:
        """Register the daemon.

        :raises CannotStart: another daemon uses the database exclusively.
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
        """Remove the registration."""
        super().stopService()
        self._presence.end()
