"""JSON shapes of simulated failures."""

from typing import Annotated

from msgspec import convert

from mailcheck.api.shapes import Shape, doc
from mailcheck.core.faults import FAULTS, LARGEST_EVERY

Every = Annotated[
    Annotated[int, doc("number of mails", ge=1, le=LARGEST_EVERY)] | None,
    doc(
        "reject every Nth mail that this key submits over the submission port with 451 after "
        "DATA; counted from midnight UTC; null: none"
    ),
]


class Fault(Shape):
    """A failure that is simulated for mail to a tag."""

    tag: Annotated[str, doc("the tag; N is a number of seconds")]
    does: str
    good_sender: Annotated[str, doc("expected behaviour of the sender")]


class Faults(Shape):
    """The available faults, and the setting of the API key."""

    every: Every
    enabled: Annotated[bool, doc("false: the operator has switched off all faults")]
    faults: tuple[Fault, ...]


def render_faults(every: int | None, *, is_on: bool) -> Faults:
    """Render the available faults and the setting of a key."""
    return Faults(every, is_on, convert(FAULTS, tuple[Fault, ...], from_attributes=True))
