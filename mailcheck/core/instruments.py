"""What a daemon knows of itself: numbers that cost little to count, and what is not well.

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


Tell = Callable[[str, str], None]
"""Told of a change: what has changed, and what is wrong with it; empty where it is well again."""


class Conditions:
    """Knows what is well and what is not: the disk, the store, a resolver, a list, ...

    What was never heard of is well, and nobody is told that it is.
    """

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._causes: dict[str, str] = {}
        self._listeners: list[Tell] = []

    def listen(self, tell: Tell) -> None:
        """Call ``tell`` for every change from now on."""
        self._listeners.append(tell)

    def set(self, subject: str, problem: str) -> None:
        """Say how something is; an empty ``problem`` says that it is well.

        Every client may read the problem. Tell hosts and files by `explain` before it.

        Cheap where nothing changes. That one is wrong in another way now is no change: it
        can be asked, and nobody is told.
        """
        was_well = not self._problems.get(subject)
        self._problems[subject] = problem
        if was_well != (not problem):
            for tell in self._listeners:
                tell(subject, self.for_operator(subject))

    def explain(self, subject: str, cause: str) -> None:
        """Tell the listeners, and no client, why something is not well."""
        self._causes[subject] = cause

    def for_operator(self, subject: str) -> str:
        """Return what is wrong with a subject, and why; empty where it is well."""
        problem, cause = self._problems.get(subject, ""), self._causes.get(subject, "")
        return f"{problem}: {cause}" if problem and cause else problem

    @property
    def problems(self) -> Mapping[str, str]:
        """Give what is wrong by what was heard of; an empty text where nothing is."""
        return self._problems
