"""The HTTP site: the API below its versioned path, the endpoint for agents, the dashboard."""

import math
from functools import partial
from typing import Any

from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.web.http import Request as HttpRequest
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request, Site

from mailcheck.core.instruments import Tally
from mailcheck.operations.journals import WebJournal
from mailcheck.web.site.client_addresses import LOCAL_PEER, ClientAddresses
from mailcheck.web.site.connection import (
    IDLE_TIMEOUT,
    ConnectionLimits,
    Connections,
    PacedRequest,
    WebConnection,
)
from mailcheck.web.site.errors import is_fault
from mailcheck.web.site.sending import AnswerRoom
from mailcheck.web.site.turned_away import AT_ONCE, HungUp, TurnedAway
from mailcheck.wire.urls import API_PATH, MCP_PATH

OPEN_PAGES = (b"healthz", b"readyz", b"clients")
"""First segments of what programs ask for without a key."""

MINUTE = 60
"""Seconds between two lines in the log that say the same."""


class _Root(Resource):
    """Sends what lies below the API's path there, agents to theirs, all else to the dashboard."""

    def __init__(
        self, api: IResource, mcp: IResource, pages: IResource, dashboard: IResource
    ) -> None:
        super().__init__()
        self._api = api
        self._mcp = mcp
        self._pages = pages
        self._dashboard = dashboard
        self._api_segments = [segment.encode() for segment in API_PATH.strip("/").split("/")]
        name = MCP_PATH.strip("/").encode()
        self._mcp_segments = ([name], [name, b""])

    def getChild(self, path: bytes, request: Request) -> IResource:
        """Find what answers; called with the first segment taken off the path."""
        segments = [_as_utf8(segment) for segment in (path, *(request.postpath or []))]
        depth = len(self._api_segments)
        if segments[:depth] == self._api_segments:
            request.prepath, request.postpath = segments[:depth], segments[depth:]
            return self._api
        if segments in self._mcp_segments:
            return self._mcp
        request.prepath, request.postpath = [], segments
        return self._pages if segments[0] in OPEN_PAGES else self._dashboard


def _as_utf8(segment: bytes) -> bytes:
    # Klein answers a path that is not UTF-8 by itself, past the gate and in plain text.
    return segment.decode("utf-8", "replace").encode("utf-8")


class BoundedSite(Site):
    """Makes connections, only so many, of requests whose answers are paced.

    It has no access log: its lines would hold share tokens.
    """

    noisy = False
    displayTracebacks = False  # noqa: N815
    _log = Logger()

    def __init__(
        self,
        root: IResource,
        limits: ConnectionLimits,
        addresses: ClientAddresses,
        clock: IReactorTime,
        journal: WebJournal,
    ) -> None:
        self._journal = journal
        self.room = AnswerRoom()
        self.connections = Connections(limits, addresses.is_shared, clock)
        super().__init__(
            root,
            requestFactory=partial(PacedRequest, self.room, addresses),
            # No form is read here; a broken one would be answered past the gate.
            parsePOSTFormSubmission=False,
            timeout=IDLE_TIMEOUT,
            reactor=clock,
        )
        self._clock = clock
        self.answers = Tally()
        self._turned_away = 0
        self._warned_at = -math.inf

    def protocol(self) -> Any:
        """Make what Twisted would make, but for HTTP/2, which has none of the bounds."""
        return WebConnection(self.connections)

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Make a connection, or what turns its client away."""
        connection = super().buildProtocol(addr)
        if self.connections.admit(connection, getattr(addr, "host", None) or LOCAL_PEER):
            return connection
        return self._turn_away()

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802
        """Name what is spoken, for endpoints with TLS."""
        return [b"http/1.1"]

    def log(self, request: HttpRequest) -> None:
        """Count the answer; a line is written where the fault is ours."""
        self.answers.add(str(request.code))
        if is_fault(request.code) and isinstance(request, PacedRequest):
            self._journal.note_fault(request.fault())

    def _turn_away(self) -> Protocol:
        self._warn()
        if self._turned_away >= AT_ONCE:
            return HungUp()
        self._turned_away += 1
        return TurnedAway(self._clock, self._forget_turned_away)

    def _forget_turned_away(self) -> None:
        self._turned_away -= 1

    def _warn(self) -> None:
        now = self._clock.seconds()
        if now - self._warned_at >= MINUTE:
            self._warned_at, count = now, len(self.connections)
            self._log.warn("HTTP clients are turned away: {count} are connected", count=count)


def build_site(
    api: IResource,
    mcp: IResource,
    pages: IResource,
    dashboard: IResource,
    limits: ConnectionLimits,
    addresses: ClientAddresses,
    clock: IReactorTime,
    journal: WebJournal,
) -> BoundedSite:
    """Build the factory for HTTP connections."""
    return BoundedSite(_Root(api, mcp, pages, dashboard), limits, addresses, clock, journal)
