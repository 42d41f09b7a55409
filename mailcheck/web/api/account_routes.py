"""The routes of accounts, for the operator."""

from typing import Any

from msgspec import UNSET, Struct

from mailcheck.api.accounts.people import (
    AccessEnded,
    Account,
    AccountAccess,
    Accounts,
    DeletedAccount,
    LinkedAccount,
    SignInLink,
    render_access,
    render_account,
    render_uses,
)
from mailcheck.api.openapi.operations import Operation, error_response, json_response
from mailcheck.api.requests.accounts import (
    AccountChoice,
    AccountsToList,
    AccountToCreate,
    IdentityToLink,
    NamedDeletion,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core import accounts
from mailcheck.core.accounts import AccountLimits, AccountOrder, choose_uses
from mailcheck.core.errors import NotPermitted
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.administer import Administer
from mailcheck.operations.accounts.company_sign_in import CompanySignIn
from mailcheck.operations.accounts.sign_in import SignIn
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.api.project_routes import require_name
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Accounts"

_SCOPES = (Scope.OPERATOR,)

_IS_OPERATOR = error_response(
    "It is the operator's account: give that role to another account first.", "is operator"
)

ACCOUNTS_LIST = Operation(
    "listAccounts",
    _SCOPES,
    _TAG,
    "List the accounts",
    "People and projects with what they use.",
    answer=json_response("The accounts.", "accounts", Accounts),
    request=AccountsToList,
)

ACCOUNT_CREATE = Operation(
    "createAccount",
    _SCOPES,
    _TAG,
    "Create an account",
    "An account of a person, without a password: send the person a sign-in link, or link it to the "
    "company's sign-in service.",
    answer=json_response("The account.", "account", Account),
    errors={409: error_response("Another account has the name or a similar one.", "name taken")},
    request=AccountToCreate,
)

ACCOUNT_SHOW = Operation(
    "getAccount",
    _SCOPES,
    _TAG,
    "Get an account",
    "Returns the account with the numbers of its sessions, programs and keys.",
    answer=json_response("The account.", "account with access", AccountAccess),
)

ACCOUNT_CHANGE = Operation(
    "changeAccount",
    _SCOPES,
    _TAG,
    "Rename an account, or change its limits",
    "Fields that are not sent keep their values.",
    answer=json_response("The account.", "account changed", Account),
    errors={409: error_response("Another account has the name or a similar one.", "name taken")},
    request=AccountChoice,
)

ACCOUNT_DISABLE = Operation(
    "disableAccount",
    _SCOPES,
    _TAG,
    "Disable an account",
    "Ends its sessions and refuses its keys, its programs and its mail. Open requests and streams "
    "end within a second. Nothing is deleted, and keys that the person made in projects go on.",
    answer=json_response("The account.", "account disabled", Account),
    errors={409: _IS_OPERATOR},
)

ACCOUNT_ENABLE = Operation(
    "enableAccount",
    _SCOPES,
    _TAG,
    "Enable an account",
    "The person signs in again, and the keys of the account are valid again.",
    answer=json_response("The account.", "account enabled", Account),
)

ACCESS_END = Operation(
    "endAccess",
    _SCOPES,
    _TAG,
    "End the sessions and programs of a person",
    "Ends all sessions, and the access that the person has given to programs. The person can sign "
    "in again; API keys stay valid.",
    answer=json_response("What has ended.", "access ended", AccessEnded),
)

LINK_CREATE = Operation(
    "createSignInLink",
    _SCOPES,
    _TAG,
    "Create a sign-in link",
    "The link signs the person in once, within 30 minutes.",
    answer=json_response("The link.", "sign-in link", SignInLink),
)

IDENTITY_LINK = Operation(
    "linkIdentity",
    _SCOPES,
    _TAG,
    "Link an account to the company's sign-in service",
    "The person of the sign-in service with this subject signs in to the account. It needs the "
    "section [oidc] of the configuration.",
    answer=json_response("It is linked.", "identity linked", LinkedAccount),
    errors={409: error_response("The person signs in to another account.", "identity taken")},
    request=IdentityToLink,
)

ACCOUNT_DELETE = Operation(
    "deleteAccount",
    _SCOPES,
    _TAG,
    "Delete an account",
    "Deletes the account of a person or a project with everything in it. The parameter `name` is a "
    "confirmation: without the current name, nothing is deleted.",
    answer=json_response("What was deleted.", "account deleted", DeletedAccount),
    errors={
        409: error_response(
            "It is the operator's account, or the only owner of a project.", "sole owner"
        )
    },
    request=NamedDeletion,
)


class AccountRoutes(Struct, frozen=True, eq=False):
    """The handlers. ``domain`` is that of the addresses of inboxes."""

    administer: Administer
    sign_in: SignIn
    company: CompanySignIn | None
    domain: str

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one, audited = "/accounts/<account_id>", costs.AUDITED
        return [
            make_route("GET", "/accounts", self.all, ACCOUNTS_LIST, costs.FREE),
            make_route("POST", "/accounts", self.create, ACCOUNT_CREATE, costs.PROJECT),
            make_route("GET", one, self.show, ACCOUNT_SHOW, costs.FREE),
            make_route("PATCH", one, self.change, ACCOUNT_CHANGE, costs.SMALL),
            make_route("DELETE", one, self.delete, ACCOUNT_DELETE, audited),
            make_route("POST", f"{one}/disable", self.disable, ACCOUNT_DISABLE, audited),
            make_route("POST", f"{one}/enable", self.enable, ACCOUNT_ENABLE, audited),
            make_route("POST", f"{one}/end-access", self.end_access, ACCESS_END, audited),
            make_route("POST", f"{one}/sign-in-link", self.link, LINK_CREATE, costs.SMALL),
            make_route("PUT", f"{one}/identity", self.identify, IDENTITY_LINK, costs.SMALL),
        ]

    async def all(self, call: Call[AccountsToList]) -> Reply:
        """GET /accounts."""
        asked = call.request
        search, order, kind = asked.search or "", AccountOrder(asked.sort), asked.kind
        first, limit = asked.offset, asked.limit
        await self.administer.operator(call.caller)
        uses = await self.administer.keys.accounts.uses()
        chosen = choose_uses(uses, search, order, None if kind is None else kind == "project")
        return json_reply(render_uses(chosen[first : first + limit], len(chosen), self.domain))

    async def create(self, call: Call[AccountToCreate]) -> Reply:
        """POST /accounts."""
        name = call.request.name
        await self.administer.operator(call.caller)
        name = self.administer.projects.rules.names.require(name, is_assigned=True)
        made = await self.administer.keys.accounts.add(name, by=call.caller.actor)
        return json_reply(render_account(made, self.domain))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /accounts/{accountId}."""
        account = await self._account(call)
        access = await self.administer.keys.accounts.access_of(account)
        return json_reply(render_access(account, access, self.domain))

    async def change(self, call: Call[AccountChoice]) -> Reply:
        """PATCH /accounts/{accountId}."""
        name, limits, by = call.request.name, call.request.limits, call.caller.actor
        account, keep = await self._account(call), self.administer.keys.accounts
        if name is not UNSET:
            await keep.rename(account, name, by)
        if limits:
            known = {name: getattr(account, name) for name in AccountLimits.__struct_fields__}
            await keep.set_limits(account, AccountLimits(**{**known, **limits}), by)
        return await self._reply(account)

    async def delete(self, call: Call[NamedDeletion]) -> Reply:
        """DELETE /accounts/{accountId}."""
        name = call.request.name
        account = await self._account(call)
        require_name(account, name)
        holdings = await self.administer.keys.accounts.delete(account, call.caller.actor)
        numbers = {name: number for name, number in holdings}  # noqa: C416 - it has a field `keys`
        return json_reply(DeletedAccount(success=True, id=account.id, deleted=numbers))

    async def disable(self, call: Call[NoParameters]) -> Reply:
        """POST /accounts/{accountId}/disable."""
        account = await self._account(call)
        await self.administer.keys.accounts.disable(account, call.caller.actor)
        return await self._reply(account)

    async def enable(self, call: Call[NoParameters]) -> Reply:
        """POST /accounts/{accountId}/enable."""
        account = await self._account(call)
        await self.administer.keys.accounts.enable(account, call.caller.actor)
        return await self._reply(account)

    async def end_access(self, call: Call[NoParameters]) -> Reply:
        """POST /accounts/{accountId}/end-access."""
        account = await self._account(call)
        ended = await self.administer.keys.accounts.end_access(account, call.caller.actor)
        return json_reply(
            AccessEnded(
                success=True, id=account.id, sessions=ended.sessions, programs=ended.programs
            )
        )

    async def link(self, call: Call[NoParameters]) -> Reply:
        """POST /accounts/{accountId}/sign-in-link."""
        account = await self._account(call)
        code = await self.sign_in.create_link(account, call.caller.actor)
        return json_reply(SignInLink(account.id, call.urls.sign_in_url(code)))

    async def identify(self, call: Call[IdentityToLink]) -> Reply:
        """PUT /accounts/{accountId}/identity."""
        subject = call.request.subject
        account = await self._account(call)
        if self.company is None:
            raise NotPermitted("the sign-in service of a company is not set up ([oidc] issuer)")
        await self.company.link(account, subject, call.caller.actor)
        return json_reply(LinkedAccount(success=True, id=account.id))

    async def _account(self, call: Call[Any]) -> accounts.Account:
        await self.administer.operator(call.caller)
        return await self.administer.keys.accounts.get(call.path["account_id"])

    async def _reply(self, account: accounts.Account) -> Reply:
        now = await self.administer.keys.accounts.get(account.id)
        return json_reply(render_account(now, self.domain))
