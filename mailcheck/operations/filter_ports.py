"""What the operations need of a content filter."""

from typing import Protocol

from twisted.internet.defer import Deferred

from mailcheck.checks.deliverability.content_filter import FilterOutcome


class ContentFilter(Protocol):
    """Judges mails by their content, as a receiver's spam filter would."""

    def judge(self, raw_message: bytes) -> Deferred[FilterOutcome]:
        """Judge a mail; our trace fields stand on top of it (`with_trace_fields`).

        Fires with a value within two minutes, whatever becomes of the filter: a failure
        of the filter's is a `FilterUnavailable`. Cancelling gives the mail up.
        """
