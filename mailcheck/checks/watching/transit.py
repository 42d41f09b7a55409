"""The time that a mail was in transit, by its Received fields (RFC 5321 4.4)."""

import re

from msgspec import Struct

from mailcheck.checks.content.header.fields import HeaderField, parse_moment, split_header
from mailcheck.core.instants import SECOND, Instant

MAX_HOPS = 50
"""Maximum number of Received fields that are read. Servers reject mail with more than 100."""

MAX_HOST = 100
"""Maximum number of characters of a host name in a result."""

_BY = re.compile(r"\bby\s++([A-Za-z0-9._:\[\]-]{1,255})")


class Transit(Struct, frozen=True):
    """The seconds from the first Received field to the arrival, and where most of them passed.

    ``slowest`` is the host that had the mail for ``waited`` seconds, by its own field; empty if
    the field has no name. The hosts wrote the fields, and their clocks may be wrong.
    """

    seconds: int
    slowest: str = ""
    waited: int = 0


def read_transit(raw_message: bytes, received_at: Instant) -> Transit | None:
    """Return the time in transit of a mail, or `None` if no Received field has a date.

    :param received_at: when this server received it.
    """
    fields = split_header(raw_message, 0, len(raw_message)).fields
    hops = list(filter(None, map(_read_hop, _received(fields))))
    if not hops:
        return None
    # The newest field is the first one. A clock that is ahead must not make a step negative.
    ends = [received_at, *(at for at, _ in hops)]
    steps = [max(0, end - at) for end, (at, _) in zip(ends, hops, strict=False)]
    waited = max(steps)
    oldest = min(at for at, _ in hops)
    return Transit(
        max(0, received_at - oldest) // SECOND, hops[steps.index(waited)][1], waited // SECOND
    )


def _received(fields: tuple[HeaderField, ...]) -> list[str]:
    texts = [field.as_text() for field in fields if field.name.lower() == "received"]
    return texts[:MAX_HOPS]


def _read_hop(text: str) -> tuple[Instant, str] | None:
    moment = parse_moment(text.rpartition(";")[2])
    if moment is None:
        return None
    host = _BY.search(text)
    return moment, host[1][:MAX_HOST] if host else ""
