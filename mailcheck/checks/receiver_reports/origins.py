"""Whose the mail in DMARC reports is: the owner's, unknown, forwarded, or forged.

The overview, the days and the plan of a domain count here, so that they show the same numbers.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.receiver_reports.aggregate import PASS, unpack_rows
from mailcheck.checks.receiver_reports.senders import (
    Cause,
    Identity,
    JudgedRow,
    Sender,
    group_by_sender,
    summarize_sender,
)
from mailcheck.core.domains.receiver_reports import OTHER_SENDERS, SenderDecision

SMALL = 10
"""Maximum number of failing messages of a sender that is decided about together with others."""

SMALL_SHARE = 1_000
"""A sender is also small with one failing message in this number of all messages."""


MAX_ALONE = 5
"""Maximum number of unknown senders without any passing domain that are decided about one by
one."""

_LIKE_FORGED = (
    *(Cause.NOTHING, Cause.UNSIGNED, Cause.OWN_SPF, Cause.OWN_SPF_BROKEN, Cause.OWN_SPF_ABSENT),
    Cause.OWN_SIGNATURE,
)


class SenderMail(Struct, frozen=True):
    """The mail of a sender, counted for a simulation. The counts are by From domain.

    ``failing`` failed and were not forwarded. ``relayed`` were forwarded and failed, and their
    receivers did not say that they knew it. ``unanswered`` have no result, or failed because a
    receiver got no DNS answer, which is repeated when the mail is sent again. ``signed`` and
    ``unsigned`` count messages that passed with a DKIM signature, and by SPF alone.
    """

    sender: Sender
    failing: Mapping[str, int]
    relayed: Mapping[str, int]
    unanswered: int
    signed: int
    unsigned: int

    @property
    def lost(self) -> int:
        """Number of messages that a policy for all From domains would stop."""
        return sum(self.failing.values()) + sum(self.relayed.values())


def count_mail(packed: bytes, hosts: Mapping[str, str]) -> list[SenderMail]:
    """Count the mail of each sender, those with most failing messages first."""
    return count_grouped(group_by_sender(unpack_rows(packed), hosts), hosts)


def count_grouped(
    grouped: Mapping[Identity, Sequence[JudgedRow]], hosts: Mapping[str, str]
) -> list[SenderMail]:
    """Count the rows of each sender, those with most failing messages first."""
    counted = [_count(summarize_sender(who, some, hosts), some) for who, some in grouped.items()]
    return sorted(counted, key=lambda one: (-one.lost, -one.sender.messages, one.sender.key))


def _count(sender: Sender, judged: Sequence[JudgedRow]) -> SenderMail:
    failing: Counter[str] = Counter()
    relayed: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for row, found in judged:
        author = row.row.header_from
        if found.cause is Cause.PASSES:
            others["signed" if row.row.dkim == PASS else "unsigned"] += row.messages
        elif found.cause in (Cause.NO_ANSWER, Cause.NO_RESULT):
            others["unanswered"] += row.messages
        elif found.cause is not Cause.FORWARDED:
            failing[author] += row.messages
        elif not row.row.reasons:  # otherwise the receiver makes an exception
            relayed[author] += row.messages
    return SenderMail(
        sender,
        failing,
        relayed,
        others["unanswered"],
        others["signed"],
        unsigned=others["unsigned"],
    )


Decisions = Mapping[str, SenderDecision]
"""Decisions about senders, by their keys."""


def decide_without_mail(mail: Sequence[SenderMail], decisions: Decisions) -> Decisions:
    """Return the decisions about the senders of a domain that declares that it uses no mail.

    All mail in its name is forged, unless reported mail passes.
    """
    if any(sender.sender.passing for sender in mail):
        return decisions
    forged = dict.fromkeys((sender.sender.key for sender in mail), SenderDecision.NOT_MINE)
    return {**forged, **decisions}


def find_together(mail: Iterable[SenderMail], total: int) -> frozenset[str]:
    """Return the keys of the senders that are decided about together.

    These are unknown senders with little mail. If many unknown senders have mail for which no
    domain passes, it is forged by many addresses, and all of these senders are among them.
    """
    unknown = [sender for sender in mail if sender.lost and _is_unknown(sender.sender)]
    forging = [sender for sender in unknown if sender.sender.cause in _LIKE_FORGED]
    crowd = forging if len(forging) > MAX_ALONE else []
    small = [sender for sender in unknown if is_small(sender, total)]
    return frozenset(sender.sender.key for sender in (*small, *crowd))


def is_small(one: SenderMail, total: int) -> bool:
    """Return whether a sender is unknown and has little mail."""
    return _is_unknown(one.sender) and one.lost <= max(SMALL, total // SMALL_SHARE)


def _is_unknown(sender: Sender) -> bool:
    return not sender.is_known and sender.service is None


def decision_about(
    one: SenderMail, decisions: Decisions, together: Container[str]
) -> SenderDecision | None:
    """Return the decision about a sender, or the one about all that are decided about together.

    :param together: the keys that `find_together` returns.
    """
    own = decisions.get(one.sender.key)
    if own is None and one.sender.key in together:
        return decisions.get(OTHER_SENDERS)
    return own


class Origin(Enum):
    """Whose a message is. The values are the names of the numbers in a `MailSplit`."""

    YOURS = "yours"
    """It passes, or its sender is the owner's."""
    UNKNOWN = "unknown"
    """It fails, and its sender is undecided."""
    FORWARDED = "forwarded"
    """It fails because it was forwarded."""
    FORGED = "forged"
    """It fails, and its sender is not the owner's."""


