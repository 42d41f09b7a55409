"""From evidence to a score from 0.0 to 10.0, each deduction with its reason.

Pure arithmetic in tenths: the deductions sum to what is missing from 10.0, or
to more where the score has reached 0; worse evidence never raises a score;
what could not be determined costs nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mailcheck.checks.arc.verify import describe_arc
from mailcheck.checks.charges import PERFECT, Area, ChargedFinding
from mailcheck.checks.deliverability import summaries as say
from mailcheck.checks.deliverability.charging import (
    charge_authentication,
    charge_blocklists,
    charge_content_filter,
    charge_dkim,
    charge_dmarc,
    charge_host,
    charge_spf,
    remark,
    total,
)
from mailcheck.checks.deliverability.evidence import MailEvidence
from mailcheck.checks.deliverability.summaries import CheckSummary, summarize
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.receivers import Checklist
from mailcheck.core.deliverability_tests import ReceivedMail


@dataclass(frozen=True, slots=True)
class MailScore:
    """A score with all it was made from; ``checks`` are the five of SPEC.md 2.5, in its order."""

    tenths: int
    charged: tuple[ChargedFinding, ...]
    checks: tuple[CheckSummary, ...]

    @property
    def deductions(self) -> tuple[ChargedFinding, ...]:
        """Give what takes points off, the most first."""
        found = (one for one in self.charged if one.tenths)
        return tuple(sorted(found, key=lambda one: -one.tenths))

    @property
    def undetermined(self) -> tuple[CheckSummary, ...]:
        """Give the checks of which something could not be determined."""
        return tuple(check for check in self.checks if not check.is_determined)


@dataclass(frozen=True, slots=True)
class DeliverabilityReport:
    """A score, and everything it was made from.

    ``notes`` are sentences that stand at the top. With ``records`` it is a
    pre-flight: what the mail would get if these were published.
    """

    mail: ReceivedMail
    facts: MailFacts
    evidence: MailEvidence
    score: MailScore
    checklists: tuple[Checklist, ...]
    notes: tuple[str, ...]
    records: tuple[RecordToPublish, ...] = ()

    @property
    def is_preflight(self) -> bool:
        """Tell whether some of the DNS was proposed only."""
        return bool(self.records)


def score_mail(evidence: MailEvidence) -> MailScore:
    """Score a mail."""
    charged = tuple(_charge(evidence))
    tenths = max(0, PERFECT - total(charged))
    return MailScore(tenths, charged, tuple(_summarize(evidence, charged)))


def _charge(evidence: MailEvidence) -> Iterator[ChargedFinding]:
    found = evidence.authentication
    yield from charge_spf(found.spf, evidence.spf_record)
    yield from charge_host(evidence.reverse_dns, evidence.helo)
    yield from charge_dkim(found.dkim, found.dmarc)
    yield from charge_dmarc(found.dmarc, found.spf, found.dkim)
    yield from charge_authentication(found.spf, found.dkim)
    yield from charge_blocklists(evidence.listings)
    yield from charge_content_filter(evidence.content_filter)
    yield from evidence.quality
    yield from (remark(Area.ARC, finding) for finding in describe_arc(evidence.arc))


def _summarize(
    evidence: MailEvidence, charged: tuple[ChargedFinding, ...]
) -> Iterator[CheckSummary]:
    found = evidence.authentication
    spf, dkim, dmarc = found.spf, found.dkim, found.dmarc
    rows, outcome = evidence.listings, evidence.content_filter
    word = spf.mail_from.result.value
    yield summarize(Area.SPF, word, say.describe_spf(spf, charged), charged)
    word = say.result_of_dkim(dkim, dmarc.author_domain)
    detail = say.describe_dkim(dkim, dmarc.author_domain)
    yield summarize(Area.DKIM, word, detail, charged)
    yield summarize(Area.DMARC, dmarc.result.value, dmarc.explanation, charged)
    listed = say.result_of_blocklists(charged)
    yield summarize(Area.BLACKLIST, listed, say.describe_blocklists(rows), charged)
    word = say.result_of_content_filter(outcome)
    yield summarize(Area.SPAMASSASSIN, word, say.describe_content_filter(outcome), charged)
