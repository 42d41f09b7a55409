"""Errors as JSON (docs/reference/contract.md)."""

from typing import Annotated

from mailcheck.api.shapes import ABSENT, Absent, Shape, doc


class Error(Shape):
    """An error response."""

    error: Annotated[str, doc("one sentence that names the parameter and what to send instead")]


class Crash(Shape):
    """An internal error of the service."""

    error: str
    reference: Annotated[str, doc("identifies the error in the log of the service")]


class Interrupted(Shape):
    """The service is overloaded or shutting down, or its store is unavailable."""

    error: str
    cursor: Annotated[str | Absent, doc("pass it as `after` to continue the wait")] = ABSENT
