"""The tab that checks an address or a domain against the blocklists."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.api.domains.blocklists import (
    explain_no_answer,
    explain_unqueried,
    render_blocklist_check,
    render_listing,
)
from mailcheck.api.requests.fields import FLAG
from mailcheck.api.shapes import as_json
from mailcheck.checks.dnsbl.catalogue import Blocklist
from mailcheck.checks.dnsbl.listings import Listing
from mailcheck.core.errors import ExpectedFailure
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.domains.check_blocklists import BlocklistCheck, CheckBlocklists
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.dashboard.domains.frame import BLOCKLISTS, DomainFrame, Target, path_of
from mailcheck.web.dashboard.live import run_with_access
from mailcheck.web.dashboard.rendering import format_sentence
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.event_streams import Stream, write_event
from mailcheck.web.site.replies import Reply

ORDER = ("listed", "unknown", "clean", "unsupported", "disabled")
"""Statuses in the order of the rows. Rows of one status keep the order of the catalogue."""

PENDING = "pending"

LABELS = MappingProxyType(
    {
        "listed": ("bad", "listed"),
        "clean": ("good", "not listed"),
        "unknown": ("unknown", "unknown"),
        "unsupported": ("", "not checked"),
        "disabled": ("", "disabled"),
        PENDING: ("", "checking"),
    }
)
"""Status -> level and label. Unknown is neither good nor bad."""

EXPLANATIONS = MappingProxyType(
    {
        "unsupported": "This list does not contain this kind of address.",
        "disabled": "The operator of this service has disabled this list.",
    }
)


class Totals(Struct, frozen=True):
    """Totals of a check: the lists that were queried, and how many list the name or are unknown.

    ``no_answer_reason`` explains why no list answered, and is empty if one did. ``hint`` explains
    why some lists were not queried, and is empty if all were.
    """

    asked: int
    listed: int
    unknown: int
    no_answer_reason: str
    hint: str

    @property
    def level(self) -> str:
        """The level that the result is displayed with."""
        if self.listed:
            return "bad"
        return "unknown" if self.no_answer_reason else "good"


def pending_rows(blocklists: Sequence[Blocklist]) -> list[dict[str, Any]]:
    """Return rows for lists that have not answered yet."""
    return [
        {"name": blocklist.name, "zone": blocklist.zone, "status": PENDING}
        for blocklist in blocklists
    ]


def finished_rows(check: BlocklistCheck) -> list[dict[str, Any]]:
    """Return the rows of a finished check in the order of `ORDER`."""
    rows = as_json(render_blocklist_check(check).results)
    return sorted(rows, key=lambda row: ORDER.index(row["status"]))


def count_results(check: BlocklistCheck) -> Totals:
    """Return the totals of a finished check."""
    shown = render_blocklist_check(check)
    no_answer_reason = explain_no_answer(check) if check.has_no_answer else ""
    return Totals(
        shown.total_checked,
        shown.total_listed,
        shown.total_unknown,
        no_answer_reason,
        explain_unqueried(check),
    )


class BlocklistPages(Struct, frozen=True):
    """The tab of blocklists, and the event stream that completes it."""

    _blocklists: CheckBlocklists
    _budget: CheckBudget
    _turns: CheckSlots
    _slots: WaitSlots
    _frame: DomainFrame

    def pages(self) -> list[Page]:
        """List the pages."""
        one = "/domains/<domain>/blocklists"
        return [
            Page("GET", one, self.show, costs.LISTS),
            Page("GET", f"{one}/live", self.stream, costs.LISTS),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /domains/{domain}/blocklists?whole=true. ``whole`` waits for all lists."""
        target = self._frame.target(visit)
        if not visit.query.value("whole", FLAG, False):
            rows = pending_rows(self._blocklists.lists_for(target.query))
            return await self._page(visit, target, rows=rows)
        await self._budget.take(visit.account.id)
        async with self._turns.held(visit.account.id):
            check = await self._blocklists.check(target.query)
        return await self._page(
            visit,
            target,
            rows=finished_rows(check),
            totals=count_results(check),
            addresses=check.addresses,
        )

    async def stream(self, visit: Visit) -> Stream:
        """GET /domains/{domain}/blocklists/live: a ``row`` event for each list, then ``done``."""
        query = self._frame.target(visit).query

        async def run(request: Request) -> None:
            def write_row(row: Listing) -> None:
                shown = as_json(render_listing(row))
                html = self._fragment(visit, "blocklist_row.html", row=shown)
                event = {"zone": shown["zone"], "status": shown["status"], "html": html}
                request.write(write_event("row", event))

            try:
                await self._budget.take(visit.account.id)
                async with self._turns.held(visit.account.id):
                    check = await self._blocklists.check(query, write_row)
            except ExpectedFailure as failure:
                request.write(write_event("problem", {"problem": format_sentence(str(failure))}))
                return
            order = [row["zone"] for row in finished_rows(check)]
            html = self._fragment(
                visit,
                "blocklist_totals.html",
                name=check.query,
                totals=count_results(check),
                addresses=check.addresses,
            )
            request.write(write_event("done", {"order": order, "html": html}))

        return run_with_access(self._slots, visit, run)

    async def _page(self, visit: Visit, target: Target, **values: Any) -> Reply:
        here = path_of(target.name, BLOCKLISTS)
        return await self._frame.page(
            visit,
            "domain_blocklists.html",
            target,
            BLOCKLISTS,
            name=target.name,
            live=f"{here}/live",
            whole=f"{here}?whole=true",
            labels=LABELS,
            explanations=EXPLANATIONS,
            **{"totals": None, "addresses": (), **values},
        )

    def _fragment(self, visit: Visit, template: str, **values: Any) -> str:
        return self._frame.fragment(
            visit, template, labels=LABELS, explanations=EXPLANATIONS, **values
        )
