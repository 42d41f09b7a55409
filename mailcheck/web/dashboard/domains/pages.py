"""The domain check: a score with its factors, what to mend, and everything that is known."""

from collections.abc import Mapping
from typing import Any

from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.accounts.check_budget import CheckBudget
from mailcheck.operations.domains.compute_reputation import ComputeReputation, ReputationQuery
from mailcheck.operations.domains.describe_domain import DescribeDomain
from mailcheck.operations.fan_out import run_all
from mailcheck.web.dashboard.domains.view import (
    WORDS,
    DomainForm,
    NameRules,
    read_domain_form,
    score_level,
)
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.errors import status_of
from mailcheck.web.site.replies import Reply
from mailcheck.wire.domains.report import render_domain_report
from mailcheck.wire.domains.reputation import render_reputation
from mailcheck.wire.shapes import as_json


class DomainPages:
    """The page of domain checks; it comes at once, and what was found comes when it is."""

    def __init__(
        self,
        reputation: ComputeReputation,
        describe: DescribeDomain,
        budget: CheckBudget,
        renderer: Renderer,
        rules: NameRules,
    ) -> None:
        self._reputation = reputation
        self._describe = describe
        self._budget = budget
        self._renderer = renderer
        self._rules = rules

    def pages(self) -> list[Page]:
        """List the one page."""
        return [Page("GET", "/domain", self.show)]

    async def show(self, visit: Visit) -> Reply:
        """GET /domain?domain=&selectors=&ips=&refresh=true&whole=true.

        ``whole`` waits for the answer; without it the page asks for that itself.
        """
        form = read_domain_form(visit.query)
        if not form.domain:
            return self._page(visit, form)
        try:
            query = form.read(self._rules)
        except InvalidParameter as problem:
            return self._page(visit, form, status=status_of(problem), problem=str(problem))
        is_refresh = visit.query.flag("refresh")
        if not visit.query.flag("whole"):
            more = {"refresh": "true"} if is_refresh else {}
            whole = form.query(whole="true", **more)
            return self._page(visit, form, name=query.domain, whole=whole)
        await self._budget.take(visit.account.id)
        found = await self._check(query, is_refresh=is_refresh)
        return self._page(visit, form, name=query.domain, **found)

    async def _check(self, query: ReputationQuery, *, is_refresh: bool) -> dict[str, Any]:
        reputation, report = await run_all(
            self._reputation.compute(query, is_refresh=is_refresh),
            self._describe.describe(query.domain, query.selectors),
        )
        score = reputation.score
        return {
            "found": as_json(render_reputation(reputation)),
            "report": as_json(render_domain_report(report)),
            "is_gradable": score.is_gradable,
            "level": score_level(score.score, 100) if score.is_gradable else "unknown",
            "checked_at": reputation.checked_at,
        }

    def _page(self, visit: Visit, form: DomainForm, *, status: int = 200, **values: Any) -> Reply:
        defaults: Mapping[str, Any] = {"problem": "", "name": "", "whole": "", "found": None}
        return self._renderer.page(
            visit,
            "domain.html",
            status=status,
            form=form,
            words=WORDS,
            **{**defaults, **values},
        )
