"""What all pages of one domain or address share: its name, its tabs and its summary."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.core.domains.domain_names import domain_meant, parse_blocklist_query
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.instants import Instant
from mailcheck.core.network_addresses import IpAddress, parse_ip_address
from mailcheck.operations.domains.show_domains import TREND, DomainSummary, ShowDomains
from mailcheck.web.dashboard.charts import Trend, draw_scores
from mailcheck.web.dashboard.domains.view import NameRules, score_level
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.replies import Reply

FACTORS = tuple(name.value for name in FactorName)

FIX, CHECKS, BLOCKLISTS = "fix", "checks", "blocklists"
REPORTS, PLAN, HISTORY = "reports", "plan", "history"

TABS: Mapping[str, str] = MappingProxyType(
    {
        FIX: "Fix",
        CHECKS: "Checks",
        BLOCKLISTS: "Blocklists",
        REPORTS: "Reports",
        PLAN: "Plan",
        HISTORY: "History",
    }
)
"""Tabs of a domain: the ends of their paths, and their titles."""

TABS_OF_ADDRESS = (BLOCKLISTS, HISTORY)


class Target(Struct, frozen=True):
    """The domain or the address that a page is about. ``query`` is what checks take."""

    query: IpAddress | str

    @property
    def name(self) -> str:
        """The name as it is shown and stored."""
        return str(self.query)

    @property
    def is_address(self) -> bool:
        """Whether it is an IP address."""
        return not isinstance(self.query, str)

    @property
    def path(self) -> str:
        """The path of its page."""
        return path_of(self.name)


def path_of(name: str, tab: str = "") -> str:
    """Return the path of the page of a domain or an address, or of one of its tabs."""
    end = f"/{tab}" if tab and tab != FIX else ""
    return f"/domains/{quote(name, safe=':')}{end}"


def read_target(text: str, rules: NameRules) -> Target:
    """Return the target in a text: a domain, an address, a URL or a mail address.

    :raises InvalidParameter: the text contains neither a domain nor an address.
    """
    text = text.strip()
    named = text if parse_ip_address(text) is not None else domain_meant(text)
    return Target(
        parse_blocklist_query(
            named,
            name="domain",
            allow_special_use=rules.allow_special_use,
            allow_private=rules.allow_private,
        )
    )


class DomainRow(Struct, frozen=True):
    """A domain in a table or at the top of its page."""

    domain: DomainSummary
    level: str
    trend: Trend | None
    path: str


def view_domain(domain: DomainSummary, now: Instant) -> DomainRow:
    """Return a domain with its level and its trend."""
    level = "unknown" if domain.score is None else score_level(domain.score, 100)
    if domain.score is None and domain.problem_count:
        level = "bad"
    trend = draw_scores(domain.trend, Instant(now - TREND), now)
    return DomainRow(domain, level, trend, path_of(domain.name))


class DomainFrame(Struct, frozen=True):
    """Renders the pages of a domain with the head that they share."""

    _domains: ShowDomains
    _renderer: Renderer
    rules: NameRules

    def target(self, visit: Visit) -> Target:
        """Return the target in the path of a page.

        :raises InvalidParameter: the path names neither a domain nor an address.
        """
        return read_target(visit.path["domain"], self.rules)

    async def summary(self, visit: Visit, target: Target) -> DomainSummary:
        """Return what is stored about the target."""
        return await self._domains.one(visit.account.id, target.name, is_address=target.is_address)

    async def page(
        self,
        visit: Visit,
        template: str,
        target: Target,
        tab: str,
        *,
        error: ExpectedFailure | None = None,
        summary: DomainSummary | None = None,
        **values: Any,
    ) -> Reply:
        """Render a tab of a target."""
        if summary is None:
            summary = await self.summary(visit, target)
        return self._renderer.page(
            visit,
            template,
            error=error,
            tab=tab,
            **self.values(visit, target, summary),
            **values,
        )

    def values(self, visit: Visit, target: Target, summary: DomainSummary) -> dict[str, Any]:
        """Return the template values that all tabs share."""
        tabs = TABS_OF_ADDRESS if target.is_address else tuple(TABS)
        return {
            "target": target,
            "row": view_domain(summary, visit.asked_at),
            "tabs": [(tab, TABS[tab], path_of(target.name, tab)) for tab in tabs],
            "factors": FACTORS,
        }

    def fragment(self, visit: Visit, template: str, **values: Any) -> str:
        """Render a part of a page for an event."""
        return self._renderer.page(visit, template, **values).body.decode()
