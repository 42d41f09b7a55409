"""Checks under way: each asks name servers hundreds of questions, and accounts take turns."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from twisted.internet.interfaces import IReactorTime

from mailcheck.core.errors import Overloaded, TooManyChecks
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.places import NoPlace, Places

AT_ONCE = 12
"""Checks under way at a time: a domain that answers all it can keeps the reactor busy for a
twentieth of a second."""

OF_ACCOUNT = 3
"""Of those one account may have so many; what it asks for beyond waits."""

WAITING = 400
"""Checks that may wait for a turn."""

PATIENCE = 25.0
"""Seconds that they wait: a check takes ten at most, and programs give up after thirty or more."""

RETRY_AFTER = 10
"""Seconds: by then any check under way has ended."""


class CheckTurns:
    """Lets accounts check in turn."""

    def __init__(self, clock: IReactorTime) -> None:
        self._places: Places[AccountId] = Places(
            clock, at_once=AT_ONCE, of_one=OF_ACCOUNT, waiting=WAITING
        )

    @asynccontextmanager
    async def held(self, account_id: AccountId) -> AsyncIterator[None]:
        """Have a turn while the block runs.

        :raises TooManyChecks: too many of the account's own are before it.
        :raises Overloaded: too many of others are.
        """
        try:
            async with self._places.held(account_id, PATIENCE):
                yield
        except NoPlace as failure:
            if not failure.is_own_share:
                raise Overloaded("too many checks are under way: try again in a moment") from None
            raise TooManyChecks(
                f"{OF_ACCOUNT} checks of this account are under way and more wait for their turn;"
                " send the next ones when those have been answered",
                RETRY_AFTER,
            ) from None
