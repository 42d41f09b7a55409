"""The store of people and groups that the directory of a company manages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Account
from mailcheck.core.audit import Action, AuditEntry
from mailcheck.core.errors import AccountIsOperator, AccountNameTaken, ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Member, Role
from mailcheck.core.signing_in.provisioning import (
    AlreadyProvisioned,
    ChangedMeanwhile,
    GroupDraft,
    Kind,
    ProjectRole,
    ProvisionedGroup,
    ProvisionedUser,
    ProvisioningRefused,
    Reference,
    UserDraft,
)
from mailcheck.ports.engine import Row, Transaction
from mailcheck.store.accounts.account_store import (
    ACCOUNT_COLUMNS,
    ACCOUNT_TABLES,
    ACCOUNTS_LOCK,
    disable_account,
    enable_account,
    insert_account,
    rename_account,
)
from mailcheck.store.accounts.audit_store import write_entry
from mailcheck.store.accounts.project_store import add_member
from mailcheck.store.transactions import Store, insert, json_of, read, value_of, write

_USERS = f"""
    SELECT {ACCOUNT_COLUMNS}, COALESCE(provisioned_user.user_name, account.name) AS user_name,
        provisioned_user.external_id, COALESCE(provisioned_user.profile, '{{}}') AS profile,
        COALESCE(provisioned_user.is_created, 0) AS is_created,
        COALESCE(provisioned_user.modified_at, account.created_at) AS modified_at,
        COALESCE(provisioned_user.version, 0) AS version
    FROM {ACCOUNT_TABLES} LEFT JOIN provisioned_user ON provisioned_user.account_id = account.id
    WHERE account.is_project = 0
"""

_GROUPS_OF_USERS = """
    SELECT provisioned_member.account_id, provisioned_group.id, provisioned_group.display_name
    FROM provisioned_member
    JOIN provisioned_group ON provisioned_group.id = provisioned_member.group_id
"""

_MEMBERS_OF_GROUPS = """
    SELECT provisioned_member.group_id, account.id,
        COALESCE(provisioned_user.user_name, account.name) AS display_name
    FROM provisioned_member JOIN account ON account.id = provisioned_member.account_id
    LEFT JOIN provisioned_user ON provisioned_user.account_id = account.id
"""

_GROUPS = """
    SELECT id, display_name, external_id, created_at, modified_at, version FROM provisioned_group
