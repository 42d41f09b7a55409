"""The statistics of traffic as JSON."""

from typing import Annotated

from mailcheck.api.shapes import Count, Shape, Timestamp, doc, shape_from
from mailcheck.checks.auth_results import AuthResult
from mailcheck.operations.traffic.show_traffic import SourcesPage, TrafficPage
from mailcheck.store.domains.traffic_store import SenderTraffic, SourceTraffic

Day = Annotated[Timestamp, doc("start of the day (UTC)")]
Domain = Annotated[
    str, doc("domain of the author; empty without one, * for all senders beyond the maximum")
]
Points = Annotated[
    float | None, doc("mean points of the content filter; null if it has judged none of the mails")
]
Filtered = Annotated[int, doc("mails that the content filter has judged", ge=0)]
NextPage = Annotated[int | None, doc("null on the last page")]


class TrafficDay(Shape):
    """The mails of a day."""

    day: Day
    mails: Count
    dmarc_pass: Count
    filtered: Filtered
    spam: Count


class TrafficSender(Shape):
    """The mails of one author domain."""

    domain: Domain
    mails: Count
    spf_pass: Count
    dkim_pass: Count
    dmarc_pass: Count
    dmarc_fail: Count
    undetermined: Annotated[int, doc("mails whose DMARC result could not be determined", ge=0)]
    filtered: Filtered
    spam: Count
    mean_points: Points
    sources: Annotated[int, doc("different client addresses", ge=0)]
    last_day: Day


class TrafficOverview(Shape):
    """The senders of the mail of a mail server."""

    enabled: Annotated[bool, doc("this server has a milter endpoint")]
    mails: Count
    days: Annotated[tuple[TrafficDay, ...], doc("days with mail, oldest first")]
    senders: Annotated[tuple[TrafficSender, ...], doc("those with most mails first")]
    next_page: NextPage


class TrafficSource(Shape):
    """Mails with the same client, domains and results."""

    source: Annotated[str, doc("address of the client, or the /64 network of an IPv6 address")]
    envelope_domain: str
    dkim_domain: Annotated[str, doc("domain of a signature, preferably of a valid one")]
    spf: AuthResult
    dkim: AuthResult
    dmarc: AuthResult
    mails: Count
    filtered: Filtered
    spam: Count
    mean_points: Points
    last_day: Day


class TrafficSources(Shape):
    """The sources of one author domain."""

    domain: Domain
    sources: Annotated[tuple[TrafficSource, ...], doc("those with most mails first")]
    next_page: NextPage


def render_traffic(found: TrafficPage, page: int, *, is_on: bool) -> TrafficOverview:
    """Render a page of senders."""
    return TrafficOverview(
        enabled=is_on,
        mails=found.mails,
        days=tuple(shape_from(TrafficDay, day, dmarc_pass=day.dmarc) for day in found.days),
        senders=tuple(map(_sender, found.senders)),
        next_page=page + 1 if found.has_more else None,
    )


def render_sources(found: SourcesPage, page: int) -> TrafficSources:
    """Render a page of sources."""
    return shape_from(
        TrafficSources,
        found,
        sources=tuple(map(_source, found.sources)),
        next_page=page + 1 if found.has_more else None,
    )


def _sender(one: SenderTraffic) -> TrafficSender:
    return shape_from(
        TrafficSender,
        one,
        domain=one.author_domain,
        spf_pass=one.spf,
        dkim_pass=one.dkim,
        dmarc_pass=one.dmarc,
        dmarc_fail=one.dmarc_failed,
        mean_points=_mean(one.tenths, one.filtered),
    )


def _source(one: SourceTraffic) -> TrafficSource:
    return shape_from(TrafficSource, one, mean_points=_mean(one.tenths, one.filtered))


def _mean(tenths: int, count: int) -> float | None:
    return round(tenths / count / 10, 1) if count else None
