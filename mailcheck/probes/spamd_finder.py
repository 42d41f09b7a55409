"""Finding the spamd to use: the configured one, a running one, or one of our own."""

from collections.abc import Sequence
from typing import Protocol

from mailcheck.checks.deliverability.content_filter import FilterProblem
from mailcheck.operations.deliverability.filter_ports import FilterFailed, PrivateSpamd
from mailcheck.probes.spamd_address import SpamdAddress, SpamdReactor
from mailcheck.probes.spamd_client import SpamdClient

USUAL_PLACES = (
    SpamdAddress("127.0.0.1", 783),  # Debian, Ubuntu, FreeBSD, Homebrew
    SpamdAddress(path="/run/spamd.sock"),
    SpamdAddress(path="/run/spamassassin/spamd.sock"),
    SpamdAddress(path="/var/run/spamassassin/spamd.sock"),
)
"""Where ``auto`` looks. What listens there was put there by root, so it is a filter of this
machine's operator; a mail is shown to nobody else."""

ENGINE = "SpamAssassin"


class SpamdFinder(Protocol):
    """Says whom to ask."""

    async def find(self) -> tuple[SpamdClient, str]:
        """Give a client for the spamd to use, and the name of its engine.

        :raises FilterFailed: there is none.
        """

    def forget(self) -> None:
        """Look again the next time: what was found does not answer."""


class ConfiguredSpamd:
    """The one at an address that the operator named."""

    def __init__(self, reactor: SpamdReactor, address: SpamdAddress) -> None:
        self._client = SpamdClient(reactor, address)

    async def find(self) -> tuple[SpamdClient, str]:
        """Give it, whether it answers or not."""
        return self._client, ENGINE

    def forget(self) -> None:
        """Have no other."""


class NoSpamd:
    """The content filter is switched off."""

    async def find(self) -> tuple[SpamdClient, str]:
        """Refuse."""
        raise FilterFailed(FilterProblem.OFF)

    def forget(self) -> None:
        """Have nothing to forget."""


class AutomaticSpamd:
    """One that runs on this machine already, else one of our own.

    A running one is remembered until it does not answer, and looked for each
    time before our own is started.
    """

    def __init__(
        self,
        reactor: SpamdReactor,
        private: PrivateSpamd,
        places: Sequence[SpamdAddress] = USUAL_PLACES,
    ) -> None:
        self._reactor = reactor
        self._private = private
        self._places = places
        self._running: SpamdClient | None = None

    async def find(self) -> tuple[SpamdClient, str]:
        """Give the running one, else start our own."""
        if self._running is None and not self._private.is_running:
            self._running = await self._find_running()
        if self._running is not None:
            return self._running, ENGINE
        path = await self._private.socket_path()
        client = SpamdClient(self._reactor, SpamdAddress(path=path))
        return client, self._private.engine

    def forget(self) -> None:
        """Look for a running one again."""
        self._running = None

    async def _find_running(self) -> SpamdClient | None:
        for place in self._places:
            client = SpamdClient(self._reactor, place)
            if await client.answers():
                return client
        return None
