"""The routes of the digest."""

from typing import Any

from msgspec import Struct

from mailcheck.api.domains.digests import Digest, render_digest
from mailcheck.api.openapi.operations import Operation, json_response
from mailcheck.api.requests.digests import DigestChoice
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.rights import Scope
from mailcheck.operations.digests.manage_digest import ManageDigest
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

DIGEST_SHOW = Operation(
    "getDigest",
    (Scope.WATCHES,),
    "Watches",
    "Get the settings of the digest",
    "Returns how often a digest is sent, and to whom.",
    answer=json_response("The digest.", "digest", Digest),
)

DIGEST_SET = Operation(
    "setDigest",
    # A digest sums up reports of receivers too.
    (Scope.WATCHES, Scope.DOMAINS),
    "Watches",
    "Choose a digest by mail",
    "A digest says what changed and what to do next: watches, heartbeats and reports on one page. "
    "It is sent at 06:00 UTC on Mondays or on the first day of a month, to your own inbox with the "
    "tag `digest` and to mail addresses that the operator allows.",
    answer=json_response("The digest.", "digest set", Digest),
    request=DigestChoice,
)


class DigestRoutes(Struct, frozen=True, eq=False):
    """Handlers that call an operation and render its result."""

    digest: ManageDigest

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        return [
            make_route("GET", "/digest", self.show, DIGEST_SHOW, costs.FREE),
            make_route("PUT", "/digest", self.set, DIGEST_SET, costs.SMALL),
        ]

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /digest."""
        return json_reply(render_digest(await self.digest.show(call.caller.account_id)))

    async def set(self, call: Call[DigestChoice]) -> Reply:
        """PUT /digest."""
        changed = await self.digest.change(call.caller.account_id, call.request.settings)
        return json_reply(render_digest(changed))
