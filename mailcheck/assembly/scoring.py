"""Builds the analysis of received mails, for the daemon and for commands without one."""

from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct
from twisted.application.service import IService

from mailcheck.api.deliverability.report import store_report
from mailcheck.assembly.checks import CheckRuntime, Checks
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import RecordToPublish
from mailcheck.config.options import Config
from mailcheck.core.deliverability_tests import ReceivedMail, StoredReport
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
from mailcheck.probes.spamd_address import parse_spamd_address
from mailcheck.probes.spamd_client import SpamdReactor
from mailcheck.probes.spamd_filter import (
    AutomaticSpamd,
    ConfiguredSpamd,
    FilterLimits,
    NoSpamd,
    SpamdFilter,
    SpamdFinder,
)


class FilterParts(Struct, frozen=True):
    """The content filter, and the service that must run while it is used.

    Nothing is connected or started before the first mail. Stopping the service ends
    running checks as undetermined, and ends the private spamd.
    """

    content_filter: ContentFilter
    service: IService


def build_filter(config: Config, reactor: Any, worker: Worker) -> FilterParts:
    """Build the content filter, for the daemon and for commands that score a file.

    ``worker`` parses large mails: a process in the daemon, a `DirectWorker` in a command.
    """
    options = config.spamassassin
    services = OrderedServices()
    finder: SpamdFinder
    if options.spamd == "off":
        finder = NoSpamd()
    elif options.spamd == "auto":
        settings = SpamdSettings(options.user, options.network_tests, options.concurrency)
        private = SpamdService(reactor, settings, find_spamd)
        private.setServiceParent(services)
        finder = AutomaticSpamd(cast(SpamdReactor, reactor), private)
    else:
        address = parse_spamd_address(options.spamd)
        finder = ConfiguredSpamd(cast(SpamdReactor, reactor), address)
    limits = FilterLimits(at_a_time=options.concurrency)
    judging = SpamdFilter(finder, reactor, worker, limits)
    ChecksService(judging.close).setServiceParent(services)
    return FilterParts(judging, services)


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
    content_filter: ContentFilter,
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
        content_filter,
        worker,
        known,
        settings,
        progress.tell,
        runtime.clock,
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
