"""Small line charts in SVG. Templates draw them, and texts beside them give the values."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.core.domains.watches import WatchScore
from mailcheck.core.instants import Instant

WIDTH, HEIGHT, MARGIN = 120, 32, 4
"""Size and margin of a trend, in its own units."""


class Trend(Struct, frozen=True):
    """A line without labels. ``points`` are its corners, ``end`` is the last one."""

    points: str
    end: tuple[float, float]
    first: float
    last: float
    width: int = WIDTH
    height: int = HEIGHT


def draw_trend(values: Sequence[float], best: float) -> Trend | None:
    """Draw values at equal distances, oldest first. Return `None` for fewer than two values."""
    if len(values) < 2:
        return None
    step = (WIDTH - 2 * MARGIN) / (len(values) - 1)
    corners = [
        (round(MARGIN + place * step, 1), _height_of(value, best))
        for place, value in enumerate(values)
    ]
    return _make(corners, values[0], values[-1])


def draw_scores(scores: Sequence[WatchScore], begins: Instant, ends: Instant) -> Trend | None:
    """Draw scores of a domain as steps: each holds until the next. Return `None` without scores."""
    if not scores:
        return None
    begins = max(begins, scores[0].at)  # a new watch has no older scores
    corners: list[tuple[float, float]] = []
    for score in scores:
        x, y = _place(score.at, begins, ends), _height_of(score.score, 100)
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    corners.append((WIDTH - MARGIN, corners[-1][1]))
    return _make(corners, scores[0].score, scores[-1].score)


def _make(corners: Sequence[tuple[float, float]], first: float, last: float) -> Trend:
    return Trend(" ".join(f"{x},{y}" for x, y in corners), corners[-1], first, last)


def _place(at: Instant, begins: Instant, ends: Instant) -> float:
    part = (max(at, begins) - begins) / max(1, ends - begins)
    return round(MARGIN + min(1.0, part) * (WIDTH - 2 * MARGIN), 1)


def _height_of(value: float, best: float) -> float:
    return round(HEIGHT - MARGIN - value * (HEIGHT - 2 * MARGIN) / best, 1)
