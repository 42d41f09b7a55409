"""Parked waits, ended before anything they need is stopped."""

from typing import Protocol

from twisted.application.service import Service


class Feeds(Protocol):
    """Whoever knows the waits of one kind."""

    def close(self) -> None:
        """End all waits, and take no more."""


class ParkedWaits(Service):
    """Answers all waits when the daemon stops, so that clients go on elsewhere."""

    def __init__(self, *feeds: Feeds) -> None:
        self._feeds = feeds

    def stopService(self) -> None:
        """End all waits with 503 and a cursor."""
        super().stopService()
        for feeds in self._feeds:
            feeds.close()
