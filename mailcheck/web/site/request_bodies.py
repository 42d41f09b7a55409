"""Requests as they come in: bodies bounded on every door, the name we are called by ignored."""

from twisted.web.server import Request

MAX_BODY = 65_536
"""Bytes: no request here needs more."""

HOST_NAME = b"localhost"

MAX_DRAINED = 16 * 1024 * 1024
"""Bytes of a body too large that are read, unkept, to answer it properly; then we hang up."""


class BoundedRequest(Request):
    """A request that never keeps more than `MAX_BODY` bytes; the handler refuses what is longer."""

    is_too_large = False
    _received = 0

    def getRequestHostname(self) -> bytes:
        """Give a name that is one: routing asks for it, fails over a bad one, and needs none."""
        return HOST_NAME

    def gotLength(self, length: int | None) -> None:
        """Refuse early what says itself that it is too large."""
        self.is_too_large = length is not None and length > MAX_BODY
        super().gotLength(0 if self.is_too_large else length)

    def handleContentChunk(self, data: bytes) -> None:
        """Keep a piece of the body while it is within the limit."""
        self._received += len(data)
        if self._received > MAX_DRAINED:
            self.loseConnection()
        if self._received > MAX_BODY:
            self.is_too_large = True
        else:
            super().handleContentChunk(data)
