"""Who may manage which accounts and projects with an API key."""

from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Account, Caller, RequestLimits
from mailcheck.core.errors import AccountNotFound, MemberNotFound, NotPermitted
from mailcheck.core.identifiers import AccountId
from mailcheck.core.projects import Member, Role
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.manage_accounts import IssuedKey, RotatedKey
from mailcheck.operations.accounts.own_keys import KeyWish, OwnKeys
from mailcheck.operations.accounts.projects import Invited, ManageProjects

MINE = "me"
"""Stands for the account of the key itself."""


class Administrator(Struct, frozen=True):
    """The holder of an API key: its account, and the person who made it, if that is known.

    ``is_operator``: the key has the scope ``operator``, and its account the operator's role.
    """

    caller: Caller
    account: Account
    made_by: AccountId | None
    is_operator: bool


class Administer(Struct, frozen=True, eq=False):
    """Operations on projects and keys by holders of API keys.

    A key manages the account that it belongs to. A key of a person also manages the projects that
    the person owns, and a key with the scope ``operator`` manages all projects. The keys of another
    person's own account are never managed: they open that person's mail.
    """

    projects: ManageProjects
    keys: OwnKeys

    async def administrator(self, caller: Caller) -> Administrator:
        """Return the holder of a key that manages projects.

        :raises NotPermitted: the key does not have the scope ``project:admin``. Callers without a
            key, such as visitors of pages, never have it.
        :raises AccountNotFound: the account was deleted.
        """
        caller.rights.require((Scope.PROJECT_ADMIN,))
        return await self._holder(caller)

    async def _holder(self, caller: Caller) -> Administrator:
        account = await self.keys.accounts.get(caller.account_id)
        maker: AccountId | None = account.id
        if account.is_project:
            maker = await self.keys.accounts.maker_of(caller.key_id)
        is_operator = account.is_operator and Scope.OPERATOR in caller.rights.granted
        return Administrator(caller, account, maker, is_operator)

    async def operator(self, caller: Caller) -> Administrator:
        """Return the holder of a key of the operator.

        :raises NotPermitted: the key does not have the scope ``operator``.
        :raises NotOperator: the account of the key does not have the operator's role any more.
        """
        caller.rights.require((Scope.OPERATOR,))
        holder = await self._holder(caller)
        holder.account.require_operator("manage accounts")
        return holder

    async def account(self, holder: Administrator, account_id: str) -> Account:
        """Return an account or project that a holder manages. ``me`` is that of the key.

        :raises AccountNotFound: there is none with this id, or the holder does not manage it.
        """
        own = holder.account
        if account_id in (MINE, own.id):
            return own
        if holder.is_operator:
            with suppress(AccountNotFound):  # the failure below speaks of projects
                found = await self.keys.accounts.get(account_id)
                if found.is_project:
                    return found
        for membership in await self.projects.of_person(own):
            if membership.project.id == account_id and membership.role is Role.OWNER:
                return membership.project
        raise AccountNotFound("this project does not exist, or another key manages it")

    async def project(self, holder: Administrator, project_id: str) -> Account:
        """Return a project as `account` does. The own account of a person is not one.

        :raises AccountNotFound: there is none with this id, or the holder does not manage it.
        """
        account = await self.account(holder, project_id)
        if not account.is_project:
            raise AccountNotFound("the account of a person is not a project: it has no members")
        return account

    async def managed(self, holder: Administrator) -> list[Account]:
        """List the projects that a holder manages, by name."""
        if holder.account.is_project:
            return [holder.account]
        if holder.is_operator:
            found = await self.keys.accounts.accounts()
            return sorted(
                (account for account in found if account.is_project), key=lambda one: one.name
            )
        owned = await self.projects.of_person(holder.account)
        return [membership.project for membership in owned if membership.role is Role.OWNER]

    async def create_project(
        self, holder: Administrator, name: str, owner_name: str | None
    ) -> Account:
        """Create a project. Its owner is the person of the key, or one whom the operator names.

        :raises NotPermitted: the key belongs to a project, or names an owner without the scope
            ``operator``.
        :raises AccountNotFound: there is no such owner.
        """
        owner = holder.account
        if owner_name is not None and owner_name != owner.name:
            holder.caller.rights.require((Scope.OPERATOR,))
            owner.require_operator("create a project for somebody else")
            owner = await self.keys.accounts.find(owner_name)
        if owner.is_project:
            raise NotPermitted(
                "a key of a project creates no projects: use a key of a person, or name the owner "
                "with a key of the operator"
            )
        by = holder.caller.actor
        return await self.projects.create(owner, name, by, is_assigned=holder.is_operator)

    async def set_member(
        self, holder: Administrator, project: Account, account_id: str, role: Role
    ) -> Member:
        """Change the role of a member. The operator may also add a person.

        :raises MemberNotFound: the person is not a member, and the key is not the operator's.
        :raises OnlyOwner: the project would have no owner left.
        """
        known = {member.account_id for member in await self.projects.members(project)}
        if account_id not in known and not holder.is_operator:
            raise MemberNotFound("this person is not a member of the project: send an invitation")
        person = await self.keys.accounts.get(account_id)
        await self.projects.set_member(project, person, role, holder.caller.actor)
        members = await self.projects.members(project)
        return next(member for member in members if member.account_id == person.id)

    async def invite(
        self, holder: Administrator, project: Account, role: Role, address: str, days: int
    ) -> Invited:
        """Create an invitation. See `ManageProjects.invite`.

        A key of the operator's account invites as the operator only with the scope ``operator``.
        """
        inviter = replace(holder.account, is_operator=holder.is_operator)
        return await self.projects.invite(
            project, role, address, inviter, holder.caller.actor, days
        )

    async def create_key(self, holder: Administrator, account: Account, wish: KeyWish) -> IssuedKey:
        """Create a key of an account. It has at most the rights and limits of the holder's key.

        :raises NotPermitted: it would have more rights.
        """
        holder.caller.rights.require_at_most(wish.rights)
        most = None if holder.is_operator else holder.caller.limits
        if most is not None:
            wish = self._limited(wish, most)
        return await self.keys.create(account, wish, holder.caller.actor, holder.made_by, most)

    def _limited(self, wish: KeyWish, most: RequestLimits) -> KeyWish:
        """Return a wish without limits of its own with those of the holder, if they are lower."""
        default = self.keys.authenticator.default_limits
        per_minute, per_day = wish.per_minute, wish.per_day
        if per_minute is None and most.per_minute < default.per_minute:
            per_minute = most.per_minute
        if per_day is None and most.per_day < default.per_day:
            per_day = most.per_day
        return replace(wish, per_minute=per_minute, per_day=per_day)

    async def rotate_key(
        self, holder: Administrator, account: Account, key_id: str, overlap: int
    ) -> RotatedKey:
        """Replace a key of an account. The holder sees the new secret, so it must have its rights.

        :raises NotPermitted: the key has more rights or higher limits than that of the holder.
        """
        shown, most = await self.keys.show(account, key_id), holder.caller.limits
        holder.caller.rights.require_at_most(shown.key.rights)
        is_higher = shown.limits.per_minute > most.per_minute or shown.limits.per_day > most.per_day
        if is_higher and not holder.is_operator:
            raise NotPermitted(
                "a key cannot give more than it has: the limits of the key to rotate are higher "
                f"than its own, which are {most.per_minute} requests a minute and {most.per_day} "
                "a day"
            )
        return await self.keys.rotate(account, key_id, holder.caller.actor, holder.made_by, overlap)
