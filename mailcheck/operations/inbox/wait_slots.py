"""How many waits a key may hold parked at a time."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import TooManyWaits
from mailcheck.core.identifiers import KeyId

RETRY_AFTER = 1
"""Seconds: a wait ends any moment."""


class WaitSlots:
    """Counts the parked waits of each key in this daemon."""

    def __init__(self, slots_per_key: int) -> None:
        self._slots_per_key = slots_per_key
        self._taken: Counter[KeyId] = Counter()

    @contextmanager
    def taken_by(self, caller: Caller) -> Iterator[None]:
        """Hold a slot while the block runs.

        :raises TooManyWaits: all slots of the key are taken.
        """
        if self._taken[caller.key_id] >= self._slots_per_key:
            raise TooManyWaits(
                f"this key has {self._slots_per_key} waits parked, its limit; "
                f"end one, or raise [limits] waits_per_key",
                RETRY_AFTER,
            )
        self._taken[caller.key_id] += 1
        try:
            yield
        finally:
            self._taken[caller.key_id] -= 1
            if not self._taken[caller.key_id]:
                del self._taken[caller.key_id]
