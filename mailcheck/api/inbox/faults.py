"""JSON shapes of the faults that are met on request."""

from typing import Annotated

from mailcheck.api.request_bodies import is_whole_number, parse_object, refuse_unknown
from mailcheck.api.shapes import Shape, said
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.faults import FAULTS, LARGEST_EVERY

EXAMPLE = '{"every": 3}'

Every = Annotated[
    Annotated[int, said("a number of mails", ge=1, le=LARGEST_EVERY)] | None,
    said(
        "of so many mails that this key hands in on the submission port the last gets 451 after "
        "its DATA; counted from midnight UTC; null: none does"
    ),
]


class Fault(Shape):
    """What mail to a tag meets."""

    tag: Annotated[str, said("the tag; N stands for a number of seconds")]
    does: str
    good_sender: Annotated[str, said("what a good sender does")]


class KeyFault(Shape, forbid_unknown_fields=True):
    """The fault of a key."""

    every: Every


class Faults(Shape):
    """The faults that there are, and the one of the key that asks."""

    every: Every
    enabled: Annotated[bool, said("false: the operator has switched them off; no mail meets any")]
    faults: tuple[Fault, ...]


def render_faults(every: int | None, *, is_on: bool) -> Faults:
    """Render the table, and the setting of a key."""
    faults = tuple(Fault(one.tag, one.does, one.good_sender) for one in FAULTS)
    return Faults(every, is_on, faults)


def parse_key_fault(body: bytes) -> int | None:
    """Read the setting of a key.

    :raises InvalidParameter: it is no such.
    """
    given = parse_object(body, EXAMPLE)
    refuse_unknown(given, frozenset({"every"}), EXAMPLE)
    if "every" not in given:
        raise InvalidParameter("every", f"every is missing: send {EXAMPLE}")
    every = given["every"]
    if every is None:
        return None
    if not is_whole_number(every):
        problem = f"every is a whole number, 1 to {LARGEST_EVERY}, or null"
        raise InvalidParameter("every", problem)
    return int(every)
