"""Calls under way, for clients of the handshake era that cancel by a second message.

Every client counts its requests 1, 2, 3, so an id means something only within
a session: a random name that ``initialize`` gives, and that is used for nothing else.
The second message may have come to another daemon, so all of them are told.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import Deferred

from mailcheck.core.identifiers import AccountId
from mailcheck.operations.ports import WakeUps
from mailcheck.web.mcp.json_rpc import RequestId


@dataclass(frozen=True, slots=True)
class CallKey:
    """Which call of whom."""

    account_id: AccountId
    session_id: str
    request_id: RequestId

    def __str__(self) -> str:
        """Write it as other daemons read it."""
        return json.dumps([self.account_id, self.session_id, self.request_id])


class CallsInFlight:
    """Remembers a call while it runs, and no longer."""

    def __init__(self, cancellations: WakeUps[str]) -> None:
        self._calls: dict[str, Deferred[Any]] = {}
        self._cancellations = cancellations
        cancellations.listen(self._cancel)

    @contextmanager
    def holding(self, key: CallKey | None, call: "Deferred[Any]") -> Iterator[None]:
        """Let a call be cancelled by its key while the block runs; without a key it can't be."""
        if key is not None:
            self._calls[str(key)] = call
        try:
            yield
        finally:
            # A client that reuses an id has taken its place.
            if key is not None and self._calls.get(str(key)) is call:
                del self._calls[str(key)]

    def cancel(self, key: CallKey) -> None:
        """Cancel a call, in whichever daemon it is; nothing happens when there is none."""
        self._cancellations.publish(str(key))

    def _cancel(self, key: str) -> None:
        call = self._calls.get(key)
        if call is not None:
            call.cancel()

    def __len__(self) -> int:
        return len(self._calls)
