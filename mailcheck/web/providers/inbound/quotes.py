"""The reply in a mail: what its author wrote, without the quoted mail and the signature."""

import re

from msgspec import Struct

from mailcheck.checks.content.limits import MAX_HTML

MAX_READ = 65_536
"""Maximum number of characters of a text that are searched for a quoted mail."""

MAX_QUOTE_LINES = 5_000
"""Maximum number of lines of a text that are searched."""

_ATTRIBUTION = re.compile(
    r"(?:On|Am|Le|El|Il|Em|Op|Den|På|W dniu|Dnia|Vào)\b.{1,300}"
    r"(?:wrote|schrieb.{0,200}|a écrit|escribió|ha scritto|escreveu|schreef.{0,200}|skrev.{0,200}"
    r"|napisał\(a\)|pisze|đã viết)[ \u00a0]?:",
)
"""The line above a quoted mail, in the languages of the common mail programs."""

_SEPARATOR = re.compile(
    r"_{20,}|-{2,}[ ]?(?:Original Message|Ursprüngliche Nachricht|Message d'origine"
    r"|Oprindelig (?:meddelelse|besked))[ ]?-{2,}"
)
"""A line with which Outlook and Yahoo begin the quoted mail."""

_HEADER_LINE = re.compile(r"\*?(?:From|Von|De|Van|Da|Fra|Från):\*? \S")
_SECOND_LINE = re.compile(
    r"\*?(?:Sent|Date|To|Gesendet|Datum|An|Envoyé|À|Verzonden|Sendt|Til|Skickat|Till):\*? "
)

_HTML_QUOTES = re.compile(
    r"<div[^<>]{0,300}\b(?:class=[\"'](?:gmail_quote|yahoo_quoted|moz-cite-prefix)\b"
    r"|id=[\"'](?:appendonsend|divRplyFwdMsg|mail-editor-reference-message-container)\b"
    r"|style=[\"']border:none;border-top:solid #(?:E1E1E1|B5C4DF))"
    r"|<blockquote[^<>]{0,300}\btype=[\"']?cite",
    re.IGNORECASE,
)


class Reply(Struct, frozen=True):
    """The reply and the signature below it. Both are without line breaks at their ends.

    ``is_reply`` is whether a quoted mail was found. A mail without one is all reply.
    """

    text: str
    signature: str
    is_reply: bool


def read_reply(text: str) -> Reply:
    """Divide a text into reply, signature and quoted mail. Linear in the size of the text.

    A quoted mail begins at an attribution, at a separator, or at the header lines of Outlook. The
    lines with ``>`` are left out everywhere, so that answers between them and below them stay. An
    answer below a mail that Outlook quotes cannot be told from it, so all is reply then.
    """
    lines = text[:MAX_READ].split("\n")[:MAX_QUOTE_LINES]
    kept: list[str] = []
    is_reply = False
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.startswith(">"):
            is_reply = True
        elif _SEPARATOR.fullmatch(line.strip()) or _is_header(lines, number):
            is_reply = True
            break
        elif length := _attribution_length(lines, number):
            is_reply = True
            number += length
            if not _is_quoted(lines, number):
                break
            continue
        else:
            kept.append(line)
        number += 1
    if not is_reply or not any(line.strip() for line in kept):
        is_reply, kept = False, text.split("\n")
    body, signature = _cut_signature(kept)
    return Reply(body, signature, is_reply)


def strip_html(html: str) -> str:
    """Return the HTML before the quoted mail. Elements that are open there stay open."""
    found = _HTML_QUOTES.search(html, 0, MAX_HTML)
    return html if found is None else html[: found.start()]


def _is_header(lines: list[str], number: int) -> bool:
    """Return whether the header lines of a quoted mail begin here, as Outlook writes them."""
    return (
        _HEADER_LINE.match(lines[number]) is not None
        and number + 1 < len(lines)
        and _SECOND_LINE.match(lines[number + 1]) is not None
    )


def _attribution_length(lines: list[str], number: int) -> int:
    """Return the number of lines of an attribution, which may be wrapped once, or 0."""
    one = lines[number].strip()
    if _ATTRIBUTION.fullmatch(one):
        return 1
    if number + 1 < len(lines) and _ATTRIBUTION.fullmatch(f"{one} {lines[number + 1].strip()}"):
        return 2
    return 0


def _is_quoted(lines: list[str], number: int) -> bool:
    """Return whether lines with ``>`` follow, after at most two empty lines."""
    following = (line for line in lines[number : number + 3] if line.strip())
    return next(following, "").startswith(">")


def _cut_signature(lines: list[str]) -> tuple[str, str]:
    """Return the text above the line ``-- `` (RFC 3676 4.3), and the signature with this line."""
    for number, line in enumerate(lines):
        if line in ("-- ", "--"):
            return "\n".join(lines[:number]).strip("\n"), "\n".join(lines[number:]).strip("\n")
    return "\n".join(lines).strip("\n"), ""
