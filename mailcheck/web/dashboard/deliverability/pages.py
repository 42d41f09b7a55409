"""Pages of deliverability tests: create, list, show, recheck and delete."""

from urllib.parse import urlencode

from msgspec import Struct

from mailcheck.api.deliverability.findings import TENTHS
from mailcheck.api.deliverability.tests import address_of
from mailcheck.api.requests.fields import FLAG, INTEGER
from mailcheck.core.identifiers import MessageId
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.deliverability.all_operations import DeliverabilityOperations
from mailcheck.operations.deliverability.check_progress import PARTS, CheckProgress
from mailcheck.web.dashboard.deliverability.history import find_history
from mailcheck.web.dashboard.deliverability.report_mail import ReportMail
from mailcheck.web.dashboard.deliverability.report_pages import view_result
from mailcheck.web.dashboard.deliverability.report_view import level_of
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit, local_path
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply, download_reply

TESTS_PER_PAGE = 25
LAST_PAGE = 1_000_000

BASE = "/tests/<test_id>"


class DeliverabilityPages(Struct, frozen=True):
    """The pages of an account's tests. ``mail_server`` is the host:port that accepts mail."""

    _operations: DeliverabilityOperations
    _progress: CheckProgress
    _mail: ReportMail
    _budget: CheckBudget
    _renderer: Renderer
    _domain: str
    _mail_server: str

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/tests", self.history, costs.FREE),
            Page("POST", "/tests", self.make, costs.SMALL),
            Page("GET", BASE, self.show, costs.PARTS),
            Page("GET", f"{BASE}/frame", self.frame, costs.PARTS),
            Page("GET", f"{BASE}/raw", self.raw, costs.FREE),
            Page("POST", f"{BASE}/delete", self.delete, costs.FREE),
            Page("POST", f"{BASE}/recheck", self.recheck, costs.SCORE),
            Page("POST", f"{BASE}/share", self.renew_share, costs.FREE),
            Page("POST", "/inbox/messages/<message_id>/test", self.score_message, costs.SCORE),
        ]

    async def history(self, visit: Visit) -> Reply:
        """GET /tests?page=: the account's tests, newest first.

        A page number beyond the end shows the last page.
        """
        page = visit.query.value("page", INTEGER, 1, 1, LAST_PAGE)
        manage, account_id = self._operations.manage, visit.account.id
        found = await manage.page(account_id, TESTS_PER_PAGE, page)
        last = max(1, -(-found.total // TESTS_PER_PAGE))
        if page > last:
            page, found = last, await manage.page(account_id, TESTS_PER_PAGE, last)
        first = (page - 1) * TESTS_PER_PAGE
        has_more = bool(found.entries) and first + len(found.entries) < found.total
        return self._renderer.page(
            visit,
            "deliverability_list.html",
            tests=found.entries,
            total=found.total,
            first=first + 1,
            page=page,
            next_query=urlencode({"page": page + 1}) if has_more else "",
            levels={
                entry.test.id: level_of(
                    entry.tenths / TENTHS, is_content_only=entry.is_content_only
                )
                for entry in found.entries
                if entry.tenths is not None
            },
            addresses={
                entry.test.id: address_of(entry.test, self._domain) for entry in found.entries
            },
        )

    async def make(self, visit: Visit) -> Reply:
        """POST /tests: next. Create a test, and return to ``next`` or show its page."""
        await self._budget.take(visit.account.id)
        test = await self._operations.manage.create(visit.account.id)
        return redirect(visit, local_path(visit.form.text("next") or f"/tests/{test.id}"))

    async def show(self, visit: Visit) -> Reply:
        """GET /tests/{id}?details=true: the state of the test, and its report when it is completed.

        ``details`` opens all details.
        """
        tests = self._operations.manage
        result = await tests.one(visit.account.id, visit.path["test_id"])
        test, view = result.test, view_result(result)
        return self._renderer.page(
            visit,
            "deliverability_test.html",
            here=f"/tests/{test.id}",
            address=address_of(test, self._domain),
            mail_server=self._mail_server,
            share_url=visit.urls.report_url(test.id, test.share_token),
            is_final=test.state.is_final,
            is_own=True,
            all_details=visit.query.value("details", FLAG, False),
            parts=PARTS,
            ended=self._progress.ended(test.delivery_id),
            history=await find_history(tests, visit, view["doc"]) if view["doc"] else None,
            **view,
            **await self._mail.values(visit, result),
        )

    async def frame(self, visit: Visit) -> Reply:
        """GET /tests/{id}/frame?remote=true: the HTML of the mail, for an iframe."""
        result = await self._operations.manage.one(visit.account.id, visit.path["test_id"])
        return await self._mail.frame(visit, result)

    async def delete(self, visit: Visit) -> Reply:
        """POST /tests/{id}/delete."""
        await self._operations.manage.delete(visit.account.id, visit.path["test_id"])
        return redirect(visit, "/tests", done="test-deleted")

    async def raw(self, visit: Visit) -> Reply:
        """GET /tests/{id}/raw: the exact bytes of the mail, as a download."""
        test_id = visit.path["test_id"]
        mail = await self._operations.manage.mail(visit.account.id, test_id)
        return download_reply(mail.raw_message, "message/rfc822", f"{test_id}.eml")

    async def recheck(self, visit: Visit) -> Reply:
        """POST /tests/{id}/recheck."""
        test_id = visit.path["test_id"]
        await self._budget.take(visit.account.id)
        await self._operations.manage.recheck(visit.account.id, test_id)
        return redirect(visit, f"/tests/{test_id}", done="recheck-started")

    async def renew_share(self, visit: Visit) -> Reply:
        """POST /tests/{id}/share: revoke the share link and create a new one."""
        test_id = visit.path["test_id"]
        await self._operations.manage.renew_share_link(visit.account.id, test_id)
        return redirect(visit, f"/tests/{test_id}", done="report-share-renewed")

    async def score_message(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/test: create a test of a message in the inbox."""
        await self._budget.take(visit.account.id)
        message_id = MessageId(visit.path["message_id"])
        test = await self._operations.manage.score_message(visit.account.id, message_id)
        return redirect(visit, f"/tests/{test.id}")
