"""The routes of deliverability tests (docs/reference/contract.md)."""

from typing import Any

from msgspec import Struct

from mailcheck.api.deliverability.tests import (
    WHOLE_TEST,
    DeletedTest,
    GeneratedTest,
    PageOfTests,
    RawTestMail,
    Recheck,
    ReportShare,
    WaitOver,
    render_new_address,
    render_preflight,
    render_raw_mail,
    render_recheck,
    render_report_share,
    render_test_page,
    render_tested,
    render_wait_over,
)
from mailcheck.api.deliverability.tests import (
    Preflight as PreflightShape,
)
from mailcheck.api.openapi.operations import (
    Body,
    Link,
    Operation,
    Response,
    json_body,
    json_response,
)
from mailcheck.api.requests.checks import ListPage, PreflightRecords, WaitForTest
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.identifiers import MessageId
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.deliverability.all_operations import DeliverabilityOperations
from mailcheck.operations.deliverability.preflight import Preflight
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.failures import WAIT_TIMED_OUT
from mailcheck.web.site.replies import Reply, download_reply, json_reply, large_json_reply

_TAG = "Deliverability tests"

_THIS = {"testId": "$response.body#/testId"}
_FIRST = {"testId": "$response.body#/tests/0/testId"}

_TEST_LINKS = {
    "test": Link("getTest", _THIS, "get its status"),
    "wait": Link("waitForTest", _THIS, "wait for the report"),
    "recheck": Link("recheckTest", _THIS, "run all checks again"),
    "share": Link("renewTestShare", _THIS, "create a new share link"),
}

GENERATE = Operation(
    "generateTest",
    (Scope.TESTS,),
    _TAG,
    "Create a test",
    "Creates a test address, which accepts one mail within an hour.",
    answer=json_response("The test address.", "new test", GeneratedTest, links=_TEST_LINKS),
)

TESTS_LIST = Operation(
    "listTests",
    (Scope.TESTS,),
    _TAG,
    "List tests",
    "Newest first; results are kept for 7 days.",
    answer=json_response(
        "A page of tests.",
        "tests",
        PageOfTests,
        links={
            "first": Link("getTest", _FIRST, "the newest test"),
            "firstRaw": Link("getRawTestMail", _FIRST, "its mail"),
            "preflight": Link(
                "preflightTest", _FIRST, "evaluate it with records that are not published yet"
            ),
        },
    ),
    request=ListPage,
)

TEST = Operation(
    "getTest",
    (Scope.TESTS,),
    _TAG,
    "Get a test",
    "Returns the status, and the report if the status is `completed`. Poll it until the status "
    "is `completed`, `expired` or `error`, or wait for the test.",
    answer=json_response("The test.", "test", WHOLE_TEST),
)

TEST_DELETE = Operation(
    "deleteTest",
    (Scope.TESTS,),
    _TAG,
    "Delete a test",
    "Deletes the address, the report and the share link. The mail is deleted too, unless an "
    "inbox contains it.",
    answer=json_response("The test is deleted.", "deleted test", DeletedTest),
)

TEST_WAIT = Operation(
    "waitForTest",
    (Scope.TESTS,),
    _TAG,
    "Wait for a test",
    "Responds when the status is `completed`, `expired` or `error`, or at the timeout.",
    answer=json_response("The test.", "test", WHOLE_TEST),
    errors={
        408: json_response("The test is not finished: wait again.", "test wait over", WaitOver)
    },
    request=WaitForTest,
)

TEST_RAW = Operation(
    "getRawTestMail",
    (Scope.TESTS,),
    _TAG,
    "Get the mail of a test",
    "JSON with the mail as text, or in Base64 if it is not valid UTF-8. With "
    "`Accept: message/rfc822`, the exact bytes as a download. 400 before the mail has arrived.",
    answer=Response(
        "The mail.",
        [json_body("raw test mail", RawTestMail), Body(media_type="message/rfc822")],
    ),
)

TEST_RECHECK = Operation(
    "recheckTest",
    (Scope.TESTS,),
    _TAG,
    "Run all checks again",
    "Repeats all checks of the mail. 400 before the mail has arrived. Checks that are already "
    "running are not started again.",
    answer=json_response("The checks are running.", "recheck", Recheck),
)

TEST_PREFLIGHT = Operation(
    "preflightTest",
    (Scope.TESTS,),
    _TAG,
    "Evaluate a mail with records that are not published yet",
    "Returns the report that the mail of a test would get if these DNS records were published. "
    "The result is not stored.",
    answer=json_response("The hypothetical report.", "preflight", PreflightShape),
    request=PreflightRecords,
)

