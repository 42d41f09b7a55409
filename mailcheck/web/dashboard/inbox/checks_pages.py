"""Pages of the checks of a message: HTML compatibility, accessibility and links."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mailcheck.api.inbox.checks import FEATURE_PAGE
from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.checks.link_checks import Hop, LinkCheck, LinkVerdict
from mailcheck.checks.mail_checks import Compatibility, MailChecks, MailLink, Support
from mailcheck.checks.press_unsubscribe import PressVerdict
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import MessageId
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.web.dashboard.rendering import Renderer, format_count
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

MAX_LINKS_SHOWN = 100
"""Maximum number of links on a page, which is also the maximum of one request."""

VERDICTS = {
    LinkVerdict.WORKS: ("good", "works"),
    LinkVerdict.BROKEN: ("bad", "broken"),
    LinkVerdict.UNCLEAR: ("unknown", "unclear"),
    LinkVerdict.NOT_CHECKED: ("unknown", "not checked"),
}
"""Result of a link check -> level and label."""


PRESS_LEVELS = {
    PressVerdict.ACCEPTED: "good",
    PressVerdict.REFUSED: "bad",
    PressVerdict.UNCLEAR: "unknown",
    PressVerdict.NOT_SENT: "unknown",
}


class Cell(Struct, frozen=True):
    """How a family of mail programs supports a feature, as level and label."""

    family: str
    level: str
    words: str


class ShownLink(Struct, frozen=True):
    """A link, with its result if it was checked."""

    link: MailLink
    is_ticked: bool
    checked: LinkCheck | None = None

    @property
    def url(self) -> str:
        """The URL of the link."""
        return self.link.url

    @property
    def words(self) -> str:
        """The text of the link, or ``""`` if it is the URL itself."""
        return "" if self.link.words == self.link.url else self.link.words

    @property
    def level(self) -> str:
        """The level of the result."""
        return VERDICTS[self.checked.verdict][0] if self.checked else ""

    @property
    def word(self) -> str:
        """The label of the result, with the HTTP status."""
        if self.checked is None:
            return ""
        word = VERDICTS[self.checked.verdict][1]
        return f"{word}, {self.checked.status}" if self.checked.status else word

    @property
    def hops(self) -> Sequence[Hop]:
        """The requests, if there were redirects."""
        hops = self.checked.answer.hops if self.checked else ()
        return hops if len(hops) > 1 else ()

    @property
    def may_get(self) -> bool:
        """Whether a request with GET may give a better result."""
        found = self.checked
        return (
            found is not None
            and found.answer.method == "HEAD"
            and found.verdict in (LinkVerdict.UNCLEAR, LinkVerdict.BROKEN)
        )


def view_checks(checks: MailChecks, asked: Sequence[LinkCheck] = ()) -> dict[str, Any]:
    """Return the template values. ``asked`` contains the results of the checked links."""
    found = {check.answer.url: check for check in asked}
    links = [
        ShownLink(link, link.url in found if found else link.is_harmless, found.get(link.url))
        for link in checks.links[:MAX_LINKS_SHOWN]
    ]
    counts = [
        (sum(check.verdict is verdict for check in asked), words)
        for verdict, (_, words) in VERDICTS.items()
    ]
    results = ", ".join(f"{count} {words}" for count, words in counts if count)
    return {
        "checks": checks,
        "compatibility": _view_compatibility(checks.compatibility),
        "links": links,
        "more_links": len(checks.links) - len(links),
        "notice_of_links": f"Checked {format_count(len(asked), 'link')}: {results}."
        if asked
        else "",
    }


def _view_compatibility(found: Compatibility | None) -> dict[str, Any] | None:
    """Return the template values, with the families that support least first."""
    if found is None:
        return None
    families = [_whole(found, place) for place in range(len(found.clients))]
    order = sorted(range(len(families)), key=lambda place: families[place][0])
    return {
        "date": found.date,
        "licence": found.licence,
        "families": [families[place][1] for place in order],
        "not_judged": found.not_judged,
        "findings": [
            {
                "title": finding.title,
                "url": FEATURE_PAGE.format(slug=finding.slug),
                "lines": ", ".join(str(place.line) for place in finding.places),
                "cells": [_cell(finding.support[place]) for place in order],
                "unsupported": finding.unsupported,
                "partial": finding.partial,
                "notes": finding.notes,
                "places": finding.places,
                "count": finding.count,
            }
            for finding in found.findings
        ],
    }


def _whole(found: Compatibility, place: int) -> tuple[int, Cell]:
    """Return how many features of the mail all clients of a family support, and the cell."""
    family = found.clients[place].family
    cells = [_cell(finding.support[place]) for finding in found.findings]
    lacking = sum(cell.level in ("bad", "warn") for cell in cells)
    supported = found.feature_count - lacking
    words = f"{supported} of {format_count(found.feature_count, 'feature')}"
    if not _known(found.clients[place]):
        return found.feature_count + 1, Cell(family, "unknown", "not tested")
    if not lacking:
        return supported, Cell(family, "good", words if found.feature_count else "100 %")
    level = "bad" if any(cell.level == "bad" for cell in cells) else "warn"
    return supported, Cell(family, level, words)


def _known(one: Support) -> int:
    return one.supported + one.partial + one.unsupported


def _cell(one: Support) -> Cell:
    """Return the share of a family's clients that support a feature, as a cell."""
    known = _known(one)
    if not known:
        return Cell(one.family, "unknown", "not tested")
    if one.supported == known:
        return Cell(one.family, "good", "100 %")
    if one.unsupported == known:
        return Cell(one.family, "bad", "0 %")
    share = 100 * one.supported // known
    if one.unsupported == 0:
        return Cell(one.family, "warn", f"{share} %, rest partly" if share else "partly")
    level = "bad" if one.unsupported > known / 2 else "warn"
    return Cell(one.family, level, f"{share} %")


