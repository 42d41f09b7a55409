"""What comes of scoring a mail."""

from dataclasses import dataclass

from mailcheck.checks.deliverability.evidence import MailEvidence
from mailcheck.checks.deliverability.score import MailScore
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.mail_quality.facts import MailFacts
from mailcheck.checks.mail_quality.receiver_rules import Checklist
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.operations.domains.ask_blocklists import TimedListing


@dataclass(frozen=True, slots=True)
class DeliverabilityReport:
    """A score, and everything it was made from.

    ``listings`` has one row for each list, with the time it took. ``notes``
    are sentences that stand at the top. With ``records`` it is a pre-flight:
    what the mail would get if these were published.
    """

    mail: ReceivedMail
    facts: MailFacts
    evidence: MailEvidence
    score: MailScore
    listings: tuple[TimedListing, ...]
    checklists: tuple[Checklist, ...]
    notes: tuple[str, ...]
    records: tuple[RecordToPublish, ...] = ()

    @property
    def is_preflight(self) -> bool:
        """Tell whether some of the DNS was proposed only."""
        return bool(self.records)
