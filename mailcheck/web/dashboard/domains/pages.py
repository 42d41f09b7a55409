"""The table of all domains, and the tabs Fix and Checks of one, with the stream of a check."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.api.domains.findings import render_finding
from mailcheck.api.domains.report import render_domain_report
from mailcheck.api.domains.reputation import render_reputation
from mailcheck.api.requests.fields import FLAG, INTEGER, LAST_PAGE
from mailcheck.api.shapes import as_json
from mailcheck.checks.bimi.record import DEFAULT_SELECTOR
from mailcheck.checks.scoring.score import Judgements, Score
from mailcheck.core.domains.receiver_reports import NOWHERE, Offer, ReportPlaces
from mailcheck.core.domains.watches import WatchSettings
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.accounts.authenticate import CheckBudget, StrangerBudget
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.domains.check_blocklists import CheckBlocklists
from mailcheck.operations.domains.compute_reputation import (
    ComputeReputation,
    OnFactors,
    Reputation,
    ReputationQuery,
)
from mailcheck.operations.domains.describe_domain import DescribeDomain, DomainReport
from mailcheck.operations.domains.list_problems import Problem, list_problems, total_gain
from mailcheck.operations.domains.show_domains import (
    DomainSummary,
    ShowDomains,
    with_check,
    with_listings,
)
from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.dashboard.domains.frame import (
    BLOCKLISTS,
    CHECKS,
    FACTORS,
    FIX,
    DomainFrame,
    Target,
    path_of,
    read_target,
    view_domain,
)
from mailcheck.web.dashboard.domains.mail_route import describe_route
from mailcheck.web.dashboard.domains.view import (
    LOGO,
    WORDS,
    read_logo_selector,
    read_settings_query,
    score_level,
)
from mailcheck.web.dashboard.live import run_with_access
from mailcheck.web.dashboard.rendering import (
    Renderer,
    describe_failure,
    format_sentence,
    redirect,
)
from mailcheck.web.dashboard.visits import Page, Visit, local_path
from mailcheck.web.site import costs
from mailcheck.web.site.event_streams import Stream, write_event
from mailcheck.web.site.replies import Reply

PER_PAGE = 15
"""Number of domains in a page of the table."""

STRANGERS = AccountId("")
"""Whose slots the checks of people without an account take."""

ROW = "row"
"""View of a check in the table. The other views are tabs."""


class DomainCheck(Struct, frozen=True):
    """A finished check of a domain."""

    reputation: Reputation
    report: DomainReport

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, the largest gain first."""
        return list_problems(self.reputation, self.report)


class CheckDomain(Struct, frozen=True):
    """Runs the checks of a domain for a page. It counts as one check of the account."""

    _reputation: ComputeReputation
    _describe: DescribeDomain
    _offer: Offer
    _budget: CheckBudget
    _of_strangers: StrangerBudget
    _turns: CheckSlots

    async def run(
        self,
        visit: Visit,
        query: ReputationQuery,
        *,
        is_refresh: bool,
        on_factors: OnFactors | None = None,
    ) -> DomainCheck:
        """Return the score, and all records that it is based on."""
        await self._budget.take(visit.account.id)
        async with self._turns.held(visit.account.id):
            offered = await self._offer(visit.account.id)
            logo = read_logo_selector(visit.query)
            return await self._run(query, offered, logo, is_refresh, on_factors)

    async def run_for_stranger(self, client: str, query: ReputationQuery) -> DomainCheck:
        """Return the results for an address without an account. All of them share their slots."""
        await self._of_strangers.take(client)
        async with self._turns.held(STRANGERS):
            return await self._run(query, NOWHERE, DEFAULT_SELECTOR, False, None)

    async def _run(
        self,
        query: ReputationQuery,
        offered: ReportPlaces,
        logo: str,
        is_refresh: bool,
        on_factors: OnFactors | None,
    ) -> DomainCheck:
        reputation, report = await run_all(
            self._reputation.compute(query, offered, is_refresh=is_refresh, on_factors=on_factors),
            self._describe.describe(query.domain, query.selectors, offered, logo),
        )
        if reputation.is_cached and not _agree(reputation, report):
            # The cached score is outdated: the sections would contradict it.
            reputation = await self._reputation.compute(query, offered, is_refresh=True)
        return DomainCheck(reputation, report)

    async def is_ready(self, query: ReputationQuery) -> bool:
        """Return whether the score is known, so that the page needs no waiting."""
        return await self._reputation.has_cached(query)


