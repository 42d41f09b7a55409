"""What the tools of the inbox give back as structured content (docs/reference/contract.md)."""

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
from mailcheck.api.mcp.untrusted import Fence, Untrusted, clean
from mailcheck.api.mcp.views import FEW_LINKS, MAX_LINKS, MessageView, view_html
from mailcheck.api.requests.fields import (
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    FLAG,
    INTEGER,
    MAX_WAIT_COUNT,
    TAG,
    TEXT,
    Limit,
    Timeout,
)
from mailcheck.api.requests.inbox import ListMessages, WaitFilters
from mailcheck.api.requests.parsing import Description, Request, request_fields
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, doc, dump_json, fields_of
from mailcheck.api.urls import PublicUrls
from mailcheck.checks.deliverability import authentication as verdicts
from mailcheck.checks.mail_checks import MailChecks, Place, Support
from mailcheck.core.cursors import Position, format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.explain_wait import TimedOut
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.operations.inbox.wait_for_message import Messages, NoMessage, UnexpectedMessage

MOST_FEATURES = 15
"""Features told of, those first that most programs lack; REST has them all."""

Lines = tuple[int, ...]


class NewAddressArguments(Request, frozen=True, kw_only=True):
    """An address; without a tag a unique one is made."""

    tag: Annotated[
        Annotated[str, TAG] | None,
        Description(brief="use this +tag instead of a unique one (letters, digits, dots, dashes)"),
    ] = None


class WaitForMessageArguments(WaitFilters, frozen=True, kw_only=True):
    """A wait for a message, for several, or for none."""

    timeout: Annotated[
        Timeout | None,
        Description(
            brief=f"seconds to wait; answered by 55 at the latest; {DEFAULT_SILENCE:g} with none",
            default=DEFAULT_WAIT,
        ),
    ] = None
    count: Annotated[
        Annotated[int, INTEGER] | None,
        Description(brief="wait for so many mails and return messages", low=1, high=MAX_WAIT_COUNT),
    ] = None
    none: Annotated[
        bool, FLAG, Description(brief="true: expect that no such mail comes within timeout")
    ] = False

    @property
    def seconds(self) -> float:
        """How long is waited, in seconds.

        :raises InvalidParameter: both ``none`` and ``count`` are given.
        """
        if self.none and self.count is not None:
            raise InvalidParameter("none", "none and count exclude each other: send one of them")
        default = DEFAULT_SILENCE if self.none else DEFAULT_WAIT
        return default if self.timeout is None else self.timeout


class ListMessagesArguments(ListMessages, frozen=True, kw_only=True):
    """Which messages are listed, on pages that a model can read."""

    undescribed: ClassVar = tuple(request_fields(WaitFilters))

    limit: Limit = 20


class MessageArguments(Request, frozen=True, kw_only=True):
    """A message."""

    id: Annotated[str, TEXT, Description(brief="id of a message")]


class GetMessageArguments(MessageArguments, frozen=True, kw_only=True):
    """A message, and how much of it is shown."""

    full: Annotated[
        bool,
        FLAG,
        Description(brief="true: long text, HTML, links and headers too; a long mail is 60 KB"),
    ] = False
    checks: Annotated[
        bool,
        FLAG,
        Description(brief="true: also HTML that mail programs or screen readers can't read"),
    ] = False


class Feature(Shape):
    """What the HTML uses and not every mail program supports."""

    title: str
    lines: Annotated[Lines, doc("the first few, counted from 1")]
    programs: Annotated[Texts, doc("families some of whose programs don't, or only in part")]


class Barrier(Shape):
    """What keeps some people from reading the HTML."""

    meaning: str
    fix: str
    lines: Lines


class ChecksSummary(Shape):
    """What is said of the HTML of a message; it changes no score."""

    has_html: bool
    compatibility: tuple[Feature, ...]
    accessibility: tuple[Barrier, ...]
    not_judged: Annotated[Texts, doc("what was not to be seen, so that nothing is known of it")]
    left_out: Annotated[int, doc("features beyond those told of", ge=0)]


