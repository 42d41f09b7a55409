"""The page of the digest."""

from msgspec import Struct

from mailcheck.api.requests.digests import EVERY, NEVER, make_settings
from mailcheck.core.domains.watches import parse_quiet_time
from mailcheck.core.errors import ExpectedFailure
from mailcheck.operations.digests.manage_digest import ManageDigest
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import EDITORS, Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

FIELDS = ("every", "to", "quiet")

CHOICES = {NEVER: "Never", "week": "Every week, on Monday", "month": "Every month, on the first"}


class DigestPages(Struct, frozen=True):
    """The settings of the digest."""

    _digest: ManageDigest
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/digest", self.show, costs.FREE),
            *with_form(self.show, Page("POST", "/digest", self.change, costs.FREE, EDITORS)),
        ]

    async def show(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /digest."""
        shown = await self._digest.show(visit.account.id)
        settings = shown.settings
        form = {
            "every": settings.every.value if settings.every else NEVER,
            "to": " ".join(settings.to),
            "quiet": str(settings.quiet or ""),
        }
        if failure is not None:
            form = visit.entered(FIELDS)
        return self._renderer.page(
            visit,
            "digest.html",
            error=failure,
            form=form,
            choices=CHOICES,
            next_at=shown.next_at,
        )

    async def change(self, visit: Visit) -> Reply:
        """POST /digest: every, to, quiet."""
        every, to, quiet = visit.entered(FIELDS).values()
        settings = make_settings(
            EVERY.parse("every", every or NEVER),
            tuple(to.replace(",", " ").split()),
            parse_quiet_time(quiet) if quiet else None,
        )
        await self._digest.change(visit.account.id, settings)
        return redirect(visit, "/digest", done="digest-saved")
