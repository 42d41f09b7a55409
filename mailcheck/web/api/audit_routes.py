"""The routes of the audit log."""

from typing import Any

from msgspec import Struct

from mailcheck.api.accounts.audit import AuditLog, render_log
from mailcheck.api.openapi.operations import Operation, json_response
from mailcheck.api.requests.accounts import AuditOfAllToRead, AuditToRead
from mailcheck.core.audit import AuditFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.administer import Administer
from mailcheck.operations.follow_audit import FollowAudit
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_HOW = (
    "With a cursor, entries are returned in the order in which they were committed, so a program "
    "that continues after the last cursor misses none. With `timeout`, the request waits for the "
    "next entry."
)

PROJECT_AUDIT = Operation(
    "getProjectAudit",
    (Scope.PROJECT_ADMIN,),
    "Projects",
    "Read the audit log of a project",
    f"The entries about the project, or with `me` about the account of the key. {_HOW}",
    answer=json_response("The entries.", "audit", AuditLog),
    request=AuditToRead,
)

AUDIT = Operation(
    "getAudit",
    (Scope.OPERATOR,),
    "Accounts",
    "Read the audit log of the service",
    f"The entries about all accounts. {_HOW}",
    answer=json_response("The entries.", "audit of all", AuditLog),
    request=AuditOfAllToRead,
)


class AuditRoutes(Struct, frozen=True, eq=False):
    """The handlers."""

    administer: Administer
    follow: FollowAudit

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = "/projects/<project_id>/audit"
        return [
            make_route("GET", one, self.of_project, PROJECT_AUDIT, costs.FREE),
            make_route("GET", "/audit", self.of_all, AUDIT, costs.FREE),
        ]

    async def of_project(self, call: Call[AuditToRead]) -> Reply:
        """GET /projects/{projectId}/audit."""
        asked, action = call.request, call.request.wanted_action
        after, limit, timeout = asked.after, asked.limit, asked.timeout
        holder = await self.administer.administrator(call.caller)
        account = await self.administer.account(holder, call.path["project_id"])
        wanted = AuditFilter(account.id, action)
        page = await self.follow.read(call.caller, wanted, after, limit, timeout)
        return json_reply(render_log(page))

    async def of_all(self, call: Call[AuditOfAllToRead]) -> Reply:
        """GET /audit."""
        asked, action = call.request, call.request.wanted_action
        after, limit, timeout = asked.after, asked.limit, asked.timeout
        account_id = None if asked.account is None else AccountId(asked.account)
        await self.administer.operator(call.caller)
        wanted = AuditFilter(account_id, action)
        page = await self.follow.read(call.caller, wanted, after, limit, timeout)
        return json_reply(render_log(page))
