"""Accounts, their API keys and their inboxes."""

from msgspec import Struct

from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import Instant

EVERY_ACCOUNT = "*"
"""Stands for all accounts where the configuration names one."""


class RequestLimits(Struct, frozen=True):
    """How many requests a key may make in a clock minute and in a UTC day."""

    per_minute: int
    per_day: int


class Quota(Struct, frozen=True):
    """How much an inbox may hold: messages, and bytes of raw mail."""

    max_messages: int
    max_bytes: int


class Account(Struct, frozen=True):
    """One user of the service; the operator's account also gets postmaster's and abuse's mail."""

    id: AccountId
    name: str
    mailbox_name: str
    is_operator: bool
    created_at: Instant
    max_messages: int | None
    max_bytes: int | None


class ApiKey(Struct, frozen=True):
    """What is kept of an API key: never the key itself. ``hint`` is its beginning, for lists.

    ``fails_every``: every so manieth mail that it hands in on the submission port gets 451.
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


class Caller(Struct, frozen=True):
    """Who makes a request: the account behind a valid key, and that key's limits.

    ``position`` is the newest of its inbox, read together with the key, before anything
    else of the request; nothing where there was no key to read.
    """

    account_id: AccountId
    key_id: KeyId
    limits: RequestLimits
    position: Position | None = None
    fails_every: int | None = None


class InboxState(Struct, frozen=True):
    """An inbox as a sender or its owner meets it; ``last_position`` is its newest cursor."""

    account_id: AccountId
    mailbox_name: str
    last_position: Position
    message_count: int
    byte_count: int
    quota: Quota

    @property
    def has_room(self) -> bool:
        """Tell whether one more message may come in (its size is judged when it is known)."""
        return (
            self.message_count < self.quota.max_messages and self.byte_count < self.quota.max_bytes
        )
