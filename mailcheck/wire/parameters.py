"""Query parameters to values; what can't be read is a 400 that says what to send."""

import math
from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

from mailcheck.core.addresses import explain_bad_tag, parse_mailbox
from mailcheck.core.cursors import Position, parse_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant, parse_instant
from mailcheck.core.search import Search, parse_search

MAX_SHOWN = 80
"""Characters of a bad value that an error repeats."""

MAX_TEXT = 500
"""Characters a text filter may have."""


class Query:
    """The parameters of one request, each given at most once."""

    def __init__(self, parameters: Mapping[str, Sequence[str]]) -> None:
        self._parameters = parameters

    def text(self, name: str) -> str | None:
        """Give a parameter as it is.

        :raises InvalidParameter: it is given twice, or is too long.
        """
        values = self._parameters.get(name, ())
        if len(values) > 1:
            raise InvalidParameter(name, f"{name} is given {len(values)} times; send it once")
        if values and len(values[0]) > MAX_TEXT:
            raise InvalidParameter(name, f"{name} has at most {MAX_TEXT} characters")
        return values[0] if values else None

    def required(self, name: str) -> str:
        """Give a parameter that must be there; an empty one is as good as none."""
        text = self.text(name)
        if not text:
            raise InvalidParameter(name, f"{name} is missing: send {name}=...")
        return text

    def texts(self, name: str, at_most: int, longest: int = MAX_TEXT) -> tuple[str, ...]:
        """Give all values of a parameter that may be repeated.

        :raises InvalidParameter: it is given too often, or is too long.
        """
        values = self._parameters.get(name, ())
        if len(values) > at_most:
            raise InvalidParameter(
                name, f"{name} is given {len(values)} times; send at most {at_most}"
            )
        if any(len(value) > longest for value in values):
            raise InvalidParameter(name, f"{name} has at most {longest} characters")
        return tuple(values)

    def needle(self, name: str) -> str | None:
        """Give a text to look for; an empty one asks for nothing."""
        return self.text(name) or None

    def tag(self) -> str | None:
        """Give the tag; empty means untagged, ``None`` any."""
        tag = self.text("tag")
        problem = None if tag is None else explain_bad_tag(tag)
        if problem is not None:
            raise InvalidParameter("tag", f"tag: {problem}")
        return tag

    def recipient(self) -> str | None:
        """Give the address of a ``to`` filter."""
        address = self.needle("to")
        if address is not None:
            try:
                parse_mailbox(address)
            except ValueError as error:
                raise InvalidParameter(
                    "to", f"to is one whole address; {_shown(address)} is none: {error}"
                ) from None
        return address

    def instant(self, name: str) -> Instant | None:
        """Give a moment."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return parse_instant(text)
        except ValueError:
            raise InvalidParameter(
                name,
                f"{name} is an ISO 8601 date and time like 2026-11-21T10:00:00.000Z; "
                f"you sent {_shown(text)}",
            ) from None

    def cursor(self) -> Position | None:
        """Give the cursor of ``after``."""
        text = self.text("after")
        if text is None:
            return None
        try:
            return parse_cursor(text)
        except ValueError:
            raise InvalidParameter(
                "after",
                f"after is a cursor that this service gave you, passed back unchanged; "
                f"you sent {_shown(text)}",
            ) from None

    def seconds(self, name: str, lowest: float, highest: float, default: float) -> float:
        """Give a duration in seconds within its range."""
        text = self.text(name)
        if text is None:
            return default
        allowed = f"{name} is seconds, {lowest:g} to {highest:g}; you sent {_shown(text)}"
        try:
            value = float(text)
        except ValueError:
            raise InvalidParameter(name, allowed) from None
        if not math.isfinite(value) or not lowest <= value <= highest:
            hint = ": milliseconds?" if highest < value <= highest * 1000 else ""
            raise InvalidParameter(name, allowed + hint)
        return value

    def whole_number(self, name: str, lowest: int, highest: int, default: int) -> int:
        """Give a whole number within its range."""
        text = self.text(name)
        if text is None:
            return default
        is_number = text.isascii() and text.isdigit() and len(text) < 16
        if not is_number or not lowest <= int(text) <= highest:
            raise InvalidParameter(
                name,
                f"{name} is a whole number, {lowest} to {highest}; you sent {_shown(text)}",
            )
        return int(text)

    def flag(self, name: str) -> bool:
        """Give a yes or no."""
        text = self.text(name)
        if text in (None, "false", "0"):
            return False
        if text in ("true", "1", ""):
            return True
        raise InvalidParameter(name, f"{name} is true or false; you sent {_shown(text or '')}")

    def search(self, now: Instant) -> Search | None:
        """Give what to search for; ``now`` is what ages count from."""
        text = self.text("q")
        return None if text is None else parse_search(text, now)

    def message_filter(self, now: Instant) -> MessageFilter:
        """Give the filter that lists, waits and bulk deletes share."""
        return MessageFilter(
            tag=self.tag(),
            recipient=self.recipient(),
            author=self.needle("from"),
            subject=self.needle("subject"),
            search=self.search(now),
            since=self.instant("since"),
            after=self.cursor(),
        )


def parse_query(query: bytes) -> Query:
    """Read a query string; ``+`` and ``%20`` are spaces, the bytes are UTF-8.

    :raises InvalidParameter: a value is not UTF-8 or holds a NUL.
    """
    parameters: dict[str, list[str]] = {}
    for pair in query.split(b"&"):
        if not pair:
            continue
        name, _, value = pair.partition(b"=")
        parameters.setdefault(_decoded(name, b"name"), []).append(_decoded(value, name))
    return Query(parameters)


def _decoded(text: bytes, name: bytes) -> str:
    try:
        decoded = unquote_to_bytes(text.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        decoded = "\0"
    if "\0" in decoded:
        parameter = name.decode("ascii", "replace")[:MAX_SHOWN]
        raise InvalidParameter(parameter, f"{parameter} is not percent-encoded UTF-8 text")
    return decoded


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
