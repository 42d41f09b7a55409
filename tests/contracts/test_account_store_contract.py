"""The contract of `AccountStore` on every engine."""

import pytest
from msgspec.structs import replace

from mailcheck.core.accounts import Access, ApiKey, KeyMaker, PersonalAccess, columns_of_rights
from mailcheck.core.cursors import START
from mailcheck.core.errors import AccountNameTaken
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.projects import Member, Role
from mailcheck.core.rights import Rights, make_rights
from mailcheck.store.accounts.key_store import KnownKey
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted
from tests.table import rows


def key(name: str, owner: str = "ann", **facts: object) -> ApiKey:
    """Return a key."""
    known: dict[str, object] = {
        "created_at": NOON,
        "last_used_at": None,
        "revoked_at": None,
        "per_minute": None,
        "per_day": None,
    }
    return ApiKey(KeyId(name), AccountId(owner), name, "mck_ab12", **{**known, **facts})  # type: ignore[arg-type]


async def test_accounts_come_back_whole(empty: Stores) -> None:
    """An account is found by its name, unchanged and with its quota."""
    ann = account("ann", is_operator=True, max_messages=5, max_bytes=0)
    await empty.accounts.add_account(ann, noted())
    assert await empty.accounts.find_account("ann") == ann
    assert await empty.accounts.find_account("Ann") is None
    assert await empty.accounts.find_account("bob") is None


async def test_names_are_unique(empty: Stores) -> None:
    """A second account of the same name is not added, nor does the operator's role move to it."""
    ann = account("ann", is_operator=True)
    await empty.accounts.add_account(ann, noted())
    other = replace(account("other", is_operator=True), name="ann")
    with pytest.raises(AccountNameTaken, match="ann"):
        await empty.accounts.add_account(other, noted())
    assert await empty.accounts.list_accounts() == [ann]
    assert await empty.deliveries.find_inbox("dev-other") is None


async def test_accounts_are_listed_oldest_first(empty: Stores) -> None:
    """Accounts are listed in the order of their creation."""
    assert await empty.accounts.list_accounts() == []
    made = [account(name, created_at=at(-number)) for number, name in enumerate("abc")]
    for one in made:
        await empty.accounts.add_account(one, noted())
    assert await empty.accounts.list_accounts() == made[::-1]


async def test_keys_come_back_whole(stores: Stores) -> None:
    """A key is found by the digest of its secret, unchanged, and by no other digest."""
    plain, limited = key("k1"), key("k2", per_minute=7, per_day=9, last_used_at=at(1))
    await stores.accounts.add_key(plain, b"1" * 32, noted())
    await stores.accounts.add_key(limited, b"2" * 32, noted())
    assert await stores.accounts.find_key(b"1" * 32) == plain
    assert await stores.accounts.find_key(b"2" * 32) == limited
    assert await stores.accounts.find_key(b"3" * 32) is None
    assert await stores.accounts.find_key(b"") is None


@rows(
    make_rights(["watches", "inbox:read"]),
    make_rights(["inbox:read"], ["sign", "re.set-2"], "run-"),
    make_rights(tags=["one"]),
    make_rights(tag_prefix="'%_"),
)
async def test_the_rights_of_a_key_come_back_whole(stores: Stores, rights: Rights) -> None:
    """Scopes, tags, prefix and expiry are read as they were stored, by each way to find a key."""
    earlier = await stores.accounts.list_keys(AccountId("ann"))
    limited = key(f"k{len(earlier)}", **columns_of_rights(rights), expires_at=at(9))
    secret = limited.id.encode().ljust(32)
    await stores.accounts.add_key(limited, secret, noted())
    assert await stores.accounts.find_key(secret) == limited
    assert await stores.accounts.find_caller(secret) == KnownKey(limited, START, is_disabled=False)
    assert await stores.accounts.list_keys(AccountId("ann")) == [*earlier, limited]


