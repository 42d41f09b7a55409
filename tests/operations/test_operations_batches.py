"""Deleting many rows in several transactions, with smaller batches on a full disk."""

import pytest

from mailcheck.core.errors import StoreFull
from mailcheck.operations.concurrency import delete_in_batches
from tests.house import run
from tests.table import rows


class Shelf:
    """Contains items, and can delete a limited number of them at a time."""

    def __init__(self, things: int, room: int) -> None:
        self.things = things
        self._room = room
        self.removals: list[int] = []

    async def remove(self, most: int) -> int:
        """Delete at most this number of items."""
        if most > self._room:
            raise StoreFull
        count = min(most, self.things)
        self.things -= count
        self.removals.append(count)
        return count


@rows((200, [200, 200, 50]), (199, [25] * 18 + [0]), (24, [3] * 150 + [0]), (1, [1] * 450 + [0]))
def test_as_many_at_a_time_as_there_is_room_for(room: int, removals: list[int]) -> None:
    """If the disk is too full for a batch, batches of an eighth are used until all is deleted."""
    shelf = Shelf(450, room)
    assert run(delete_in_batches(shelf.remove, 200)) == 450
    assert shelf.removals == removals


def test_no_room_at_all() -> None:
    """If not a single row can be deleted, the disk is full."""
    with pytest.raises(StoreFull):
        run(delete_in_batches(Shelf(5, 0).remove, 200))
