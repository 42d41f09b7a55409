"""The body of a pre-flight: DNS records that somebody thinks of publishing."""

from collections.abc import Sequence

from mailcheck.api.requests.reading import parse_object, text_in
from mailcheck.checks.findings import RecordToPublish
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.deliverability.preflight import MAX_RECORDS, parse_record

EXAMPLE = (
    '{"records": [{"name": "_dmarc.example.com", "type": "TXT", "value": "v=DMARC1; p=reject"}]}'
)


def parse_preflight(body: bytes) -> tuple[RecordToPublish, ...]:
    """Read the records of a pre-flight.

    :raises InvalidParameter: names the record, and the part of it, that can't be read.
    """
    given = parse_object(body, EXAMPLE).get("records")
    if not isinstance(given, list):
        raise InvalidParameter("records", f"records is a list: send {EXAMPLE}")
    if len(given) > MAX_RECORDS:
        raise InvalidParameter(
            "records", f"records has {len(given)} records; {MAX_RECORDS} are allowed"
        )
    return tuple(_parse_one(one, f"records[{index}]") for index, one in enumerate(given))


def _parse_one(given: object, parameter: str) -> RecordToPublish:
    if not isinstance(given, dict):
        raise InvalidParameter(parameter, f"{parameter} is not an object: send {EXAMPLE}")
    texts: Sequence[str] = [
        text_in(given.get(field), f"{parameter}.{field}", EXAMPLE)
        for field in ("name", "type", "value")
    ]
    name, rdtype, value = texts
    return parse_record(name, rdtype, value, parameter=parameter)
