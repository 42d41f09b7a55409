"""What signing in to the dashboard needs of the store; one contract suite for all that fill it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mailcheck.core.accounts import Account
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class KeptPassword(Struct, frozen=True):
    """An account and the hash of its password, if it has one."""

    account: Account
    password_hash: str | None


class SessionRow(Struct, frozen=True):
    """A session that has not ended, and whose it is."""

    account: Account
    created_at: Instant
    seen_at: Instant


class PasswordStore(Protocol):
    """Passwords, and accounts that people make for themselves."""

    def find_password(self, name: str) -> Deferred[KeptPassword | None]:
        """Find an account by its name, with the hash of its password."""

    def set_password(
        self, account_id: AccountId, password_hash: str, now: Instant
    ) -> Deferred[None]:
        """Replace a password; all sessions of the account end with it."""

    def set_first_password(
        self, account_id: AccountId, password_hash: str, now: Instant
    ) -> Deferred[bool]:
        """Set the password of an account that has none; false when it has one."""

    def renew_hash(self, account_id: AccountId, old: str, new: str) -> Deferred[None]:
        """Replace a hash by another one of the same password, unless it was changed meanwhile."""

    def register(
        self, account: Account, password_hash: str, invitation: bytes | None, now: Instant
    ) -> Deferred[None]:
        """Add an account with a password; an invitation, given by its digest, is used up.

        :raises AccountNameTaken: there is one of this name; the invitation stays.
        :raises InvitationInvalid: it was used, has expired, or never was; nothing is added.
        """

    def add_invitation(
        self, digest: bytes, created_at: Instant, expires_at: Instant
    ) -> Deferred[None]:
        """Keep an invitation; those that have expired are forgotten."""

    def has_invitation(self, digest: bytes, now: Instant) -> Deferred[bool]:
        """Tell whether an invitation can still be used."""


class SessionStore(Protocol):
    """Sessions of the dashboard, by the digest of their secret."""

    def open_session(
        self, digest: bytes, account_id: AccountId, now: Instant, ends_at: Instant
    ) -> Deferred[None]:
        """Keep a new session; those that have ended are forgotten."""

    def find_session(self, digest: bytes, now: Instant) -> Deferred[SessionRow | None]:
        """Find a session that has not ended."""

    def note_session_use(self, digest: bytes, now: Instant, ends_at: Instant) -> Deferred[None]:
        """Remember when a session was used, and when it ends if it is not used again."""

    def end_session(self, digest: bytes) -> Deferred[None]:
        """End a session; nothing happens when there is none."""
