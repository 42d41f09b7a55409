"""Builds the analysis of received mails, for the daemon and for commands without one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field
from twisted.application.service import IService

from mailcheck.api.deliverability.report import store_report
from mailcheck.assembly.checks import CheckRuntime, Checks
from mailcheck.checks.deliverability.content_filter import RSPAMD, SPAMASSASSIN
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import RecordToPublish
from mailcheck.config.options import Config
from mailcheck.core.deliverability_tests import ReceivedMail, StoredReport
from mailcheck.core.memory.client_limits import AMPLE, MemoryPlan
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import is_local_client
from mailcheck.daemon.services import ChecksService, OrderedServices
from mailcheck.daemon.spamd_folder import SpamdSettings, find_spamd
from mailcheck.daemon.spamd_service import SpamdService
from mailcheck.operations.deliverability.authenticate_mail import AuthenticationCache
from mailcheck.operations.deliverability.check_progress import CheckProgress
from mailcheck.operations.deliverability.score_mail import (
    MailBlocklists,
    ScoreMail,
    ScoringSettings,
)
from mailcheck.ports.probes import ContentFilter
from mailcheck.ports.workers import Worker
from mailcheck.probes.spamd_address import parse_rspamd_url, parse_spamd_address
from mailcheck.probes.spamd_client import SpamdClient, SpamdReactor
from mailcheck.probes.spamd_filter import (
    AutomaticSpamd,
    ConfiguredFilter,
    FilterFinder,
    FilterLimits,
    NoSpamd,
    QueuedFilter,
)

if TYPE_CHECKING:
    from mailcheck.probes.rspamd_client import RspamdClient


class FilterParts(Struct, frozen=True):
    """The content filters, and the service that must run while they are used.

    ``content_filter`` is SpamAssassin. ``rspamd`` is `None` if the operator has configured none.
    ``outcomes`` are the counts of both by the names of their engines.

    Nothing is connected or started before the first mail. Stopping the service ends
    running checks as undetermined, and ends the private spamd.
    """

    content_filter: ContentFilter
    service: IService
    rspamd: ContentFilter | None = None
    outcomes: Mapping[str, Tally] = field(default_factory=dict)


RSPAMD_LIMITS = FilterLimits(at_a_time=8)
"""rspamd waits for DNS without occupying a process, so it judges several mails at once."""


def build_filters(
    config: Config, reactor: Any, worker: Worker, memory: MemoryPlan = AMPLE
) -> FilterParts:
    """Build the content filters, for the daemon and for commands that score a file.

    ``worker`` parses large mails: a process in the daemon, a `DirectWorker` in a command.
    """
    options = config.spamassassin
    services = OrderedServices()
    finder: FilterFinder
    at_a_time = options.concurrency
    if options.spamd == "off":
        finder = NoSpamd()
    elif options.spamd == "auto":
        at_a_time = memory.filtered_mails(options.concurrency)
        settings = SpamdSettings(options.user, options.network_tests, at_a_time)
        private = SpamdService(reactor, settings, find_spamd)
        private.setServiceParent(services)
        finder = AutomaticSpamd(cast(SpamdReactor, reactor), private)
    else:
        address = parse_spamd_address(options.spamd)
        finder = ConfiguredFilter(SpamdClient(cast(SpamdReactor, reactor), address))
    limits = FilterLimits(at_a_time=max(1, at_a_time))
    judging = QueuedFilter(finder, reactor, worker, limits)
    ChecksService(judging.close).setServiceParent(services)
    if not config.rspamd.url:
        return FilterParts(judging, services, None, {SPAMASSASSIN: judging.outcomes})
    client = ConfiguredFilter(rspamd_client(config, reactor), RSPAMD)
    rspamd = QueuedFilter(client, reactor, worker, RSPAMD_LIMITS, RSPAMD)
    ChecksService(rspamd.close).setServiceParent(services)
    outcomes = {SPAMASSASSIN: judging.outcomes, RSPAMD: rspamd.outcomes}
    return FilterParts(judging, services, rspamd, outcomes)


def rspamd_client(config: Config, reactor: Any) -> "RspamdClient":
    """Return a client for the configured rspamd."""
    # Imported only if needed, since few daemons have one.
    from mailcheck.probes.rspamd_client import RspamdClient
    from mailcheck.probes.trust import find_trust_roots

    options = config.rspamd
    return RspamdClient(
        reactor,
        parse_rspamd_url(options.url),
        options.password,
        options.threshold,
        lambda: find_trust_roots(config.probes.ca_file),
    )


class Scoring(Struct, frozen=True):
    """The scoring of mails.

    :param progress: called after each completed part of the work.
    """

    progress: CheckProgress
    known: AuthenticationCache
    scorer: ScoreMail

    async def score(
        self, mail: ReceivedMail, records: Sequence[RecordToPublish] = ()
    ) -> DeliverabilityReport:
        """Score a mail. ``records`` are proposed DNS records."""
        return await self.scorer.score(mail, records)

    async def analyse(self, mail: ReceivedMail) -> StoredReport:
        """Score a stored mail of a test (`Analyse`)."""
        return store_report(await self.score(mail))


def build_scoring(
    runtime: CheckRuntime,
    checks: Checks,
    worker: Worker,
    filters: FilterParts,
    settings: ScoringSettings,
) -> Scoring:
    """Build the scoring of mails."""
    progress, known = (
        CheckProgress(runtime.cluster.notifications("checks of tests")),
        AuthenticationCache(),
    )
    scorer = ScoreMail(
        runtime.resolvers.plain,
        MailBlocklists(checks.catalogue, checks.lists),
        filters.content_filter,
        filters.rspamd,
        worker,
        known=known,
        settings=settings,
        tell=progress.tell,
        clock=runtime.clock,
    )
    return Scoring(progress, known, scorer)


def scoring_settings(config: Config) -> ScoringSettings:
    """Return the inputs of an analysis besides the mail, as in the daemon."""
    smtp = config.smtp

    def offers_tls(session: Session) -> bool:
        return bool(smtp.certificate) or not is_local_client(session.client_ip)

    return ScoringSettings(
        host_name=smtp.host_name or config.inbox.domain,
        allow_private=config.network.allow_private,
        offers_tls=offers_tls,
    )
