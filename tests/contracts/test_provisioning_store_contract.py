"""The contract of `ProvisioningStore` on every engine."""

import pytest
from msgspec.structs import replace

from mailcheck.core.audit import Action, AuditFilter
from mailcheck.core.errors import AccountIsOperator, AccountNameTaken
from mailcheck.core.identifiers import AccountId
from mailcheck.core.projects import Member, Role
from mailcheck.core.signing_in.company import LinkedIdentity
from mailcheck.core.signing_in.provisioning import (
    AlreadyProvisioned,
    ChangedMeanwhile,
    GroupDraft,
    ProjectRole,
    ProvisionedUser,
    ProvisioningRefused,
    Reference,
    UserDraft,
)
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted

ANN = UserDraft("Ann@Example.com", "x-ann", {"displayName": "Ann Ä"}, True)
SHOP = AccountId("shop")
EDITORS = [ProjectRole("editors", SHOP, Role.EDITOR)]


def draft(name: str, external_id: str | None = None, is_active: bool | None = None) -> UserDraft:
    """Return what a directory says about a person."""
    return UserDraft(name, external_id, {}, is_active)


async def add(empty: Stores, name: str, said: UserDraft | None = None) -> AccountId:
    """Add a person with an account of this name."""
    said = said or draft(name)
    return await empty.provisioning.add_user(account(name), said, noted())


async def shown(empty: Stores, name: str) -> ProvisionedUser:
    """Return a person."""
    found = await empty.provisioning.user(name)
    assert found is not None
    return found


async def test_a_person_is_added(empty: Stores) -> None:
    """A person is read as added, among all people, and an account of a project is none."""
    assert await add(empty, "ann", ANN) == "ann"
    await empty.accounts.add_account(account("shop", is_project=True), noted())
    await empty.accounts.add_account(account("bob", created_at=at(1)), noted())
    ann, bob = await empty.provisioning.users()
    assert ann == ProvisionedUser(
        account("ann"), "Ann@Example.com", "x-ann", {"displayName": "Ann Ä"}, True, NOON, version=1
    )
    assert ann.draft == ANN
    assert (bob.user_name, bob.version, bob.is_created) == ("bob", 0, False)
    assert await empty.provisioning.user("ann") == ann
    assert await empty.provisioning.user("shop") is None


async def test_each_name_and_id_belongs_to_one_person(empty: Stores) -> None:
    """A name that differs in case, and an external id, are refused for another person."""
    await empty.accounts.add_account(account("bob"), noted())
    await add(empty, "ann", ANN)
    for name, said in (
        ("other", draft("ann@example.com")),
        ("other", draft("other", "x-ann")),
        ("other", draft("BOB")),
    ):
        with pytest.raises(AlreadyProvisioned):
            await add(empty, name, said)
    with pytest.raises(AccountNameTaken):
        await empty.provisioning.add_user(account("b0b"), draft("b0b"), noted())
    assert [one.account.id for one in await empty.provisioning.users()] == ["ann", "bob"]


async def test_a_change_is_refused_after_another(empty: Stores) -> None:
    """A change that was made from an older version changes nothing."""
    await add(empty, "ann", ANN)
    before = await shown(empty, "ann")
    changed = replace(ANN, user_name="Ann2@example.com", profile={})
    await empty.provisioning.change_user(before, changed, noted())
    with pytest.raises(ChangedMeanwhile):
        await empty.provisioning.change_user(before, ANN, noted())
    after = await shown(empty, "ann")
    assert (after.draft, after.version) == (changed, 2)
    assert after.account.name == "Ann2@example.com"


async def test_disabling_is_in_the_same_transaction(empty: Stores) -> None:
    """A disabled person has lost the sessions and keys; the operator stays."""
    await add(empty, "ann", ANN)
    await empty.sessions.open_session(b"s", AccountId("ann"), at(60), noted())
    left = replace(ANN, is_active=False)
    await empty.provisioning.change_user(await shown(empty, "ann"), left, noted())
    assert (await shown(empty, "ann")).account.disabled_at == NOON
    assert await empty.sessions.find_session(b"s", NOON) is None
    await empty.accounts.make_operator(AccountId("ann"), noted())
    await empty.provisioning.change_user(await shown(empty, "ann"), ANN, noted())
    with pytest.raises(AccountIsOperator):
        await empty.provisioning.change_user(await shown(empty, "ann"), left, noted())
    actions = [entry.action for entry in await empty.audit.newest(AuditFilter(), 0, 50)]
    assert Action.ACCOUNT_DISABLED in actions
    assert Action.ACCOUNT_ENABLED in actions


async def test_whoever_signed_in_keeps_the_account(empty: Stores) -> None:
    """A person who has signed in with the external id keeps the account and its name."""
    identity = LinkedIdentity("https://login.example", "s-1", AccountId("ann"), NOON, "x-ann")
    await empty.identities.add_person(account("ann"), identity, noted())
    assert await add(empty, "other", ANN) == "ann"
    known = await shown(empty, "ann")
    assert (known.user_name, known.account.name, known.is_created) == (
        "Ann@Example.com",
        "ann",
        False,
    )
    managed = await empty.identities.find_managed("x-ann")
    assert managed is not None
    assert (managed.account.id, managed.is_created) == ("ann", False)
    assert await empty.identities.find_managed("x-bob") is None


async def test_groups_give_roles(empty: Stores) -> None:
    """The members of a mapped group have the role, as long as the group has them."""
    await empty.accounts.add_account(account("shop", is_project=True), noted())
    for name in ("ann", "bob", "eve"):
        await add(empty, name)
    await empty.projects.set_member(SHOP, Member(AccountId("eve"), "", Role.OWNER, NOON), noted())
    everyone = tuple(AccountId(name) for name in ("ann", "bob", "eve"))
    said = GroupDraft("editors", "g", everyone)
    await empty.provisioning.add_group("g1", said, EDITORS, noted())
    with pytest.raises(AlreadyProvisioned):
        await empty.provisioning.add_group("g2", replace(said, display_name="EDITORS"), [], noted())
    assert await roles(empty) == {"ann": "editor", "bob": "editor", "eve": "owner"}
    [group] = await empty.provisioning.groups()
    assert group.draft == said
    assert (await shown(empty, "ann")).groups == (Reference("g1", "editors"),)
    fewer = replace(said, members=everyone[1:])
    await empty.provisioning.change_group(group, fewer, EDITORS, noted())
    with pytest.raises(ChangedMeanwhile):
        await empty.provisioning.change_group(group, said, EDITORS, noted())
    assert await roles(empty) == {"bob": "editor", "eve": "owner"}
    unknown = replace(fewer, members=(AccountId("shop"),))
    current = await empty.provisioning.group("g1")
    assert current is not None
    with pytest.raises(ProvisioningRefused):
        await empty.provisioning.change_group(current, unknown, EDITORS, noted())
    await empty.removal.delete(AccountId("bob"), noted())
    assert await roles(empty) == {"eve": "owner"}
    assert await empty.provisioning.delete_group("g1", EDITORS, noted())
    assert not await empty.provisioning.delete_group("g1", EDITORS, noted())
    assert await roles(empty) == {"eve": "owner"}
    assert await empty.provisioning.group("g1") is None


async def roles(empty: Stores) -> dict[str, str]:
    """Return the members of the project and their roles."""
    return {one.name: one.role for one in await empty.projects.members(SHOP)}
