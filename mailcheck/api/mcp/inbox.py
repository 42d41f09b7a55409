"""Arguments and structured content of the inbox tools (docs/reference/contract.md)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from mailcheck.api.authentication import Authentication, render_authentication
from mailcheck.api.inbox.messages import (
    Attachment,
    Candidate,
    Cursor,
    Envelope,
    ListedMessage,
    Message,
    RefusedMail,
    SeenMessage,
    SummarizedMessage,
    bound_links,
    render_candidate,
    render_listed_message,
    render_message,
)
from mailcheck.api.inbox.overview import NotSearched, render_list
from mailcheck.api.inbox.waits import render_timed_out, render_unexpected_message
from mailcheck.api.mcp.attachments import AttachmentView
from mailcheck.api.mcp.untrusted import Fence, Untrusted, clean, clean_line
from mailcheck.api.mcp.views import FEW_LINKS, MAX_LINKS, MessageView, view_html
from mailcheck.api.requests.fields import (
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    FLAG,
    INTEGER,
    LONGEST_TASK,
    MAX_WAIT_COUNT,
    NAME,
    TAG,
    TEXT,
    Limit,
    Timeout,
)
from mailcheck.api.requests.inbox import ListMessages, WaitFilters
from mailcheck.api.requests.parsing import Description, Request, request_fields
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, doc, dump_json, fields_of
from mailcheck.api.urls import PublicUrls
from mailcheck.checks.content import bodies
from mailcheck.checks.deliverability import authentication as verdicts
from mailcheck.checks.mail_checks import MailChecks, Place, Support
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.explain_wait import TimedOut
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.operations.inbox.wait_for_message import Messages, NoMessage, UnexpectedMessage

MOST_FEATURES = 15
"""Maximum number of features in a result, the least supported first. REST returns all."""

Lines = tuple[int, ...]


class NewAddressArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``new_address``. Without a tag, a unique one is generated."""

    tag: Annotated[
        Annotated[str, TAG] | None,
        Description(brief="use this +tag, not a unique one (letters, digits, dots, dashes)"),
    ] = None


class WaitForMessageArguments(WaitFilters, frozen=True, kw_only=True):
    """Arguments of ``wait_for_message``: a wait for one message, several, or none."""

    timeout: Annotated[
        Timeout | None,
        Description(
            brief=f"seconds to wait; a call answers within 55; {DEFAULT_SILENCE:g} with none",
            default=DEFAULT_WAIT,
        ),
    ] = None
    count: Annotated[
        Annotated[int, INTEGER] | None,
        Description(
            brief="wait for this many mails and return messages", low=1, high=MAX_WAIT_COUNT
        ),
    ] = None
    none: Annotated[
        bool, FLAG, Description(brief="true: expect no matching mail within timeout")
    ] = False

    @property
    def seconds(self) -> float:
        """The duration of the wait in seconds.

        :raises InvalidParameter: both ``none`` and ``count`` are given.
        """
        if self.none and self.count is not None:
            raise InvalidParameter("none", "none and count cannot be combined: send only one")
        default = DEFAULT_SILENCE if self.none else DEFAULT_WAIT
        return default if self.timeout is None else self.timeout


class LongWaitArguments(WaitForMessageArguments, frozen=True, kw_only=True):
    """Arguments of ``wait_for_message`` for clients of tasks."""

    timeout: Annotated[
        Timeout | None,
        Description(
            brief=f"seconds; {DEFAULT_SILENCE:g} with none", default=DEFAULT_WAIT, high=LONGEST_TASK
        ),
    ] = None


class ListMessagesArguments(ListMessages, frozen=True, kw_only=True):
    """Arguments of ``list_messages``, with small pages that fit into the context of a model."""

    undescribed: ClassVar = tuple(request_fields(WaitFilters))

    limit: Limit = 20


class MessageArguments(Request, frozen=True, kw_only=True):
    """The argument of tools for one message."""

    id: Annotated[str, TEXT, Description(brief="id of a message")]


class GetMessageArguments(MessageArguments, frozen=True, kw_only=True):
    """Arguments of ``get_message``."""

    full: Annotated[
        bool,
        FLAG,
        Description(brief="true: include all text, HTML, links and headers (up to 60 KB)"),
    ] = False
    checks: Annotated[
        bool,
        FLAG,
        Description(brief="true: include HTML that mail clients or screen readers cannot read"),
    ] = False


