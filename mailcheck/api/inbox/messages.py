"""JSON shapes of messages (docs/reference/contract.md)."""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec.structs import replace

from mailcheck.api.authentication import Authentication, render_authentication
from mailcheck.api.shapes import ABSENT, Absent, Count, Shape, Texts, Timestamp, doc, shape_from
from mailcheck.api.urls import PublicUrls
from mailcheck.checks.deliverability import authentication as verdicts
from mailcheck.core import content, messages
from mailcheck.core.cursors import format_cursor

Cursor = Annotated[str, doc("position in the inbox; pass it unchanged as `after`")]

Pair = Annotated[tuple[str, ...], msgspec.Meta(min_length=2, max_length=2)]


class Author(Shape):
    """The author or a recipient in the header."""

    address: str
    name: str


MAX_LISTED_LINKS, MAX_LINK_CHARACTERS = 200, 20_000
"""Maximum number of links of a message in a list, and of characters in them. A page of a list
has up to 100 messages."""


class Addresses(Shape):
    """All addresses of the other address fields of the header, in order."""

    to: tuple[Author, ...]
    cc: tuple[Author, ...]
    bcc: tuple[Author, ...]
    reply_to: tuple[Author, ...]


class SummarizedMessage(Shape):
    """The fields of every view of a message."""

    id: Annotated[str, doc("id of the message")]
    to: Annotated[str, doc("recipient address")]
    tag: Annotated[str, doc("+tag of the recipient address; empty if there is none")]
    from_: Author
    subject: str
    received_at: Timestamp
    expires_at: Timestamp
    links: Annotated[Texts, doc("http(s) links, in order")]
    best_link: Annotated[str | None, doc("the link a person would click; null if unclear")]
    codes: Annotated[Texts, doc("one-time codes, best first")]
    share_url: Annotated[str, doc("public page of the message; deleted with it")]
    size: Annotated[int, doc("bytes of the raw mail")]
    cursor: Cursor
    delivery_id: Annotated[str, doc("shared by all recipients of one mail")]
    via: Annotated[str, doc("how it came: smtp, or the provider whose API was called")]
    keywords: Annotated[Texts, doc("keywords from mail programs, or tags from Mailpit's clients")]


M = TypeVar("M", bound=SummarizedMessage)


class ListedMessage(SummarizedMessage):
    """A message without its text, HTML and headers."""

    is_read: Annotated[bool, doc("opened on the dashboard; the API does not change it")]
    links_left_out: Annotated[
        Count | Absent, doc("number of links that are omitted here; absent: 0")
    ] = ABSENT


class Attachment(Shape):
    """An attachment of a message."""

    id: str
    filename: str
    content_type: str
    size: Annotated[int, doc("bytes, decoded")]
    content_id: str | None
    url: Annotated[str, doc("download URL; requires the API key")]


class Tls(Shape):
    """The encryption of a connection."""

    version: str
    cipher: str


class Envelope(Shape):
    """The SMTP envelope."""

    mail_from: Annotated[str, doc("MAIL FROM; empty for bounces")]
    rcpt_to: str
    helo: str
    client_address: str
    tls: Tls | None


class Candidate(Shape):
    """A possible code or link, and why it was accepted or rejected."""

    kind: content.CandidateKind
    value: str
    score: int
    accepted: bool
    reasons: Texts


class Message(SummarizedMessage):
    """A complete message; `authentication` is present only when it is requested by its id."""

    text: Annotated[
        str,
        doc(
            "plain-text body; empty if there is none. Text and HTML parts that follow each other "
            "are joined in order, with the visible words of the HTML"
        ),
    ]
    html: Annotated[
        str,
        doc(
            "original, unsanitized HTML body; empty if there is none. Text parts before and after "
            "HTML parts are joined to it in order, as paragraphs"
        ),
    ]
    headers: Annotated[
        dict[str, str], doc("by lower-case name; repeated fields are joined by newlines, in order")
    ]
    header_list: Annotated[tuple[Pair, ...], doc("name and value of each header field, in order")]
    addresses: Annotated[
        Addresses, doc("addresses in To, Cc, Bcc and Reply-To; `to` is only the recipient")
    ]
    attachments: tuple[Attachment, ...]
    envelope: Envelope
    extraction: Annotated[tuple[Candidate, ...], doc("all possible codes and links, with reasons")]
    problems: Annotated[Texts, doc("syntax errors in the mail")]
    request: Annotated[
        str | Absent,
        doc("JSON that was posted to the provider; long texts are cut. Absent for mail over SMTP"),
    ] = ABSENT
    authentication: Authentication | Absent = ABSENT


