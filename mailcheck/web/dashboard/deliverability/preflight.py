"""The preflight page: the score of a test's mail with DNS records not published yet."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from mailcheck.api.deliverability.report import render_report
from mailcheck.api.shapes import as_json
from mailcheck.core.errors import InvalidParameter, NoMailYet
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.deliverability.preflight import (
    MAX_RECORDS,
    MAX_VALUE,
    TYPES,
    Preflight,
    parse_record,
)
from mailcheck.web.dashboard.deliverability.report_view import (
    suggested_records,
    view_report,
    view_stored_report,
)
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

PATH = "/tests/<test_id>/preflight"

SPARE_ROWS = 2
"""Number of empty rows in the form, for records that the report does not suggest."""

Rows = Sequence[dict[str, str]]
EMPTY = {"name": "", "type": "TXT", "value": ""}


class PreflightPages(Struct, frozen=True):
    """The form with the proposed records, and the result beside the real score."""

    _tests: ManageTests
    _preflight: Preflight
    _budget: CheckBudget
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [Page("GET", PATH, self.ask, costs.FREE), Page("POST", PATH, self.run, costs.SCORE)]

    async def ask(self, visit: Visit) -> Reply:
        """GET /tests/{id}/preflight: the form, filled with the records the report suggests."""
        return await self._page(visit, None)

    async def run(self, visit: Visit) -> Reply:
        """POST /tests/{id}/preflight: name, type and value of each record. Nothing is stored."""
        rows: Rows = []
        try:
            most = MAX_RECORDS + SPARE_ROWS
            columns = [
                visit.form.texts(field, most, MAX_VALUE) for field in ("name", "type", "value")
            ]
            rows = [
                {"name": name, "type": kind, "value": value}
                for name, kind, value in zip_longest(*columns, fillvalue="")
                if name.strip() or value.strip()  # skip empty rows
            ]
            records = [
                parse_record(row["name"], row["type"], row["value"], parameter=f"record {number}")
                for number, row in enumerate(rows, 1)
            ]
            await self._budget.take(visit.account.id)
            report = await self._preflight.run(visit.account.id, visit.path["test_id"], records)
        except InvalidParameter as problem:
            return await self._page(visit, rows, error=problem)
        return await self._page(visit, rows, proposed=view_report(as_json(render_report(report))))

    async def _page(self, visit: Visit, rows: Rows | None, **values: Any) -> Reply:
        result = await self._tests.one(visit.account.id, visit.path["test_id"])
        if result.test.received_at is None:
            raise NoMailYet("no mail has arrived for this test: send it a mail first")
        now = None if result.report is None else view_stored_report(result.report)
        if rows is None:
            rows = [] if now is None else suggested_records(now["doc"])
        spare = min(SPARE_ROWS, MAX_RECORDS - len(rows))
        return self._renderer.page(
            visit,
            "deliverability_preflight.html",
            here=f"/tests/{result.test.id}",
            now=now,
            rows=[*rows, *([EMPTY] * spare)],
            types=TYPES,
            longest=MAX_VALUE,
            **{"proposed": None, **values},
        )
