"""How many waits a key may hold parked at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import TooManyWaits
from mailcheck.operations.places import NoPlace
from mailcheck.operations.ports import HeldPlaces

RETRY_AFTER = 1
"""Seconds: a wait ends any moment."""


class WaitSlots:
    """Counts the parked waits of each key; ``places`` has ``slots_per_key`` for each."""

    def __init__(self, slots_per_key: int, places: HeldPlaces) -> None:
        self._slots_per_key = slots_per_key
        self._places = places

    @asynccontextmanager
    async def taken_by(self, caller: Caller) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        :raises TooManyWaits: all slots of the key are taken.
        """
        try:
            async with self._places.held(caller.key_id):
                yield
        except NoPlace:
            raise TooManyWaits(
                f"this key has {self._slots_per_key} waits parked, its limit; "
                f"end one, or raise [limits] waits_per_key",
                RETRY_AFTER,
            ) from None
