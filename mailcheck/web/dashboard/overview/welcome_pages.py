"""The welcome page for people who are not signed in. It checks a domain at once."""

from typing import Any

from msgspec import Struct

from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.operations.accounts.authenticate import StrangerBudget
from mailcheck.operations.accounts.register import Register
from mailcheck.operations.accounts.registration_rules import Registration
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from mailcheck.operations.domains.show_domains import DomainSummary, with_check
from mailcheck.web.dashboard.domains.frame import FACTORS, read_target, view_domain
from mailcheck.web.dashboard.domains.pages import CheckDomain, view_check
from mailcheck.web.dashboard.domains.view import NameRules
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import ANYONE, Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply


class WelcomePages(Struct, frozen=True):
    """The page at the root of the dashboard for visitors, and their checks of domains."""

    _register: Register
    _check: CheckDomain
    _budget: StrangerBudget
    _rules: NameRules
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/", self.show, costs.FREE, ANYONE),
            Page("POST", "/check", self.check, costs.DOMAIN, ANYONE),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /, for visitors who are not signed in."""
        return self._page(visit)

    async def check(self, visit: Visit) -> Reply:
        """POST /check: domain. The welcome page with the report, which is not stored."""
        typed = (visit.form.text("domain") or "").strip()
        if visit.person is not None:
            return redirect(visit, "/domains", check=typed)
        try:
            name = read_target(typed, self._rules).query
            if not isinstance(name, str):
                raise InvalidParameter("domain", "sign in to check an IP address")
            found = await self._check.run_for_stranger(visit.client, ReputationQuery(name))
        except ExpectedFailure as failure:
            return self._page(visit, typed, error=failure)
        summary = with_check(DomainSummary(name), found.reputation, found.problems)
        return self._page(
            visit,
            name,
            row=view_domain(summary, visit.asked_at),
            factors=FACTORS,
            again="/",
            **view_check(found),
        )

    def _page(self, visit: Visit, typed: str = "", **values: Any) -> Reply:
        return self._renderer.page(
            visit,
            "welcome.html",
            can_register=self._register.rules.mode is Registration.OPEN,
            checks_per_day=self._budget.per_day,
            typed=typed,
            **{"found": None, **values},
        )
