"""The account settings."""

from msgspec import Struct

from mailcheck.api.requests.fields import INTEGER
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.operations.accounts.audit import PAGE, Audit
from mailcheck.operations.accounts.company_sign_in import CompanySignIn
from mailcheck.operations.accounts.confirm import Confirmation
from mailcheck.operations.accounts.passkeys import Passkeys
from mailcheck.operations.accounts.register import Invitations, Register
from mailcheck.operations.accounts.registration_rules import INVITATION_DAYS, Registration
from mailcheck.operations.accounts.sign_in import DashboardSessions, SignIn
from mailcheck.web.dashboard.accounts.sign_in_pages import session_cookies
from mailcheck.web.dashboard.cookies import SYSTEM, THEME, THEME_AGE, THEMES, write_cookie
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import (
    ANYONE,
    CONFIRMED_PERSON,
    PERSON,
    Page,
    Visit,
    next_path,
    with_form,
)
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply


class AccountPages(Struct, frozen=True):
    """The account settings."""

    _sign_in: SignIn
    _sessions: DashboardSessions
    _audit: Audit
    _register: Register
    _invitations: Invitations
    _renderer: Renderer
    _company: CompanySignIn | None
    _passkeys: Passkeys | None
    _confirmation: Confirmation

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/account", self.account, costs.FREE, PERSON),
            *with_form(
                self.account,
                Page("POST", "/account/password", self.change_password, costs.PASSWORD, PERSON),
            ),
            Page("POST", "/account/invitations", self.invite, costs.SMALL, CONFIRMED_PERSON),
            Page(
                "POST",
                "/account/sessions/<session_id>/end",
                self.end_session,
                costs.AUDITED,
                PERSON,
            ),
            Page("GET", "/account/activity", self.activity, costs.FREE, PERSON),
            Page("POST", "/theme", self.choose_theme, costs.FREE, ANYONE),
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
        passkeys = self._passkeys
        return self._renderer.page(
            visit,
            "account.html",
            error=failure,
            can_invite=visit.visitor.is_operator
            and self._register.rules.mode is Registration.INVITE,
            has_passwords=self._sign_in.has_passwords,
            company=None if self._company is None else self._company.rules.title,
            is_linked=self._company is not None and await self._company.is_linked(visit.visitor),
            passkeys=None if passkeys is None else await passkeys.of_account(visit.visitor),
            needs_passkey=await self._sign_in.needs_passkey(visit.visitor),
            has_password=await self._sign_in.has_password(visit.visitor),
            invitation=invitation,
            invitation_days=INVITATION_DAYS,
            mode=self._register.rules.mode,
            sessions=await self._sessions.of_account(visit.visitor.id),
            is_confirmed=self._confirmation.is_fresh(visit.confirmed_at),
            this_session=self._sessions.id_of(visit.session),
        )

    async def end_session(self, visit: Visit) -> Reply:
        """POST /account/sessions/<session_id>/end. A session that has ended is no error."""
        session_id = visit.path["session_id"]
        await self._sessions.end_listed(visit.visitor.id, session_id, visit.actor)
        return redirect(visit, "/account", done="session-ended")

    async def activity(self, visit: Visit) -> Reply:
        """GET /account/activity?before=<position>: the audit log of the account."""
        before = visit.query.value("before", INTEGER, 0)
        entries = await self._audit.newest(visit.visitor.id, before)
        return self._renderer.page(
            visit, "activity.html", entries=entries, page_size=PAGE, is_of_all=False, before=before
        )

    async def change_password(self, visit: Visit) -> Reply:
        """POST /account/password: old, new, again."""
        old, new = visit.form.text("old") or "", visit.form.text("new") or ""
        if new != (visit.form.text("again") or ""):
            raise InvalidParameter("again", "the two new passwords are different")
        signed_in = await self._sign_in.change_password(visit.visitor, old, new, visit.client)
        cookies = session_cookies(visit, signed_in)
        return redirect(visit, "/account", cookies=cookies, done="password-changed")

    async def invite(self, visit: Visit) -> Reply:
        """POST /account/invitations: operator only. The response shows the link once."""
        code = await self._invitations.invite_as(visit.visitor, visit.actor)
        return await self.account(visit, invitation=visit.urls.invitation_url(code))
