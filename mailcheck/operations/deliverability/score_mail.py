"""From a received mail to its report: everything that can be asked is asked at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.deliverability.evidence import MailEvidence
from mailcheck.checks.deliverability.origin import Origin, judge_origin
from mailcheck.checks.deliverability.quality import (
    Handover,
    judge_quality,
    judge_receivers,
    was_starttls_offered,
)
from mailcheck.checks.deliverability.score import MailScore, score_mail
from mailcheck.checks.findings import RecordToPublish
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.messages import Session
from mailcheck.operations.ask import QuestionBudget
from mailcheck.operations.deliverability.blocklists_of_mail import BlocklistsOfMail
from mailcheck.operations.deliverability.filter_ports import ContentFilter
from mailcheck.operations.deliverability.overriding_resolver import OverridingResolver
from mailcheck.operations.deliverability.score_mail_content import (
    ContentOfMail,
    judge_content_of_mail,
)
from mailcheck.operations.deliverability.score_mail_host import judge_host_of_mail
from mailcheck.operations.deliverability.score_mail_report import DeliverabilityReport
from mailcheck.operations.deliverability.score_mail_run import ScoringRun
from mailcheck.operations.dns_ports import Resolver
from mailcheck.operations.fan_out import run_all
from mailcheck.operations.ports import Worker


@dataclass(frozen=True, slots=True)
class ScoringSources:
    """Whom the analysis asks; ``worker`` is where mails are read and signatures verified."""

    resolver: Resolver
    blocklists: BlocklistsOfMail
    content_filter: ContentFilter
    worker: Worker


@dataclass(frozen=True, slots=True)
class ScoringSettings:
    """What an analysis depends on besides the mail.

    ``host_name`` is ours, as in the greeting. ``offers_tls`` tells whether a
    session could have been encrypted, where its conversation was not kept.
    """

    host_name: str
    allow_private: bool
    offers_tls: Callable[[Session], bool]


_BY_YOUR_SERVER = (
    "send the test through the server that sends your real mail: it is that server which signs the"
    " mail, and whose address receivers judge"
)


class ScoreMail:
    """Scores mails: for the daemon and for the command line alike."""

    def __init__(
        self, sources: ScoringSources, settings: ScoringSettings, clock: IReactorTime
    ) -> None:
        self._sources = sources
        self._settings = settings
        self._clock = clock

    async def score(
        self, mail: ReceivedMail, records: Sequence[RecordToPublish] = ()
    ) -> DeliverabilityReport:
        """Judge a mail. What could not be determined stands in the report; a crash is ours.

        Incoming Authentication-Results are never believed.

        :param records: proposed ones, which for this run take the place of those in DNS.
        """
        run = self._begin(mail, records)
        host, content = await run_all(judge_host_of_mail(run), judge_content_of_mail(run))
        dmarc = await content.judge_dmarc(run, host.spf)
        handover = self._handover(mail)
        rows = (*host.listings, *content.listings)
        evidence = MailEvidence(
            origin=run.origin,
            spf=host.spf,
            spf_record=host.spf_record,
            reverse_dns=host.reverse_dns,
            helo=host.helo,
            dkim=content.dkim,
            arc=content.arc,
            dmarc=dmarc,
            listings=tuple(row.listing for row in rows),
            content_filter=host.filter_outcome,
            quality=judge_quality(content.reading.facts, handover, content.dkim),
        )
        score = score_mail(evidence)
        facts = content.reading.facts
        return DeliverabilityReport(
            mail=mail,
            facts=facts,
            evidence=evidence,
            score=score,
            listings=rows,
            checklists=judge_receivers(facts, evidence, handover, content.author_mx),
            notes=tuple(self._notes(run.origin, content, score)),
            records=tuple(records),
        )

    def _begin(self, mail: ReceivedMail, records: Sequence[RecordToPublish]) -> ScoringRun:
        sources, settings = self._sources, self._settings
        session = mail.session
        return ScoringRun(
            mail=mail,
            origin=judge_origin(
                session.client_ip, session.helo_name, allow_private=settings.allow_private
            ),
            host_name=settings.host_name,
            allow_private=settings.allow_private,
            resolver=OverridingResolver(sources.resolver, records) if records else sources.resolver,
            blocklists=sources.blocklists,
            content_filter=sources.content_filter,
            worker=sources.worker,
            clock=self._clock,
            budget=QuestionBudget.starting_now(self._clock),
        )

    def _handover(self, mail: ReceivedMail) -> Handover:
        offered = was_starttls_offered(mail.transcript)
        return Handover(
            mail, self._settings.offers_tls(mail.session) if offered is None else offered
        )

    def _notes(self, origin: Origin, content: ContentOfMail, score: MailScore) -> list[str]:
        notes = [origin.opening, _BY_YOUR_SERVER] if origin.opening else []
        if score.undetermined:
            names = ", ".join(check.area.value for check in score.undetermined)
            notes.append(f"could not be determined, and nothing was deducted for it: {names}")
        if self._settings.host_name.lower() in content.reading.claimed_by:
            notes.append(
                f"the mail came with an Authentication-Results field in the name of"
                f" {self._settings.host_name}, which is not ours: it was not believed"
            )
        return notes
