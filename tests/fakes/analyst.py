"""An analysis that the test completes."""

from dataclasses import dataclass, field

from twisted.internet.defer import Deferred

from mailcheck.core.deliverability_tests import ReceivedMail, StoredReport

REPORT = StoredReport(95, '{"checks": {}}')


@dataclass
class Analyst:
    """Implements `Analyse`; each analysis waits in ``pending`` for the test."""

    mails: list[ReceivedMail] = field(default_factory=list)
    pending: list["Deferred[StoredReport]"] = field(default_factory=list)
    cancelled: int = 0

    async def __call__(self, mail: ReceivedMail) -> StoredReport:
        """Judge a mail; wait for the test."""
        self.mails.append(mail)
        answer: Deferred[StoredReport] = Deferred(self._note_cancelled)
        self.pending.append(answer)
        return await answer

    def report(self, report: StoredReport = REPORT) -> None:
        """Complete the oldest pending analysis."""
        self.pending.pop(0).callback(report)

    def fail(self, failure: Exception) -> None:
        """Fail the oldest pending analysis."""
        self.pending.pop(0).errback(failure)

    def _note_cancelled(self, _: object) -> None:
        self.cancelled += 1
