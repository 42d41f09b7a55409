"""Heartbeats for agents: their states, open alerts and newest mails."""

from typing import Annotated

from msgspec import convert

from mailcheck.api.domains.heartbeats import (
    render_heartbeat_details,
    render_heartbeats,
)
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Summarized, defuse
from mailcheck.api.mcp.watches import OpenAlert
from mailcheck.api.requests.fields import NAME
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Timestamp, doc, shape_from
from mailcheck.core.domains import watches
from mailcheck.core.domains.heartbeats import BeatVerdict, HeartbeatState
from mailcheck.operations.domains.watches import manage_heartbeats
from mailcheck.operations.domains.watches.manage_heartbeats import HeartbeatDetails

NEWEST_BEATS = 10
"""Maximum number of mails of a heartbeat in a result, the newest."""


class GetHeartbeatsArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``get_heartbeats``."""

    name: Annotated[Annotated[str, NAME] | None, Description(brief="omit to list all")] = None


class ListedHeartbeat(Shape):
    """A heartbeat in a list."""

    name: str
    state: HeartbeatState
    schedule: str
    last_at: Timestamp | None
    due_at: Timestamp | None


class BeatForAgents(Shape):
    """A mail to a heartbeat."""

    at: Timestamp
    verdict: BeatVerdict
    late_seconds: int | None
    score: float | None


class HeartbeatsResult(Summarized):
    """The heartbeats of an account with their open alerts; of a named one, its newest mails."""

    heartbeats: tuple[ListedHeartbeat, ...]
    open_alerts: tuple[OpenAlert, ...] | Absent = ABSENT
    address: Annotated[str | Absent, doc("address of the named heartbeat")] = ABSENT
    beats: Annotated[tuple[BeatForAgents, ...] | Absent, doc("newest first")] = ABSENT


def render_all_heartbeats(
    found: list[manage_heartbeats.Heartbeat], alerts: list[watches.Alert]
) -> HeartbeatsResult:
    """Render the heartbeats of an account."""
    shape = render_heartbeats(found, alerts)
    bad = sum(not heartbeat.is_well for heartbeat in found)
    return defuse(
        HeartbeatsResult(
            PUBLISHED_NOTICE,
            f"{len(found)} heartbeats, {bad} with problems",
            convert(shape.heartbeats, tuple[ListedHeartbeat, ...], from_attributes=True),
            convert(shape.open_alerts, tuple[OpenAlert, ...], from_attributes=True) or ABSENT,
        )
    )


def render_one_heartbeat(shown: HeartbeatDetails) -> HeartbeatsResult:
    """Render one heartbeat."""
    shape = render_heartbeat_details(shown)
    alerts = [alert for alert in shape.alerts if alert.ended_at is None]
    beats = shape.beats[:NEWEST_BEATS]
    return defuse(
        HeartbeatsResult(
            untrusted=PUBLISHED_NOTICE,
            summary=f"heartbeat {shape.name}: {shape.state.value}, {len(alerts)} open alerts",
            heartbeats=(shape_from(ListedHeartbeat, shape),),
            open_alerts=convert(alerts, tuple[OpenAlert, ...], from_attributes=True) or ABSENT,
            address=shape.address,
            beats=convert(beats, tuple[BeatForAgents, ...], from_attributes=True) or ABSENT,
        )
    )
