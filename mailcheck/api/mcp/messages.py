"""Arguments and structured content of the tools for one message (docs/reference/contract.md)."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from mailcheck.api.authentication import Authentication, render_authentication
from mailcheck.api.inbox.messages import (
    Candidate,
    Envelope,
    render_candidate,
    render_message,
)
from mailcheck.api.mcp.attachments import AttachmentView
from mailcheck.api.mcp.inbox import ArrivedMail, render_arrived
from mailcheck.api.mcp.untrusted import (
    MAIL_FIELDS,
    MAIL_NOTICE,
    Fence,
    Untrusted,
    clean,
    clean_line,
)
from mailcheck.api.mcp.views import FEW_LINKS, MAX_TEXT, MessageView, view_html
from mailcheck.api.requests.fields import INTEGER, NAME, TEXT, one_of
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Count, Shape, Texts, Timestamp, doc, shape_from
from mailcheck.api.urls import PublicUrls
from mailcheck.checks.content import bodies
from mailcheck.checks.deliverability import authentication as verdicts
from mailcheck.checks.mail_checks import MailChecks, Place, Support
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import StoredMessage

MOST_FEATURES = 15
"""Maximum number of features in a result, the least supported first. REST returns all."""

Lines = tuple[int, ...]

PARTS = ("text", "html", "links", "headers", "files", "authentication", "checks")
"""The parts of a message that `get_message` includes on request."""

WINDOW, LARGEST_WINDOW = 2_000, MAX_TEXT
"""Default and maximum number of characters of text and of HTML in one result."""

MAX_HEADERS = 60
"""Maximum number of header fields in a result. A mail with four relays and three signatures has
about 40."""

MAX_FILES = 50
"""Maximum number of attachments in a result."""

FEW_CANDIDATES = 10
"""Maximum number of possible codes and links with their reasons in a result, the best first."""


class MessageArguments(Request, frozen=True, kw_only=True):
    """The argument of tools for one message."""

    id: Annotated[str, TEXT, Description(brief="id or cursor of a mail")]


class GetMessageArguments(MessageArguments, frozen=True, kw_only=True):
    """Arguments of ``get_message``."""

    include: Annotated[
        tuple[Annotated[str, one_of(PARTS)], ...],
        Description(brief="default: text", at_most=len(PARTS)),
    ] = (PARTS[0],)
    offset: Annotated[int, INTEGER, Description(brief="nextOffset", low=0, high=LARGEST_WINDOW)] = 0
    length: Annotated[int, INTEGER, Description(brief="characters", low=1, high=LARGEST_WINDOW)] = (
        WINDOW
    )


class AttachmentArguments(MessageArguments, frozen=True, kw_only=True):
    """Arguments of ``get_attachment``."""

    attachment_id: Annotated[str, NAME, Description(brief="of files in get_message")]


class Feature(Shape):
    """An HTML or CSS feature that not every mail client supports."""

    title: str
    lines: Annotated[Lines, doc("first line numbers, from 1")]
    programs: Annotated[Texts, doc("client families without full support")]


class Barrier(Shape):
    """A barrier that keeps some people from reading the HTML."""

    meaning: str
    fix: str
    lines: Lines


class ChecksSummary(Shape):
    """A summary of the HTML checks of a message. The checks change no score."""

    has_html: bool
    compatibility: tuple[Feature, ...]
    accessibility: tuple[Barrier, ...]
    not_judged: Annotated[Texts, doc("content that could not be evaluated")]
    left_out: Annotated[int, doc("number of omitted features", ge=0)]


def render_checks_summary(found: MailChecks) -> ChecksSummary:
    """Render a summary of the checks, with the sender's text cleaned."""
    compatibility, accessibility = found.compatibility, found.accessibility
    features = compatibility.findings if compatibility is not None else ()
    unseen = [
        f"{entry.count} {entry.what.value}{'' if entry.count == 1 else 's'}: {entry.reason}"
        for entry in (compatibility.not_judged if compatibility is not None else ())
    ]
    if found.is_cut:
        unseen.append("the end of the HTML, which is too long")
    shape = ChecksSummary(
        has_html=compatibility is not None,
        compatibility=tuple(
            Feature(feature.title, _lines(feature.places), tuple(_families(feature.support)))
            for feature in features[:MOST_FEATURES]
        ),
        accessibility=tuple(
            Barrier(finding.finding.meaning, finding.finding.fix, _lines(finding.places))
            for finding in (accessibility.findings if accessibility is not None else ())
        ),
        not_judged=tuple(unseen),
        left_out=max(0, len(features) - MOST_FEATURES),
    )
    return clean(shape)


def _families(support: Sequence[Support]) -> Iterator[str]:
    for client in support:
        if client.unsupported or client.partial:
            tested = client.supported + client.partial + client.unsupported
            part = f", {client.partial} partially" if client.partial else ""
            yield f"{client.family} {client.supported} of {tested}{part}"


def _lines(places: Sequence[Place]) -> Lines:
    return tuple(place.line for place in places)


class File(Shape):
    """An attachment, which `get_attachment` reads."""

    id: str
    filename: str
    content_type: str
    size: Annotated[int, doc("bytes, decoded")]


