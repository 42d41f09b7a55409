"""A report that somebody shared: a page for people, JSON for programs; no login for either."""

from typing import Any

from mailcheck.api.deliverability.tests import render_tested
from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.identifiers import SHARE_SECRET_LENGTH, SHORT_ID_LENGTH
from mailcheck.operations.deliverability.share_test import ShareTest
from mailcheck.operations.inbox.check_mail import CheckMail
from mailcheck.web.dashboard.application import prefers_html
from mailcheck.web.dashboard.deliverability.mail_of_report import MailOfReport
from mailcheck.web.dashboard.deliverability.report_view import view_stored_report
from mailcheck.web.dashboard.inbox.checks_view import view_checks
from mailcheck.web.dashboard.inbox.share_pages import UNLISTED
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.replies import Reply, json_reply

TOKEN_LENGTH = SHORT_ID_LENGTH + SHARE_SECRET_LENGTH
"""That of a message's share link is longer: the two never meet."""


class ReportPages:
    """The pages of a report's share link; each asks each time whether the link is still good."""

    def __init__(
        self,
        share: ShareTest,
        mail: MailOfReport,
        check: CheckMail,
        renderer: Renderer,
        domain: str,
    ) -> None:
        self._share = share
        self._mail = mail
        self._check = check
        self._renderer = renderer
        self._domain = domain

    def pages(self) -> list[Page]:
        """List the pages; to be put before those of shared messages, which take any token."""
        path = f"/share/<string(length={TOKEN_LENGTH}):token>"
        return [
            Page("GET", path, self.show, is_open=True),
            Page("GET", f"{path}/frame", self.frame, is_open=True),
            Page("GET", f"{path}/checks", self.checks, is_open=True),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /share/{token}."""
        result = await self._share.open(visit.path["token"])
        if not prefers_html(visit.request):
            shape = render_tested(result, self._domain, visit.urls)
            return json_reply(shape, headers=UNLISTED)
        return self._renderer.page(
            visit,
            "report_shared.html",
            headers=UNLISTED,
            here=f"/share/{visit.path['token']}",
            **view_result(result),
            **await self._mail.values(visit, result),
        )

    async def frame(self, visit: Visit) -> Reply:
        """GET /share/{token}/frame?remote=true."""
        return await self._mail.frame(visit, await self._share.open(visit.path["token"]))

    async def checks(self, visit: Visit) -> Reply:
        """GET /share/{token}/checks: as beside the report; requests for links are its owner's."""
        token = visit.path["token"]
        message = await self._mail.message(await self._share.open(token))
        return self._renderer.page(
            visit,
            "mail_checks_page.html",
            headers=UNLISTED,
            here=f"/share/{token}",
            back="the report",
            may_ask=False,
            **view_checks(await self._check.of_message(message)),
        )


def view_result(result: DeliverabilityResult) -> dict[str, Any]:
    """Give what pages show of a test, and of its report once there is one."""
    shown: dict[str, Any] = {
        "test": result.test,
        "state": result.test.state.value,
        "failure": result.failure,
        "doc": None,
    }
    if result.report is not None:
        shown |= view_stored_report(result.report)
    return shown