class AttachmentArguments(MessageArguments, frozen=True, kw_only=True):
    """Arguments of ``get_attachment``."""

    attachment_id: Annotated[str, NAME, Description(brief="id from get_message, like 1")]


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


def format_checks(found: ChecksSummary) -> Iterator[str]:
    """Format the checks as lines. They quote the mail, so they belong inside a fence."""
    if not found.has_html:
        yield "No HTML: every mail client shows plain text."
        return
    for feature in found.compatibility:
        yield f"{feature.title}{_at(feature.lines)}: {'; '.join(feature.programs)}"
    if found.left_out:
        yield f"{found.left_out} more features that not every mail client supports"
    for barrier in found.accessibility:
        yield f"Accessibility{_at(barrier.lines)}: {barrier.meaning} Fix: {barrier.fix}"
    yield from (f"Not evaluated: {text}" for text in found.not_judged)
    if not (found.compatibility or found.accessibility or found.not_judged):
        yield "All tested mail clients show it, and there are no accessibility problems."


def _families(support: Sequence[Support]) -> Iterator[str]:
    for client in support:
        if client.unsupported or client.partial:
            tested = client.supported + client.partial + client.unsupported
            part = f", {client.partial} partially" if client.partial else ""
            yield f"{client.family} {client.supported} of {tested}{part}"


def _lines(places: Sequence[Place]) -> Lines:
    return tuple(place.line for place in places)


def _at(lines: Lines) -> str:
    return f" (line {', '.join(map(str, lines))})" if lines else ""


MAX_HEADERS = 60
"""Maximum number of header fields in a result. A mail with four relays and three signatures has
about 40."""

MAX_CANDIDATE_CHARACTERS = 40_000
"""Maximum number of characters of all candidates, the best first."""


FEW_PEOPLE = 10
"""Maximum number of addresses of a header field in the text for a model."""

FEW_SEEN = 3
"""Maximum number of non-matching messages after a timeout in the text for a model."""

BRIEF_TEXT, BRIEF_LINKS, BRIEF_HTML = 4_000, 2_000, 2_000
BRIEF_HEADERS, BRIEF_ATTACHMENTS, BRIEF_PROBLEMS = 2_500, 1_500, 800
"""Maximum number of octets of each part of a message, unless the whole message is requested."""

Value = TypeVar("Value")


class ReceivedMessage(SummarizedMessage):
    """A message as an agent reads it."""

    attachments: tuple[Attachment, ...]
    text: Annotated[
        str, doc("visible text, fenced by the untrusted marker; empty if there is none")
    ]
    hides_text: Annotated[bool, doc("the mail contains text that people do not see")]
    warnings: Annotated[Texts, doc("about hidden and omitted text")]


class WholeMessage(ReceivedMessage):
    """A message with all details."""

    html: Annotated[
        str, doc("fenced by the untrusted marker, images and scripts defused; may be empty")
    ]
    headers: Annotated[dict[str, str], doc("header fields by lower-case name")]
    envelope: Envelope
    problems: Annotated[Texts, doc("syntax errors in the mail")]
    authentication: Authentication


class WaitResult(Shape):
    """The result of a wait, with or without a message."""

    untrusted: Untrusted
    timed_out: Annotated[bool, doc("true: no match before the timeout; call again with the cursor")]
    message: ReceivedMessage | None
    cursor: Cursor
    waited: Annotated[float, doc("seconds")]
    hint: Annotated[str | None, doc("why no message matched and what to do; otherwise null")]
    seen: Annotated[tuple[SeenMessage, ...], doc("messages that arrived but did not match")]
    rejected: Annotated[tuple[RefusedMail, ...], doc("rejected mail for this inbox")]
    other_tags: Annotated[int | Absent, doc("number of messages to other tags")] = ABSENT
    messages: Annotated[
        tuple[ListedMessage, ...] | Absent, doc("with count: that many, oldest first")
    ] = ABSENT
    none: Annotated[bool | Absent, doc("with none: whether no such mail arrived")] = ABSENT


class ListResult(Shape):
    """A page of messages."""

    untrusted: Untrusted
    messages: Annotated[tuple[ListedMessage, ...], doc("newest first, with at most ten links each")]
    next_page: int | None
    total: Annotated[int, doc("number of matching messages")]
    cursor: Cursor
    not_searched: NotSearched = ABSENT


