"""Mail to the address for complaints: a report, or a letter of a receiver to the owner.

Runs in a child process.
"""

from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.content.visible_text import render_visible_text
from mailcheck.checks.receiver_reports.feedback import (
    FeedbackReport,
    NoReport,
    read_feedback_mail,
)
from mailcheck.checks.receiver_reports.limits import (
    MAX_LETTER,
    MAX_LINK,
    MAX_NAMES,
    MAX_REPORTED_TEXT,
    MAX_TEXT,
)
from mailcheck.core.domains.receiver_reports import Letter


def read_complaint_mail(raw_message: bytes, keeps_mail: bool = False) -> FeedbackReport | Letter:
    """Read the report in a mail. A small mail without a report and without other mail is a letter.

    :param keeps_mail: also return the personal data of the reported mail.
    :raises ReportRefused: the mail is neither of them, or its report is malformed.
    """
    try:
        return read_feedback_mail(raw_message, keeps_mail)
    except NoReport as refusal:
        if refusal.has_mail or len(raw_message) > MAX_LETTER:
            raise
    return read_letter(raw_message)


def read_letter(raw_message: bytes) -> Letter:
    """Return the author, the subject, the visible text and the links of a mail."""
    content = derive_content(raw_message)
    text = content.text.strip() or render_visible_text(read_tree(content.html)).text.strip()
    header = {name.lower(): value for name, value in reversed(content.header_list)}
    return Letter(
        author=_printable(header.get("from", ""), MAX_TEXT),
        subject=_printable(header.get("subject", ""), MAX_TEXT),
        text=_printable(text, MAX_REPORTED_TEXT),
        links=tuple(link for link in content.links if len(link) <= MAX_LINK)[:MAX_NAMES],
    )


def _printable(text: str, most: int) -> str:
    return "".join(c for c in text[: 2 * most] if c.isprintable() or c == "\n").strip()[:most]
