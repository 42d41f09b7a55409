"""Protocols for logs of failed access and of internal errors."""

from typing import NamedTuple, Protocol


class WebFault(NamedTuple):
    """An HTTP request that was answered with 5xx. Unknown texts are empty."""

    status: int
    client_ip: str
    method: str
    path: str
    reference: str
    problem: str


class AccessJournal(Protocol):
    """Records failed authentication."""

    def note_failed_access(self, kind: str, client_ip: str, why: str) -> None:
        """Record a wrong ``key`` or a failed ``sign-in``, never with the key or name itself."""


class WebJournal(Protocol):
    """Records internal errors."""

    def note_fault(self, fault: WebFault) -> None:
        """Record a request that was answered with 5xx."""
