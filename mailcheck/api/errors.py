"""Errors as JSON (docs/reference/contract.md)."""

from typing import Annotated

from mailcheck.api.shapes import ABSENT, Absent, Shape, doc


class Error(Shape):
    """What went wrong."""

    error: Annotated[str, doc("one readable sentence that names the parameter")]


class Crash(Shape):
    """The service failed."""

    error: str
    reference: Annotated[str, doc("stands in the log of the service too")]


class Interrupted(Shape):
    """The service is busy or stops, or its store does not answer."""

    error: str
    cursor: Annotated[str | Absent, doc("where a wait goes on")] = ABSENT
