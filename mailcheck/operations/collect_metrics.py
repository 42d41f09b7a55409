"""The metrics of an account for Prometheus: watches, heartbeats and reports.

They are read from the results that are stored; nothing is checked. The number of series is
bounded: each kind has a series for each of the first targets, worst first, and one named
``other`` for the rest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct

from mailcheck.checks.scoring.awards import GOOD_FROM
from mailcheck.checks.watching.changes import WatchState, read_state
from mailcheck.checks.watching.facts import CERTIFICATE_ENDS, is_list
from mailcheck.core.domains.heartbeats import HeartbeatState
from mailcheck.core.domains.receiver_reports import ReportKind
from mailcheck.core.domains.watches import Alert, Watch
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import SECOND, Instant, parse_instant
from mailcheck.core.memory.instruments import Kind, Labels, Metric
from mailcheck.operations.domains.watches.manage_heartbeats import Heartbeat, ManageHeartbeats
from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.operations.reports.show_reports import ShowReports
from mailcheck.store.domains.report_sums import ReportedDomain
from mailcheck.store.domains.watch_store import WatchStore

DEFAULT_TARGETS, MOST_TARGETS = 100, 300
"""Default and maximum number of targets of a kind with series of their own. No more are read."""

OTHER = "other"
"""Target of the series of all targets that have none of their own."""

PREFIX = "mailcheck_account_"
"""Beginning of the names. Metrics of the daemon have other names."""

Item = TypeVar("Item")

Combine = Callable[[Iterable[float]], float]
"""Returns the value of the series of the rest: their sum, or the worst one."""


class _Watched(Struct, frozen=True):
    watch: Watch
    state: WatchState | None

    @property
    def score(self) -> float | None:
        return self.state.score if self.state is not None and self.state.points else None

    @property
    def certificate_ends(self) -> float | None:
        topics = {} if self.state is None else self.state.topics
        ends = [
            parse_instant(f"{topic.facts[CERTIFICATE_ENDS].value}T00:00:00Z") / SECOND
            for topic in topics.values()
            if CERTIFICATE_ENDS in topic.facts
        ]
        return min(ends, default=None)


def _lists(one: _Watched, result: str) -> float | None:
    """Return the number of blocklists with a result; `None` before the first check."""
    if one.state is None or not one.state.topics:
        return None
    found = {"listed": 0, "clean": 0, "undetermined": 0}
    for name, topic in one.state.topics.items():
        if is_list(name):
            known = "listed" if topic.facts else "clean"
            found["undetermined" if topic.missed else known] += 1
    return found[result]


class CollectMetrics(Struct, frozen=True, eq=False):
    """Reads the metrics of an account."""

    store: WatchStore
    watches: ManageWatches
    heartbeats: ManageHeartbeats
    reports: ShowReports

    async def collect(self, account_id: AccountId, most: int) -> Sequence[Metric]:
        """Return the metrics of an account.

        :param most: maximum number of targets of a kind with series of their own.
        """
        page = await self.store.worst_first(account_id, GOOD_FROM, Instant(0), MOST_TARGETS, 0)
        watched = [_Watched(watch, read_state(watch.state)) for watch in page.watches]
        heartbeats = sorted(
            await self.heartbeats.all(account_id), key=lambda one: (one.is_well, one.name)
        )
        reported = [
            domain
            for domain in await self.reports.domains(account_id)
            if domain.kind is ReportKind.DMARC
        ]
        alerts = [
            *((("watch", alert)) for alert in await self.watches.open_alerts(account_id)),
            *((("heartbeat", alert)) for alert in await self.heartbeats.open_alerts(account_id)),
        ]
        return [
            *_of_watches(watched, most),
            *_of_heartbeats(heartbeats, most),
            *_of_reports(reported, most),
            _open_alerts(alerts),
            _gauge(
                "other_targets",
                "Targets without series of their own, which the series other stands for.",
                ("source",),
                {
                    ("watch",): max(0, page.total - most),
                    ("heartbeat",): max(0, len(heartbeats) - most),
                    ("report",): max(0, len(reported) - most),
                },
            ),
        ]


def _of_watches(watched: Sequence[_Watched], most: int) -> list[Metric]:
    def by_target(
        name: str, text: str, read: Callable[[_Watched], float | None], combine: Combine
    ) -> Metric:
        values = _values(watched, most, lambda one: one.watch.target, read, combine)
        return _gauge(f"watch_{name}", text, ("target",), values)

    lists: dict[Labels, float] = {}
    for result in ("listed", "clean", "undetermined"):
        values = _values(
            watched, most, lambda one: one.watch.target, partial(_lists, result=result), sum
        )
        lists |= {(*target, result): value for target, value in values.items()}
    return [
        by_target("score", "Score of a watched domain, 0 to 100.", lambda one: one.score, min),
        by_target(
            "problems",
            "Current problems of a watched domain or address.",
            lambda one: one.watch.problem_count,
            sum,
        ),
        by_target(
            "last_run_timestamp_seconds",
            "Time of the last check, in seconds since 1970.",
            lambda one: _seconds(one.watch.last_run_at),
            min,
        ),
        by_target(
            "certificate_expiry_timestamp_seconds",
            "Time at which the first certificate of a mail host expires, in seconds since 1970.",
            lambda one: one.certificate_ends,
            min,
        ),
        _gauge(
            "watch_blocklists",
            "Blocklists by result of the last check. An undetermined one is not a clean one.",
            ("target", "result"),
            lists,
        ),
    ]


def _of_heartbeats(heartbeats: Sequence[Heartbeat], most: int) -> list[Metric]:
    active = [heartbeat for heartbeat in heartbeats if heartbeat.state is not HeartbeatState.PAUSED]

    def by_name(
        name: str, text: str, read: Callable[[Heartbeat], float | None], combine: Combine
    ) -> Metric:
        values = _values(active, most, lambda one: one.name, read, combine)
        return _gauge(f"heartbeat_{name}", text, ("heartbeat",), values)

    return [
        by_name(
            "missed",
            "Mails of a heartbeat in a row that have not come within their grace.",
            lambda one: one.beats.misses,
            sum,
        ),
        by_name(
            "problems", "Open problems of a heartbeat.", lambda one: len(one.beats.alerts), sum
        ),
        by_name(
            "last_timestamp_seconds",
            "Time at which the last mail of a heartbeat arrived, in seconds since 1970.",
            lambda one: _seconds(one.beats.last_at),
            min,
        ),
        by_name(
            "due_timestamp_seconds",
            "Time at which the next mail of a heartbeat is due, in seconds since 1970.",
            lambda one: _seconds(one.beats.expected.due),
            min,
        ),
        by_name(
            "late_seconds",
            "Seconds after which the last mail of a heartbeat came once it was due; 0 if early.",
            lambda one: None if one.beats.late is None else max(0, one.beats.late) / SECOND,
            max,
        ),
        by_name(
            "transit_seconds",
            "Seconds in transit of the last mail of a heartbeat, by its Received fields.",
            lambda one: None if one.beats.facts is None else one.beats.facts.seconds,
            max,
        ),
        by_name("score", "Score of the last mail of a heartbeat, 0 to 10.", _score, min),
    ]


def _of_reports(reported: Sequence[ReportedDomain], most: int) -> list[Metric]:
    def by_domain(
        name: str, text: str, read: Callable[[ReportedDomain], float | None], combine: Combine
    ) -> Metric:
        values = _values(reported, most, lambda one: one.domain, read, combine)
        return _gauge(f"dmarc_{name}", text, ("domain",), values)

    return [
        by_domain(
            "messages",
            "Messages in all DMARC reports about a domain.",
            lambda one: one.messages,
            sum,
        ),
        by_domain(
            "aligned_messages",
            "Messages in all DMARC reports about a domain that pass DMARC.",
            lambda one: one.messages - one.failing,
            sum,
        ),
        by_domain(
            "aligned_ratio",
            "Share of the reported messages of a domain that pass DMARC, 0 to 1.",
            lambda one: 1 - one.failing / one.messages if one.messages else None,
            min,
        ),
        by_domain(
            "last_report_timestamp_seconds",
            "Time of the last DMARC report about a domain, in seconds since 1970.",
            lambda one: _seconds(one.last_at),
            min,
        ),
    ]


def _open_alerts(alerts: Iterable[tuple[str, Alert]]) -> Metric:
    counts: dict[Labels, float] = {
        (source, severity): 0
        for source in ("watch", "heartbeat")
        for severity in ("error", "warning")
    }
    for source, alert in alerts:
        key = source, alert.severity
        counts[key] = counts.get(key, 0) + 1
    return _gauge(
        "open_alerts", "Open alerts, also acknowledged ones.", ("source", "severity"), counts
    )


def _values(
    items: Sequence[Item],
    most: int,
    name: Callable[[Item], str],
    read: Callable[[Item], float | None],
    combine: Combine,
) -> dict[Labels, float]:
    """Return the values of the first items by name, and of the others together.

    Unknown values are left out.
    """
    values: dict[Labels, float] = {
        (name(item),): value for item in items[:most] if (value := read(item)) is not None
    }
    rest = [value for item in items[most:] if (value := read(item)) is not None]
    if rest:
        values[OTHER,] = combine(rest)
    return values


def _gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    return Metric(PREFIX + name, text, Kind.GAUGE, labels, lambda: {**values})


def _seconds(instant: Instant | None) -> float | None:
    return None if instant is None else instant / SECOND


def _score(one: Heartbeat) -> float | None:
    facts = one.beats.facts
    return None if facts is None or facts.score is None else facts.score / 10
