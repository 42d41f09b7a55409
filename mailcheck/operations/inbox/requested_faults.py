"""Which fault a mail meets: by the tags of its recipients, or by the key that hands it in."""

from collections.abc import Sequence

from twisted.internet.defer import Deferred, fail, succeed

from mailcheck.core.accounts import Caller
from mailcheck.core.client_limits import DAY_WINDOW
from mailcheck.core.errors import FaultMet
from mailcheck.core.faults import MAIL_REFUSED, Fault, Meeting, find_fault
from mailcheck.core.instants import DAY, SECOND, Instant
from mailcheck.core.keys import key_of
from mailcheck.core.messages import Recipient
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Hit, Memory, RateCounters

GREYLISTED_PAIRS = 1_000
"""Pairs of sender and recipient that an inbox greylists in a UTC day: each is remembered."""

GREYLIST_MEMORY = DAY
"""How long a pair that got through gets through at once."""

UNCOUNTED = 2**31 - 1
"""Mails of a key in a day that are counted for its own fault."""


class RequestedFaults:
    """Knows the faults; with ``is_on`` false there are none.

    ``memory`` and ``counters`` are those of all daemons.
    """

    def __init__(self, memory: Memory, counters: RateCounters, now: Now, *, is_on: bool) -> None:
        self._memory = memory
        self._counters = counters
        self._now = now
        self.is_on = is_on

    def at_recipient(self, tag: str) -> Fault | None:
        """Find the fault that a recipient meets at RCPT."""
        fault = find_fault(tag) if self.is_on else None
        return fault if fault is not None and fault.meeting.is_at_recipient else None

    def meet(self, recipient: Recipient, fault: Fault, envelope_sender: str) -> Deferred[Recipient]:
        """Meet a fault at RCPT: the recipient all the same, where it lets him through.

        The Deferred fails with `FaultMet`: it is refused, and why.
        """
        if fault.meeting is Meeting.GREYLISTED:
            return Deferred.fromCoroutine(self._greylist(recipient, fault, envelope_sender))
        return fail(FaultMet(f"{fault.tag}: refused, as its tag asks for", fault.reply))

    def of_mail(
        self, sender: Caller | None, recipients: Sequence[Recipient]
    ) -> Deferred[Fault | None] | None:
        """Find the fault that a whole mail meets: of several recipients the first one's.

        :param sender: who has signed in. The key's own setting counts where no tag decides.
        :return: nothing where it is certain that it meets none.
        """
        if not self.is_on:
            return None
        for recipient in recipients:
            fault = find_fault(recipient.tag)
            if fault is not None and not fault.meeting.is_at_recipient:
                return succeed(fault)
        if sender is None or sender.fails_every is None:
            return None
        return Deferred.fromCoroutine(self._count(sender, sender.fails_every))

    async def _greylist(
        self, recipient: Recipient, fault: Fault, envelope_sender: str
    ) -> Recipient:
        now = self._now()
        pair = recipient.address.casefold(), envelope_sender.casefold()
        name = key_of("greylisted", recipient.account_id, *pair)
        first_tried = await self._memory.recall(name)
        if first_tried is None:
            await self._require_room(recipient, fault)
            await self._memory.keep(name, str(now), GREYLIST_MEMORY)
            first_tried = str(now)
        left = fault.seconds * SECOND - (now - Instant(int(first_tried)))
        if left <= 0:
            return recipient
        wait = -(-left // SECOND)
        raise FaultMet(f"{fault.tag}: greylisted, try again in {wait} s", fault.reply)

    async def _require_room(self, recipient: Recipient, fault: Fault) -> None:
        """Count a new pair; what is remembered for an inbox is bounded."""
        window = (DAY_WINDOW, DAY_WINDOW.index(self._now()), GREYLISTED_PAIRS)
        ((count,),) = await self._counters.hit(
            Hit(key_of("greylisted of", recipient.account_id), (window,))
        )
        if count > GREYLISTED_PAIRS:
            problem = f"more than {GREYLISTED_PAIRS} senders and recipients greylisted today"
            raise FaultMet(f"{fault.tag}: {problem}", fault.reply)

    async def _count(self, sender: Caller, every: int) -> Fault | None:
        window = (DAY_WINDOW, DAY_WINDOW.index(self._now()), UNCOUNTED)
        ((count,),) = await self._counters.hit(
            Hit(key_of("mails of key", sender.key_id), (window,))
        )
        if count % every:
            return None
        which = "each mail" if every == 1 else f"mail {every} of {every}"
        return Fault(f"{which} of this key", Meeting.REFUSED_MAIL, MAIL_REFUSED)
