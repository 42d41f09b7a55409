"""JSON shapes of API keys."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from mailcheck.api.shapes import Always, Count, Shape, Texts, Timestamp, doc, shape_from, timestamp
from mailcheck.core.instants import format_instant
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.manage_accounts import IssuedKey, RotatedKey
from mailcheck.operations.accounts.own_keys import MAX_KEYS, KeyUse

KeySecret = Annotated[str, doc("the key itself; store it, it is not shown again")]


class KeyMaker(Shape):
    """The person who made a key, or who connected a program."""

    id: Annotated[str, doc("id of the person's account")]
    name: Annotated[str, doc("empty if the account was deleted")]
    has_left: Annotated[
        bool, doc("the account is disabled or gone, or the person left the project")
    ]


class ApiKey(Shape):
    """An API key without its secret, or the access of a connected program."""

    id: str
    name: str
    hint: Annotated[str, doc("the beginning of the key; empty for a program")]
    scopes: Annotated[
        tuple[Scope, ...] | None, doc("null: all scopes but project:admin and operator")
    ]
    tags: Annotated[Texts, doc("only messages with these tags; empty with tagPrefix null: all")]
    tag_prefix: Annotated[str | None, doc("and messages whose tag begins with this")]
    per_minute: Annotated[Count, doc("requests in a clock minute")]
    per_day: Annotated[Count, doc("requests in a UTC day")]
    used_this_minute: Count
    used_today: Count
    created_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Annotated[Timestamp | None, doc("null: never, as far as it is known")]
    made_by: Annotated[KeyMaker | None, doc("null for keys of the command line, and for old ones")]
    is_program: Annotated[bool, doc("whether a program uses it that a person has connected")]


K = TypeVar("K", bound=ApiKey)


class ApiKeys(Shape):
    """The valid keys of an account or project."""

    keys: Annotated[tuple[ApiKey, ...], doc("newest first", max_length=MAX_KEYS)]


class ApiKeyWithSecret(ApiKey):
    """A new key with its secret, which no other response contains."""

    secret: KeySecret


class RotatedApiKey(ApiKeyWithSecret):
    """A key in place of an older one."""

    earlier_id: Annotated[str, doc("id of the older key")]
    earlier_until: Annotated[Timestamp, doc("until then, the older key is valid, too")]


class RevokedApiKey(Shape):
    """A key that was revoked."""

    success: Always
    id: str


def render_key(use: KeyUse) -> ApiKey:
    """Render a key."""
    return _key(ApiKey, use)


def render_keys(uses: Sequence[KeyUse]) -> ApiKeys:
    """Render the keys of an account."""
    return ApiKeys(tuple(map(render_key, uses)))


def render_issued(use: KeyUse, issued: IssuedKey) -> ApiKeyWithSecret:
    """Render a new key with its secret."""
    return _key(ApiKeyWithSecret, use, secret=issued.secret)


def render_rotated(use: KeyUse, rotated: RotatedKey) -> RotatedApiKey:
    """Render a key that follows another one."""
    return _key(
        RotatedApiKey,
        use,
        secret=rotated.secret,
        earlier_id=rotated.earlier.id,
        earlier_until=format_instant(rotated.earlier.expires_at or rotated.key.created_at),
    )


def _key(kind: type[K], use: KeyUse, **others: Any) -> K:
    key, rights, maker = use.key, use.key.rights, use.maker
    return shape_from(
        kind,
        key,
        scopes=None if rights.scopes is None else tuple(sorted(rights.scopes)),
        tags=() if rights.tags is None else rights.tags.tags,
        tag_prefix=None if rights.tags is None else rights.tags.prefix,
        per_minute=use.limits.per_minute,
        per_day=use.limits.per_day,
        used_this_minute=use.used_this_minute,
        used_today=use.used_today,
        last_used_at=timestamp(use.last_used_at),
        made_by=None if maker is None else shape_from(KeyMaker, maker, id=maker.account_id),
        is_program=key.client_id is not None,
        **others,
    )
