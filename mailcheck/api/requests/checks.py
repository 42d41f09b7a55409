"""Requests of domain tools, deliverability tests, reports of receivers, and watches."""

from typing import Annotated, ClassVar

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from mailcheck.api.requests.fields import (
    DAY,
    DEFAULT_PAGE,
    DEFAULT_WAIT,
    FLAG,
    INTEGER,
    LONG_TEXT,
    NAME,
    NAME_SCHEMA,
    TEXT,
    Limit,
    PageNumber,
    Since,
    Timeout,
    object_of,
    one_of,
    required_text,
)
from mailcheck.api.requests.parsing import Description, FieldType, Request
from mailcheck.checks.bimi.record import DEFAULT_SELECTOR
from mailcheck.checks.findings import RecordToPublish
from mailcheck.core.domains.domain_names import (
    MAX_ADDRESSES,
    MAX_INPUT,
    MAX_SELECTORS,
    parse_selector,
)
from mailcheck.core.domains.receiver_reports import (
    LARGEST_REPORT_PAGE,
    MIN_DAYS,
    UNDECIDED,
    ReportKind,
    ReportSelection,
    SenderDecision,
)
from mailcheck.core.domains.watches import (
    CLOCK_PATTERN,
    HISTORY_KEPT,
    LONGEST_INTERVAL,
    MOST_AT_ONCE,
    MOST_RECEIVERS,
    SHORTEST_INTERVAL,
    QuietTime,
    WatchSettings,
    parse_quiet_time,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import DAY as ONE_DAY
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.webhooks import ALERT_TO_TEXT
from mailcheck.operations.deliverability.preflight import (
    MAX_RECORDS,
    MAX_VALUE,
    TYPES,
    parse_record,
)

MOST_REPORT_DAYS, DEFAULT_REPORT_DAYS = 400, 30
"""Maximum and default number of days of a report summary."""

SELECTOR = FieldType(NAME_SCHEMA, parse_selector)

IP_ADDRESS = FieldType(
    {"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]}
)

Domain = Annotated[
    str,
    NAME,
    Description(
        "A domain in the public DNS, in any script. URLs, email addresses, IP addresses and single "
        "labels are not accepted.",
        brief="like example.com",
        example="example.com",
    ),
]


class MxRequest(Request, frozen=True, kw_only=True):
    """The domain of an MX check."""

    domain: Domain


class BlocklistRequest(Request, frozen=True, kw_only=True):
    """The address or domain of a blocklist check."""

    query: Annotated[
        str,
        NAME,
        Description(
            "A public IPv4 or IPv6 address, or a domain name.",
            brief="an IP address or domain",
            example="192.0.2.1",
        ),
    ]


class DomainRequest(Request, frozen=True, kw_only=True):
    """A domain, and its DKIM selectors."""

    domain: Domain
    selectors: Annotated[
        tuple[Annotated[str, SELECTOR], ...],
        Description(
            "DKIM selectors to check in addition to common ones. Repeat the parameter for several.",
            at_most=MAX_SELECTORS,
        ),
    ] = field(name="selector", default=())


class DomainReportRequest(DomainRequest, frozen=True, kw_only=True):
    """A domain, and the selectors of its records."""

    logo_selector: Annotated[
        str, SELECTOR, Description("BIMI selector, as in the field BIMI-Selector of a mail.")
    ] = field(name="bimiSelector", default=DEFAULT_SELECTOR)


class ReputationRequest(DomainRequest, frozen=True, kw_only=True):
    """The domain of a reputation check."""

    addresses: Annotated[
        tuple[Annotated[str, IP_ADDRESS], ...],
        Description(
            "Public IP addresses that the domain sends from. Repeat the parameter for several.",
            at_most=MAX_ADDRESSES,
        ),
    ] = field(name="ip", default=())
    refresh: Annotated[bool, FLAG, Description("true: ignore the cache and check again.")] = False


class ListPage(Request, frozen=True, kw_only=True):
    """The page of a list."""

    limit: Limit = DEFAULT_PAGE
    page: PageNumber = 1

    @property
    def offset(self) -> int:
        """The number of entries on earlier pages."""
        return (self.page - 1) * self.limit


class WaitForTest(Request, frozen=True, kw_only=True):
    """A wait for the end of a deliverability test."""

    timeout: Timeout = DEFAULT_WAIT


class ProposedRecord(Request, frozen=True, kw_only=True):
    """A DNS record that is not published yet."""

    example: ClassVar = (
        '{"name": "_dmarc.example.com", "type": "TXT", "value": "v=DMARC1; p=reject"}'
    )

    name: Annotated[
        str,
        required_text(MAX_INPUT),
        Description("domain name"),
    ]
    type: Annotated[str, one_of(TYPES), Description("type of the record")]
    value: Annotated[
        str,
        required_text(MAX_VALUE),
        Description("as in a zone file; the text of a TXT record without quotes"),
    ]


class PreflightRecords(Request, frozen=True, kw_only=True):
    """DNS records to evaluate as if they were published."""

    example: ClassVar = f'{{"records": [{ProposedRecord.example}]}}'

    records: Annotated[
        tuple[Annotated[ProposedRecord, object_of(ProposedRecord)], ...],
        Description("evaluate the mail with these records", at_most=MAX_RECORDS),
    ]

    @property
    def parsed(self) -> tuple[RecordToPublish, ...]:
        """The records.

        :raises InvalidParameter: a record is invalid; the error names the record and the field.
        """
        return tuple(
            parse_record(record.name, record.type, record.value, parameter=f"records[{index}]")
            for index, record in enumerate(self.records)
        )


MAX_TRAFFIC_DAYS, DEFAULT_TRAFFIC_DAYS = 400, 7
"""Maximum and default number of days of the statistics of traffic."""

TrafficDays = Annotated[
    int,
    INTEGER,
    Description("Number of days, up to today.", low=1, high=MAX_TRAFFIC_DAYS),
]


class GetReports(Request, frozen=True, kw_only=True):
    """The domain and period of a report summary."""

    domain: Domain
    days: Annotated[
        int,
        INTEGER,
        Description("Number of days, up to today.", low=1, high=MOST_REPORT_DAYS),
    ] = DEFAULT_REPORT_DAYS
    limit: Annotated[
        int,
        INTEGER,
        Description(
            "Maximum number of senders or results per page.", low=1, high=LARGEST_REPORT_PAGE
        ),
    ] = LARGEST_REPORT_PAGE
    page: PageNumber = 1


class PlanPolicy(Request, frozen=True, kw_only=True):
    """The domain of a plan, and the period of the reports."""

    domain: Domain
    days: Annotated[
        int,
        INTEGER,
        Description("Number of days, up to today.", low=MIN_DAYS, high=MOST_REPORT_DAYS),
    ] = DEFAULT_REPORT_DAYS


SENDER = required_text(MAX_INPUT)

DECISION = one_of((*(decision.value for decision in SenderDecision), UNDECIDED))


class DecideSender(Request, frozen=True, kw_only=True):
    """A decision about a sender in the DMARC reports of a domain."""

    example: ClassVar = '{"domain": "example.com", "sender": "sendgrid", "decision": "mine"}'

    domain: Annotated[str, required_text(MAX_INPUT), Description("domain of the reports")]
    sender: Annotated[str, SENDER, Description("`key` of a sender in `GET /reports/dmarc`")]
    decision: Annotated[
        str,
        DECISION,
        Description("whether the sender sends for you"),
    ]

    @property
    def decided(self) -> SenderDecision | None:
        """The decision, or `None` for undecided."""
        return None if self.decision == UNDECIDED else SenderDecision(self.decision)


class ListReports(ListPage, frozen=True, kw_only=True):
    """The page of the list of received reports."""

    kind: Annotated[
        Annotated[str, one_of([kind.value for kind in ReportKind])] | None,
        Description("Only reports of this kind."),
    ] = None

    @property
    def report_kind(self) -> ReportKind | None:
        """The requested kind, or `None` for all."""
        return None if self.kind is None else ReportKind(self.kind)


class ImportReports(Request, frozen=True, kw_only=True):
    """The name of the file that is imported."""

    name: Annotated[
        str,
        TEXT,
        Description(
            "Name of the file, for the results. The name of a TLS report may contain its domain. A "
            "form has the names of its files."
        ),
    ] = ""


class GetTraffic(Request, frozen=True, kw_only=True):
    """The period of the statistics of traffic."""

    days: TrafficDays = DEFAULT_TRAFFIC_DAYS
    limit: Limit = DEFAULT_PAGE
    page: PageNumber = 1


class GetTrafficSources(Request, frozen=True, kw_only=True):
    """The author domain and the period of the statistics of traffic."""

    domain: Annotated[
        str,
        TEXT,
        Description(
            "Domain of the author, as in `GET /traffic`. Empty: mails without one; `*`: all "
            "senders beyond the maximum of a day."
        ),
    ] = ""
    days: TrafficDays = DEFAULT_TRAFFIC_DAYS
    limit: Limit = DEFAULT_PAGE
    page: PageNumber = 1


class DeleteReports(Request, frozen=True, kw_only=True):
    """The reports to delete: of a reporter, about a day, or both."""

    reporter: Annotated[
        Annotated[str, TEXT] | None,
        Description(
            "All reports of this reporter, as named by `GET /reports`. Empty: reports without a "
            "reporter.",
            example="google.com",
        ),
    ] = None
    day: Annotated[
        Annotated[Instant, DAY] | None,
        Description(
            "All reports about this day (UTC), which is the day of their beginning. A report "
            "without a period belongs to the day on which it arrived.",
            example="2026-11-19",
        ),
    ] = None

    @property
    def selection(self) -> ReportSelection:
        """The selected reports.

        :raises InvalidParameter: both fields are missing, which must not select all reports.
        """
        if self.reporter is None and self.day is None:
            raise InvalidParameter(
                "reporter",
                "reporter and day are missing: send reporter=..., day=2026-11-19 or both",
            )
        return ReportSelection(reporter=self.reporter, day=self.day)


class GetWatchHistory(Request, frozen=True, kw_only=True):
    """The beginning of the requested history."""

    since: Annotated[
        Since,
        Description(
            "Only changes since this instant. The default is the complete history of at most "
            f"{HISTORY_KEPT // ONE_DAY} days.",
        ),
    ] = None


MINUTES = FieldType(
    {
        "type": "integer",
        "minimum": SHORTEST_INTERVAL // MINUTE,
        "maximum": LONGEST_INTERVAL // MINUTE,
    },
    int,
)
"""The range is checked later, so that a request for several watches rejects only invalid ones."""


def _read_quiet_time(text: str) -> QuietTime | None:
    return parse_quiet_time(text) if text else None


QUIET_TIME = FieldType(
    {"type": "string", "pattern": rf"^(\s*{CLOCK_PATTERN}\s*-\s*{CLOCK_PATTERN}\s*)?$"},
    _read_quiet_time,
)


class AlertChoice(Request, frozen=True, kw_only=True):
    """When and to whom alerts are sent; of watches and of heartbeats."""

    quiet: Annotated[
        Annotated[QuietTime | None, QUIET_TIME] | UnsetType,
        Description("time of day (UTC) without alerts, like 22:00-06:00; empty: none"),
    ] = UNSET
    is_paused: Annotated[Annotated[bool, FLAG] | UnsetType, Description()] = field(
        name="paused", default=UNSET
    )
    alert_to: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | UnsetType,
        Description(ALERT_TO_TEXT, at_most=MOST_RECEIVERS),
    ] = UNSET


class WatchChoice(AlertChoice, frozen=True, kw_only=True):
    """The settings of a watch that its owner can change."""

    example: ClassVar = '{"everyMinutes": 15, "quiet": "22:00-06:00"}'

    every_minutes: Annotated[
        Annotated[int, MINUTES] | UnsetType,
        Description("minutes between two checks"),
    ] = UNSET
    selectors: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | UnsetType,
        Description("DKIM selectors that the domain signs with", at_most=MAX_SELECTORS),
    ] = UNSET
    addresses: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | UnsetType,
        Description("IP addresses that the domain sends from", at_most=MAX_ADDRESSES),
    ] = UNSET

    def changed(self, settings: WatchSettings) -> WatchSettings:
        """Return the settings with the chosen fields replaced."""
        chosen = self.chosen("quiet", "is_paused", "alert_to", "selectors", "addresses")
        if self.every_minutes is not UNSET:
            chosen["interval"] = self.every_minutes * MINUTE
        return replace(settings, **chosen)


class WatchToCreate(WatchChoice, frozen=True, kw_only=True):
    """A new watch."""

    example: ClassVar = '{"target": "example.com", "everyMinutes": 60, "selectors": ["s1"]}'

    target: Annotated[str, LONG_TEXT, Description("a domain or an IP address")]

    @property
    def settings(self) -> WatchSettings:
        """The settings of the watch."""
        return self.changed(WatchSettings())


class WatchesToCreate(Request, frozen=True, kw_only=True):
    """Several new watches."""

    example: ClassVar = '{"watches": [{"target": "example.com"}, {"target": "192.0.2.25"}]}'

    watches: Annotated[
        tuple[Annotated[WatchToCreate, object_of(WatchToCreate)], ...],
        Description("the new watches", at_most=MOST_AT_ONCE),
    ]