async def test_keys_are_listed_by_account(stores: Stores) -> None:
    """The keys of an account are listed oldest first, without those of other accounts."""
    keys = [key(f"k{number}", created_at=at(-number)) for number in range(3)]
    for number, one in enumerate([*keys, key("other", "bob")]):
        await stores.accounts.add_key(one, bytes([number]) * 32, noted())
    assert await stores.accounts.list_keys(AccountId("ann")) == keys[::-1]
    assert await stores.accounts.list_keys(AccountId("gone")) == []


async def test_which_keys_are_revoked(stores: Stores) -> None:
    """Of the given callers, those with revoked keys are returned, and no others."""
    for number in (1, 2, 3):
        await stores.accounts.add_key(key(f"k{number}"), bytes([number]) * 32, noted())
    for name in ("k1", "k3"):
        await stores.accounts.revoke_key(KeyId(name), noted(at(5)))
    asked = [Access(AccountId("ann"), KeyId(one)) for one in ("k1", "k2", "pages of ann")]
    assert await stores.accounts.ended_of(asked, NOON) == asked[:1]


async def test_which_keys_are_expired(stores: Stores) -> None:
    """An expired key is returned as an invalid one, from the moment of its expiry."""
    await stores.accounts.add_key(key("k1", expires_at=at(5)), b"1" * 32, noted())
    await stores.accounts.add_key(key("k2", expires_at=at(6)), b"2" * 32, noted())
    await stores.accounts.add_key(key("k3"), b"3" * 32, noted())
    k1, k2, k3 = (Access(AccountId("ann"), KeyId(one)) for one in ("k1", "k2", "k3"))
    assert await stores.accounts.ended_of([k1, k2, k3], at(4)) == []
    assert await stores.accounts.ended_of([k1, k2, k3], at(5)) == [k1]
    assert await stores.accounts.ended_of([k1, k2, k3], at(7)) == [k1, k2]


async def test_which_accounts_are_gone(empty: Stores) -> None:
    """All callers of a disabled or deleted account are returned, with and without a key."""
    for number, name in enumerate(("ann", "bob", "cat")):
        await empty.accounts.add_account(account(name), noted())
        await empty.accounts.add_key(key(f"k{number}", name), bytes([number]) * 32, noted())
    await empty.accounts.disable(AccountId("bob"), noted(NOON))
    assert await empty.removal.delete(AccountId("cat"), noted())
    ann, *gone = [
        Access(AccountId(name), KeyId(one))
        for one, name in (("k0", "ann"), ("k1", "bob"), ("k2", "cat"), ("pages of cat", "cat"))
    ]
    assert await empty.accounts.ended_of([ann, *gone], NOON) == gone


async def test_which_sessions_have_ended(empty: Stores) -> None:
    """A session shows its person's account and projects, until it ends or the person is out."""
    for one in (account("ann"), account("bob"), replace(account("shop"), is_project=True)):
        await empty.accounts.add_account(one, noted())
    for digest, name in ((b"a" * 32, "ann"), (b"b" * 32, "bob")):
        await empty.sessions.open_session(digest, AccountId(name), at(10), noted(NOON, ""))
        member = Member(AccountId(name), name, Role.READER, NOON)
        await empty.projects.set_member(AccountId("shop"), member, noted())
    own, of_shop, of_bob, foreign, ended = (
        Access(AccountId(name), KeyId("pages"), digest)
        for name, digest in (
            ("ann", b"a" * 32),
            ("shop", b"a" * 32),
            ("shop", b"b" * 32),
            ("bob", b"a" * 32),
            ("ann", b"c" * 32),
        )
    )
    asked = [own, of_shop, of_bob, foreign, ended]
    assert await empty.accounts.ended_of(asked, at(9)) == [foreign, ended]
    await empty.projects.remove_member(AccountId("shop"), AccountId("ann"), noted())
    await empty.sessions.end_session(b"b" * 32, noted())
    assert await empty.accounts.ended_of([own, of_shop, of_bob], at(9)) == [of_shop, of_bob]
    assert await empty.accounts.ended_of([own], at(10)) == [own]