TEST_SHARE_RENEW = Operation(
    "renewTestShare",
    (Scope.TESTS,),
    _TAG,
    "Create a new share link of a report",
    "The old link stops working immediately.",
    answer=json_response("The new link.", "test share", ReportShare),
)

MESSAGE_SCORE = Operation(
    "scoreMessage",
    (Scope.TESTS, Scope.INBOX_READ),
    _TAG,
    "Test an inbox message",
    "Creates a deliverability test of a message in the inbox.",
    answer=json_response("The test, in progress.", "scored message", WHOLE_TEST, links=_TEST_LINKS),
)


class DeliverabilityRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse parameters, call an operation and render its result."""

    operations: DeliverabilityOperations
    examination: Preflight
    domain: str
    turns: PacedQueue

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        test = "/test/<test_id>"
        return [
            make_route("POST", "/test/generate", self.generate, GENERATE, costs.SMALL),
            make_route("GET", "/test", self.tests, TESTS_LIST, costs.FREE),
            make_route("GET", test, self.one, TEST, costs.FREE),
            make_route("DELETE", test, self.delete, TEST_DELETE, costs.FREE),
            make_route("GET", f"{test}/wait", self.wait, TEST_WAIT, costs.FREE),
            make_route("GET", f"{test}/raw", self.raw_mail, TEST_RAW, costs.FREE),
            make_route("POST", f"{test}/recheck", self.recheck, TEST_RECHECK, costs.SCORE),
            make_route("POST", f"{test}/preflight", self.preflight, TEST_PREFLIGHT, costs.SCORE),
            make_route("POST", f"{test}/share", self.renew_share, TEST_SHARE_RENEW, costs.FREE),
            make_route(
                "POST",
                "/inbox/messages/<message_id>/test",
                self.score_message,
                MESSAGE_SCORE,
                costs.SCORE,
            ),
        ]

    async def generate(self, call: Call[NoParameters]) -> Reply:
        """POST /test/generate."""
        test = await self.operations.manage.create(call.caller.account_id)
        return json_reply(render_new_address(test, self.domain))

    async def tests(self, call: Call[ListPage]) -> Reply:
        """GET /test."""
        limit, page = call.request.limit, call.request.page
        found = await self.operations.manage.page(call.caller.account_id, limit, page)
        return json_reply(render_test_page(found, page, limit, self.domain, call.urls))

    async def one(self, call: Call[NoParameters]) -> Reply:
        """GET /test/{testId}."""
        found = await self.operations.manage.one(call.caller.account_id, call.path["test_id"])
        return json_reply(render_tested(found, self.domain, call.urls))

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /test/{testId}."""
        await self.operations.manage.delete(call.caller.account_id, call.path["test_id"])
        return json_reply(DeletedTest(success=True, test_id=call.path["test_id"]))

    async def wait(self, call: Call[WaitForTest]) -> Reply:
        """GET /test/{testId}/wait."""
        found = await self.operations.wait.wait(
            call.caller, call.path["test_id"], call.request.timeout
        )
        if not found.test.state.is_final:
            return json_reply(render_wait_over(found, self.domain, call.urls), WAIT_TIMED_OUT)
        return json_reply(render_tested(found, self.domain, call.urls))

    async def raw_mail(self, call: Call[NoParameters]) -> Reply:
        """GET /test/{testId}/raw."""
        test_id = call.path["test_id"]
        mail = await self.operations.manage.mail(call.caller.account_id, test_id)
        if "message/rfc822" in call.accept.lower():
            return download_reply(mail.raw_message, "message/rfc822", f"{test_id}.eml")
        return await large_json_reply(render_raw_mail(test_id, mail.raw_message), self.turns)

    async def recheck(self, call: Call[NoParameters]) -> Reply:
        """POST /test/{testId}/recheck."""
        is_started = await self.operations.manage.recheck(
            call.caller.account_id, call.path["test_id"]
        )
        return json_reply(render_recheck(call.path["test_id"], is_started=is_started))

    async def preflight(self, call: Call[PreflightRecords]) -> Reply:
        """POST /test/{testId}/preflight."""
        records = call.request.parsed
        report = await self.examination.run(call.caller.account_id, call.path["test_id"], records)
        return json_reply(render_preflight(call.path["test_id"], report))

    async def renew_share(self, call: Call[NoParameters]) -> Reply:
        """POST /test/{testId}/share."""
        found = await self.operations.manage.renew_share_link(
            call.caller.account_id, call.path["test_id"]
        )
        return json_reply(render_report_share(found.test, call.urls))

    async def score_message(self, call: Call[NoParameters]) -> Reply:
        """POST /inbox/messages/{id}/test."""
        score = self.operations.manage.score_message
        test = await score(call.caller.account_id, MessageId(call.path["message_id"]))
        return json_reply(render_tested(DeliverabilityResult(test), self.domain, call.urls))
