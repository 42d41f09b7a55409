"""Parked waits, ended before anything they need is stopped."""

from twisted.application.service import Service

from mailcheck.operations.inbox_feeds import InboxFeeds


class ParkedWaits(Service):
    """Answers all waits when the daemon stops, so that clients go on elsewhere."""

    def __init__(self, feeds: InboxFeeds) -> None:
        self._feeds = feeds

    def stopService(self) -> None:
        """End all waits with 503 and a cursor."""
        super().stopService()
        self._feeds.close()
