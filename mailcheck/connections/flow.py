"""Large output, sent no faster than the client reads it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer, IReactorTime
from zope.interface import implementer

from mailcheck.operations.concurrency import stop_timer


@implementer(IPushProducer)
class OutputFlow:
    """Writes pieces to a transport and waits while its buffer is full.

    The buffer of the transport never has more than one piece beyond its own limit (64 KiB).

    :param on_stuck: called if the client does not read for ``patience`` seconds.
    """

    def __init__(self, transport: Any, clock: IReactorTime, patience: float, on_stuck: Any) -> None:
        self._transport = transport
        self._clock = clock
        self._patience = patience
        self._on_stuck = on_stuck
        self._is_paused = False
        self.is_stopped = False
        """Whether the connection is lost."""
        self._waiting: Deferred[None] | None = None

    async def send(self, pieces: AsyncIterator[bytes]) -> None:
        """Write all pieces. Stop early if the connection is lost."""
        with self.registered():
            async for piece in pieces:
                if self.is_stopped:
                    return
                await self.write(piece)

    @contextmanager
    def registered(self) -> Iterator[None]:
        """Let the transport tell when its buffer is full while the block runs."""
        self._transport.registerProducer(self, True)
        try:
            yield
        finally:
            if not self.is_stopped:
                self._transport.unregisterProducer()

    async def write(self, piece: bytes) -> None:
        """Write a piece, and wait while the buffer is full."""
        self._transport.write(piece)
        if self._is_paused:
            await self._until_resumed()

    async def _until_resumed(self) -> None:
        waiting: Deferred[None] = Deferred()
        self._waiting = waiting
        timeout = self._clock.callLater(self._patience, self._on_stuck)
        try:
            await waiting
        finally:
            self._waiting = None
            stop_timer(timeout)

    def pauseProducing(self) -> None:  # noqa: N802
        """Wait before the next piece: the buffer is full."""
        self._is_paused = True

    def resumeProducing(self) -> None:  # noqa: N802
        """Continue: the buffer is empty."""
        self._is_paused = False
        if self._waiting is not None:
            self._waiting.callback(None)

    def stopProducing(self) -> None:  # noqa: N802
        """Stop: the connection is lost."""
        self.is_stopped = True
        self.resumeProducing()
