"""Builds the statistics of a mail server's traffic: the scoring of its mail, and the counts."""

from msgspec import Struct
from twisted.application.service import Service

from mailcheck.assembly.runtime import Runtime
from mailcheck.assembly.scoring import scoring_settings
from mailcheck.core.identifiers import AccountId
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import TrafficRetention, retention_service
from mailcheck.daemon.services import ChecksService
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.content_filters import CountedFilter
from mailcheck.operations.inbox.open_inbox import find_owner
from mailcheck.operations.traffic.score_traffic import ScoreTraffic, TrafficLimits
from mailcheck.operations.traffic.show_traffic import ShowTraffic
from mailcheck.store.domains.traffic_store import TrafficStore

COUNT_INTERVAL = 5.0
"""Seconds between writes of the counts of traffic. If the daemon is killed, these are lost."""

FORGETTING_INTERVAL = 600.0
"""Seconds between rounds of deletion."""


class TrafficParts(Struct, frozen=True):
    """The statistics of a mail server's traffic. ``score`` gets copies of its mail."""

    store: TrafficStore
    score: ScoreTraffic
    show: ShowTraffic


def build_traffic(runtime: Runtime, accounts: ManageAccounts) -> TrafficParts:
    """Build the scoring of traffic, and its statistics."""
    config, settings = runtime.config, scoring_settings(runtime.config)
    options, filters = config.milter, runtime.filters
    store = TrafficStore(runtime.engine)

    async def find_account() -> AccountId | None:
        account = await find_owner(accounts, options.project)
        return None if account is None else account.id

    judge = CountedFilter(filters.content_filter, filters.rspamd).judge
    score = ScoreTraffic(
        store=store,
        find_account=find_account,
        judge_content=judge if options.content_filter else None,
        resolver=runtime.resolvers.plain,
        worker=runtime.workers.analysis,
        host_name=settings.host_name,
        limits=TrafficLimits(options.max_message_size, sample=options.sample),
        clocks=runtime.clocks,
        allow_private=settings.allow_private,
    )
    return TrafficParts(store, score, ShowTraffic(store, runtime.now, is_on=bool(options.listen)))


def traffic_services(runtime: Runtime, traffic: TrafficParts) -> list[Service]:
    """Return the services that write the counts of traffic, and that delete old ones."""
    clock, days = runtime.clock, runtime.config.milter.retention_days
    retention = TrafficRetention(traffic.store, days, runtime.now)
    return [
        retention_service("retention of traffic", FORGETTING_INTERVAL, retention.sweep, clock),
        PeriodicService(
            "counting traffic", COUNT_INTERVAL, traffic.score.flush, clock, ends_with_round=True
        ),
        ChecksService(traffic.score.close),
    ]
