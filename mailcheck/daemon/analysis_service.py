"""The life of the analyses in a daemon: what was left is taken up, leases are kept, and let go."""

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from mailcheck.operations.run_test_checks import RENEWAL, RunTestChecks


class AnalysisService(Service):
    """Runs the analyses while the daemon runs."""

    _log = Logger()

    def __init__(self, runner: RunTestChecks, clock: IReactorTime) -> None:
        self._runner = runner
        self._renewals = LoopingCall(lambda: Deferred.fromCoroutine(self._renew()))
        self._renewals.clock = clock
        self._started: Deferred[None] = succeed(None)
        self._renewed: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Begin with what an earlier run left behind."""
        super().startService()
        self._started = Deferred.fromCoroutine(self._runner.start())
        self._renewals.start(RENEWAL, now=False)

    def stopService(self) -> Deferred[None]:
        """Drop what is under way; fires when it can be taken up by another."""
        super().stopService()
        if self._renewals.running:
            self._renewals.stop()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._started
        await self._renewed
        await self._runner.stop()

    async def _renew(self) -> None:
        renewed: Deferred[None] = Deferred()
        self._renewed = renewed
        try:
            await self._runner.renew()
        except Exception:
            # The next round may find the database well again.
            self._log.failure("leases could not be renewed")
        finally:
            renewed.callback(None)