async def test_which_passwords_have_ended(stores: Stores) -> None:
    """A password ends when it is changed, and an access token when it expires."""
    await stores.passwords.set_password(AccountId("ann"), "hash", noted(NOON))
    good, changed = (
        Access(AccountId("ann"), KeyId("password"), password_hash=one) for one in ("hash", "old")
    )
    token = Access(AccountId("ann"), KeyId("grant"), ends_at=at(5))
    assert await stores.accounts.ended_of([good, changed, token], at(4)) == [changed]
    assert await stores.accounts.ended_of([good, token], at(5)) == [token]


async def test_key_use(stores: Stores) -> None:
    """The last use of a key is stored; uses of missing keys are ignored."""
    for number in (1, 2):
        await stores.accounts.add_key(key(f"k{number}"), bytes([number]) * 32, noted())
    await stores.accounts.note_key_use([(KeyId("k2"), at(3)), (KeyId("none"), at(4))])
    await stores.accounts.note_key_use([])
    used = {one.id: one.last_used_at for one in await stores.accounts.list_keys(AccountId("ann"))}
    assert used == {"k1": None, "k2": at(3)}


async def test_faults_of_keys(stores: Stores) -> None:
    """A valid key stores which of its mails fail, until that is reset; other keys do not."""
    for number in (1, 2):
        await stores.accounts.add_key(key(f"k{number}"), bytes([number]) * 32, noted())
    assert await stores.accounts.set_key_fault(KeyId("k1"), 7)
    assert await stores.accounts.find_key(b"\1" * 32) == key("k1", fails_every=7)
    assert await stores.accounts.find_key(b"\2" * 32) == key("k2")
    caller = await stores.accounts.find_caller(b"\1" * 32)
    assert caller == KnownKey(key("k1", fails_every=7), START, is_disabled=False)
    assert await stores.accounts.set_key_fault(KeyId("k1"), None)
    assert await stores.accounts.find_key(b"\1" * 32) == key("k1")
    assert not await stores.accounts.set_key_fault(KeyId("none"), 1)
    await stores.accounts.revoke_key(KeyId("k1"), noted(at(5)))
    assert not await stores.accounts.set_key_fault(KeyId("k1"), 1)


async def test_what_names_in_the_configuration_mean(empty: Stores) -> None:
    """A name means the account that had it first; an empty one means the very first account."""
    assert await empty.accounts.first_account() is None
    for name in ("ann", "bob"):
        await empty.accounts.add_account(account(name), noted())
    assert await empty.accounts.bind("cat") is None
    assert await empty.accounts.bind("bob") == account("bob")
    await empty.accounts.rename(AccountId("bob"), "bill", noted())
    await empty.accounts.add_account(replace(account("impostor"), name="bob"), noted())
    assert await empty.accounts.bind("bob") == replace(account("bob"), name="bill")
    assert await empty.accounts.first_account() == account("ann")
    await empty.removal.delete(AccountId("ann"), noted())
    await empty.removal.delete(AccountId("bob"), noted())
    await empty.accounts.add_account(account("dan"), noted())
    assert await empty.accounts.first_account() is None
    assert await empty.accounts.bind("bob") == replace(account("impostor"), name="bob")


async def test_a_key_is_rotated(stores: Stores) -> None:
    """The older key expires at the given time or earlier, once, and the next one is valid."""
    for name, expires_at in (("k1", None), ("k2", at(3)), ("k3", at(-1))):
        one = key(name, expires_at=expires_at)
        await stores.accounts.add_key(one, name.encode(), noted())
    for name, until in (("k1", at(9)), ("k2", at(3))):
        following = key(f"{name} next")
        older = await stores.accounts.rotate_key(
            KeyId(name), at(9), following, following.id.encode(), noted()
        )
        assert older is not None
        assert older.expires_at == until
        found = await stores.accounts.find_key(following.id.encode())
        assert found == following
    for name in ("k3", "none"):
        lost = await stores.accounts.rotate_key(KeyId(name), at(9), key("lost"), b"lost", noted())
        assert lost is None
    assert await stores.accounts.find_key(b"lost") is None


