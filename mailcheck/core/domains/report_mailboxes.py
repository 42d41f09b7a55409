"""Mailboxes from which the reports of an account are fetched, and their states."""

import hashlib
from enum import StrEnum

from msgspec import Struct

from mailcheck.core.instants import DAY, HOUR, MINUTE, Instant

LARGEST_MAIL = 25 * 1024 * 1024
"""Maximum number of octets of a mail that is fetched. Larger mails stay as they are."""

BATCH_MAILS, BATCH_OCTETS = 50, 4 * 1024 * 1024
"""Maximum number of mails of a batch, and of their octets together unless it is one mail."""

FEWEST_MAILS = 5
"""Number of mails of a batch after several failures in a row, for servers that limit the load."""

OLDEST = 400 * DAY
"""Age of a mail from which it is not fetched: reports are kept for that long."""

FIRST_RETRY, LONGEST_RETRY = 5 * MINUTE, HOUR
"""The retry interval doubles with each failure up to the maximum."""

OPERATOR_RETRY = 6 * HOUR
"""Retry interval of a problem that an operator must solve, so that servers do not lock the
mailbox. A reload of the configuration or a restart tries again at once."""


class Tls(StrEnum):
    """How a connection to an IMAP server is encrypted."""

    IMPLICIT = "implicit"
    STARTTLS = "starttls"
    NONE = "none"


class Then(StrEnum):
    """The treatment of a mail whose reports are stored."""

    MARK = "mark"
    MOVE = "move"
    LEAVE = "leave"


class TokenGrant(Struct, frozen=True):
    """How access tokens are obtained (RFC 6749 4.4 and 6).

    An empty ``refresh_token`` means the grant of client credentials.
    """

    url: str
    client_id: str
    client_secret: str = ""
    refresh_token: str = ""
    scope: str = ""


class ReportMailbox(Struct, frozen=True):
    """A mailbox of the configuration. ``interval`` is in milliseconds.

    It is a Maildir if ``maildir`` is its path, and otherwise a folder of an IMAP server. With a
    ``grant``, access tokens replace the password.
    """

    account_name: str
    host: str = ""
    port: int = 0
    tls: Tls = Tls.IMPLICIT
    user: str = ""
    password: str = ""
    grant: TokenGrant | None = None
    folder: str = "INBOX"
    maildir: str = ""
    then: Then = Then.MARK
    move_to: str = ""
    interval: int = 10 * MINUTE

    @property
    def name(self) -> str:
        """The name in messages and on pages."""
        return self.maildir or f"{self.user} at {self.host}, {self.folder}"

    @property
    def id(self) -> str:
        """The key of its state. Another password or interval does not change it."""
        place = (self.account_name, self.host, str(self.port), self.user, self.folder, self.maildir)
        return hashlib.sha256("\0".join(place).encode()).hexdigest()[:32]


class MailboxState(Struct, frozen=True):
    """The state of a mailbox.

    All mails up to ``last_uid`` are read, as long as the server says the same ``uid_validity``
    (RFC 9051 2.3.1.1). ``refresh_token`` replaces the token of the configuration whose digest is
    ``refresh_origin``. There were ``failures`` in a row, the last one with ``problem``. ``mails``
    and ``reports`` count all mails that were read and the reports that were new in them.
    """

    id: str
    next_at: Instant
    uid_validity: int = 0
    last_uid: int = 0
    refresh_token: str = ""
    refresh_origin: str = ""
    succeeded_at: Instant | None = None
    failures: int = 0
    problem: str = ""
    mails: int = 0
    reports: int = 0


def digest_token(token: str) -> str:
    """Return a digest that tells tokens apart without revealing them."""
    return hashlib.sha256(token.encode()).hexdigest()[:20]


def token_to_use(grant: TokenGrant, state: MailboxState | None) -> str:
    """Return the refresh token to use: the newest that replaces the configured one."""
    if state is None:
        return grant.refresh_token
    is_of_it = state.refresh_origin == digest_token(grant.refresh_token)
    return state.refresh_token if state.refresh_token and is_of_it else grant.refresh_token
