"""The audit log: who did what with accounts, keys and settings. It has no mail and no secrets."""

import re
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant

AUDIT_KEPT = 400 * DAY
"""Time for which entries are kept: a year, and a month to look back on it."""


MOST_ENTRIES = 100_000
"""Maximum number of entries about one account, so that nobody fills the disk with changes."""


class Actor(Struct, frozen=True):
    """Who does something: the name of an account or a program, and the address of the client.

    ``client`` is the address that rate limits are counted for. It is empty on the machine of the
    daemon itself.
    """

    name: str
    client: str = ""


COMMAND_LINE = Actor("command line")
"""A person on the machine of the daemon, who can read its database."""


DAEMON = Actor("daemon")
"""The daemon, which creates the first account and its key."""


class Action(StrEnum):
    """What was done. The values are stored and shown."""

    ACCOUNT_CREATED = "account created"
    ACCOUNT_RENAMED = "account renamed"
    ACCOUNT_ADOPTED = "account managed by the directory"
    ACCOUNT_CHANGED = "account changed by the directory"
    ACCOUNT_DISABLED = "account disabled"
    ACCOUNT_ENABLED = "account enabled"
    ACCOUNT_DELETED = "account deleted"
    OPERATOR_CHANGED = "operator changed"
    LIMITS_CHANGED = "limits changed"
    PROJECT_CREATED = "project created"
    GROUP_CREATED = "group created"
    GROUP_CHANGED = "group changed"
    GROUP_DELETED = "group deleted"
    MEMBER_SET = "member set"
    MEMBER_REMOVED = "member removed"
    PERSON_INVITED = "person invited"
    INVITATION_REVOKED = "invitation revoked"
    SIGNED_IN = "signed in"
    SIGNED_OUT = "signed out"
    SESSION_ENDED = "session ended"
    ACCESS_ENDED = "sessions and programs ended"
    PASSWORD_CHANGED = "password changed"  # noqa: S105
    IDENTITY_LINKED = "company account linked"
    IDENTITY_REMOVED = "company account removed"
    PASSKEY_ADDED = "passkey added"
    PASSKEY_RENAMED = "passkey renamed"
    PASSKEY_REMOVED = "passkey removed"
    SECOND_FACTOR_CHANGED = "second factor changed"
    SIGN_IN_LINK_CREATED = "sign-in link created"
    KEY_ISSUED = "key issued"
    KEY_ROTATED = "key rotated"
    KEY_REVOKED = "key revoked"
    CLIENT_REGISTERED = "client registered"
    CLIENT_DELETED = "client deleted"
    WEBHOOK_CREATED = "webhook created"
    WEBHOOK_DELETED = "webhook deleted"
    ROUTE_CREATED = "inbound route created"
    ROUTE_CHANGED = "inbound route changed"
    ROUTE_DELETED = "inbound route deleted"
    RELEASE_ASKED = "release of a message asked"
    MESSAGE_RELEASED = "message given to the relay"
    SECRET_REPLACED = "webhook secret replaced"  # noqa: S105


AUDIT_CURSOR_PATTERN = r"^a(0|[1-9][0-9]{0,14})$"
"""Cursors of the audit log: the position of an entry after a letter."""

_CURSOR = re.compile(AUDIT_CURSOR_PATTERN, re.ASCII)


def parse_audit_cursor(text: str) -> int:
    """Return the position of a cursor. Raise `ValueError` for other texts."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(found[1])


def format_audit_cursor(position: int) -> str:
    """Return the cursor of a position."""
    return f"a{position}"


class AuditFilter(Struct, frozen=True):
    """Which entries are wanted: those about an account (`None`: all), and of an action."""

    account_id: AccountId | None = None
    action: Action | None = None


class AuditEntry(Struct, frozen=True):
    """An entry of the audit log.

    ``id`` grows with time. ``account_id`` is the account that was changed: `None` for the service
    as a whole, and after the account was deleted. Its name stays. ``position`` is the number of
    the entry in the order of commits; it is zero until the entry is stored.
    """

    id: str
    happened_at: Instant
    account_id: AccountId | None
    account_name: str
    actor: str
    client: str
    action: str
    detail: str
    position: int = 0

    def followed_by(
        self, number: int, action: Action, account_id: AccountId | None, detail: str
    ) -> "AuditEntry":
        """Return another entry of the same change, after this one. ``number`` begins with 1."""
        return replace(
            self, id=f"{self.id}-{number:03}", action=action, account_id=account_id, detail=detail
        )
