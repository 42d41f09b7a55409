"""The requests of domain tools, deliverability tests, receivers' reports and watches."""

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
)
from mailcheck.api.requests.parsing import Description, FieldType, Request
from mailcheck.core.domain_names import MAX_ADDRESSES, MAX_SELECTORS, parse_selector
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import DAY as ONE_DAY
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.receiver_reports import LARGEST_REPORT_PAGE, ReportSelection
from mailcheck.core.watches import (
    HISTORY_KEPT,
    LONGEST_INTERVAL,
    MOST_AT_ONCE,
    MOST_RECEIVERS,
    SHORTEST_INTERVAL,
    QuietTime,
    WatchSettings,
    parse_quiet_time,
)

MOST_REPORT_DAYS, DEFAULT_REPORT_DAYS = 400, 30
"""Maximum and default number of days that an overview of reports is about."""

SELECTOR = FieldType(NAME_SCHEMA, parse_selector)

IP_ADDRESS = FieldType(
    {"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]}
)

Domain = Annotated[
    str,
    NAME,
    Description(
        "A domain of the public DNS, in any script: no URL, no mail address, no IP address, no "
        "single label.",
        brief="like example.com",
        example="example.com",
    ),
]


class MxRequest(Request, frozen=True, kw_only=True):
    """A domain whose MX, SPF and DMARC are checked."""

    domain: Domain


class BlocklistRequest(Request, frozen=True, kw_only=True):
    """An address or a domain that lists are asked about."""

    query: Annotated[
        str,
        NAME,
        Description(
            "A public IPv4 or IPv6 address, or a domain name.",
            brief="an IP address or a domain name",
            example="192.0.2.1",
        ),
    ]


class DomainRequest(Request, frozen=True, kw_only=True):
    """A domain, and selectors that it signs with."""

    domain: Domain
    selectors: Annotated[
        tuple[Annotated[str, SELECTOR], ...],
        Description(
            "DKIM selectors to look at beside the known ones; repeat it for more.",
            at_most=MAX_SELECTORS,
        ),
    ] = field(name="selector", default=())


class ReputationRequest(DomainRequest, frozen=True, kw_only=True):
    """A domain that is scored."""

    addresses: Annotated[
        tuple[Annotated[str, IP_ADDRESS], ...],
        Description(
            "Public addresses that the domain sends from; repeat it for more.",
            at_most=MAX_ADDRESSES,
        ),
    ] = field(name="ip", default=())
    refresh: Annotated[bool, FLAG, Description("true: check anew, whatever is in the cache.")] = (
        False
    )


class ListPage(Request, frozen=True, kw_only=True):
    """A page of a list."""

    limit: Limit = DEFAULT_PAGE
    page: PageNumber = 1

    @property
    def offset(self) -> int:
        """The number of entries on the pages before."""
        return (self.page - 1) * self.limit


class WaitForTest(Request, frozen=True, kw_only=True):
    """A wait for the end of a deliverability test."""

    timeout: Timeout = DEFAULT_WAIT


class GetReports(Request, frozen=True, kw_only=True):
    """An overview of the reports about a domain."""

    domain: Domain
    days: Annotated[
        int,
        INTEGER,
        Description("Days that it is about, up to today.", low=1, high=MOST_REPORT_DAYS),
    ] = DEFAULT_REPORT_DAYS
    limit: Annotated[
        int,
        INTEGER,
        Description("Rows on a page: senders, or results.", low=1, high=LARGEST_REPORT_PAGE),
    ] = LARGEST_REPORT_PAGE
    page: PageNumber = 1


class DeleteReports(Request, frozen=True, kw_only=True):
    """The reports to delete: of a reporter, about a day, or both."""

    reporter: Annotated[
        Annotated[str, TEXT] | None,
        Description(
            "All reports of this reporter, as `GET /reports` names it; empty: reports without a "
            "reporter.",
            example="google.com",
        ),
    ] = None
    day: Annotated[
        Annotated[Instant, DAY] | None,
        Description(
            "All reports about this day (UTC): the one in which they begin. A report that names "
            "no time belongs to the day on which it came.",
            example="2026-11-19",
        ),
    ] = None

    @property
    def selection(self) -> ReportSelection:
        """The reports that are selected.

        :raises InvalidParameter: both fields are missing, which must not select all reports.
        """
        if self.reporter is None and self.day is None:
            raise InvalidParameter(
                "reporter",
                "reporter and day are missing: send reporter=..., day=2026-11-19 or both",
            )
        return ReportSelection(reporter=self.reporter, day=self.day)


class GetWatchHistory(Request, frozen=True, kw_only=True):
    """The time from which changes are shown."""

    since: Annotated[
        Since,
        Description(
            "Only what is from this moment on; without it all that is kept, "
            f"{HISTORY_KEPT // ONE_DAY} days at most."
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
"""The operation checks the range: of several watches it refuses only those that are wrong."""


def _read_quiet_time(text: str) -> QuietTime | None:
    return parse_quiet_time(text) if text else None


class WatchChoice(Request, frozen=True, kw_only=True):
    """What the owner of a watch chooses."""

    example: ClassVar = '{"everyMinutes": 15, "quiet": "22:00-06:00"}'

    every_minutes: Annotated[
        Annotated[int, MINUTES] | UnsetType,
        Description("minutes between two runs"),
    ] = UNSET
    selectors: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | UnsetType,
        Description("DKIM selectors that the domain signs with", at_most=MAX_SELECTORS),
    ] = UNSET
    addresses: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | UnsetType,
        Description("addresses that the domain sends from", at_most=MAX_ADDRESSES),
    ] = UNSET
    quiet: Annotated[
        Annotated[QuietTime | None, FieldType({"type": "string"}, _read_quiet_time)] | UnsetType,
        Description("times of the day (UTC) without alerts, like 22:00-06:00; or empty"),
    ] = UNSET
    is_paused: Annotated[Annotated[bool, FLAG] | UnsetType, Description()] = field(
        name="paused", default=UNSET
    )
    alert_to: Annotated[
        tuple[Annotated[str, LONG_TEXT], ...] | UnsetType,
        Description(
            "who is told of alerts beside your own inbox: URLs, as webhooks, and addresses of mail",
            at_most=MOST_RECEIVERS,
        ),
    ] = UNSET

    def changed(self, settings: WatchSettings) -> WatchSettings:
        """Return settings with the chosen fields; the others stay the same."""
        names = set(self.__struct_fields__) & set(WatchSettings.__struct_fields__)
        chosen = {name: getattr(self, name) for name in names}
        if self.every_minutes is not UNSET:
            chosen["interval"] = self.every_minutes * MINUTE
        return replace(settings, **{name: one for name, one in chosen.items() if one is not UNSET})


class NewWatch(WatchChoice, frozen=True, kw_only=True):
    """A watch to be made."""

    example: ClassVar = '{"target": "example.com", "everyMinutes": 60, "selectors": ["s1"]}'

    target: Annotated[str, LONG_TEXT, Description("a domain or an IP address")]

    @property
    def settings(self) -> WatchSettings:
        """The settings of the watch."""
        return self.changed(WatchSettings())


class NewWatches(Request, frozen=True, kw_only=True):
    """Watches to be made."""

    example: ClassVar = '{"watches": [{"target": "example.com"}, {"target": "192.0.2.25"}]}'

    watches: Annotated[
        tuple[
            Annotated[
                NewWatch, FieldType({"$ref": "#/components/schemas/NewWatch"}, nested=NewWatch)
            ],
            ...,
        ],
        Description("at once", at_most=MOST_AT_ONCE),
    ]
