"""The types of request fields, and the fields that several requests share."""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from msgspec.structs import replace

from mailcheck.api.requests.parsing import MAX_TEXT, Description, FieldType, Request
from mailcheck.api.shapes import COMPONENT
from mailcheck.core.addresses import DOT_ATOM_PATTERN, MAX_TAG, explain_bad_tag, parse_mailbox
from mailcheck.core.content import is_blank
from mailcheck.core.cursors import CURSOR_PATTERN, Position, format_cursor, parse_cursor
from mailcheck.core.instants import Instant, parse_instant

SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT = 1.0, 60.0, 30.0
"""Minimum, maximum and default number of seconds of a wait."""

LONGEST_TASK = 600.0
"""Maximum number of seconds of a wait as a task of MCP."""

LONGEST_STREAM = 86_400.0
"""Maximum number of seconds after which a stream can be asked to end. The default is no end."""

DEFAULT_SILENCE = 5.0
"""Default number of seconds in which no message may arrive. A test always waits for all of them."""

LARGEST_PAGE, DEFAULT_PAGE, LAST_PAGE = 100, 50, 1_000_000
"""Maximum and default number of entries on a page, and the last page."""

MAX_WAIT_COUNT = LARGEST_PAGE
"""Maximum number of messages in one wait."""

MAX_HEADERS = 10
"""Maximum number of header fields of a filter. Each is searched for in every message."""

FIELD_NAME_PATTERN = r"[!-9;-~]+"
"""The characters of a field name: printable ASCII except the colon (RFC 5322 2.2)."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_FIELD_NAME = re.compile(FIELD_NAME_PATTERN)
_FLAGS = ("false", "0", "true", "1", "")

_PLAIN_SCHEMA = {"type": "string", "pattern": r"^[^\x00]*$"}
"""A text without NUL, which no parameter may contain."""

_TEXT_SCHEMA = {**_PLAIN_SCHEMA, "maxLength": MAX_TEXT}
NAME_SCHEMA = {**_TEXT_SCHEMA, "minLength": 1}


def _read_search_text(text: str) -> str | None:
    return text or None


def _read_tag(text: str) -> str:
    problem = explain_bad_tag(text)
    if problem is not None:
        raise ValueError(problem)
    return text


def _read_tag_prefix(text: str) -> str | None:
    # A prefix may end in a dot, although a whole tag may not.
    _read_tag(text if len(text) < 2 else re.sub(r"\.$", "x", text))
    return text or None


def _read_recipient(text: str) -> str | None:
    if not text:
        return None
    try:
        parse_mailbox(text)
    except ValueError as error:
        raise ValueError(f"{error}{_explain_plus(text)}") from None
    return text


def _explain_plus(text: str) -> str:
    """Return how to send a plus sign, if the address has a space where it may have had one."""
    meant = text.replace(" ", "+")
    try:
        parse_mailbox(meant)
    except ValueError:
        return ""
    return f". A + in a URL is a space: send {quote(meant, safe='@')}"


def _read_header(text: str) -> tuple[str, str]:
    name, colon, part = text.partition(":")
    if not colon or _FIELD_NAME.fullmatch(name) is None:
        raise ValueError(text)
    return name, part.strip()


def _write_header(header: tuple[str, str]) -> str:
    return ":".join(header)


def _read_day(text: str) -> Instant:
    if _DATE.fullmatch(text) is None:
        raise ValueError(text)
    return parse_instant(f"{text}T00:00:00Z")


def _read_seconds(text: str) -> float:
    # `float` also accepts 1_0 and the digits of other scripts.
    value = float(text) if text.isascii() and "_" not in text else math.nan
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def parse_integer(text: str) -> int:
    """Parse an integer of up to 15 digits. Raise `ValueError` for other texts."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError(text)
    return int(text)


def _read_flag(text: str) -> bool:
    return _FLAGS.index(text) >= _FLAGS.index("true")


