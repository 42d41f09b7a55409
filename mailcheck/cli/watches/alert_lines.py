"""Lines about alerts, for the commands of watches and heartbeats."""

from typing import Any


def alert_line(alert: Any) -> str:
    """Return the line of an open alert of the API."""
    return f"ALERT {alert['target']}: {alert['sentence']} (since {minute_of(alert['openedAt'])})"


def minute_of(timestamp: str | None) -> str:
    """Return the date and the minute of a timestamp of the API, empty for `None`."""
    return "" if timestamp is None else f"{timestamp[:10]} {timestamp[11:16]}"
