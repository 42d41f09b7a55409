"""The routes of receivers' reports."""

from typing import Any

from mailcheck.api.domains.receiver_reports import (
    DeletedReport,
    DeletedReports,
    DmarcOverview,
    KeptReports,
    TlsOverview,
    render_kept_reports,
    render_overview,
    render_tls_overview,
)
from mailcheck.api.errors import Error
from mailcheck.api.openapi.operations import Operation, Response, json_body
from mailcheck.api.requests.checks import DeleteReports, GetReports, ListPage
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.domain_names import parse_domain
from mailcheck.core.identifiers import AccountId
from mailcheck.core.receiver_reports import ReportId
from mailcheck.operations.reports.all_operations import ReportOperations
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.api.calls import Call, Route, not_found
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Reports of receivers"

REPORTS_LIST = Operation(
    "listReports",
    _TAG,
    "List the reports that have come",
    "DMARC aggregate reports and TLS reports about the account's domains, newest first: those "
    "that are counted, and those that are not, with the reason. And the addresses to which they "
    "are sent, for the records that ask for them.",
    {200: Response("A page of reports.", [json_body("reports", KeptReports)])},
    ListPage,
)

REPORTS_DMARC = Operation(
    "getDmarcReports",
    _TAG,
    "Say who sends as a domain",
    "What the counted DMARC reports say together: who sends as the domain, from where, what fails "
    "and why, what p=reject would stop, and what to do for each. Who is not known comes first.",
    {200: Response("The overview.", [json_body("dmarc reports", DmarcOverview)])},
    GetReports,
)

REPORTS_TLS = Operation(
    "getTlsReports",
    _TAG,
    "Say whether mail comes in encrypted",
    "What the counted TLS reports say together: sessions that could not be encrypted on their way "
    "to the domain, why, and what to do.",
    {200: Response("The overview.", [json_body("tls reports", TlsOverview)])},
    GetReports,
)


REPORT_DELETE = Operation(
    "deleteReport",
    _TAG,
    "Delete a report",
    "Its counts and the mail that brought it are deleted too.",
    {
        200: Response("It is deleted.", [json_body("report deleted", DeletedReport)]),
        404: not_found("report"),
        409: Response(
            "The report is being read: delete it in a moment.", [json_body("report busy", Error)]
        ),
    },
    NoParameters,
)

REPORTS_DELETE = Operation(
    "deleteReports",
    _TAG,
    "Delete the reports of a reporter, or of a day",
    "Their counts are deleted too. With both parameters: the reports of the reporter about the "
    "day. One of the two is required. A report that is being read is not deleted.",
    {200: Response("How many were deleted.", [json_body("reports deleted", DeletedReports)])},
    DeleteReports,
)


class ReportRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(self, operations: ReportOperations, turns: CheckSlots) -> None:
        self._reports = operations.show
        self._delete = operations.delete
        self._turns = turns

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        return [
            Route("GET", "/reports", self.all, REPORTS_LIST),
            Route("GET", "/reports/dmarc", self.dmarc, REPORTS_DMARC),
            Route("GET", "/reports/tls", self.tls, REPORTS_TLS),
            Route("DELETE", "/reports", self.delete_all, REPORTS_DELETE),
            Route("DELETE", "/reports/<report_id>", self.delete_one, REPORT_DELETE),
        ]

    async def all(self, call: Call[ListPage]) -> Reply:
        """GET /reports."""
        account_id = call.caller.account_id
        limit, page = call.request.limit, call.request.page
        own = await self._reports.addresses(account_id)
        domains = await self._reports.domains(account_id)
        sources = await self._reports.sources(account_id)
        found = await self._reports.reports(account_id, limit, page)
        refused = await self._reports.refused(account_id)
        shape = render_kept_reports(own, domains, sources, refused, found, page, limit)
        return json_reply(shape)

    async def dmarc(self, call: Call[GetReports]) -> Reply:
        """GET /reports/dmarc."""
        async with self._turns.held(call.caller.account_id):
            found = await self._reports.dmarc(*_about(call))
        return json_reply(render_overview(found, call.request.page, call.request.limit))

    async def tls(self, call: Call[GetReports]) -> Reply:
        """GET /reports/tls."""
        found = await self._reports.tls(*_about(call))
        return json_reply(render_tls_overview(found, call.request.page, call.request.limit))

    async def delete_one(self, call: Call[NoParameters]) -> Reply:
        """DELETE /reports/{reportId}."""
        report_id = call.path["report_id"]
        await self._delete.one(call.caller.account_id, ReportId(report_id))
        return json_reply(DeletedReport(success=True, id=report_id))

    async def delete_all(self, call: Call[DeleteReports]) -> Reply:
        """DELETE /reports."""
        deleted = await self._delete.matching(call.caller.account_id, call.request.selection)
        return json_reply(DeletedReports(success=True, deleted=deleted))


def _about(call: Call[GetReports]) -> tuple[AccountId, str, int, int, int]:
    request = call.request
    # No query goes to the domain: a special-use name has no reports, which is an answer.
    domain = parse_domain(request.domain, allow_special_use=True)
    return call.caller.account_id, domain, request.days, request.limit, request.page