class MessageResult(Shape):
    """A message, optionally with its checks."""

    untrusted: Untrusted
    message: WholeMessage
    checks: ChecksSummary | Absent = ABSENT


class ExtractResult(Shape):
    """The codes and links of a message, with all candidates."""

    untrusted: Untrusted
    id: str
    links: Annotated[Texts, doc("http(s) links, in order")]
    best_link: Annotated[str | None, doc("the link a person would click; null if unclear")]
    codes: Annotated[Texts, doc("one-time codes, best first")]
    candidates: Annotated[tuple[Candidate, ...], doc("best first, including rejected ones")]


class AttachmentResult(Shape):
    """An attachment: its text, an image in the content of the result, or a link."""

    untrusted: Untrusted
    filename: str
    content_type: str
    size: Annotated[int, doc("bytes, decoded")]
    text: Annotated[str, doc("fenced by the untrusted marker; empty if it is not text")]
    warnings: Texts
    download_url: Annotated[
        str | None, doc("requires no key; null if the result contains the whole attachment")
    ]


class DeleteResult(Shape):
    """Confirmation that a message was deleted."""

    id: str
    deleted: bool


def render_arrival(
    message: StoredMessage, view: MessageView, waited: float, fence: Fence, urls: PublicUrls
) -> WaitResult:
    """Render a wait that returned a message."""
    return WaitResult(
        **_ended(fence, message.summary.position, waited),
        message=ReceivedMessage(**_received(render_message(message, urls), view, fence)),
        hint=None,
    )


def render_arrivals(found: Messages, waited: float, fence: Fence, urls: PublicUrls) -> WaitResult:
    """Render all messages that a wait expected, with the first links of each."""
    return WaitResult(
        **_ended(fence, found.cursor, waited),
        message=None,
        hint=None,
        messages=tuple(
            _in_short(render_listed_message(message, urls)) for message in found.messages
        ),
    )


def render_none_result(outcome: NoMessage, fence: Fence) -> WaitResult:
    """Render the result of a wait in which no message arrived, as expected."""
    return WaitResult(
        **_ended(fence, outcome.cursor, outcome.waited), message=None, hint=None, none=True
    )


def render_unexpected_result(
    outcome: UnexpectedMessage, view: MessageView | None, fence: Fence, urls: PublicUrls
) -> WaitResult:
    """Render a message that arrived or was rejected although none was expected."""
    shape = render_unexpected_message(outcome, urls)
    received = None
    if shape.message is not None and view is not None:
        received = ReceivedMessage(**_received(shape.message, view, fence))
    ended = {**_ended(fence, outcome.cursor, outcome.waited), "rejected": clean(shape.rejected)}
    return WaitResult(**ended, message=received, hint=shape.error, none=False)


def _ended(fence: Fence, cursor: Position, waited: float) -> dict[str, Any]:
    """Return the common fields of all waits that did not time out."""
    return {
        "untrusted": fence.shown,
        "timed_out": False,
        "cursor": format_cursor(cursor),
        "waited": waited,
        "seen": (),
        "rejected": (),
    }


def render_timed_out_wait(outcome: TimedOut, fence: Fence) -> WaitResult:
    """Render a wait that timed out, which is a result and not an error."""
    shape = render_timed_out(outcome)
    return WaitResult(
        untrusted=fence.shown,
        timed_out=True,
        message=None,
        cursor=shape.cursor,
        waited=shape.waited,
        hint=shape.error,
        seen=clean(shape.seen[:FEW_SEEN]),
        rejected=clean(shape.rejected),
        other_tags=shape.other_tags,
    )


def render_whole_message(
    message: StoredMessage,
    view: MessageView,
    authentication: verdicts.Authentication,
    fence: Fence,
    urls: PublicUrls,
    checks: ChecksSummary | Absent = ABSENT,
) -> MessageResult:
    """Render a message with all details, and with its checks if given."""
    shape = render_message(message, urls)
    whole = WholeMessage(
        **_received(shape, view, fence),
        html=fence.around(view_html(shape.html)) if shape.html else "",
        headers=clean(dict(list(shape.headers.items())[:MAX_HEADERS])),
        envelope=clean(shape.envelope),
        problems=clean(shape.problems),
        authentication=clean(render_authentication(authentication)),
    )
    return MessageResult(fence.shown, whole, checks)


