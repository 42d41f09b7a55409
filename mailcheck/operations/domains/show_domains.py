"""The domains of an account in one list: their watches, their scores and their reports."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from mailcheck.checks.dnsbl.listings import Listing, describe_listings
from mailcheck.checks.findings import PROBLEMS, Severity
from mailcheck.checks.scoring.awards import GOOD_FROM
from mailcheck.checks.scoring.outcomes import Mark
from mailcheck.checks.scoring.score import grade_of
from mailcheck.checks.watching.changes import WatchState, read_state
from mailcheck.core.domains.receiver_reports import ReportKind
from mailcheck.core.domains.watches import Watch, WatchKind, WatchScore
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.operations.cached_values import CachedValues
from mailcheck.operations.domains.compute_reputation import Reputation
from mailcheck.operations.domains.list_problems import Problem
from mailcheck.ports.clocks import Now
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.domains.report_sums import ReportedDomain
from mailcheck.store.domains.watch_store import WatchStore

TREND = 30 * DAY
"""Period of the scores in the list."""

MAX_REPORTED = 50
"""Maximum number of domains in the list that have reports but no watch."""


MAX_RECENT = 10
"""Maximum number of domains in the list that were checked but are not watched: the newest."""

RECENT = DAY
"""How long the list contains them, in milliseconds."""


class DomainSummary(Struct, frozen=True):
    """A domain or an address with the results of its last check.

    ``marks`` are those of the factors by name. ``trend`` has the scores of `TREND`, oldest first.
    ``problem`` is the gravest of ``problem_count`` problems. ``reported`` counts the mails in
    DMARC reports. ``checked_at`` is the time of a check that was started on a page.
    """

    name: str
    is_address: bool = False
    watch: Watch | None = None
    score: int | None = None
    grade: str = ""
    marks: Mapping[str, Mark] = field(default_factory=dict)
    trend: tuple[WatchScore, ...] = ()
    problem: str = ""
    severity: Severity | None = None
    problem_count: int = 0
    reported: ReportedDomain | None = None
    checked_at: Instant | None = None

    @property
    def is_watched(self) -> bool:
        """Whether the domain is checked regularly."""
        return self.watch is not None and not self.watch.settings.is_paused

    @property
    def passing_share(self) -> float | None:
        """The share of mails that pass DMARC, from 0 to 1; `None` without reports."""
        if self.reported is None or not self.reported.messages:
            return None
        return 1 - self.reported.failing / self.reported.messages


class DomainList(Struct, frozen=True):
    """A page of domains, worst first. ``total`` counts all, ``failing`` those with a low score."""

    domains: tuple[DomainSummary, ...]
    total: int
    failing: int


class ShowDomains(Struct, frozen=True, eq=False):
    """Reads what is known about the domains of an account. Nothing is checked."""

    watches: WatchStore
    reports: ReportStore
    recent: CachedValues[tuple[DomainSummary, ...]]
    now: Now

    async def page(self, account_id: AccountId, limit: int, page: int = 1) -> DomainList:
        """List the domains of an account, worst first. Domains without a watch come last."""
        since = self._trend_begins()
        offset = (page - 1) * limit
        found = await self.watches.worst_first(account_id, GOOD_FROM, since, limit, offset)
        reported = await self._reported(account_id)
        domains = [
            summarize_watch(watch, found.scores[watch.id], reported.get(watch.target))
            for watch in found.watches
        ]
        if offset + limit >= found.total:
            domains += await self._unwatched(account_id, reported.values())
        return DomainList(tuple(domains), found.total, found.failing)

    async def one(self, account_id: AccountId, name: str, *, is_address: bool) -> DomainSummary:
        """Return what is known about a domain or an address."""
        reported = (await self._reported(account_id)).get(name)
        watch = await self.watches.find_target(account_id, name)
        if watch is None:
            return DomainSummary(name, is_address, reported=reported)
        history = await self.watches.history(watch.id, self._trend_begins(), 1_000)
        return summarize_watch(watch, history.scores, reported)

    async def note_check(self, account_id: AccountId, summary: DomainSummary) -> DomainSummary:
        """Keep the result of a check for `recently_checked`, and return it with its time."""
        summary = replace(summary, checked_at=self.now())
        # What the watch and the reports say is read again with the check.
        made = replace(summary, watch=None, trend=(), reported=None)
        others = [
            check for check in await self.recent.get(account_id) or () if check.name != made.name
        ]
        kept = (made, *others)[:MAX_RECENT]
        await self.recent.put(account_id, kept, RECENT)
        return summary

    async def recently_checked(self, account_id: AccountId) -> list[DomainSummary]:
        """Return the domains and addresses that were checked on pages and are not watched.

        The newest is first. They are cached, and may be missing after a restart.
        """
        reported = await self._reported(account_id)
        return [
            replace(check, reported=reported.get(check.name))
            for check in await self.recent.get(account_id) or ()
            if self.now() - (check.checked_at or 0) < RECENT
            and await self.watches.find_target(account_id, check.name) is None
        ]

    async def _unwatched(
        self, account_id: AccountId, reported: Iterable[ReportedDomain]
    ) -> list[DomainSummary]:
        newest = list(reported)[:MAX_REPORTED]
        watched = {
            domain.domain
            for domain in newest
            if await self.watches.find_target(account_id, domain.domain) is not None
        }
        return [
            DomainSummary(domain.domain, reported=domain)
            for domain in newest
            if domain.domain not in watched
        ]

    async def _reported(self, account_id: AccountId) -> dict[str, ReportedDomain]:
        found = await self.reports.domains(account_id)
        return {domain.domain: domain for domain in found if domain.kind is ReportKind.DMARC}

    def _trend_begins(self) -> Instant:
        return Instant(self.now() - TREND)


def summarize_watch(
    watch: Watch, scores: Sequence[WatchScore], reported: ReportedDomain | None
) -> DomainSummary:
    """Summarize the last run of a watch."""
    state = read_state(watch.state)
    has_score = state is not None and watch.kind is WatchKind.DOMAIN
    score = state.score if state is not None and has_score else None
    severity, problem = _gravest(state)
    return DomainSummary(
        name=watch.target,
        is_address=watch.kind is WatchKind.ADDRESS,
        watch=watch,
        score=score,
        grade="" if score is None else grade_of(score),
        marks={} if state is None else state.marks,
        trend=tuple(scores),
        problem=problem,
        severity=severity,
        problem_count=watch.problem_count or 0,
        reported=reported,
    )


def with_check(
    summary: DomainSummary, found: Reputation, problems: Sequence[Problem]
) -> DomainSummary:
    """Return a summary with the results of a check that has just ended."""
    score = found.score
    first = problems[0] if problems else None
    return replace(
        summary,
        score=score.score if score.is_gradable else None,
        grade=score.grade if score.is_gradable else "",
        marks={factor.name.value: factor.mark for factor in score.factors},
        problem="" if first is None else first.meaning,
        severity=None if first is None or first.finding is None else first.finding.severity,
        problem_count=len(problems),
    )


def with_listings(summary: DomainSummary, listings: Sequence[Listing]) -> DomainSummary:
    """Return the summary of an address with the results of the blocklists."""
    problems = [listing for listing in describe_listings(listings) if listing.severity in PROBLEMS]
    first = problems[0] if problems else None
    return replace(
        summary,
        problem="" if first is None else first.meaning,
        severity=None if first is None else first.severity,
        problem_count=len(problems),
    )


def _gravest(state: WatchState | None) -> tuple[Severity | None, str]:
    problems = () if state is None else (fact for _, fact in state.problems)
    known = [
        (problem.severity, problem.says) for problem in problems if problem.severity is not None
    ]
    return min(known, key=lambda one: one[0].rank, default=(None, ""))
