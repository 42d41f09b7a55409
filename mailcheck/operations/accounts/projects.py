"""Projects: create them, invite people, and change their members."""

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Account
from mailcheck.core.audit import COMMAND_LINE, Action, Actor
from mailcheck.core.errors import (
    AccountNotFound,
    InvitationInvalid,
    InvitationNotFound,
)
from mailcheck.core.identifiers import AccountId, digest_secret, new_session_secret
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.projects import Invitation, ListedInvitation, Member, Membership, Role
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.registration_rules import INVITATION_DAYS, RegistrationRules
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.accounts.project_store import Held, ProjectStore
from mailcheck.store.accounts.sign_in_store import session_id

MAX_PROJECTS = 20
"""Maximum number of projects that a person owns. Each has an inbox with a quota of its own."""


class Invited(Struct, frozen=True):
    """A new invitation, and the code for its link, which is shown once."""

    listed: ListedInvitation
    code: str


class ManageProjects(Struct, eq=False):
    """The operations on projects and their members. ``by`` is the person who asks for them."""

    store: ProjectStore
    accounts: ManageAccounts
    rules: RegistrationRules
    audit: Audit
    clocks: ClockAndRandomness

    async def create(
        self, owner: Account, name: str, by: Actor = COMMAND_LINE, *, is_assigned: bool = False
    ) -> Account:
        """Create a project with its own inbox. ``owner`` is its first member.

        :param is_assigned: whether the operator chooses the name, which may be reserved then.
        :raises InvalidParameter: the name is not acceptable, or the owner is not a person.
        :raises AccountNameTaken: the name, or a similar one, is taken or reserved.
        :raises TooManyProjects: the person owns the maximum number of projects.
        """
        is_assigned = is_assigned or owner.is_operator or by == COMMAND_LINE
        name = self.rules.names.require(name, is_assigned=is_assigned)
        owner.require_person()
        project = replace(await self.accounts.draft(name), is_project=True)
        first = Member(owner.id, owner.name, Role.OWNER, self.clocks.now())
        detail = f"owner {owner.name}"
        with self.audit.noting(Action.PROJECT_CREATED, project.id, by, detail) as entry:
            await self.store.add(project, first, MAX_PROJECTS, entry)
        return project

    async def rename(self, project: Account, name: str, by: Actor) -> None:
        """Rename a project. Its addresses and keys stay.

        :raises InvalidParameter: the name is not acceptable.
        :raises AccountNameTaken: the name, or a similar one, is taken or reserved.
        """
        await self.accounts.rename(project, self.rules.names.require(name), by)

    async def find(self, name: str) -> Account:
        """Return the project with a name.

        :raises AccountNotFound: no project has this name.
        """
        return _require_project(await self.accounts.find(name))

    async def meant_by(self, name: str) -> Account:
        """Return the project that an option names: the one that had the name at the first use.

        :raises AccountNotFound: no project had this name, or it was deleted.
        """
        return _require_project(await self.accounts.meant_by(name))

    async def members(self, project: Account) -> list[Member]:
        """List the members of a project, in the order in which they joined."""
        return await self.store.members(project.id)

    async def of_person(self, person: Account) -> list[Membership]:
        """List the projects of a person, by name."""
        return await self.store.projects_of(person.id)

    async def holder_of(self, kind: Held, object_id: str) -> AccountId | None:
        """Return the account that an object belongs to, or `None` if there is no such object."""
        return await self.store.holder_of(kind, object_id)

    async def set_member(
        self, project: Account, person: Account, role: Role, by: Actor = COMMAND_LINE
    ) -> None:
        """Add a person to a project, or change the role of a member.

        :raises InvalidParameter: the account is not a person.
        :raises OnlyOwner: the project would have no owner left.
        """
        person.require_person()
        member = Member(person.id, person.name, role, self.clocks.now())
        detail = f"{person.name}: {role}"
        with self.audit.noting(Action.MEMBER_SET, project.id, by, detail) as entry:
            await self.store.set_member(project.id, member, entry)

    async def remove_member(
        self, project: Account, account_id: AccountId, by: Actor = COMMAND_LINE
    ) -> None:
        """Remove a member from a project.

        :raises MemberNotFound: the project has no such member.
        :raises OnlyOwner: the project would have no owner left.
        """
        names = {member.account_id: member.name for member in await self.store.members(project.id)}
        detail = names.get(account_id, account_id)
        with self.audit.noting(Action.MEMBER_REMOVED, project.id, by, detail) as entry:
            await self.store.remove_member(project.id, account_id, entry)

    async def invite(
        self,
        project: Account,
        role: Role,
        address: str = "",
        inviter: Account | None = None,
        by: Actor = COMMAND_LINE,
        days: int = INVITATION_DAYS,
    ) -> Invited:
        """Create an invitation to a project.

        It can be used once, within ``days``.

        :param address: the mail address of a person who may have no account; empty for a person who
            has one.
        :param inviter: the owner who invites, or `None` on the command line.
        :raises InvalidParameter: the address is not a mail address, or too long for a name.
        :raises AccountNameTaken: the address is reserved.
        :raises RegistrationClosed: nobody without an account can be invited.
        :raises NotOperator: only operators may invite people without an account.
        :raises TooManyInvitations: the project has the maximum number of unused invitations.
        """
        if address:
            address = self.rules.require_invited(address, inviter)
        code, now = new_session_secret(self.clocks.random_bytes), self.clocks.now()
        digest = digest_secret(code)
        expires_at = Instant(now + days * DAY)
        detail = f"{address} as {role}" if address else f"as {role}"
        with self.audit.noting(Action.PERSON_INVITED, project.id, by, detail) as entry:
            await self.store.add_invitation(digest, project.id, role, address, expires_at, entry)
        return Invited(ListedInvitation(session_id(digest), role, address, expires_at), code)

    async def invitations(self, project: Account) -> list[ListedInvitation]:
        """List the invitations that can still be used; those that expire first come first."""
        return await self.store.list_invitations(project.id, self.clocks.now())

    async def revoke_invitation(self, project: Account, listed_id: str, by: Actor) -> None:
        """Revoke an invitation by its id in the list.

        :raises InvitationNotFound: the project has no such invitation.
        """
        with self.audit.noting(Action.INVITATION_REVOKED, project.id, by, listed_id) as entry:
            if not await self.store.revoke_invitation(project.id, listed_id, entry):
                raise InvitationNotFound(
                    "the project has no such invitation; it was used, or ended"
                )

    async def find_invitation(self, code: str) -> Invitation:
        """Return an invitation.

        :raises InvitationInvalid: the invitation is unknown, used or expired.
        """
        found = await self.store.find_invitation(digest_secret(code), self.clocks.now())
        if found is None:
            raise InvitationInvalid("this invitation has been used or has expired")
        return found

    async def join(self, person: Account, code: str, by: Actor) -> Membership:
        """Add a person to the project of an invitation, and return the membership.

        :raises InvitationInvalid: the invitation is unknown, used or expired.
        """
        with self.audit.noting(Action.MEMBER_SET, None, by) as entry:
            return await self.store.join(digest_secret(code), person.id, entry)

    async def register(
        self, account: Account, password_hash: str, code: str, by: Actor
    ) -> Membership:
        """Add a new account with a password to the project of an invitation.

        :raises AccountNameTaken: the name is taken; the invitation stays valid.
        :raises InvitationInvalid: the invitation is unknown, used or expired.
        """
        with self.audit.noting(Action.ACCOUNT_CREATED, account.id, by, "sign-up") as entry:
            return await self.store.register(account, password_hash, digest_secret(code), entry)


def _require_project(account: Account) -> Account:
    if not account.is_project:
        raise AccountNotFound(f"{account.name!r} is a person, not a project")
    return account
