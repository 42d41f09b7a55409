"""Bodies of requests: JSON objects, read strictly, with errors that name what to send."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from mailcheck.core.errors import InvalidParameter


def parse_object(body: bytes, example: str) -> Mapping[str, Any]:
    """Read a JSON object in UTF-8; ``example`` is one that would do.

    :raises InvalidParameter: it is none.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidParameter("body", f"the body is not JSON in UTF-8: send {example}") from None
    if not isinstance(value, dict):
        raise InvalidParameter("body", f"the body is not a JSON object: send {example}")
    return value


def is_whole_number(value: object) -> bool:
    """Tell whether a value is an integer as JSON Schema has it: 3.0 is one, true is none."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool)


def text_in(value: object, parameter: str, example: str) -> str:
    """Read a text of a body.

    :raises InvalidParameter: it is missing, none, or holds what no text holds.
    """
    if value is None:
        raise InvalidParameter(parameter, f"{parameter} is missing: send {example}")
    if not isinstance(value, str):
        raise InvalidParameter(parameter, f"{parameter} is a string")
    # Half of a surrogate pair, which JSON can write alone, is no character.
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidParameter(parameter, f"{parameter} holds characters that no text has")
    return value


def refuse_unknown(given: Mapping[str, Any], known: frozenset[str], example: str) -> None:
    """Let nothing through that has no meaning: it may be a misspelt field.

    :raises InvalidParameter: the object has such a field.
    """
    if not known.issuperset(given):
        names = " and ".join(sorted(known))
        raise InvalidParameter("body", f"the body has {names} and nothing else: send {example}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
