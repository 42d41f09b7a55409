"""Regular expressions that clients send, with a limit of time."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from mailcheck.core.errors import InvalidParameter

MAX_PATTERN = 500
"""Maximum number of characters of a pattern."""

MAX_SECONDS = 0.25
"""Seconds after which a search ends: the time of some patterns grows exponentially."""


class _OutOfTime(Exception):
    """A search took too long."""


def find_pattern(pattern: str, text: str) -> tuple[str, ...]:
    """Return the first match of a pattern in a text, and the groups of this match.

    The result is empty without a match. Call this in the main thread of a process only, since
    a timer ends the search.

    :raises InvalidParameter: the pattern is too long, invalid or too slow.
    """
    if len(pattern) > MAX_PATTERN:
        raise InvalidParameter("pattern", f"a pattern has at most {MAX_PATTERN} characters")
    try:
        with _limited():
            found = re.search(pattern, text)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidParameter(
            "pattern", f"{pattern[:100]!r} is not a regular expression of Python: {error}"
        ) from None
    except _OutOfTime:
        raise InvalidParameter(
            "pattern", f"{pattern[:100]!r} takes too long: write it without nested repetitions"
        ) from None
    return () if found is None else (found[0], *(group or "" for group in found.groups()))


@contextmanager
def _limited() -> Iterator[None]:
    def end(*_: object) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