def render_checks_summary(found: MailChecks) -> ChecksSummary:
    """Render the checks; what a sender wrote is cleaned."""
    compatibility, accessibility = found.compatibility, found.accessibility
    features = compatibility.findings if compatibility is not None else ()
    unseen = [
        f"{one.count} {one.what.value}{'' if one.count == 1 else 's'}: {one.reason}"
        for one in (compatibility.not_judged if compatibility is not None else ())
    ]
    if found.is_cut:
        unseen.append("the end of the HTML: it is very long")
    shape = ChecksSummary(
        has_html=compatibility is not None,
        compatibility=tuple(
            Feature(one.title, _lines(one.places), tuple(_families(one.support)))
            for one in features[:MOST_FEATURES]
        ),
        accessibility=tuple(
            Barrier(one.finding.meaning, one.finding.fix, _lines(one.places))
            for one in (accessibility.findings if accessibility is not None else ())
        ),
        not_judged=tuple(unseen),
        left_out=max(0, len(features) - MOST_FEATURES),
    )
    return clean(shape)


def format_checks(found: ChecksSummary) -> Iterator[str]:
    """Write them as lines, to stand within a fence: they repeat words of the mail."""
    if not found.has_html:
        yield "No HTML: every mail program shows plain text."
        return
    for feature in found.compatibility:
        yield f"{feature.title}{_at(feature.lines)}: {'; '.join(feature.programs)}"
    if found.left_out:
        yield f"{found.left_out} more features that not every mail program supports"
    for barrier in found.accessibility:
        yield f"Accessibility{_at(barrier.lines)}: {barrier.meaning} Fix: {barrier.fix}"
    yield from (f"Not judged: {text}" for text in found.not_judged)
    if not (found.compatibility or found.accessibility or found.not_judged):
        yield "Every mail program that was tested shows it, and nothing keeps people from reading."


def _families(support: Sequence[Support]) -> Iterator[str]:
    for one in support:
        if one.unsupported or one.partial:
            tested = one.supported + one.partial + one.unsupported
            part = f", {one.partial} in part" if one.partial else ""
            yield f"{one.family} {one.supported} of {tested}{part}"


def _lines(places: Sequence[Place]) -> Lines:
    return tuple(place.line for place in places)


def _at(lines: Lines) -> str:
    return f" (line {', '.join(map(str, lines))})" if lines else ""


MAX_HEADERS = 60
"""Header fields shown of a message; one with four relays and three signatures has about 40."""

MAX_CANDIDATE_CHARACTERS = 40_000
"""Characters of all candidates' values; they come best first."""


FEW_PEOPLE = 10
"""Addresses of a field that the text for a model names."""

FEW_SEEN = 3
"""Messages that a wait in vain tells a model about."""

BRIEF_TEXT, BRIEF_LINKS, BRIEF_HTML = 4_000, 2_000, 2_000
BRIEF_HEADERS, BRIEF_ATTACHMENTS, BRIEF_PROBLEMS = 2_500, 1_500, 800
"""Octets of each that are shown of a message unless all of it is asked for."""

Value = TypeVar("Value")


class ReceivedMessage(SummarizedMessage):
    """A message as an agent reads it."""

    attachments: tuple[Attachment, ...]
    text: Annotated[str, doc("what a person reads, within the untrusted marker; empty without any")]
    hides_text: Annotated[bool, doc("the mail holds text that people do not see")]
    warnings: Annotated[Texts, doc("about hidden text and what was cut")]


class WholeMessage(ReceivedMessage):
    """A message with everything that is shown of it."""

    html: Annotated[
        str, doc("within the untrusted marker, images and scripts inert; empty without any")
    ]
    headers: Annotated[dict[str, str], doc("header fields by lower-case name")]
    envelope: Envelope
    problems: Annotated[Texts, doc("what was broken in the mail")]
    authentication: Authentication


class WaitResult(Shape):
    """The end of a wait, in vain or not."""

    untrusted: Untrusted
    timed_out: Annotated[
        bool, doc("true: nothing that matches came in time; call again with the cursor")
    ]
    message: ReceivedMessage | None
    cursor: Cursor
    waited: Annotated[float, doc("seconds")]
    hint: Annotated[str | None, doc("why nothing came and what to do, null when a message came")]
    seen: Annotated[tuple[SeenMessage, ...], doc("messages that came but did not match")]
    rejected: Annotated[tuple[RefusedMail, ...], doc("mail for this inbox that was refused")]
    other_tags: Annotated[int | Absent, doc("messages that came to other tags")] = ABSENT
    messages: Annotated[
        tuple[ListedMessage, ...] | Absent, doc("with count: so many, oldest first")
    ] = ABSENT
    none: Annotated[bool | Absent, doc("with none: whether no such mail came")] = ABSENT


