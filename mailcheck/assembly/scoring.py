"""Builds the analysis of received mails: for the daemon, and for the command line alone."""

from collections.abc import Callable, Sequence
from typing import Any

from mailcheck.assembly.checks import ChecksAssembly
from mailcheck.assembly.content_filter import FilterAssembly, assemble_filter
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import RecordToPublish
from mailcheck.config.options import Config
from mailcheck.core.deliverability_tests import ReceivedMail, StoredReport
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import is_local_client
from mailcheck.operations.deliverability.authenticate_mail import KnownResults
from mailcheck.operations.deliverability.blocklists_of_mail import BlocklistsOfMail
from mailcheck.operations.deliverability.filter_ports import ContentFilter
from mailcheck.operations.deliverability.score_mail import (
    ScoreMail,
    ScoringSettings,
)
from mailcheck.operations.ports import Worker
from mailcheck.wire.deliverability.report import store_report


class ScoringAssembly:
    """What scores mails, and the content filter that it asks.

    :param checks: gives the checks of domains, whose resolvers and lists are used; asked
        for each mail.
    """

    def __init__(
        self,
        config: Config,
        settings: ScoringSettings,
        reactor: Any,
        worker: Worker,
        checks: Callable[[], ChecksAssembly],
    ) -> None:
        self._settings = settings
        self._reactor = reactor
        self._worker = worker
        self._checks = checks
        self.known = KnownResults()
        self.filter: FilterAssembly = assemble_filter(config, reactor, worker)
        self.content_filter: ContentFilter = self.filter.content_filter

    async def score(
        self, mail: ReceivedMail, records: Sequence[RecordToPublish] = ()
    ) -> DeliverabilityReport:
        """Score a mail; ``records`` are proposed ones."""
        checks = self._checks()
        scoring = ScoreMail(
            checks.resolvers.plain,
            BlocklistsOfMail(checks.catalogue, checks.lists),
            self.content_filter,
            self._worker,
            self.known,
            self._settings,
            self._reactor,
        )
        return await scoring.score(mail, records)

    async def analyse(self, mail: ReceivedMail) -> StoredReport:
        """Score a mail of a test, as it is kept (`Analyse`)."""
        return store_report(await self.score(mail))


def scoring_settings(config: Config) -> ScoringSettings:
    """Give what an analysis depends on besides the mail, as the daemon has it."""
    smtp = config.smtp

    def offers_tls(session: Session) -> bool:
        return bool(smtp.certificate) or not is_local_client(session.client_ip)

    return ScoringSettings(
        host_name=smtp.host_name or config.inbox.domain,
        allow_private=config.network.allow_private,
        offers_tls=offers_tls,
    )
