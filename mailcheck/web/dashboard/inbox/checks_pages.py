"""The checks of a mail, of the inbox or of a test: beside it when they are asked for."""

from typing import Any

from mailcheck.checks.mail_checks import MailChecks
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import MessageId
from mailcheck.operations.deliverability.find_test import FindTest
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.web.dashboard.inbox.checks_view import MAX_LINKS_SHOWN, view_checks
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.replies import Reply

MESSAGE = "/inbox/messages/<message_id>"
TEST = "/tests/<test_id>"


class CheckPages:
    """The pages with the checks; a script puts them into the page of the mail or the report."""

    def __init__(self, inbox: InboxOperations, tests: FindTest, renderer: Renderer) -> None:
        self._inbox = inbox
        self._tests = tests
        self._renderer = renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", f"{MESSAGE}/checks", self.of_message),
            Page("POST", f"{MESSAGE}/checks/links", self.links_of_message),
            Page("GET", f"{TEST}/checks", self.of_test),
            Page("POST", f"{TEST}/checks/links", self.links_of_test),
        ]

    async def of_message(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}/checks."""
        return self._show(visit, await self._check_message(visit), _message_path(visit))

    async def links_of_message(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/checks/links: link (its number), repeated; or get."""
        checks = await self._check_message(visit)
        return await self._ask(visit, checks, _message_path(visit))

    async def of_test(self, visit: Visit) -> Reply:
        """GET /tests/{id}/checks."""
        return self._show(visit, await self._check_test(visit), _test_path(visit))

    async def links_of_test(self, visit: Visit) -> Reply:
        """POST /tests/{id}/checks/links: link (its number), repeated; or get."""
        return await self._ask(visit, await self._check_test(visit), _test_path(visit))

    async def _check_message(self, visit: Visit) -> MailChecks:
        message_id = MessageId(visit.path["message_id"])
        message = await self._inbox.read.message(visit.account.id, message_id)
        return await self._inbox.check.of_message(message)

    async def _check_test(self, visit: Visit) -> MailChecks:
        test_id = visit.path["test_id"]
        mail = await self._tests.mail(visit.account.id, test_id)
        return await self._inbox.check.of_test(test_id, mail)

    async def _ask(self, visit: Visit, checks: MailChecks, here: str) -> Reply:
        single = visit.form.texts("get", 1)
        numbers = single or visit.form.texts("link", MAX_LINKS_SHOWN)
        urls = [_link_of(checks, number) for number in numbers]
        method = "GET" if single else "HEAD"
        asked = await self._inbox.check_links.check(visit.account.id, checks, urls, method)
        values = view_checks(checks, asked)
        if not urls:
            values["notice_of_links"] = "No link is ticked."
        return self._render(visit, here, values)

    def _show(self, visit: Visit, checks: MailChecks, here: str) -> Reply:
        return self._render(visit, here, view_checks(checks))

    def _render(self, visit: Visit, here: str, values: dict[str, Any]) -> Reply:
        back = "the report" if here.startswith("/tests/") else "the mail"
        return self._renderer.page(
            visit, "mail_checks_page.html", here=here, back=back, may_ask=True, **values
        )


def _message_path(visit: Visit) -> str:
    return f"/inbox/messages/{visit.path['message_id']}"


def _test_path(visit: Visit) -> str:
    return f"/tests/{visit.path['test_id']}"


def _link_of(checks: MailChecks, number: str) -> str:
    """Give the URL of a link by its number.

    :raises InvalidParameter: there is none of this number.
    """
    if number.isascii() and number.isdecimal() and len(number) < 5:
        links = checks.links
        if int(number) < len(links):
            return links[int(number)].url
    raise InvalidParameter("link", f"{number[:20]!r} is the number of no link of this mail")