class ListResult(Shape):
    """A page of messages."""

    untrusted: Untrusted
    messages: Annotated[
        tuple[ListedMessage, ...], doc("newest first; of many links only the first ten")
    ]
    next_page: int | None
    total: Annotated[int, doc("all that match")]
    cursor: Cursor
    not_searched: NotSearched = ABSENT


class MessageResult(Shape):
    """A message."""

    untrusted: Untrusted
    message: WholeMessage
    checks: ChecksSummary | Absent = ABSENT


class ExtractResult(Shape):
    """Codes and links of a message, and how they were judged."""

    untrusted: Untrusted
    id: str
    links: Annotated[Texts, doc("http(s) links, in order")]
    best_link: Annotated[str | None, doc("the link a person would click, null without one")]
    codes: Annotated[Texts, doc("one-time codes, best first")]
    candidates: Annotated[tuple[Candidate, ...], doc("best first, rejected ones too")]


class DeleteResult(Shape):
    """A message was deleted."""

    id: str
    deleted: bool


def render_arrival(
    message: StoredMessage, view: MessageView, waited: float, fence: Fence, urls: PublicUrls
) -> WaitResult:
    """Render a wait that was not in vain."""
    return WaitResult(
        **_ended(fence, message.summary.position, waited),
        message=ReceivedMessage(**_received(render_message(message, urls), view, fence)),
        hint=None,
    )


def render_arrivals(found: Messages, waited: float, fence: Fence, urls: PublicUrls) -> WaitResult:
    """Render all the messages that were waited for; of many links only the first are shown."""
    return WaitResult(
        **_ended(fence, found.cursor, waited),
        message=None,
        hint=None,
        messages=tuple(
            _in_short(render_listed_message(message, urls)) for message in found.messages
        ),
    )


def render_none_result(outcome: NoMessage, fence: Fence) -> WaitResult:
    """Render that no message came where none was expected."""
    return WaitResult(
        **_ended(fence, outcome.cursor, outcome.waited), message=None, hint=None, none=True
    )


def render_unexpected_result(
    outcome: UnexpectedMessage, view: MessageView | None, fence: Fence, urls: PublicUrls
) -> WaitResult:
    """Render what came where nothing was expected, or was refused."""
    shape = render_unexpected_message(outcome, urls)
    received = None
    if shape.message is not None and view is not None:
        received = ReceivedMessage(**_received(shape.message, view, fence))
    ended = {**_ended(fence, outcome.cursor, outcome.waited), "rejected": clean(shape.rejected)}
    return WaitResult(**ended, message=received, hint=shape.error, none=False)


def _ended(fence: Fence, cursor: Position, waited: float) -> dict[str, Any]:
    """Give what every wait says that has not timed out."""
    return {
        "untrusted": fence.shown,
        "timed_out": False,
        "cursor": format_cursor(cursor),
        "waited": waited,
        "seen": (),
        "rejected": (),
    }


def render_timed_out_wait(outcome: TimedOut, fence: Fence) -> WaitResult:
    """Render a wait in vain: data, not a failure."""
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
    """Render a message with everything that is shown of it, and its checks if they are there."""
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
    """Render a page of messages; of many links only the first are shown."""
    page = render_list(found, urls)
    messages = tuple(map(_in_short, page.messages))
    return ListResult(
        fence.shown, messages, page.next_page, page.total, page.cursor, page.not_searched
    )


def _in_short(message: ListedMessage) -> ListedMessage:
    links = bound_links(message.links, FEW_LINKS)
    return msgspec.structs.replace(clean(message), links=links)


def shorten(
    whole: MessageResult, view: MessageView, fence: Fence
) -> tuple[MessageResult, MessageView]:
    """Leave out of a long message what is rarely needed, and say what and how to get it.

    Under 24 KB of JSON come of it, with the text once more in the block that is shown.
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
    warning = f"left out: {', '.join(left_out)}; call get_message with full=true to get more"
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
    """Give the first of some items that together fit into so many octets of JSON."""
    found = []
    for item in items:
        octets -= len(dump_json(item))
        if octets < 0:
            break
        found.append(item)
    return found


def render_extraction(message: StoredMessage, view: MessageView, fence: Fence) -> ExtractResult:
    """Render what was extracted, with every candidate and the reasons for or against it."""
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


def _received(shape: Message, view: MessageView, fence: Fence) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(clean(SummarizedMessage(**fields_of(shape, SummarizedMessage)))),
        "links": tuple(view.links),
        "attachments": clean(shape.attachments),
        "text": fence.around(view.text) if view.text else "",
        "hides_text": view.hides_text,
        "warnings": tuple(view.warnings),
    }
