"""Shrink a large mail for the content filter by leaving out attachments."""

from msgspec import Struct

from mailcheck.checks.content.bodies import list_attachments
from mailcheck.checks.content.limits import KIB
from mailcheck.checks.content.structure import scan_structure

MAX_FILTERED = 256 * KIB
"""Maximum number of octets sent to the filter. SpamAssassin took over 30 s for 300 KB in one
line."""


class FilteredMail(Struct, frozen=True):
    """The mail as sent to the filter; ``left_out`` is the number of octets that were removed."""

    raw_message: bytes
    left_out: int = 0


def shrink_for_filter(raw_message: bytes, max_octets: int = MAX_FILTERED) -> FilteredMail | None:
    """Return the mail as sent to the filter, or `None` if even its text is too large.

    A mail within ``max_octets`` is not changed. In a larger one, the bodies of attachments are
    removed, the largest first and only as many as necessary; their headers, with types and
    names, stay. A final line break is added if it is missing, because spamd would wait for it.
    """
    if not raw_message.endswith(b"\n"):
        raw_message += b"\r\n"
    excess = len(raw_message) - max_octets
    if excess <= 0:
        return FilteredMail(raw_message)
    left_out: list[tuple[int, int]] = []
    bodies = [entity.body for entity in list_attachments(scan_structure(raw_message).root)]
    for start, end in sorted(bodies, key=lambda body: body[0] - body[1]):
        if excess <= 0:
            break
        left_out.append((start, end))
        excess -= end - start
    if excess > 0:
        return None
    kept = _without(raw_message, sorted(left_out))
    return FilteredMail(kept, len(raw_message) - len(kept))


def _without(raw_message: bytes, ranges: list[tuple[int, int]]) -> bytes:
    pieces, position = [], 0
    for start, end in ranges:
        pieces.append(raw_message[position:start])
        position = end
    return b"".join([*pieces, raw_message[position:]])
