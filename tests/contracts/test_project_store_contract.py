"""The contract of `ProjectStore` on every engine."""

import pytest

from mailcheck.core.accounts import Account
from mailcheck.core.errors import (
    AccountIsOperator,
    AccountNameTaken,
    InvitationInvalid,
    MemberNotFound,
    OnlyOwner,
    TooManyInvitations,
    TooManyProjects,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.projects import MAX_INVITATIONS, Invitation, Member, Membership, Role
from mailcheck.store.accounts.project_store import Held
from mailcheck.store.accounts.sign_in_store import SessionRow
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted
from tests.table import rows

ANN, BOB, SHOP = AccountId("ann"), AccountId("bob"), AccountId("shop")
CODE = b"1" * 32


def member(name: str, role: Role, seconds: float = 0) -> Member:
    """Return a member."""
    return Member(AccountId(name), name, role, at(seconds))


async def shop_of_ann(stores: Stores) -> Account:
    """Add a project of Ann's."""
    shop = account("shop", is_project=True)
    await stores.projects.add(shop, member("ann", Role.OWNER), 5, noted())
    return shop


async def test_a_project_is_an_account_with_members(stores: Stores) -> None:
    """A project has a name and an inbox like every account, and its first owner."""
    shop = await shop_of_ann(stores)
    assert await stores.accounts.find_account("shop") == shop
    assert await stores.deliveries.find_inbox("dev-shop") is not None
    assert await stores.projects.members(SHOP) == [member("ann", Role.OWNER)]
    assert await stores.projects.projects_of(ANN) == [Membership(shop, Role.OWNER)]
    assert await stores.projects.projects_of(BOB) == []


async def test_names_and_numbers_of_projects(stores: Stores) -> None:
    """A project has a name of its own, and a person owns at most so many."""
    await shop_of_ann(stores)
    twin = Account(AccountId("x"), "bob", "dev-x", False, NOON, None, None, is_project=True)
    with pytest.raises(AccountNameTaken):
        await stores.projects.add(twin, member("ann", Role.OWNER), 5, noted())
    more = account("more", is_project=True)
    with pytest.raises(TooManyProjects):
        await stores.projects.add(more, member("ann", Role.OWNER), 1, noted())
    await stores.projects.add(more, member("bob", Role.OWNER), 1, noted())


async def test_members_are_set_and_removed(stores: Stores) -> None:
    """A member gets one role at a time; a project always has an owner."""
    await shop_of_ann(stores)
    await stores.projects.set_member(SHOP, member("bob", Role.READER, 1), noted())
    await stores.projects.set_member(SHOP, member("bob", Role.EDITOR, 2), noted())
    assert await stores.projects.members(SHOP) == [
        member("ann", Role.OWNER),
        member("bob", Role.EDITOR, 1),
    ]
    for wish in (
        stores.projects.remove_member(SHOP, ANN, noted()),
        stores.projects.set_member(SHOP, member("ann", Role.READER), noted()),
    ):
        with pytest.raises(OnlyOwner):
            await wish
    assert await stores.removal.projects_without(ANN) == ["shop"]
    await stores.projects.set_member(SHOP, member("ann", Role.OWNER), noted())
    await stores.projects.set_member(SHOP, member("bob", Role.OWNER), noted())
    assert await stores.removal.projects_without(ANN) == []
    await stores.projects.remove_member(SHOP, ANN, noted())
    with pytest.raises(MemberNotFound):
        await stores.projects.remove_member(SHOP, ANN, noted())
    assert await stores.projects.members(SHOP) == [member("bob", Role.OWNER, 1)]


async def test_unused_invitations_are_bounded(stores: Stores) -> None:
    """A project has at most so many invitations; expired ones make room."""
    await shop_of_ann(stores)

    async def add(number: int, seconds: float) -> None:
        digest = number.to_bytes(32, "big")
        moment = noted(at(seconds))
        await stores.projects.add_invitation(
            digest, SHOP, Role.READER, "", at(10 + seconds), moment
        )

    for number in range(MAX_INVITATIONS):
        await add(number, 0)
    with pytest.raises(TooManyInvitations):
        await add(1_000, 9)
    await add(1_000, 10)


async def test_invitations(stores: Stores) -> None:
    """An invitation is used once before it expires, and never lowers a role."""
    shop = await shop_of_ann(stores)
    await stores.projects.add_invitation(CODE, SHOP, Role.EDITOR, "", at(10), noted(NOON))
    assert await stores.projects.find_invitation(CODE, at(9)) == Invitation(
        Membership(shop, Role.EDITOR)
    )
    assert await stores.projects.find_invitation(CODE, at(10)) is None
    assert await stores.projects.find_invitation(b"2" * 32, NOON) is None
    assert await stores.projects.join(CODE, BOB, noted(at(1))) == Membership(shop, Role.EDITOR)
    with pytest.raises(InvitationInvalid):
        await stores.projects.join(CODE, BOB, noted(at(1)))
    await stores.projects.add_invitation(CODE, SHOP, Role.READER, "", at(10), noted(NOON))
    assert await stores.projects.join(CODE, ANN, noted(at(1))) == Membership(shop, Role.OWNER)
    await stores.projects.add_invitation(CODE, SHOP, Role.READER, "", at(10), noted(NOON))
    with pytest.raises(InvitationInvalid):
        await stores.projects.join(CODE, BOB, noted(at(10)))
    assert len(await stores.projects.members(SHOP)) == 2


async def test_registering_with_an_invitation(stores: Stores) -> None:
    """An account that is created with an invitation is a member; a taken name keeps it."""
    shop = await shop_of_ann(stores)
    add = stores.projects.add_invitation
    await add(CODE, SHOP, Role.READER, "carol@example.com", at(10), noted(NOON))
    offered = Membership(shop, Role.READER)
    assert await stores.projects.find_invitation(CODE, NOON) == Invitation(
        offered, "carol@example.com"
    )
    twin = Account(AccountId("x"), "bob", "dev-x", False, NOON, None, None)
    with pytest.raises(AccountNameTaken):
        await stores.projects.register(twin, "hash", CODE, noted(at(1)))
    assert await stores.projects.register(account("carol"), "hash", CODE, noted(at(1))) == offered
    assert (await stores.projects.members(SHOP))[1:] == [member("carol", Role.READER, 1)]
    with pytest.raises(InvitationInvalid):
        await stores.projects.register(account("dave"), "hash", CODE, noted(at(1)))
    assert await stores.accounts.find_account("dave") is None


async def test_a_session_has_the_projects_of_its_person(stores: Stores) -> None:
    """A session has the projects that the person is a member of, unless they are disabled."""
    shop = await shop_of_ann(stores)
    await stores.sessions.open_session(CODE, BOB, at(100), noted(NOON, "192.0.2.7"))
    own = SessionRow(account("bob"), NOON, NOON, NOON)
    assert await stores.sessions.find_session(CODE, at(1)) == own
    await stores.projects.set_member(SHOP, member("bob", Role.READER), noted())
    member_of = SessionRow(account("bob"), NOON, NOON, NOON, (Membership(shop, Role.READER),))
    assert await stores.sessions.find_session(CODE, at(1)) == member_of
    await stores.accounts.disable(SHOP, noted(at(2)))
    assert await stores.sessions.find_session(CODE, at(3)) == own
    await stores.accounts.enable(SHOP, noted())
    assert await stores.sessions.find_session(CODE, at(3)) == member_of
    assert await stores.removal.delete(SHOP, noted())
    assert await stores.sessions.find_session(CODE, at(3)) == own


async def test_the_last_owner_is_not_deleted(stores: Stores) -> None:
    """Of two owners who are deleted at the same time, one stays; so does the operator."""
    await shop_of_ann(stores)
    await stores.projects.set_member(SHOP, member("bob", Role.OWNER), noted())
    for person in (ANN, BOB):
        assert await stores.removal.projects_without(person) == []
    assert await stores.removal.delete(ANN, noted())
    with pytest.raises(OnlyOwner):
        await stores.removal.delete(BOB, noted())
    assert [one.account_id for one in await stores.projects.members(SHOP)] == [BOB]
    assert await stores.removal.delete(SHOP, noted())
    await stores.accounts.make_operator(BOB, noted())
    with pytest.raises(AccountIsOperator):
        await stores.removal.delete(BOB, noted())


@rows(*Held)
async def test_unknown_objects_have_no_holder(stores: Stores, kind: Held) -> None:
    """An object belongs to one account; an unknown one, of any kind, to none."""
    assert await stores.projects.holder_of(kind, "aaaaaaaaaaaaa") is None


async def test_invitations_are_listed_and_revoked(stores: Stores) -> None:
    """Valid invitations of a project are listed with an id that reveals no secret, and revoked."""
    await shop_of_ann(stores)
    for digest, seconds in ((b"1" * 32, 20), (b"2" * 32, 10)):
        await stores.projects.add_invitation(digest, SHOP, Role.READER, "", at(seconds), noted())
    listed = await stores.projects.list_invitations(SHOP, NOON)
    assert [one.id for one in listed] == ["32" * 8, "31" * 8]
    assert [one.id for one in await stores.projects.list_invitations(SHOP, at(10))] == ["31" * 8]
    assert not await stores.projects.revoke_invitation(BOB, "32" * 8, noted())
    assert await stores.projects.revoke_invitation(SHOP, "32" * 8, noted())
    assert not await stores.projects.revoke_invitation(SHOP, "32" * 8, noted())
    assert await stores.projects.find_invitation(b"2" * 32, NOON) is None
    assert await stores.projects.find_invitation(b"1" * 32, NOON) is not None
