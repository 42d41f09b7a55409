"""The inbox that clients use without an API key: of one account, on listeners of its own."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from hmac import compare_digest

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred, succeed

from mailcheck.core.accounts import Account, Caller, RequestLimits
from mailcheck.core.addresses import Mailbox
from mailcheck.core.errors import (
    AccountNotFound,
    FaultMet,
    InvalidCredentials,
    InvalidParameter,
    OperatorMissing,
)
from mailcheck.core.faults import Fault
from mailcheck.core.identifiers import DeliveryId, KeyId, RandomBytes
from mailcheck.core.instants import DAY, SECOND
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.memory.recent import Recent
from mailcheck.core.messages import Envelope, Recipient, Session
from mailcheck.operations.accounts.authenticate import End
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.inbox.keywords import keywords_of_mail
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Memory
from mailcheck.ports.mail_receiver import MailReceiver, ReceiverReply, Traffic

FRESHNESS = 2 * SECOND
"""Milliseconds for which the account is cached, as inboxes are for incoming mail."""

KEY_ID = KeyId("open")
"""Stands for the key of callers that have none; their waits are counted together."""

UNLIMITED = RequestLimits(2**31 - 1, 2**31 - 1)
"""Limits of requests: the clients are on this machine or in its network, or have the password."""


MAX_USER_NAME = 200
"""Maximum number of characters of the name of a client that is stored."""


class Passwords:
    """The users and passwords of a listener. Without any, everyone may use it.

    :param pairs: ``user:password``, separated by spaces.
    """

    def __init__(self, pairs: str) -> None:
        self._pairs = [word.encode() for word in pairs.split()]

    def __bool__(self) -> bool:
        """Whether a password is needed."""
        return bool(self._pairs)

    def allows(self, user: str, password: str) -> bool:
        """Return whether a user has this password."""
        sent = f"{user}:{password}".encode("utf-8", "replace")
        return any(compare_digest(pair, sent) for pair in self._pairs)


async def find_owner(accounts: ManageAccounts, name: str) -> Account | None:
    """Return the account of an option, or `None` if it does not exist.

    :param name: the name of an account or a project; empty for the first account, and no other
        when that is gone.
    """
    if not name:
        return await accounts.first()
    try:
        return await accounts.find(name)
    except AccountNotFound:
        return None


class OpenInbox:
    """Finds the account whose inbox is open.

    :param name: the name of an account or a project; empty for the first account.
    """

    def __init__(self, accounts: ManageAccounts, read: ReadInbox, name: str, now: Now) -> None:
        self._accounts = accounts
        self._read = read
        self._name = name
        self._now = now
        self._known: Recent[str, Account] = Recent(1, FRESHNESS)

    async def account(self) -> Account:
        """Return the account.

        :raises OperatorMissing: it does not exist yet.
        """
        known = self._known.get(self._name, self._now())
        if known is not None:
            return known
        found = await find_owner(self._accounts, self._name)
        if found is None:
            which = f"the account {self._name!r}" if self._name else "an account"
            raise OperatorMissing(f"there is no inbox: {which} of [mailpit] project is missing")
        self._known.put(self._name, found, self._now())
        return found

    async def caller(self, client: str, user_name: str = "") -> Caller:
        """Return the caller of a request from the address ``client``.

        :param user_name: the name that the client has given.
        :raises OperatorMissing: the account does not exist yet.
        """
        account = await self.account()
        state = await self._read.state(account.id)
        position, name = state.last_position, _shown_name(user_name)
        return Caller(account.id, KEY_ID, UNLIMITED, position, client=client, user_name=name)


class ChaosTrigger(Struct, frozen=True, rename="pascal"):
    """An SMTP error, and its probability in percent."""

    error_code: int
    probability: int = 0


Triggers = dict[str, ChaosTrigger]

DEFAULT_TRIGGERS: Triggers = {
    "sender": ChaosTrigger(451),
    "recipient": ChaosTrigger(451),
    "authentication": ChaosTrigger(535),
}


CHAOS_LIFETIME = 1 * DAY
"""Milliseconds after which simulated failures end if no client has switched them off."""


class Chaos:
    """Simulated failures at random, of all mail to the open inbox.

    All daemons have the same triggers. A change reaches the others within `FRESHNESS`.

    :param name: the name of the account or the project; empty for the first account.
    :param is_on: whether the operator allows simulated failures.
    """

    def __init__(
        self, memory: Memory, name: str, random_bytes: RandomBytes, now: Now, *, is_on: bool
    ) -> None:
        self._memory = memory
        self._key = key_of("chaos", name)
        self._random_bytes = random_bytes
        self._now = now
        self._known: Recent[Key, Triggers] = Recent(1, FRESHNESS)
        self.is_on = is_on

    async def triggers(self) -> Triggers:
        """Return all triggers by name."""
        known = self._known.get(self._key, self._now())
        if known is None:
            text = await self._memory.recall(self._key)
            known = DEFAULT_TRIGGERS if text is None else msgspec.json.decode(text, type=Triggers)
            self._known.put(self._key, known, self._now())
        return known

    async def set(self, triggers: Mapping[str, ChaosTrigger | None]) -> None:
        """Replace all triggers; those that are `None` are switched off.

        :raises InvalidParameter: a code or a probability is out of range.
        """
        for name, trigger in triggers.items():
            if trigger is None:
                continue
            if not 400 <= trigger.error_code <= 599:
                raise InvalidParameter(
                    name, f"{name}: ErrorCode must be from 400 to 599; got {trigger.error_code}"
                )
            if not 0 <= trigger.probability <= 100:
                raise InvalidParameter(
                    name, f"{name}: Probability must be from 0 to 100; got {trigger.probability}"
                )
        wanted = {name: triggers.get(name) or default for name, default in DEFAULT_TRIGGERS.items()}
        text = msgspec.json.encode(wanted).decode()
        await self._memory.keep(self._key, text, CHAOS_LIFETIME)
        self._known.put(self._key, wanted, self._now())

    async def meet(self, *names: str) -> None:
        """Raise the failure of the first of some triggers that occurs now.

        :raises FaultMet: a failure is simulated.
        """
        triggers = await self.triggers() if self.is_on else {}
        for name, trigger in triggers.items():
            # 65,500 is a multiple of 100, so each percent is as likely as the others.
            number = int.from_bytes(self._random_bytes(4), "big") % 65_500 % 100
            if name in names and number < trigger.probability:
                reply = trigger.error_code, f"{trigger.error_code // 100}.3.0"
                raise FaultMet(f"simulated failure of the {name}", reply)


class OpenReceiver(Struct, frozen=True, eq=False):
    """Implements the port `MailReceiver` of the SMTP server: all mail is for the open inbox.

    AUTH accepts any password, unless ``passwords`` has some.
    """

    receiver: MailReceiver
    inbox: OpenInbox
    chaos: Chaos
    passwords: Passwords

    @property
    def traffic(self) -> Traffic:
        """The tracker of incoming mails."""
        return self.receiver.traffic

    def accept_recipient(
        self, session: Session, envelope_sender: str, mailbox: Mailbox
    ) -> Deferred[Recipient]:
        """Accept any recipient, unless chaos rejects it; the port lists the errors."""
        return Deferred.fromCoroutine(self._accept(session, envelope_sender, mailbox))

    def find_fault(
        self, sender: Caller | None, recipients: tuple[Recipient, ...]
    ) -> Deferred[Fault | None] | None:
        """Return the fault of a whole mail."""
        return self.receiver.find_fault(sender, recipients)

    def deliver(
        self, session: Session, envelope: Envelope, raw_message: bytes
    ) -> Deferred[DeliveryId]:
        """Store a mail with the keywords of its field X-Tags; the port lists the errors."""
        envelope = replace(envelope, keywords=keywords_of_mail(raw_message))
        return self.receiver.deliver(session, envelope, raw_message)

    def reply_as_receiver(
        self, recipient: Recipient, delivery_id: DeliveryId
    ) -> Deferred[ReceiverReply]:
        """Return the reply of a receiver to a stored mail."""
        return self.receiver.reply_as_receiver(recipient, delivery_id)

    def record_refusal(
        self,
        session: Session,
        envelope_sender: str,
        recipients: tuple[Recipient, ...],
        reason: str,
    ) -> None:
        """Record a rejected mail."""
        self.receiver.record_refusal(session, envelope_sender, recipients, reason)

    def authenticate(self, name: str, password: str, client_ip: str) -> Deferred[Caller]:
        """Return the caller of the open inbox, if name and password are right."""
        return Deferred.fromCoroutine(self._authenticate(name, password, client_ip))

    def watched(self, caller: Caller, end: End) -> AbstractContextManager[None]:
        """Call ``end`` once if the open inbox is gone; the port has the details."""
        return self.receiver.watched(caller, end)

    async def _authenticate(self, name: str, password: str, client_ip: str) -> Caller:
        await self.chaos.meet("authentication")
        if self.passwords and not self.passwords.allows(name, password):
            raise InvalidCredentials("the user or the password is wrong")
        return await self.inbox.caller(client_ip, name)

    async def _accept(self, session: Session, envelope_sender: str, mailbox: Mailbox) -> Recipient:
        await self.chaos.meet("sender", "recipient")
        account = await self.inbox.account()
        accepted = self.receiver.accept_recipient(_of(session, account), envelope_sender, mailbox)
        return await (accepted if isinstance(accepted, Deferred) else succeed(accepted))


def _of(session: Session, account: Account) -> Session:
    return replace(session, account_id=account.id)


def _shown_name(user_name: str) -> str:
    """Return a name as it is stored: of limited length, and without control characters."""
    return "".join(
        character if character.isprintable() else "?" for character in user_name[:MAX_USER_NAME]
    )
