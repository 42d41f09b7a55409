"""Pages to sign in, sign out and sign up, and the account settings."""

from typing import Any

from msgspec import Struct

from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.operations.accounts.audit import PAGE, Audit
from mailcheck.operations.accounts.register import (
    INVITATION_DAYS,
    Invitations,
    Register,
    Registration,
)
from mailcheck.operations.accounts.sign_in import DashboardSessions, SignedIn, SignIn
from mailcheck.web.dashboard.cookies import (
    DEVICE,
    DEVICE_AGE,
    SESSION,
    SESSION_AGE,
    SYSTEM,
    THEME,
    THEME_AGE,
    THEMES,
    read_cookie,
    write_cookie,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit, next_path
from mailcheck.web.site.replies import Reply, reply_to_failure


class SignInPages(Struct, frozen=True):
    """The pages for signing in, signing up and signing out."""

    _sign_in: SignIn
    _register: Register
    _sessions: DashboardSessions
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/sign-in", self.show_sign_in, is_open=True),
            Page("POST", "/sign-in", self.sign_in, is_open=True),
            Page("GET", "/sign-up", self.show_sign_up, is_open=True),
            Page("POST", "/sign-up", self.sign_up, is_open=True),
            Page("POST", "/sign-out", self.sign_out, is_open=True),
        ]

    async def show_sign_in(self, visit: Visit) -> Reply:
        """GET /sign-in?next=<path>."""
        if visit.person is not None:
            return redirect(visit, next_path(visit.query))
        return self._sign_in_form(visit, next_path(visit.query))

    async def sign_in(self, visit: Visit) -> Reply:
        """POST /sign-in: name, password, next."""
        wanted = next_path(visit.form)
        name, password = visit.form.text("name") or "", visit.form.text("password") or ""
        try:
            device = read_cookie(visit.request, DEVICE, is_secure=visit.is_secure)
            signed_in = await self._sign_in.sign_in(name, password, visit.client, device)
        except ExpectedFailure as failure:
            return self._sign_in_form(visit, wanted, name, failure)
        return await self._welcome(visit, signed_in, wanted)

    async def show_sign_up(self, visit: Visit) -> Reply:
        """GET /sign-up?invitation=<code>."""
        invitation = visit.query.text("invitation") or ""
        await self._register.require_open(invitation)
        return self._sign_up_form(visit, invitation)

    async def sign_up(self, visit: Visit) -> Reply:
        """POST /sign-up: name, password, invitation."""
        invitation, name = visit.form.text("invitation") or "", visit.form.text("name") or ""
        password = visit.form.text("password") or ""
        try:
            signed_in = await self._register.register(name, password, invitation, visit.client)
        except ExpectedFailure as failure:
            return self._sign_up_form(visit, invitation, name, failure)
        return await self._welcome(visit, signed_in, "/", done="signed-up")

    async def sign_out(self, visit: Visit) -> Reply:
        """POST /sign-out: delete the session from the browser and from the store."""
        if visit.person is not None:
            await self._sessions.end(visit.session, visit.visitor.id, visit.actor)
        gone = write_cookie(SESSION, "", is_secure=visit.is_secure)
        return redirect(visit, "/sign-in", cookies=[gone], done="signed-out")

    async def _welcome(self, visit: Visit, signed_in: SignedIn, path: str, **query: str) -> Reply:
        """Set the cookies of the new session, and end the previous session."""
        if visit.person is not None:
            await self._sessions.end(visit.session, visit.visitor.id, visit.actor)
        return redirect(visit, path, cookies=session_cookies(visit, signed_in), **query)

    def _sign_in_form(
        self, visit: Visit, wanted: str, name: str = "", failure: ExpectedFailure | None = None
    ) -> Reply:
        return self._form(
            visit,
            "sign_in.html",
            failure,
            name=name,
            wanted=wanted,
            can_register=self._register.rules.mode is Registration.OPEN,
        )

    def _sign_up_form(
        self, visit: Visit, invitation: str, name: str = "", failure: ExpectedFailure | None = None
    ) -> Reply:
        return self._form(visit, "sign_up.html", failure, name=name, invitation=invitation)

    def _form(
        self, visit: Visit, template: str, failure: ExpectedFailure | None, **values: Any
    ) -> Reply:
        """Render a form, with the failure of its last submission."""
        headers = None if failure is None else reply_to_failure(failure).headers
        return self._renderer.page(visit, template, headers=headers, error=failure, **values)


