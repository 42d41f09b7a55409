"""What a daemon counts of itself: numbers that cost little, read by whoever shows them.

Who does a thing owns its instruments; what they are called outside stands in one
table (`mailcheck.assembly.metrics`).
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

Labels = tuple[str, ...]
"""The values of a metric's labels, in their order."""

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds for what takes from a millisecond to half a minute."""

SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Upper bounds for how many things are done together."""


class Tally:
    """Counts things that happen, by their labels; a count never falls."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[Labels, int] = {}

    def add(self, *labels: str) -> None:
        """Count one."""
        self.counts[labels] = self.counts.get(labels, 0) + 1


class Distribution:
    """Counts values by size: ``buckets[i]`` those up to ``bounds[i]``, the last all larger ones."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.buckets = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Take a value in."""
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.buckets)


class Kind(Enum):
    """What sort of number a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    DISTRIBUTION = "distribution"


class Metric(NamedTuple):
    """A number with a name for the outside.

    ``read`` gives the present value for each set of labels that there is: a
    `Distribution` where that is the kind, else a number. It may neither block
    nor raise.
    """

    name: str
    text: str
    kind: Kind
    labels: Labels
    read: Callable[[], Mapping[Labels, float | Distribution]]


def outcome_of(*, is_determined: bool) -> str:
    """Give the label of a check by whether all of it could be found out."""
    return "determined" if is_determined else "undetermined"
