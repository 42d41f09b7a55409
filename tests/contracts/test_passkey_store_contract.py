"""The contract of `PasskeyStore` on every engine."""

import pytest
from msgspec.structs import replace
from pytest_twisted import async_fixture

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.signing_in.passkeys import MAX_PASSKEYS, Passkey
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted

ANN, BOB = AccountId("ann"), AccountId("bob")
CHALLENGE = b"1" * 32


def passkey(number: int = 1, owner: AccountId = ANN, count: int = 5) -> Passkey:
    """Return a passkey."""
    name = f"key {number}"
    return Passkey(f"id-{number}", owner, b"c" * number, b"key", count, name, at(number))


@async_fixture
async def stores(stores: Stores) -> Stores:
    """Add a password for Ann."""
    await stores.passwords.set_password(ANN, "hash", noted(NOON))
    return stores


async def needs(stores: Stores) -> bool:
    """Return whether Ann's password needs a passkey."""
    found = await stores.passwords.find_password("ann")
    assert found is not None
    return found.needs_passkey


async def test_passkeys_of_an_account(stores: Stores) -> None:
    """Passkeys are listed in the order of their creation, and found by their credential."""
    for one in (passkey(2), passkey(1), passkey(3, BOB)):
        await stores.passkeys.add_passkey(one, noted())
    assert await stores.passkeys.passkeys_of(ANN) == [passkey(1), passkey(2)]
    found = await stores.passkeys.find_passkey(b"cc")
    assert found == (passkey(2), account("ann"))
    assert await stores.passkeys.find_passkey(b"cccc") is None
    with pytest.raises(InvalidParameter):
        await stores.passkeys.add_passkey(replace(passkey(1, BOB), id="other"), noted())


async def test_the_number_is_limited(stores: Stores) -> None:
    """An account has a maximum number of passkeys."""
    for number in range(1, MAX_PASSKEYS + 1):
        await stores.passkeys.add_passkey(passkey(number), noted())
    with pytest.raises(InvalidParameter):
        await stores.passkeys.add_passkey(passkey(MAX_PASSKEYS + 1), noted())


async def test_the_counter_only_grows(stores: Stores) -> None:
    """A use with a counter that has not grown is refused; 0 stays 0."""
    await stores.passkeys.add_passkey(passkey(1), noted())
    await stores.passkeys.add_passkey(passkey(2, count=0), noted())
    assert not await stores.passkeys.note_use("id-1", 5, at(1))
    assert not await stores.passkeys.note_use("id-1", 0, at(1))
    assert await stores.passkeys.note_use("id-1", 6, at(1))
    assert not await stores.passkeys.note_use("id-1", 6, at(2))
    assert await stores.passkeys.note_use("id-2", 0, at(3))
    assert await stores.passkeys.note_use("id-2", 0, at(4))
    first, second = await stores.passkeys.passkeys_of(ANN)
    assert (first.sign_count, first.last_used_at) == (6, at(1))
    assert (second.sign_count, second.last_used_at) == (0, at(4))


async def test_only_the_owner_changes_a_passkey(stores: Stores) -> None:
    """Passkeys are renamed and removed within one account."""
    await stores.passkeys.add_passkey(passkey(), noted())
    assert not await stores.passkeys.rename_passkey(BOB, "id-1", "mine", noted())
    assert await stores.passkeys.remove_passkeys(BOB, "id-1", noted()) == []
    assert await stores.passkeys.rename_passkey(ANN, "id-1", "phone", noted())
    assert await stores.passkeys.remove_passkeys(ANN, "id-1", noted()) == ["phone"]
    assert await stores.passkeys.remove_passkeys(ANN, None, noted()) == []


async def test_the_second_factor_ends_with_the_last_passkey(stores: Stores) -> None:
    """A passkey can be required if there is one, and a password; a new password changes nothing."""
    assert not await stores.passkeys.require_passkey(ANN, noted(), is_required=True)
    await stores.passkeys.add_passkey(passkey(1), noted())
    await stores.passkeys.add_passkey(passkey(2), noted())
    await stores.passkeys.add_passkey(passkey(3, BOB), noted())
    assert not await needs(stores)
    assert await stores.passkeys.require_passkey(ANN, noted(), is_required=True)
    assert not await stores.passkeys.require_passkey(BOB, noted(), is_required=True)
    await stores.passwords.set_password(ANN, "new", noted(NOON))
    await stores.passkeys.remove_passkeys(ANN, "id-1", noted())
    assert await needs(stores)
    await stores.passkeys.remove_passkeys(ANN, None, noted())
    assert not await needs(stores)


async def test_a_challenge_is_used_once(stores: Stores) -> None:
    """A challenge is valid once, until it expires."""
    await stores.passkeys.add_challenge(CHALLENGE, NOON, at(10))
    assert not await stores.passkeys.use_challenge(b"2" * 32, NOON)
    assert await stores.passkeys.use_challenge(CHALLENGE, at(9))
    assert not await stores.passkeys.use_challenge(CHALLENGE, at(9))
    await stores.passkeys.add_challenge(CHALLENGE, NOON, at(10))
    assert not await stores.passkeys.use_challenge(CHALLENGE, at(10))


async def test_passkeys_go_with_their_account(stores: Stores) -> None:
    """Deleting an account deletes its passkeys."""
    await stores.passkeys.add_passkey(passkey(), noted())
    await stores.removal.delete(ANN, noted())
    assert await stores.passkeys.find_passkey(b"c") is None
