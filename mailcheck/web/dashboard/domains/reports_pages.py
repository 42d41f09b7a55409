"""Reports of receivers: the senders of a domain, failures, complaints, and report addresses."""

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from msgspec import Struct

from mailcheck.api.domains.dmarc_plan import render_plan
from mailcheck.api.domains.findings import render_record
from mailcheck.api.domains.receiver_reports import (
    render_feedback_overview,
    render_imported,
    render_kept_reports,
)
from mailcheck.api.domains.report_overviews import render_overview, render_tls_overview
from mailcheck.api.requests.checks import (
    DECISION,
    DEFAULT_REPORT_DAYS,
    MOST_REPORT_DAYS,
    DecideSender,
)
from mailcheck.api.requests.fields import DAY, INTEGER, LAST_PAGE, one_of
from mailcheck.api.shapes import as_json
from mailcheck.api.urls import IMPORT_PATH
from mailcheck.checks.receiver_reports.importing import ReportFile
from mailcheck.core.domains.receiver_reports import (
    MIN_DAYS,
    ReportId,
    ReportKind,
    ReportSelection,
    ReportWay,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.reports.all_operations import ReportOperations
from mailcheck.operations.reports.decide_senders import parse_sender
from mailcheck.operations.reports.fetch_reports import FetchReports
from mailcheck.operations.reports.offer_records import RecordOffer
from mailcheck.operations.reports.show_reports import width_of_days
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.dashboard.charts import draw_days
from mailcheck.web.dashboard.domains.frame import (
    BLOCKLISTS,
    PLAN,
    REPORTS,
    DomainFrame,
    path_of,
    read_target,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

NEWEST = 20
"""Number of reports in the list of received reports."""

SHOWN = 50
"""Number of senders, and of TLS results, on a page."""

SHOWN_MAILS = 20
"""Number of failure reports and complaints on a page."""

KINDS = {"": "All", "dmarc": "DMARC", "tls": "TLS", "failure": "Failure", "complaint": "Complaint"}
"""Kinds of reports that the list of received reports can be limited to."""

STATES: Mapping[str, tuple[str, str]] = {
    "waiting": ("", "pending"),
    "counted": ("good", "processed"),
    "repeated": ("", "duplicate"),
    "apart": ("unknown", "not trusted"),
    "refused": ("bad", "invalid"),
}
"""State of a report -> level and label."""

WAYS: Mapping[str, str] = {
    "received": "Received",
    "fetched": "Fetched from a mailbox",
    "uploaded": "Uploaded",
}
"""How a report came -> label."""

KIND = one_of(list(KINDS))

SPANS = {7: "1 week", 30: "1 month", 90: "3 months", 365: "1 year"}


class ReportsPages(Struct, frozen=True):
    """The tab of the reports about a domain, and the page of all received reports."""

    _reports: ReportOperations
    _fetching: FetchReports
    _budget: CheckBudget
    _turns: CheckSlots
    _frame: DomainFrame
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/domains/<domain>/reports", self.of_domain, costs.OVERVIEW),
            Page("GET", "/domains/<domain>/plan", self.plan, costs.PLAN),
            Page("POST", "/domains/<domain>/senders", self.decide, costs.DECISION),
            Page("GET", "/reports", self.show, costs.FREE),
            Page("POST", IMPORT_PATH, self.import_files, costs.IMPORT, takes_files=True),
            Page("POST", "/reports/delete", self.delete_all, costs.FREE),
            Page("POST", "/reports/<report_id>/delete", self.delete_one, costs.FREE),
        ]

    async def of_domain(self, visit: Visit) -> Reply:
        """GET /domains/{domain}/reports?days=&senders=&tls=&mails=&ask=.

        ``senders``, ``tls`` and ``mails`` are page numbers. ``ask=failures`` shows the record that
        requests failure reports.
        """
        account_id, show, query = visit.account.id, self._reports.show, visit.query
        target = self._frame.target(visit)
        days = query.value("days", INTEGER, DEFAULT_REPORT_DAYS, 1, MOST_REPORT_DAYS)
        senders, tls, mails = (
            query.value(name, INTEGER, 1, 1, LAST_PAGE) for name in ("senders", "tls", "mails")
        )
        if target.is_address:
            return redirect(visit, path_of(target.name, BLOCKLISTS))
        domain, own = target.name, await show.addresses(account_id)
        await self._budget.take(account_id)
        async with self._turns.held(account_id):
            overview = await show.dmarc(account_id, domain, days, SHOWN, senders)
            feedback = await show.feedback(
                account_id, domain, days, SHOWN_MAILS, mails, overview.feedback
            )
            offered = await self._reports.offer.offer(domain, own)
            failures = None
            if query.text("ask") == "failures":
                failures = await self._reports.offer.offer_failures(domain, own)
        found = await show.tls(account_id, domain, days, SHOWN, tls)
        return await self._frame.page(
            visit,
            "domain_reports.html",
            target,
            REPORTS,
            here=path_of(domain, REPORTS),
            days=days,
            spans=SPANS,
            chart=draw_days(overview.overview.days, show.since(days), width_of_days(days), days),
            senders_page=senders,
            tls_page=tls,
            overview=as_json(render_overview(overview, senders, SHOWN)),
            tls=as_json(render_tls_overview(found, tls, SHOWN)),
            mails_page=mails,
            feedback=as_json(render_feedback_overview(feedback, mails, SHOWN_MAILS)),
            failures=None if failures is None else _shown(failures),
            offered={"dmarc": _shown(offered.dmarc), "tls": _shown(offered.tls)},
            addresses={
                "dmarc": own.dmarc,
                "tls": own.tls,
                "failures": own.failures,
                "complaints": own.complaints,
            },
        )

    async def plan(self, visit: Visit) -> Reply:
        """GET /domains/{domain}/plan?days=: the next DMARC policy, and what is missing."""
        account_id, target = visit.account.id, self._frame.target(visit)
        days = visit.query.value("days", INTEGER, DEFAULT_REPORT_DAYS, MIN_DAYS, MOST_REPORT_DAYS)
        if target.is_address:
            return redirect(visit, path_of(target.name, BLOCKLISTS))
        await self._budget.take(account_id)
        async with self._turns.held(account_id):
            plan = await self._reports.plan.plan(account_id, target.name, days)
        shown: Any = as_json(render_plan(plan))
        steps = shown["steps"]
        return await self._frame.page(
            visit,
            "domain_plan.html",
            target,
            PLAN,
            here=path_of(target.name, PLAN),
            days=days,
            spans={length: name for length, name in SPANS.items() if length >= MIN_DAYS},
            plan=shown,
            groups=[(kind, list(some)) for kind, some in groupby(steps, itemgetter("kind"))],
        )

    async def decide(self, visit: Visit) -> Reply:
        """POST /domains/{domain}/senders: sender, decision, days, and next for the plan."""
        form, domain = visit.form, self._frame.target(visit).name
        days = form.value("days", INTEGER, DEFAULT_REPORT_DAYS, 1, MOST_REPORT_DAYS)
        form.required("decision")
        request = DecideSender(
            domain=domain,
            sender=form.required("sender"),
            decision=form.value("decision", DECISION),
        )
        sender = parse_sender(request.sender)
        await self._reports.decide.decide(visit.account.id, domain, sender, request.decided)
        tab = PLAN if form.text("next") == PLAN else REPORTS
        return redirect(visit, path_of(domain, tab), done="sender-decided", days=str(days))

    async def show(self, visit: Visit) -> Reply:
        """GET /reports?page=&kind=: received reports. With ``domain`` it leads to its tab."""
        account_id, show = visit.account.id, self._reports.show
        typed = (visit.query.text("domain") or "").strip()
        if typed:
            days = visit.query.text("days")
            more = {} if days is None else {"days": days}
            target = read_target(typed, self._frame.rules)
            return redirect(visit, path_of(target.name, REPORTS), **more)
        page = visit.query.value("page", INTEGER, 1, 1, LAST_PAGE)
        domains = await show.domains(account_id)
        own = await show.addresses(account_id)
        sources = await show.sources(account_id)
        refused = await show.refused(account_id)
        kind = visit.query.value("kind", KIND, "")
        chosen = ReportKind(kind) if kind else None
        newest = await show.reports(account_id, NEWEST, page, chosen)
        kept = render_kept_reports(own, domains, sources, refused, newest, page=page, limit=NEWEST)
        return self._renderer.page(
            visit,
            "reports.html",
            kept=as_json(kept),
            page=page,
            kind=kind,
            kinds=KINDS,
            states=STATES,
            ways=WAYS,
            mailboxes=await self._fetching.of_account(visit.account.name),
        )

    async def import_files(self, visit: Visit) -> Reply:
        """POST /reports/import: files. The script of the page reads the numbers in the result."""
        files = [ReportFile(file.filename, file.data) for file in visit.files]
        if not files:
            raise InvalidParameter("file", "choose files with reports")
        found = await self._reports.importing.import_reports(
            visit.account.id, files, ReportWay.UPLOADED
        )
        imported = as_json(render_imported(found))
        return self._renderer.page(visit, "reports_imported.html", imported=imported)

    async def delete_one(self, visit: Visit) -> Reply:
        """POST /reports/<report_id>/delete."""
        await self._reports.delete.one(visit.account.id, ReportId(visit.path["report_id"]))
        return redirect(visit, "/reports", done="report-deleted")

    async def delete_all(self, visit: Visit) -> Reply:
        """POST /reports/delete: reporter, day. An empty field matches all reports."""
        reporter = (visit.form.text("reporter") or "").strip() or None
        day = visit.form.value("day", DAY) if visit.form.text("day") else None
        if reporter is None and day is None:
            raise InvalidParameter("reporter", "enter a reporter, a day, or both")
        selection = ReportSelection(reporter=reporter, day=day)
        await self._reports.delete.matching(visit.account.id, selection)
        return redirect(visit, "/reports", done="reports-deleted")


def _shown(offered: RecordOffer) -> Mapping[str, Any]:
    records = {"own": offered.own, "agreement": offered.authorization}
    shown = {name: record and as_json(render_record(record)) for name, record in records.items()}
    return {"is_asking": offered.is_asking, **shown}
