"""The routes of deliverability tests (SPEC.md section 4, DECISIONS.md section 3)."""

from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.operations.concurrency import Turns
from mailcheck.operations.deliverability.offered import DeliverabilityOperations
from mailcheck.operations.deliverability.preflight import Preflight
from mailcheck.operations.ranges import (
    DEFAULT_PAGE,
    DEFAULT_WAIT,
    LARGEST_PAGE,
    LAST_PAGE,
    LONGEST_WAIT,
    SHORTEST_WAIT,
)
from mailcheck.web.api import described_tests as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.downloads import download_reply
from mailcheck.web.site.errors import WAIT_OVER
from mailcheck.web.site.replies import Reply, json_reply, large_json_reply
from mailcheck.wire.deliverability.preflight_bodies import parse_preflight
from mailcheck.wire.deliverability.tests import (
    DeletedTest,
    render_new_address,
    render_preflight,
    render_raw_mail,
    render_recheck,
    render_report_share,
    render_test_page,
    render_tested,
    render_wait_over,
)


class DeliverabilityRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(
        self,
        operations: DeliverabilityOperations,
        preflight: Preflight,
        domain: str,
        turns: Turns,
    ) -> None:
        self._operations = operations
        self._preflight = preflight
        self._domain = domain
        self._turns = turns

    def routes(self) -> list[Route]:
        """List the routes."""
        test = "/test/<test_id>"
        return [
            Route("POST", "/test/generate", self.generate, described.GENERATE),
            Route("GET", "/test", self.tests, described.TESTS_LIST),
            Route("GET", test, self.one, described.TEST),
            Route("DELETE", test, self.delete, described.TEST_DELETE),
            Route("GET", f"{test}/wait", self.wait, described.TEST_WAIT),
            Route("GET", f"{test}/raw", self.raw_mail, described.TEST_RAW),
            Route("POST", f"{test}/recheck", self.recheck, described.TEST_RECHECK),
            Route("POST", f"{test}/preflight", self.preflight, described.TEST_PREFLIGHT),
            Route("POST", f"{test}/share", self.renew_share, described.TEST_SHARE_RENEW),
            Route(
                "POST",
                "/inbox/messages/<message_id>/test",
                self.score_message,
                described.MESSAGE_SCORE,
            ),
        ]

    async def generate(self, call: Call) -> Reply:
        """POST /test/generate."""
        test = await self._operations.generate.generate(call.caller.account_id)
        return json_reply(render_new_address(test, self._domain))

    async def tests(self, call: Call) -> Reply:
        """GET /test."""
        limit = call.query.whole_number("limit", 1, LARGEST_PAGE, DEFAULT_PAGE)
        page = call.query.whole_number("page", 1, LAST_PAGE, 1)
        found = await self._operations.find.page(call.caller.account_id, limit, page)
        return json_reply(render_test_page(found, page, limit, self._domain, call.urls))

    async def one(self, call: Call) -> Reply:
        """GET /test/{testId}."""
        found = await self._operations.find.one(call.caller.account_id, call.test_id)
        return json_reply(render_tested(found, self._domain, call.urls))

    async def delete(self, call: Call) -> Reply:
        """DELETE /test/{testId}."""
        await self._operations.delete.delete(call.caller.account_id, call.test_id)
        return json_reply(DeletedTest(success=True, test_id=call.test_id))

    async def wait(self, call: Call) -> Reply:
        """GET /test/{testId}/wait."""
        timeout = call.query.seconds("timeout", SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT)
        found = await self._operations.wait.wait(call.caller, call.test_id, timeout)
        if not found.test.state.is_final:
            return json_reply(render_wait_over(found, self._domain, call.urls), WAIT_OVER)
        return json_reply(render_tested(found, self._domain, call.urls))

    async def raw_mail(self, call: Call) -> Reply:
        """GET /test/{testId}/raw."""
        mail = await self._operations.find.mail(call.caller.account_id, call.test_id)
        if "message/rfc822" in call.accept.lower():
            return download_reply(mail.raw_message, "message/rfc822", f"{call.test_id}.eml")
        return await large_json_reply(render_raw_mail(call.test_id, mail.raw_message), self._turns)

    async def recheck(self, call: Call) -> Reply:
        """POST /test/{testId}/recheck."""
        is_started = await self._operations.recheck.recheck(call.caller.account_id, call.test_id)
        return json_reply(render_recheck(call.test_id, is_started=is_started))

    async def preflight(self, call: Call) -> Reply:
        """POST /test/{testId}/preflight."""
        records = parse_preflight(call.body)
        report = await self._preflight.run(call.caller.account_id, call.test_id, records)
        return json_reply(render_preflight(call.test_id, report))

    async def renew_share(self, call: Call) -> Reply:
        """POST /test/{testId}/share."""
        found = await self._operations.share.renew(call.caller.account_id, call.test_id)
        return json_reply(render_report_share(found.test, call.urls))

    async def score_message(self, call: Call) -> Reply:
        """POST /inbox/messages/{id}/test."""
        score = self._operations.score_message.score
        test = await score(call.caller.account_id, call.message_id)
        return json_reply(render_tested(DeliverabilityResult(test), self._domain, call.urls))
