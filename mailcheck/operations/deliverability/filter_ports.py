"""What the operations need of a content filter, and what the filter needs to be run."""

from typing import Protocol

from twisted.internet.defer import Deferred

from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterProblem


class ContentFilter(Protocol):
    """Judges mails by their content, as a receiver's spam filter would."""

    def judge(self, raw_message: bytes) -> Deferred[FilterOutcome]:
        """Judge a mail; our trace fields stand on top of it (`with_trace_fields`).

        Fires with a value within two minutes, whatever becomes of the filter: a failure
        of the filter's is a `FilterUnavailable`. Cancelling gives the mail up.
        """


class PrivateSpamd(Protocol):
    """A spamd of our own, which runs while it is needed."""

    def socket_path(self) -> Deferred[str]:
        """Give the path of its socket when it listens there; starts it where it does not run.

        :raises FilterFailed: it is not installed, or can't be started.
        """

    @property
    def is_running(self) -> bool:
        """Tell whether it listens, or is about to."""

    @property
    def engine(self) -> str:
        """Name the program, with its version where it is known."""


class FilterFailed(Exception):
    """The filter has not judged; the message is for the log and holds nothing of the mail."""

    def __init__(self, problem: FilterProblem, message: str = "") -> None:
        super().__init__(message or problem.value)
        self.problem = problem
