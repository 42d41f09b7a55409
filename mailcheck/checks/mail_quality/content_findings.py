"""Findings about the parts of a mail: text beside HTML, structure, attachments."""

from collections.abc import Iterator

from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.mail_quality.facts import MailFacts
from mailcheck.checks.mail_quality.html_findings import judge_html
from mailcheck.checks.mail_quality.wording import count_of, enumerate_some, note, warning

MIN_OVERLAP = 30
"""Percent of the HTML's words that the text part has; templates with other footers reach 60."""

LARGE_MAIL = 10 * 1024 * 1024
"""Octets from which on many servers refuse a mail: Postfix's own limit is 10 MB."""

_CONTENT = Area.CONTENT


def judge_content(facts: MailFacts) -> tuple[ChargedFinding, ...]:
    """Judge the parts of a mail and its HTML."""
    return (
        *_judge_text(facts),
        *_judge_structure(facts),
        *_judge_sizes(facts),
        *(judge_html(facts.html) if facts.html is not None else ()),
        *_judge_placeholders(facts),
    )


def _judge_text(facts: MailFacts) -> Iterator[ChargedFinding]:
    if facts.html is not None and not facts.has_text:
        yield warning(
            _CONTENT,
            "content.html-only",
            "The mail has HTML and no text beside it; filters mark that, and programs without"
            " HTML show nothing readable.",
            "Send multipart/alternative: a text/plain part with the same words, then the HTML.",
        )
        return
    has_content = facts.html is not None and (facts.html.visible_length or facts.html.image_count)
    if not facts.text_size and not has_content and not facts.risky_attachments:
        yield note(
            _CONTENT,
            "content.empty",
            "The mail has nothing to read in it.",
            "Write at least a sentence: filters and people distrust empty mail.",
        )
    elif not facts.text_size and facts.html is not None:
        yield note(
            _CONTENT,
            "content.empty-text",
            "The text part beside the HTML is empty, so programs without HTML show nothing.",
            "Write the same words into the text part.",
        )
    elif facts.overlap is not None and facts.overlap < MIN_OVERLAP:
        yield note(
            _CONTENT,
            "content.text-differs",
            f"The text part has only {facts.overlap} % of the words that the HTML shows; filters"
            " compare the two, since spam hides behind a harmless text.",
            "Write the same words into both parts.",
        )


def _judge_structure(facts: MailFacts) -> Iterator[ChargedFinding]:
    if facts.is_html_first:
        yield warning(
            _CONTENT,
            "content.html-first",
            "The HTML stands before the text; programs show the last alternative they can, so"
            " people get the plain text.",
            "Put the text/plain part first and the HTML last (RFC 2046 5.1.4).",
        )
    if facts.problems:
        yield warning(
            _CONTENT,
            "content.broken-structure",
            f"Parts of the mail can't be read as they should: {enumerate_some(facts.problems)}.",
            "Let a mail library put the mail together, and don't change the bytes afterwards.",
        )
    if facts.risky_attachments:
        yield warning(
            _CONTENT,
            "content.risky-attachment",
            "Attached files are of kinds that Gmail and others refuse or hold back:"
            f" {enumerate_some(facts.risky_attachments)}.",
            "Offer the file for download behind a link, or send it as PDF.",
        )


def _judge_sizes(facts: MailFacts) -> Iterator[ChargedFinding]:
    if facts.long_lines:
        yield warning(
            _CONTENT,
            "content.long-lines",
            f"The mail has {count_of(facts.long_lines, 'line')} over 998 octets, the longest"
            f" {facts.longest_line}; servers on the way break or refuse them, and a broken line"
            " breaks the DKIM signature.",
            "Encode the parts as quoted-printable or base64.",
        )
    if facts.size > LARGE_MAIL:
        yield warning(
            _CONTENT,
            "content.large",
            f"The mail has {facts.size // 1024 // 1024} MiB; many servers refuse more than 10.",
            "Offer large files for download behind a link.",
        )


def _judge_placeholders(facts: MailFacts) -> Iterator[ChargedFinding]:
    if facts.placeholders:
        yield warning(
            _CONTENT,
            "content.placeholder",
            "Placeholders were not filled in and people will see them:"
            f" {enumerate_some(facts.placeholders)}.",
            "Check the names of the fields in the template, and send with real data.",
        )
