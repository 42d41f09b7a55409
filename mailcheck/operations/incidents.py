"""Internal failures as clients see them: a fixed sentence and a reference to the log."""

import os
import time
from collections.abc import Callable

from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.memory.recent import LruCache

SAME_INCIDENT = 60.0
"""Seconds for which the same cause keeps its reference. An outage then writes one line a minute,
however many requests it fails."""

MOST_INCIDENTS = 100
"""Maximum number of causes that keep a reference at a time."""

REFERENCE_BYTES = 6


def public_failure(failure: ExpectedFailure) -> ExpectedFailure:
    """Return the public form of a failure. Failures outside the engine are logged now.

    Such failures come from child processes that read the database themselves, or have died.
    """
    if isinstance(failure, StoreUnavailable):
        return Incidents(time.monotonic, os.urandom).public(failure)
    return failure


class Incidents:
    """Logs the cause of each failure under a reference that clients may see.

    :param seconds: returns the time of a monotonic clock.
    """

    _log = Logger()

    def __init__(self, seconds: Callable[[], float], random_bytes: RandomBytes) -> None:
        self._seconds = seconds
        self._random_bytes = random_bytes
        self._known: LruCache[str, tuple[float, str]] = LruCache(MOST_INCIDENTS)

    def public(self, failure: StoreUnavailable) -> StoreUnavailable:
        """Return a failure of the same kind whose message every client may see."""
        if failure.reference:
            return failure
        cause, now = str(failure), self._seconds()
        known = self._known.get(cause)
        if known is not None and now - known[0] < SAME_INCIDENT:
            reference = known[1]
        else:
            reference = self._random_bytes(REFERENCE_BYTES).hex()
            self._known.put(cause, (now, reference))
            self._log.warn("{cause}, reference {reference}", cause=cause, reference=reference)
        public_failure = type(failure)(
            f"{failure.PUBLIC}; the log has the cause under reference {reference}"
        )
        public_failure.reference = reference
        public_failure.__cause__ = failure
        return public_failure
