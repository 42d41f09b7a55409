"""Values of DMARC aggregate reports."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.core.domains.receiver_reports import day_of
from mailcheck.core.instants import Instant

PASS = AuthResult.PASS.value


class Signature(Struct, frozen=True):
    """A DKIM result of the receiver, aligned or not."""

    domain: str
    selector: str
    result: str


class SpfCheck(Struct, frozen=True):
    """An SPF result: ``scope`` is ``mfrom`` or ``helo``, or empty if it is missing."""

    domain: str
    scope: str
    result: str


class Row(Struct, frozen=True):
    """Messages of one source with one result.

    ``dkim`` and ``spf`` are the results for DMARC: passed and aligned. ``reasons`` say why the
    receiver did not follow the policy, as ``type`` or ``type: comment``.
    """

    source: str
    disposition: str
    dkim: str
    spf: str
    header_from: str
    envelope_from: str = ""
    reasons: tuple[str, ...] = ()
    signatures: tuple[Signature, ...] = ()
    spf_checks: tuple[SpfCheck, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether DMARC passed; one of the two results is enough."""
        return PASS in (self.dkim, self.spf)


_PASSING = tuple(f'"{name}":"{PASS}"' for name in ("dkim", "spf"))

PASSING_PATTERNS = tuple(f"%{text}%" for text in _PASSING)
"""SQL patterns of the JSON of rows that pass. Quotes in texts are escaped, so no text matches."""


def has_passed(result: str) -> bool:
    """Return whether a row passes, from its JSON."""
    return any(text in result for text in _PASSING)


class PublishedPolicy(Struct, frozen=True):
    """The policy as the receiver found it; missing values are empty.

    ``testing`` and ``discovery`` are from RFC 9990, ``percent`` is from RFC 7489.
    """

    domain: str
    policy: str = ""
    subdomain_policy: str = ""
    nonexistent_policy: str = ""
    dkim_alignment: str = ""
    spf_alignment: str = ""
    percent: str = ""
    failure_options: str = ""
    testing: str = ""
    discovery: str = ""


class AggregateReport(Struct, frozen=True):
    """Results of one receiver for one domain; each different row once, with its message count.

    ``organisation`` and ``email`` are the sender's own claims and are not verified here.
    """

    organisation: str
    email: str
    contact: str
    report_id: str
    generator: str
    begins_at: Instant
    ends_at: Instant
    policy: PublishedPolicy
    rows: Mapping[Row, int]
    problems: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        """The domain of the report."""
        return self.policy.domain

    @property
    def domains(self) -> tuple[str, ...]:
        """The domain of the report, as the only one."""
        return (self.policy.domain,)

    @property
    def messages(self) -> int:
        """The number of messages."""
        return sum(self.rows.values())


class ReportedRow(Struct, frozen=True):
    """Messages of a row that one reporter saw, with the first and last day on which they began."""

    row: Row
    messages: int
    reporter: str
    first_day: Instant
    last_day: Instant


PackedRow = tuple[str, int, str, Instant, Instant]
"""A `ReportedRow` with its row as JSON, as stored, for another process."""


def pack_row(one: ReportedRow) -> PackedRow:
    """Convert a row for another process."""
    row = msgspec.json.encode(one.row).decode()
    return row, one.messages, one.reporter, one.first_day, one.last_day


def pack_rows(rows_data: Sequence[PackedRow]) -> bytes:
    """Serialize all rows as one value; this is fast for twenty thousand rows."""
    return msgspec.msgpack.encode(rows_data)


def unpack_rows(packed: bytes) -> list[ReportedRow]:
    """Deserialize rows."""
    decode = msgspec.json.Decoder(Row).decode
    rows_data = msgspec.msgpack.decode(packed, type=list[tuple[str, int, str, int, int]])
    return [
        ReportedRow(decode(row), messages, reporter, Instant(first_day), Instant(last_day))
        for row, messages, reporter, first_day, last_day in rows_data
    ]


def rows_of_report(report: AggregateReport, reporter: str) -> Iterable[ReportedRow]:
    """Return the rows of a report."""
    day = day_of(report.begins_at)
    return (ReportedRow(row, count, reporter, day, day) for row, count in report.rows.items())
