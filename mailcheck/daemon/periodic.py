"""Work that comes round again and again; one failure does not end it."""

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure


class PeriodicService(Service):
    """Does its work once in ``interval`` seconds; a round never overlaps the next."""

    _log = Logger()

    def __init__(
        self,
        name: str,
        interval: float,
        work: Callable[[], Coroutine[Any, Any, None]],
        clock: IReactorTime,
        *,
        begins_after: float = 0.0,
        ends_with_round: bool = False,
    ) -> None:
        """Prepare.

        :param begins_after: seconds until the first round, for work that nobody waits for.
        :param ends_with_round: the work is done once more when the service stops.
        """
        self._name = name
        self._interval = interval
        self._work = work
        self._loop = LoopingCall(lambda: Deferred.fromCoroutine(self._do_round()))
        self._loop.clock = clock
        self._clock = clock
        self._begins_after = begins_after
        self._beginning: IDelayedCall | None = None
        self._ends_with_round = ends_with_round
        self._round: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Begin with a round, at once or as soon as it is time for the first."""
        super().startService()
        if self._begins_after:
            self._beginning = self._clock.callLater(self._begins_after, self._begin)
        else:
            self._begin()

    def stopService(self) -> Deferred[None]:
        """Fires when the round under way, and the last one where there is to be one, have ended."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()
        elif self._beginning is not None and self._beginning.active():
            self._beginning.cancel()
        return Deferred.fromCoroutine(self._end())

    def _begin(self) -> None:
        self._loop.start(self._interval)

    async def _end(self) -> None:
        await self._round
        if self._ends_with_round:
            await self._do_round()

    async def _do_round(self) -> None:
        ended: Deferred[None] = Deferred()
        self._round = ended
        try:
            await self._work()
        except ExpectedFailure as failure:
            self._log.warn("{name} is put off: {reason}", name=self._name, reason=failure)
        except Exception:
            # The next round may find the disk or the database well again.
            self._log.failure("{name} failed", name=self._name)
        finally:
            ended.callback(None)