def one_of(values: Sequence[str]) -> FieldType:
    """Return the type of a field that has one of the values."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    shown = [*filter(None, values), *(["empty"] if "" in values else [])]
    rule = f"{{name}} must be {' or '.join([', '.join(shown[:-1]), shown[-1]])}; got {{sent}}"
    return FieldType({"type": "string", "enum": list(values)}, read, rule)


def object_of(nested: type[Request]) -> FieldType:
    """Return the type of an object in a list of a body."""
    return FieldType({"$ref": COMPONENT.format(name=nested.__name__)}, nested=nested)


def required_text(longest: int) -> FieldType:
    """Return the type of a text that is not empty, with a maximum number of characters."""

    def read(text: str) -> str:
        if not text:
            raise ValueError("send a value, or leave it out")
        return text

    rule = "{name} is empty: {error}"
    return FieldType({**NAME_SCHEMA, "maxLength": longest}, read, rule, longest=longest)


def filled(kind: FieldType) -> FieldType:
    """Return the same type without its empty value, for requests that delete."""

    def read(text: str) -> Any:
        if is_blank(text):
            raise ValueError("send a value, or leave it out; nothing was deleted")
        return kind.read(text)

    schema = {"type": "string", "minLength": 1} | {
        name: value for name, value in kind.schema.items() if name != "anyOf"
    }
    return replace(kind, schema=schema, read=read, rule=kind.rule or "{name} is empty: {error}")


TEXT = FieldType(_TEXT_SCHEMA)
NAME = FieldType(NAME_SCHEMA)
SEARCH_TEXT = FieldType(_TEXT_SCHEMA, _read_search_text)
TAG = FieldType(
    {"type": "string", "maxLength": MAX_TAG, "pattern": f"^(?:{DOT_ATOM_PATTERN})?$"},
    _read_tag,
    "{name}: {error}",
)
TAG_PREFIX = FieldType(
    {"type": "string", "maxLength": MAX_TAG, "pattern": rf"^(?:{DOT_ATOM_PATTERN}\.?)?$"},
    _read_tag_prefix,
    "{name}: {error}",
)
RECIPIENT = FieldType(
    {"anyOf": [{"type": "string", "format": "email"}, {"const": ""}]},
    _read_recipient,
    "{name} must be one complete email address; got {sent}: {error}",
)
LONG_TEXT = FieldType({**_PLAIN_SCHEMA, "minLength": 1}, longest=None)
"""A text of any length. The operation rejects an empty one."""

HEADER = FieldType(
    {**_TEXT_SCHEMA, "pattern": rf"^{FIELD_NAME_PATTERN}:[^\x00]*$"},
    _read_header,
    "{name} must be a field name, a colon and part of the value, like Reply-To:support@; "
    "got {sent}",
    write=_write_header,
)
CURSOR = FieldType(
    {"type": "string", "pattern": CURSOR_PATTERN},
    parse_cursor,
    "{name} must be a cursor from an earlier response, unchanged; got {sent}",
    write=format_cursor,
)
MOMENT = FieldType(
    {"type": "string", "format": "date-time"},
    parse_instant,
    "{name} must be an ISO 8601 date and time like 2026-11-21T10:00:00.000Z; got {sent}",
)
DAY = FieldType(
    {"type": "string", "format": "date"},
    _read_day,
    "{name} must be a date like 2026-11-19; got {sent}",
)
SECONDS = FieldType(
    {"type": "number"},
    _read_seconds,
    "{name} must be a number of seconds from {low:g} to {high:g}; got {sent}",
    ". Did you send milliseconds?",
)
INTEGER = FieldType(
    {"type": "integer"},
    parse_integer,
    "{name} must be an integer from {low} to {high}; got {sent}",
)
FLAG = FieldType({"type": "boolean"}, _read_flag, "{name} must be true or false; got {sent}")

Limit = Annotated[
    int,
    INTEGER,
    Description("Maximum number of entries per page.", low=1, high=LARGEST_PAGE),
]
PageNumber = Annotated[int, INTEGER, Description("Page number.", low=1, high=LAST_PAGE)]
Timeout = Annotated[
    float,
    SECONDS,
    Description("Seconds to wait.", example="20", low=SHORTEST_WAIT, high=LONGEST_WAIT),
]
After = Annotated[
    Annotated[Position, CURSOR] | None,
    Description(
        "Only mail that arrived after this cursor. Take the cursor before you trigger the mail "
        "(from `GET /inbox/address` or any message) and pass it unchanged. Clocks do not matter.",
        brief="cursor from an earlier result; only later mail",
        example="c0",
    ),
]
Since = Annotated[
    Annotated[Instant, MOMENT] | None,
    Description(
        "Only mail received at or after this instant, an ISO 8601 date and time. Without an "
        "offset it is in UTC.",
        brief="ISO 8601 date and time",
        example="2026-11-21T10:00:00.000Z",
    ),
]
