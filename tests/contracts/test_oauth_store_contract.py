"""The contract of `OAuthStore` on every engine."""

from typing import Any

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred, gatherResults

from mailcheck.core.accounts import Access, ApiKey
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import SECOND
from mailcheck.core.oauth.clients import Client, ClientSource
from mailcheck.core.oauth.grants import (
    MAX_PAIRS,
    REUSE_WINDOW,
    AuthorizationCode,
    NewTokens,
    Redemption,
)
from mailcheck.core.projects import Member, Role
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, noted

ANN = AccountId("ann")
REUSE = REUSE_WINDOW / SECOND
CODE, OTHER_CODE = b"c" * 32, b"d" * 32
CALLBACK = "https://agent.example/cb"
OPERATORS = Client("known", "Agent", CALLBACK, ClientSource.OPERATOR, True, NOON)


def registered(name: str, seconds: float = 0, lasts: float = 100) -> Client:
    """Return a client that has registered itself."""
    source, until = ClientSource.REGISTRATION, at(seconds + lasts)
    return Client(name, "Agent", CALLBACK, source, False, at(seconds), until)


def code(seconds: float = 60) -> AuthorizationCode:
    """Return the facts of a code of Ann for the operator's client."""
    return AuthorizationCode(
        ANN, ANN, "known", "Agent", CALLBACK, "challenge", "domains inbox:read", at(seconds)
    )


def grant(name: str, seconds: float = 1, client_id: str = "known") -> ApiKey:
    """Return a grant that no code has completed yet."""
    return ApiKey(
        id=KeyId(name),
        account_id=AccountId(""),
        name="",
        hint="",
        created_at=at(seconds),
        last_used_at=None,
        revoked_at=None,
        per_minute=None,
        per_day=None,
        expires_at=at(seconds + 1_000),
        client_id=client_id,
    )


def tokens(letter: str, seconds: float = 1) -> NewTokens:
    """Return a pair of tokens whose digests begin with a letter."""
    access, refresh = (letter.encode() + kind * 31 for kind in (b"a", b"r"))
    return NewTokens(access, at(seconds + 10), refresh, at(seconds + 1_000))


async def with_code(stores: Stores) -> None:
    """Add Ann, and a code of hers."""
    await stores.oauth.add_code(CODE, code(), NOON)


def redeem(stores: Stores, made: ApiKey, pair: NewTokens, **changes: Any) -> Any:
    """Redeem the code."""
    sent = {"redirect_uri": CALLBACK, "challenge": "challenge", "maximum": 5, **changes}
    digest = made.id.encode().ljust(32, b"k")
    return stores.oauth.redeem_code(
        CODE,
        made,
        digest,
        sent["redirect_uri"],
        sent["challenge"],
        pair,
        sent["maximum"],
        noted(made.created_at),
    )


def refresh(stores: Stores, used: str, given: str, seconds: float) -> Deferred[Redemption]:
    """Exchange the refresh token of a pair for another pair."""
    digest, pair = tokens(used).refresh_digest, tokens(given, seconds)
    return stores.oauth.redeem_refresh_token(digest, "known", pair, noted(at(seconds)))


async def test_a_client_is_found(stores: Stores) -> None:
    """A client is found by its id until it expires, with the digest of its secret."""
    oauth = stores.oauth
    await oauth.add_client(OPERATORS, b"s" * 32, 5, noted())
    await oauth.add_client(registered("own"), None, 5, noted())
    found = await oauth.find_client("known", at(1_000_000))
    assert found is not None
    assert (found.client, found.secret_digest) == (OPERATORS, b"s" * 32)
    own = await oauth.find_client("own", at(99))
    assert own is not None
    assert (own.client, own.secret_digest) == (registered("own"), None)
    assert await oauth.find_client("own", at(100)) is None
    assert await oauth.find_client("other", NOON) is None
    assert await oauth.list_clients(at(99)) == [OPERATORS, registered("own")]
    assert await oauth.list_clients(at(100)) == [OPERATORS]


async def test_a_client_lives_on(stores: Stores) -> None:
    """A client that got tokens expires later, never earlier, and a permanent one never."""
    oauth = stores.oauth
    await oauth.add_client(OPERATORS, None, 5, noted())
    await oauth.add_client(registered("own"), None, 5, noted())
    for until in (at(500), at(50)):
        await oauth.keep_client("own", until)
        await oauth.keep_client("known", until)
    assert await oauth.find_client("own", at(499)) is not None
    assert await oauth.find_client("own", at(500)) is None
    assert await oauth.find_client("known", at(1_000_000)) is not None


