"""The routes of projects, their members and invitations."""

from typing import Any

from msgspec import Struct

from mailcheck.api.accounts.projects import (
    DeletedProject,
    Invitations,
    InvitationWithLink,
    Member,
    Members,
    Project,
    Projects,
    RemovedMember,
    RevokedInvitation,
    render_invitations,
    render_invited,
    render_member,
    render_members,
    render_project,
    render_projects,
)
from mailcheck.api.openapi.operations import Link, Operation, error_response, json_response
from mailcheck.api.requests.accounts import (
    InvitationToCreate,
    MemberToSet,
    NamedDeletion,
    ProjectToCreate,
    ProjectToRename,
)
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.core.accounts import Account
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.projects import MAX_INVITATIONS, Role
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.administer import Administer, Administrator
from mailcheck.operations.accounts.projects import MAX_PROJECTS
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call
from mailcheck.web.site.replies import Reply, json_reply

_TAG = "Projects"

_SCOPES = (Scope.PROJECT_ADMIN,)

_TAKEN = error_response(
    "Another account has the name or a similar one, or the name is reserved, or the person owns "
    f"{MAX_PROJECTS} projects, the maximum.",
    "name taken",
)

_LAST_OWNER = error_response("The project would have no owner left.", "only owner")

_THIS = {"projectId": "$response.body#/id"}

PROJECT_CREATE = Operation(
    "createProject",
    _SCOPES,
    _TAG,
    "Create a project",
    "The person of the key becomes its first owner. A key of the operator with the scope operator "
    "names any person as the owner.",
    answer=json_response(
        "The project.",
        "project",
        Project,
        links={"keys": Link("createProjectKey", _THIS, "create a key of the project")},
    ),
    errors={409: _TAKEN},
    request=ProjectToCreate,
)

PROJECTS_LIST = Operation(
    "listProjects",
    _SCOPES,
    _TAG,
    "List the projects",
    "A key of a project manages this project. A key of a person manages the projects that the "
    "person owns. A key of the operator with the scope operator manages all.",
    answer=json_response("The projects.", "projects", Projects),
)

PROJECT_SHOW = Operation(
    "getProject",
    _SCOPES,
    _TAG,
    "Get a project",
    "Returns the project with the address of its inbox. `me` is the account of the key, which may "
    "be a person's own one.",
    answer=json_response("The project.", "project", Project),
)

PROJECT_RENAME = Operation(
    "renameProject",
    _SCOPES,
    _TAG,
    "Rename a project",
    "Its addresses, keys and members stay.",
    answer=json_response("The project.", "project", Project),
    errors={409: _TAKEN},
    request=ProjectToRename,
)

PROJECT_DELETE = Operation(
    "deleteProject",
    _SCOPES,
    _TAG,
    "Delete a project",
    "Deletes the project with all mail, keys, webhooks, watches, tests and reports in it. The "
    "parameter `name` is a confirmation: without the current name, nothing is deleted.",
    answer=json_response("What was deleted.", "project deleted", DeletedProject),
    request=NamedDeletion,
)

MEMBERS_LIST = Operation(
    "listMembers",
    _SCOPES,
    _TAG,
    "List the members of a project",
    "The people with their roles.",
    answer=json_response("The members.", "members", Members),
)

MEMBER_SET = Operation(
    "setMember",
    _SCOPES,
    _TAG,
    "Change the role of a member",
    "A key of the operator with the scope operator also adds a person who is not a member. Anybody "
    "else sends an invitation.",
    answer=json_response("The member.", "member", Member),
    errors={409: _LAST_OWNER},
    request=MemberToSet,
)

MEMBER_REMOVE = Operation(
    "removeMember",
    _SCOPES,
    _TAG,
    "Remove a member from a project",
    "The person sees the project no more, and what the person has allowed programs to do in it "
    "ends. Keys that the person made stay valid: `listProjectKeys` says who made them.",
    answer=json_response("The person is removed.", "member removed", RemovedMember),
    errors={409: _LAST_OWNER},
)

INVITATIONS_LIST = Operation(
    "listInvitations",
    _SCOPES,
    _TAG,
    "List the invitations to a project",
    "The unused invitations, without their links.",
    answer=json_response("The invitations.", "invitations", Invitations),
)

INVITATION_CREATE = Operation(
    "createInvitation",
    _SCOPES,
    _TAG,
    "Invite a person to a project",
    "Returns a link, which no mail is sent with. It lets one person join.",
    answer=json_response("The invitation.", "invitation made", InvitationWithLink),
    errors={
        409: error_response(
            f"The address is reserved, or the project has {MAX_INVITATIONS} unused invitations.",
            "name taken",
        )
    },
    request=InvitationToCreate,
)

INVITATION_REVOKE = Operation(
    "revokeInvitation",
    _SCOPES,
    _TAG,
    "Revoke an invitation",
    "The link is refused from then on.",
    answer=json_response("It is revoked.", "invitation revoked", RevokedInvitation),
)


