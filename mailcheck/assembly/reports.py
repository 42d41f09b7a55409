"""Builds the reports of receivers: their operations, and what takes them in."""

from twisted.application.service import Service

from mailcheck.assembly.checks import ChecksAssembly
from mailcheck.assembly.cluster import Cluster, share_work
from mailcheck.assembly.deployment import own_domains, public_url
from mailcheck.assembly.scoring import scoring_settings
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config, InboxOptions
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import ReportRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.operations.reports.look_at_senders import LookAtSenders
from mailcheck.operations.reports.offer_records import OfferRecords
from mailcheck.operations.reports.offered import ReportOperations
from mailcheck.operations.reports.receive_reports import PostReport, ReceiveReports, ReportAddresses
from mailcheck.operations.reports.show_reports import DeleteReports, ShowReports
from mailcheck.operations.reports.take_in_reports import TakeInReports
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.engine import Engine
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.mail_store import MailStore

LOOK_INTERVAL = 30.0
"""Seconds between looks without a hint: one that was put off waits for ten minutes anyway."""

FORGETTING_INTERVAL = 600.0
"""Seconds between rounds of forgetting: what is kept for 400 days need not go to the second."""


class ReportsAssembly:
    """Everything of reports, built once; ``holder`` is the name under which this process reads.

    :param checks: of domains: their resolvers and lists are used.
    """

    def __init__(
        self,
        config: Config,
        engine: Engine,
        inboxes: MailStore,
        cluster: Cluster,
        meter: RequestMeter,
        workers: Workers,
        checks: ChecksAssembly,
        holder: str,
        time_and_chance: TimeAndChance,
    ) -> None:
        self._clock = time_and_chance.clock
        self._now = time_and_chance.now
        self.store = ReportStore(engine)
        self.addresses = _addresses(config)
        self.runner = TakeInReports(
            self.store,
            self.addresses,
            checks.resolvers.plain,
            workers.large,
            workers.analysis,
            scoring_settings(config),
            holder,
            time_and_chance,
        )
        look = share_work(cluster, "waiting reports", self.runner.look)
        self.mail = ReceiveReports(inboxes, look, own_domains(config))
        plain = checks.resolvers.plain
        senders = LookAtSenders(workers.analysis, plain, checks.blocklists, time_and_chance)
        self.operations = ReportOperations(
            ShowReports(self.store, inboxes, senders, self.addresses, time_and_chance.now),
            PostReport(inboxes, self.store, meter, look, time_and_chance),
            OfferRecords(plain, time_and_chance.clock),
            DeleteReports(self.store, time_and_chance.now),
        )

    def services(self) -> list[Service]:
        """Give what takes reports in, and what forgets them."""
        retention = ReportRetention(self.store, self._now)
        return [
            LeasedWorkService(self.runner),
            PeriodicService(
                "looking for reports", LOOK_INTERVAL, self.runner.look_again, self._clock
            ),
            retention_service(
                "retention of reports", FORGETTING_INTERVAL, retention.sweep, self._clock
            ),
        ]


def _addresses(config: Config) -> ReportAddresses:
    domains = (one.lower() for one in (config.inbox.domain, *config.inbox.aliases))
    # At the example domain only programs near by can reach this daemon.
    is_offered = config.inbox.domain != InboxOptions().domain
    return ReportAddresses(tuple(dict.fromkeys(domains)), public_url(config), is_offered)
