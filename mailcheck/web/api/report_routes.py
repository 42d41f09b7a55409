"""The routes of receivers' reports."""

from mailcheck.api.domains.receiver_reports import (
    DeletedReport,
    DeletedReports,
    DmarcOverview,
    KeptReports,
    TlsOverview,
    parse_selection,
    render_kept_reports,
    render_overview,
    render_tls_overview,
)
from mailcheck.api.errors import Error
from mailcheck.api.openapi.operations import Answer, Operation, Parameter, json_body
from mailcheck.api.schemas import text
from mailcheck.core.domain_names import parse_domain
from mailcheck.core.receiver_reports import LARGEST_REPORT_PAGE, ReportId
from mailcheck.operations.places import CheckTurns
from mailcheck.operations.ranges import (
    DEFAULT_PAGE,
    DEFAULT_REPORT_DAYS,
    LARGEST_PAGE,
    LAST_PAGE,
    MOST_REPORT_DAYS,
)
from mailcheck.operations.reports.offered import ReportOperations
from mailcheck.web.api import described_parameters as parameters
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.api.described_answers import missing
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Reports of receivers"

EXAMPLE_REPORT = "01a1fc41-0219-76dd-ac7e-95beebac7c40"

REPORTS_LIST = Operation(
    "listReports",
    _TAG,
    "List the reports that have come",
    "DMARC aggregate reports and TLS reports about the account's domains, newest first: those "
    "that are counted, and those that are not, with the reason. And the addresses to which they "
    "are sent, for the records that ask for them.",
    {200: Answer("A page of reports.", [json_body("reports", KeptReports)])},
    (parameters.LIMIT, parameters.PAGE),
)

REPORTS_DMARC = Operation(
    "getDmarcReports",
    _TAG,
    "Say who sends as a domain",
    "What the counted DMARC reports say together: who sends as the domain, from where, what fails "
    "and why, what p=reject would stop, and what to do for each. Who is not known comes first.",
    {200: Answer("The overview.", [json_body("dmarc reports", DmarcOverview)])},
    (parameters.DOMAIN, parameters.REPORT_DAYS, parameters.REPORT_LIMIT, parameters.PAGE),
)

REPORTS_TLS = Operation(
    "getTlsReports",
    _TAG,
    "Say whether mail comes in encrypted",
    "What the counted TLS reports say together: sessions that could not be encrypted on their way "
    "to the domain, why, and what to do.",
    {200: Answer("The overview.", [json_body("tls reports", TlsOverview)])},
    (parameters.DOMAIN, parameters.REPORT_DAYS, parameters.REPORT_LIMIT, parameters.PAGE),
)


_REPORT = Parameter(
    "reportId",
    "path",
    "The report.",
    {**text(), "minLength": 1, "maxLength": 100},
    EXAMPLE_REPORT,
    is_required=True,
)

REPORT_DELETE = Operation(
    "deleteReport",
    _TAG,
    "Delete a report",
    "Its counts and the mail that brought it are deleted too.",
    {
        200: Answer("It is deleted.", [json_body("report deleted", DeletedReport)]),
        404: missing("report"),
        409: Answer(
            "The report is being read: delete it in a moment.", [json_body("report busy", Error)]
        ),
    },
    (_REPORT,),
)

REPORTS_DELETE = Operation(
    "deleteReports",
    _TAG,
    "Delete the reports of a reporter, or of a day",
    "Their counts are deleted too. With both parameters: the reports of the reporter about the "
    "day. One of the two is required. A report that is being read is not deleted.",
    {200: Answer("How many were deleted.", [json_body("reports deleted", DeletedReports)])},
    (parameters.REPORTER, parameters.REPORT_DAY),
)


class ReportRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(self, operations: ReportOperations, turns: CheckTurns) -> None:
        self._reports = operations.show
        self._delete = operations.delete
        self._turns = turns

    def routes(self) -> list[Route]:
        """List the routes."""
        return [
            Route("GET", "/reports", self.all, REPORTS_LIST),
            Route("GET", "/reports/dmarc", self.dmarc, REPORTS_DMARC),
            Route("GET", "/reports/tls", self.tls, REPORTS_TLS),
            Route("DELETE", "/reports", self.delete_all, REPORTS_DELETE),
            Route("DELETE", "/reports/<report_id>", self.delete_one, REPORT_DELETE),
        ]

    async def all(self, call: Call) -> Reply:
        """GET /reports."""
        account_id = call.caller.account_id
        limit = call.query.whole_number("limit", 1, LARGEST_PAGE, DEFAULT_PAGE)
        page = call.query.whole_number("page", 1, LAST_PAGE, 1)
        own = await self._reports.addresses(account_id)
        domains = await self._reports.domains(account_id)
        sources = await self._reports.sources(account_id)
        found = await self._reports.reports(account_id, limit, page)
        refused = await self._reports.refused(account_id)
        shape = render_kept_reports(own, domains, sources, refused, found, page, limit)
        return json_reply(shape)

    async def dmarc(self, call: Call) -> Reply:
        """GET /reports/dmarc."""
        domain, days, limit, page = self._asked(call)
        account_id = call.caller.account_id
        async with self._turns.held(account_id):
            found = await self._reports.dmarc(account_id, domain, days, limit, page)
        return json_reply(render_overview(found, page, limit))

    async def tls(self, call: Call) -> Reply:
        """GET /reports/tls."""
        domain, days, limit, page = self._asked(call)
        found = await self._reports.tls(call.caller.account_id, domain, days, limit, page)
        return json_reply(render_tls_overview(found, page, limit))

    async def delete_one(self, call: Call) -> Reply:
        """DELETE /reports/{reportId}."""
        report_id = call.path["report_id"]
        await self._delete.one(call.caller.account_id, ReportId(report_id))
        return json_reply(DeletedReport(success=True, id=report_id))

    async def delete_all(self, call: Call) -> Reply:
        """DELETE /reports."""
        selection = parse_selection(call.query)
        deleted = await self._delete.matching(call.caller.account_id, selection)
        return json_reply(DeletedReports(success=True, deleted=deleted))

    def _asked(self, call: Call) -> tuple[str, int, int, int]:
        # Nothing is asked of the domain itself: one that nobody could have has no reports.
        domain = parse_domain(call.query.required("domain"), allow_special_use=True)
        days = call.query.whole_number("days", 1, MOST_REPORT_DAYS, DEFAULT_REPORT_DAYS)
        limit = call.query.whole_number("limit", 1, LARGEST_REPORT_PAGE, LARGEST_REPORT_PAGE)
        return domain, days, limit, call.query.whole_number("page", 1, LAST_PAGE, 1)
