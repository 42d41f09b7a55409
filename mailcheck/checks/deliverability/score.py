"""From evidence to a score from 0.0 to 10.0, each deduction with its reason.

Pure arithmetic in tenths: the deductions sum to what is missing from 10.0, or
to more where the score has reached 0; worse evidence never raises a score;
what could not be determined costs nothing.
"""

from collections.abc import Iterator
from functools import partial

from msgspec import Struct, field

from mailcheck.checks.arc.verify import describe_arc
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
from mailcheck.checks.findings import PERFECT, Area, ChargedFinding, RecordToPublish, in_order
from mailcheck.checks.proofs import Proofs, Same
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.receivers import Checklist
from mailcheck.core.deliverability_tests import ReceivedMail


class MailScore(Struct, frozen=True):
    """A score with all it was made from; ``checks`` are the five of SPEC.md 2.5, in its order."""

    tenths: int
    charged: tuple[ChargedFinding, ...]
    checks: tuple[CheckSummary, ...]

    @property
    def deductions(self) -> tuple[ChargedFinding, ...]:
        """Give what takes points off, the most first."""
        return tuple(in_order(one for one in self.charged if one.tenths))

    @property
    def undetermined(self) -> tuple[CheckSummary, ...]:
        """Give the checks of which something could not be determined."""
        return tuple(check for check in self.checks if not check.is_determined)


class DeliverabilityReport(Struct, frozen=True):
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
    proofs: Proofs = field(default_factory=dict)

    @property
    def is_preflight(self) -> bool:
        """Tell whether some of the DNS was proposed only."""
        return bool(self.records)


def score_mail(evidence: MailEvidence) -> MailScore:
    """Score a mail."""
    dns = DnsCharges(is_own_host=evidence.is_own_host)
    charged = (*dns.of(evidence), *charge_rest(evidence))
    tenths = max(0, PERFECT - total(charged))
    return MailScore(tenths, charged, tuple(_summarize(evidence, charged)))


class DnsCharges:
    """Charges what records of DNS decide; each part is made once for the very same verdicts."""

    def __init__(self, *, is_own_host: bool) -> None:
        self._spf = Same(partial(charge_spf, is_own_host=is_own_host))
        self._host = Same(partial(charge_host, is_own_host=is_own_host))
        self._dkim = Same(charge_dkim)
        self._dmarc = Same(charge_dmarc)
        self._authentication = Same(charge_authentication)

    def of(self, evidence: MailEvidence) -> tuple[ChargedFinding, ...]:
        """Charge a mail, or the same one with other records."""
        found = evidence.authentication
        return (
            *self._spf(found.spf, evidence.spf_record),
            *self._host(evidence.reverse_dns, evidence.helo),
            *self._dkim(found.dkim, found.dmarc),
            *self._dmarc(found.dmarc, found.spf, found.dkim),
            *self._authentication(found.spf, found.dkim),
        )


def charge_rest(evidence: MailEvidence) -> tuple[ChargedFinding, ...]:
    """Charge what lists, the content filter and the mail itself say."""
    return (
        *charge_blocklists(evidence.listings),
        *charge_content_filter(evidence.content_filter),
        *evidence.quality,
        *(remark(Area.ARC, finding) for finding in describe_arc(evidence.arc)),
    )


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