class CheckedMail(Struct, frozen=True):
    """The checks of a mail, and the path and the name of the page that they belong to."""

    checks: MailChecks
    here: str
    back_to: str
    subject: str


MESSAGE = "/inbox/messages/<message_id>"
TEST = "/tests/<test_id>"


class CheckPages(Struct, frozen=True):
    """The pages of the checks. Scripts load them into the page of the mail or the report."""

    _inbox: InboxOperations
    _tests: ManageTests
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages, for the mails of the inbox and for those of tests."""
        return [
            page
            for mail in (MESSAGE, TEST)
            for page in (
                Page("GET", f"{mail}/checks", self.show, costs.PARTS),
                Page("POST", f"{mail}/checks/links", self.check_links, costs.PARTS),
                Page("POST", f"{mail}/checks/unsubscribe", self.unsubscribe, costs.PARTS),
            )
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET .../checks."""
        checked = await self._check(visit)
        return self._render(visit, checked, view_checks(checked.checks))

    async def check_links(self, visit: Visit) -> Reply:
        """POST .../checks/links: link (its index, repeatable), or get."""
        checked = await self._check(visit)
        checks = checked.checks
        single = visit.form.texts("get", 1)
        numbers = single or visit.form.texts("link", MAX_LINKS_SHOWN)
        urls = [_link_of(checks, number) for number in numbers]
        method = "GET" if single else "HEAD"
        asked = await self._inbox.check_links.check(visit.account.id, checks, urls, method)
        values = view_checks(checks, asked)
        if not urls:
            values["notice_of_links"] = "No link is selected."
        return self._render(visit, checked, values)

    async def unsubscribe(self, visit: Visit) -> Reply:
        """POST .../checks/unsubscribe: press the one-click unsubscribe."""
        checked = await self._check(visit)
        checks = checked.checks
        pressing = self._inbox.check_links.press_unsubscribe(visit.account.id, checks.one_click)
        pressed = await pressing
        level = PRESS_LEVELS[pressed.verdict]
        values = view_checks(checks)
        return self._render(visit, checked, {**values, "pressed": pressed, "press_level": level})

    async def _check(self, visit: Visit) -> CheckedMail:
        """Check the mail of the message or of the test in the path."""
        test_id = visit.path.get("test_id")
        if test_id is not None:
            mail = await self._tests.mail(visit.account.id, test_id)
            checks = await self._inbox.check.of_test(test_id, mail)
            subject = summarize_header(mail.raw_message).subject
            return CheckedMail(checks, f"/tests/{test_id}", "the report", subject)
        message_id = MessageId(visit.path["message_id"])
        message = await self._inbox.read.message(visit.account.id, message_id)
        checks = await self._inbox.check.of_message(message)
        here, subject = f"/inbox/messages/{message_id}", message.summary.header.subject
        return CheckedMail(checks, here, "the mail", subject)

    def _render(self, visit: Visit, checked: CheckedMail, values: dict[str, Any]) -> Reply:
        return self._renderer.page(
            visit,
            "mail_checks_page.html",
            here=checked.here,
            back_to=checked.back_to,
            mail_subject=checked.subject,
            may_ask=True,
            **values,
        )


def _link_of(checks: MailChecks, number: str) -> str:
    """Return the URL of a link by its index.

    :raises InvalidParameter: the mail has no link with this index.
    """
    if number.isascii() and number.isdecimal() and len(number) < 5:
        links = checks.links
        if int(number) < len(links):
            return links[int(number)].url
    raise InvalidParameter("link", f"this mail has no link with the index {number[:20]!r}")
