"""What a daemon counts of itself."""

import pytest

from mailcheck.core.instruments import Conditions, Distribution, Tally


def test_tally() -> None:
    """Each set of labels has a count of its own."""
    tally = Tally()
    for labels in (("a", "b"), ("a",), ("a", "b")):
        tally.add(*labels)
    assert tally.counts == {("a", "b"): 2, ("a",): 1}


@pytest.mark.parametrize(("value", "bucket"), [(0.0, 0), (1.0, 0), (1.1, 1), (2.0, 1), (9.0, 2)])
def test_distribution(value: float, bucket: int) -> None:
    """A value counts where it is at most the bound, and behind the last bound else."""
    distribution = Distribution((1.0, 2.0))
    distribution.observe(value)
    assert distribution.buckets.index(1) == bucket
    assert (distribution.count, distribution.total) == (1, value)


def test_changes_of_state() -> None:
    """A change is told once, whatever is said between; what begins well is no news."""
    conditions, told = Conditions(), list[tuple[str, str]]()
    conditions.listen(lambda subject, problem: told.append((subject, problem)))
    for problem in ("", "no room", "less room", "", "", "no room"):
        conditions.set("disk", problem)
    assert told == [("disk", "no room"), ("disk", ""), ("disk", "no room")]
    assert conditions.problems == {"disk": "no room"}
