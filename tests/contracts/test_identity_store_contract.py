"""The contract of `IdentityStore` on every engine."""

import pytest

from mailcheck.core.errors import AccountNameTaken, IdentityTaken
from mailcheck.core.identifiers import AccountId
from mailcheck.core.signing_in.company import KnownPerson, LinkedIdentity
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted

ISSUER, OTHER = "https://login.example", "https://other.example"
CODE = b"1" * 32


def identity(name: str, subject: str = "s-1", issuer: str = ISSUER) -> LinkedIdentity:
    """Return an identity of an account."""
    return LinkedIdentity(issuer, subject, AccountId(name), NOON)


async def test_a_person_is_added_once(empty: Stores) -> None:
    """A person is added with an account, which the same identity finds again."""
    ann = account("ann")
    assert await empty.identities.find_account(ISSUER, "s-1") is None
    added = await empty.identities.add_person(ann, identity("ann"), noted())
    assert added == KnownPerson(ann, is_new=True)
    again = await empty.identities.add_person(account("bob"), identity("bob"), noted())
    assert again == KnownPerson(ann, is_new=False)
    assert await empty.accounts.list_accounts() == [ann]
    assert await empty.identities.find_account(ISSUER, "s-1") == ann
    for issuer, subject in ((OTHER, "s-1"), (ISSUER, "S-1"), (ISSUER, "")):
        assert await empty.identities.find_account(issuer, subject) is None


async def test_a_taken_name_adds_nothing(stores: Stores) -> None:
    """A person with the name of an account is not added, and not linked to that account."""
    with pytest.raises(AccountNameTaken):
        await stores.identities.add_person(account("ann"), identity("ann"), noted())
    assert await stores.identities.find_account(ISSUER, "s-1") is None


async def test_linking(empty: Stores) -> None:
    """An account has one identity of each issuer, and an identity one account."""
    ann, bob = account("ann"), account("bob")
    for one in (ann, bob):
        await empty.accounts.add_account(one, noted())
    for subject in ("s-1", "s-1", "s-2"):
        await empty.identities.link(identity("ann", subject), noted())
    await empty.identities.link(identity("ann", "s-1", OTHER), noted())
    assert await empty.identities.find_account(ISSUER, "s-1") is None
    assert await empty.identities.find_account(ISSUER, "s-2") == ann
    with pytest.raises(IdentityTaken):
        await empty.identities.link(identity("bob", "s-2"), noted())
    found = await empty.identities.identities_of(AccountId("ann"))
    assert found == [identity("ann", "s-2"), identity("ann", "s-1", OTHER)]
    assert await empty.identities.unlink(AccountId("ann"), noted())
    assert not await empty.identities.unlink(AccountId("ann"), noted())
    await empty.identities.link(identity("bob", "s-2"), noted())
    assert await empty.identities.find_account(ISSUER, "s-2") == bob


async def test_identities_go_with_their_account(empty: Stores) -> None:
    """Deleting an account deletes its identities and links."""
    await empty.identities.add_person(account("ann"), identity("ann"), noted())
    await empty.identities.add_link(CODE, AccountId("ann"), at(10), noted(NOON))
    await empty.removal.delete(AccountId("ann"), noted())
    assert await empty.identities.find_account(ISSUER, "s-1") is None
    assert await empty.identities.use_link(CODE, NOON) is None


async def test_a_sign_in_link_works_once(empty: Stores) -> None:
    """A link returns its account once, before it expires."""
    ann = account("ann")
    await empty.accounts.add_account(ann, noted())
    await empty.identities.add_link(CODE, AccountId("ann"), at(10), noted(NOON))
    await empty.identities.add_link(b"2" * 32, AccountId("ann"), at(10), noted(NOON))
    assert await empty.identities.use_link(b"3" * 32, NOON) is None
    assert await empty.identities.use_link(CODE, at(9)) == ann
    assert await empty.identities.use_link(CODE, at(9)) is None
    assert await empty.identities.use_link(b"2" * 32, at(10)) is None


async def test_the_origin_of_a_session_is_known(stores: Stores) -> None:
    """The end of a session tells whether the company had opened it."""
    await stores.sessions.open_session(CODE, AccountId("ann"), at(10), noted(NOON, ""), True)
    await stores.sessions.open_session(b"2" * 32, AccountId("ann"), at(10), noted(NOON, ""))
    assert await stores.sessions.end_session(CODE, noted())
    assert not await stores.sessions.end_session(CODE, noted())
    assert not await stores.sessions.end_session(b"2" * 32, noted())
