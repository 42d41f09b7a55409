"""The life of the analyses in a daemon: what was left is taken up, and let go at the end."""

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed

from mailcheck.operations.deliverability.run_test_checks import RunTestChecks


class AnalysisService(Service):
    """Runs the analyses while the daemon runs; their leases are renewed beside it."""

    def __init__(self, runner: RunTestChecks) -> None:
        self._runner = runner
        self._started: Deferred[None] = succeed(None)

    def startService(self) -> None:
        """Begin with what an earlier run left behind."""
        super().startService()
        self._started = Deferred.fromCoroutine(self._runner.start())

    def stopService(self) -> Deferred[None]:
        """Drop what is under way; fires when it can be taken up by another."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._started
        await self._runner.stop()
