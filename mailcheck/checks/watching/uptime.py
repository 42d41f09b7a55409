"""Uptime of a mail host: the share of the observed time in which it accepted connections."""

from collections.abc import Iterable

from mailcheck.checks.watching.facts import ANSWERS, host_topic
from mailcheck.core.domains.watches import WatchChange
from mailcheck.core.instants import Instant


def uptime(
    exchange: str,
    changes: Iterable[WatchChange],
    current: str | None,
    begins: Instant,
    ends: Instant,
) -> float | None:
    """Return the share of the time, 0 to 1, in which a host accepted connections.

    Return `None` if that is unknown.

    :param changes: all changes in that time, oldest first, including other topics.
    :param current: the value at the end: ``yes``, ``no``, or `None` if it is unknown.
    """
    topic = host_topic(exchange)
    moves = [change for change in changes if change.topic == topic and change.name == ANSWERS]
    value = moves[0].before if moves else current
    seconds = {"yes": 0, "no": 0}
    since = begins
    for at, after in [*((change.at, change.after) for change in moves), (ends, None)]:
        if value in seconds:
            seconds[value] += max(0, at - since)
        since, value = max(since, at), after
    known = sum(seconds.values())
    return round(seconds["yes"] / known, 5) if known else None
