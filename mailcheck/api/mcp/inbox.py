"""Arguments and structured content of the inbox tools (docs/reference/contract.md)."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from mailcheck.api.authentication import Authentication, render_authentication
from mailcheck.api.inbox.messages import (
    Candidate,
    Cursor,
    Envelope,
    render_candidate,
    render_message,
)
from mailcheck.api.inbox.overview import NotSearched
from mailcheck.api.inbox.waits import explain_timed_out, explain_unexpected_message
from mailcheck.api.mcp.attachments import AttachmentView
from mailcheck.api.mcp.untrusted import (
    MAIL_FIELDS,
    MAIL_NOTICE,
    Fence,
    Untrusted,
    clean,
    clean_line,
)
from mailcheck.api.mcp.views import FEW_LINKS, MAX_TEXT, MessageView, view_html
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
    After,
    Limit,
    PageNumber,
    Since,
    Timeout,
    one_of,
)
from mailcheck.api.requests.inbox import SearchTerms, Selection, WaitFilters, search_for
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Count, Shape, Texts, Timestamp, doc, fields_of
from mailcheck.api.urls import PublicUrls
from mailcheck.checks.content import bodies
from mailcheck.checks.deliverability import authentication as verdicts
from mailcheck.checks.mail_checks import MailChecks, Place, Support
from mailcheck.core.accounts import InboxState
from mailcheck.core.addresses import join_subaddress, join_subdomain
from mailcheck.core.cursors import format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.messages import ListedMessage, MessageSummary, Refusal, StoredMessage
from mailcheck.operations.inbox.explain_wait import SeenMessage, TimedOut
from mailcheck.operations.inbox.messages import MessageList
from mailcheck.operations.inbox.wait_for_message import Messages, NoMessage, UnexpectedMessage

MOST_FEATURES = 15
"""Maximum number of features in a result, the least supported first. REST returns all."""

Lines = tuple[int, ...]


class NewAddressArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``new_address``. Without a tag, a unique one is generated."""

    tag: Annotated[
        Annotated[str, TAG] | None,
        Description(brief="+tag instead of a unique one"),
    ] = None


class WaitForMessageArguments(WaitFilters, frozen=True, kw_only=True):
    """Arguments of ``wait_for_message``: a wait for one message, several, or none."""

    timeout: Annotated[
        Timeout | None,
        Description(
            brief=f"seconds; {DEFAULT_SILENCE:g} with none",
            default=DEFAULT_WAIT,
        ),
    ] = None
    count: Annotated[
        Annotated[int, INTEGER] | None,
        Description(brief="wait for this many mails", low=1, high=MAX_WAIT_COUNT),
    ] = None
    none: Annotated[bool, FLAG, Description(brief="expect none within timeout")] = False

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


class ListMessagesArguments(Selection, frozen=True, kw_only=True):
    """Arguments of ``list_messages``, with small pages that fit into the context of a model."""

    tag: Annotated[Annotated[str, TAG] | None, Description(brief="+tag; empty: no tag")] = None
    q: SearchTerms = None
    after: After = None
    since: Since = None
    limit: Limit = 20
    page: PageNumber = 1

    def wanted_at(self, now: Instant) -> MessageFilter:
        """Return the filter with the search, see `search_for`."""
        return search_for(self, self.q, now)


class MessageArguments(Request, frozen=True, kw_only=True):
    """The argument of tools for one message."""

    id: Annotated[str, TEXT, Description(brief="id or cursor of a mail")]


PARTS = ("text", "html", "links", "headers", "files", "authentication", "checks")
"""The parts of a message that `get_message` includes on request."""

WINDOW, LARGEST_WINDOW = 2_000, MAX_TEXT
"""Default and maximum number of characters of text and of HTML in one result."""


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


MAX_HEADERS = 60
"""Maximum number of header fields in a result. A mail with four relays and three signatures has
about 40."""

MAX_FILES = 50
"""Maximum number of attachments in a result."""

FEW_CANDIDATES = 10
"""Maximum number of possible codes and links with their reasons in a result, the best first."""

FEW_SEEN = 3
"""Maximum number of non-matching messages after a timeout."""

FEW_CODES = 3
"""Maximum number of codes in short results, the best first. A mail has one, rarely two."""

SHORT_AUTHOR, SHORT_SUBJECT = 40, 80
"""Maximum number of characters of an author and a subject in a list."""


class NewAddress(Shape):
    """An inbox address, with the cursor to wait from."""

    address: str
    tag: str
    cursor: Cursor
    plus_free: Annotated[
        str | Absent, doc("the same tag, for forms that refuse +; absent: the tag has a +")
    ] = ABSENT


class ListedMail(Shape):
    """A mail in a list. Its cursor is valid as the id for the tools for one mail."""

    cursor: Cursor
    from_: str
    subject: str
    codes: Texts | Absent = ABSENT


class SeenMail(ListedMail):
    """A mail that arrived, and why it did not match."""

    tag: str = ""
    reasons: Texts = ()


class RejectedMail(Shape):
    """A mail for this inbox that was rejected."""

    to: str
    from_: str
    reason: str


class File(Shape):
    """An attachment, which `get_attachment` reads."""

    id: str
    filename: str
    content_type: str
    size: Annotated[int, doc("bytes, decoded")]


class ArrivedMail(Shape):
    """The short form of a mail. `get_message` returns the rest."""

    id: str
    from_: str
    subject: str
    codes: Annotated[Texts, doc("one-time codes, best first")]
    best_link: Annotated[str | None, doc("the link a person would click; null if unclear")]
    hides_text: Annotated[bool, doc("the mail contains text that people do not see")]


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


