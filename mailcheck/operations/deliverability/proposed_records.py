"""Records that somebody thinks of publishing, as they are typed in."""

from collections.abc import Sequence

import idna

from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.overlay import BadRecord, build_zone, parse_rdata
from mailcheck.core.domain_names import parse_domain
from mailcheck.core.errors import InvalidParameter

MAX_RECORDS = 50
MAX_VALUE = 8_000
"""Characters; the longest DKIM keys in use need 800."""

TYPES = ("TXT", "A", "AAAA", "MX", "CNAME", "PTR", "NS")
"""NS is read and has no effect: a run asks no name server but its resolver."""


def parse_record(name: str, rdtype: str, value: str, *, parameter: str) -> RecordToPublish:
    """Read one record.

    :param parameter: where it came in, such as ``records[0]``, for the error.
    :raises InvalidParameter: says what is wrong with which part.
    """
    owner = parse_domain(_label_by_label(name), name=f"{parameter}.name", allow_special_use=True)
    kind = rdtype.strip().upper()
    if kind not in TYPES:
        raise InvalidParameter(
            parameter, f"{parameter}.type {rdtype[:20]!r} is none of {', '.join(TYPES)}"
        )
    text = value.strip()
    if not text or len(text) > MAX_VALUE:
        problem = f"is longer than {MAX_VALUE} characters" if text else "is missing"
        raise InvalidParameter(parameter, f"{parameter}.value {problem}")
    try:
        parse_rdata(kind, text)
    except BadRecord as problem:
        raise InvalidParameter(parameter, f"{parameter}.value {problem}") from None
    return RecordToPublish(owner, kind, text)


def check_records(records: Sequence[RecordToPublish], *, parameter: str) -> None:
    """Refuse what can't be published together.

    :raises InvalidParameter: too many, none, or something beside a CNAME.
    """
    if not records:
        raise InvalidParameter(
            parameter, f"{parameter} is empty; send the records that you think of publishing"
        )
    if len(records) > MAX_RECORDS:
        raise InvalidParameter(
            parameter, f"{parameter} has {len(records)} records; {MAX_RECORDS} are allowed"
        )
    try:
        build_zone(records)
    except BadRecord as problem:
        raise InvalidParameter(parameter, f"{parameter}: {problem}") from None


def _label_by_label(name: str) -> str:
    """Map labels of other scripts alone: IDNA knows no names with an underscore in them."""
    return ".".join(label if label.isascii() else _a_label(label) for label in name.split("."))


def _a_label(label: str) -> str:
    try:
        return idna.encode(label, uts46=True).decode("ascii")
    except idna.IDNAError:
        return label  # named in the error for the whole name