def render_message_list(found: MessageList, fence: Fence, urls: PublicUrls) -> ListResult:
    """Render a page of messages, with the first links of each."""
    page = render_list(found, urls)
    messages = tuple(map(_in_short, page.messages))
    return ListResult(
        fence.shown,
        messages,
        page.next_page,
        page.total,
        page.cursor,
        not_searched=page.not_searched,
    )


def _in_short(message: ListedMessage) -> ListedMessage:
    links = bound_links(message.links, FEW_LINKS)
    return msgspec.structs.replace(clean(message), links=links)


def shorten(
    whole: MessageResult, view: MessageView, fence: Fence
) -> tuple[MessageResult, MessageView]:
    """Omit the rarely needed parts of a long message, with a warning that names them.

    The result is shorter than 24 KB of JSON, and its text is repeated in the text block.
    """
    message, left_out = whole.message, []
    text = _cut(view.text, BRIEF_TEXT)
    if len(text) < len(view.text):
        left_out.append(f"{len(view.text) - len(text)} characters of text")
    links = bound_links(view.links, MAX_LINKS, BRIEF_LINKS)
    left_out += _rest("links", len(view.links) - len(links))
    html = message.html
    if len(html.encode()) > BRIEF_HTML:
        left_out.append("the HTML")
        html = ""
    headers = _first(message.headers.items(), BRIEF_HEADERS)
    left_out += _rest("header fields", len(message.headers) - len(headers))
    attachments = _first(message.attachments, BRIEF_ATTACHMENTS)
    left_out += _rest("attachments", len(message.attachments) - len(attachments))
    problems = _first(message.problems, BRIEF_PROBLEMS)
    left_out += _rest("problems", len(message.problems) - len(problems))
    if not left_out:
        return whole, view
    warning = f"omitted: {', '.join(left_out)}; call get_message with full=true to get more"
    view = replace(view, text=text, links=links, warnings=(*view.warnings, warning))
    shown = msgspec.structs.replace(
        message,
        text=fence.around(text) if text else "",
        links=links,
        html=html,
        headers=dict(headers),
        attachments=tuple(attachments),
        problems=tuple(problems),
        warnings=view.warnings,
    )
    return MessageResult(whole.untrusted, shown, whole.checks), view


def _cut(text: str, octets: int) -> str:
    return text.encode()[:octets].decode("utf-8", "ignore")


def _rest(name: str, number: int) -> list[str]:
    return [f"{number} {name}"] if number else []


def _first(items: Iterable[Value], octets: int) -> list[Value]:
    """Return the first items whose JSON fits into a number of octets."""
    found = []
    for item in items:
        octets -= len(dump_json(item))
        if octets < 0:
            break
        found.append(item)
    return found


def render_extraction(message: StoredMessage, view: MessageView, fence: Fence) -> ExtractResult:
    """Render the codes and links, with every candidate and its reasons."""
    left = MAX_CANDIDATE_CHARACTERS
    candidates = []
    for candidate in message.content.candidates:
        left -= len(candidate.value)
        if left >= 0:
            candidates.append(clean(render_candidate(candidate)))
    return ExtractResult(
        untrusted=fence.shown,
        id=message.summary.id,
        links=tuple(view.links),
        best_link=message.content.best_link,
        codes=tuple(message.content.codes),
        candidates=tuple(candidates),
    )


def render_attachment(
    found: bodies.Attachment,
    view: AttachmentView,
    fence: Fence,
    url: str | None,
) -> AttachmentResult:
    """Render an attachment, with a link unless the result contains all of it."""
    return AttachmentResult(
        untrusted=fence.shown,
        filename=clean_line(found.filename),
        content_type=clean_line(found.content_type),
        size=len(found.data),
        text=fence.around(view.text) if view.text else "",
        warnings=tuple(view.warnings),
        download_url=url,
    )


def _received(shape: Message, view: MessageView, fence: Fence) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(clean(SummarizedMessage(**fields_of(shape, SummarizedMessage)))),
        "links": tuple(view.links),
        "attachments": clean(shape.attachments),
        "text": fence.around(view.text) if view.text else "",
        "hides_text": view.hides_text,
        "warnings": tuple(view.warnings),
    }
