"""The pages on which a person allows a program to use an account (OAuth)."""

from msgspec import Struct

from mailcheck.api.requests.parsing import Query, split_query
from mailcheck.core.errors import ExpectedFailure, InvalidParameter, LimitExceeded, TooManyKeys
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.oauth.clients import describe_redirect
from mailcheck.core.oauth.grants import AGENT_TEXTS, AuthorizationRequest, OAuthRefused, RefusalCode
from mailcheck.core.rights import Scope
from mailcheck.operations.oauth.clients import OAuthClients
from mailcheck.operations.oauth.grants import Grants
from mailcheck.web.dashboard.accounts.confirm_pages import ConfirmPages
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import LONGEST_PATH, PERSON, Page, Visit
from mailcheck.web.oauth.authorization import Return, read_request, read_return
from mailcheck.web.oauth.server import AUTHORIZE_PATH, OAuthSettings
from mailcheck.web.site import costs
from mailcheck.web.site.failures import BAD_REQUEST, NOT_FOUND, status_of
from mailcheck.web.site.replies import Reply, error_reply

HEADERS = {"Cross-Origin-Opener-Policy": "unsafe-none"}
"""Programs in the browser open these pages in a window, and wait for its answer."""


MAX_REPLACED = 100
"""Maximum number of older grants that a person replaces at once."""


class ConsentPages(Struct, frozen=True):
    """The page that asks a person, and the page that leads back to the program.

    Every client can choose its redirect URI. So a browser is sent to one only after the person has
    pressed a button: these pages are not an open redirect (RFC 9700 section 4.11.2).
    ``outcomes`` counts requests by endpoint and outcome.
    """

    _settings: OAuthSettings
    _clients: OAuthClients
    _grants: Grants
    _confirm: ConfirmPages
    _renderer: Renderer
    _outcomes: Tally

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", AUTHORIZE_PATH, self.ask, costs.FREE, PERSON),
            Page("POST", AUTHORIZE_PATH, self.decide, costs.CONNECTION, PERSON),
        ]

    async def ask(self, visit: Visit) -> Reply:
        """GET /authorize: an authorization request (RFC 6749 section 4.1.1)."""
        query = visit.request.uri.partition(b"?")[2].decode("ascii", "replace")
        return await self._handle(visit, visit.query, query)

    async def decide(self, visit: Visit) -> Reply:
        """POST /authorize: query (the request), decision, account, scope, replace."""
        texts = visit.form.texts("query", 1, 2 * LONGEST_PATH)
        query = texts[0] if texts else ""
        return await self._handle(visit, Query(split_query(query.encode("utf-8"))), query)

    async def _handle(self, visit: Visit, query: Query, text: str) -> Reply:
        if not self._settings.is_on:
            return error_reply(NOT_FOUND, self._settings.explain_off())
        if len(text) > LONGEST_PATH:
            problem = f"the request has {len(text)} characters; the maximum is {LONGEST_PATH}"
            raise InvalidParameter("query", problem)
        try:
            back = await read_return(query, self._clients, visit.visitor.id)
        except (OAuthRefused, InvalidParameter, LimitExceeded) as failure:
            # The address to answer to is not trustworthy, so the person is told.
            self._outcomes.add("authorize", _code_of(failure))
            return self._refused(visit, failure, None)
        try:
            asked = read_request(query, back, self._settings.urls.mcp_url)
        except (OAuthRefused, InvalidParameter) as failure:
            self._outcomes.add("authorize", _code_of(failure))
            return self._refused(visit, failure, back)
        decision = visit.form.text("decision")
        if decision is None:
            return await self._show(visit, asked, back, text)
        if decision != "allow":
            self._outcomes.add("authorize", RefusalCode.ACCESS_DENIED)
            denied = OAuthRefused(RefusalCode.ACCESS_DENIED, "the person did not allow it")
            return self._lead_back(visit, back, back.refuse(visit.urls, denied))
        confirmation = await self._confirm.ask(visit, f"{AUTHORIZE_PATH}?{text}", HEADERS)
        if confirmation is not None:
            return confirmation
        chosen = visit.form.texts("scope", len(Scope))
        account = visit.form.text("account") or ""
        replaces = visit.form.texts("replace", MAX_REPLACED)
        try:
            code = await self._grants.allow(
                asked, back.client, visit.visitor, account, chosen, replaces
            )
        except (InvalidParameter, TooManyKeys) as failure:
            return await self._show(visit, asked, back, text, failure)
        self._outcomes.add("authorize", "done")
        return self._lead_back(visit, back, back.answer(visit.urls, code=code), is_allowed=True)

    async def _show(
        self,
        visit: Visit,
        asked: AuthorizationRequest,
        back: Return,
        query: str,
        failure: ExpectedFailure | None = None,
    ) -> Reply:
        accounts = await self._grants.offered(visit.visitor)
        shown = {account.id for account in accounts}
        wanted = visit.form.text("account") or visit.nearest
        return self._renderer.page(
            visit,
            "authorize.html",
            headers=HEADERS,
            error=failure,
            client=back.client,
            destination=describe_redirect(back.redirect_uri),
            older=await self._grants.older(back.client, visit.visitor),
            scopes={scope: AGENT_TEXTS[scope] for scope in asked.scopes},
            accounts=accounts,
            wanted=wanted if wanted in shown else visit.visitor.id,
            query=query,
        )

    def _lead_back(
        self, visit: Visit, back: Return, address: str, *, is_allowed: bool = False
    ) -> Reply:
        """Return a page that leads the browser to the program.

        A redirect would be blocked: the policy of the pages lets forms lead to this site only.
        """
        return self._renderer.page(
            visit,
            "authorized.html",
            headers=HEADERS,
            client=back.client,
            destination=describe_redirect(back.redirect_uri),
            address=address,
            is_allowed=is_allowed,
        )

    def _refused(self, visit: Visit, failure: ExpectedFailure, back: Return | None) -> Reply:
        is_refused = isinstance(failure, OAuthRefused)
        told = failure if is_refused else OAuthRefused(RefusalCode.INVALID_REQUEST, str(failure))
        assert isinstance(told, OAuthRefused)
        return self._renderer.page(
            visit,
            "authorize_refused.html",
            headers=HEADERS,
            status=BAD_REQUEST if is_refused else status_of(failure),
            problem=str(failure),
            client=None if back is None else back.client,
            destination="" if back is None else describe_redirect(back.redirect_uri),
            address="" if back is None else back.refuse(visit.urls, told),
        )


def _code_of(failure: ExpectedFailure) -> str:
    return failure.code if isinstance(failure, OAuthRefused) else RefusalCode.INVALID_REQUEST
