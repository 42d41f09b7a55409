"""A row of the table of findings, and the severity that follows from a price."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from mailcheck.checks.findings import Area, Severity

ERROR_TENTHS = 10
"""Price in tenths of a point from which a finding is an error and its check fails, like a missing
SPF record."""

RETRY_ADVICE = (
    "Try again in a minute. If the problem persists, the name servers of that domain or the"
    " resolver of this service do not answer, or the answer is larger than this service accepts."
)
"""Advice for a finding that could not be determined because DNS did not answer."""

CLOSED_RESOLVER = (
    "The resolver does not find the name servers of the root zone, so it denies every name of the"
    " Internet."
)
"""Meaning of a resolver that does not resolve names of the Internet."""

OTHER_RESOLVER = "Set [dns] resolvers to a resolver that answers for the whole Internet."
"""Advice for a resolver that does not answer, or does not resolve names of the Internet."""

SEND_FROM_REAL_SERVER = "Send the test from the server that sends your real mail."
"""Advice for a mail that came from a host that cannot be checked."""


class BadTable(Exception):
    """The table contradicts itself; the service does not start with it."""


class Case(Struct, frozen=True):
    """What a finding says in a case, in place of the sentences of its row; empty: those."""

    meaning: str = ""
    advice: str = ""


class Row(Struct, frozen=True):
    """One finding: all that is said about it, with named places for the values of a case.

    :param meaning: the consequence, with places like ``{domain}``.
    :param area: area of a mail's report, or `None` for a finding that mail reports do not have.
    :param fixed: severity of a finding without a price; `None` if the check decides it.
    :param price: tenths of a point, or `None` if the finding is free or its price is measured.
    :param aliases: earlier ids.
    :param advice: what to do, with places; empty if each case has its own.
    :param cases: other sentences, by the name with which a check chooses them.
    """

    id: str
    area: Area | None
    title: str
    meaning: str
    fixed: Severity | None = None
    price: int | None = None
    aliases: Sequence[str] = ()
    advice: str = ""
    cases: Mapping[str, Case] = MappingProxyType({})

    @property
    def severity(self) -> Severity | None:
        """Severity in every case; `None` if the check decides it."""
        return self.fixed if self.price is None else severity_at(self.price)


EXPLAINED = {"explained": Case("{explanation}")}
"""For a finding whose check has explained its result already, as the API shows it."""

SILENT = {"silent": Case("Could not be determined: DNS gave no usable answer about {names}.")}
"""For a finding that queries got no usable answer."""


def silent_row(
    name: str,
    area: Area | None,
    title: str,
    meaning: str = "DNS gave no usable answer",
    **cases: Case,
) -> Row:
    """Return the row of a finding that something could not be determined, mostly for lack of DNS.

    :param cases: other reasons for which it could not be determined.
    """
    return Row(
        name, area, title, meaning, Severity.UNDETERMINED, advice=RETRY_ADVICE, cases=SILENT | cases
    )


def severity_at(tenths: int) -> Severity:
    """Return the severity of a finding that costs this many tenths of a point."""
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
