"""The body of a pre-flight: DNS records that somebody thinks of publishing."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mailcheck.checks.findings import RecordToPublish
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.deliverability.proposed_records import MAX_RECORDS, parse_record

EXAMPLE = (
    '{"records": [{"name": "_dmarc.example.com", "type": "TXT", "value": "v=DMARC1; p=reject"}]}'
)


def parse_preflight(body: bytes) -> tuple[RecordToPublish, ...]:
    """Read the records of a pre-flight.

    :raises InvalidParameter: names the record, and the part of it, that can't be read.
    """
    given = _parse_object(body).get("records")
    if not isinstance(given, list):
        raise InvalidParameter("records", f"records is a list: send {EXAMPLE}")
    if len(given) > MAX_RECORDS:
        raise InvalidParameter(
            "records", f"records has {len(given)} records; {MAX_RECORDS} are allowed"
        )
    return tuple(_parse_one(one, f"records[{index}]") for index, one in enumerate(given))


def _parse_object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidParameter("body", f"the body is not JSON in UTF-8: send {EXAMPLE}") from None
    if not isinstance(value, dict):
        raise InvalidParameter("body", f"the body is not a JSON object: send {EXAMPLE}")
    return value


def _parse_one(given: object, parameter: str) -> RecordToPublish:
    if not isinstance(given, dict):
        raise InvalidParameter(parameter, f"{parameter} is not an object: send {EXAMPLE}")
    texts: Sequence[str] = [
        _text(given.get(field), f"{parameter}.{field}") for field in ("name", "type", "value")
    ]
    name, rdtype, value = texts
    return parse_record(name, rdtype, value, parameter=parameter)


def _text(value: object, parameter: str) -> str:
    if value is None:
        raise InvalidParameter(parameter, f"{parameter} is missing: send {EXAMPLE}")
    if not isinstance(value, str):
        raise InvalidParameter(parameter, f"{parameter} is a string")
    # Half of a surrogate pair, which JSON can write alone, is no character.
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidParameter(parameter, f"{parameter} holds characters that no text has")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
