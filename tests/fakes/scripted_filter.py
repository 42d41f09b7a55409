"""A content filter with scripted verdicts.

content_filter = ScriptedFilter()
content_filter.outcome = unavailable(FilterProblem.TIMEOUT)
content_filter.holds = True        # answers when the test calls answer()
content_filter.judged              # all mails, in order
"""

from twisted.internet.defer import Deferred, succeed

from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterVerdict

CLEAN = FilterVerdict(points=0.0, threshold=5.0, is_spam=False, rules=())


class ScriptedFilter:
    """Answers at once, or when the test triggers the answer."""

    def __init__(self, outcome: FilterOutcome = CLEAN) -> None:
        self.outcome = outcome
        self.holds = False
        self.judged: list[bytes] = []
        self._waiting: list[Deferred[FilterOutcome]] = []

    def judge(self, raw_message: bytes) -> Deferred[FilterOutcome]:
        """Record the mail, and return the outcome."""
        self.judged.append(raw_message)
        if not self.holds:
            return succeed(self.outcome)
        waiting: Deferred[FilterOutcome] = Deferred(self._waiting.remove)
        self._waiting.append(waiting)
        return waiting

    def answer(self) -> None:
        """Answer all pending calls."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(self.outcome)
