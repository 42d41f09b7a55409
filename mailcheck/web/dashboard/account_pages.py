"""The overview, and the account itself."""

from mailcheck.operations.register import Register, Registration
from mailcheck.operations.sign_in import SignIn
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.replies import Reply


class AccountPages:
    """What is there to see first, and the password."""

    def __init__(self, sign_in: SignIn, register: Register, renderer: Renderer) -> None:
        self._sign_in = sign_in
        self._register = register
        self._renderer = renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [Page("GET", "/", self.overview, is_open=True)]

    async def overview(self, visit: Visit) -> Reply:
        """GET /: for who is signed in, and for anybody else."""
        if visit.owner is None:
            can_register = self._register.rules.mode is Registration.OPEN
            return self._renderer.page(visit, "welcome.html", can_register=can_register)
        return self._renderer.page(visit, "overview.html")