async def test_new_clients_replace_old_ones(stores: Stores) -> None:
    """At the maximum, the oldest client without a grant makes room; others stay."""
    oauth = stores.oauth
    await with_code(stores)
    await oauth.add_client(OPERATORS, None, 2, noted())
    await oauth.add_client(registered("used"), None, 2, noted())
    await oauth.add_code(OTHER_CODE, replace(code(), client_id="used"), NOON)
    pair = tokens("u")
    made = await oauth.redeem_code(
        OTHER_CODE, grant("g", client_id="used"), b"g" * 32, CALLBACK, "challenge", pair, 5, noted()
    )
    assert made.key is not None
    await oauth.add_client(registered("idle", 1), None, 2, noted())
    await oauth.add_client(registered("new", 2), None, 2, noted())
    listed = [one.id for one in await oauth.list_clients(at(3))]
    assert listed == ["known", "used", "new"]
    await oauth.add_client(registered("later", 200), None, 2, noted())
    assert [one.id for one in await oauth.list_clients(at(201))] == ["known", "later"]


async def test_a_code_becomes_a_grant(stores: Stores) -> None:
    """A code gives a key of its account with its scopes, and an access token that finds it."""
    await with_code(stores)
    redeemed = await redeem(stores, grant("g"), tokens("t"))
    key = redeemed.key
    assert key is not None
    assert (key.account_id, key.name, key.scopes) == (ANN, "Agent", "domains inbox:read")
    assert await stores.accounts.list_keys(ANN) == [key]
    found = await stores.oauth.find_access(tokens("t").access_digest)
    assert found is not None
    assert (found.known.key, found.known.is_disabled, found.expires_at) == (key, False, at(11))
    assert await stores.oauth.find_access(tokens("t").refresh_digest) is None
    for digest in (tokens("t").access_digest, tokens("t").refresh_digest):
        assert await stores.oauth.grant_of(digest) == key
    assert await stores.oauth.grant_of(b"x" * 32) is None


async def test_a_code_is_used_once(stores: Stores) -> None:
    """A second use of a code revokes the grant of the first one."""
    await with_code(stores)
    first = await redeem(stores, grant("g"), tokens("t"))
    again = await redeem(stores, grant("h", 5), tokens("u"))
    assert again.key is None
    assert again.revoked == replace(first.key, revoked_at=at(5))
    assert await stores.oauth.find_access(tokens("u").access_digest) is None
    third = await redeem(stores, grant("i", 6), tokens("v"))
    assert third == Redemption(problem=again.problem)
    (key,) = await stores.accounts.list_keys(ANN)
    assert key.revoked_at == at(5)


async def test_one_of_many_gets_the_grant(stores: Stores) -> None:
    """Of many uses of a code at once, at most one gets a grant, which the others revoke."""
    await with_code(stores)
    uses = [redeem(stores, grant(f"g{n}"), tokens(str(n))) for n in range(5)]
    found = await gatherResults(uses)
    assert len([one for one in found if one.key is not None]) == 1
    assert all(one.revoked_at is not None for one in await stores.accounts.list_keys(ANN))


async def test_three_of_many_refresh(stores: Stores) -> None:
    """Of many uses of a refresh token at once, three get a pair, and the grant stays."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    refreshed = await gatherResults([refresh(stores, "t", letter, 2) for letter in "vwxyz"])
    given = [one for one in refreshed if one.key is not None]
    assert len(given) == MAX_PAIRS
    assert sorted(one.is_repeated for one in given) == [False, True, True]
    assert [one.revoked for one in refreshed] == [None] * 5
    again = [await refresh(stores, letter, f"{n}", 3) for n, letter in enumerate("vwxyz")]
    assert len([one for one in again if one.key is not None]) == MAX_PAIRS
    (key,) = await stores.accounts.list_keys(ANN)
    assert key.revoked_at is None


@pytest.mark.parametrize("seconds", [REUSE, REUSE + 0.001])
async def test_a_late_reuse_revokes_the_grant(stores: Stores, seconds: float) -> None:
    """A refresh token is exchanged again for a minute, and its later use revokes the grant."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    await refresh(stores, "t", "u", 5)
    again = await refresh(stores, "t", "v", 5 + seconds)
    assert (again.key is not None) is (seconds == REUSE)
    assert (again.revoked is not None) is (seconds > REUSE)


