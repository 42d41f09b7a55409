"""Replies as mail programs write them: with the mail that they answer quoted."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html import escape
from itertools import zip_longest

from msgspec import Struct

from mailcheck.checks.content.bodies import choose_bodies, read_bodies
from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.header.fields import HeaderField
from mailcheck.checks.content.header.mailboxes import parse_mailboxes
from mailcheck.checks.content.structure import scan_structure
from mailcheck.core.inbound import MailProgram, Place
from mailcheck.core.instants import SECOND, Instant

MOST_QUOTED = 100_000
"""Maximum number of characters of a text that is quoted. More are left out."""

MOST_HTML = 500_000
"""Maximum number of characters of HTML that is quoted. The text of longer HTML is quoted."""

MOST_REFERENCES = 10_000
"""Maximum number of characters of References: the first identifier and the last ones are kept."""

MOST_IN_LINE = 76
"""Number of characters from which on Gmail breaks the line in front of a quotation."""

_ID = re.compile(r"<[!-;=?-~]{1,900}>")
_PREFIX = re.compile(r"\s*(?:re|aw|sv|antw)\s*:", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_BODY = re.compile(r"<body\b[^<>]{0,10000}>", re.IGNORECASE)
_END_OF_BODY = re.compile(r"</body\s*>", re.IGNORECASE)

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


class QuotedMail(Struct, frozen=True, kw_only=True):
    """The parts of a mail that its reply uses. Line ends are line feeds.

    :param people: the mailboxes of Reply-To, or else of From: addresses and names.
    :param recipients: the mailboxes of To; ``to`` is its text.
    :param sent_at: the date with the offset of the sender.
    :param ids: the identifiers for References of a reply. The last one is that of the mail.
    """

    name: str
    address: str
    people: tuple[tuple[str, str], ...]
    recipients: tuple[tuple[str, str], ...]
    to: str
    sent_at: datetime
    subject: str
    message_id: str
    ids: tuple[str, ...]
    text: str
    html: str

    @property
    def author(self) -> str:
        """Name and address of the author."""
        return f"{self.name} <{self.address}>" if self.name else f"<{self.address}>"


def read_quoted(raw_message: bytes, now: Instant) -> QuotedMail:
    """Read a mail that is answered. Never raises; without a Date, it was sent ``now``."""
    raw_message = end_lines(raw_message)
    structure = scan_structure(raw_message)
    fields: dict[str, HeaderField] = {}
    for field in structure.fields:
        fields.setdefault(field.name.lower(), field)

    def text_of(name: str) -> str:
        field = fields.get(name)
        return "" if field is None else " ".join(field.decode().split())

    def mailboxes(name: str) -> tuple[tuple[str, str], ...]:
        field = fields.get(name)
        found = [] if field is None else parse_mailboxes(field.as_text())
        return tuple(pair for pair in found if "@" in pair[0])

    authors = mailboxes("from")
    address, name = authors[0] if authors else ("", "")
    bodies = read_bodies(raw_message, choose_bodies(structure.root), [])
    message_ids = _ID.findall(text_of("message-id"))[:1]
    return QuotedMail(
        name=name,
        address=address,
        people=mailboxes("reply-to") or authors,
        recipients=mailboxes("to"),
        to=text_of("to"),
        sent_at=_parse_date(text_of("date"), now),
        subject=text_of("subject"),
        message_id="".join(message_ids),
        ids=(*_earlier_ids(text_of("references"), text_of("in-reply-to")), *message_ids),
        text=bodies.words[:MOST_QUOTED].strip("\n"),
        html=_inside_body(bodies.html) if len(bodies.markup) <= MOST_HTML else "",
    )


def _parse_date(text: str, now: Instant) -> datetime:
    try:
        found = parsedate_to_datetime(text)
        found.timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return datetime.fromtimestamp(now / SECOND, UTC)
    return found


def _earlier_ids(references: str, in_reply_to: str) -> list[str]:
    """Return the identifiers of earlier mails (RFC 5322 3.6.4)."""
    found = _ID.findall(references)
    if not found:
        parents = _ID.findall(in_reply_to)
        return parents if len(parents) == 1 else []
    room, first = MOST_REFERENCES - len(found[0]), 1
    for number in range(len(found) - 1, 0, -1):
        room -= len(found[number]) + 1
        if room < 0:
            first = number + 1
            break
    return [found[0], *found[first:]]


def _inside_body(html: str) -> str:
    """Return what is inside the body of a page, which is all that programs quote."""
    begin = _BODY.search(html)
    inside = html if begin is None else html[begin.end() :]
    ends = list(_END_OF_BODY.finditer(inside))
    return (inside[: ends[-1].start()] if ends else inside).strip()


def thread_headers(quoted: QuotedMail) -> tuple[tuple[str, str], ...]:
    """Return In-Reply-To and References of a reply (RFC 5322 3.6.4), or none without Message-ID."""
    if not quoted.message_id:
        return ()
    return (("In-Reply-To", quoted.message_id), ("References", " ".join(quoted.ids)))


def reply_subject(subject: str, program: MailProgram = MailProgram.GMAIL) -> str:
    """Return the subject of a reply."""
    if _PREFIX.match(subject):
        return subject
    return f"{'RE' if program is MailProgram.OUTLOOK else 'Re'}: {subject}"


class Block(Struct, frozen=True):
    """A piece of a reply: lines of the author, or lines of the quoted mail with their HTML."""

    is_quoted: bool
    text: str
    html: str


def arrange(quoted: QuotedMail, words: str, place: Place) -> list[Block]:
    """Return the pieces of a reply in order."""
    own = Block(is_quoted=False, text=words, html=_as_html(words))
    whole = Block(is_quoted=True, text=quoted.text, html=quoted.html or _as_html(quoted.text))
    if place is Place.ABOVE:
        return [own, whole]
    if place is Place.BELOW:
        return [whole, own]
    mine, theirs = _BLANK_LINES.split(words), _BLANK_LINES.split(quoted.text)
    if len(theirs) == 1:
        theirs = quoted.text.split("\n")
    theirs = [*theirs[: len(mine)], "\n\n".join(theirs[len(mine) :])]
    blocks = []
    for quote, answer in zip_longest(theirs, mine, fillvalue=""):
        blocks += [Block(is_quoted=True, text=quote, html=_as_html(quote))] if quote else []
        blocks += [Block(is_quoted=False, text=answer, html=_as_html(answer))] if answer else []
    return blocks


def _as_html(text: str) -> str:
    return "<br>\n".join(escape(line, quote=False) for line in text.split("\n"))


class WrittenReply(Struct, frozen=True):
    """The two forms of a reply, with line feeds."""

    text: str
    html: str


def write_reply(
    quoted: QuotedMail, words: str, program: MailProgram, place: Place = Place.ABOVE
) -> WrittenReply:
    """Return a reply with the text ``words``, as a mail program writes it."""
    words = words.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    blocks = arrange(quoted, words, place)
    write_text, write_html = _PROGRAMS[program]
    return WrittenReply("\n".join(write_text(quoted, blocks)) + "\n", write_html(quoted, blocks))


def _lines(
    blocks: Sequence[Block], head: Sequence[str], mark: Callable[[str], str]
) -> Iterator[str]:
    """Yield the lines of a text: ``head`` precedes what is quoted first."""
    is_first = True
    for number, block in enumerate(blocks):
        if number:
            yield ""
        if not block.is_quoted:
            yield block.text
            continue
        if is_first:
            yield from head
        is_first = False
        yield from map(mark, block.text.split("\n"))


def _clock(moment: datetime) -> tuple[int, str]:
    return moment.hour % 12 or 12, "PM" if moment.hour >= 12 else "AM"


def _gmail_line(quoted: QuotedMail) -> tuple[str, str]:
    """Return "On ..., at 6:26 PM" and the rest of the line. A narrow no-break space is in it."""
    at = quoted.sent_at
    hour, half = _clock(at)
    day, month = _DAYS[at.weekday()][:3], _MONTHS[at.month - 1][:3]
    return (
        f"On {day}, {month} {at.day}, {at.year} at {hour}:{at.minute:02}\u202f{half}",
        quoted.author,
    )


def _gmail_text(quoted: QuotedMail, blocks: Sequence[Block]) -> Iterator[str]:
    line = " ".join(_gmail_line(quoted))
    is_long = len(f"{line} wrote:") > MOST_IN_LINE
    head = [*((line, "wrote:") if is_long else (f"{line} wrote:",)), ""]
    return _lines(blocks, head, lambda one: f"> {one}".rstrip())


def _gmail_html(quoted: QuotedMail, blocks: Sequence[Block]) -> str:
    when, _ = _gmail_line(quoted)
    address, name = escape(quoted.address), escape(f"{quoted.name} ".lstrip())
    head = (
        f'<div dir="ltr" class="gmail_attr">{when} {name}&lt;'
        f'<a href="mailto:{address}">{address}</a>&gt; wrote:<br></div>'
    )
    pieces, is_open = [], False
    for block in blocks:
        if not block.is_quoted:
            pieces.append(f'<div dir="ltr">{block.html}</div>' + ("" if is_open else "<br>"))
            continue
        if not is_open:
            pieces.append(f'<div class="gmail_quote gmail_quote_container">{head}')
        is_open = True
        pieces.append(
            '<blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;'
            'border-left:1px solid rgb(204,204,204);padding-left:1ex">'
            f"{block.html}</blockquote>"
        )
    return "\n".join(pieces) + ("</div>\n" if is_open else "\n")


def _apple_line(quoted: QuotedMail) -> str:
    at = quoted.sent_at
    month = _MONTHS[at.month - 1][:3]
    return f"On {at.day} {month} {at.year}, at {at.hour:02}:{at.minute:02}, {quoted.author} wrote:"


def _apple_text(quoted: QuotedMail, blocks: Sequence[Block]) -> Iterator[str]:
    # The line in front of the quotation is quoted as well.
    return _lines(blocks, [f"> {_apple_line(quoted)}", ">"], lambda one: f"> {one}".rstrip())


def _apple_html(quoted: QuotedMail, blocks: Sequence[Block]) -> str:
    head = (
        f"<div>{escape(_apple_line(quoted), quote=False)}</div>"
        '<br class="Apple-interchange-newline">'
    )
    pieces, is_first = [], True
    for block in blocks:
        if not block.is_quoted:
            pieces.append(f'<div class="">{block.html}</div>')
            continue
        inside = f'{head if is_first else ""}<div class="">{block.html}</div>'
        pieces.append(
            f'<div><br class=""><blockquote type="cite" class="">{inside}</blockquote></div>'
        )
        is_first = False
    return (
        '<html><head><meta http-equiv="content-type" content="text/html; charset=utf-8"></head>'
        '<body style="overflow-wrap: break-word; -webkit-nbsp-mode: space; '
        'line-break: after-white-space;" class="">\n' + "\n".join(pieces) + "\n</body></html>\n"
    )


def _outlook_fields(quoted: QuotedMail) -> list[tuple[str, str]]:
    at = quoted.sent_at
    hour, half = _clock(at)
    sent = f"{_DAYS[at.weekday()]}, {_MONTHS[at.month - 1]} {at.day}, {at.year} "
    return [
        ("From", f"{quoted.name or quoted.address} <{quoted.address}>"),
        ("Sent", f"{sent}{hour}:{at.minute:02} {half}"),
        ("To", quoted.to),
        ("Subject", quoted.subject),
    ]


def _outlook_text(quoted: QuotedMail, blocks: Sequence[Block]) -> Iterator[str]:
    fields = (f"{name}: {value}" for name, value in _outlook_fields(quoted))
    return _lines(blocks, ["_" * 32, *fields, ""], str)


def _outlook_html(quoted: QuotedMail, blocks: Sequence[Block]) -> str:
    fields = "<br>".join(
        f"<b>{name}:</b> {escape(value, quote=False)}" for name, value in _outlook_fields(quoted)
    )
    head = (
        '<div><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0in 0in 0in">'
        f'<p class="MsoNormal">{fields}<o:p></o:p></p></div></div>'
    )
    pieces, is_first = [], True
    for block in blocks:
        if not block.is_quoted:
            pieces.append(f'<p class="MsoNormal">{block.html}<o:p></o:p></p>')
            continue
        # The quoted mail follows its header as siblings, without a mark of its own.
        pieces.append(f"{head if is_first else ''}\n<div>{block.html}</div>")
        is_first = False
    return (
        '<html xmlns:o="urn:schemas-microsoft-com:office:office"><head>'
        '<meta http-equiv="Content-Type" content="text/html; charset=utf-8"></head>'
        '<body lang="EN-US"><div class="WordSection1">\n'
        + "\n".join(pieces)
        + "\n</div></body></html>\n"
    )


_PROGRAMS: Mapping[
    MailProgram,
    tuple[
        Callable[[QuotedMail, Sequence[Block]], Iterator[str]],
        Callable[[QuotedMail, Sequence[Block]], str],
    ],
] = {
    MailProgram.OUTLOOK: (_outlook_text, _outlook_html),
    MailProgram.GMAIL: (_gmail_text, _gmail_html),
    MailProgram.APPLE_MAIL: (_apple_text, _apple_html),
}
