"""The store of projects: their members and invitations."""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from mailcheck.core.accounts import Account
from mailcheck.core.audit import Action, AuditEntry
from mailcheck.core.errors import (
    AccountNameTaken,
    InvitationInvalid,
    MemberNotFound,
    OnlyOwner,
    TooManyInvitations,
    TooManyProjects,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.projects import (
    MAX_INVITATIONS,
    Invitation,
    ListedInvitation,
    Member,
    Membership,
    Role,
)
from mailcheck.ports.engine import Transaction, Value
from mailcheck.store.accounts.account_store import (
    ACCOUNT_COLUMNS,
    ACCOUNT_TABLES,
    ACCOUNTS_LOCK,
    insert_account,
    memberships_of,
)
from mailcheck.store.accounts.audit_store import write_entry, write_entry_if
from mailcheck.store.accounts.sign_in_store import INTO_PASSWORD, delete_listed, session_id
from mailcheck.store.transactions import Store, insert, read, read_values, value_of, write

_MEMBERS = """
    SELECT member.account_id, account.name, member.role, member.added_at
    FROM member JOIN account ON account.id = member.account_id
"""


class Held(StrEnum):
    """The kinds of objects that belong to an account and have an id. The values are tables."""

    MESSAGE = "message"
    TEST = "deliverability_test"
    REPORT = "receiver_report"
    WEBHOOK = "webhook"
    WATCH = "watch"
    KEY = "api_key"
    ROUTE = "inbound_route"
    INBOUND_MAIL = "inbound_mail"


class ProjectStore(Store):
    """Projects. Their other data is that of accounts."""

    @write
    def add(
        self,
        transaction: Transaction,
        project: Account,
        owner: Member,
        maximum: int,
        entry: AuditEntry,
    ) -> AccountNameTaken | TooManyProjects | None:
        """Add a project with its first owner.

        :raises AccountNameTaken: the name exists, or looks like an existing one.
        :raises TooManyProjects: the person owns ``maximum`` projects.
        """
        transaction.lock(ACCOUNTS_LOCK)
        owned = transaction.rows(
            "SELECT 1 FROM member WHERE account_id = ? AND role = ?",
            (owner.account_id, Role.OWNER),
        )
        if len(owned) >= maximum:
            return TooManyProjects(f"a person owns at most {maximum} projects: delete one first")
        taken = insert_account(transaction, project)
        if taken is None:
            add_member(transaction, project.id, owner)
            write_entry(transaction, entry)
        return taken

    @read
    def members(self, transaction: Transaction, project_id: AccountId) -> list[Member]:
        """Return the members of a project, in the order in which they joined."""
        sql = f"{_MEMBERS} WHERE member.project_id = ? ORDER BY member.added_at, account.name"
        return read_values(transaction, Member, sql, (project_id,))

    @read
    def projects_of(self, transaction: Transaction, account_id: AccountId) -> list[Membership]:
        """Return the projects of a person, by name."""
        return memberships_of(transaction, account_id)

    @read
    def holder_of(self, transaction: Transaction, kind: Held, object_id: str) -> AccountId | None:
        """Return the account that an object belongs to, or `None` if there is no such object."""
        row = transaction.row(f"SELECT account_id FROM {kind} WHERE id = ?", (object_id,))
        return None if row is None else row.account_id

    @write
    def set_member(
        self, transaction: Transaction, project_id: AccountId, member: Member, entry: AuditEntry
    ) -> OnlyOwner | None:
        """Add a member, or change the role of one.

        :raises OnlyOwner: the project would have no owner left.
        """
        only = _refuse_last_owner(transaction, project_id, member.account_id)
        if only is not None and member.role is not Role.OWNER:
            return only
        add_member(transaction, project_id, member)
        write_entry(transaction, entry)
        return None

    @write
    def remove_member(
        self,
        transaction: Transaction,
        project_id: AccountId,
        account_id: AccountId,
        entry: AuditEntry,
    ) -> OnlyOwner | MemberNotFound | None:
        """Remove a member from a project.

        :raises MemberNotFound: the project has no such member.
        :raises OnlyOwner: the project would have no owner left.
        """
        only = _refuse_last_owner(transaction, project_id, account_id)
        if only is not None:
            return only
        gone = transaction.execute(
            "DELETE FROM member WHERE project_id = ? AND account_id = ?", (project_id, account_id)
        )
        if not write_entry_if(transaction, entry, gone):
            return MemberNotFound("this person is not a member of the project")
        return None

    @write
    def add_invitation(
        self,
        transaction: Transaction,
        digest: bytes,
        project_id: AccountId,
        role: Role,
        address: str,
        expires_at: Instant,
        entry: AuditEntry,
    ) -> TooManyInvitations | None:
        """Add an invitation to a project, and delete expired ones.

        :raises TooManyInvitations: the project has `MAX_INVITATIONS`.
        """
        now = entry.happened_at
        transaction.execute("DELETE FROM project_invitation WHERE expires_at <= ?", (now,))
        unused = transaction.rows(
            "SELECT 1 FROM project_invitation WHERE project_id = ?", (project_id,)
        )
        if len(unused) >= MAX_INVITATIONS:
            return TooManyInvitations(
                f"a project has at most {MAX_INVITATIONS} unused invitations: revoke one first"
            )
        row: dict[str, Value] = {
            "digest": digest,
            "project_id": project_id,
            "role": str(role),
            "address": address,
            "expires_at": expires_at,
        }
        insert(transaction, "project_invitation", [row])
        write_entry(transaction, entry)
        return None

    @read
    def list_invitations(
        self, transaction: Transaction, project_id: AccountId, now: Instant
    ) -> list[ListedInvitation]:
        """Return the valid invitations to a project, those that expire first at the beginning."""
        rows = transaction.rows(
            "SELECT digest, role, address, expires_at FROM project_invitation "
            "WHERE project_id = ? AND expires_at > ? ORDER BY expires_at, digest",
            (project_id, now),
        )
        return [
            ListedInvitation(session_id(row.digest), Role(row.role), row.address, row.expires_at)
            for row in rows
        ]

    @write
    def revoke_invitation(
        self, transaction: Transaction, project_id: AccountId, listed_id: str, entry: AuditEntry
    ) -> bool:
        """Delete an invitation by its id in the list; return false if there is none."""
        gone = delete_listed(transaction, "project_invitation", "project_id", project_id, listed_id)
        return write_entry_if(transaction, entry, gone)

    @read
    def find_invitation(
        self, transaction: Transaction, digest: bytes, now: Instant
    ) -> Invitation | None:
        """Return a valid invitation, or `None`."""
        return _find_invitation(transaction, digest, now)

    @write
    def join(
        self, transaction: Transaction, digest: bytes, account_id: AccountId, entry: AuditEntry
    ) -> Membership | InvitationInvalid:
        """Add a person to a project, and use up the invitation.

        A person who has a higher role already keeps it.

        :raises InvitationInvalid: the invitation was used, has expired, or never existed.
        """
        return _join(transaction, digest, account_id, entry)

    @write
    def register(
        self,
        transaction: Transaction,
        account: Account,
        password_hash: str,
        digest: bytes,
        entry: AuditEntry,
    ) -> Membership | AccountNameTaken | InvitationInvalid:
        """Add an account with a password to a project, and use up the invitation.

        :raises AccountNameTaken: the name is taken; the invitation stays valid.
        :raises InvitationInvalid: it was used, has expired, or never existed; no account is added.
        """
        transaction.lock(ACCOUNTS_LOCK)
        now = entry.happened_at
        if _find_invitation(transaction, digest, now) is None:
            return InvitationInvalid("this invitation was used before, or has expired")
        taken = insert_account(transaction, account)
        if taken is not None:
            return taken
        transaction.execute(INTO_PASSWORD, (account.id, password_hash, now))
        write_entry(transaction, entry)
        joining = entry.followed_by(1, Action.MEMBER_SET, None, "")
        return _join(transaction, digest, account.id, joining)


def _join(
    transaction: Transaction, digest: bytes, account_id: AccountId, entry: AuditEntry
) -> Membership | InvitationInvalid:
    now = entry.happened_at
    invitation = _find_invitation(transaction, digest, now)
    gone = transaction.execute("DELETE FROM project_invitation WHERE digest = ?", (digest,))
    if invitation is None or not gone:
        return InvitationInvalid("this invitation was used before, or has expired")
    offered = invitation.membership
    known = _role_of(transaction, offered.project.id, account_id)
    joined = offered
    if known is not None and known.includes(offered.role):
        joined = Membership(offered.project, known)
    else:
        add_member(transaction, offered.project.id, Member(account_id, "", offered.role, now))
    person = transaction.row("SELECT name FROM account WHERE id = ?", (account_id,))
    detail = f"{person.name if person else account_id}: {joined.role}"
    write_entry(transaction, replace(entry, account_id=joined.project.id, detail=detail))
    return joined


def add_member(transaction: Transaction, project_id: AccountId, member: Member) -> None:
    """Add a member to a project, or change the role of one."""
    transaction.execute(
        "INSERT INTO member (project_id, account_id, role, added_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (project_id, account_id) DO UPDATE SET role = excluded.role",
        (project_id, member.account_id, str(member.role), member.added_at),
    )


def _role_of(transaction: Transaction, project_id: AccountId, account_id: AccountId) -> Role | None:
    row = transaction.row(
        "SELECT role FROM member WHERE project_id = ? AND account_id = ?", (project_id, account_id)
    )
    return None if row is None else Role(row.role)


def _refuse_last_owner(
    transaction: Transaction, project_id: AccountId, account_id: AccountId
) -> OnlyOwner | None:
    """Return an error if a person is the only owner of a project."""
    transaction.lock(ACCOUNTS_LOCK)
    owners = [
        row.account_id
        for row in transaction.rows(
            "SELECT account_id FROM member WHERE project_id = ? AND role = ?",
            (project_id, Role.OWNER),
        )
    ]
    if owners != [account_id]:
        return None
    return OnlyOwner("this person is the only owner of the project: make another member an owner")


def _find_invitation(transaction: Transaction, digest: bytes, now: Instant) -> Invitation | None:
    row = transaction.row(
        f"SELECT {ACCOUNT_COLUMNS}, project_invitation.role, project_invitation.address "
        f"FROM {ACCOUNT_TABLES} "
        "JOIN project_invitation ON project_invitation.project_id = account.id "
        "WHERE project_invitation.digest = ? AND project_invitation.expires_at > ?",
        (digest, now),
    )
    if row is None:
        return None
    return Invitation(Membership(value_of(Account, row), Role(row.role)), row.address)
