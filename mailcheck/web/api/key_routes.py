"""The routes of API keys."""

from typing import Any

from msgspec import Struct

from mailcheck.api.accounts.keys import (
    ApiKey,
    ApiKeys,
    ApiKeyWithSecret,
    RevokedApiKey,
    RotatedApiKey,
    render_issued,
    render_key,
    render_keys,
    render_rotated,
)
from mailcheck.api.openapi.operations import Link, Operation, error_response, json_response
from mailcheck.api.requests.accounts import KeyRotation, KeyToCreate
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.accounts import Account
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.administer import Administer, Administrator
from mailcheck.operations.accounts.own_keys import MAX_KEYS
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Projects"

_SCOPES = (Scope.PROJECT_ADMIN,)

_TOO_MANY = error_response(f"The account has {MAX_KEYS} valid keys, the maximum.", "too many keys")

KEY_CREATE = Operation(
    "createProjectKey",
    _SCOPES,
    _TAG,
    "Create an API key",
    "The new key has at most the rights and limits of the key that creates it: with the scope "
    "`project:admin` alone, a key cannot create one that reads mail. Only this response contains "
    "the secret. The project `me` is the account of the key.",
    answer=json_response(
        "The key, with its secret.",
        "key made",
        ApiKeyWithSecret,
        links={
            "revoke": Link(
                "revokeProjectKey",
                {"projectId": "$request.path.projectId", "keyId": "$response.body#/id"},
                "revoke it",
            )
        },
    ),
    errors={409: _TOO_MANY},
    request=KeyToCreate,
)

KEYS_LIST = Operation(
    "listProjectKeys",
    _SCOPES,
    _TAG,
    "List the API keys",
    "The valid keys with their rights, limits and use, and who made them. Access of connected "
    "programs is among them.",
    answer=json_response("The keys.", "keys", ApiKeys),
)

KEY_SHOW = Operation(
    "getProjectKey",
    _SCOPES,
    _TAG,
    "Get an API key",
    "Returns a valid key with its last use.",
    answer=json_response("The key.", "key", ApiKey),
)

KEY_ROTATE = Operation(
    "rotateProjectKey",
    _SCOPES,
    _TAG,
    "Replace an API key",
    "Creates a key with the same name, rights and limits. The older one stays valid for the "
    "overlap, so that programs can switch. The key that asks has at least the rights and limits of "
    "the one that is replaced. Only this response contains the secret.",
    answer=json_response("The new key, with its secret.", "key rotated", RotatedApiKey),
    errors={409: _TOO_MANY},
    request=KeyRotation,
)

KEY_REVOKE = Operation(
    "revokeProjectKey",
    _SCOPES,
    _TAG,
    "Revoke an API key",
    "Ends its requests, waits and streams at once, and refuses it from then on.",
    answer=json_response("The key is revoked.", "key revoked", RevokedApiKey),
)


class KeyRoutes(Struct, frozen=True, eq=False):
    """The handlers."""

    administer: Administer

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        keys = "/projects/<project_id>/keys"
        one = f"{keys}/<key_id>"
        return [
            make_route("POST", keys, self.create, KEY_CREATE, costs.SMALL),
            make_route("GET", keys, self.all, KEYS_LIST, costs.FREE),
            make_route("GET", one, self.show, KEY_SHOW, costs.FREE),
            make_route("POST", f"{one}/rotate", self.rotate, KEY_ROTATE, costs.SMALL),
            make_route("DELETE", one, self.revoke, KEY_REVOKE, costs.AUDITED),
        ]

    async def create(self, call: Call[KeyToCreate]) -> Reply:
        """POST /projects/{projectId}/keys."""
        wish = call.request.wish
        holder, account = await self._account(call)
        issued = await self.administer.create_key(holder, account, wish)
        shown = await self.administer.keys.show(account, issued.key.id)
        return json_reply(render_issued(shown, issued))

    async def all(self, call: Call[NoParameters]) -> Reply:
        """GET /projects/{projectId}/keys."""
        _, account = await self._account(call)
        return json_reply(render_keys(await self.administer.keys.valid(account)))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /projects/{projectId}/keys/{keyId}."""
        _, account = await self._account(call)
        shown = await self.administer.keys.show(account, call.path["key_id"])
        return json_reply(render_key(shown))

    async def rotate(self, call: Call[KeyRotation]) -> Reply:
        """POST /projects/{projectId}/keys/{keyId}/rotate."""
        key_id, overlap = call.path["key_id"], call.request.overlap
        holder, account = await self._account(call)
        issued = await self.administer.rotate_key(holder, account, key_id, overlap)
        shown = await self.administer.keys.show(account, issued.key.id)
        return json_reply(render_rotated(shown, issued))

    async def revoke(self, call: Call[NoParameters]) -> Reply:
        """DELETE /projects/{projectId}/keys/{keyId}."""
        _, account = await self._account(call)
        key_id = call.path["key_id"]
        await self.administer.keys.revoke(account, key_id, call.caller.actor)
        return json_reply(RevokedApiKey(success=True, id=key_id))

    async def _account(self, call: Call[Any]) -> tuple[Administrator, Account]:
        holder = await self.administer.administrator(call.caller)
        return holder, await self.administer.account(holder, call.path["project_id"])
