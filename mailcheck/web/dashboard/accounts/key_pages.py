"""API keys: created, shown once, looked at, revoked; and what is used of all limits."""

from mailcheck.core.errors import ExpectedFailure
from mailcheck.operations.accounts.check_budget import CheckBudget
from mailcheck.operations.accounts.own_keys import MAX_KEY_NAME, OwnKeys
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.snippets import write_snippets
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.errors import status_of
from mailcheck.web.site.replies import Reply


class KeyPages:
    """The pages of one's own keys."""

    def __init__(self, keys: OwnKeys, checks: CheckBudget, renderer: Renderer) -> None:
        self._keys = keys
        self._checks = checks
        self._renderer = renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/keys", self.show),
            Page("POST", "/keys", self.create),
            Page("POST", "/keys/<key_id>/revoke", self.revoke),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /keys."""
        return await self._list(visit, "", None)

    async def create(self, visit: Visit) -> Reply:
        """POST /keys: name. The answer is the one page that ever shows the key."""
        name = visit.form.text("name") or ""
        try:
            issued = await self._keys.create(visit.account, name)
        except ExpectedFailure as failure:
            return await self._list(visit, name, failure)
        snippets = write_snippets(visit.urls, issued.secret)
        return self._renderer.page(visit, "key_created.html", issued=issued, snippets=snippets)

    async def revoke(self, visit: Visit) -> Reply:
        """POST /keys/<key_id>/revoke."""
        await self._keys.revoke(visit.account, visit.path["key_id"])
        return redirect(visit, "/keys", done="key-revoked")

    async def _list(self, visit: Visit, name: str, failure: ExpectedFailure | None) -> Reply:
        return self._renderer.page(
            visit,
            "keys.html",
            status=200 if failure is None else status_of(failure),
            keys=await self._keys.valid(visit.account),
            checks=await self._checks.look(visit.account.id),
            name=name,
            longest=MAX_KEY_NAME,
            problem=None if failure is None else str(failure),
        )
