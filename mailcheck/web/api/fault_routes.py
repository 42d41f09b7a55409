"""The routes of the faults that are met on request."""

from mailcheck.core.errors import InvalidCredentials, KeyNotFound
from mailcheck.operations.accounts.keep_accounts import KeepAccounts
from mailcheck.web.api import described_faults as described
from mailcheck.web.api.calls import Call, Route
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.wire.inbox.faults import parse_key_fault, render_faults


class FaultRoutes:
    """``is_on``: mail meets them."""

    def __init__(self, accounts: KeepAccounts, *, is_on: bool) -> None:
        self._accounts = accounts
        self._is_on = is_on

    def routes(self) -> list[Route]:
        """List the routes."""
        return [
            Route("GET", "/inbox/faults", self.show, described.FAULTS_SHOW),
            Route("PUT", "/inbox/faults", self.set, described.KEY_FAULT_SET),
        ]

    async def show(self, call: Call) -> Reply:
        """GET /inbox/faults."""
        return json_reply(render_faults(call.caller.fails_every, is_on=self._is_on))

    async def set(self, call: Call) -> Reply:
        """PUT /inbox/faults."""
        every = parse_key_fault(call.body)
        try:
            await self._accounts.set_fault(call.caller.key_id, every)
        except KeyNotFound:
            raise InvalidCredentials("the API key has been revoked") from None
        return json_reply(render_faults(every, is_on=self._is_on))
