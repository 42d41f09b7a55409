"""Accounts, their API keys and their inboxes."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypedDict

from msgspec import Struct

from mailcheck.core.audit import Actor
from mailcheck.core.cursors import Position
from mailcheck.core.errors import AccountDisabled, InvalidParameter, NotOperator
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import HOUR, Instant, format_instant
from mailcheck.core.rights import ALL_RIGHTS, Rights, Scope, TagLimit

EVERY_ACCOUNT = "*"
"""Name that stands for all accounts in the configuration."""


MOST_RECIPIENTS = 10
"""Maximum number of recipients of one released mail."""


class AllowedRecipients(Struct, frozen=True):
    """The addresses to which accounts may send mail.

    :param of_account: addresses, or whole domains as ``@domain``, by the name of an account.
    """

    of_account: Mapping[str, Sequence[str]]

    def of(self, account_name: str) -> tuple[str, ...]:
        """Return the addresses and domains of an account, and those of all accounts."""
        own, common = (self.of_account.get(name, ()) for name in (account_name, EVERY_ACCOUNT))
        return tuple(dict.fromkeys(name.lower() for name in (*own, *common)))

    def has(self, address: str, account_name: str) -> bool:
        """Return whether an account may send mail to an address. Subdomains are not included."""
        folded = address.lower()
        return not {folded, f"@{folded.rpartition('@')[2]}"}.isdisjoint(self.of(account_name))


MAX_REQUESTS = 2**31 - 1
"""The highest limit of requests that a key can have."""


class RequestLimits(Struct, frozen=True):
    """How many requests a key may make in a clock minute and in a UTC day."""

    per_minute: int
    per_day: int


class Quota(Struct, frozen=True):
    """How much an inbox may hold: messages, and bytes of raw mail."""

    max_messages: int
    max_bytes: int


def retention_of(hours: int | None, default: int) -> int:
    """Return the retention of an inbox in milliseconds; ``hours`` is `None` for the default."""
    return default if hours is None else hours * HOUR


class Account(Struct, frozen=True):
    """An account of a person or of a project, with an inbox and API keys.

    The operator's account also gets postmaster's and abuse's mail. Several people share a project,
    which has no password. A disabled account cannot sign in, its keys are refused, and its inbox
    accepts no mail.
    """

    id: AccountId
    name: str
    mailbox_name: str
    is_operator: bool
    created_at: Instant
    max_messages: int | None
    max_bytes: int | None
    retention_hours: int | None = None
    disabled_at: Instant | None = None
    is_project: bool = False

    def require_operator(self, wish: str) -> None:
        """Check that this is the operator's account.

        :param wish: what the account wants to do, such as ``"invite people"``.
        :raises NotOperator: it is another account.
        """
        if not self.is_operator:
            raise NotOperator(f"only the operator of this service can {wish}")

    def require_enabled(self) -> None:
        """Check that the account is not disabled.

        :raises AccountDisabled: it is.
        """
        if self.disabled_at is not None:
            raise AccountDisabled("this account is disabled: ask the operator of this service")

    def require_person(self) -> None:
        """Check that this is the account of a person.

        :raises InvalidParameter: it is a project.
        """
        if self.is_project:
            raise InvalidParameter("name", f"{self.name!r} is a project: choose a person")


class AccountLimits(Struct, frozen=True):
    """The limits of one account; `None` is the configured limit.

    ``max_messages`` and ``max_bytes`` are the quota of its inbox, and ``retention_hours`` the time
    for which its mail is kept.
    """

    max_messages: int | None = None
    max_bytes: int | None = None
    retention_hours: int | None = None


class AccountOrder(StrEnum):
    """Orders of a list of accounts."""

    NAME = "name"
    NEWEST = "newest"
    LARGEST = "largest"
    LAST_USED = "lastUsed"


class AccountUse(Struct, frozen=True):
    """An account, the size of its inbox, and when it was last active.

    ``last_active_at`` is the last use of a key or of a page, as far as it is stored.
    """

    account: Account
    message_count: int
    byte_count: int
    last_active_at: Instant | None


def choose_uses(
    uses: Sequence[AccountUse],
    search: str = "",
    order: AccountOrder = AccountOrder.NAME,
    is_project: bool | None = None,
) -> list[AccountUse]:
    """Return the accounts whose name contains a text, in an order.

    :param is_project: only projects or only people; `None` for all.
    """
    folded = search.strip().casefold()
    found = [
        use
        for use in uses
        if folded in use.account.name.casefold() and is_project in (None, use.account.is_project)
    ]
    ranks: Mapping[AccountOrder, Callable[[AccountUse], int]] = {
        AccountOrder.NAME: lambda use: 0,
        AccountOrder.NEWEST: lambda use: -use.account.created_at,
        AccountOrder.LARGEST: lambda use: -use.byte_count,
        AccountOrder.LAST_USED: lambda use: -(use.last_active_at or 0),
    }
    return sorted(found, key=lambda use: (ranks[order](use), use.account.name.casefold()))


class ApiKey(Struct, frozen=True):
    """The stored facts of an API key. The key itself is not stored; ``hint`` is its beginning.

    ``fails_every``: every ``fails_every``-th mail sent with it over the submission port gets 451.
    ``scopes`` and ``tags`` are separated by spaces; `None` is no limit.
    ``client_id`` is the OAuth client of a grant, which has tokens in place of a key, and
    ``granted_by`` the person who granted it. ``made_by`` is the person who made the key, if a
    person did.
    """

    id: KeyId
    account_id: AccountId
    name: str
    hint: str
    created_at: Instant
    last_used_at: Instant | None
    revoked_at: Instant | None
    per_minute: int | None
    per_day: int | None
    fails_every: int | None = None
    scopes: str | None = None
    tags: str | None = None
    tag_prefix: str | None = None
    expires_at: Instant | None = None
    client_id: str | None = None
    granted_by: AccountId | None = None
    made_by: AccountId | None = None

    @property
    def rights(self) -> Rights:
        """What the key may do."""
        scopes = None if self.scopes is None else frozenset(map(Scope, self.scopes.split()))
        if self.tags is None and self.tag_prefix is None:
            return Rights(scopes)
        return Rights(scopes, TagLimit(tuple((self.tags or "").split()), self.tag_prefix))

    @property
    def described(self) -> str:
        """The id, the name and the rights of the key, for the audit log."""
        words = [f"{self.id} {self.name!r}" if self.name else self.id, str(self.rights)]
        if self.expires_at is not None:
            words.append(f"until {format_instant(self.expires_at)}")
        return ", ".join(words)

    def is_expired(self, now: Instant) -> bool:
        """Return whether the key has expired."""
        return self.expires_at is not None and self.expires_at <= now


class KeyMaker(Struct, frozen=True):
    """The person who made a key, or granted access to a program.

    ``name`` is empty if the account was deleted. ``has_left``: the account is disabled or gone, or
    the person is not a member of the project of the key any more.
    """

    account_id: AccountId
    name: str
    has_left: bool


class PersonalAccess(Struct, frozen=True):
    """What a person can use: numbers of sessions, connected programs and API keys.

    ``programs`` are those that the person has connected, to any project, or those of a project.
    ``keys`` belong to the account itself, and ``shared_keys`` were made by the person in projects.
    """

    sessions: int
    programs: int
    keys: int
    shared_keys: int


class RightsColumns(TypedDict):
    """The fields of an `ApiKey` about its rights."""

    scopes: str | None
    tags: str | None
    tag_prefix: str | None


def columns_of_rights(rights: Rights) -> RightsColumns:
    """Return the fields of an `ApiKey` with these rights; the reverse of `ApiKey.rights`."""
    limit = rights.tags
    return {
        "scopes": None if rights.scopes is None else " ".join(sorted(rights.scopes)),
        "tags": None if limit is None or not limit.tags else " ".join(limit.tags),
        "tag_prefix": None if limit is None else limit.prefix,
    }


class Access(Struct, frozen=True):
    """What the access of a caller to an account rests on. It ends as soon as one of these ends.

    ``session`` is the digest of a session of the pages, and ``password_hash`` the hash of the
    account's password; they are empty for a caller with an API key. ``ends_at`` is when an access
    token expires.
    """

    account_id: AccountId
    key_id: KeyId
    session: bytes = b""
    password_hash: str = ""
    ends_at: Instant | None = None


class Caller(Struct, frozen=True):
    """The account behind a valid API key, with the limits and rights of that key.

    ``position`` is the newest position of the account's inbox, read together with the key before
    the rest of the request. It is `None` if no key was read. ``client`` is the address that rate
    limits are counted for, if the request came from one. ``is_grant`` is whether an OAuth client
    uses the key. ``session``, ``password_hash`` and ``ends_at`` are as in `Access`.
    ``user_name`` is the name that a client without a key has given, and ``person`` the name of the
    signed-in visitor of a page.
    """

    account_id: AccountId
    key_id: KeyId
    limits: RequestLimits
    position: Position | None = None
    fails_every: int | None = None
    rights: Rights = ALL_RIGHTS
    client: str = ""
    is_grant: bool = False
    session: bytes = b""
    password_hash: str = ""
    ends_at: Instant | None = None
    user_name: str = ""
    person: str = ""

    @property
    def access(self) -> Access:
        """What the access of the caller rests on."""
        return Access(self.account_id, self.key_id, self.session, self.password_hash, self.ends_at)

    @property
    def actor(self) -> Actor:
        """The caller in the audit log."""
        return Actor(self.person or f"API key {self.key_id}", self.client)


class InboxState(Struct, frozen=True):
    """The size and quota of an inbox. ``last_position`` is the position of its newest message.

    ``retention_hours`` is `None` for the configured retention. An inbox with ``is_disabled``
    accepts no mail.
    """

    account_id: AccountId
    mailbox_name: str
    last_position: Position
    message_count: int
    byte_count: int
    quota: Quota
    retention_hours: int | None = None
    is_disabled: bool = False

    @property
    def has_room(self) -> bool:
        """Whether the inbox can take another message. Its size is checked once it is known."""
        return (
            self.message_count < self.quota.max_messages and self.byte_count < self.quota.max_bytes
        )
