"""The checks of a mail on the wire: HTML compatibility, accessibility, links."""

from collections.abc import Sequence
from typing import Annotated

from mailcheck.api.shapes import Count, Shape, Texts, doc, schema_keywords
from mailcheck.checks import mail_checks as checks
from mailcheck.checks.findings import Severity
from mailcheck.checks.link_checks import LinkCheck, LinkProblem, LinkVerdict
from mailcheck.checks.mail_checks import NotJudgedKind
from mailcheck.core.identifiers import MessageId

FEATURE_PAGE = "https://www.caniemail.com/features/{slug}/"


class Place(Shape):
    """A place in the source of the HTML."""

    line: Annotated[int, doc("counted from 1", ge=1)]
    excerpt: Annotated[str, doc("the beginning of what stands there")]


class ClientSupport(Shape):
    """How many mail clients of a family support something."""

    family: Annotated[str, doc("Gmail, Outlook, Apple Mail, Yahoo, Others")]
    supported: Count
    partial: Count
    unsupported: Count
    unknown: Annotated[int, doc("not tested, or not clear", ge=0)]


class ClientNote(Shape):
    """What is known of a feature in some clients."""

    text: str
    clients: Texts


class FeatureFinding(Shape):
    """A feature of HTML or CSS that the mail uses and not every client supports."""

    feature: Annotated[str, doc("its name at caniemail.com")]
    title: str
    url: Annotated[str, doc("its page at caniemail.com")]
    tested: Annotated[str, doc("day of the last test"), schema_keywords(format="date")]
    support: tuple[ClientSupport, ...]
    unsupported: Annotated[Texts, doc("clients that don't support it")]
    partial: Annotated[Texts, doc("clients that support it in part")]
    notes: tuple[ClientNote, ...]
    places: Annotated[tuple[Place, ...], doc("the first few")]
    count: Annotated[int, doc("places there are", ge=1)]


class NotJudged(Shape):
    """What was not to be seen, so that nothing is known of it."""

    what: NotJudgedKind
    reason: str
    places: Annotated[tuple[Place, ...], doc("the first few")]
    count: Annotated[int, doc("places there are", ge=1)]


class Compatibility(Shape):
    """What mail clients make of the HTML: the worst findings first."""

    source: str
    licence: str
    date: Annotated[str, doc("of the facts"), schema_keywords(format="date")]
    clients: Annotated[
        tuple[ClientSupport, ...],
        doc("clients that support all that the mail uses, all of it at least in part, or not all"),
    ]
    findings: tuple[FeatureFinding, ...]
    not_judged: Annotated[
        tuple[NotJudged, ...], doc("style sheets and pictures that count for no client")
    ]


class AccessibilityFinding(Shape):
    """What keeps some people from reading the mail."""

    id: str
    severity: Severity
    criterion: Annotated[str, doc("success criterion of WCAG 2.2")]
    meaning: str
    fix: str
    places: Annotated[tuple[Place, ...], doc("the first few; none where something is missing")]
    count: Annotated[int, doc("places there are", ge=1)]


class Accessibility(Shape):
    """What keeps people from reading the HTML, the worst first."""

    findings: tuple[AccessibilityFinding, ...]
    contrasts_not_judged: Annotated[
        int, doc("pieces of text whose colours a style sheet or a picture decides", ge=0)
    ]


class HtmlChecks(Shape):
    """What is said of the HTML of a mail; nothing of a mail without."""

    compatibility: Compatibility | None
    accessibility: Accessibility | None


class MailLink(Shape):
    """A link of the mail; a request may use up the best one and the one that leaves a list."""

    url: str
    words: Annotated[str, doc("the words on it")]
    is_best: Annotated[bool, doc("the link that a person would click")]
    is_unsubscribe: Annotated[bool, doc("it leaves a list")]


class MessageChecks(Shape):
    """The checks of a message. They change no score; no request is sent for them."""

    id: str
    compatibility: Annotated[Compatibility | None, doc("nothing where the mail has no HTML")]
    accessibility: Annotated[Accessibility | None, doc("nothing where the mail has no HTML")]
    links: tuple[MailLink, ...]
    is_cut: Annotated[bool, doc("the HTML is too long: only its beginning was checked")]