async def test_an_old_pair_makes_room(stores: Stores) -> None:
    """Pairs of lost answers make room for a repeated exchange when they are a minute old."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    for letter in "uvw":
        assert (await refresh(stores, "t", letter, 5)).key is not None
    assert (await refresh(stores, "w", "x", 6)).key is not None
    assert (await refresh(stores, "w", "y", 6)).key is None, "u and v are new"
    assert (await refresh(stores, "x", "y", 6 + REUSE)).key is not None
    assert (await refresh(stores, "x", "z", 6 + REUSE)).key is not None
    lost = await refresh(stores, "u", "a", 6 + REUSE)
    assert (lost.key, lost.revoked) == (None, None)
    assert (await refresh(stores, "v", "b", 6 + REUSE)).key is not None


async def test_a_refusal_uses_no_token_up(stores: Stores) -> None:
    """A refresh token that a disabled account sent is exchanged when the account is enabled."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    await stores.accounts.disable(ANN, noted(at(3)))
    assert (await refresh(stores, "t", "u", 4)).key is None
    await stores.accounts.enable(ANN, noted())
    assert (await refresh(stores, "t", "u", 4 + 2 * REUSE)).key is not None


@pytest.mark.parametrize(
    ("wrong", "changes"),
    [
        (grant("g", client_id="other"), {}),
        (grant("g"), {"redirect_uri": "https://evil.example/"}),
        (grant("g"), {"challenge": "other"}),
        (grant("g", 60), {}),
        (grant("g"), {"maximum": 0}),
    ],
    ids=["client", "redirect URI", "verifier", "too late", "too many keys"],
)
async def test_a_wrong_use_spends_the_code(
    stores: Stores, wrong: ApiKey, changes: dict[str, object]
) -> None:
    """A code is used up by a wrong client, redirect URI or verifier, or too late."""
    await with_code(stores)
    assert (await redeem(stores, wrong, tokens("t"), **changes)).key is None
    assert (await redeem(stores, grant("h"), tokens("u"))).key is None
    assert await stores.accounts.list_keys(ANN) == []


async def test_a_redirect_uri_may_be_absent(stores: Stores) -> None:
    """The request for tokens need not repeat the redirect URI (OAuth 2.1)."""
    await with_code(stores)
    assert (await redeem(stores, grant("g"), tokens("t"), redirect_uri="")).key is not None


async def test_a_refresh_token_gives_the_next_one(stores: Stores) -> None:
    """A refresh prolongs the grant, and its reuse revokes the grant."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    oauth, first, second = stores.oauth, tokens("t"), tokens("u", 500)
    renewed = await oauth.redeem_refresh_token(
        first.refresh_digest, "known", second, noted(at(500))
    )
    assert renewed.key is not None
    assert renewed.key.expires_at == at(1_500)
    assert await stores.accounts.list_keys(ANN) == [renewed.key]
    assert await oauth.find_access(second.access_digest) is not None
    again = await refresh(stores, "t", "v", 600)
    assert again.revoked == replace(renewed.key, revoked_at=at(600))
    after = await refresh(stores, "u", "w", 601)
    assert after.key is None


async def test_a_refresh_token_is_refused(stores: Stores) -> None:
    """An expired, unknown or foreign refresh token, or one of a disabled account, gives nothing."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    oauth, digest = stores.oauth, tokens("t").refresh_digest
    for unknown in (tokens("t").access_digest, b"x" * 32):
        found = await oauth.redeem_refresh_token(unknown, "known", tokens("u"), noted(at(2)))
        assert (found.key, found.revoked) == (None, None)
    await stores.accounts.disable(ANN, noted(at(3)))
    disabled = await oauth.redeem_refresh_token(digest, "known", tokens("u"), noted(at(4)))
    assert (disabled.key, disabled.revoked) == (None, None)
    await stores.accounts.enable(ANN, noted())
    foreign = await oauth.redeem_refresh_token(digest, "other", tokens("u"), noted(at(5)))
    assert foreign.key is None
    assert foreign.revoked is not None
    (key,) = await stores.accounts.list_keys(ANN)
    assert key.revoked_at == at(5)


