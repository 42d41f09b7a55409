"""Work that comes round again and again; one failure does not end it."""

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger


class PeriodicService(Service):
    """Does its work once in ``interval`` seconds; a round never overlaps the next."""

    _log = Logger()

    def __init__(
        self,
        name: str,
        interval: float,
        work: Callable[[], Coroutine[Any, Any, None]],
        clock: IReactorTime,
    ) -> None:
        self._name = name
        self._interval = interval
        self._work = work
        self._loop = LoopingCall(lambda: Deferred.fromCoroutine(self._do_round()))
        self._loop.clock = clock
        self._round: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Begin with a round at once."""
        super().startService()
        self._loop.start(self._interval)

    def stopService(self) -> Deferred[None]:
        """Begin no further round; fires when the one under way has ended."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()
        return self._round

    async def _do_round(self) -> None:
        ended: Deferred[None] = Deferred()
        self._round = ended
        try:
            await self._work()
        except Exception:
            # The next round may find the disk or the database well again.
            self._log.failure("{name} failed", name=self._name)
        finally:
            ended.callback(None)
