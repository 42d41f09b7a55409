"""Passkeys: key pairs whose private half stays on a person's device (Web Authentication)."""

from msgspec import Struct

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant

MAX_PASSKEYS = 20
"""Maximum number of passkeys of an account."""

MAX_PASSKEY_NAME = 60
"""Maximum length of the name of a passkey, in characters."""


class Passkey(Struct, frozen=True):
    """A passkey of an account.

    ``public_key`` is a COSE key (RFC 9053). ``sign_count`` is that of the last use; devices that
    synchronize passkeys do not count and send 0.
    """

    id: str
    account_id: AccountId
    credential_id: bytes
    public_key: bytes
    sign_count: int
    name: str
    created_at: Instant
    last_used_at: Instant | None = None