async def test_who_made_keys(empty: Stores) -> None:
    """The makers of keys are known, also those who have left, were disabled or are gone."""
    for name in ("ann", "bob", "eve"):
        await empty.accounts.add_account(account(name), noted())
    owner = Member(AccountId("ann"), "ann", Role.OWNER, NOON)
    await empty.projects.add(account("shop", is_project=True), owner, 9, noted())
    shop = AccountId("shop")
    for name in ("ann", "bob", "gone"):
        made = key(name, "shop", made_by=AccountId(name))
        await empty.accounts.add_key(made, name.encode(), noted())
    await empty.accounts.add_key(key("old", "shop"), b"old", noted())
    makers = await empty.accounts.makers_of(shop)
    assert makers == {
        "ann": KeyMaker(AccountId("ann"), "ann", has_left=False),
        "bob": KeyMaker(AccountId("bob"), "bob", has_left=True),
        "gone": KeyMaker(AccountId("gone"), "", has_left=True),
    }
    await empty.accounts.disable(AccountId("ann"), noted())
    assert (await empty.accounts.makers_of(shop))[KeyId("ann")].has_left
    counted = await empty.accounts.access_of(AccountId("ann"), NOON)
    assert counted == PersonalAccess(sessions=0, programs=0, keys=0, shared_keys=1)


async def test_access_is_counted_and_ended(stores: Stores) -> None:
    """Sessions and programs of a person end, those of others and API keys stay."""
    for name in ("ann", "bob"):
        await stores.sessions.open_session(name.encode(), AccountId(name), at(60), noted())
        await stores.accounts.add_key(
            key(f"p-{name}", name, client_id="agent"),
            f"p-{name}".encode(),
            noted(),
        )
    await stores.accounts.add_key(key("k"), b"k", noted())
    whole = PersonalAccess(sessions=1, programs=1, keys=1, shared_keys=0)
    assert await stores.accounts.access_of(AccountId("ann"), NOON) == whole
    assert await stores.accounts.end_access(AccountId("ann"), noted()) == whole
    left = PersonalAccess(sessions=0, programs=0, keys=1, shared_keys=0)
    assert await stores.accounts.access_of(AccountId("ann"), NOON) == left
    owner = Member(AccountId("ann"), "ann", Role.OWNER, NOON)
    await stores.projects.add(account("shop", is_project=True), owner, 9, noted())
    in_shop = key("s", "shop", client_id="agent", granted_by=AccountId("ann"))
    await stores.accounts.add_key(in_shop, b"s", noted())
    for one in ("ann", "shop"):
        assert (await stores.accounts.access_of(AccountId(one), NOON)).programs == 1
    assert (await stores.accounts.access_of(AccountId("bob"), NOON)).programs == 1


async def test_requests_by_day(stores: Stores) -> None:
    """Requests of the keys of an account add up by day; old days and unknown keys are dropped."""
    for name in ("k1", "k2"):
        await stores.accounts.add_key(key(name), name.encode(), noted())
    first, second, none = KeyId("k1"), KeyId("k2"), KeyId("none")
    await stores.accounts.add_key_days([(first, 5, 2), (second, 5, 3), (none, 5, 9)], 0)
    await stores.accounts.add_key_days([(first, 5, 1), (first, 6, 4)], 0)
    assert await stores.accounts.key_days(AccountId("ann"), 5) == {5: 6, 6: 4}
    assert await stores.accounts.key_days(AccountId("ann"), 6) == {6: 4}
    await stores.accounts.add_key_days([], 6)
    assert await stores.accounts.key_days(AccountId("ann"), 0) == {6: 4}
