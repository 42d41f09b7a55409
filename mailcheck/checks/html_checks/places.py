"""Places in the source of a mail's HTML: line numbers and excerpts."""

import re
from bisect import bisect_right
from collections.abc import Iterable

from mailcheck.checks.content.decoding import flatten_controls
from mailcheck.checks.mail_checks import Place

MAX_PLACES = 5
"""Maximum number of places shown for one finding; the total is counted."""

MAX_EXCERPT = 100
"""Maximum number of characters of an excerpt: a tag with its first attributes."""

_LINE_FEED = re.compile("\n")


class Lines:
    """Maps offsets of a text to lines; the text is scanned once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [match.start() for match in _LINE_FEED.finditer(text)]

    def place(self, position: int) -> Place:
        """Return the place at an offset."""
        index = bisect_right(self._ends, position - 1)
        end = self._ends[index] if index < len(self._ends) else len(self._text)
        excerpt = self._text[position : min(end, position + MAX_EXCERPT)]
        return Place(index + 1, flatten_controls(excerpt).strip())

    def places(self, positions: Iterable[int]) -> tuple[Place, ...]:
        """Return the first few places in order, one for each line."""
        found: dict[int, Place] = {}
        for position in sorted(set(positions)):
            place = self.place(position)
            found.setdefault(place.line, place)
            if len(found) == MAX_PLACES:
                break
        return tuple(found.values())
