"""The presence of this daemon on a database that several can work on."""

from collections.abc import Collection
from typing import Protocol

from twisted.application.service import Service

from mailcheck.core.errors import ExpectedFailure
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


class PresenceService(Service):
    """Keeps a daemon from a database that another one has for itself."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence

    def startService(self) -> None:
        """Be there.

        :raises CannotStart: another daemon has the database for itself.
        """
        try:
            self._presence.begin()
        except ExpectedFailure as failure:
            raise CannotStart(f"mailcheck: {failure}") from failure
        super().startService()

    def stopService(self) -> None:
        """Be there no more."""
        super().stopService()
        self._presence.end()