class WaitResult(Shape):
    """The result of a wait, with or without a message."""

    untrusted: Untrusted
    timed_out: Annotated[bool, doc("true: no match before the timeout; call again with the cursor")]
    message: Annotated[ArrivedMail | None, doc("null after a timeout, and with count")]
    cursor: Cursor
    waited: Annotated[float | Absent, doc("seconds; absent if a message arrived")] = ABSENT
    hint: Annotated[str | Absent, doc("why no message matched and what to do")] = ABSENT
    seen: Annotated[
        tuple[SeenMail, ...] | Absent, doc("messages that arrived but did not match")
    ] = ABSENT
    rejected: Annotated[tuple[RejectedMail, ...] | Absent, doc("rejected mail for this inbox")] = (
        ABSENT
    )
    messages: Annotated[
        tuple[ListedMail, ...] | Absent, doc("with count: that many, oldest first")
    ] = ABSENT
    none: Annotated[bool | Absent, doc("with none: whether no such mail arrived")] = ABSENT


class ListResult(Shape):
    """A page of messages."""

    untrusted: Untrusted
    messages: Annotated[tuple[ListedMail, ...], doc("newest first")]
    total: Annotated[int, doc("number of matching messages")]
    cursor: Cursor
    next_page: Annotated[int | Absent, doc("absent on the last page")] = ABSENT
    not_searched: NotSearched = ABSENT


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


def render_new_address(inbox: InboxState, tag: str, domain: str) -> NewAddress:
    """Render an address of the inbox."""
    name = inbox.mailbox_name
    return NewAddress(
        join_subaddress(name, tag, domain),
        tag,
        format_cursor(inbox.last_position),
        join_subdomain(name, tag, domain) or ABSENT,
    )


def render_arrival(message: StoredMessage, view: MessageView) -> WaitResult:
    """Render a wait that returned a message."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=ArrivedMail(**_arrived(message, view)),
        cursor=format_cursor(message.summary.position),
    )


def render_arrivals(found: Messages) -> WaitResult:
    """Render all messages that a wait expected."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=None,
        cursor=format_cursor(found.cursor),
        messages=tuple(map(_listed, found.messages)),
    )


def render_none_result(outcome: NoMessage) -> WaitResult:
    """Render the result of a wait in which no message arrived, as expected."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=None,
        cursor=format_cursor(outcome.cursor),
        waited=outcome.waited,
        none=True,
    )


def render_unexpected_result(outcome: UnexpectedMessage, view: MessageView | None) -> WaitResult:
    """Render a message that arrived or was rejected although none was expected."""
    message, refusal = outcome.message, outcome.refusal
    arrived = None
    if message is not None and view is not None:
        arrived = ArrivedMail(**_arrived(message, view))
    return WaitResult(
        MAIL_NOTICE,
        timed_out=False,
        message=arrived,
        cursor=format_cursor(outcome.cursor),
        waited=outcome.waited,
        hint=explain_unexpected_message(outcome),
        rejected=ABSENT if refusal is None else (_rejected(refusal),),
        none=False,
    )


def render_timed_out_wait(outcome: TimedOut) -> WaitResult:
    """Render a wait that timed out, which is a result and not an error."""
    return WaitResult(
        MAIL_NOTICE,
        timed_out=True,
        message=None,
        cursor=format_cursor(outcome.cursor),
        waited=outcome.waited,
        hint=explain_timed_out(outcome),
        seen=tuple(map(_seen, outcome.seen[:FEW_SEEN])) or ABSENT,
        rejected=tuple(map(_rejected, outcome.rejected[:FEW_SEEN])) or ABSENT,
    )


def render_message_list(found: MessageList) -> ListResult:
    """Render a page of messages."""
    return ListResult(
        MAIL_NOTICE,
        tuple(map(_listed, found.messages)),
        found.total,
        format_cursor(found.cursor),
        found.next_page or ABSENT,
        found.not_searched or ABSENT,
    )


def _arrived(message: StoredMessage, view: MessageView) -> dict[str, Any]:
    header, content = message.summary.header, message.content
    return {
        "id": message.summary.id,
        "from_": clean_line(header.author_text),
        "subject": clean_line(header.subject),
        "codes": tuple(content.codes[:FEW_CODES]),
        "best_link": content.best_link,
        "hides_text": view.hides_text,
    }


def _listed(message: ListedMessage) -> ListedMail:
    codes = message.extracted.codes[:FEW_CODES]
    return ListedMail(**_in_short(message.summary), codes=tuple(codes) or ABSENT)


def _in_short(summary: MessageSummary) -> dict[str, Any]:
    header = summary.header
    return {
        "cursor": format_cursor(summary.position),
        "from_": clean_line(header.author_address or header.author_name, SHORT_AUTHOR),
        "subject": clean_line(header.subject, SHORT_SUBJECT),
    }


def _seen(seen: SeenMessage) -> SeenMail:
    return SeenMail(
        **_in_short(seen.message),
        tag=clean_line(seen.message.tag),
        reasons=tuple(map(clean_line, seen.reasons)),
    )


def _rejected(refusal: Refusal) -> RejectedMail:
    return RejectedMail(
        clean_line(refusal.recipient),
        clean_line(refusal.envelope_sender),
        clean_line(refusal.reason),
    )


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
        "files": {"files": tuple(clean(File(**fields_of(one, File))) for one in files)},
    }
    if authentication is not None:
        parts["authentication"] = {"authentication": clean(render_authentication(authentication))}
    if checks is not None:
        parts["checks"] = {"checks": render_checks_summary(checks)}
    read = ReadMail(
        **_arrived(message, view),
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
