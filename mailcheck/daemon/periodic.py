"""Periodic work. A failure does not end it."""

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure
from mailcheck.operations.concurrency import stop_timer


class PeriodicService(Service):
    """Runs its work every ``interval`` seconds, never concurrently."""

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
        is_cancelled: bool = False,
    ) -> None:
        """Prepare.

        :param begins_after: seconds until the first round, for work without urgency.
        :param ends_with_round: run the work once more when the service stops.
        :param is_cancelled: a stop cancels the current round, with which the next start goes on.
        """
        self._name = name
        self._interval = interval
        self._work = work
        self._loop = LoopingCall(self._start_round)
        self._loop.clock = clock
        self._clock = clock
        self._begins_after = begins_after
        self._beginning: IDelayedCall | None = None
        self._ends_with_round = ends_with_round
        self._is_cancelled = is_cancelled
        self._round: Deferred[None] = succeed(None)
        self._current: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Run the first round, at once or after ``begins_after`` seconds."""
        super().startService()
        if self._begins_after:
            self._beginning = self._clock.callLater(self._begins_after, self._begin)
        else:
            self._begin()

    def stopService(self) -> Deferred[None]:
        """Stop. Fires when the current round, and the last one if requested, have ended."""
        super().stopService()
        stop_timer(self._beginning)
        if self._loop.running:
            self._loop.stop()
        if self._is_cancelled:
            self._current.cancel()
        return Deferred.fromCoroutine(self._end())

    def _begin(self) -> None:
        self._loop.start(self._interval)

    def _start_round(self) -> Deferred[None]:
        self._current = Deferred.fromCoroutine(self._do_round())
        return self._current

    async def _end(self) -> None:
        await self._round
        if self._ends_with_round:
            await self._do_round()

    async def _do_round(self) -> None:
        ended: Deferred[None] = Deferred()
        self._round = ended
        try:
            await self._work()
        except CancelledError:
            pass  # the service stops
        except ExpectedFailure as failure:
            self._log.warn("{name} is put off: {reason}", name=self._name, reason=failure)
        except Exception:
            # The next round may succeed again.
            self._log.failure("{name} failed", name=self._name)
        finally:
            ended.callback(None)
