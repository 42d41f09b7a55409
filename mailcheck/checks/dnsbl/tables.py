"""Reading tables of a catalogue file with errors that name the place."""

from collections.abc import Collection, Mapping
from typing import Any


class BadCatalogue(ValueError):
    """The catalogue can't be used; the message names the entry and what is wrong with it."""


_TYPE_NAMES = {str: "a text", int: "a whole number", bool: "true or false", list: "a list"}


def check_fields(
    where: str, table: Any, fields: Mapping[str, type], required: Collection[str]
) -> Mapping[str, Any]:
    """Give the table if it has all required fields, no others than known, each of its type.

    :raises BadCatalogue: names the field.
    """
    if not isinstance(table, dict):
        raise BadCatalogue(f"{where}: is not a table")
    for name in table:
        if name not in fields:
            raise BadCatalogue(f"{where}: unknown field {name!r}")
        if type(table[name]) is not fields[name]:
            raise BadCatalogue(f"{where}: {name} must be {_TYPE_NAMES[fields[name]]}")
    for name in required:
        if name not in table:
            raise BadCatalogue(f"{where}: {name} is missing")
    return table


def check_range(where: str, name: str, number: int, first: int, last: int | None) -> int:
    """Give the number if it lies between first and last.

    :raises BadCatalogue: it doesn't.
    """
    if number < first or (last is not None and number > last):
        allowed = f"at least {first}" if last is None else f"{first} to {last}"
        raise BadCatalogue(f"{where}: {name} must be {allowed}; it is {number}")
    return number
