"""JSON shapes of the checks of a mail: HTML compatibility, accessibility, links."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import convert

from mailcheck.api.shapes import Count, Shape, Texts, doc, schema_keywords, shape_from
from mailcheck.checks import mail_checks as checks
from mailcheck.checks.findings import Severity
from mailcheck.checks.link_checks import LinkCheck, LinkProblem, LinkVerdict
from mailcheck.checks.mail_checks import NotJudgedKind
from mailcheck.checks.press_unsubscribe import Pressed, PressProblem, PressVerdict
from mailcheck.core.identifiers import MessageId

FEATURE_PAGE = "https://www.caniemail.com/features/{slug}/"


class Place(Shape):
    """A position in the HTML source."""

    line: Annotated[int, doc("line number, from 1", ge=1)]
    excerpt: Annotated[str, doc("beginning of the source at this position")]


class ClientSupport(Shape):
    """The number of mail clients of a family that support a feature."""

    family: Annotated[str, doc("Gmail, Outlook, Apple Mail, Yahoo, Others")]
    supported: Count
    partial: Count
    unsupported: Count
    unknown: Annotated[int, doc("not tested, or without a clear result", ge=0)]


class ClientNote(Shape):
    """A note about the support of a feature in some clients."""

    text: str
    clients: Texts


class FeatureFinding(Shape):
    """An HTML or CSS feature in the mail that some clients do not support."""

    feature: Annotated[str, doc("name at caniemail.com")]
    title: str
    url: Annotated[str, doc("page at caniemail.com")]
    tested: Annotated[str, doc("date of the last test"), schema_keywords(format="date")]
    support: tuple[ClientSupport, ...]
    unsupported: Annotated[Texts, doc("clients without support")]
    partial: Annotated[Texts, doc("clients with partial support")]
    notes: tuple[ClientNote, ...]
    places: Annotated[tuple[Place, ...], doc("the first occurrences")]
    count: Annotated[int, doc("number of occurrences", ge=1)]


class NotJudged(Shape):
    """Content that could not be evaluated, such as an external style sheet."""

    what: NotJudgedKind
    reason: str
    places: Annotated[tuple[Place, ...], doc("the first occurrences")]
    count: Annotated[int, doc("number of occurrences", ge=1)]


class Compatibility(Shape):
    """Support of the HTML by mail clients, the worst findings first."""

    source: str
    licence: str
    date: Annotated[str, doc("date of the data"), schema_keywords(format="date")]
    clients: Annotated[
        tuple[ClientSupport, ...],
        doc("clients of each family, counted by their worst support for a feature of the mail"),
    ]
    findings: tuple[FeatureFinding, ...]
    not_judged: Annotated[
        tuple[NotJudged, ...], doc("style sheets and images that were not evaluated")
    ]


class AccessibilityFinding(Shape):
    """A barrier that keeps some people from reading the mail."""

    id: str
    severity: Severity
    criterion: Annotated[str, doc("success criterion of WCAG 2.2")]
    meaning: str
    fix: str
    places: Annotated[tuple[Place, ...], doc("first occurrences; none if an element is missing")]
    count: Annotated[int, doc("number of occurrences", ge=1)]


class Accessibility(Shape):
    """Barriers in the HTML, the most severe first."""

    findings: tuple[AccessibilityFinding, ...]
    contrasts_not_judged: Annotated[
        int, doc("number of texts whose colours depend on a style sheet or an image", ge=0)
    ]


class HtmlChecks(Shape):
    """The checks of the HTML of a mail; null for a mail without HTML."""

    compatibility: Compatibility | None
    accessibility: Accessibility | None


class MailLink(Shape):
    """A link in the mail. A request may consume the best link or an unsubscribe link."""

    url: str
    words: Annotated[str, doc("text of the link")]
    is_best: Annotated[bool, doc("the link that a person would click")]
    is_unsubscribe: Annotated[bool, doc("an unsubscribe link")]


class MessageChecks(Shape):
    """The checks of a message. They change no score and send no request."""

    id: str
    compatibility: Annotated[Compatibility | None, doc("null without HTML")]
    accessibility: Annotated[Accessibility | None, doc("null without HTML")]
    links: tuple[MailLink, ...]
    is_cut: Annotated[bool, doc("the HTML is too long; only its beginning was checked")]


class Hop(Shape):
    """A request of a redirect chain, with the status of its response."""

    url: str
    status: int


class CheckedLink(Shape):
    """The result of requesting a link."""

    url: str
    method: Annotated[str, doc("HEAD or GET")]
    verdict: Annotated[
        LinkVerdict, doc("`unclear` and `not-checked` do not mean that the link is broken")
    ]
    status: Annotated[int | None, doc("status of the last response; null without a response")]
    final_url: Annotated[str, doc("URL of the last response")]
    redirects: Annotated[tuple[Hop, ...], doc("every request, if there were several")]
    problem: Annotated[LinkProblem | None, doc("why there is no response to evaluate")]
    explanation: str


class CheckedLinks(Shape):
    """The requested links of a message."""

    id: str
    links: tuple[CheckedLink, ...]


class PressedUnsubscribe(Shape):
    """The result of a one-click unsubscribe request."""

    url: Annotated[str | None, doc("the https URL of List-Unsubscribe; null if there is none")]
    verdict: Annotated[
        PressVerdict, doc("`unclear` and `not-sent` do not mean that unsubscribing is broken")
    ]
    status: Annotated[int | None, doc("status of the response; null without a response")]
    location: Annotated[str | None, doc("target of a redirect, which is not followed")]
    problem: Annotated[PressProblem | None, doc("what is wrong; null if accepted")]
    explanation: str
    fix: Annotated[str | None, doc("advice for the sender")]


def render_checks(message_id: MessageId, found: checks.MailChecks) -> MessageChecks:
    """Render the checks of a message."""
    return MessageChecks(
        id=message_id,
        compatibility=render_compatibility(found.compatibility),
        accessibility=render_accessibility(found.accessibility),
        links=convert(found.links, tuple[MailLink, ...], from_attributes=True),
        is_cut=found.is_cut,
    )


def render_html_checks(found: checks.MailChecks) -> HtmlChecks:
    """Render the checks of the HTML of a mail that is not stored as a message."""
    return HtmlChecks(
        render_compatibility(found.compatibility), render_accessibility(found.accessibility)
    )


def render_compatibility(found: checks.Compatibility | None) -> Compatibility | None:
    """Render the support of HTML by mail clients."""
    if found is None:
        return None
    return shape_from(
        Compatibility,
        found,
        clients=convert(found.clients, tuple[ClientSupport, ...], from_attributes=True),
        findings=tuple(map(_feature, found.findings)),
        not_judged=convert(found.not_judged, tuple[NotJudged, ...], from_attributes=True),
    )


def render_accessibility(found: checks.Accessibility | None) -> Accessibility | None:
    """Render the barriers in HTML."""
    if found is None:
        return None
    return Accessibility(tuple(map(_barrier, found.findings)), found.contrasts_not_judged)


def render_checked_links(message_id: MessageId, found: Sequence[LinkCheck]) -> CheckedLinks:
    """Render the results of requesting links."""
    return CheckedLinks(message_id, tuple(map(_checked, found)))


def render_pressed(found: Pressed) -> PressedUnsubscribe:
    """Render the result of an unsubscribe request."""
    answer = found.answer
    return shape_from(
        PressedUnsubscribe,
        found,
        url=answer.url or None,
        status=answer.status,
        location=answer.location or None,
        fix=found.fix or None,
    )


def _places(places: Sequence[checks.Place]) -> tuple[Place, ...]:
    return convert(places, tuple[Place, ...], from_attributes=True)


def _feature(one: checks.FeatureFinding) -> FeatureFinding:
    return shape_from(
        FeatureFinding,
        one,
        feature=one.slug,
        url=FEATURE_PAGE.format(slug=one.slug),
        support=convert(one.support, tuple[ClientSupport, ...], from_attributes=True),
        notes=convert(one.notes, tuple[ClientNote, ...], from_attributes=True),
        places=_places(one.places),
    )


def _barrier(one: checks.AccessibilityFinding) -> AccessibilityFinding:
    return shape_from(
        AccessibilityFinding,
        one.finding,
        criterion=one.criterion,
        places=_places(one.places),
        count=one.count,
    )


def _checked(one: LinkCheck) -> CheckedLink:
    answer = one.answer
    hops = answer.hops if len(answer.hops) > 1 else ()
    return shape_from(
        CheckedLink,
        one,
        url=answer.url,
        method=answer.method,
        redirects=convert(hops, tuple[Hop, ...], from_attributes=True),
        problem=answer.problem,
    )