class ReadMail(ArrivedMail):
    """A mail with the parts that were requested."""

    to: str
    received_at: Timestamp
    warnings: Annotated[Texts | Absent, doc("about hidden and omitted text")] = ABSENT
    text: Annotated[str | Absent, doc("visible text, fenced by the marker")] = ABSENT
    html: Annotated[str | Absent, doc("fenced; images and scripts are defused")] = ABSENT
    links: Annotated[Texts | Absent, doc("http(s) links, in order")] = ABSENT
    headers: Annotated[dict[str, str] | Absent, doc("by lower-case name")] = ABSENT
    envelope: Envelope | Absent = ABSENT
    problems: Annotated[Texts | Absent, doc("syntax errors in the mail")] = ABSENT
    files: tuple[File, ...] | Absent = ABSENT
    authentication: Authentication | Absent = ABSENT
    checks: ChecksSummary | Absent = ABSENT


class MessageResult(Shape):
    """A message with the requested parts."""

    untrusted: Untrusted
    message: Annotated[
        ReadMail, doc("the fields of a wait, `to`, `receivedAt`, and the requested parts")
    ]
    next_offset: Annotated[
        int | Absent, doc("offset of the rest of text or html; absent: there is none")
    ] = ABSENT
    more: Annotated[
        dict[str, int] | Absent,
        doc("parts that are not included, with their number of characters or entries"),
    ] = ABSENT


class ExtractResult(Shape):
    """The codes and links of a message, with the best candidates."""

    untrusted: Untrusted
    id: str
    codes: Annotated[Texts, doc("one-time codes, best first")]
    best_link: Annotated[str | None, doc("the link a person would click; null if unclear")]
    links: Annotated[Texts, doc("the first http(s) links, in order")]
    candidates: Annotated[tuple[Candidate, ...], doc("best first, including rejected ones")]
    left_out: Annotated[Count | Absent, doc("number of further candidates")] = ABSENT


class AttachmentResult(Shape):
    """An attachment: its text, an image in the content of the result, or a link."""

    untrusted: Untrusted
    filename: str
    content_type: str
    size: Annotated[int, doc("bytes, decoded")]
    text: Annotated[str | Absent, doc("fenced by the marker; absent if it is not text")] = ABSENT
    warnings: Texts | Absent = ABSENT
    download_url: Annotated[
        str | Absent, doc("requires no key; absent if the result contains the whole attachment")
    ] = ABSENT


class DeleteResult(Shape):
    """Confirmation that a message was deleted."""

    id: str
    deleted: bool


def render_read_message(
    message: StoredMessage,
    view: MessageView,
    asked: GetMessageArguments,
    fence: Fence,
    urls: PublicUrls,
    authentication: verdicts.Authentication | None = None,
    checks: MailChecks | None = None,
) -> MessageResult:
    """Render a message with the requested parts, and count the others."""
    shape, start = render_message(message, urls), asked.offset
    html = view_html(shape.html)
    whole = {"text": view.text, "html": html}
    shown = {name: text[start : start + asked.length] for name, text in whole.items()}
    is_cut = any(start + asked.length < len(whole[name]) for name in whole if name in asked.include)
    headers = clean(dict(list(shape.headers.items())[:MAX_HEADERS]))
    files = shape.attachments[:MAX_FILES]
    parts: dict[str, dict[str, Any]] = {
        **{name: {name: fence.around(text) if text else ""} for name, text in shown.items()},
        "links": {"links": tuple(view.links)},
        "headers": {
            "headers": headers,
            "envelope": clean(shape.envelope),
            "problems": clean(shape.problems) or ABSENT,
        },
        "files": {"files": tuple(clean(shape_from(File, file)) for file in files)},
    }
    if authentication is not None:
        parts["authentication"] = {"authentication": clean(render_authentication(authentication))}
    if checks is not None:
        parts["checks"] = {"checks": render_checks_summary(checks)}
    read = render_arrived(
        ReadMail,
        message,
        view,
        to=clean_line(message.summary.recipient),
        received_at=format_instant(message.summary.received_at),
        warnings=tuple(view.warnings) or ABSENT,
        **{field: one for name in asked.include for field, one in parts.get(name, {}).items()},
    )
    sizes = {
        "text": len(view.text),
        "html": len(html),
        "links": len(message.content.links),
        "headers": len(shape.headers),
        "files": len(shape.attachments),
    }
    more = {name: size for name, size in sizes.items() if size and name not in asked.include}
    return MessageResult(
        fence.explain(MAIL_FIELDS),
        read,
        start + asked.length if is_cut else ABSENT,
        more or ABSENT,
    )


def render_extraction(message: StoredMessage, view: MessageView) -> ExtractResult:
    """Render the codes and links, with the best candidates and their reasons."""
    candidates = message.content.candidates
    return ExtractResult(
        MAIL_NOTICE,
        id=message.summary.id,
        codes=tuple(message.content.codes),
        best_link=message.content.best_link,
        links=tuple(view.links[:FEW_LINKS]),
        candidates=tuple(
            clean(render_candidate(candidate)) for candidate in candidates[:FEW_CANDIDATES]
        ),
        left_out=max(0, len(candidates) - FEW_CANDIDATES) or ABSENT,
    )


def render_attachment(
    found: bodies.Attachment,
    view: AttachmentView,
    fence: Fence,
    url: str | None,
) -> AttachmentResult:
    """Render an attachment, with a link unless the result contains all of it."""
    return AttachmentResult(
        untrusted=fence.explain(MAIL_FIELDS),
        filename=clean_line(found.filename),
        content_type=clean_line(found.content_type),
        size=len(found.data),
        text=fence.around(view.text) if view.text else ABSENT,
        warnings=tuple(view.warnings) or ABSENT,
        download_url=url or ABSENT,
    )
