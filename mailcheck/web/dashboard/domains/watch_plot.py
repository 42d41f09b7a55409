"""The history of a watch as pictures: the score, each factor, and when something changed."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.watches import WatchChange, WatchScore

WIDTH, MARGIN = 640, 12
"""Of a picture, in its own units."""

HEIGHT, SMALL_HEIGHT = 120, 36
"""Of the plot of the score, and of that of a factor."""

LEVELS = {"error": "bad", "warning": "warn", "undetermined": "unknown", "note": "good"}
"""How a severity is coloured."""

MOST_MARKS = 300
"""Changes that are marked; so close to each other nobody sees more."""


class Mark(Struct, frozen=True):
    """A change: where it lies, how it is coloured, what it says."""

    x: float
    level: str
    text: str


class Plot(Struct, frozen=True):
    """A line of steps, since a value holds until the next; empty without any value."""

    title: str
    line: str
    height: int
    last: int
    marks: tuple[Mark, ...] = ()
    width: int = WIDTH


def draw_history(
    scores: Sequence[WatchScore], changes: Iterable[WatchChange], begins: Instant, ends: Instant
) -> tuple[Plot, list[Plot]] | None:
    """Draw the score with all changes, and each factor by itself; nothing without a score."""
    if not scores:
        return None
    steps = [(one.at, one.score) for one in scores]
    told = [one for one in changes if one.topic != "score"][-MOST_MARKS:]
    # The worst of one moment lies on top.
    told.sort(key=lambda one: list(LEVELS).index(one.severity), reverse=True)
    marks = tuple(
        Mark(
            _place(one.at, begins, ends),
            LEVELS[one.severity],
            f"{format_instant(one.at)[:16].replace('T', ' ')} {one.sentence}",
        )
        for one in told
    )
    whole = Plot("Score", _line(steps, begins, ends, 0, 100, HEIGHT), HEIGHT, steps[-1][1], marks)
    return whole, [_draw_factor(name.value, scores, begins, ends) for name in FactorName]


def _draw_factor(name: str, scores: Sequence[WatchScore], begins: Instant, ends: Instant) -> Plot:
    steps = [(one.at, one.points[name]) for one in scores if name in one.points]
    values = [value for _, value in steps]
    lowest, highest = min(0, *values, 0), max(1, *values, 1)
    line = _line(steps, begins, ends, lowest, highest, SMALL_HEIGHT)
    return Plot(name, line, SMALL_HEIGHT, values[-1] if values else 0)


def _place(at: Instant, begins: Instant, ends: Instant) -> float:
    part = (max(at, begins) - begins) / max(1, ends - begins)
    return round(MARGIN + min(1.0, part) * (WIDTH - 2 * MARGIN), 1)


def _line(
    steps: Sequence[tuple[Instant, int]],
    begins: Instant,
    ends: Instant,
    lowest: int,
    highest: int,
    height: int,
) -> str:
    """Write the points of a line that goes on level until the next value."""
    points = []
    last = None
    rise = (height - 2 * MARGIN) / (highest - lowest)
    for at, value in [*steps, (ends, steps[-1][1] if steps else 0)]:
        x = _place(at, begins, ends)
        y = round(height - MARGIN - (value - lowest) * rise, 1)
        if last is not None and last != y:
            points.append(f"{x},{last}")
        points.append(f"{x},{y}")
        last = y
    return " ".join(points) if steps else ""