class ProjectRoutes(Struct, frozen=True, eq=False):
    """The handlers. ``domain`` is that of the addresses of inboxes."""

    administer: Administer
    domain: str

    def routes(self) -> list[Route[Any]]:
        """List the routes."""
        one = "/projects/<project_id>"
        member, invitation = f"{one}/members/<member_id>", f"{one}/invitations/<invitation_id>"
        audited = costs.AUDITED
        return [
            make_route("POST", "/projects", self.create, PROJECT_CREATE, costs.PROJECT),
            make_route("GET", "/projects", self.all, PROJECTS_LIST, costs.FREE),
            make_route("GET", one, self.show, PROJECT_SHOW, costs.FREE),
            make_route("PATCH", one, self.rename, PROJECT_RENAME, audited),
            make_route("DELETE", one, self.delete, PROJECT_DELETE, audited),
            make_route("GET", f"{one}/members", self.members, MEMBERS_LIST, costs.FREE),
            make_route("PUT", member, self.set_member, MEMBER_SET, audited),
            make_route("DELETE", member, self.remove_member, MEMBER_REMOVE, audited),
            make_route("GET", f"{one}/invitations", self.invitations, INVITATIONS_LIST, costs.FREE),
            make_route("POST", f"{one}/invitations", self.invite, INVITATION_CREATE, costs.SMALL),
            make_route("DELETE", invitation, self.revoke, INVITATION_REVOKE, audited),
        ]

    async def create(self, call: Call[ProjectToCreate]) -> Reply:
        """POST /projects."""
        name, owner = call.request.name, call.request.owner
        holder = await self.administer.administrator(call.caller)
        made = await self.administer.create_project(holder, name, owner)
        return json_reply(render_project(made, self.domain))

    async def all(self, call: Call[NoParameters]) -> Reply:
        """GET /projects."""
        holder = await self.administer.administrator(call.caller)
        return json_reply(render_projects(await self.administer.managed(holder), self.domain))

    async def show(self, call: Call[NoParameters]) -> Reply:
        """GET /projects/{projectId}."""
        holder = await self.administer.administrator(call.caller)
        account = await self.administer.account(holder, call.path["project_id"])
        return json_reply(render_project(account, self.domain))

    async def rename(self, call: Call[ProjectToRename]) -> Reply:
        """PATCH /projects/{projectId}."""
        name = call.request.name
        _, project = await self._project(call)
        await self.administer.projects.rename(project, name, call.caller.actor)
        renamed = await self.administer.keys.accounts.get(project.id)
        return json_reply(render_project(renamed, self.domain))

    async def delete(self, call: Call[NamedDeletion]) -> Reply:
        """DELETE /projects/{projectId}."""
        name = call.request.name
        _, project = await self._project(call)
        require_name(project, name)
        holdings = await self.administer.keys.accounts.delete(project, call.caller.actor)
        numbers = {name: number for name, number in holdings}  # noqa: C416 - it has a field `keys`
        deleted = DeletedProject(success=True, id=project.id, deleted=numbers)
        return json_reply(deleted)

    async def members(self, call: Call[NoParameters]) -> Reply:
        """GET /projects/{projectId}/members."""
        _, project = await self._project(call)
        return json_reply(render_members(await self.administer.projects.members(project)))

    async def set_member(self, call: Call[MemberToSet]) -> Reply:
        """PUT /projects/{projectId}/members/{accountId}."""
        role, account_id = Role(call.request.role), call.path["member_id"]
        holder, project = await self._project(call)
        member = await self.administer.set_member(holder, project, account_id, role)
        return json_reply(render_member(member))

    async def remove_member(self, call: Call[NoParameters]) -> Reply:
        """DELETE /projects/{projectId}/members/{accountId}."""
        _, project = await self._project(call)
        account_id = AccountId(call.path["member_id"])
        await self.administer.projects.remove_member(project, account_id, call.caller.actor)
        return json_reply(RemovedMember(success=True, id=account_id))

    async def invitations(self, call: Call[NoParameters]) -> Reply:
        """GET /projects/{projectId}/invitations."""
        _, project = await self._project(call)
        return json_reply(render_invitations(await self.administer.projects.invitations(project)))

    async def invite(self, call: Call[InvitationToCreate]) -> Reply:
        """POST /projects/{projectId}/invitations."""
        role, address, days = Role(call.request.role), call.request.address, call.request.days
        holder, project = await self._project(call)
        invited = await self.administer.invite(holder, project, role, address, days)
        return json_reply(render_invited(invited.listed, call.urls.join_url(invited.code)))

    async def revoke(self, call: Call[NoParameters]) -> Reply:
        """DELETE /projects/{projectId}/invitations/{invitationId}."""
        _, project = await self._project(call)
        listed_id = call.path["invitation_id"]
        await self.administer.projects.revoke_invitation(project, listed_id, call.caller.actor)
        return json_reply(RevokedInvitation(success=True, id=listed_id))

    async def _project(self, call: Call[Any]) -> tuple[Administrator, Account]:
        holder = await self.administer.administrator(call.caller)
        return holder, await self.administer.project(holder, call.path["project_id"])


def require_name(account: Account, name: str) -> None:
    """Check the confirmation of a deletion.

    :raises InvalidParameter: it is not the name of the account.
    """
    if name != account.name:
        problem = f"name must be {account.name!r}, the name of what is deleted, as a confirmation"
        raise InvalidParameter("name", f"{problem}; nothing was deleted")
