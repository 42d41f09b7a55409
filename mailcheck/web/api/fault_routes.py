"""The routes of simulated failures."""

from typing import Any

from msgspec import Struct

from mailcheck.api.inbox.faults import Faults, render_faults
from mailcheck.api.openapi.operations import Operation, json_response
from mailcheck.api.requests.inbox import KeyFault
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.errors import InvalidCredentials, KeyNotFound
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Inbox"

FAULTS_SHOW = Operation(
    "getFaults",
    (Scope.INBOX_READ,),
    _TAG,
    "List the simulated failures",
    "Mail to an address with one of these tags is delayed or rejected as described, to test the "
    "sender. All other tags behave normally.",
    answer=json_response("The faults.", "faults", Faults),
)

KEY_FAULT_SET = Operation(
    "setKeyFault",
    (Scope.INBOX_WRITE,),
    _TAG,
    "Simulate failures for this key",
    "Rejects every Nth mail that programs submit with this key over the submission port, with 451 "
    "after DATA. The mail is not stored. The setting applies from the next sign-in on.",
    answer=json_response("The new setting.", "faults set", Faults),
    request=KeyFault,
)


class FaultRoutes(Struct, frozen=True, eq=False):
    """The handlers. ``is_on`` is whether the operator allows faults."""

    accounts: ManageAccounts
    is_on: bool

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        return [
            make_route("GET", "/inbox/faults", self.show, FAULTS_SHOW, costs.FREE),
            make_route("PUT", "/inbox/faults", self.set, KEY_FAULT_SET, costs.FREE),
        ]

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /inbox/faults."""
        return json_reply(render_faults(call.caller.fails_every, is_on=self.is_on))

    async def set(self, call: Call[KeyFault]) -> Reply:
        """PUT /inbox/faults."""
        every = call.request.every
        try:
            await self.accounts.set_fault(call.caller.key_id, every)
        except KeyNotFound:
            raise InvalidCredentials("the API key has been revoked") from None
        return json_reply(render_faults(every, is_on=self.is_on))
