"""The contract of `PasswordStore` on every engine."""

import pytest
from msgspec.structs import replace

from mailcheck.core.errors import AccountNameTaken, InvitationInvalid
from mailcheck.core.identifiers import AccountId
from mailcheck.store.accounts.sign_in_store import StoredPassword
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted

ANN = AccountId("ann")


async def test_an_account_without_a_password(empty: Stores) -> None:
    """An account is found even if it has no password; an unknown name is not found."""
    ann = account("ann", is_operator=True, max_messages=5)
    await empty.accounts.add_account(ann, noted())
    assert await empty.passwords.find_password("ann") == StoredPassword(ann, None)
    assert await empty.passwords.find_password("Ann") is None
    assert await empty.passwords.find_password("") is None


async def test_passwords_are_replaced(stores: Stores) -> None:
    """The last password of an account is stored; other accounts keep theirs."""
    await stores.passwords.set_password(AccountId("bob"), "$bob", noted(NOON))
    for number in range(3):
        await stores.passwords.set_password(ANN, f"${number}", noted(at(number)))
    assert await stores.passwords.find_password("ann") == StoredPassword(account("ann"), "$2")
    assert await stores.passwords.find_password("bob") == StoredPassword(account("bob"), "$bob")


async def test_a_new_password_ends_sessions(stores: Stores) -> None:
    """A new password ends all sessions of its account, and no others."""
    for digest, owner in ((b"1" * 32, "ann"), (b"2" * 32, "ann"), (b"3" * 32, "bob")):
        await stores.sessions.open_session(
            digest, AccountId(owner), at(100), noted(NOON, "192.0.2.7")
        )
    await stores.passwords.set_password(ANN, "$new", noted(at(1)))
    found = [await stores.sessions.find_session(bytes([one]) * 32, at(1)) for one in b"123"]
    assert [session is not None for session in found] == [False, False, True]


async def test_a_hash_is_renewed(stores: Stores) -> None:
    """A hash is replaced only if the stored hash is the expected one; sessions continue."""
    await stores.passwords.set_password(ANN, "$old", noted(NOON))
    await stores.sessions.open_session(b"1" * 32, ANN, at(100), noted(NOON, "192.0.2.7"))
    await stores.passwords.renew_hash(ANN, "$other", "$lost")
    assert (await stores.passwords.find_password("ann")) == StoredPassword(account("ann"), "$old")
    await stores.passwords.renew_hash(ANN, "$old", "$new")
    assert (await stores.passwords.find_password("ann")) == StoredPassword(account("ann"), "$new")
    assert await stores.sessions.find_session(b"1" * 32, NOON) is not None


async def test_registering(empty: Stores) -> None:
    """A registered account has an inbox and a password."""
    ann = account("ann")
    await empty.passwords.register(ann, "$ann", None, noted(NOON))
    assert await empty.passwords.find_password("ann") == StoredPassword(ann, "$ann")
    assert await empty.deliveries.find_inbox("dev-ann") is not None
    with pytest.raises(AccountNameTaken):
        await empty.passwords.register(
            replace(account("other"), name="ann"), "$x", None, noted(NOON)
        )
    assert await empty.accounts.list_accounts() == [ann]
    assert await empty.passwords.find_password("ann") == StoredPassword(ann, "$ann")


async def test_invitations(stores: Stores) -> None:
    """An invitation is valid until it is used or expires."""
    assert not await stores.passwords.has_invitation(b"1" * 32, NOON)
    await stores.passwords.add_invitation(b"1" * 32, at(10), noted(NOON))
    assert await stores.passwords.has_invitation(b"1" * 32, at(9))
    assert not await stores.passwords.has_invitation(b"1" * 32, at(10))
    assert not await stores.passwords.has_invitation(b"", NOON)


async def test_registering_with_an_invitation(empty: Stores) -> None:
    """A valid invitation creates one account; a taken name does not use it up."""
    for digest in (b"1" * 32, b"2" * 32):
        await empty.passwords.add_invitation(digest, at(10), noted(NOON))
    register = empty.passwords.register
    await register(account("ann"), "$ann", b"1" * 32, noted(at(1)))
    for spent, now in ((b"1" * 32, at(1)), (b"2" * 32, at(10)), (b"3" * 32, at(1))):
        with pytest.raises(InvitationInvalid):
            await register(account("bob"), "$bob", spent, noted(now))
    with pytest.raises(AccountNameTaken):
        await register(replace(account("other"), name="ann"), "$x", b"2" * 32, noted(at(1)))
    assert [one.name for one in await empty.accounts.list_accounts()] == ["ann"]
    await register(account("bob"), "$bob", b"2" * 32, noted(at(1)))
