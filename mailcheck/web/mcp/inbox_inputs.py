"""JSON Schemas of what the inbox's tools take; the limits are those of REST."""

from mailcheck.core.addresses import MAX_TAG
from mailcheck.operations.ranges import (
    DEFAULT_WAIT,
    LARGEST_PAGE,
    LAST_PAGE,
    LONGEST_WAIT,
    SHORTEST_WAIT,
)
from mailcheck.wire.mcp.arguments import arguments_schema
from mailcheck.wire.parameters import MAX_TEXT
from mailcheck.wire.schemas import Schema, number, text, whole_number

DEFAULT_PAGE = 20
"""Messages of a list: fewer than REST's, since a model reads every one."""


def _needle(description: str) -> Schema:
    return {**text(description), "maxLength": MAX_TEXT}


_TAG: Schema = {
    **text("only mail to this +tag, without case; an empty string means untagged mail"),
    "maxLength": MAX_TAG,
}
_FILTERS: dict[str, Schema] = {
    "tag": _TAG,
    "after": text("cursor from an earlier result: only mail that arrived after it"),
    "since": text("ISO 8601 date and time: only mail received then or later"),
    "from": _needle("only mail whose sender's name or address contains this, without case"),
    "subject": _needle("only mail whose subject contains this, without case"),
    "to": _needle("only mail to exactly this address, without case"),
}

NEW_ADDRESS_INPUT = arguments_schema(
    {
        "tag": {
            **text("use this +tag instead of a unique one (letters, digits, dots, dashes)"),
            "maxLength": MAX_TAG,
        }
    }
)

WAIT_INPUT = arguments_schema(
    {
        **_FILTERS,
        "timeout": number(
            "seconds to wait; answered by 55 at the latest",
            minimum=SHORTEST_WAIT,
            maximum=LONGEST_WAIT,
            default=DEFAULT_WAIT,
        ),
    }
)

LIST_INPUT = arguments_schema(
    {
        **_FILTERS,
        "q": _needle(
            'a search: words and "phrases", which must all be there, and terms like from:shop '
            "subject:welcome text:code has:code has:attachment newer:2h older:2026-11-21 "
            "larger:100k is:unread"
        ),
        "limit": whole_number(
            "messages on a page", minimum=1, maximum=LARGEST_PAGE, default=DEFAULT_PAGE
        ),
        "page": whole_number("counts from 1", minimum=1, maximum=LAST_PAGE, default=1),
    }
)

MESSAGE_INPUT = arguments_schema({"id": _needle("id of a message")}, required=("id",))
