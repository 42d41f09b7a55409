"""Watches as an agent gets them: REST's shapes, made inert and short.

Records were published by others: a domain's owner can write to the agent that looks at it.
"""

from collections.abc import Sequence

from mailcheck.api.domains.watches import (
    Watch,
    WatchAlert,
    WatchChangeShape,
    WatchWithState,
    render_history,
    render_page,
    render_shown,
)
from mailcheck.api.mcp.untrusted import inert
from mailcheck.api.shapes import Shape
from mailcheck.core import watches
from mailcheck.core.instants import Instant
from mailcheck.operations.domains.watches.manage_watches import ShownWatch
from mailcheck.store.domains.watch_store import History, WatchPage

NEWEST_CHANGES = 20
"""Of a history that an agent is shown."""


class WatchesResult(Shape):
    """The first watches of an account, and its open alerts."""

    total: int
    watches: tuple[Watch, ...]
    open_alerts: tuple[WatchAlert, ...]


class WatchResult(Shape):
    """A watch, how it is, and its newest changes, oldest first."""

    watch: WatchWithState
    changes: tuple[WatchChangeShape, ...]


def render_watches(page: WatchPage, alerts: Sequence[watches.Alert]) -> WatchesResult:
    """Give the watches of an account."""
    shape = render_page(page, alerts)
    return inert(WatchesResult(shape.total, shape.watches, shape.open_alerts))


def render_one(shown: ShownWatch, history: History, now: Instant) -> WatchResult:
    """Give one watch."""
    changes = render_history(shown.watch, history, None, now).changes[-NEWEST_CHANGES:]
    return inert(WatchResult(render_shown(shown, now), changes))
