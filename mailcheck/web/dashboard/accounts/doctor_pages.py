"""Is this daemon set up right? What ``mailcheck doctor`` finds, for the operator."""

from collections.abc import Callable

from msgspec import Struct

from mailcheck.api.domains.doctor import render_diagnosis
from mailcheck.api.shapes import as_json
from mailcheck.core.errors import NotOperator
from mailcheck.operations.doctor import Doctor
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.replies import Reply


class DoctorPages(Struct, frozen=True):
    """One page, for the operator alone; everything is examined when it is asked for.

    :param doctor: makes the doctor when it is needed first: it is no part of the start.
    """

    _doctor: Callable[[], Doctor]
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [Page("GET", "/account/doctor", self.show)]

    async def show(self, visit: Visit) -> Reply:
        """GET /account/doctor.

        :raises NotOperator: somebody else asks.
        """
        if not visit.account.is_operator:
            raise NotOperator("only the operator of this service can have it examined")
        found = render_diagnosis(await self._doctor().examine())
        return self._renderer.page(visit, "doctor.html", found=as_json(found))
