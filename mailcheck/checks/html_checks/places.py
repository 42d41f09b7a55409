"""Places in the source of a mail's HTML: their lines, and what stands there."""

import re
from bisect import bisect_right
from collections.abc import Iterable

from mailcheck.checks.content.decoding import flatten_controls
from mailcheck.checks.mail_checks import Place

MAX_PLACES = 5
"""Places of one finding that are shown; how many there are is counted."""

MAX_EXCERPT = 100
"""Characters shown of what stands at a place: a tag with its first attributes."""

_LINE_FEED = re.compile("\n")


class Lines:
    """Finds the lines of a text; it is read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [match.start() for match in _LINE_FEED.finditer(text)]

    def place(self, position: int) -> Place:
        """Give the place at an offset."""
        index = bisect_right(self._ends, position - 1)
        end = self._ends[index] if index < len(self._ends) else len(self._text)
        excerpt = self._text[position : min(end, position + MAX_EXCERPT)]
        return Place(index + 1, flatten_controls(excerpt).strip())

    def places(self, positions: Iterable[int]) -> tuple[Place, ...]:
        """Give the first few places, in order, each line once."""
        found: dict[int, Place] = {}
        for position in sorted(set(positions)):
            place = self.place(position)
            found.setdefault(place.line, place)
            if len(found) == MAX_PLACES:
                break
        return tuple(found.values())