def session_cookies(visit: Visit, signed_in: SignedIn) -> list[str]:
    """Return the cookies of a session, and the cookie that recognizes the browser later."""
    given = ((SESSION, signed_in.secret, SESSION_AGE), (DEVICE, signed_in.device, DEVICE_AGE))
    return [
        write_cookie(name, secret, is_secure=visit.is_secure, max_age=age)
        for name, secret, age in given
        if secret
    ]


class AccountPages(Struct, frozen=True):
    """The account settings."""

    _sign_in: SignIn
    _sessions: DashboardSessions
    _audit: Audit
    _register: Register
    _invitations: Invitations
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/account", self.account, is_personal=True),
            Page("POST", "/account/password", self.change_password, is_personal=True),
            Page("POST", "/account/invitations", self.invite, is_personal=True),
            Page("POST", "/account/sessions/<session_id>/end", self.end_session, is_personal=True),
            Page("GET", "/account/activity", self.activity, is_personal=True),
            Page("POST", "/theme", self.choose_theme, is_open=True),
        ]

    async def choose_theme(self, visit: Visit) -> Reply:
        """POST /theme: theme, next. Store the theme in the browser and redirect to ``next``."""
        theme = visit.form.text("theme") or ""
        if theme not in THEMES:
            raise InvalidParameter(
                "theme", f"`theme` must be one of {', '.join(THEMES)}; got {theme[:20]!r}"
            )
        value = "" if theme == SYSTEM else theme
        cookie = write_cookie(THEME, value, is_secure=visit.is_secure, max_age=THEME_AGE)
        return redirect(visit, next_path(visit.form), cookies=[cookie])

    async def account(
        self, visit: Visit, failure: ExpectedFailure | None = None, invitation: str | None = None
    ) -> Reply:
        """GET /account."""
        return self._renderer.page(
            visit,
            "account.html",
            headers=None if failure is None else reply_to_failure(failure).headers,
            error=failure,
            can_invite=visit.visitor.is_operator
            and self._register.rules.mode is Registration.INVITE,
            invitation=invitation,
            invitation_days=INVITATION_DAYS,
            mode=self._register.rules.mode,
            sessions=await self._sessions.of_account(visit.visitor.id),
            this_session=self._sessions.id_of(visit.session),
        )

    async def end_session(self, visit: Visit) -> Reply:
        """POST /account/sessions/<session_id>/end. A session that has ended is no error."""
        session_id = visit.path["session_id"]
        await self._sessions.end_listed(visit.visitor.id, session_id, visit.actor)
        return redirect(visit, "/account", done="session-ended")

    async def activity(self, visit: Visit) -> Reply:
        """GET /account/activity?before=<id>: the audit log of the account."""
        before = visit.query.text("before") or ""
        entries = await self._audit.newest(visit.visitor.id, before)
        return self._renderer.page(
            visit, "activity.html", entries=entries, page_size=PAGE, is_of_all=False, before=before
        )

    async def change_password(self, visit: Visit) -> Reply:
        """POST /account/password: old, new, again."""
        old, new = visit.form.text("old") or "", visit.form.text("new") or ""
        try:
            if new != (visit.form.text("again") or ""):
                raise InvalidParameter("again", "the two new passwords are different")
            signed_in = await self._sign_in.change_password(visit.visitor, old, new, visit.client)
        except ExpectedFailure as failure:
            return await self.account(visit, failure)
        cookies = session_cookies(visit, signed_in)
        return redirect(visit, "/account", cookies=cookies, done="password-changed")

    async def invite(self, visit: Visit) -> Reply:
        """POST /account/invitations: operator only. The response shows the link once."""
        code = await self._invitations.invite_as(visit.visitor, visit.actor)
        return await self.account(visit, invitation=visit.urls.invitation_url(code))