class Hop(Shape):
    """A request and the status that came back."""

    url: str
    status: int


class CheckedLink(Shape):
    """What came of asking for a link."""

    url: str
    method: Annotated[str, doc("HEAD or GET")]
    verdict: Annotated[LinkVerdict, doc("`unclear` and `not-checked` say nothing against the link")]
    status: Annotated[int | None, doc("of the last answer; nothing where none came")]
    final_url: Annotated[str, doc("where the last answer came from")]
    redirects: Annotated[tuple[Hop, ...], doc("each request, where there were several")]
    problem: Annotated[LinkProblem | None, doc("why no answer is judged")]
    explanation: str


class CheckedLinks(Shape):
    """The links of a message that were asked for."""

    id: str
    links: tuple[CheckedLink, ...]


def render_checks(message_id: MessageId, found: checks.MailChecks) -> MessageChecks:
    """Render the checks of a message."""
    return MessageChecks(
        id=message_id,
        compatibility=render_compatibility(found.compatibility),
        accessibility=render_accessibility(found.accessibility),
        links=tuple(
            MailLink(one.url, one.words, one.is_best, one.is_unsubscribe) for one in found.links
        ),
        is_cut=found.is_cut,
    )


def render_html_checks(found: checks.MailChecks) -> HtmlChecks:
    """Render what is said of the HTML of a mail that is no message."""
    return HtmlChecks(
        render_compatibility(found.compatibility), render_accessibility(found.accessibility)
    )


def render_compatibility(found: checks.Compatibility | None) -> Compatibility | None:
    """Render what mail clients make of HTML."""
    if found is None:
        return None
    return Compatibility(
        found.source,
        found.licence,
        found.date,
        tuple(map(_support, found.clients)),
        tuple(map(_feature, found.findings)),
        tuple(
            NotJudged(one.what, one.reason, _places(one.places), one.count)
            for one in found.not_judged
        ),
    )


def render_accessibility(found: checks.Accessibility | None) -> Accessibility | None:
    """Render who can't read HTML."""
    if found is None:
        return None
    return Accessibility(tuple(map(_barrier, found.findings)), found.contrasts_not_judged)


def render_checked_links(message_id: MessageId, found: Sequence[LinkCheck]) -> CheckedLinks:
    """Render what came of asking for links."""
    return CheckedLinks(message_id, tuple(map(_checked, found)))


def _support(one: checks.Support) -> ClientSupport:
    return ClientSupport(one.family, one.supported, one.partial, one.unsupported, one.unknown)


def _places(places: Sequence[checks.Place]) -> tuple[Place, ...]:
    return tuple(Place(one.line, one.excerpt) for one in places)


def _feature(one: checks.FeatureFinding) -> FeatureFinding:
    return FeatureFinding(
        feature=one.slug,
        title=one.title,
        url=FEATURE_PAGE.format(slug=one.slug),
        tested=one.tested,
        support=tuple(map(_support, one.support)),
        unsupported=one.unsupported,
        partial=one.partial,
        notes=tuple(ClientNote(note.text, note.clients) for note in one.notes),
        places=_places(one.places),
        count=one.count,
    )


def _barrier(one: checks.AccessibilityFinding) -> AccessibilityFinding:
    return AccessibilityFinding(
        id=one.finding.id,
        severity=one.finding.severity,
        criterion=one.criterion,
        meaning=one.finding.meaning,
        fix=one.finding.fix,
        places=_places(one.places),
        count=one.count,
    )


def _checked(one: LinkCheck) -> CheckedLink:
    answer = one.answer
    hops = answer.hops if len(answer.hops) > 1 else ()
    return CheckedLink(
        url=answer.url,
        method=answer.method,
        verdict=one.verdict,
        status=one.status,
        final_url=one.final_url,
        redirects=tuple(Hop(hop.url, hop.status) for hop in hops),
        problem=answer.problem,
        explanation=one.explanation,
    )
