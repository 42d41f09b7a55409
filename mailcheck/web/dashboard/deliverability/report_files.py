"""A report to take away: one HTML file that needs nothing else, and JSON."""

from mailcheck.api.deliverability.tests import render_tested
from mailcheck.api.shapes import dump_json
from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.errors import NoMailYet
from mailcheck.operations.deliverability.find_test import FindTest
from mailcheck.web.dashboard.deliverability.mail_of_report import MailOfReport
from mailcheck.web.dashboard.deliverability.report_pages import view_result
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.downloads import download_reply
from mailcheck.web.site.replies import Reply

BASE = "/tests/<test_id>/report"


class ReportFiles:
    """The downloads of a report."""

    def __init__(self, find: FindTest, mail: MailOfReport, renderer: Renderer, domain: str) -> None:
        self._find = find
        self._mail = mail
        self._renderer = renderer
        self._domain = domain

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", f"{BASE}.html", self.html),
            Page("GET", f"{BASE}.json", self.json),
        ]

    async def html(self, visit: Visit) -> Reply:
        """GET /tests/{id}/report.html: the report with its mail, styles and pictures in it."""
        result = await self._result(visit)
        document, text = await self._mail.document(result)
        page = self._renderer.page(
            visit,
            "report_file.html",
            mail_document=document,
            mail_text=text,
            view=None,
            **view_result(result),
        )
        return download_reply(page.body, "text/html", f"mailcheck-{result.test.id}.html")

    async def json(self, visit: Visit) -> Reply:
        """GET /tests/{id}/report.json: what GET /test/{testId} gives."""
        result = await self._result(visit)
        body = dump_json(render_tested(result, self._domain, visit.urls))
        return download_reply(body, "application/json", f"mailcheck-{result.test.id}.json")

    async def _result(self, visit: Visit) -> DeliverabilityResult:
        result = await self._find.one(visit.account.id, visit.path["test_id"])
        if result.report is None:
            raise NoMailYet("there is no report yet: it can be had once the test is completed")
        return result
