"""Addresses that a request has as objects with ``email`` and ``name``."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.operations.write_mail import Person, make_person


class Named(Struct):
    """An address with its display name."""

    email: str
    name: str | None = None


def people_of(name: str, given: Sequence[Named] | None) -> tuple[Person, ...]:
    """Return the addresses of a field.

    :raises InvalidParameter: one is invalid.
    """
    return tuple(make_person(name, named.name or "", named.email) for named in given or ())


def person_of(name: str, given: Named) -> Person:
    """Return the only address of a field.

    :raises InvalidParameter: it is invalid.
    """
    return make_person(name, given.name or "", given.email)
