"""The media types of request bodies, and the fields of requests that delete."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mailcheck.core.content import is_blank
from mailcheck.core.errors import InvalidParameter
from mailcheck.web.site.failures import WrongMediaType

JSON, FORM = "application/json", "application/x-www-form-urlencoded"

ANY_TYPE = "*/*"
"""Stands for all types: a door that has it reads every body as its first type."""

UNCHOSEN = frozenset(("", FORM, "text/plain", "application/octet-stream"))
"""Types that HTTP clients send by default: ``curl -d`` sends JSON with the type of a form."""

MAX_DEPTH = 100
"""Maximum depth of JSON in a request. Code that reads nested values may be recursive."""

_TOO_DEEP = f"the JSON has more than {MAX_DEPTH} levels"

MAX_SHOWN = 80
"""Maximum number of characters of a type in an error."""


def media_type_of(reads: Sequence[str], content_type: str, body: bytes) -> str:
    """Return the media type as which a body is read. A body is never ignored because of its type.

    :param reads: the types that the route reads. Without types, the body is not read here. The
        first one is for clients that did not choose a type.
    :param content_type: the value of Content-Type, or an empty text.
    :raises WrongMediaType: the client chose a type that is not read.
    """
    if not reads:
        return ""
    sent = content_type.partition(";")[0].strip().lower()
    is_json = JSON in reads and body.lstrip()[:1] in (b"{", b"[")
    if sent in reads and not (sent in UNCHOSEN and is_json):
        return sent
    if not body or sent in UNCHOSEN or ANY_TYPE in reads:
        return JSON if is_json else reads[0]
    if JSON in reads and sent.endswith("+json"):
        return JSON
    raise WrongMediaType(
        f"Content-Type must be {' or '.join(reads)} for this body; got {sent[:MAX_SHOWN]}"
    )


NOTHING_DELETED = "nothing was deleted"


def require_known(
    given: Mapping[str, Any], known: Collection[str], may_be_empty: Collection[str] = ()
) -> None:
    """Require that a request to delete has only fields that its route knows, and values for them.

    A field that is ignored, or is empty because of an unset variable, would make the request delete
    more than it names.

    :raises InvalidParameter: a field is unknown, or has no value.
    """
    for name, value in given.items():
        shown = name[:MAX_SHOWN]
        if name not in known:
            raise InvalidParameter(
                shown, f"{shown} is not a parameter of this route; {NOTHING_DELETED}"
            )
        if name not in may_be_empty and _is_empty(value):
            raise InvalidParameter(shown, f"{shown} has no value; {NOTHING_DELETED}")


def _is_empty(value: Any) -> bool:
    """Return whether a value, or one of several, selects nothing."""
    if isinstance(value, str):
        return is_blank(value)
    if isinstance(value, list):
        return not value or any(map(_is_empty, value))
    return value is None or value == {}


def decode_json(text: bytes | str, kind: Any = Any) -> Any:
    """Return a JSON value.

    :param kind: the type of the value.
    :raises ValueError: the text is not JSON of this type, not UTF-8, or nested too deeply.
    """
    try:
        value = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError) as problem:
        raise ValueError(str(problem)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for part in level for inner in _parts_of(part)]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


def _parts_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
