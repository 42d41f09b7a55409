"""Failure reports and complaints about single mails as JSON: details, and sums for a domain."""

from collections.abc import Mapping
from typing import Annotated

from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Count,
    Date,
    Shape,
    Texts,
    Timestamp,
    doc,
    shape_from,
)
from mailcheck.checks.receiver_reports.complaints import (
    FeedbackGroup,
    advise_feedback,
    explain_feedback,
)
from mailcheck.core.domains.receiver_reports import Feedback, FeedbackType


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
    last_day: Date


class FeedbackCampaign(Shape):
    """A campaign, and the reports about its mails."""

    field: Annotated[str, doc("Feedback-ID, List-Id or DKIM")]
    name: Annotated[str, doc("value of the field; for DKIM, the signing domain")]
    failures: Count
    complaints: Count
    types: tuple[TypeCount, ...]
    reporters: Texts
    last_day: Date


def render_feedback(feedback: Feedback) -> FeedbackDetails:
    """Render the content of one report."""
    return shape_from(
        FeedbackDetails,
        feedback,
        meaning=explain_feedback(feedback),
        fix=advise_feedback(feedback.type),
    )


def render_types(types: Mapping[FeedbackType, int]) -> tuple[TypeCount, ...]:
    """Render numbers of mails by type."""
    return tuple(TypeCount(kind, mails) for kind, mails in types.items())


def render_source(group: FeedbackGroup) -> FeedbackSource:
    """Render the reports about an address."""
    return shape_from(FeedbackSource, group, address=group.name, types=render_types(group.types))


def render_campaign(group: FeedbackGroup) -> FeedbackCampaign:
    """Render the reports about a campaign."""
    return shape_from(FeedbackCampaign, group, types=render_types(group.types))