class MailSplit(Struct, frozen=True):
    """Numbers of messages by their `Origin`. Each message is counted once."""

    yours: int = 0
    unknown: int = 0
    forwarded: int = 0
    forged: int = 0

    @property
    def total(self) -> int:
        """The number of messages."""
        return self.yours + self.unknown + self.forwarded + self.forged


def find_origins(mail: Sequence[SenderMail], decisions: Decisions) -> dict[str, Origin]:
    """Return by key whose the failing mail of each sender is, apart from forwarded mail."""
    together = find_together(mail, sum(sender.sender.messages for sender in mail))
    return {
        sender.sender.key: _origin_of(sender.sender, decision_about(sender, decisions, together))
        for sender in mail
    }


def _origin_of(sender: Sender, decision: SenderDecision | None) -> Origin:
    if decision is SenderDecision.NOT_MINE:
        return Origin.FORGED
    # With strict alignment, a name of the domain itself passes, so the sender is the owner's.
    is_own = decision is SenderDecision.MINE or sender.cause is Cause.STRICT_ALIGNMENT
    return Origin.YOURS if is_own else Origin.UNKNOWN


def origin_of_row(cause: Cause, failing: Origin) -> Origin:
    """Return whose the messages of a row are.

    :param failing: the origin of its sender's failing mail.
    """
    return {Cause.PASSES: Origin.YOURS, Cause.FORWARDED: Origin.FORWARDED}.get(cause, failing)


def split_mail(mail: Iterable[SenderMail], origins: Mapping[str, Origin]) -> MailSplit:
    """Return whose all messages are."""
    counts: Counter[Origin] = Counter()
    for sender in (counted.sender for counted in mail):
        counts[Origin.YOURS] += sender.passing
        counts[Origin.FORWARDED] += sender.forwarded
        counts[origins[sender.key]] += sender.failing - sender.forwarded
    return split_of(counts)


def split_stopped(
    mail: Iterable[SenderMail], origins: Mapping[str, Origin], stops: Callable[[str], bool]
) -> MailSplit:
    """Return whose the messages are that a policy stops.

    :param stops: whether the policy stops failing mail of a From domain.
    """
    counts: Counter[Origin] = Counter()
    for sender in mail:
        counts[Origin.FORWARDED] += count_stopped(sender.relayed, stops)
        counts[origins[sender.sender.key]] += count_stopped(sender.failing, stops)
    return split_of(counts)


def count_stopped(counts: Mapping[str, int], stops: Callable[[str], bool]) -> int:
    """Return how many messages a policy stops, of numbers by From domain."""
    return sum(number for author, number in counts.items() if stops(author))


def split_of(counts: Mapping[Origin, int]) -> MailSplit:
    """Return the numbers of each origin."""
    return MailSplit(**{origin.value: counts.get(origin, 0) for origin in Origin})
