"""The routes of receivers' reports."""

from mailcheck.core.domain_names import parse_domain
from mailcheck.operations.places import CheckTurns
from mailcheck.operations.ranges import (
    DEFAULT_PAGE,
    DEFAULT_REPORT_DAYS,
    LARGEST_PAGE,
    LAST_PAGE,
    MOST_REPORT_DAYS,
)
from mailcheck.operations.reports.show_reports import ShowReports
from mailcheck.web.api import described_reports as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.wire.domains.receiver_reports import (
    render_kept_reports,
    render_overview,
    render_tls_overview,
)


class ReportRoutes:
    """Parameters in, operation, shape out; no rule of its own."""

    def __init__(self, reports: ShowReports, turns: CheckTurns) -> None:
        self._reports = reports
        self._turns = turns

    def routes(self) -> list[Route]:
        """List the routes."""
        return [
            Route("GET", "/reports", self.all, described.REPORTS_LIST),
            Route("GET", "/reports/dmarc", self.dmarc, described.REPORTS_DMARC),
            Route("GET", "/reports/tls", self.tls, described.REPORTS_TLS),
        ]

    async def all(self, call: Call) -> Reply:
        """GET /reports."""
        account_id = call.caller.account_id
        limit = call.query.whole_number("limit", 1, LARGEST_PAGE, DEFAULT_PAGE)
        page = call.query.whole_number("page", 1, LAST_PAGE, 1)
        own = await self._reports.addresses(account_id)
        domains = await self._reports.domains(account_id)
        found = await self._reports.reports(account_id, limit, page)
        return json_reply(render_kept_reports(own, domains, found, page, limit))

    async def dmarc(self, call: Call) -> Reply:
        """GET /reports/dmarc."""
        domain, days = self._asked(call)
        async with self._turns.held(call.caller.account_id):
            found = await self._reports.dmarc(call.caller.account_id, domain, days)
        return json_reply(render_overview(found))

    async def tls(self, call: Call) -> Reply:
        """GET /reports/tls."""
        domain, days = self._asked(call)
        found = await self._reports.tls(call.caller.account_id, domain, days)
        return json_reply(render_tls_overview(found))

    def _asked(self, call: Call) -> tuple[str, int]:
        # Nothing is asked of the domain itself: one that nobody could have has no reports.
        domain = parse_domain(call.query.required("domain"), allow_special_use=True)
        days = call.query.whole_number("days", 1, MOST_REPORT_DAYS, DEFAULT_REPORT_DAYS)
        return domain, days