async def test_deleting_a_client(stores: Stores) -> None:
    """A client is deleted with its codes, and its grants are revoked."""
    await with_code(stores)
    await stores.oauth.add_client(OPERATORS, None, 5, noted())
    made = await redeem(stores, grant("g"), tokens("t"))
    await stores.oauth.add_code(OTHER_CODE, code(), NOON)
    deleted = await stores.oauth.delete_client("known", noted(at(5)))
    assert deleted == [replace(made.key, revoked_at=at(5))]
    assert await stores.oauth.delete_client("known", noted(at(5))) is None
    assert await stores.oauth.find_client("known", NOON) is None
    redeemed = await stores.oauth.redeem_code(
        OTHER_CODE, grant("h"), b"h" * 32, CALLBACK, "challenge", tokens("u"), 5, noted()
    )
    assert redeemed.key is None


async def test_a_grant_replaces_older_ones(stores: Stores) -> None:
    """A code that replaces grants revokes them when it is exchanged, and makes room for itself."""
    await with_code(stores)
    first = await redeem(stores, grant("g"), tokens("t"))
    replacing = replace(code(), replaces="g unknown")
    await stores.oauth.add_code(OTHER_CODE, replacing, NOON)
    for wrong in ("other", "known"):
        late = b"e" * 32 if wrong == "known" else OTHER_CODE
        refused = await stores.oauth.redeem_code(
            late,
            grant("h", client_id=wrong),
            b"h" * 32,
            CALLBACK,
            "challenge",
            tokens("u"),
            1,
            noted(),
        )
        assert refused.key is None
    assert await stores.accounts.list_keys(ANN) == [first.key]
    await stores.oauth.add_code(b"f" * 32, replacing, NOON)
    made = await stores.oauth.redeem_code(
        b"f" * 32, grant("h", 5), b"h" * 32, CALLBACK, "challenge", tokens("u"), 1, noted(at(5))
    )
    assert made.key is not None
    assert replace(first.key, revoked_at=at(5)) in await stores.accounts.list_keys(ANN)
    assert [one.id for one in await stores.accounts.list_keys(ANN) if one.revoked_at is None] == [
        "h"
    ]


async def test_an_account_is_deleted_with_its_grants(stores: Stores) -> None:
    """Codes and tokens of a deleted account are gone."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    await stores.oauth.add_code(OTHER_CODE, code(), NOON)
    await stores.removal.delete(ANN, noted())
    assert await stores.oauth.find_access(tokens("t").access_digest) is None
    assert await stores.oauth.grant_of(tokens("t").refresh_digest) is None


async def test_expired_tokens_are_deleted(stores: Stores) -> None:
    """New tokens delete expired ones of all grants."""
    await with_code(stores)
    await redeem(stores, grant("g"), tokens("t"))
    await stores.oauth.add_code(OTHER_CODE, code(5_000), at(60))
    later = await stores.oauth.redeem_code(
        OTHER_CODE,
        grant("h", 2_000),
        b"h" * 32,
        CALLBACK,
        "challenge",
        tokens("u", 2_000),
        5,
        noted(),
    )
    assert later.key is not None
    assert await stores.oauth.grant_of(tokens("t").refresh_digest) is None
    assert await stores.oauth.grant_of(tokens("u").refresh_digest) == later.key


async def test_a_grant_lasts_as_long_as_the_right_to_give_it(stores: Stores) -> None:
    """A token of a project is granted while its grantor is an owner who is not disabled."""
    shop = replace(account("shop"), is_project=True)
    owners = [Member(AccountId(name), name, Role.OWNER, NOON) for name in ("ann", "bob")]
    await stores.projects.add(shop, owners[0], 5, noted())
    await stores.projects.set_member(shop.id, owners[1], noted())
    await stores.oauth.add_code(CODE, replace(code(), account_id=shop.id), NOON)
    await redeem(stores, grant("g"), tokens("t"))
    access = Access(shop.id, KeyId("g"))

    async def is_granted() -> bool:
        found = await stores.oauth.find_access(tokens("t").access_digest)
        assert found is not None
        assert (await stores.accounts.ended_of([access], at(2)) == []) is found.is_granted
        return found.is_granted

    assert await is_granted()
    await stores.projects.set_member(shop.id, replace(owners[0], role=Role.EDITOR), noted())
    assert not await is_granted()
    await stores.projects.set_member(shop.id, owners[0], noted())
    assert await is_granted()
    await stores.accounts.disable(ANN, noted(at(2)))
    assert not await is_granted()
    refused = await stores.oauth.redeem_refresh_token(
        tokens("t").refresh_digest, "known", tokens("u"), noted(at(3))
    )
    assert refused == Redemption(problem="the access was revoked")
