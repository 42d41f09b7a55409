"""Metrics and health conditions that the daemon keeps in memory.

Each component owns its instruments. One table (`mailcheck.assembly.metrics`) gives them their
public names.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

Labels = tuple[str, ...]
"""Values of a metric's labels, in their order."""

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds of buckets for durations from a millisecond to half a minute."""

SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Upper bounds of buckets for the sizes of batches."""


class Tally:
    """A counter with labels. Counts never decrease."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[Labels, int] = {}

    def add(self, *labels: str) -> None:
        """Increase the count for these labels by one."""
        self.counts[labels] = self.counts.get(labels, 0) + 1


class Distribution:
    """A histogram: ``buckets[i]`` counts values up to ``bounds[i]``, the last one all others."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.buckets = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Record a value."""
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.buckets)


class Kind(Enum):
    """Type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    DISTRIBUTION = "distribution"


class Metric(NamedTuple):
    """A metric with its public name.

    ``read`` returns the current value for each set of labels: a `Distribution` for that kind,
    else a number. It must not block or raise.
    """

    name: str
    text: str
    kind: Kind
    labels: Labels
    read: Callable[[], Mapping[Labels, float | Distribution]]


def outcome_of(*, is_determined: bool) -> str:
    """Return the label that says whether a check could determine its result completely."""
    return "determined" if is_determined else "undetermined"


Tell = Callable[[str, str], None]
"""Callback for a change: the subject and its problem, which is empty after recovery."""


class Conditions:
    """Current problems of the disk, the store, resolvers, blocklists and other subjects.

    An unknown subject counts as healthy. Its first report notifies listeners only of a problem.
    """

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._causes: dict[str, str] = {}
        self._listeners: list[Tell] = []

    def listen(self, tell: Tell) -> None:
        """Call ``tell`` for every change from now on."""
        self._listeners.append(tell)

    def set(self, subject: str, problem: str) -> None:
        """Set the problem of a subject; an empty text means that it is healthy.

        Every client may read the problem, so it must not name hosts or files. Pass those to
        `explain` before this call.

        Calls without a change are cheap. A different problem of the same subject is stored, but
        listeners are not notified of it.
        """
        was_well = not self._problems.get(subject)
        self._problems[subject] = problem
        if was_well != (not problem):
            for tell in self._listeners:
                tell(subject, self.for_operator(subject))

    def explain(self, subject: str, cause: str) -> None:
        """Store why a subject has a problem, for listeners and operators but not for clients."""
        self._causes[subject] = cause

    def for_operator(self, subject: str) -> str:
        """Return the problem of a subject with its cause. Empty if it is healthy."""
        problem, cause = self._problems.get(subject, ""), self._causes.get(subject, "")
        return f"{problem}: {cause}" if problem and cause else problem

    @property
    def problems(self) -> Mapping[str, str]:
        """The problems by subject. The text is empty for a healthy subject."""
        return self._problems


class RedisFigures:
    """Metrics: the seconds until each answer, and the numbers of messages sent and received."""

    def __init__(self) -> None:
        self.answers = Distribution(SECONDS)
        self.messages = Tally()
