"""Failure reports and complaints about single mails as JSON: details, and sums for a domain."""

from collections.abc import Mapping
from typing import Annotated

from mailcheck.api.shapes import ABSENT, Absent, Count, Shape, Texts, Timestamp, doc
from mailcheck.checks.receiver_reports.complaints import (
    FeedbackGroup,
    advise_feedback,
    explain_feedback,
)
from mailcheck.core.domains.receiver_reports import Feedback, FeedbackType, ReportedMail
from mailcheck.core.instants import format_instant


class FeedbackMail(Shape):
    """Personal data of a reported mail, stored if the operator sets `[reports] keep_mail`."""

    sender: Annotated[str, doc("envelope sender")]
    recipients: Texts
    author: Annotated[str, doc("From header field")]
    subject: str
    text: Annotated[str, doc("beginning of the plain text")]


class FeedbackDetails(Shape):
    """What a failure report or complaint says about one mail. Missing texts are empty."""

    type: Annotated[FeedbackType, doc("RFC 5965 and RFC 6591; unknown types are `other`")]
    meaning: Annotated[str, doc("the type in one sentence")]
    fix: Annotated[str, doc("what to do")]
    source: Annotated[str, doc("IP address that sent the mail")]
    author_domain: str
    envelope_domain: str
    signing_domain: Annotated[str, doc("domain of a DKIM signature")]
    selector: str
    campaign: str
    campaign_field: Annotated[str, doc("source of the campaign: Feedback-ID, List-Id or DKIM")]
    failure: Annotated[str, doc("Auth-Failure of RFC 6591")]
    alignment: Annotated[str, doc("Identity-Alignment of RFC 9991")]
    delivery: Annotated[str, doc("Delivery-Result of RFC 6591")]
    results: Annotated[Texts, doc("results of authentication, like dkim=fail")]
    incidents: Annotated[int, doc("number of mails in this report", ge=1)]
    arrived_at: Annotated[Timestamp | None, doc("when the mail arrived, according to the report")]
    program: Annotated[str, doc("program that wrote the report")]
    mail: Annotated[FeedbackMail | Absent, doc("absent unless the operator keeps it")] = ABSENT


class TypeCount(Shape):
    """Number of mails with one type of report."""

    type: FeedbackType
    mails: Count


class FeedbackSource(Shape):
    """An address, and the reports about mails that it sent."""

    address: str
    failures: Count
    complaints: Count
    types: tuple[TypeCount, ...]
    reporters: Texts
    last_day: str


class FeedbackCampaign(Shape):
    """A campaign, and the reports about its mails."""

    field: Annotated[str, doc("Feedback-ID, List-Id or DKIM")]
    name: Annotated[str, doc("value of the field; for DKIM, the signing domain")]
    failures: Count
    complaints: Count
    types: tuple[TypeCount, ...]
    reporters: Texts
    last_day: str


def render_feedback(feedback: Feedback) -> FeedbackDetails:
    """Render the content of one report."""
    arrived_at = feedback.arrived_at
    return FeedbackDetails(
        type=feedback.type,
        meaning=explain_feedback(feedback),
        fix=advise_feedback(feedback.type),
        source=feedback.source,
        author_domain=feedback.author_domain,
        envelope_domain=feedback.envelope_domain,
        signing_domain=feedback.signing_domain,
        selector=feedback.selector,
        campaign=feedback.campaign,
        campaign_field=feedback.campaign_field,
        failure=feedback.failure,
        alignment=feedback.alignment,
        delivery=feedback.delivery,
        results=feedback.results,
        incidents=feedback.incidents,
        arrived_at=None if arrived_at is None else format_instant(arrived_at),
        program=feedback.program,
        mail=ABSENT if feedback.mail is None else _mail(feedback.mail),
    )


def _mail(mail: ReportedMail) -> FeedbackMail:
    return FeedbackMail(mail.sender, mail.recipients, mail.author, mail.subject, mail.text)


def render_types(types: Mapping[FeedbackType, int]) -> tuple[TypeCount, ...]:
    """Render numbers of mails by type."""
    return tuple(TypeCount(kind, mails) for kind, mails in types.items())


def render_source(group: FeedbackGroup) -> FeedbackSource:
    """Render the reports about an address."""
    return FeedbackSource(
        address=group.name,
        failures=group.failures,
        complaints=group.complaints,
        types=render_types(group.types),
        reporters=group.reporters,
        last_day=format_instant(group.last_day)[:10],
    )


def render_campaign(group: FeedbackGroup) -> FeedbackCampaign:
    """Render the reports about a campaign."""
    return FeedbackCampaign(
        field=group.field,
        name=group.name,
        failures=group.failures,
        complaints=group.complaints,
        types=render_types(group.types),
        reporters=group.reporters,
        last_day=format_instant(group.last_day)[:10],
    )
