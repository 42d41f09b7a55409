"""Numbers of failure reports and complaints about a domain, by sending address and by campaign."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from mailcheck.checks.receiver_reports.limits import MAX_KEPT
from mailcheck.core.domains.receiver_reports import Feedback, FeedbackType
from mailcheck.core.instants import BEGINNING, Instant

MAX_GROUPS = 100
"""Maximum number of addresses, and of campaigns, in an overview, those with most reports first."""


class FeedbackRow(Struct, frozen=True):
    """Equal mails that one reporter reported, until ``last_day``."""

    feedback: Feedback
    mails: int
    reporter: str
    last_day: Instant


class FeedbackCounts(Struct, frozen=True):
    """Numbers of reported mails."""

    types: Mapping[FeedbackType, int]

    @property
    def failures(self) -> int:
        """Number of mails that failed DMARC."""
        return self.types.get(FeedbackType.AUTH_FAILURE, 0)

    @property
    def complaints(self) -> int:
        """Number of mails with a complaint."""
        return sum(mails for kind, mails in self.types.items() if kind.is_complaint)


class FeedbackGroup(FeedbackCounts, frozen=True):
    """Reported mails of one address or campaign. ``field`` is empty for an address."""

    name: str
    field: str
    reporters: tuple[str, ...]
    last_day: Instant


class FeedbackSums(FeedbackCounts, frozen=True):
    """All reported mails of a domain; ``sources`` and ``campaigns`` have the most frequent.

    ``by_address`` has the numbers of failures and complaints of each address.
    """

    by_address: Mapping[str, tuple[int, int]]
    sources: tuple[FeedbackGroup, ...]
    campaigns: tuple[FeedbackGroup, ...]

    def about(self, addresses: Iterable[str]) -> tuple[int, int]:
        """Return the numbers of failures and complaints about mails of these addresses."""
        found = [self.by_address.get(address, (0, 0)) for address in addresses]
        return sum(failures for failures, _ in found), sum(number for _, number in found)


NO_FEEDBACK = FeedbackSums({}, {}, (), ())


PackedFeedback = tuple[str, int, str, Instant]
"""A `FeedbackRow` with its content as JSON, as stored, for another process."""


def sum_packed_feedback(packed: bytes) -> FeedbackSums:
    """Sum rows in MessagePack. Ten thousand take 0.2 seconds, so a child process does it."""
    decode = msgspec.json.Decoder(Feedback).decode
    rows_data = msgspec.msgpack.decode(packed, type=list[tuple[str, int, str, int]])
    return sum_feedback(
        FeedbackRow(decode(content), mails, reporter, Instant(last_day))
        for content, mails, reporter, last_day in rows_data
    )


def sum_feedback(rows: Iterable[FeedbackRow]) -> FeedbackSums:
    """Sum reported mails by sending address and by campaign."""
    rows = list(rows)
    sources = _grouped(rows, lambda one: (one.source, ""))
    campaigns = _grouped(rows, lambda one: (one.campaign, one.campaign_field))
    return FeedbackSums(
        _types_of(rows),
        {source.name: (source.failures, source.complaints) for source in sources},
        sources[:MAX_GROUPS],
        campaigns[:MAX_GROUPS],
    )


def _grouped(
    rows: Iterable[FeedbackRow], name_of: Callable[[Feedback], tuple[str, str]]
) -> tuple[FeedbackGroup, ...]:
    """Return the groups with a name, those with most mails first."""
    groups: dict[tuple[str, str], list[FeedbackRow]] = {}
    for row in rows:
        groups.setdefault(name_of(row.feedback), []).append(row)
    found = [_group(name, field, some) for (name, field), some in groups.items() if name]
    found.sort(key=lambda one: (-sum(one.types.values()), one.field, one.name))
    return tuple(found)


def _group(name: str, field: str, rows: Iterable[FeedbackRow]) -> FeedbackGroup:
    reporters: Counter[str] = Counter()
    last_day = BEGINNING
    for row in rows:
        reporters[row.reporter] += row.mails
        last_day = max(last_day, row.last_day)
    named = tuple(name for name, _ in reporters.most_common(MAX_KEPT))
    return FeedbackGroup(_types_of(rows), name, field, named, last_day)


def _types_of(rows: Iterable[FeedbackRow]) -> Mapping[FeedbackType, int]:
    types: Counter[FeedbackType] = Counter()
    for row in rows:
        types[row.feedback.type] += row.mails
    return dict(types.most_common())


_UNSUBSCRIBE = (
    "Stop sending to this recipient, and check that the unsubscribe link of the campaign works."
)

_SENTENCES: Mapping[FeedbackType, tuple[str, str]] = {
    FeedbackType.ABUSE: ("The recipient marked the mail as spam.", _UNSUBSCRIBE),
    FeedbackType.FRAUD: (
        "The mail was reported as fraud or phishing.",
        "If you sent it, check the account and the links in it. Otherwise p=reject stops it.",
    ),
    FeedbackType.OPT_OUT: ("The recipient asks to be unsubscribed.", _UNSUBSCRIBE),
    FeedbackType.NOT_SPAM: (
        "The recipient moved the mail out of the spam folder.",
        "No action is needed.",
    ),
    FeedbackType.AUTH_FAILURE: (
        "The mail failed DMARC.",
        "If the address sends for you, set up its SPF or DKIM as the list of senders says.",
    ),
    FeedbackType.VIRUS: (
        "The receiver found malware in the mail.",
        "If you sent it, check the account that sent it, and the attachment.",
    ),
    FeedbackType.OTHER: (
        "The mail was reported for another reason.",
        "Ask the reporter for the reason if such reports continue.",
    ),
}


def explain_feedback(feedback: Feedback) -> str:
    """Return what a report says about a mail."""
    text = _SENTENCES[feedback.type][0]
    if feedback.type is FeedbackType.AUTH_FAILURE:
        aligned = {"": "", "none": " Neither SPF nor DKIM was aligned."}
        default = f" Aligned: {feedback.alignment}."
        text += aligned.get(feedback.alignment, default)
    return text


def advise_feedback(kind: FeedbackType) -> str:
    """Return what to do about a mail with such a report."""
    return _SENTENCES[kind][1]
