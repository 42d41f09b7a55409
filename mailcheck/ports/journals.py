"""Journals of failed access and of our own faults."""

from typing import NamedTuple, Protocol


class WebFault(NamedTuple):
    """An HTTP request that was answered with 5xx; texts are empty where nothing is known."""

    status: int
    client_ip: str
    method: str
    path: str
    reference: str
    problem: str


class AccessJournal(Protocol):
    """Hears of who was not let in."""

    def note_failed_access(self, kind: str, client_ip: str, why: str) -> None:
        """Note a wrong ``key`` or a failed ``sign-in``; never with the key or the name itself."""


class WebJournal(Protocol):
    """Hears of faults of ours."""

    def note_fault(self, fault: WebFault) -> None:
        """Note a request that was answered with 5xx."""