class SeenMessage(Shape):
    """A message that arrived but did not match the wait."""

    id: str
    to: str
    tag: str
    from_: Author
    subject: str
    received_at: Timestamp
    cursor: Cursor
    reasons: Annotated[Texts, doc("why it did not match")]


class RefusedMail(Shape):
    """A mail for this inbox that was rejected."""

    to: str
    from_: str
    client: str
    reason: str
    refused_at: Timestamp
    count: Annotated[
        int | Absent,
        doc("number of mails rejected for this tag in the same minute, if more than one"),
    ] = ABSENT


def render_message(
    message: messages.StoredMessage,
    urls: PublicUrls,
    authentication: verdicts.Authentication | None = None,
) -> Message:
    """Render a complete message. Unknown authentication results are absent."""
    found = message.content
    return _summarized(
        Message,
        message.summary,
        found.extracted,
        urls,
        text=found.text,
        html=found.html,
        headers=join_headers(found.header_list),
        header_list=found.header_list,
        addresses=_addresses(found),
        attachments=tuple(
            shape_from(Attachment, facts, url=urls.attachment_url(message.summary.id, facts.id))
            for facts in found.attachments
        ),
        envelope=_envelope(message),
        extraction=tuple(map(render_candidate, found.candidates)),
        problems=tuple(found.problems),
        request=message.request or ABSENT,
        authentication=ABSENT if authentication is None else render_authentication(authentication),
    )


def render_listed_message(message: messages.ListedMessage, urls: PublicUrls) -> ListedMessage:
    """Render an entry of a list with its first links. A mail can have 500 KB of links."""
    extracted = message.extracted
    links = bound_links(extracted.links, MAX_LISTED_LINKS)
    left_out = len(extracted.links) - len(links) or ABSENT
    shown = replace(extracted, links=links)
    return _summarized(ListedMessage, message.summary, shown, urls, links_left_out=left_out)


def bound_links(links: Texts, most: int, left: int = MAX_LINK_CHARACTERS) -> Texts:
    """Return the first links, at most ``most`` and with at most ``left`` characters."""
    shown: list[str] = []
    for link in links[:most]:
        left -= len(link)
        if left < 0:
            break
        shown.append(link)
    return tuple(shown)


def render_seen_message(message: messages.MessageSummary, reasons: tuple[str, ...]) -> SeenMessage:
    """Render a message that arrived but did not match the wait."""
    return shape_from(
        SeenMessage,
        message,
        to=message.recipient,
        from_=_author(message.header),
        subject=message.header.subject,
        cursor=format_cursor(message.position),
        reasons=reasons,
    )


def render_refusal(refusal: messages.Refusal) -> RefusedMail:
    """Render a mail that was rejected for the inbox."""
    return shape_from(
        RefusedMail,
        refusal,
        to=refusal.recipient,
        from_=refusal.envelope_sender,
        client=refusal.client_ip,
        count=refusal.count if refusal.count > 1 else ABSENT,
    )


def render_candidate(candidate: content.Candidate) -> Candidate:
    """Render a possible code or link."""
    reasons = tuple(candidate.reasons)
    return shape_from(Candidate, candidate, accepted=candidate.is_accepted, reasons=reasons)


def join_headers(header_list: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the header fields by lower-case name, with repeated fields joined by newlines."""
    headers: dict[str, str] = {}
    for name, value in header_list:
        key = name.lower()
        headers[key] = f"{headers[key]}\n{value}" if key in headers else value
    return headers


def _summarized(
    kind: type[M],
    message: messages.MessageSummary,
    extracted: content.Extracted,
    urls: PublicUrls,
    **others: Any,
) -> M:
    return shape_from(
        kind,
        message,
        to=message.recipient,
        from_=_author(message.header),
        subject=message.header.subject,
        links=tuple(extracted.links),
        best_link=extracted.best_link,
        codes=tuple(extracted.codes),
        share_url=urls.share_url(message.id, message.share_token),
        cursor=format_cursor(message.position),
        keywords=tuple(message.keywords),
        **others,
    )


def _addresses(found: content.MessageContent) -> Addresses:
    fields = ("to", "cc", "bcc", "reply-to")
    return Addresses(
        *(
            tuple(Author(person.address, person.name) for person in found.people_in(field))
            for field in fields
        )
    )


def _author(header: content.HeaderSummary) -> Author:
    return Author(header.author_address, header.author_name)


def _envelope(message: messages.StoredMessage) -> Envelope:
    session = message.session
    return Envelope(
        mail_from=message.envelope_sender,
        rcpt_to=message.summary.recipient,
        helo=session.helo_name,
        client_address=session.client_ip,
        tls=None if session.tls is None else Tls(session.tls.version, session.tls.cipher),
    )
