"""Rendering a digest: one page as plain text and as HTML.

The order is that of a reader: the next steps, the changes, and the state of all watches. Each part
has few lines and says how many more there are.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape

from msgspec import Struct

from mailcheck.core.domains.digests import DigestInterval
from mailcheck.core.instants import Instant, format_instant
from mailcheck.operations.domains.watches.send_alerts import MailHead, begin_mail, one_line

MOST_LINES = 8
"""Maximum number of lines of a part."""

GOOD, BAD, PLAIN = "good", "bad", ""

_COLOURS = {GOOD: "#1a7f37", BAD: "#b3261e", PLAIN: "#5a6675"}


class DigestLine(Struct, frozen=True):
    """A line: its subject, a sentence, a short value, and whether that is good or bad."""

    subject: str
    sentence: str
    value: str = ""
    level: str = PLAIN


class DigestPart(Struct, frozen=True):
    """A part of a digest. ``total`` counts all lines, with those left out."""

    title: str
    lines: tuple[DigestLine, ...]
    total: int
    empty: str = ""


class DigestPage(Struct, frozen=True):
    """A digest: the account, the time that it is about, its parts, and the page to go on."""

    account_name: str
    every: DigestInterval
    begins_at: Instant
    ends_at: Instant
    parts: tuple[DigestPart, ...]
    page: str
    settings_page: str

    @property
    def subject(self) -> str:
        """The subject of the mail."""
        todo, changed = (part.total for part in self.parts[:2])
        steps = "nothing to do" if not todo else f"{todo} to do"
        return one_line(f"{self.account_name}: {steps}, {changed} changed this {self.every.value}")

    @property
    def period(self) -> str:
        """The days that it is about."""
        return f"{format_instant(self.begins_at)[:10]} to {format_instant(self.ends_at)[:10]}"


def make_part(
    title: str, lines: Sequence[DigestLine], total: int | None = None, empty: str = ""
) -> DigestPart:
    """Return a part with the first lines, without control characters."""
    shown = tuple(
        DigestLine(
            one_line(line.subject), one_line(line.sentence), one_line(line.value), line.level
        )
        for line in lines[:MOST_LINES]
    )
    return DigestPart(title, shown, len(lines) if total is None else total, empty)


def write_digest(head: MailHead, page: DigestPage, why: str) -> bytes:
    """Render the mail.

    :param why: explains why the receiver gets it.
    """
    mail = begin_mail(head, page.subject)
    mail.set_content("\n".join(_text(page, why)) + "\n")
    mail.add_alternative("".join(_html(page, why)), subtype="html")
    return mail.as_bytes()


def _text(page: DigestPage, why: str) -> Iterable[str]:
    yield f"{page.account_name}, {page.period}"
    for part in page.parts:
        if not part.lines and not part.empty:
            continue
        yield from ("", part.title, "-" * len(part.title))
        for line in part.lines:
            value = f" [{line.value}]" if line.value else ""
            subject = f"{line.subject}: " if line.subject else ""
            yield f"* {subject}{line.sentence}{value}"
        yield from _rest(part, lambda text: text)
    yield from ("", f"All of it: {page.page}", "", "-- ", why)


def _rest(part: DigestPart, show: Callable[[str], str]) -> Iterable[str]:
    """Yield the last line of a part, if it needs one."""
    more = part.total - len(part.lines)
    if not part.lines:
        yield show(part.empty)
    elif more > 0:
        yield show(f"... and {more} more")


_FONT = "font-family: Arial, Helvetica, sans-serif"


def _html(page: DigestPage, why: str) -> Iterable[str]:
    title = escape(page.account_name)
    yield (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"></head>\n'
        f'<body style="margin: 0; padding: 24px 12px; background: #f3f5f8; {_FONT}">\n'
        '<table role="presentation" width="600" align="center" cellpadding="0" cellspacing="0" '
        'style="max-width: 100%; background: #ffffff; border-radius: 8px">\n'
        '<tr><td style="padding: 28px 28px 4px; color: #1d2733">'
        f'<h1 style="margin: 0; font-size: 22px; line-height: 28px">{title}</h1>'
        f'<p style="margin: 4px 0 0; font-size: 14px; color: #5a6675">{page.period}</p></td></tr>\n'
    )
    for part in page.parts:
        if part.lines or part.empty:
            yield from _html_part(part)
    yield (
        '<tr><td style="padding: 20px 28px 28px">'
        f'<a href="{escape(page.page)}" style="display: inline-block; padding: 10px 18px; '
        "background: #1f5fbf; color: #ffffff; border-radius: 6px; font-size: 15px; "
        'text-decoration: none">Open mailcheck</a></td></tr>\n</table>\n'
        '<table role="presentation" width="600" align="center" cellpadding="0" cellspacing="0" '
        'style="max-width: 100%"><tr><td style="padding: 14px 28px; font-size: 12px; '
        f'line-height: 17px; color: #5a6675">{escape(why)}</td></tr></table>\n</body>\n</html>\n'
    )


def _html_part(part: DigestPart) -> Iterable[str]:
    yield (
        '<tr><td style="padding: 20px 28px 0; color: #1d2733">'
        f'<h2 style="margin: 0 0 6px; font-size: 16px">{escape(part.title)}</h2>\n'
        '<table role="presentation" width="100%" cellpadding="0" cellspacing="0">\n'
    )
    for line in part.lines:
        subject = f"<strong>{escape(line.subject)}</strong>: " if line.subject else ""
        yield (
            '<tr><td style="padding: 6px 8px 6px 0; border-top: 1px solid #e3e7ec; '
            'font-size: 14px; line-height: 20px; word-break: break-word">'
            f"{subject}{escape(line.sentence)}</td>"
            '<td align="right" valign="top" style="padding: 6px 0; border-top: 1px solid #e3e7ec; '
            "font-size: 14px; line-height: 20px; font-weight: bold; white-space: nowrap; "
            f'color: {_COLOURS[line.level]}">{escape(line.value)}</td></tr>\n'
        )
    yield "</table>"
    hint = '<p style="margin: 6px 0 0; font-size: 14px; color: #5a6675">'
    yield from _rest(part, lambda text: f"{hint}{escape(text)}</p>")
    yield "</td></tr>\n"
