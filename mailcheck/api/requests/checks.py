"""The requests of domain tools, deliverability tests, receivers' reports and watches."""

from typing import Annotated

from msgspec import field

from mailcheck.api.requests.fields import (
    DAY,
    DEFAULT_PAGE,
    DEFAULT_WAIT,
    FLAG,
    NAME,
    NAME_SCHEMA,
    TEXT,
    WHOLE_NUMBER,
    Limit,
    PageNumber,
    Since,
    Timeout,
)
from mailcheck.api.requests.reading import Kind, Request, said
from mailcheck.core.domain_names import MAX_ADDRESSES, MAX_SELECTORS, parse_selector
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import DAY as ONE_DAY
from mailcheck.core.instants import Instant
from mailcheck.core.receiver_reports import LARGEST_REPORT_PAGE, ReportSelection
from mailcheck.core.watches import HISTORY_KEPT

MOST_REPORT_DAYS, DEFAULT_REPORT_DAYS = 400, 30
"""Maximum and default number of days that an overview of reports is about."""

SELECTOR = Kind(NAME_SCHEMA, parse_selector)

IP_ADDRESS = Kind(
    {"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]}
)

Domain = Annotated[
    str,
    NAME,
    said(
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
        said(
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
        said(
            "DKIM selectors to look at beside the known ones; repeat it for more.",
            at_most=MAX_SELECTORS,
        ),
    ] = field(name="selector", default=())


class ReputationRequest(DomainRequest, frozen=True, kw_only=True):
    """A domain that is scored."""

    addresses: Annotated[
        tuple[Annotated[str, IP_ADDRESS], ...],
        said(
            "Public addresses that the domain sends from; repeat it for more.",
            at_most=MAX_ADDRESSES,
        ),
    ] = field(name="ip", default=())
    refresh: Annotated[bool, FLAG, said("true: check anew, whatever is in the cache.")] = False


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
    """What reports say about a domain."""

    domain: Domain
    days: Annotated[
        int,
        WHOLE_NUMBER,
        said("Days that it is about, up to today.", low=1, high=MOST_REPORT_DAYS),
    ] = DEFAULT_REPORT_DAYS
    limit: Annotated[
        int,
        WHOLE_NUMBER,
        said("Rows on a page: senders, or results.", low=1, high=LARGEST_REPORT_PAGE),
    ] = LARGEST_REPORT_PAGE
    page: PageNumber = 1


class DeleteReports(Request, frozen=True, kw_only=True):
    """Which reports are deleted: those of a reporter, about a day, or both."""

    reporter: Annotated[
        Annotated[str, TEXT] | None,
        said(
            "All reports of this reporter, as `GET /reports` names it; empty: reports without a "
            "reporter.",
            example="google.com",
        ),
    ] = None
    day: Annotated[
        Annotated[Instant, DAY] | None,
        said(
            "All reports about this day (UTC): the one in which they begin. A report that names "
            "no time belongs to the day on which it came.",
            example="2026-11-19",
        ),
    ] = None

    @property
    def selection(self) -> ReportSelection:
        """The reports that are selected.

        :raises InvalidParameter: nothing is given, which must not select all.
        """
        if self.reporter is None and self.day is None:
            raise InvalidParameter(
                "reporter",
                "reporter and day are missing: send reporter=..., day=2026-11-19 or both",
            )
        return ReportSelection(reporter=self.reporter, day=self.day)


class GetWatchHistory(Request, frozen=True, kw_only=True):
    """From when on changes are shown."""

    since: Annotated[
        Since,
        said(
            "Only what is from this moment on; without it all that is kept, "
            f"{HISTORY_KEPT // ONE_DAY} days at most."
        ),
    ] = None
