"""People and groups that the directory of a company manages: create, change, disable, delete."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from twisted.logger import Logger

from mailcheck.core.accounts import Account
from mailcheck.core.addresses import new_mailbox_name
from mailcheck.core.audit import Action, Actor
from mailcheck.core.errors import AccountNotFound
from mailcheck.core.identifiers import AccountId, new_short_id
from mailcheck.core.signing_in.company import GroupRole
from mailcheck.core.signing_in.provisioning import (
    MAX_EXTERNAL_ID,
    MAX_GROUP_NAME,
    MAX_GROUPS,
    MAX_MEMBERS,
    MAX_PROFILE,
    ChangedMeanwhile,
    GroupDraft,
    Kind,
    ProjectRole,
    ProvisionedGroup,
    ProvisionedNotFound,
    ProvisionedUser,
    ProvisioningRefused,
    UserDraft,
)
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.projects import ManageProjects
from mailcheck.operations.accounts.registration_rules import NameRules
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.accounts.provisioning_store import ProvisioningStore

ATTEMPTS = 5
"""Number of times that a change is tried while other requests change the same resource."""


class Provisioning(Struct, frozen=True, eq=False):
    """What a directory can ask for. ``by`` is the directory, for the audit log.

    ``roles`` are the projects of groups, as in the sign-in with the account of a company.
    """

    _log = Logger()

    store: ProvisioningStore
    accounts: ManageAccounts
    projects: ManageProjects
    names: NameRules
    roles: Sequence[GroupRole]
    audit: Audit
    clocks: ClockAndRandomness

    async def users(self) -> list[ProvisionedUser]:
        """List all people, oldest first. Those without an account of the directory are included."""
        return await self.store.users()

    async def user(self, user_id: str) -> ProvisionedUser:
        """Return a person.

        :raises ProvisionedNotFound: nobody has this id.
        """
        found = await self.store.user(user_id)
        if found is None:
            raise ProvisionedNotFound(f"no user has the id {user_id[:60]!r}")
        return found

    async def create_user(self, draft: UserDraft, by: Actor) -> ProvisionedUser:
        """Create an account for a person, or take over the one with which the person signed in.

        :raises AlreadyProvisioned: a person has the name or the external id.
        :raises AccountNameTaken: the name is reserved, or looks like an existing one.
        :raises ProvisioningRefused: a value is too long.
        :raises InvalidParameter: the name is not acceptable.
        :raises AccountIsOperator: the account of the operator would be disabled.
        """
        self._require_user(draft)
        account = Account(
            id=AccountId(new_short_id(self.clocks.random_bytes)),
            name=draft.user_name.strip(),
            mailbox_name=new_mailbox_name(self.clocks.random_bytes),
            is_operator=False,
            created_at=self.clocks.now(),
            max_messages=None,
            max_bytes=None,
        )
        with self.audit.noting(Action.ACCOUNT_CREATED, account.id, by, "directory") as entry:
            account_id = await self.store.add_user(account, draft, entry)
        return await self.user(account_id)

    async def change_user(
        self, user_id: str, change: Callable[[ProvisionedUser], UserDraft], by: Actor
    ) -> ProvisionedUser:
        """Change a person. Without a difference, nothing is written.

        Disabling ends sessions, keys and grants. Enabling revives none of them.

        :param change: returns the new values from the present ones. It may run several times.
        :raises ProvisionedNotFound: nobody has this id.
        :raises AlreadyProvisioned: another person has the name or the external id.
        :raises AccountNameTaken: the name is reserved, or looks like an existing one.
        :raises AccountIsOperator: the account of the operator would be disabled.
        :raises ProvisioningRefused: a value is too long, or may not be changed in this request.
        :raises ChangedMeanwhile: other requests change the person all the time.
        """
        for _ in range(ATTEMPTS):
            before = await self.user(user_id)
            draft = change(before)
            if draft.is_active is None:
                draft = replace(draft, is_active=before.draft.is_active)
            if draft == before.draft:
                return before
            self._require_user(draft, before)
            try:
                with self.audit.noting(Action.ACCOUNT_CHANGED, before.account.id, by) as entry:
                    await self.store.change_user(before, draft, entry)
            except ChangedMeanwhile:
                continue
            return await self.user(user_id)
        raise ChangedMeanwhile("other requests change this user: try again")

    async def delete_user(self, user_id: str, by: Actor) -> None:
        """Delete an account with all of its data.

        :raises ProvisionedNotFound: nobody has this id.
        :raises AccountIsOperator: it is the account of the operator.
        :raises OnlyOwner: a project would have no owner left.
        """
        await self.accounts.delete((await self.user(user_id)).account, by)

    async def groups(self) -> list[ProvisionedGroup]:
        """List all groups, oldest first."""
        return await self.store.groups()

    async def group(self, group_id: str) -> ProvisionedGroup:
        """Return a group.

        :raises ProvisionedNotFound: no group has this id.
        """
        found = await self.store.group(group_id)
        if found is None:
            raise ProvisionedNotFound(f"no group has the id {group_id[:60]!r}")
        return found

    async def create_group(self, draft: GroupDraft, by: Actor) -> ProvisionedGroup:
        """Create a group, and give its members the roles of the mapping.

        :raises AlreadyProvisioned: a group has this name.
        :raises ProvisioningRefused: a value is too long, or a member is not a person.
        """
        _require_group(draft)
        if len(await self.store.groups()) >= MAX_GROUPS:
            raise ProvisioningRefused(Kind.TOO_MANY, f"there are at most {MAX_GROUPS} groups")
        group_id = new_short_id(self.clocks.random_bytes)
        detail = f"{draft.display_name}: {len(draft.members)} members"
        with self.audit.noting(Action.GROUP_CREATED, None, by, detail) as entry:
            await self.store.add_group(group_id, draft, await self._project_roles(), entry)
        return await self.group(group_id)

    async def change_group(
        self, group_id: str, change: Callable[[ProvisionedGroup], GroupDraft], by: Actor
    ) -> ProvisionedGroup:
        """Change a group, and the roles that follow from it.

        :param change: returns the new values from the present ones. It may run several times.
        :raises ProvisionedNotFound: no group has this id.
        :raises AlreadyProvisioned: another group has the name.
        :raises ProvisioningRefused: a value is too long, or a member is not a person.
        :raises ChangedMeanwhile: other requests change the group all the time.
        """
        for _ in range(ATTEMPTS):
            before = await self.group(group_id)
            draft = change(before)
            if replace(draft, members=()) == replace(before.draft, members=()) and set(
                draft.members
            ) == set(before.draft.members):
                return before
            _require_group(draft)
            detail = f"{draft.display_name}: {len(draft.members)} members"
            try:
                with self.audit.noting(Action.GROUP_CHANGED, None, by, detail) as entry:
                    await self.store.change_group(before, draft, await self._project_roles(), entry)
            except ChangedMeanwhile:
                continue
            return await self.group(group_id)
        raise ChangedMeanwhile("other requests change this group: try again")

    async def delete_group(self, group_id: str, by: Actor) -> None:
        """Delete a group, and take the roles that it gave. Its members stay.

        :raises ProvisionedNotFound: no group has this id.
        """
        found = await self.group(group_id)
        with self.audit.noting(Action.GROUP_DELETED, None, by, found.display_name) as entry:
            await self.store.delete_group(group_id, await self._project_roles(), entry)

    async def follow_groups(self, by: Actor) -> None:
        """Give and take the roles that follow from the groups, after a change of the mapping."""
        with self.audit.noting(Action.MEMBER_SET, None, by) as entry:
            await self.store.follow_groups(await self._project_roles(), entry)

    async def _project_roles(self) -> list[ProjectRole]:
        """Return the mapping with the ids of its projects."""
        found = []
        for role in self.roles:
            try:
                project = await self.projects.meant_by(role.project)
            except AccountNotFound as failure:
                self._log.warn(
                    "[scim] roles names {project!r}: {why}", project=role.project, why=failure
                )
            else:
                found.append(ProjectRole(role.group, project.id, role.role))
        return found

    def _require_user(self, draft: UserDraft, before: ProvisionedUser | None = None) -> None:
        if before is None or draft.user_name != before.user_name:
            self.names.require(draft.user_name)
        _require_length("externalId", draft.external_id or "", MAX_EXTERNAL_ID)
        if len(msgspec.json.encode(draft.profile)) > MAX_PROFILE:
            problem = f"the attributes of a user have at most {MAX_PROFILE} characters"
            raise ProvisioningRefused(Kind.INVALID_VALUE, problem)


def _require_group(draft: GroupDraft) -> None:
    _require_length("displayName", draft.display_name, MAX_GROUP_NAME)
    _require_length("externalId", draft.external_id or "", MAX_EXTERNAL_ID)
    if len(draft.members) > MAX_MEMBERS:
        problem = f"a group has at most {MAX_MEMBERS} members"
        raise ProvisioningRefused(Kind.INVALID_VALUE, problem)


def _require_length(name: str, value: str, longest: int) -> None:
    if len(value) > longest:
        problem = f"{name} must have at most {longest} characters; got {len(value)}"
        raise ProvisioningRefused(Kind.INVALID_VALUE, problem)
