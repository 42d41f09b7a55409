"""Small charts in SVG. Templates draw them, and texts beside them give the values."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mailcheck.checks.receiver_reports.origins import Origin
from mailcheck.checks.receiver_reports.overview import MailOfDays
from mailcheck.core.domains.watches import WatchScore
from mailcheck.core.instants import DAY, Instant, format_instant

WIDTH, HEIGHT, MARGIN = 120, 32, 4
"""Size and margin of a trend, in its own units."""


DAYS_HEIGHT, BAR_WIDTH, BAR_STEP = 100, 8, 10
"""Height of bars, the width of one, and the distance from one to the next."""

UNITS = {1: "Day", 7: "Week", 28: "4 weeks"}
"""Number of days in a bar -> name."""


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


class DayBars(Struct, frozen=True):
    """Stacked bars of messages by day, or by several days.

    ``bars`` has an SVG path for each origin. The owner's mail is the first and thus at the bottom.
    """

    bars: tuple[tuple[str, str], ...]
    highest: int
    first_day: str
    last_day: str
    unit: str
    width: int
    height: int = DAYS_HEIGHT


def draw_days(
    days: Sequence[MailOfDays], begins: Instant, width: int, length: int
) -> DayBars | None:
    """Draw whose the mail of a period is. Return `None` without mail.

    :param begins: the first day of the period.
    :param width: number of days in a bar.
    :param length: number of days of the period before today.
    """
    highest = max((day.mail.total for day in days), default=0)
    if not highest:
        return None
    paths: dict[Origin, list[str]] = {one: [] for one in Origin}
    for day in days:
        x = (day.first_day - begins) // (width * DAY) * BAR_STEP
        top: float = DAYS_HEIGHT
        for origin, path in paths.items():
            tall = round(getattr(day.mail, origin.value) * DAYS_HEIGHT / highest, 1)
            if tall:
                top = round(top - tall, 1)
                path.append(f"M{x} {top:g}h{BAR_WIDTH}v{tall:g}h-{BAR_WIDTH}z")
    return DayBars(
        tuple((origin.value, "".join(path)) for origin, path in paths.items() if path),
        highest,
        first_day=format_instant(begins)[:10],
        last_day=format_instant(Instant(begins + length * DAY))[:10],
        unit=UNITS[width],
        width=(length // width + 1) * BAR_STEP,
    )


def draw_requests(requests: Mapping[int, int], last_day: int, length: int) -> DayBars | None:
    """Draw the requests of the last days. Return `None` without requests.

    :param requests: numbers by days since 1970.
    """
    highest, first_day = max(requests.values(), default=0), last_day - length + 1
    if not highest:
        return None
    path = []
    for day, number in sorted(requests.items()):
        tall = round(number * DAYS_HEIGHT / highest, 1)
        x, top = (day - first_day) * BAR_STEP, round(DAYS_HEIGHT - tall, 1)
        path.append(f"M{x} {top:g}h{BAR_WIDTH}v{tall:g}h-{BAR_WIDTH}z")
    return DayBars(
        ((Origin.YOURS.value, "".join(path)),),
        highest,
        first_day=format_instant(Instant(first_day * DAY))[:10],
        last_day=format_instant(Instant(last_day * DAY))[:10],
        unit=UNITS[1],
        width=length * BAR_STEP,
    )


def _make(corners: Sequence[tuple[float, float]], first: float, last: float) -> Trend:
    return Trend(" ".join(f"{x},{y}" for x, y in corners), corners[-1], first, last)


def _place(at: Instant, begins: Instant, ends: Instant) -> float:
    part = (max(at, begins) - begins) / max(1, ends - begins)
    return round(MARGIN + min(1.0, part) * (WIDTH - 2 * MARGIN), 1)


def _height_of(value: float, best: float) -> float:
    return round(HEIGHT - MARGIN - value * (HEIGHT - 2 * MARGIN) / best, 1)
