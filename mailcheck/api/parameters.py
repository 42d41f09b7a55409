"""Query parameters to values; what can't be read is a 400 that says what to send."""

import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from mailcheck.core.addresses import explain_bad_tag, parse_mailbox
from mailcheck.core.cursors import Position, parse_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter, Search, parse_search
from mailcheck.core.instants import Instant, parse_instant

MAX_SHOWN = 80
"""Characters of a bad value that an error repeats."""

MAX_TEXT = 500
"""Characters a text filter may have."""


MAX_HEADERS = 10
"""Header fields a filter may ask for; each is one more look into every mail."""

FIELD_NAME_PATTERN = r"[!-9;-~]+"
"""RFC 5322 2.2: printable ASCII but the colon."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)

_FIELD_NAME = re.compile(FIELD_NAME_PATTERN)


class Query:
    """The parameters of one request, each given at most once."""

    def __init__(self, parameters: Mapping[str, Sequence[str]]) -> None:
        self._parameters = parameters

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Take no parameter but the known ones: a filter with a misprint is not one left out.

        :raises InvalidParameter: there is another; names it, the nearest and all, no value.
        """
        unknown = next((name for name in self._parameters if name not in known), None)
        if unknown is None:
            return
        shown = _shown(unknown)
        nearest = get_close_matches(shown.lower(), known, 1)
        meant = f"; did you mean {nearest[0]}?" if nearest else ";"
        there_are = f"there are {', '.join(known)}" if known else "there is none"
        raise InvalidParameter(shown, f"{shown!r} is no parameter here{meant} {there_are}")

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

    def tag_prefix(self) -> str | None:
        """Give what tags begin with; an empty one asks for nothing."""
        prefix = self.needle("tagPrefix")
        # A dot may stand inside of a tag alone, so at the end of its beginning, too.
        whole = prefix if prefix is None or len(prefix) < 2 else re.sub(r"\.$", "x", prefix)
        problem = None if whole is None else explain_bad_tag(whole)
        if problem is not None:
            raise InvalidParameter("tagPrefix", f"tagPrefix: {problem}")
        return prefix

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Give what header fields must hold, pairs of a name and a part of the value."""
        found = []
        for text in self.texts("header", MAX_HEADERS):
            name, colon, part = text.partition(":")
            if not colon or _FIELD_NAME.fullmatch(name) is None:
                raise InvalidParameter(
                    "header",
                    f"header is the name of a field, a colon and a part of its value, like "
                    f"Reply-To:support@; you sent {_shown(text)}",
                )
            found.append((name, part.strip()))
        return tuple(found)

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

    def day(self, name: str) -> Instant | None:
        """Return when a day (UTC) begins.

        :raises InvalidParameter: the text is not a date.
        """
        text = self.text(name)
        if text is None:
            return None
        try:
            if _DATE.fullmatch(text) is None:
                raise ValueError(text)
            return parse_instant(f"{text}T00:00:00Z")
        except ValueError:
            raise InvalidParameter(
                name, f"{name} must be a date like 2026-11-19; got {_shown(text)}"
            ) from None

    def cursor(self, name: str = "after") -> Position | None:
        """Give a cursor."""
        text = self.text(name)
        return None if text is None else _cursor_in(name, text)

    def cursor_to_go_on_from(self, last_event_id: str) -> Position | None:
        """Give the cursor of the last event that a client has got, else that of ``after``."""
        after = self.cursor()
        return _cursor_in("Last-Event-ID", last_event_id) if last_event_id else after

    def seconds(self, name: str, lowest: float, highest: float, default: float) -> float:
        """Give a duration in seconds within its range."""
        text = self.text(name)
        if text is None:
            return default
        allowed = f"{name} is seconds, {lowest:g} to {highest:g}; you sent {_shown(text)}"
        try:
            # Python reads 1_0, and the digits of every script.
            value = float(text) if text.isascii() and "_" not in text else math.nan
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

    def deletion_filter(self) -> MessageFilter:
        """Give the filter of bulk deletes: what is known of every mail."""
        return MessageFilter(
            tag=self.tag(),
            tag_prefix=self.tag_prefix(),
            recipient=self.recipient(),
            author=self.needle("from"),
            subject=self.needle("subject"),
            since=self.instant("since"),
            after=self.cursor(),
        )

    def wait_filter(self) -> MessageFilter:
        """Give the filter of waits: also what is found in a mail."""
        is_asked = self.text("hasAttachment") is not None
        return replace(
            self.deletion_filter(),
            headers=self.headers(),
            text=self.needle("text"),
            has_attachment=self.flag("hasAttachment") if is_asked else None,
        )

    def message_filter(self, now: Instant) -> MessageFilter:
        """Give the filter of lists: also a search, whose ages count from ``now``."""
        return replace(self.wait_filter(), search=self.search(now))


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


def _cursor_in(name: str, text: str) -> Position:
    try:
        return parse_cursor(text)
    except ValueError:
        raise InvalidParameter(
            name,
            f"{name} is a cursor that this service gave you, passed back unchanged; "
            f"you sent {_shown(text)}",
        ) from None


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
