"""Protocols for logs of failed access and of internal errors."""

from typing import NamedTuple, Protocol

from mailcheck.core.identifiers import AccountId


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
        """Record a wrong ``key``, or a failed ``sign-in``, ``login`` or ``oauth`` request.

        Secrets and names are never recorded.
        """


class LoginJournal(Protocol):
    """Records what mail programs do on one port."""

    def note_login(self, client_ip: str, account_id: AccountId) -> None:
        """Record a login."""

    def note_failed_login(self, client_ip: str, why: str) -> None:
        """Record a rejected login, never with the name or the password."""

    def note_fetched(self) -> None:
        """Record that a program fetches a whole message."""


class WebJournal(Protocol):
    """Records internal errors."""

    def note_fault(self, fault: WebFault) -> None:
        """Record a request that was answered with 5xx."""
