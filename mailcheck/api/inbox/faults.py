"""JSON shapes of the faults that are met on request."""

from typing import Annotated

from mailcheck.api.shapes import Shape, doc
from mailcheck.core.faults import FAULTS, LARGEST_EVERY

Every = Annotated[
    Annotated[int, doc("a number of mails", ge=1, le=LARGEST_EVERY)] | None,
    doc(
        "of so many mails that this key hands in on the submission port the last gets 451 after "
        "its DATA; counted from midnight UTC; null: none does"
    ),
]


class Fault(Shape):
    """What mail to a tag meets."""

    tag: Annotated[str, doc("the tag; N stands for a number of seconds")]
    does: str
    good_sender: Annotated[str, doc("what a good sender does")]


class Faults(Shape):
    """The faults that there are, and the one of the key that asks."""

    every: Every
    enabled: Annotated[bool, doc("false: the operator has switched them off; no mail meets any")]
    faults: tuple[Fault, ...]


def render_faults(every: int | None, *, is_on: bool) -> Faults:
    """Render the table, and the setting of a key."""
    faults = tuple(Fault(one.tag, one.does, one.good_sender) for one in FAULTS)
    return Faults(every, is_on, faults)
