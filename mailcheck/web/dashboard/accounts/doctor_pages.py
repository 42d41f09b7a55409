"""The page with the results of ``mailcheck doctor``, for the operator."""

from collections.abc import Callable

from msgspec import Struct

from mailcheck.api.domains.doctor import render_diagnosis
from mailcheck.api.shapes import as_json
from mailcheck.operations.doctor import Doctor
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import PERSON, Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply


class DoctorPages(Struct, frozen=True):
    """The page of the doctor, for the operator only. Each request runs all examinations.

    :param doctor: creates the doctor on first use, so that startup does not load it.
    """

    _doctor: Callable[[], Doctor]
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [Page("GET", "/account/doctor", self.show, costs.FREE, PERSON)]

    async def show(self, visit: Visit) -> Reply:
        """GET /account/doctor.

        :raises NotOperator: the account is not the operator.
        """
        visit.visitor.require_operator("run these checks")
        found = render_diagnosis(await self._doctor().examine())
        return self._renderer.page(visit, "doctor.html", found=as_json(found))
