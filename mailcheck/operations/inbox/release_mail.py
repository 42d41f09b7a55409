"""Release of a captured mail to real mailboxes, where the operator allows it.

The mail leaves as it was received. Only resent fields are added in front of it (RFC 5322 3.6.6),
so that signatures stay valid.
"""

from collections.abc import Collection, Sequence
from email.utils import formatdate

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.dmarc.record import Policy
from mailcheck.core.accounts import MOST_RECIPIENTS, AllowedRecipients
from mailcheck.core.addresses import parse_plain_address
from mailcheck.core.audit import Action, Actor
from mailcheck.core.domains.domain_names import is_within
from mailcheck.core.errors import (
    InvalidParameter,
    LimitExceeded,
    RelayRejected,
    RelayUnavailable,
    ReleaseOff,
)
from mailcheck.core.identifiers import AccountId, MessageId, new_short_id
from mailcheck.core.instants import SECOND
from mailcheck.core.memory.client_limits import HOUR_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.inbox.check_message import AuthenticateMessage
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.operations.semaphores import FairSemaphore
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Hit, RateCounters
from mailcheck.ports.probes import MailRelay, Relayed, RelayReply
from mailcheck.store.accounts.webhook_store import WebhookStore

AT_ONCE = 4
"""Maximum number of mails on their way to the relay. Each is kept in memory."""

OF_ACCOUNT = 2
"""Maximum number of mails of an account on their way to the relay."""

WAITING = 50
"""Maximum number of releases that wait for their turn."""

PATIENCE = 10.0
"""Seconds for which a release waits for its turn."""

KEPT = "the mail stays in the inbox"

_NOT_ON = (
    "this service releases no mail to real mailboxes, since its operator has not set "
    "[release] relay"
)


class ReleaseSettings(Struct, frozen=True):
    """What the operator allows. Without ``is_on``, no mail is released.

    ``own_domains`` are the domains whose mail this service receives, and ``host_name`` is its name
    in Message-IDs.
    """

    is_on: bool
    sender: str
    allowed: AllowedRecipients
    per_hour: int
    own_domains: Collection[str]
    host_name: str


class Released(Struct, frozen=True):
    """A mail that the relay accepted, with its answer for each recipient.

    ``warnings`` say why a receiver may reject the mail nevertheless.
    """

    message_id: MessageId
    replies: tuple[RelayReply, ...]
    warnings: tuple[str, ...]


