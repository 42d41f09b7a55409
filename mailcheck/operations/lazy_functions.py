"""Functions of worker processes that are only imported where they run.

Parsing and verifying mails needs a quarter of all modules that mailcheck loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mailcheck.checks.content.mime_parts import Part
    from mailcheck.checks.content.outline import Outline
    from mailcheck.checks.deliverability.reading import MailReading
    from mailcheck.checks.mail_checks import MailChecks
    from mailcheck.checks.receiver_reports.complaints import FeedbackSums
    from mailcheck.checks.receiver_reports.feedback import FeedbackReport
    from mailcheck.checks.receiver_reports.plan import SenderMail
    from mailcheck.checks.receiver_reports.reading import RejectedDocument, Report
    from mailcheck.checks.receiver_reports.senders import Overview
    from mailcheck.core.content import MessageContent
    from mailcheck.core.instants import Instant
    from mailcheck.core.receiver_reports import Letter


class LazyFunction:
    """Stands for a function of a module that is imported when it is first called.

    It is pickled as its name, so the calling process does not need to import the module.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return getattr(import_module(self._module), self._name)(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyFunction, (self._module, self._name)


derive_content: Callable[[bytes], MessageContent] = LazyFunction(
    "mailcheck.checks.content.derive", "derive_content"
)
derive_structures: Callable[[list[bytes]], list[tuple[bytes, bytes, Instant | None]]] = (
    LazyFunction("mailcheck.checks.content.mime_parts", "derive_structures")
)
find_pattern: Callable[[str, str], tuple[str, ...]] = LazyFunction(
    "mailcheck.checks.content.patterns", "find_pattern"
)
outline_mail: Callable[[str, str], Outline] = LazyFunction(
    "mailcheck.checks.content.outline", "outline_mail"
)
read_parts: Callable[[bytes], Part] = LazyFunction(
    "mailcheck.checks.content.mime_parts", "read_parts"
)
decode_transfer: Callable[[bytes, str], tuple[bytes, str | None]] = LazyFunction(
    "mailcheck.checks.content.decoding", "decode_transfer"
)
read_mail_for_score: Callable[[bytes], MailReading] = LazyFunction(
    "mailcheck.checks.deliverability.reading", "read_mail_for_score"
)
check_html: Callable[[str, str, str | None, tuple[str, ...], dict[str, str]], MailChecks] = (
    LazyFunction("mailcheck.checks.html_checks.check", "check_html")
)
check_raw_mail: Callable[[bytes], MailChecks] = LazyFunction(
    "mailcheck.checks.html_checks.check", "check_raw_mail"
)
patch_dkimpy: Callable[[], None] = LazyFunction(
    "mailcheck.checks.dkim.dkimpy_verify", "patch_dkimpy"
)
read_report_mail: Callable[[bytes], list[Report | RejectedDocument]] = LazyFunction(
    "mailcheck.checks.receiver_reports.reading", "read_report_mail"
)
read_feedback_mail: Callable[[bytes, bool], FeedbackReport] = LazyFunction(
    "mailcheck.checks.receiver_reports.feedback", "read_feedback_mail"
)
read_complaint_mail: Callable[[bytes, bool], FeedbackReport | Letter] = LazyFunction(
    "mailcheck.checks.receiver_reports.letters", "read_complaint_mail"
)
find_addresses_to_resolve: Callable[[bytes], list[str]] = LazyFunction(
    "mailcheck.checks.receiver_reports.senders", "find_addresses_to_resolve"
)
count_mail: Callable[[bytes, Mapping[str, str]], list[SenderMail]] = LazyFunction(
    "mailcheck.checks.receiver_reports.plan", "count_mail"
)
sum_packed_feedback: Callable[[bytes], FeedbackSums] = LazyFunction(
    "mailcheck.checks.receiver_reports.complaints", "sum_packed_feedback"
)
summarize_page: Callable[
    [str, bytes, str, Mapping[str, str], tuple[int, int]], tuple[Overview, int]
] = LazyFunction("mailcheck.checks.receiver_reports.senders", "summarize_page")
read_report_file: Callable[[bytes], list[Report | RejectedDocument]] = LazyFunction(
    "mailcheck.checks.receiver_reports.reading", "read_report_file"
)
