"""Derives text, links and codes of new mail in the background, for lists and searches.

Nobody waits for it: who reads a mail earlier has it derived at once. So it
takes at most a share of the time and leaves the rest to mail coming in.
"""

from collections import deque

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import deferLater
from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import BEGINNING, MINUTE, Instant
from mailcheck.operations.concurrency import MailTraffic
from mailcheck.operations.inbox.contents import MessageContents
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.content_store import ContentStore

REST_SHARE = 3.0
"""Seconds of rest for each second of work: a quarter of one core at most."""

LONGEST_PUT_OFF = 5.0
"""Seconds for which a burst of mail puts the work off; after that it goes on beside it."""

OTHERS_AFTER = 1 * MINUTE
"""Age at which mail that another daemon has taken in is taken apart by any: that one has died."""

MAX_QUEUE = 50_000
"""Deliveries remembered; what is beyond is derived when somebody reads it, or after a restart."""


class Derivation(Service):
    """Works through new deliveries, the oldest first."""

    _log = Logger()

    def __init__(
        self,
        contents: MessageContents,
        store: ContentStore,
        traffic: MailTraffic,
        clock_and_randomness: ClockAndRandomness,
        *,
        is_alone: bool,
    ) -> None:
        """``is_alone``: what is not derived is all this daemon's own, however new it is."""
        self._contents = contents
        self._store = store
        self._traffic = traffic
        self._clock = clock_and_randomness.clock
        self._now = clock_and_randomness.now
        self._is_alone = is_alone
        self._looked_until = BEGINNING
        self._queue: deque[DeliveryId] = deque()
        self._is_working = False
        self._work: Deferred[None] = succeed(None)

    def want(self, delivery_id: DeliveryId) -> None:
        """Take note of a delivery that has just been stored."""
        if len(self._queue) < MAX_QUEUE:
            self._queue.append(delivery_id)
        self._start_work()

    def startService(self) -> None:
        """Begin with what an earlier run left behind."""
        super().startService()
        self._is_working = True
        self._work = Deferred.fromCoroutine(self._catch_up())

    def stopService(self) -> Deferred[None]:
        """Stop; what is left is done after the next start."""
        super().stopService()
        self._work.cancel()
        return self._work

    def _start_work(self) -> None:
        if self.running and not self._is_working:
            self._is_working = True
            self._work = Deferred.fromCoroutine(self._derive_all())

    async def _catch_up(self) -> None:
        try:
            self._queue.extendleft(reversed(await self._left_behind()))
        except ExpectedFailure as failure:
            self._log.warn("mail of an earlier run waits to be read: {reason}", reason=failure)
        except CancelledError:
            return  # stopped
        await self._derive_all()

    async def look_after_others(self) -> None:
        """Take over the mail of daemons that have died; to be done when there is time for it."""
        if not self._queue and not self._is_alone:
            self._queue.extend(await self._left_behind())
            self._start_work()

    async def _left_behind(self) -> list[DeliveryId]:
        if self._is_alone:
            return await self._store.underived(MAX_QUEUE)
        before = Instant(self._now() - OTHERS_AFTER)
        # Looked at twice: the clocks of daemons differ.
        since = Instant(max(BEGINNING, self._looked_until - OTHERS_AFTER))
        found = await self._store.underived(MAX_QUEUE, since=since, before=before)
        self._looked_until = before
        return found

    async def _derive_all(self) -> None:
        try:
            while self._queue and self.running:
                await self._until_quiet()
                began = self._clock.seconds()
                await self._derive(self._queue.popleft())
                rest = REST_SHARE * (self._clock.seconds() - began)
                await deferLater(self._clock, rest)
        except CancelledError:
            return  # stopped
        finally:
            self._is_working = False

    async def _until_quiet(self) -> None:
        """Leave the machine to a burst of mail: what counts for its senders is the 250."""
        while (pause := self._traffic.seconds_until_idle(LONGEST_PUT_OFF)) > 0:
            await deferLater(self._clock, pause)

    async def _derive(self, delivery_id: DeliveryId) -> None:
        try:
            await self._contents.of(delivery_id)
        except CancelledError:
            raise
        except ExpectedFailure:
            return  # deleted meanwhile, or the store is away: a reader tries again
        except Exception:
            self._log.failure("{delivery} could not be derived", delivery=delivery_id)
