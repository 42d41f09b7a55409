"""The contract of `SessionStore` on every engine."""

from mailcheck.core.identifiers import AccountId
from mailcheck.store.accounts.sign_in_store import SessionRow
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted

ANN = AccountId("ann")
FIRST, SECOND = b"1" * 32, b"2" * 32
CLIENT = "192.0.2.7"


async def test_a_session_is_found_with_its_account(empty: Stores) -> None:
    """A session is found by its digest, with its account, and by no other digest."""
    ann = account("ann", is_operator=True, max_bytes=7)
    for one in (ann, account("bob")):
        await empty.accounts.add_account(one, noted())
    await empty.sessions.open_session(FIRST, ANN, at(10), noted(NOON, CLIENT))
    await empty.sessions.open_session(SECOND, AccountId("bob"), at(20), noted(at(1), CLIENT))
    assert await empty.sessions.find_session(FIRST, at(2)) == SessionRow(ann, NOON, NOON, NOON)
    second = await empty.sessions.find_session(SECOND, at(2))
    assert second == SessionRow(account("bob"), at(1), at(1), at(1))
    for digest in (b"", b"3" * 32, FIRST[:-1]):
        assert await empty.sessions.find_session(digest, at(2)) is None


async def test_a_session_ends(stores: Stores) -> None:
    """A session is valid until its end, exclusively."""
    await stores.sessions.open_session(FIRST, ANN, at(10), noted(NOON, CLIENT))
    assert await stores.sessions.find_session(FIRST, at(9.999)) is not None
    assert await stores.sessions.find_session(FIRST, at(10)) is None


async def test_use_makes_it_last(stores: Stores) -> None:
    """A use moves the end of its session; an ended session stays ended."""
    for digest in (FIRST, SECOND):
        await stores.sessions.open_session(digest, ANN, at(10), noted(NOON, CLIENT))
    await stores.sessions.note_session_use(FIRST, at(5), at(15))
    await stores.sessions.note_session_use(b"3" * 32, at(5), at(15))
    found = await stores.sessions.find_session(FIRST, at(12))
    assert found == SessionRow(account("ann"), NOON, at(5), NOON)
    assert await stores.sessions.find_session(SECOND, at(12)) is None
    assert await stores.sessions.find_session(b"3" * 32, at(12)) is None


async def test_ending_a_session(stores: Stores) -> None:
    """Ending a session keeps the account's others; ending it again changes nothing."""
    for digest in (FIRST, SECOND):
        await stores.sessions.open_session(digest, ANN, at(10), noted(NOON, CLIENT))
    for _ in range(2):
        await stores.sessions.end_session(FIRST, noted())
    assert await stores.sessions.find_session(FIRST, NOON) is None
    assert await stores.sessions.find_session(SECOND, NOON) is not None


async def test_ended_sessions_are_deleted(stores: Stores) -> None:
    """Opening a session deletes ended ones, which cannot come back."""
    await stores.sessions.open_session(FIRST, ANN, at(10), noted(NOON, CLIENT))
    await stores.sessions.open_session(SECOND, ANN, at(20), noted(at(10), CLIENT))
    assert await stores.sessions.find_session(FIRST, NOON) is None
    assert await stores.sessions.find_session(SECOND, at(10)) is not None