class DomainPages(Struct, frozen=True):
    """The table of domains, and the tabs that show a check."""

    _check: CheckDomain
    _blocklists: CheckBlocklists
    _budget: CheckBudget
    _turns: CheckSlots
    _slots: WaitSlots
    _domains: ShowDomains
    _watches: ManageWatches
    _frame: DomainFrame
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = "/domains/<domain>"
        return [
            Page("GET", "/domains", self.table, costs.DOMAIN),
            Page("GET", one, self.fix, costs.DOMAIN),
            Page("GET", f"{one}/checks", self.checks, costs.DOMAIN),
            Page("GET", f"{one}/live", self.stream, costs.DOMAIN),
            Page("POST", f"{one}/watch", self.switch, costs.WATCH),
        ]

    async def table(self, visit: Visit) -> Reply:
        """GET /domains?check=&selectors=&ips=&page=&whole=true.

        ``check`` is a domain or an address to check in its row. ``whole`` waits for the result.
        """
        typed = (visit.query.text("check") or "").strip()
        page = visit.query.value("page", INTEGER, 1, 1, LAST_PAGE)
        found = await self._domains.page(visit.account.id, PER_PAGE, page)
        last = max(1, -(-found.total // PER_PAGE))
        if page > last:
            return redirect(visit, "/domains", page=str(last))
        values: dict[str, Any] = {"checked": None, "is_whole": True, "typed": typed}
        failure = None
        try:
            if typed:
                values |= await self._checked(visit, typed)
        except InvalidParameter as problem:
            failure = problem
        checked = values["checked"]
        recent = await self._domains.recently_checked(visit.account.id) if page == last else []
        shown = {domain.name: domain for domain in (*found.domains, *recent)}
        rows = [
            view_domain(domain, visit.asked_at)
            for domain in shown.values()
            if checked is None or domain.name != checked.domain.name
        ]
        return self._renderer.page(
            visit,
            "domains.html",
            error=failure,
            rows=rows,
            total=found.total,
            failing=found.failing,
            page=page,
            pages=last,
            factors=FACTORS,
            **{"live": "", "whole": "", **values},
        )

    async def _checked(self, visit: Visit, typed: str) -> dict[str, Any]:
        target = read_target(typed, self._frame.rules)
        summary = await self._frame.summary(visit, target)
        given = _given(visit)
        values = {
            "target": target,
            "typed": typed,
            "live": f"{target.path}/live?{urlencode({'view': ROW, **given})}",
            "whole": f"/domains?{urlencode({'check': typed, 'whole': 'true', **given})}",
        }
        is_whole = visit.query.value("whole", FLAG, False)
        if is_whole:
            summary = await self._run_row(visit, target, summary, None)
        row = view_domain(summary, visit.asked_at)
        return {**values, "is_whole": is_whole, "checked": row}

    async def _run_row(
        self,
        visit: Visit,
        target: Target,
        summary: DomainSummary,
        on_factors: OnFactors | None,
    ) -> DomainSummary:
        """Check the target of a row, and return its summary."""
        if not isinstance(target.query, str):
            await self._budget.take(visit.account.id)
            async with self._turns.held(visit.account.id):
                check = await self._blocklists.check(target.query)
            summary = with_listings(summary, check.listings)
            return await self._domains.note_check(visit.account.id, summary)
        found = await self._check.run(
            visit, self._query(visit, target.query), is_refresh=False, on_factors=on_factors
        )
        return await self._summarize(visit, summary, found)

    async def _summarize(
        self, visit: Visit, summary: DomainSummary, found: DomainCheck
    ) -> DomainSummary:
        """Return a summary with the results of a check, and keep it for the table."""
        summary = with_check(summary, found.reputation, found.problems)
        return await self._domains.note_check(visit.account.id, summary)

    async def fix(self, visit: Visit) -> Reply:
        """GET /domains/{domain}?selectors=&ips=&refresh=true&whole=true: what to fix."""
        return await self._tab(visit, FIX)

    async def checks(self, visit: Visit) -> Reply:
        """GET /domains/{domain}/checks?selectors=&ips=&refresh=true&whole=true: all results."""
        return await self._tab(visit, CHECKS)

    async def _tab(self, visit: Visit, tab: str) -> Reply:
        target = self._frame.target(visit)
        if not isinstance(target.query, str):
            return redirect(visit, path_of(target.name, BLOCKLISTS))
        if visit.path["domain"] != target.name:
            return redirect(visit, path_of(target.name, tab), **_given(visit))
        query = self._query(visit, target.query)
        is_refresh = visit.query.value("refresh", FLAG, False)
        given, here = _given(visit), path_of(target.name, tab)
        more = {"refresh": "true"} if is_refresh else {}
        values: dict[str, Any] = {
            "query_string": f"?{urlencode(given)}" if given else "",
            "again": f"{here}?{urlencode({**given, 'refresh': 'true'})}",
            "live": f"{target.path}/live?{urlencode({'view': tab, **given, **more})}",
            "whole": f"{here}?{urlencode({**given, **more, 'whole': 'true'})}",
            "settings": read_settings_query(visit.query),
        }
        is_ready = not is_refresh and await self._check.is_ready(query)
        if not is_ready and not visit.query.value("whole", FLAG, False):
            return await self._frame.page(
                visit, f"domain_{tab}.html", target, tab, is_whole=False, **values
            )
        found = await self._check.run(visit, query, is_refresh=is_refresh)
        summary = await self._frame.summary(visit, target)
        return await self._frame.page(
            visit,
            f"domain_{tab}.html",
            target,
            tab,
            summary=await self._summarize(visit, summary, found),
            is_whole=True,
            **values,
            **view_check(found),
        )

    async def stream(self, visit: Visit) -> Stream:
        """GET /domains/{domain}/live?view=row|fix|checks&selectors=&ips=&refresh=true.

        A ``factor`` event for each factor, then ``done`` with the row or the content of the tab.
        """
        target = self._frame.target(visit)
        view = visit.query.text("view") or ROW
        if view not in (ROW, FIX, CHECKS):
            raise InvalidParameter("view", f"`view` must be row, fix or checks; got {view[:20]!r}")
        query = self._query(visit, target.query) if isinstance(target.query, str) else None
        is_refresh = visit.query.value("refresh", FLAG, False)

        async def run(request: Request) -> None:
            def write_factors(judgements: Judgements) -> None:
                for name, judgement in judgements.items():
                    html = self._frame.fragment(
                        visit, "domain_mark.html", name=name.value, result=judgement.mark.value
                    )
                    event = {"name": _slug(name.value), "html": html}
                    request.write(write_event("factor", event))

            try:
                summary = await self._frame.summary(visit, target)
                if view == ROW or query is None:
                    summary = await self._run_row(visit, target, summary, write_factors)
                    html = self._row(visit, summary, "fresh")
                else:
                    found = await self._check.run(
                        visit, query, is_refresh=is_refresh, on_factors=write_factors
                    )
                    summary = await self._summarize(visit, summary, found)
                    html = self._frame.fragment(
                        visit,
                        f"domain_{view}_result.html",
                        again=f"{path_of(target.name, view)}?refresh=true",
                        query_string="",
                        **self._frame.values(visit, target, summary),
                        **view_check(found),
                    )
            except ExpectedFailure as failure:
                problem = format_sentence(describe_failure(failure))
                event = {"problem": problem}
                if view == ROW:
                    summary = await self._frame.summary(visit, target)
                    event["html"] = self._row(visit, summary, "stored", row_problem=problem)
                request.write(write_event("problem", event))
                return
            request.write(write_event("done", {"html": html}))

        return run_with_access(self._slots, visit, run)

    def _row(self, visit: Visit, summary: DomainSummary, state: str, **values: Any) -> str:
        """Render the row of a domain for an event."""
        return self._frame.fragment(
            visit,
            "domain_row.html",
            row=view_domain(summary, visit.asked_at),
            factors=FACTORS,
            state=state,
            next_path="/domains",
            given=_given(visit),
            **values,
        )

    async def switch(self, visit: Visit) -> Reply:
        """POST /domains/{domain}/watch: on, selectors, ips, next."""
        target = self._frame.target(visit)
        is_on = visit.form.value("on", FLAG, False)
        given = read_settings_query(visit.form)
        settings = WatchSettings(selectors=given.selectors, addresses=given.addresses)
        await self._watches.switch(visit.account.id, target.name, is_on=is_on, settings=settings)
        place = local_path(visit.form.text("next") or target.path)
        return redirect(visit, place, done="watch-on" if is_on else "watch-off")

    def _query(self, visit: Visit, domain: str) -> ReputationQuery:
        read_logo_selector(visit.query)  # an invalid one is rejected before the check begins
        return read_settings_query(visit.query).query_for(domain, self._frame.rules)


def view_check(found: DomainCheck) -> dict[str, Any]:
    """Return the template values of a finished check."""
    reputation, report = found.reputation, found.report
    score = reputation.score
    shown, known = as_json(render_reputation(reputation)), as_json(render_domain_report(report))
    problems = found.problems
    return {
        "found": shown,
        "report": known,
        "problems": _view_problems(found),
        "gained": total_gain(problems),
        "left": _left_points(reputation.score, problems),
        "route": describe_route(known, reputation.evidence.starttls),
        "is_gradable": score.is_gradable,
        "level": score_level(score.score, 100) if score.is_gradable else "unknown",
        "checked_at": reputation.checked_at,
        "words": WORDS,
    }


def _view_problems(found: DomainCheck) -> list[Mapping[str, Any]]:
    """Return the problems for their template: with the finding as JSON, if there is one.

    ``solved_by`` is the number of an earlier problem with the same record.
    """
    proofs = {**found.report.proofs, **found.reputation.proofs}
    shown: list[Mapping[str, Any]] = []
    first_with: dict[object, int] = {}
    for number, problem in enumerate(found.problems, 1):
        finding = problem.finding
        record = None if problem.fix is None else problem.fix.record
        earlier = None if record is None else first_with.setdefault(record, number)
        shown.append(
            {
                "topic": problem.topic,
                "meaning": problem.meaning,
                "gain": problem.gain,
                "finding": None if finding is None else as_json(render_finding(finding, proofs)),
                "is_proven": problem.gain > 0 and problem.fix is not None,
                "solved_by": None if earlier == number else earlier,
            }
        )
    return shown


class LeftPoints(Struct, frozen=True):
    """Points of a factor that no fix adds. ``name`` is that of the factor."""

    name: str
    points: int
    determined: bool


def _left_points(score: Score, problems: Sequence[Problem]) -> list[LeftPoints]:
    """Return the points up to the best score that the problems do not account for."""
    gains = Counter[str]()
    for problem in problems:
        gains[problem.topic] += problem.gain
    left = (
        LeftPoints(name, factor.maximum - factor.impact - gains[name], factor.is_determined)
        for factor in score.factors
        for name in [factor.name.value]
    )
    return [points for points in left if points.points > 0]


def _given(visit: Visit) -> dict[str, str]:
    """Return the selectors and addresses in a query, if any."""
    names = ("selectors", "ips", LOGO)
    given = {name: (visit.query.text(name) or "").strip() for name in names}
    return {name: value for name, value in given.items() if value}


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def _agree(reputation: Reputation, report: DomainReport) -> bool:
    """Return whether the score is based on the records that the report shows."""
    scored, shown = reputation.evidence, report.records
    names = ("spf", "dkim", "dmarc", "mx")
    return all(getattr(scored, name) == getattr(shown, name) for name in names)
