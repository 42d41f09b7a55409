"""What the content filter, SpamAssassin, made of a mail; or why it said nothing."""

from enum import Enum
from math import fsum

from msgspec import Struct


class FilterRule(Struct, frozen=True):
    """One rule that hit.

    ``points`` are SpamAssassin's own in tenths, or whole from 10 on; above 0
    they are against the mail. ``not_counted`` is a sentence that says why they
    are shown only, mostly that a check of ours judges the same thing; empty
    for a rule that counts.
    """

    name: str
    points: float
    description: str
    not_counted: str = ""

    @property
    def counts(self) -> bool:
        """Tell whether its points are charged: nothing is charged twice."""
        return not self.not_counted


class FilterVerdict(Struct, frozen=True):
    """The filter's judgement of one mail.

    ``points``, ``threshold`` and ``is_spam`` are as the filter gave them, over
    all rules; ``counted_points`` is what a score is made of. ``rules`` are in
    the filter's order. ``engine`` names the program and, where it is known, its version.
    ``left_out`` is the number of octets of attachments that it was not shown.
    """

    points: float
    threshold: float
    is_spam: bool
    rules: tuple[FilterRule, ...]
    engine: str = "SpamAssassin"
    left_out: int = 0

    @property
    def counted_points(self) -> float:
        """Add up the rules that count, to tenths; may be below 0."""
        return round(fsum(rule.points for rule in self.rules if rule.counts), 1)


class FilterProblem(Enum):
    """Why there is no verdict; none of these says anything about the mail."""

    OFF = "off"
    NOT_INSTALLED = "not-installed"
    UNREACHABLE = "unreachable"
    """It takes no connection, or the private one did not start."""
    TIMEOUT = "timeout"
    BUSY = "busy"
    """Too many mails wait for it."""
    TOO_LARGE = "too-large"
    """What is left of the mail without its attachments is more than the filter is given."""
    BROKEN_ANSWER = "broken-answer"
    """It answered something else than SpamAssassin, broke off, or failed."""


class FilterUnavailable(Struct, frozen=True):
    """No verdict: the check is undetermined and costs nothing.

    ``reason`` and ``fix`` are sentences for the report.
    """

    problem: FilterProblem
    reason: str
    fix: str


FilterOutcome = FilterVerdict | FilterUnavailable


_TEXTS = {
    FilterProblem.OFF: (
        "The content filter is switched off here.",
        'The operator can switch it on: [spamassassin] spamd = "auto".',
    ),
    FilterProblem.NOT_INSTALLED: (
        "SpamAssassin is not installed here, so the content was not judged.",
        (
            'The operator can install it, on Debian and Ubuntu with "apt install spamassassin'
            ' spamd"; it is then used without a restart.'
        ),
    ),
    FilterProblem.UNREACHABLE: (
        "SpamAssassin could not be reached, so the content was not judged.",
        "Check the test again in a minute; if it stays, the operator finds the cause in the log.",
    ),
    FilterProblem.TIMEOUT: (
        "SpamAssassin did not finish in time, so the content was not judged.",
        "Check the test again in a minute; very long lines in the text slow SpamAssassin down.",
    ),
    FilterProblem.BUSY: (
        "Too many mails are waiting for SpamAssassin, so the content was not judged.",
        "Check the test again in a minute.",
    ),
    FilterProblem.TOO_LARGE: (
        "Even without its attachments the mail is too large for SpamAssassin.",
        "Send less than 256 KiB of text and HTML: many receivers' filters skip longer mails, too.",
    ),
    FilterProblem.BROKEN_ANSWER: (
        "SpamAssassin gave no answer that could be understood, so the content was not judged.",
        "Check the test again in a minute; if it stays, the operator finds the cause in the log.",
    ),
}


def unavailable(problem: FilterProblem) -> FilterUnavailable:
    """Say that there is no verdict, with the sentences for the report."""
    return FilterUnavailable(problem, *_TEXTS[problem])
