"""Summary of the DMARC reports about a domain: its senders, and whose the mail of each day is."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.receiver_reports.aggregate import ReportedRow, unpack_rows
from mailcheck.checks.receiver_reports.origins import (
    Decisions,
    MailSplit,
    Origin,
    count_grouped,
    decide_without_mail,
    find_origins,
    origin_of_row,
    split_mail,
    split_of,
    split_stopped,
)
from mailcheck.checks.receiver_reports.senders import (
    MAX_REPORTERS,
    MAX_SENDERS,
    Identity,
    JudgedRow,
    Sender,
    group_by_sender,
)
from mailcheck.core.instants import BEGINNING, DAY, Instant

NO_DECISIONS: Decisions = {}


class MailOfDays(Struct, frozen=True):
    """Whose the mail of a day is, or of several days that begin with it."""

    first_day: Instant
    mail: MailSplit


class Overview(Struct, frozen=True):
    """Summary of the reports about a domain; unauthorized senders come first.

    ``senders`` are the first `MAX_SENDERS`, but the numbers count all of them. ``policy`` is the
    newest one in the reports. ``mail`` counts all messages, and ``stopped`` the messages that
    ``p=reject`` would stop for all From domains.
    """

    domain: str
    messages: int
    failing: int
    mail: MailSplit
    stopped: MailSplit
    policy: str
    begins_at: Instant
    ends_at: Instant
    reporters: Mapping[str, int]
    senders: tuple[Sender, ...]
    days: tuple[MailOfDays, ...] = ()

    @property
    def passing(self) -> int:
        """The number of messages that pass."""
        return self.messages - self.failing


CountOfRow = tuple[int, Instant, int]
"""Index of a row, a first day, and the messages of the row since that day."""


def pack_counts(counts: Sequence[CountOfRow]) -> bytes:
    """Serialize the counts of rows for another process."""
    return msgspec.msgpack.encode(counts)


class OverviewRequest(Struct, frozen=True):
    """The rows to summarize, for another process.

    ``rows`` are packed, and so are ``counts``, the numbers of their messages by days. ``span`` has
    the index of the first sender of the page, and of the first one after it. ``is_without_mail``:
    the domain declares that it uses no mail.
    """

    domain: str
    rows: bytes
    policy: str
    decisions: Decisions = NO_DECISIONS
    span: tuple[int, int] = (0, MAX_SENDERS)
    is_without_mail: bool = False
    counts: bytes = b""


def summarize_page(request: OverviewRequest, hosts: Mapping[str, str]) -> tuple[Overview, int]:
    """Return an overview with one page of its senders, and the number of all senders."""
    seen = unpack_rows(request.rows)
    whole = _summarize(request, seen, hosts)
    reporters = dict(list(whole.reporters.items())[:MAX_REPORTERS])
    page = replace(whole, senders=whole.senders[slice(*request.span)], reporters=reporters)
    return page, len(whole.senders)


def overview_of(
    domain: str, seen: Sequence[ReportedRow], policy: str, hosts: Mapping[str, str]
) -> Overview:
    """Summarize rows; ``hosts`` are the known reverse DNS names of addresses."""
    return _summarize(OverviewRequest(domain, b"", policy), seen, hosts)


def _summarize(
    request: OverviewRequest, seen: Sequence[ReportedRow], hosts: Mapping[str, str]
) -> Overview:
    reporters: Counter[str] = Counter()
    for row in seen:
        reporters[row.reporter] += row.messages
    grouped = group_by_sender(seen, hosts)
    mail = count_grouped(grouped, hosts)
    decisions = request.decisions
    if request.is_without_mail:
        decisions = decide_without_mail(mail, decisions)
    origins = find_origins(mail, decisions)
    senders = sorted((counted.sender for counted in mail), key=_sort_key)
    return Overview(
        domain=request.domain,
        messages=reporters.total(),
        failing=sum(sender.failing for sender in senders),
        mail=split_mail(mail, origins),
        stopped=split_stopped(mail, origins, lambda _: True),
        policy=request.policy,
        begins_at=min((row.first_day for row in seen), default=BEGINNING),
        ends_at=Instant(max((row.last_day for row in seen), default=Instant(-DAY)) + DAY),
        reporters=dict(reporters.most_common()),
        senders=tuple(senders[:MAX_SENDERS]),
        days=tuple(_split_days(request.counts, seen, grouped, origins)),
    )


def _sort_key(sender: Sender) -> tuple[bool, bool, int, int, str, str]:
    """Return the sort key: unknown failing senders first, then by failing and by all messages."""
    failing, messages = sender.failing, sender.messages
    return (not failing, failing < messages, -failing, -messages, sender.key, sender.name)


def _split_days(
    counts: bytes,
    seen: Sequence[ReportedRow],
    grouped: Mapping[Identity, Sequence[JudgedRow]],
    origins: Mapping[str, Origin],
) -> Iterable[MailOfDays]:
    """Return whose the mail of each day is, in order."""
    if not counts:
        return []
    known = {
        row.row: origin_of_row(found.cause, origins[key])
        for (key, _), some in grouped.items()
        for row, found in some
    }
    days: dict[int, Counter[Origin]] = {}
    for index, first_day, messages in msgspec.msgpack.decode(
        counts, type=list[tuple[int, int, int]]
    ):
        days.setdefault(first_day, Counter())[known[seen[index].row]] += messages
    return [MailOfDays(Instant(day), split_of(found)) for day, found in sorted(days.items())]
