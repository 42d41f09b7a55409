"""Work that comes round again and again; one failure does not end it."""

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
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
        ends_with_round: bool = False,
    ) -> None:
        """``ends_with_round``: the work is done once more when the service stops."""
        self._name = name
        self._interval = interval
        self._work = work
        self._loop = LoopingCall(lambda: Deferred.fromCoroutine(self._do_round()))
        self._loop.clock = clock
        self._ends_with_round = ends_with_round
        self._round: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Begin with a round at once."""
        super().startService()
        self._loop.start(self._interval)

    def stopService(self) -> Deferred[None]:
        """Fires when the round under way, and the last one where there is to be one, have ended."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()
        return Deferred.fromCoroutine(self._end())

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
