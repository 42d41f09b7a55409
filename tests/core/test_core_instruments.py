"""Metrics and conditions in memory."""

from mailcheck.core.memory.instruments import Conditions, Distribution, Tally
from tests.table import rows


def test_tally() -> None:
    """Each set of labels has its own count."""
    tally = Tally()
    for labels in (("a", "b"), ("a",), ("a", "b")):
        tally.add(*labels)
    assert tally.counts == {("a", "b"): 2, ("a",): 1}


@rows((0.0, 0), (1.0, 0), (1.1, 1), (2.0, 1), (9.0, 2))
def test_distribution(value: float, bucket: int) -> None:
    """A value is counted in the first bucket whose bound it does not exceed, or in the last."""
    distribution = Distribution((1.0, 2.0))
    distribution.observe(value)
    assert distribution.buckets.index(1) == bucket
    assert (distribution.count, distribution.total) == (1, value)


def test_changes_of_state() -> None:
    """Each change is reported once. A healthy initial state is not reported."""
    conditions, told = Conditions(), list[tuple[str, str]]()
    conditions.listen(lambda subject, problem: told.append((subject, problem)))
    for problem in ("", "no room", "less room", "", "", "no room"):
        conditions.set("disk", problem)
    assert told == [("disk", "no room"), ("disk", ""), ("disk", "no room")]
    assert conditions.problems == {"disk": "no room"}
