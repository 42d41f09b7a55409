"""Pages to sign in, sign out and sign up."""

from urllib.parse import parse_qs, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.errors import ExpectedFailure, PasskeyNeeded
from mailcheck.core.identifiers import AccountId
from mailcheck.core.projects import Invitation
from mailcheck.operations.accounts.company_sign_in import CompanySignIn
from mailcheck.operations.accounts.passkeys import Passkeys
from mailcheck.operations.accounts.register import Register
from mailcheck.operations.accounts.sign_in import DashboardSessions, SignedIn, SignIn
from mailcheck.web.dashboard.addresses import address_in
from mailcheck.web.dashboard.cookies import (
    DEVICE,
    DEVICE_AGE,
    SESSION,
    SESSION_AGE,
    read_cookie,
    write_cookie,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import ANYONE, Page, Visit, next_path
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

JOIN_PATH = "/join"
"""The page of an invitation to a project."""


def lead_away(visit: Visit, renderer: Renderer, url: str) -> Reply:
    """Return a page that leads the browser to the company's sign-in service.

    A form cannot lead to another site, since the policy of the pages forbids it.
    """
    return renderer.page(visit, "leave.html", url=url, host=urlsplit(url).hostname)


class SignInPages(Struct, frozen=True):
    """The pages for signing in, signing up and signing out."""

    _sign_in: SignIn
    _register: Register
    _sessions: DashboardSessions
    _renderer: Renderer
    _company: CompanySignIn | None
    _passkeys: Passkeys | None

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/sign-in", self.show_sign_in, costs.FREE, ANYONE),
            Page("POST", "/sign-in", self.sign_in, costs.PASSWORD, ANYONE),
            Page("GET", "/sign-up", self.show_sign_up, costs.FREE, ANYONE),
            Page("POST", "/sign-up", self.sign_up, costs.PASSWORD, ANYONE),
            Page("POST", "/sign-out", self.sign_out, costs.PASSWORD, ANYONE),
            Page("GET", "/sign-in/link", self.show_link, costs.FREE, ANYONE),
            Page("POST", "/sign-in/link", self.follow_link, costs.SIGN_IN, ANYONE),
        ]

    async def show_sign_in(self, visit: Visit) -> Reply:
        """GET /sign-in?next=<path>."""
        if visit.person is not None:
            return redirect(visit, next_path(visit.query))
        return await self.form(visit, next_path(visit.query))

    async def sign_in(self, visit: Visit) -> Reply:
        """POST /sign-in: name, password, next."""
        wanted = next_path(visit.form)
        name, password = visit.form.text("name") or "", visit.form.text("password") or ""
        try:
            device = read_cookie(visit.request, DEVICE, is_secure=visit.is_secure)
            signed_in = await self._sign_in.sign_in(name, password, visit.client, device)
        except PasskeyNeeded as failure:
            if self._passkeys is None:
                return await self.form(visit, wanted, name, failure)
            return await self._ask_for_passkey(visit, wanted, self._passkeys, failure.account_id)
        except ExpectedFailure as failure:
            return await self.form(visit, wanted, name, failure)
        return await self.welcome(visit, signed_in, wanted)

    async def _ask_for_passkey(
        self, visit: Visit, wanted: str, passkeys: Passkeys, account_id: str
    ) -> Reply:
        """Return the second step, which accepts the passkeys of one account."""
        request = await passkeys.begin_sign_in(visit.client, AccountId(account_id))
        invitation = invitation_in(wanted)
        invited = await self._register.find_invitation(invitation) if invitation else None
        return self._renderer.page(
            visit, "sign_in_passkey.html", wanted=wanted, request=request, invited=invited
        )

    async def show_sign_up(self, visit: Visit) -> Reply:
        """GET /sign-up?invitation=<code>."""
        invitation = visit.query.text("invitation") or ""
        invited = await self._register.require_open(invitation)
        return self._sign_up_form(visit, invitation, invited)

    async def sign_up(self, visit: Visit) -> Reply:
        """POST /sign-up: name, password, invitation."""
        invitation, name = visit.form.text("invitation") or "", visit.form.text("name") or ""
        password = visit.form.text("password") or ""
        try:
            new = await self._register.register(name, password, invitation, visit.client)
        except ExpectedFailure as failure:
            invited = await self._register.find_invitation(invitation)
            return self._sign_up_form(visit, invitation, invited, name, failure)
        if new.joined is None:
            return await self.welcome(visit, new.signed_in, "/", done="signed-up")
        path = address_in(new.joined.project.id, "/project")
        return await self.welcome(visit, new.signed_in, path, done="project-joined")

    async def sign_out(self, visit: Visit) -> Reply:
        """POST /sign-out: delete the session from the browser and from the store."""
        is_company = visit.person is not None and await self._sessions.end(
            visit.session, visit.visitor.id, visit.actor
        )
        gone = write_cookie(SESSION, "", is_secure=visit.is_secure)
        if is_company and self._company is not None:
            back = f"{visit.urls.public_url}/sign-in?done=signed-out"
            url = await self._company.logout_url(back)
            if url:
                reply = lead_away(
                    replace(visit, person=None, projects=(), project=""), self._renderer, url
                )
                return replace(reply, cookies=[gone])
        return redirect(visit, "/sign-in", cookies=[gone], done="signed-out")

    async def show_link(self, visit: Visit) -> Reply:
        """GET /sign-in/link?code=<code>. Opening it uses nothing up, since programs may do so."""
        return self._renderer.page(visit, "sign_in_link.html", code=visit.query.text("code") or "")

    async def follow_link(self, visit: Visit) -> Reply:
        """POST /sign-in/link: code."""
        code = visit.form.text("code") or ""
        try:
            signed_in = await self._sign_in.follow_link(code, visit.client)
        except ExpectedFailure as failure:
            return await self.form(visit, "/", failure=failure)
        return await self.welcome(visit, signed_in, "/account")

    async def welcome(self, visit: Visit, signed_in: SignedIn, path: str, **query: str) -> Reply:
        """Set the cookies of the new session, and end the previous session."""
        if visit.person is not None:
            await self._sessions.end(visit.session, visit.visitor.id, visit.actor)
        return redirect(visit, path, cookies=session_cookies(visit, signed_in), **query)

    async def form(
        self, visit: Visit, wanted: str, name: str = "", failure: ExpectedFailure | None = None
    ) -> Reply:
        """Return the page to sign in, with the failure of the last attempt.

        It names the invitation to a project to which the path ``wanted`` leads.
        """
        invitation = invitation_in(wanted)
        invited = await self._register.find_invitation(invitation) if invitation else None
        return self._renderer.page(
            visit,
            "sign_in.html",
            error=failure,
            name=name,
            wanted=wanted,
            invitation=invitation,
            invited=invited,
            can_register=self._sign_in.has_passwords and self._register.can_register(invited),
            has_passwords=self._sign_in.has_passwords,
            has_passkeys=self._passkeys is not None,
            company=None if self._company is None else self._company.rules.title,
        )

    def _sign_up_form(
        self,
        visit: Visit,
        invitation: str,
        invited: Invitation | None,
        name: str = "",
        failure: ExpectedFailure | None = None,
    ) -> Reply:
        return self._renderer.page(
            visit,
            "sign_up.html",
            error=failure,
            name=name,
            invitation=invitation,
            invited=invited,
        )


def invitation_in(path: str) -> str:
    """Return the code of the invitation to a project to which a path leads, or empty."""
    parts = urlsplit(path)
    codes = parse_qs(parts.query).get("invitation", [])
    return codes[0] if parts.path.endswith(JOIN_PATH) and codes else ""


def session_cookies(visit: Visit, signed_in: SignedIn) -> list[str]:
    """Return the cookies of a session, and the cookie that recognizes the browser later."""
    given = ((SESSION, signed_in.secret, SESSION_AGE), (DEVICE, signed_in.device, DEVICE_AGE))
    return [
        write_cookie(name, secret, is_secure=visit.is_secure, max_age=age)
        for name, secret, age in given
        if secret
    ]
