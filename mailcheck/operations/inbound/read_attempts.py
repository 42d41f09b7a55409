"""Reading the mails of routes and the attempts to deliver them, and waiting for an application."""

from msgspec import Struct, field
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import InboundMailNotFound
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import (
    InboundAttempt,
    InboundMailId,
    InboundState,
)
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.operations.watchers import Watchers
from mailcheck.store.inbound_store import (
    InboundFilter,
    InboundMailFacts,
    InboundStore,
    ListedDelivery,
)

LOOKED_AT = 50
"""Number of deliveries, the newest, that a wait looks at."""

PENDING = frozenset({InboundState.WAITING, InboundState.RETRYING})


class AttemptPage(Struct, frozen=True):
    """Attempts, newest first, and how the deliveries of the same filter stand.

    :param total: counts all attempts.
    :param is_delivered: whether the application has taken the mail; without a mail in the filter,
        whether it has taken any.
    :param pending: the number of deliveries with a next attempt.
    """

    attempts: tuple[InboundAttempt, ...]
    total: int
    is_delivered: bool
    pending: int
    deliveries: tuple[ListedDelivery, ...]


class ReadInbound(Struct, frozen=True, eq=False):
    """Reads mails and attempts. ``slots`` limit the waits of a key."""

    store: InboundStore
    slots: WaitSlots
    clock: IReactorTime
    _bells: Watchers[AccountId, "Deferred[None]"] = field(default_factory=Watchers)

    def on_attempt(self, account_id: AccountId) -> None:
        """Handle the hint that an attempt of an account was made."""
        for bell in self._bells.of(account_id):
            if not bell.called:
                bell.callback(None)

    def wake_all(self) -> None:
        """Let all waits look again, since hints may have been lost."""
        for account_id in self._bells.watched():
            self.on_attempt(account_id)

    async def attempts(
        self, account_id: AccountId, wanted: InboundFilter, limit: int, offset: int = 0
    ) -> AttemptPage:
        """Return a page of attempts."""
        deliveries = tuple(
            await self.store.deliveries(account_id, wanted, LOOKED_AT, has_attempts=False)
        )
        mails = [listed.delivery for listed in deliveries if listed.delivery.mail_id is not None]
        taken = [delivery.taken_at is not None for delivery in mails]
        is_delivered = bool(taken) and (any if wanted.mail_id is None else all)(taken)
        return AttemptPage(
            tuple(await self.store.attempts(account_id, wanted, limit, offset)),
            await self.store.count_attempts(account_id, wanted),
            is_delivered,
            sum(delivery.state in PENDING for delivery in mails),
            deliveries,
        )

    async def wait(
        self, caller: Caller, wanted: InboundFilter, limit: int, seconds: float
    ) -> AttemptPage:
        """Return a page of attempts when the application has taken the mail.

        Return earlier if no attempt follows, and at the latest after ``seconds``.

        :raises TooManyWaits: all wait slots of the key are in use.
        :raises InvalidCredentials: the access of the caller has ended meanwhile.
        """
        ends_at = self.clock.seconds() + seconds
        account_id = caller.account_id
        async with self.slots.held_by(caller) as parked:
            while True:
                # The bell is hung up before the store is read, so that no attempt is missed.
                bell: Deferred[None] = Deferred()
                with self._bells.joined(account_id, bell):
                    page = await self.attempts(account_id, wanted, limit)
                    has_ended = bool(page.total) and not page.pending and wanted.mail_id is not None
                    left = ends_at - self.clock.seconds()
                    if page.is_delivered or has_ended or left <= 0:
                        return page
                    try:
                        await parked.until(bell, left)
                    except DeferredTimeout:
                        return await self.attempts(account_id, wanted, limit)

    async def deliveries(
        self, account_id: AccountId, wanted: InboundFilter, limit: int, offset: int = 0
    ) -> list[ListedDelivery]:
        """Return deliveries with their last attempts, newest first."""
        return await self.store.deliveries(account_id, wanted, limit, offset)

    async def describe_mail(self, account_id: AccountId, mail_id: str) -> InboundMailFacts:
        """Return a mail of an account without its bytes.

        :raises InboundMailNotFound: the account has no mail with this id.
        """
        found = await self.store.describe_mail(account_id, InboundMailId(mail_id))
        if found is None:
            raise _missing()
        return found


def _missing() -> InboundMailNotFound:
    return InboundMailNotFound("there is no such mail: the id is wrong or it is gone")
