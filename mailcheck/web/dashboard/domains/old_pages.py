"""Former addresses of the pages of domains, which lead to the present ones."""

from msgspec import Struct

from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.web.dashboard.domains.frame import (
    BLOCKLISTS,
    HISTORY,
    DomainFrame,
    path_of,
    read_target,
)
from mailcheck.web.dashboard.rendering import redirect
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply


class OldDomainPages(Struct, frozen=True):
    """Redirects for bookmarks and for links in sent alerts."""

    _watches: ManageWatches
    _frame: DomainFrame

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/domain", self.check, costs.FREE),
            Page("GET", "/blocklists", self.blocklists, costs.FREE),
            Page("GET", "/watches", self.watches, costs.FREE),
            Page("GET", "/watches/<watch_id>", self.watch, costs.FREE),
        ]

    async def check(self, visit: Visit) -> Reply:
        """GET /domain?domain=&selectors=&ips=."""
        given = {name: visit.query.text(name) or "" for name in ("selectors", "ips")}
        more = {name: text for name, text in given.items() if text}
        return self._to(visit, visit.query.text("domain") or "", "", **more)

    async def blocklists(self, visit: Visit) -> Reply:
        """GET /blocklists?query=."""
        return self._to(visit, visit.query.text("query") or "", BLOCKLISTS)

    async def watches(self, visit: Visit) -> Reply:
        """GET /watches?target=."""
        return self._to(visit, visit.query.text("target") or "", HISTORY)

    async def watch(self, visit: Visit) -> Reply:
        """GET /watches/{watch_id}."""
        found = await self._watches.show(visit.account.id, visit.path["watch_id"])
        return redirect(visit, path_of(found.watch.target, HISTORY))

    def _to(self, visit: Visit, text: str, tab: str, **more: str) -> Reply:
        if not text.strip():
            return redirect(visit, "/domains")
        return redirect(visit, path_of(read_target(text, self._frame.rules).name, tab), **more)
