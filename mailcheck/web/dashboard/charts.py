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


class Scale(Struct, frozen=True):
    """Gives values over time their places in a picture: ``height`` and ``width`` in its own units.

    ``begins`` and ``ends`` are at the margins of the sides, and the values ``lowest`` and
    ``highest`` at those below and above.
    """

    width: int
    height: int
    margin: int
    begins: int
    ends: int
    lowest: float
    highest: float

    def x(self, at: int) -> float:
        """Return the place of a moment. A moment outside the period is at its nearest end."""
        part = (max(at, self.begins) - self.begins) / max(1, self.ends - self.begins)
        return round(self.margin + min(1.0, part) * (self.width - 2 * self.margin), 1)

    def y(self, value: float) -> float:
        """Return the place of a value, which is less for a higher one."""
        part = (value - self.lowest) / (self.highest - self.lowest)
        return round(self.height - self.margin - part * (self.height - 2 * self.margin), 1)

    def draw_steps(self, values: Sequence[tuple[Instant, float]]) -> list[tuple[float, float]]:
        """Return the corners of a line in which each value holds until the next one."""
        corners: list[tuple[float, float]] = []
        for at, value in (*values, *((self.ends, value) for _, value in values[-1:])):
            x, y = self.x(at), self.y(value)
            if corners and corners[-1][1] != y:
                corners.append((x, corners[-1][1]))
            corners.append((x, y))
        return corners


def points_of(corners: Sequence[tuple[float, float]]) -> str:
    """Return the points of a line in SVG."""
    return " ".join(f"{x},{y}" for x, y in corners)


def draw_trend(values: Sequence[float], best: float) -> Trend | None:
    """Draw values at equal distances, oldest first. Return `None` for fewer than two values."""
    if len(values) < 2:
        return None
    scale = Scale(WIDTH, HEIGHT, MARGIN, begins=0, ends=len(values) - 1, lowest=0, highest=best)
    corners = [(scale.x(place), scale.y(value)) for place, value in enumerate(values)]
    return Trend(points_of(corners), corners[-1], values[0], values[-1])


def draw_scores(scores: Sequence[WatchScore], begins: Instant, ends: Instant) -> Trend | None:
    """Draw scores of a domain as steps: each holds until the next. Return `None` without scores."""
    if not scores:
        return None
    begins = max(begins, scores[0].at)  # a new watch has no older scores
    scale = Scale(WIDTH, HEIGHT, MARGIN, begins=begins, ends=ends, lowest=0, highest=100)
    corners = scale.draw_steps([(score.at, score.score) for score in scores])
    return Trend(points_of(corners), corners[-1], scores[0].score, scores[-1].score)


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
    bars = {
        (day.first_day - begins) // (width * DAY): [
            getattr(day.mail, origin.value) for origin in Origin
        ]
        for day in days
    }
    return _draw_bars(bars, begins, Instant(begins + length * DAY), width, length // width + 1)


def draw_requests(requests: Mapping[int, int], last_day: int, length: int) -> DayBars | None:
    """Draw the requests of the last days. Return `None` without requests.

    :param requests: numbers by days since 1970.
    """
    first_day = last_day - length + 1
    bars = {day - first_day: [number] for day, number in sorted(requests.items())}
    return _draw_bars(bars, Instant(first_day * DAY), Instant(last_day * DAY), 1, length)


def _draw_bars(
    bars: Mapping[int, Sequence[int]], begins: Instant, ends: Instant, width: int, count: int
) -> DayBars | None:
    """Draw bars by their places, each with a number for each origin."""
    highest = max(map(sum, bars.values()), default=0)
    if not highest:
        return None
    paths: dict[str, list[str]] = {origin.value: [] for origin in Origin}
    for place, numbers in bars.items():
        top: float = DAYS_HEIGHT
        for path, number in zip(paths.values(), numbers, strict=False):
            tall = round(number * DAYS_HEIGHT / highest, 1)
            if tall:
                top = round(top - tall, 1)
                path.append(f"M{place * BAR_STEP} {top:g}h{BAR_WIDTH}v{tall:g}h-{BAR_WIDTH}z")
    return DayBars(
        tuple((origin, "".join(path)) for origin, path in paths.items() if path),
        highest,
        first_day=format_instant(begins)[:10],
        last_day=format_instant(ends)[:10],
        unit=UNITS[width],
        width=count * BAR_STEP,
    )
