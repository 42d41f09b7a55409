"""The routes of reports from receivers."""

from typing import Any

from msgspec import Struct

from mailcheck.api.domains.dmarc_plan import DmarcPlan, render_plan
from mailcheck.api.domains.receiver_reports import (
    DecidedSender,
    DeletedReport,
    DeletedReports,
    FeedbackOverview,
    ImportedReports,
    KeptReports,
    render_feedback_overview,
    render_imported,
    render_kept_reports,
)
from mailcheck.api.domains.report_overviews import (
    DmarcOverview,
    TlsOverview,
    render_overview,
    render_tls_overview,
)
from mailcheck.api.openapi.operations import BYTES, Body, Operation, error_response, json_response
from mailcheck.api.requests.checks import (
    DecideSender,
    DeleteReports,
    GetReports,
    ImportReports,
    ListReports,
    PlanPolicy,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.api.urls import IMPORT_PATH
from mailcheck.checks.receiver_reports.importing import ReportFile
from mailcheck.core.domains.domain_names import parse_domain
from mailcheck.core.domains.receiver_reports import MAX_DECISIONS, MAX_IMPORT, ReportId, ReportWay
from mailcheck.core.identifiers import AccountId
from mailcheck.core.rights import Scope
from mailcheck.operations.reports.all_operations import ReportOperations
from mailcheck.operations.reports.decide_senders import parse_sender
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Reports of receivers"

REPORTS_LIST = Operation(
    "listReports",
    (Scope.DOMAINS,),
    _TAG,
    "List the received reports",
    "DMARC aggregate reports, TLS reports, failure reports and complaints about the account's "
    "domains, newest first. Reports that are not counted are listed with the reason. The response "
    "also contains the addresses for the DNS records that request reports.",
    answer=json_response("A page of reports.", "reports", KeptReports),
    request=ListReports,
)

REPORTS_DMARC = Operation(
    "getDmarcReports",
    (Scope.DOMAINS,),
    _TAG,
    "Get the senders of a domain",
    "Summarizes the counted DMARC reports: who sends as the domain, from where, what fails and "
    "why, what p=reject would stop, and what to do. Unknown senders come first.",
    answer=json_response("The overview.", "dmarc reports", DmarcOverview),
    request=GetReports,
)

REPORTS_TLS = Operation(
    "getTlsReports",
    (Scope.DOMAINS,),
    _TAG,
    "Get the TLS results of a domain",
    "Summarizes the counted TLS reports: sessions to the domain that could not be encrypted, the "
    "reasons, and what to do.",
    answer=json_response("The overview.", "tls reports", TlsOverview),
    request=GetReports,
)

REPORTS_FEEDBACK = Operation(
    "getFeedbackReports",
    (Scope.DOMAINS,),
    _TAG,
    "Get the failure reports and complaints of a domain",
    "Counts the mails in failure reports (RFC 9991) and complaints (RFC 5965), by sending address "
    "and by campaign, and lists the reports. Unauthenticated reports are listed but not counted.",
    answer=json_response("The overview.", "feedback", FeedbackOverview),
    request=GetReports,
)

DMARC_PLAN = Operation(
    "getDmarcPlan",
    (Scope.DOMAINS,),
    _TAG,
    "Plan the next DMARC policy",
    "Simulates p=quarantine and p=reject on the mail in the reports, and says which of it they "
    "would have stopped. The plan ends in a record that is safe to publish, or in the list of "
    "missing steps with their records. Undecided senders with failing mail are a step. Too few "
    "reports are never called safe.",
    answer=json_response("The plan.", "dmarc plan", DmarcPlan),
    request=PlanPolicy,
)

SENDER_DECIDE = Operation(
    "decideSender",
    (Scope.DOMAINS,),
    _TAG,
    "Decide about a sender",
    "Stores whether a sender of a domain sends for you. The decision counts for all reports, and "
    "replaces an earlier one.",
    answer=json_response("The decision is stored.", "sender decided", DecidedSender),
    errors={
        409: error_response(
            f"The account has decided about {MAX_DECISIONS} senders, the maximum.",
            "too many decisions",
        )
    },
    request=DecideSender,
)

REPORTS_IMPORT = Operation(
    "importReports",
    (Scope.REPORTS_IMPORT,),
    _TAG,
    "Import reports from files",
    "Counts the DMARC, TLS and failure reports in a file: XML, JSON, gzip, zip, a mail, an mbox "
    "file, or a zip file with many of them. A form (`multipart/form-data`) sends several files. A "
    "report with the same organization, id and period is known, and changes nothing. The reports "
    "need not be requested in DNS. Each report is stored with all of its rows or not at all, so an "
    "interrupted import can be repeated. Send many files in several requests: each response says "
    "how far the import is.",
    answer=json_response("What became of each report.", "imported", ImportedReports),
    errors={
        413: error_response(
            f"The request body has more than {MAX_IMPORT // 2**20} MiB: send the files in parts, "
            "as `mailcheck reports import` does.",
            "tooLarge",
        )
    },
    request=ImportReports,
    body=Body(media_type=BYTES),
)

REPORT_DELETE = Operation(
    "deleteReport",
    (Scope.DOMAINS,),
    _TAG,
    "Delete a report",
    "Deletes the report, its counts and the mail that contained it.",
    answer=json_response("The report is deleted.", "report deleted", DeletedReport),
    errors={
        409: error_response("The report is being processed: try again in a moment.", "report busy")
    },
)

REPORTS_DELETE = Operation(
    "deleteReports",
    (Scope.DOMAINS,),
    _TAG,
    "Delete the reports of a reporter or a day",
    "Deletes the reports and their counts. At least one of the two parameters is required; both "
    "select the reports of the reporter about the day. A report that is being processed is kept.",
    answer=json_response("The number of deleted reports.", "reports deleted", DeletedReports),
    request=DeleteReports,
)


class ReportRoutes(Struct, frozen=True, eq=False):
    """Handlers that parse parameters, call an operation and render its result."""

    reports: ReportOperations
    turns: CheckSlots

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        return [
            make_route("GET", "/reports", self.all, REPORTS_LIST, costs.FREE),
            make_route("GET", "/reports/dmarc", self.dmarc, REPORTS_DMARC, costs.OVERVIEW),
            make_route("GET", "/reports/dmarc/plan", self.plan, DMARC_PLAN, costs.PLAN),
            make_route(
                "POST", "/reports/dmarc/senders", self.decide, SENDER_DECIDE, costs.DECISION
            ),
            make_route("GET", "/reports/tls", self.tls, REPORTS_TLS, costs.FREE),
            make_route("GET", "/reports/feedback", self.feedback, REPORTS_FEEDBACK, costs.OVERVIEW),
            make_route("POST", IMPORT_PATH, self.import_files, REPORTS_IMPORT, costs.IMPORT),
            make_route("DELETE", "/reports", self.delete_all, REPORTS_DELETE, costs.FREE),
            make_route(
                "DELETE", "/reports/<report_id>", self.delete_one, REPORT_DELETE, costs.FREE
            ),
        ]

    async def all(self, call: Call[ListReports]) -> Reply:
        """GET /reports."""
        account_id = call.caller.account_id
        limit, page = call.request.limit, call.request.page
        own = await self.reports.show.addresses(account_id)
        domains = await self.reports.show.domains(account_id)
        sources = await self.reports.show.sources(account_id)
        found = await self.reports.show.reports(account_id, limit, page, call.request.report_kind)
        refused = await self.reports.show.refused(account_id)
        shape = render_kept_reports(own, domains, sources, refused, found, page=page, limit=limit)
        return json_reply(shape)

    async def dmarc(self, call: Call[GetReports]) -> Reply:
        """GET /reports/dmarc."""
        async with self.turns.held(call.caller.account_id):
            found = await self.reports.show.dmarc(*_about(call))
        return json_reply(render_overview(found, call.request.page, call.request.limit))

    async def plan(self, call: Call[PlanPolicy]) -> Reply:
        """GET /reports/dmarc/plan."""
        domain = parse_domain(call.request.domain, allow_special_use=True)
        async with self.turns.held(call.caller.account_id):
            found = await self.reports.plan.plan(call.caller.account_id, domain, call.request.days)
        return json_reply(render_plan(found))

    async def decide(self, call: Call[DecideSender]) -> Reply:
        """POST /reports/dmarc/senders."""
        domain = parse_domain(call.request.domain, allow_special_use=True)
        sender, decision = parse_sender(call.request.sender), call.request.decided
        await self.reports.decide.decide(call.caller.account_id, domain, sender, decision)
        return json_reply(DecidedSender(True, domain, sender, decision))

    async def tls(self, call: Call[GetReports]) -> Reply:
        """GET /reports/tls."""
        found = await self.reports.show.tls(*_about(call))
        return json_reply(render_tls_overview(found, call.request.page, call.request.limit))

    async def feedback(self, call: Call[GetReports]) -> Reply:
        """GET /reports/feedback."""
        async with self.turns.held(call.caller.account_id):
            found = await self.reports.show.feedback(*_about(call))
        return json_reply(render_feedback_overview(found, call.request.page, call.request.limit))

    async def import_files(self, call: Call[ImportReports]) -> Reply:
        """POST /reports/import."""
        name, media_type = call.request.name or "file", call.headers.get("content-type", "")
        found = await self.reports.importing.import_reports(
            call.caller.account_id, [ReportFile(name, call.body, media_type)], ReportWay.UPLOADED
        )
        return json_reply(render_imported(found))

    async def delete_one(self, call: Call[NoParameters]) -> Reply:
        """DELETE /reports/{reportId}."""
        report_id = call.path["report_id"]
        await self.reports.delete.one(call.caller.account_id, ReportId(report_id))
        return json_reply(DeletedReport(success=True, id=report_id))

    async def delete_all(self, call: Call[DeleteReports]) -> Reply:
        """DELETE /reports."""
        deleted = await self.reports.delete.matching(call.caller.account_id, call.request.selection)
        return json_reply(DeletedReports(success=True, deleted=deleted))


def _about(call: Call[GetReports]) -> tuple[AccountId, str, int, int, int]:
    request = call.request
    # The domain is not queried in DNS, so a special-use name is allowed. It has no reports.
    domain = parse_domain(request.domain, allow_special_use=True)
    return call.caller.account_id, domain, request.days, request.limit, request.page
