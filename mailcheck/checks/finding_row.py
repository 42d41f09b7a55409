"""A row of the table of findings, and how severe a finding with a price is."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from mailcheck.checks.findings import Area, Severity

ERROR_TENTHS = 10
"""Tenths of a point from which a finding is an error and its check fails: no SPF record."""

RETRY_ADVICE = (
    "Try again in a minute. If it stays like this, the name servers of that domain or the"
    " resolver of this service do not answer, or the answer is larger than this service reads."
)
"""Advice for a finding that could not be determined because DNS did not answer."""


class BadTable(Exception):
    """The table contradicts itself; the service does not start with it."""


class Row(Struct, frozen=True):
    """Everything about a finding that does not depend on the case.

    :param area: part of a mail's report, or `None` for findings that no mail's report has.
    :param fixed: severity of a finding without a price; `None` if the case decides it.
    :param price: tenths of a point, or `None` if it costs nothing or is measured.
    :param aliases: earlier ids.
    :param advice: what to do, where the check gives no advice for the case; empty if there is none.
    """

    id: str
    area: Area | None
    title: str
    explanation: str
    fixed: Severity | None = None
    price: int | None = None
    aliases: Sequence[str] = ()
    advice: str = ""

    @property
    def severity(self) -> Severity | None:
        """Severity in every case; `None` if the case decides it."""
        return self.fixed if self.price is None else severity_at(self.price)


def severity_at(tenths: int) -> Severity:
    """Return the severity of a finding that takes off tenths of a point."""
    if tenths >= ERROR_TENTHS:
        return Severity.ERROR
    return Severity.WARNING if tenths else Severity.NOTE


def by_name(rows: Iterable[Row]) -> Mapping[str, Row]:
    """Return the rows by id and by alias.

    :raises BadTable: two rows share a name, or a row has both a price and a severity.
    """
    found: dict[str, Row] = {}
    for row in rows:
        for name in (row.id, *row.aliases):
            if name in found:
                raise BadTable(f"{name} is a name of both {found[name].id} and {row.id}")
            found[name] = row
        if row.fixed is not None and row.price is not None:
            raise BadTable(f"{row.id} has a price, so its severity follows from the price")
    return MappingProxyType(found)
