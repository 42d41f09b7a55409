"""Calls of worker processes that need modules which the calling process does not have.

A call is pickled as its name. The import is in the function, so that only the process that runs it
imports the module. Functions of modules that the caller has anyway are called directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mailcheck.checks.content.mime_parts import Part
    from mailcheck.checks.deliverability.reading import MailReading
    from mailcheck.checks.mail_checks import MailChecks
    from mailcheck.checks.receiver_reports.feedback import FeedbackReport
    from mailcheck.core.content import MessageContent
    from mailcheck.core.domains.receiver_reports import Letter
    from mailcheck.core.instants import Instant


def derive_content(raw_message: bytes) -> MessageContent:
    """Return the content of a mail."""
    from mailcheck.checks.content.derive import derive_content

    return derive_content(raw_message)


def derive_structures(raw_messages: list[bytes]) -> list[tuple[bytes, bytes, Instant | None]]:
    """Return what mail programs list of each mail."""
    from mailcheck.checks.content.mime_parts import derive_structures

    return derive_structures(raw_messages)


def read_parts(raw_message: bytes) -> Part:
    """Return the MIME parts of a mail."""
    from mailcheck.checks.content.mime_parts import read_parts

    return read_parts(raw_message)


def read_mail_for_score(raw_message: bytes) -> MailReading:
    """Return the facts of a mail that its score needs."""
    from mailcheck.checks.deliverability.reading import read_mail_for_score

    return read_mail_for_score(raw_message)


def check_html(
    html: str,
    text: str,
    best_link: str | None,
    header_list: tuple[tuple[str, str], ...],
    media_types: dict[str, str],
) -> MailChecks:
    """Return the checks of a mail of which only the bodies are known."""
    from mailcheck.checks.html_checks.check import check_html

    return check_html(html, text, best_link, header_list, media_types)


def check_raw_mail(raw_message: bytes) -> MailChecks:
    """Return the checks of a whole mail."""
    from mailcheck.checks.html_checks.check import check_raw_mail

    return check_raw_mail(raw_message)


def read_complaint_mail(raw_message: bytes, keeps_mail: bool) -> FeedbackReport | Letter:
    """Return the complaint that a mail contains, or the letter that it is."""
    from mailcheck.checks.receiver_reports.letters import read_complaint_mail

    return read_complaint_mail(raw_message, keeps_mail)


def patch_dkimpy() -> None:
    """Prepare a process that verifies signatures."""
    from mailcheck.checks.dkim.dkimpy_verify import patch_dkimpy

    patch_dkimpy()