"""


class ProvisioningStore(Store):
    """People and groups. A change of one that has another version than it had fails."""

    @read
    def users(self, transaction: Transaction) -> list[ProvisionedUser]:
        """Return all people, oldest first."""
        groups = _by_first(transaction.rows(f"{_GROUPS_OF_USERS} ORDER BY display_name"))
        rows = transaction.rows(f"{_USERS} ORDER BY account.created_at, account.id")
        return [_user_of(row, groups.get(row.id, ())) for row in rows]

    @read
    def user(self, transaction: Transaction, account_id: str) -> ProvisionedUser | None:
        """Return a person, or `None`."""
        row = transaction.row(f"{_USERS} AND account.id = ?", (account_id,))
        if row is None:
            return None
        groups = transaction.rows(
            f"{_GROUPS_OF_USERS} WHERE provisioned_member.account_id = ? ORDER BY display_name",
            (account_id,),
        )
        return _user_of(row, _by_first(groups).get(row.id, ()))

    @read
    def groups(self, transaction: Transaction) -> list[ProvisionedGroup]:
        """Return all groups, oldest first."""
        members = _by_first(transaction.rows(f"{_MEMBERS_OF_GROUPS} ORDER BY display_name"))
        rows = transaction.rows(f"{_GROUPS} ORDER BY created_at, id")
        return [value_of(ProvisionedGroup, row, members=members.get(row.id, ())) for row in rows]

    @read
    def group(self, transaction: Transaction, group_id: str) -> ProvisionedGroup | None:
        """Return a group, or `None`."""
        row = transaction.row(f"{_GROUPS} WHERE id = ?", (group_id,))
        if row is None:
            return None
        members = transaction.rows(
            f"{_MEMBERS_OF_GROUPS} WHERE provisioned_member.group_id = ? ORDER BY display_name",
            (group_id,),
        )
        return value_of(ProvisionedGroup, row, members=_by_first(members).get(row.id, ()))

    @write
    def add_user(
        self, transaction: Transaction, account: Account, draft: UserDraft, entry: AuditEntry
    ) -> AccountId | AccountNameTaken | AlreadyProvisioned | AccountIsOperator:
        """Add a person, and return the id of the account.

        A person who has signed in as this person of the directory keeps the account. No other
        account is adopted.

        :raises AlreadyProvisioned: a person has this name or this external id.
        :raises AccountNameTaken: the name looks like an existing one.
        :raises AccountIsOperator: the account of the operator would be disabled.
        """
        transaction.lock(ACCOUNTS_LOCK)
        taken = _find_taken(transaction, draft, None)
        if taken is not None:
            return taken
        known = _find_signed_in(transaction, draft.external_id)
        refused = (
            _refuse_new(transaction, account, draft)
            if known is None
            else _refuse_to_disable(transaction, known, draft)
        )
        if refused is not None:
            return refused
        account_id = known or account.id
        action = Action.ACCOUNT_CREATED if known is None else Action.ACCOUNT_ADOPTED
        write_entry(transaction, replace(entry, action=action, account_id=account_id))
        _write_user(transaction, account_id, draft, entry.happened_at, is_created=known is None)
        _set_active(transaction, account_id, draft.is_active, entry)
        return account_id

    @write
    def change_user(
        self, transaction: Transaction, before: ProvisionedUser, draft: UserDraft, entry: AuditEntry
    ) -> ExpectedFailure | None:
        """Change a person. An account that the directory has not created keeps its name.

        :raises ChangedMeanwhile: the person was changed since ``before`` was read.
        :raises AlreadyProvisioned: another person has the name or the external id.
        :raises AccountNameTaken: the name looks like an existing one.
        :raises AccountIsOperator: the account of the operator would be disabled.
        :raises ProvisioningRefused: the request adopts the account and renames it at once.
        """
        transaction.lock(ACCOUNTS_LOCK)
        account_id = before.account.id
        row = transaction.row(f"{_USERS} AND account.id = ?", (account_id,))
        if row is None or row.version != before.version:
            return ChangedMeanwhile("the person was changed or deleted meanwhile: try again")
        is_renamed = draft.user_name != before.user_name
        if before.version == 0 and draft.user_name.casefold() != before.user_name.casefold():
            return ProvisioningRefused(
                Kind.MUTABILITY, "an account that was found by its name keeps it in this request"
            )
        refused: ExpectedFailure | None = (
            _find_taken(transaction, draft, account_id)
            or _find_by_name(transaction, draft.user_name, account_id)
            or _refuse_to_disable(transaction, account_id, draft)
        )
        if refused is None and is_renamed and before.is_created:
            refused = rename_account(
                transaction,
                account_id,
                draft.user_name.strip(),
                entry.followed_by(1, Action.ACCOUNT_RENAMED, account_id, f"was {row.name}"),
            )
        if refused is not None:
            return refused
        if replace(draft, is_active=None) != replace(before.draft, is_active=None):
            write_entry(transaction, entry)
        if before.version == 0:
            adopted = entry.followed_by(2, Action.ACCOUNT_ADOPTED, account_id, "")
            write_entry(transaction, adopted)
        _write_user(transaction, account_id, draft, entry.happened_at, is_created=before.is_created)
        _set_active(transaction, account_id, draft.is_active, entry)
        return None

    @write
    def add_group(
        self,
        transaction: Transaction,
        group_id: str,
        draft: GroupDraft,
        roles: Sequence[ProjectRole],
        entry: AuditEntry,
    ) -> AlreadyProvisioned | ProvisioningRefused | None:
        """Add a group, and give its members their roles.

        :raises AlreadyProvisioned: another group has the name.
        :raises ProvisioningRefused: a member is unknown.
        """
        transaction.lock(ACCOUNTS_LOCK)
        refused = _refuse_group(transaction, group_id, draft)
        if refused is not None:
            return refused
        now = entry.happened_at
        row = {"id": group_id, **_columns_of(draft), "created_at": now, "modified_at": now}
        insert(transaction, "provisioned_group", [{**row, "version": 1}])
        _set_members(transaction, group_id, draft.members)
        write_entry(transaction, entry)
        _follow_groups(transaction, roles, entry)
        return None

    @write
    def change_group(
        self,
        transaction: Transaction,
        before: ProvisionedGroup,
        draft: GroupDraft,
        roles: Sequence[ProjectRole],
        entry: AuditEntry,
    ) -> ChangedMeanwhile | AlreadyProvisioned | ProvisioningRefused | None:
        """Change a group, and give and take the roles that follow from it.

        :raises ChangedMeanwhile: the group was changed since ``before`` was read.
        :raises AlreadyProvisioned: another group has the name.
        :raises ProvisioningRefused: a member is unknown.
        """
        transaction.lock(ACCOUNTS_LOCK)
        refused = _refuse_group(transaction, before.id, draft)
        if refused is not None:
            return refused
        columns = _columns_of(draft)
        if not transaction.execute(
            "UPDATE provisioned_group SET display_name = ?, folded_name = ?, external_id = ?, "
            "modified_at = ?, version = version + 1 WHERE id = ? AND version = ?",
            (*columns.values(), entry.happened_at, before.id, before.version),
        ):
            return ChangedMeanwhile("the group was changed or deleted meanwhile: try again")
        _set_members(transaction, before.id, draft.members)
        write_entry(transaction, entry)
        _follow_groups(transaction, roles, entry)
        return None

    @write
    def delete_group(
        self,
        transaction: Transaction,
        group_id: str,
        roles: Sequence[ProjectRole],
        entry: AuditEntry,
    ) -> bool:
        """Delete a group, and take the roles that it gave; return false if there is none."""
        transaction.lock(ACCOUNTS_LOCK)
        if not transaction.execute("DELETE FROM provisioned_group WHERE id = ?", (group_id,)):
            return False
        write_entry(transaction, entry)
        _follow_groups(transaction, roles, entry)
        return True

    @write
    def follow_groups(
        self, transaction: Transaction, roles: Sequence[ProjectRole], entry: AuditEntry
    ) -> None:
        """Give and take the roles that follow from the groups, after a change of the mapping."""
        transaction.lock(ACCOUNTS_LOCK)
        _follow_groups(transaction, roles, entry)


def _by_first(rows: Iterable[Row]) -> Mapping[str, tuple[Reference, ...]]:
    """Return the references of rows by their first column."""
    found: dict[str, list[Reference]] = {}
    for owner, other_id, name in rows:
        found.setdefault(owner, []).append(Reference(other_id, name))
    return {owner: tuple(references) for owner, references in found.items()}


def _user_of(row: Row, groups: tuple[Reference, ...]) -> ProvisionedUser:
    account = value_of(Account, row)
    return value_of(ProvisionedUser, row, account=account, groups=groups)


def _find_taken(
    transaction: Transaction, draft: UserDraft, account_id: AccountId | None
) -> AlreadyProvisioned | None:
    """Return an error if another person of the directory has the name or the external id."""
    row = transaction.row(
        "SELECT folded_name FROM provisioned_user "
        "WHERE (folded_name = ? OR external_id = ?) AND account_id <> ?",
        (draft.user_name.casefold(), draft.external_id, account_id or ""),
    )
    if row is None:
        return None
    is_name = row.folded_name == draft.user_name.casefold()
    value = f"userName {draft.user_name!r}" if is_name else f"externalId {draft.external_id!r}"
    return AlreadyProvisioned(f"another person has the {value}")


def _find_by_name(
    transaction: Transaction, user_name: str, account_id: AccountId | None
) -> AlreadyProvisioned | None:
    """Return an error if a person whom the directory does not manage yet has the name."""
    folded = user_name.casefold()
    rows = transaction.rows(
        "SELECT id, name FROM account WHERE is_project = 0 AND NOT EXISTS "
        "(SELECT 1 FROM provisioned_user WHERE provisioned_user.account_id = account.id)"
    )
    if not any(row.name.casefold() == folded and row.id != account_id for row in rows):
        return None
    return AlreadyProvisioned(
        f"a person has the account {user_name!r} already: find it by a filter for userName"
    )


def _find_signed_in(transaction: Transaction, external_id: str | None) -> AccountId | None:
    """Return the account of a person who has signed in, and whom no directory manages yet."""
    if external_id is None:
        return None
    row = transaction.row(
        "SELECT account_id FROM linked_identity WHERE external_id = ? AND NOT EXISTS (SELECT 1 "
        "FROM provisioned_user WHERE provisioned_user.account_id = linked_identity.account_id)",
        (external_id,),
    )
    return None if row is None else row.account_id


def _write_user(
    transaction: Transaction,
    account_id: AccountId,
    draft: UserDraft,
    now: Instant,
    *,
    is_created: bool,
) -> None:
    transaction.execute(
        "INSERT INTO provisioned_user (account_id, user_name, folded_name, external_id, profile, "
        "is_created, modified_at, version) VALUES (?, ?, ?, ?, ?, ?, ?, 1) "
        "ON CONFLICT (account_id) DO UPDATE SET user_name = excluded.user_name, "
        "folded_name = excluded.folded_name, external_id = excluded.external_id, "
        "profile = excluded.profile, modified_at = excluded.modified_at, "
        "version = provisioned_user.version + 1",
        (
            account_id,
            draft.user_name,
            draft.user_name.casefold(),
            draft.external_id,
            json_of(draft.profile),
            int(is_created),
            now,
        ),
    )


def _refuse_new(
    transaction: Transaction, account: Account, draft: UserDraft
) -> AlreadyProvisioned | AccountNameTaken | None:
    """Add an account, or return an error if its name is taken."""
    named = _find_by_name(transaction, draft.user_name, None)
    return named if named is not None else insert_account(transaction, account)


def _refuse_to_disable(
    transaction: Transaction, account_id: AccountId, draft: UserDraft
) -> AccountIsOperator | None:
    """Return an error if a directory would disable the account of the operator."""
    if draft.is_active is not False:
        return None
    row = transaction.row("SELECT name, is_operator FROM account WHERE id = ?", (account_id,))
    if row is None or not row.is_operator:
        return None
    problem = f"{row.name!r} is the operator's account: give that role to another account first"
    return AccountIsOperator(problem)


def _set_active(
    transaction: Transaction, account_id: AccountId, is_active: bool | None, entry: AuditEntry
) -> None:
    """Enable or disable an account, unless it is so already. The entries are written here.

    Keys and grants end for good. So being enabled again revives none, whoever disabled the account.
    """
    if is_active is None:
        return
    action = Action.ACCOUNT_ENABLED if is_active else Action.ACCOUNT_DISABLED
    set_active = enable_account if is_active else disable_account
    if set_active(transaction, account_id, entry.followed_by(3, action, account_id, "")):
        transaction.execute("DELETE FROM sign_in_link WHERE account_id = ?", (account_id,))
        transaction.execute(
            "UPDATE api_key SET revoked_at = ? WHERE revoked_at IS NULL "
            "AND (account_id = ? OR granted_by = ?)",
            (entry.happened_at, account_id, account_id),
        )


def _refuse_group(
    transaction: Transaction, group_id: str, draft: GroupDraft
) -> AlreadyProvisioned | ProvisioningRefused | None:
    """Return an error if another group has the name, or if a member is not a person."""
    name = draft.display_name
    if transaction.row(
        "SELECT 1 FROM provisioned_group WHERE folded_name = ? AND id <> ?",
        (name.casefold(), group_id),
    ):
        return AlreadyProvisioned(f"there is a group {name!r} already")
    known = {
        row.id
        for row in transaction.rows_over(
            "SELECT id FROM account WHERE is_project = 0 AND id IN ({rows})",
            [(account_id,) for account_id in draft.members],
        )
    }
    unknown = [account_id for account_id in draft.members if account_id not in known]
    if not unknown:
        return None
    return ProvisioningRefused(
        Kind.INVALID_VALUE, f"no person has the id {unknown[0][:60]!r}; members are people"
    )


def _columns_of(draft: GroupDraft) -> dict[str, str | int | None]:
    return {
        "display_name": draft.display_name,
        "folded_name": draft.display_name.casefold(),
        "external_id": draft.external_id,
    }


def _set_members(transaction: Transaction, group_id: str, members: Sequence[AccountId]) -> None:
    transaction.execute("DELETE FROM provisioned_member WHERE group_id = ?", (group_id,))
    insert(
        transaction,
        "provisioned_member",
        [{"group_id": group_id, "account_id": account_id} for account_id in members],
    )


class _Place(Struct, frozen=True):
    """A person in a project."""

    project_id: AccountId
    account_id: AccountId


def _follow_groups(
    transaction: Transaction, roles: Sequence[ProjectRole], entry: AuditEntry
) -> None:
    """Give and take roles so that they are those of the groups.

    A role that somebody has set by hand stays, unless the groups give a higher one. So does the
    last owner of a project.
    """
    wanted = _wanted_roles(transaction, roles)
    given = _roles_in(transaction, "provisioned_role")
    present = _roles_in(transaction, "member")
    names = {row.id: row.name for row in transaction.rows("SELECT id, name FROM account")}
    number = 100
    for place in sorted({*wanted, *given}, key=lambda one: (one.project_id, one.account_id)):
        role, before, current = wanted.get(place), given.get(place), present.get(place)
        if role is before:
            continue
        is_ours = current is before
        if role is None:
            is_changed = is_ours and current is not None
        else:
            is_changed = current is not role and (
                is_ours or current is None or role.includes(current)
            )
        if is_changed and not _keeps_owner(present, place, role):
            continue
        _note_given(transaction, place, role)
        if not is_changed:
            continue
        number += 1
        name = names[place.account_id]
        if role is None:
            transaction.execute(
                "DELETE FROM member WHERE project_id = ? AND account_id = ?",
                (place.project_id, place.account_id),
            )
            del present[place]
            followed = entry.followed_by(number, Action.MEMBER_REMOVED, place.project_id, name)
        else:
            member = Member(place.account_id, name, role, entry.happened_at)
            add_member(transaction, place.project_id, member)
            present[place] = role
            detail = f"{name}: {role}"
            followed = entry.followed_by(number, Action.MEMBER_SET, place.project_id, detail)
        write_entry(transaction, followed)


def _wanted_roles(transaction: Transaction, roles: Sequence[ProjectRole]) -> dict[_Place, Role]:
    """Return the highest role that the groups give each person in each project."""
    mapped: dict[str, list[ProjectRole]] = {}
    for role in roles:
        mapped.setdefault(role.group, []).append(role)
    wanted: dict[_Place, Role] = {}
    for row in transaction.rows(_GROUPS_OF_USERS):
        for role in mapped.get(row.display_name, ()):
            place = _Place(role.project_id, row.account_id)
            known = wanted.get(place)
            if known is None or role.role.includes(known):
                wanted[place] = role.role
    return wanted


def _roles_in(transaction: Transaction, table: str) -> dict[_Place, Role]:
    rows = transaction.rows(f"SELECT project_id, account_id, role FROM {table}")
    return {_Place(row.project_id, row.account_id): Role(row.role) for row in rows}


def _keeps_owner(present: Mapping[_Place, Role], place: _Place, role: Role | None) -> bool:
    """Return whether a project has an owner after a change."""
    if role is Role.OWNER or present.get(place) is not Role.OWNER:
        return True
    return any(
        known is Role.OWNER and other.project_id == place.project_id and other != place
        for other, known in present.items()
    )


def _note_given(transaction: Transaction, place: _Place, role: Role | None) -> None:
    if role is None:
        transaction.execute(
            "DELETE FROM provisioned_role WHERE project_id = ? AND account_id = ?",
            (place.project_id, place.account_id),
        )
    else:
        transaction.execute(
            "INSERT INTO provisioned_role (project_id, account_id, role) VALUES (?, ?, ?) "
            "ON CONFLICT (project_id, account_id) DO UPDATE SET role = excluded.role",
            (place.project_id, place.account_id, str(role)),
        )
