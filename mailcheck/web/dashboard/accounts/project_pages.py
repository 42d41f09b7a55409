"""The pages of projects: those of a person, and the members of a project."""

from msgspec import Struct

from mailcheck.core.accounts import Account
from mailcheck.core.errors import AccountNotFound, ExpectedFailure, InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.projects import ROLE_TEXTS, Role
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.projects import ManageProjects
from mailcheck.operations.accounts.registration_rules import INVITATION_DAYS
from mailcheck.web.dashboard.accounts.sign_in_pages import JOIN_PATH
from mailcheck.web.dashboard.addresses import address_in
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import (
    CONFIRMED_OWNERS,
    OWNERS,
    PERSON,
    READERS,
    Page,
    Visit,
    with_form,
)
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

LIST_PATH, PATH = "/projects", "/project"


class ProjectPages(Struct, frozen=True):
    """The pages to list, create, join and change projects."""

    _projects: ManageProjects
    _accounts: ManageAccounts
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = f"{PATH}/members/<account_id>"
        return [
            Page("GET", LIST_PATH, self.list, costs.FREE, PERSON),
            *with_form(self.list, Page("POST", LIST_PATH, self.create, costs.PROJECT, PERSON)),
            Page("GET", JOIN_PATH, self.show_invitation, costs.FREE, PERSON),
            Page("POST", JOIN_PATH, self.join, costs.AUDITED, PERSON),
            Page("GET", PATH, self.show, costs.FREE),
            *with_form(
                self.show,
                Page("POST", f"{PATH}/leave", self.leave, costs.AUDITED, READERS),
                Page("POST", f"{PATH}/invitations", self.invite, costs.AUDITED, CONFIRMED_OWNERS),
                Page("POST", f"{PATH}/rename", self.rename, costs.AUDITED, OWNERS),
                Page("POST", f"{PATH}/delete", self.delete, costs.AUDITED, OWNERS),
                Page("POST", f"{one}/role", self.set_role, costs.AUDITED, CONFIRMED_OWNERS),
                Page("POST", f"{one}/remove", self.remove, costs.AUDITED, OWNERS),
            ),
        ]

    async def list(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /projects. The failure of the form is shown on the same page."""
        return self._renderer.page(
            visit,
            "projects.html",
            error=failure,
            projects=await self._projects.of_person(visit.visitor),
            name=visit.form.text("name") or "",
        )

    async def create(self, visit: Visit) -> Reply:
        """POST /projects: name."""
        name = visit.form.text("name") or ""
        project = await self._projects.create(visit.visitor, name, visit.actor)
        return redirect(visit, address_in(project.id, PATH), done="project-created")

    async def show_invitation(self, visit: Visit) -> Reply:
        """GET /join?invitation=<code>."""
        code = visit.query.text("invitation") or ""
        found = await self._projects.find_invitation(code)
        return self._renderer.page(
            visit,
            "join.html",
            invited=found,
            code=code,
            role_text=ROLE_TEXTS[found.membership.role],
        )

    async def join(self, visit: Visit) -> Reply:
        """POST /join: invitation."""
        code = visit.form.text("invitation") or ""
        joined = await self._projects.join(visit.visitor, code, visit.actor)
        return redirect(visit, address_in(joined.project.id, PATH), done="project-joined")

    async def show(
        self,
        visit: Visit,
        failure: ExpectedFailure | None = None,
        invitation: str | None = None,
    ) -> Reply:
        """GET /project: its members. The person's own account has none."""
        if visit.membership is None:
            return redirect(visit, LIST_PATH)
        project = visit.account
        return self._renderer.page(
            visit,
            "project.html",
            error=failure,
            project=project,
            members=await self._projects.members(project),
            holdings=await self._accounts.holdings(project),
            roles=list(Role),
            role_texts=ROLE_TEXTS,
            is_owner=visit.role is Role.OWNER,
            may_invite_new=self._projects.rules.may_invite_new(visit.visitor),
            address=visit.form.text("address") or "",
            invitation=invitation,
            invitation_days=INVITATION_DAYS,
        )

    async def invite(self, visit: Visit) -> Reply:
        """POST /project/invitations: role, address. The response shows the link once."""
        role, address = _read_role(visit), visit.form.text("address") or ""
        project = _project(visit)
        invited = await self._projects.invite(project, role, address, visit.visitor, visit.actor)
        return await self.show(visit, invitation=visit.urls.join_url(invited.code))

    async def set_role(self, visit: Visit) -> Reply:
        """POST /project/members/<account_id>/role: role."""
        project, role = _project(visit), _read_role(visit)
        known = {member.account_id for member in await self._projects.members(project)}
        account_id = AccountId(visit.path["account_id"])
        if account_id not in known:
            raise AccountNotFound("this person is not a member of the project")
        person = await self._accounts.get(account_id)
        await self._projects.set_member(project, person, role, visit.actor)
        return redirect(visit, PATH, done="member-changed")

    async def remove(self, visit: Visit) -> Reply:
        """POST /project/members/<account_id>/remove."""
        account_id = AccountId(visit.path["account_id"])
        await self._projects.remove_member(_project(visit), account_id, visit.actor)
        return redirect(visit, PATH, done="member-removed")

    async def leave(self, visit: Visit) -> Reply:
        """POST /project/leave."""
        await self._projects.remove_member(_project(visit), visit.visitor.id, visit.actor)
        return redirect(visit, LIST_PATH, done="project-left")

    async def rename(self, visit: Visit) -> Reply:
        """POST /project/rename: name."""
        await self._projects.rename(_project(visit), visit.form.text("name") or "", visit.actor)
        return redirect(visit, PATH, done="project-renamed")

    async def delete(self, visit: Visit) -> Reply:
        """POST /project/delete: name, as a confirmation."""
        project = _project(visit)
        if (visit.form.text("name") or "").strip() != project.name:
            raise InvalidParameter("name", "enter the name of the project to confirm")
        await self._accounts.delete(project, visit.actor)
        return redirect(visit, LIST_PATH, done="project-deleted")


def _project(visit: Visit) -> Account:
    """Return the project of the URL.

    :raises AccountNotFound: it is the person's own account.
    """
    if visit.membership is None:
        raise AccountNotFound("your own account is not a project: choose a project first")
    return visit.membership.project


def _read_role(visit: Visit) -> Role:
    given = visit.form.text("role") or ""
    if given not in list(Role):
        raise InvalidParameter("role", f"choose one of {', '.join(Role)}; got {given[:20]!r}")
    return Role(given)
