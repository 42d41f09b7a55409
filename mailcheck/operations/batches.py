"""Removing much in several transactions: small ones, where a disk has no room for a large one."""

from collections.abc import Awaitable, Callable

from mailcheck.core.errors import StoreFull


async def remove_all(remove: Callable[[int], Awaitable[int]], most: int) -> int:
    """Remove until nothing is left, at most ``most`` at a time; gives how many were removed.

    :param remove: removes at most so many in one transaction, and gives how many.
    :raises StoreFull: the disk has no room to remove a single one.
    """
    removed = 0
    while True:
        try:
            count = await remove(most)
        except StoreFull:
            if most == 1:
                raise
            most = fewer(most)
            continue
        removed += count
        if count < most:
            return removed


def fewer(most: int) -> int:
    """Say how many to try where so many were too many for a full disk; one in the end."""
    return max(1, most // 8)
