"""Derives text, links and codes of new mail in the background, for lists and searches.

A client that reads a mail earlier has it derived at once. The background work therefore uses
only a fraction of the time and leaves the rest to incoming mail.
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
"""Seconds of rest for each second of work, so that it uses at most a quarter of one core."""

LONGEST_PUT_OFF = 5.0
"""Maximum seconds for which a burst of mail delays the work."""

OTHERS_AFTER = 1 * MINUTE
"""Age after which any daemon derives mail that another daemon received, which may have died."""

MAX_QUEUE = 50_000
"""Maximum number of queued deliveries. Others are derived when they are read or after a restart."""


class Derivation(Service):
    """Derives the contents of new deliveries, the oldest first."""

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
        """``is_alone``: no other daemon uses the database, so all mail is this daemon's."""
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
        """Queue a delivery that was just stored."""
        if len(self._queue) < MAX_QUEUE:
            self._queue.append(delivery_id)
        self._start_work()

    def startService(self) -> None:
        """Start with the mail that an earlier run did not derive."""
        super().startService()
        self._is_working = True
        self._work = Deferred.fromCoroutine(self._catch_up())

    def stopService(self) -> Deferred[None]:
        """Stop. The remaining mail is derived after the next start."""
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
            self._log.warn("mail of an earlier run is not derived yet: {reason}", reason=failure)
        except CancelledError:
            return  # stopped
        await self._derive_all()

    async def look_after_others(self) -> None:
        """Derive mail of daemons that have died. Call this periodically."""
        if not self._queue and not self._is_alone:
            self._queue.extend(await self._left_behind())
            self._start_work()

    async def _left_behind(self) -> list[DeliveryId]:
        if self._is_alone:
            return await self._store.underived(MAX_QUEUE)
        before = Instant(self._now() - OTHERS_AFTER)
        # The periods overlap, since the clocks of daemons differ.
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
        """Wait for the end of a burst of mail, since senders wait for the reply 250."""
        while (pause := self._traffic.seconds_until_idle(LONGEST_PUT_OFF)) > 0:
            await deferLater(self._clock, pause)

    async def _derive(self, delivery_id: DeliveryId) -> None:
        try:
            await self._contents.of(delivery_id)
        except CancelledError:
            raise
        except ExpectedFailure:
            return  # the mail was deleted, or the store is unavailable: readers derive it later
        except Exception:
            self._log.failure("{delivery} could not be derived", delivery=delivery_id)
