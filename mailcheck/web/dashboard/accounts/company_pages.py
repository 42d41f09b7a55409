"""Pages to sign in with the account of a company, and to link it."""

import hashlib

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.errors import ExpectedFailure, SignInFailed
from mailcheck.core.signing_in.company import CALLBACK
from mailcheck.operations.accounts.company_sign_in import Answer, Beginning, CompanySignIn
from mailcheck.web.dashboard.accounts.sign_in_pages import SignInPages, lead_away
from mailcheck.web.dashboard.cookies import (
    COMPANY,
    COMPANY_AGE,
    MAX_COMPANY,
    names_of_cookies,
    read_cookie,
    write_cookie,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import ANYONE, CONFIRMED_PERSON, Page, Visit, next_path
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

LONGEST_ANSWER = 8_192
"""Maximum number of characters of a parameter of the callback. The state carries a path."""


class CompanyPages(Struct, frozen=True):
    """The way to the company's sign-in service and back."""

    _configured: CompanySignIn | None
    _sign_in: SignInPages
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/sign-in/company", self.leave, costs.FREE, ANYONE),
            Page("GET", CALLBACK, self.come_back, costs.SIGN_IN, ANYONE),
            Page("POST", "/account/company", self.link, costs.SIGN_IN, CONFIRMED_PERSON),
            Page("POST", "/account/company/remove", self.unlink, costs.SIGN_IN, CONFIRMED_PERSON),
        ]

    @property
    def _company(self) -> CompanySignIn:
        if self._configured is None:
            raise SignInFailed("this service has no sign-in with a company account")
        return self._configured

    async def leave(self, visit: Visit) -> Reply:
        """GET /sign-in/company?next=<path>: redirect to the provider."""
        wanted = next_path(visit.query)
        try:
            begun = await self._company.begin(_back(visit), wanted, visit.client)
        except ExpectedFailure as failure:
            return await self._sign_in.form(visit, wanted, failure=failure)
        headers = {"Location": begun.url}
        return Reply(303, b"", "text/plain; charset=utf-8", headers, _cookies(visit, begun))

    async def come_back(self, visit: Visit) -> Reply:
        """GET /sign-in/company/callback?code=&state=&iss=&error=."""
        query, cookies = visit.query, []
        secret = state = ""
        try:
            code, state, issuer, error = (
                "".join(query.texts(name, 1, LONGEST_ANSWER))
                for name in ("code", "state", "iss", "error")
            )
            name = _name_for(state)
            secret = read_cookie(visit.request, name, is_secure=visit.is_secure)
            if secret:
                cookies = [write_cookie(name, "", is_secure=visit.is_secure)]
            finished = await self._company.finish(
                secret, Answer(code, state, issuer, error), _back(visit), visit.client, visit.person
            )
        except ExpectedFailure as failure:
            wanted = self._company.path_in(secret, state)
            form = await self._sign_in.form(visit, wanted, failure=failure)
            return replace(form, cookies=cookies)
        if finished.signed_in is None:
            return redirect(visit, finished.path, cookies=cookies, done="company-linked")
        reply = await self._sign_in.welcome(visit, finished.signed_in, finished.path)
        return replace(reply, cookies=[*reply.cookies, *cookies])

    async def link(self, visit: Visit) -> Reply:
        """POST /account/company: lead to the provider, and link the person there."""
        begun = await self._company.begin(_back(visit), "/account", visit.client, visit.visitor)
        reply = lead_away(visit, self._renderer, begun.url)
        return replace(reply, cookies=_cookies(visit, begun))

    async def unlink(self, visit: Visit) -> Reply:
        """POST /account/company/remove."""
        await self._company.unlink(visit.visitor, visit.actor)
        return redirect(visit, "/account", done="company-removed")


def _back(visit: Visit) -> str:
    return visit.urls.public_url + CALLBACK


def _name_for(state: str) -> str:
    """Return the name of the cookie of a sign-in."""
    return COMPANY + hashlib.sha256(state.encode("utf-8", "replace")).hexdigest()[:16]


def _cookies(visit: Visit, begun: Beginning) -> list[str]:
    """Return the cookie of a sign-in, and delete those of abandoned ones, if there are many."""
    known = names_of_cookies(visit.request, COMPANY, is_secure=visit.is_secure)
    gone = known[: max(0, len(known) + 1 - MAX_COMPANY)]
    return [
        *(write_cookie(name, "", is_secure=visit.is_secure) for name in gone),
        write_cookie(
            _name_for(begun.state), begun.secret, is_secure=visit.is_secure, max_age=COMPANY_AGE
        ),
    ]
