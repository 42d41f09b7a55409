"""The report of a test behind its share link, and as files."""

from typing import Any

from msgspec import Struct

from mailcheck.api.deliverability.tests import render_tested
from mailcheck.api.requests.fields import FLAG
from mailcheck.api.shapes import dump_json
from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.errors import NoMailYet
from mailcheck.core.identifiers import SHARE_SECRET_LENGTH, SHORT_ID_LENGTH
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.inbox.check_message import CheckMail
from mailcheck.web.dashboard.deliverability.report_mail import ReportMail
from mailcheck.web.dashboard.deliverability.report_view import view_stored_report
from mailcheck.web.dashboard.inbox.checks_pages import view_checks
from mailcheck.web.dashboard.inbox.share_pages import UNLISTED
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import ANYONE, Page, Visit, prefers_html
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply, download_reply, json_reply

TOKEN_LENGTH = SHORT_ID_LENGTH + SHARE_SECRET_LENGTH
"""Length of the token in a report's share link. The token of a message's link is longer."""


class ReportPages(Struct, frozen=True):
    """The pages behind a report's share link. Each request checks that the link is valid."""

    _tests: ManageTests
    _mail: ReportMail
    _check: CheckMail
    _renderer: Renderer
    _domain: str

    def pages(self) -> list[Page]:
        """List the pages. Add them before the pages of messages, which match any token."""
        path = f"/share/<string(length={TOKEN_LENGTH}):token>"
        return [
            Page("GET", path, self.show, costs.MESSAGE, ANYONE),
            Page("GET", f"{path}/frame", self.frame, costs.PARTS, ANYONE),
            Page("GET", f"{path}/checks", self.checks, costs.PARTS, ANYONE),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /share/{token}?details=true."""
        result = await self._tests.open_shared(visit.path["token"])
        if not prefers_html(visit.request):
            shape = render_tested(result, self._domain, visit.urls)
            return json_reply(shape, headers=UNLISTED)
        return self._renderer.page(
            visit,
            "report_shared.html",
            headers=UNLISTED,
            here=f"/share/{visit.path['token']}",
            all_details=visit.query.value("details", FLAG, False),
            own=visit.own_address(result.test.account_id, f"/tests/{result.test.id}"),
            **view_result(result),
            **await self._mail.values(visit, result),
        )

    async def frame(self, visit: Visit) -> Reply:
        """GET /share/{token}/frame?remote=true."""
        return await self._mail.frame(visit, await self._tests.open_shared(visit.path["token"]))

    async def checks(self, visit: Visit) -> Reply:
        """GET /share/{token}/checks. Only the owner can have the links checked."""
        token = visit.path["token"]
        message = await self._mail.message(await self._tests.open_shared(token))
        return self._renderer.page(
            visit,
            "mail_checks_page.html",
            headers=UNLISTED,
            here=f"/share/{token}",
            back_to="the shared report",
            mail_subject=message.summary.header.subject,
            may_ask=False,
            **view_checks(await self._check.of_message(message)),
        )


def view_result(result: DeliverabilityResult) -> dict[str, Any]:
    """Return the template values of a test and of its report, if any."""
    shown: dict[str, Any] = {
        "test": result.test,
        "state": result.test.state.value,
        "failure": result.failure,
        "doc": None,
    }
    if result.report is not None:
        shown |= view_stored_report(result.report)
    return shown


BASE = "/tests/<test_id>/report"


class ReportFiles(Struct, frozen=True):
    """The downloads of a report."""

    _tests: ManageTests
    _mail: ReportMail
    _renderer: Renderer
    _domain: str

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", f"{BASE}.html", self.html, costs.PARTS),
            Page("GET", f"{BASE}.json", self.json, costs.FREE),
        ]

    async def html(self, visit: Visit) -> Reply:
        """GET /tests/{id}/report.html?details=true: one file with report, mail and styles."""
        result = await self._result(visit)
        document, text = await self._mail.document(result)
        page = self._renderer.page(
            visit,
            "report_file.html",
            mail_document=document,
            mail_text=text,
            view=None,
            all_details=visit.query.value("details", FLAG, False),
            **view_result(result),
        )
        return download_reply(page.body, "text/html", f"mailcheck-{result.test.id}.html")

    async def json(self, visit: Visit) -> Reply:
        """GET /tests/{id}/report.json: the response of GET /test/{testId}."""
        result = await self._result(visit)
        body = dump_json(render_tested(result, self._domain, visit.urls))
        return download_reply(body, "application/json", f"mailcheck-{result.test.id}.json")

    async def _result(self, visit: Visit) -> DeliverabilityResult:
        result = await self._tests.one(visit.account.id, visit.path["test_id"])
        if result.report is None:
            raise NoMailYet("the test has no report yet: wait until it is completed")
        return result
