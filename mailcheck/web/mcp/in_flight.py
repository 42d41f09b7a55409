"""Calls under way, for clients of the handshake era that cancel by a second message.

Every client counts its requests 1, 2, 3, so an id means something only within
a session: a random name that ``initialize`` gives, and that is used for nothing else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import Deferred

from mailcheck.core.identifiers import AccountId
from mailcheck.web.mcp.json_rpc import RequestId


@dataclass(frozen=True, slots=True)
class CallKey:
    """Which call of whom."""

    account_id: AccountId
    session_id: str
    request_id: RequestId


class CallsInFlight:
    """Remembers a call while it runs, and no longer."""

    def __init__(self) -> None:
        self._calls: dict[CallKey, Deferred[Any]] = {}

    @contextmanager
    def holding(self, key: CallKey | None, call: "Deferred[Any]") -> Iterator[None]:
        """Let a call be cancelled by its key while the block runs; without a key it can't be."""
        if key is not None:
            self._calls[key] = call
        try:
            yield
        finally:
            # A client that reuses an id has taken its place.
            if key is not None and self._calls.get(key) is call:
                del self._calls[key]

    def cancel(self, key: CallKey) -> None:
        """Cancel a call; nothing happens when it is over or was never there."""
        call = self._calls.get(key)
        if call is not None:
            call.cancel()

    def __len__(self) -> int:
        return len(self._calls)
