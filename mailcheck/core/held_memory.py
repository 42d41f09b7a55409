"""Who makes room when all memory for mail, or for answers, is taken."""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Holder(Protocol):
    """A client, and the octets that are held for him."""

    size: int


AnyHolder = TypeVar("AnyHolder", bound=Holder)


def largest_holder(holders: Iterable[AnyHolder]) -> AnyHolder:
    """Give who makes room for the others, by losing something of what is held for him.

    A few who send or read slowly keep nobody else out then, since they hold most.
    """
    return max(holders, key=lambda holder: holder.size)
