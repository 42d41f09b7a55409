"""The contents of the cards of the MCP App: a message, and the report of a deliverability test.

Only the App gets these shapes, never a model. It shows their texts as text, and the HTML of a mail
in a frame without any permission.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from mailcheck.api.deliverability.tests import render_tested
from mailcheck.api.mcp.deliverability import MAX_DEDUCTIONS, ShownCheck
from mailcheck.api.mcp.untrusted import MAX_LINE, remove_invisible
from mailcheck.api.requests.fields import NAME
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import Shape, Texts, Timestamp, doc
from mailcheck.api.urls import PublicUrls
from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import StoredMessage

MAX_DOCUMENT = 500_000
"""Maximum number of characters of the HTML document of a mail. Clients keep results in memory."""

MAX_TEXT = 50_000
"""Maximum number of characters of the text of a mail."""


class ReportCardArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``view_report``."""

    test_id: Annotated[str, NAME, Description(brief="id of a test")]


class MessageCard(Shape):
    """A message for a person, as its sender wrote it."""

    id: str
    subject: str
    from_: str
    to: str
    received_at: Timestamp
    codes: Annotated[Texts, doc("one-time codes, best first")]
    best_link: str | None
    document: Annotated[str, doc("sanitised HTML document for a sandboxed frame; may be empty")]
    text: Annotated[str, doc("plain text; may be empty")]
    attachments: Annotated[Texts, doc("file names")]
    page_url: Annotated[str, doc("page of the message, for people who are signed in")]


class CardDeduction(Shape):
    """A finding that deducts points, and what to do."""

    points: float
    meaning: str
    fix: str


class ReportCard(Shape):
    """The report of a test for a person. ``score`` is `None` until the test is completed."""

    test_id: str
    status: str
    score: float | None
    subject: str
    from_: str
    checks: tuple[ShownCheck, ...]
    deductions: Annotated[tuple[CardDeduction, ...], doc("largest first")]
    share_url: Annotated[str, doc("complete report; public")]


def render_message_card(message: StoredMessage, document: str, urls: PublicUrls) -> MessageCard:
    """Render the card of a message.

    :param document: its HTML, sanitised; it is omitted if it is longer than `MAX_DOCUMENT`.
    """
    summary, content = message.summary, message.content
    text, _ = remove_invisible(content.text[:MAX_TEXT])
    return MessageCard(
        id=summary.id,
        subject=_line(summary.header.subject),
        from_=_line(summary.header.author_text),
        to=_line(summary.recipient),
        received_at=format_instant(summary.received_at),
        codes=content.codes,
        best_link=content.best_link,
        document=document if len(document) <= MAX_DOCUMENT else "",
        text=text,
        attachments=tuple(_line(attachment.filename) for attachment in content.attachments),
        page_url=urls.page_url(summary.account_id, f"/inbox/messages/{summary.id}"),
    )


def render_report_card(result: DeliverabilityResult, domain: str, urls: PublicUrls) -> ReportCard:
    """Render the card of a test from the stored JSON of its report, or from its status."""
    shape: Mapping[str, Any] = render_tested(result, domain, urls)
    email = shape.get("email") or {}
    checks = [{"name": name, **check} for name, check in shape.get("checks", {}).items()]
    deductions = msgspec.convert(shape.get("deductions", ()), tuple[CardDeduction, ...])
    largest = sorted(deductions, key=lambda one: one.points, reverse=True)
    return ReportCard(
        test_id=result.test.id,
        status=result.test.state.value,
        score=shape.get("score"),
        subject=_line(email.get("subject", "")),
        from_=_line(email.get("from", "")),
        checks=msgspec.convert(checks, tuple[ShownCheck, ...]),
        deductions=tuple(largest[:MAX_DEDUCTIONS]),
        share_url=shape["shareUrl"],
    )


def _line(text: str) -> str:
    visible, _ = remove_invisible(text[: 2 * MAX_LINE])
    line = " ".join(visible.split())
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + "..."