class ReleaseMail:
    """Sends captured mails to the recipients that the operator allows an account.

    The hourly limit counts recipients of an account, and mails to each recipient from all accounts.
    ``settings`` may be replaced.
    """

    def __init__(
        self,
        settings: ReleaseSettings,
        relay: MailRelay,
        read: ReadInbox,
        authenticate: AuthenticateMessage,
        names: WebhookStore,
        counters: RateCounters,
        audit: Audit,
        clocks: ClockAndRandomness,
    ) -> None:
        self.settings = settings
        self._relay = relay
        self._read = read
        self._authenticate = authenticate
        self._names = names
        self._counters = counters
        self._audit = audit
        self._now = clocks.now
        self._random_bytes = clocks.random_bytes
        clock: IReactorTime = clocks.clock
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=AT_ONCE, per_owner=OF_ACCOUNT, max_waiting=WAITING
        )

    @property
    def is_on(self) -> bool:
        """Whether the operator has configured the release of mail."""
        return self.settings.is_on

    @property
    def sender(self) -> str:
        """The address that sends released mail."""
        return self.settings.sender

    async def recipients(self, account_id: AccountId) -> tuple[str, ...]:
        """Return the addresses and ``@domains`` to which an account may release mail."""
        if not self.settings.is_on:
            return ()
        return self.settings.allowed.of(await self._names.account_name(account_id))

    async def warnings(self, message: StoredMessage) -> tuple[str, ...]:
        """Return why a receiver may reject a message that is released."""
        warning = self._warn_of_dmarc(await self._authenticate.of(message))
        return (warning,) if warning else ()

    async def release(
        self, message: StoredMessage, addresses: Sequence[str], by: Actor
    ) -> Released:
        """Release a message of an inbox.

        :raises ReleaseOff: the operator allows no release.
        :raises InvalidParameter: a recipient is invalid or not allowed.
        :raises LimitExceeded: the limit of this hour is reached.
        :raises Overloaded: too many mails are being released.
        :raises RelayRejected: the relay rejected the mail, or all of its recipients.
        :raises RelayUnavailable: the relay cannot take the mail now.
        """
        summary = message.summary
        owner = summary.account_id
        recipients = await self._choose(owner, addresses)
        busy = "too many mails are being released; try again in a moment"
        async with self._semaphore.held(owner, PATIENCE, busy):
            # Loaded here, so that mails that wait are not in memory.
            raw = await self._read.raw_message(owner, summary.id)
            self._require_no_loop(raw)
            await self._count(owner, recipients)
            warnings = (*await self.warnings(message), *_warn_of_line_ends(raw))
            named = f"{summary.id} to {', '.join(recipients)}"
            # Noted first: who sent a mail must be known even if this daemon dies meanwhile.
            await self._audit.note(Action.RELEASE_ASKED, owner, by, named)
            mail = self._resent_fields(recipients) + _with_line_ends(raw)
            sent = await self._relay.send_mail(self.settings.sender, recipients, mail)
        await self._audit.note(Action.MESSAGE_RELEASED, owner, by, f"{summary.id}: {_told(sent)}")
        if sent.problem:
            kind = RelayRejected if sent.is_permanent else RelayUnavailable
            raise kind(f"{sent.problem}; {KEPT}")
        return Released(summary.id, sent.replies, warnings)

    async def _choose(self, owner: AccountId, addresses: Sequence[str]) -> tuple[str, ...]:
        """Return the recipients.

        :raises ReleaseOff: the operator allows no release.
        :raises InvalidParameter: a recipient is invalid or not allowed.
        """
        if not self.settings.is_on:
            raise ReleaseOff(_NOT_ON)
        chosen: dict[str, str] = {}
        for text in addresses:
            try:
                address = parse_plain_address(text)
            except ValueError as problem:
                raise InvalidParameter("to", f"to: {text[:100]!r} {problem}") from None
            chosen.setdefault(address.lower(), address)
        if not 0 < len(chosen) <= MOST_RECIPIENTS:
            raise InvalidParameter(
                "to", f"to must have 1 to {MOST_RECIPIENTS} addresses; got {len(chosen)}"
            )
        name = await self._names.account_name(owner)
        for folded, address in chosen.items():
            if not self.settings.allowed.has(folded, name):
                raise InvalidParameter(
                    "to",
                    f"to: the operator does not allow this account to release mail to {address}; "
                    "see [release] allow_recipients",
                )
            domain = folded.rpartition("@")[2]
            if any(is_within(domain, own) for own in self.settings.own_domains):
                raise InvalidParameter(
                    "to", f"to: {address} is an address of this service, which would come back"
                )
        return tuple(chosen.values())

    def _require_no_loop(self, raw: bytes) -> None:
        """Reject a mail that this service has released, and that has come back.

        :raises InvalidParameter: it has.
        """
        head = raw.partition(b"\r\n\r\n")[0].partition(b"\n\n")[0].lower()
        if self._mark.encode().lower() in head:
            raise InvalidParameter(
                "message", "this mail was released by this service and has come back"
            )

    @property
    def _mark(self) -> str:
        """The end of the Resent-Message-ID of each mail that this service releases."""
        return f".released@{self.settings.host_name}>"

    async def _count(self, owner: AccountId, recipients: Sequence[str]) -> None:
        """Count a release.

        :raises LimitExceeded: the limit of the account or of a recipient is reached.
        """
        now, most = self._now(), self.settings.per_hour
        window = ((HOUR_WINDOW, HOUR_WINDOW.index(now), most),)
        hits = [Hit(key_of("released by account", owner), window, len(recipients))]
        hits += [Hit(key_of("released to", recipient.lower()), window) for recipient in recipients]
        counts = await self._counters.hit(*hits)
        if any(count > most for (count,) in counts):
            which = "of this account" if counts[0][0] > most else "to this address"
            raise LimitExceeded(
                f"the limit of {most} released mails an hour {which} is reached",
                HOUR_WINDOW.seconds_left(now),
            )

    def _resent_fields(self, recipients: Sequence[str]) -> bytes:
        """Return the resent fields (RFC 5322 3.6.6). All values are ASCII without line ends."""
        fields = {
            "Resent-Date": formatdate(self._now() / SECOND),
            "Resent-From": self.settings.sender,
            "Resent-To": ",\r\n ".join(recipients),
            "Resent-Message-ID": f"<{new_short_id(self._random_bytes)}{self._mark}",
        }
        return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode("ascii")

    def _warn_of_dmarc(self, found: Authentication) -> str:
        """Return why receivers will reject the mail from this relay, or an empty text.

        SPF is judged for the relay and for `[release] sender`. Only a signature of the author's
        domain passes in any case.
        """
        dmarc = found.dmarc
        author, policy = dmarc.author_domain, dmarc.policy
        sender_domain = self.settings.sender.rpartition("@")[2]
        if author is None:
            return (
                ""
                if not dmarc.result.is_determined
                else f"{dmarc.explanation} Receivers may reject it."
            )
        if dmarc.is_dkim_aligned or is_within(sender_domain, dmarc.organizational_domain or author):
            return ""
        if not dmarc.result.is_determined:
            return (
                f"The DMARC result of {author} could not be determined. If its policy is strict, "
                "receivers reject a released mail without a DKIM signature of that domain."
            )
        if policy in (None, Policy.NONE):
            return ""
        action = "reject it" if policy is Policy.REJECT else "put it into the spam folder"
        return (
            f"The DMARC policy of {author} is {policy.value}, and the mail has no valid DKIM "
            f"signature of that domain: receivers will {action}."
        )


def _warn_of_line_ends(raw: bytes) -> tuple[str, ...]:
    warning = (
        "Lines of the mail end in a lone CR or LF, which SMTP does not allow. They were changed to "
        "CRLF, so a DKIM signature may be invalid."
    )
    return () if _with_line_ends(raw) is raw else (warning,)


def _with_line_ends(raw: bytes) -> bytes:
    """Return the mail with CRLF at all ends of lines; the same object if nothing changes.

    A lone CR or LF could end the mail early at a server that takes it for an end of a line.
    """
    if raw.count(b"\r") == raw.count(b"\r\n"):
        return end_lines(raw)
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n")


def _told(sent: Relayed) -> str:
    """Return the relay's answer for the audit log."""
    if sent.problem:
        return sent.problem
    return ", ".join(f"{reply.address} {reply.code}" for reply in sent.replies)
