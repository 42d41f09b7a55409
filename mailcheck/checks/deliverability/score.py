"""From evidence to a score from 0.0 to 10.0, each deduction with its reason, and five summaries.

Pure arithmetic in tenths: the deductions sum to what is missing from 10.0, or
to more where the score has reached 0; worse evidence never raises a score;
what could not be determined costs nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct, field

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.deliverability.charging import (
    WEAK_RECORD_IDS,
    charge_authentication,
    charge_blocklists,
    charge_content_filter,
    charge_dkim,
    charge_dmarc,
    charge_host,
    charge_spf,
    total,
)
from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterUnavailable
from mailcheck.checks.deliverability.sender import (
    SenderDomain,
    charge_sender,
    without_absent_zones,
)
from mailcheck.checks.dkim.arc import ArcOfMail, describe_arc
from mailcheck.checks.dkim.mail import DkimOfMail, find_telling
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus, UnknownReason, count
from mailcheck.checks.finding_row import ERROR_TENTHS
from mailcheck.checks.findings import (
    PERFECT,
    Area,
    ChargedFinding,
    CheckStatus,
    Finding,
    RecordToPublish,
    Severity,
    sorted_by_cost,
)
from mailcheck.checks.findings_table import FINDINGS
from mailcheck.checks.hosts.helo import HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.proofs import CachedConclusion, Proofs
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.receivers import Checklist
from mailcheck.checks.spf.mail import SpfOfMail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.checks.weights import uncharged
from mailcheck.core.deliverability_tests import ReceivedMail


class MailEvidence(Struct, frozen=True):
    """What all checks found.

    ``spf_record`` is there unless SPF could not be determined. ``reverse_dns`` and ``helo``
    are nothing for an address that can't be judged. ``quality`` is what the
    making of the mail costs, within its cap. ``is_own_host`` tells that the sender's
    domain vouches for the client itself: a name of it leads to the address, or an MX.
    ``envelope`` and ``author`` say whether the domains of the sender can be answered.
    """

    authentication: Authentication
    spf_record: SpfVerdict | None
    reverse_dns: ReverseDnsVerdict | None
    helo: HeloVerdict | None
    arc: ArcOfMail
    listings: tuple[Listing, ...]
    content_filter: FilterOutcome
    quality: tuple[ChargedFinding, ...]
    is_own_host: bool = False
    envelope: SenderDomain | None = None
    author: SenderDomain | None = None


class CheckSummary(Struct, frozen=True):
    """One check: ``tenths`` is what all of its findings take off.

    ``reason`` says for what, empty where nothing is taken off; ``first`` is the
    finding to mend first, the one that costs most.
    """

    area: Area
    status: CheckStatus
    is_determined: bool
    result: str
    detail: str
    tenths: int
    reason: str
    first: Finding | None
    findings: tuple[ChargedFinding, ...]

    @property
    def fix(self) -> str:
        """Give what to do first; empty where there is nothing."""
        return "" if self.first is None else self.first.fix


class MailScore(Struct, frozen=True):
    """A score and its parts; ``checks`` are the five of a test, in the order of the API."""

    tenths: int
    charged: tuple[ChargedFinding, ...]
    checks: tuple[CheckSummary, ...]

    @property
    def deductions(self) -> tuple[ChargedFinding, ...]:
        """Give what takes points off, the most first."""
        return tuple(sorted_by_cost(one for one in self.charged if one.tenths))

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
    charged = (*dns.of(evidence), *charge_other_evidence(evidence))
    tenths = max(0, PERFECT - total(charged))
    return MailScore(tenths, charged, tuple(_summarize(evidence, charged)))


class DnsCharges:
    """Charges what records of DNS decide; each part is made once for the very same verdicts."""

    def __init__(self, *, is_own_host: bool) -> None:
        self._spf = CachedConclusion(partial(charge_spf, is_own_host=is_own_host))
        self._host = CachedConclusion(partial(charge_host, is_own_host=is_own_host))
        self._dkim = CachedConclusion(charge_dkim)
        self._dmarc = CachedConclusion(charge_dmarc)
        self._authentication = CachedConclusion(charge_authentication)

    def of(self, evidence: MailEvidence) -> tuple[ChargedFinding, ...]:
        """Charge a mail, or the same one with other records."""
        found = evidence.authentication
        envelope, author = evidence.envelope, evidence.author
        is_judged = found.origin.judged_address is not None
        charged = (
            *self._spf(found.spf, evidence.spf_record),
            *self._host(evidence.reverse_dns, evidence.helo),
            *self._dkim(found.dkim, found.dmarc),
            *self._dmarc(found.dmarc, found.spf, found.dkim),
            *self._authentication(found.spf, found.dkim),
            *(charge_sender(envelope, author) if is_judged else ()),
        )
        return tuple(without_absent_zones(charged, (envelope, author)))


def charge_other_evidence(evidence: MailEvidence) -> tuple[ChargedFinding, ...]:
    """Charge what lists, the content filter and the mail itself"""
    return (
        *charge_blocklists(evidence.listings),
        *charge_content_filter(evidence.content_filter),
        *evidence.quality,
        *(uncharged(finding) for finding in describe_arc(evidence.arc)),
    )


def _summarize(
    evidence: MailEvidence, charged: tuple[ChargedFinding, ...]
) -> Iterator[CheckSummary]:
    found = evidence.authentication
    spf, dkim, dmarc = found.spf, found.dkim, found.dmarc
    rows, outcome = evidence.listings, evidence.content_filter
    word = spf.mail_from.result.value
    yield summarize(Area.SPF, word, describe_spf(spf, charged), charged)
    word = result_of_dkim(dkim, dmarc.author_domain)
    detail = describe_dkim(dkim, dmarc.author_domain)
    yield summarize(Area.DKIM, word, detail, charged)
    yield summarize(Area.DMARC, dmarc.result.value, dmarc.explanation, charged)
    listed = result_of_blocklists(charged)
    yield summarize(Area.BLACKLIST, listed, describe_blocklists(rows), charged)
    word = result_of_content_filter(outcome)
    yield summarize(Area.SPAMASSASSIN, word, describe_content_filter(outcome), charged)


UNKNOWN = "unknown"
"""The result of blocklists and content filter where they could not be determined."""

_MATCHED = {
    AuthResult.PASS: "passes",
    AuthResult.FAIL: "says fail",
    AuthResult.SOFTFAIL: "says softfail",
    AuthResult.NEUTRAL: "says neutral",
}
"""The results that a term of the record, or its end, has brought about."""


SPF_AREAS = (Area.SPF, Area.RDNS, Area.HELO)
"""The areas of the check `spf`: all that concern the sending host."""


def summarize(
    area: Area, result: str, detail: str, charged: Iterable[ChargedFinding]
) -> CheckSummary:
    """Put together what a check has found."""
    areas = SPF_AREAS if area is Area.SPF else (area,)
    findings = tuple(one for one in charged if one.area in areas)
    taken = sorted_by_cost(one for one in findings if one.tenths)
    silent = [one.finding for one in findings if _leaves_open(one)]
    to_mend: list[Finding] = [one.finding for one in taken] or silent
    tenths = total(findings)
    return CheckSummary(
        area=area,
        status=_status(tenths, is_determined=not silent),
        is_determined=not silent,
        result=result,
        detail=detail,
        tenths=tenths,
        reason=" ".join(one.finding.meaning for one in taken),
        first=to_mend[0] if to_mend else None,
        findings=findings,
    )


def _leaves_open(one: ChargedFinding) -> bool:
    """Tell whether it leaves the check undetermined: a single silent list does not."""
    finding = one.finding
    return finding.severity is Severity.UNDETERMINED and not finding.id.startswith("dnsbl.")


def _status(tenths: int, *, is_determined: bool) -> CheckStatus:
    if tenths >= ERROR_TENTHS:
        return CheckStatus.FAIL
    return CheckStatus.WARN if tenths or not is_determined else CheckStatus.PASS


def describe_spf(spf: SpfOfMail, charged: Iterable[ChargedFinding]) -> str:
    """Say how SPF came to its result, and what else its check has found about the host."""
    identity = spf.mail_from
    words = identity.explanation
    if identity.result in _MATCHED:
        first = words if words.startswith('"') else words[:1].lower() + words[1:]
        words = f"SPF {_MATCHED[identity.result]}: {first}"
    others = [
        FINDINGS[one.finding.id].title
        for one in charged
        if one.area in SPF_AREAS
        and one.tenths
        and (one.finding.id in WEAK_RECORD_IDS or not one.finding.id.startswith("spf."))
    ]
    return " ".join([words, *(f"{when[:1].upper()}{when[1:]}." for when in others)])


def _is_beside_result(finding_id: str) -> bool:
    """Return whether a finding says more than the result of SPF."""
    return finding_id in WEAK_RECORD_IDS or not finding_id.startswith("spf.")


def result_of_dkim(dkim: DkimOfMail, author_domain: str | None) -> str:
    """Give one word for all signatures: of a valid one, else of the one that tells most."""
    if dkim.passing:
        return AuthResult.PASS.value
    if not dkim.is_determined:
        return AuthResult.TEMPERROR.value
    telling = find_telling(dkim, author_domain)
    return AuthResult.NONE.value if telling is None else telling.result.value


def describe_dkim(dkim: DkimOfMail, author_domain: str | None) -> str:
    """Say how many signatures there are and whose are valid."""
    count_of_all, telling = len(dkim.signatures), find_telling(dkim, author_domain)
    if telling is None:
        return "The mail has no DKIM signature."
    signatures = "1 signature" if count_of_all == 1 else f"{count_of_all} signatures"
    rest = f" {dkim.unchecked} more were not looked at." if dkim.unchecked else ""
    if not dkim.passing:
        if not dkim.is_determined:
            telling = next(one for one in dkim.signatures if not one.result.is_determined)
        return f"The mail has {signatures}. {telling.explanation}{rest}"
    valid = ", ".join(
        dict.fromkeys(f"{s.header.signing_domain} ({s.header.selector})" for s in dkim.passing)
    )
    return f"The mail has {signatures}; valid: {valid}.{rest}"


def result_of_blocklists(charged: Iterable[ChargedFinding]) -> str:
    """Give one word for all lists; a listing that takes nothing off is no fail."""
    found = [one for one in charged if one.area is Area.BLACKLIST]
    if total(found):
        return AuthResult.FAIL.value
    return UNKNOWN if any(map(_leaves_open, found)) else AuthResult.PASS.value


def describe_blocklists(listings: Sequence[Listing]) -> str:
    """Say how many lists answered, and which have the mail."""
    listed = sorted((row for row in listings if row.is_listed), key=lambda row: -row.weight)
    answered = len(listed) + count(listings, ListingStatus.CLEAN)
    unasked = sum(row.unknown_reason is UnknownReason.NOT_PUBLIC for row in listings)
    silent = count(listings, ListingStatus.UNKNOWN) - unasked
    rest = f" Nothing is known of {silent}." if silent else ""
    rest += " None was asked about the address." if unasked else ""
    what = "The domains are on" if unasked else "On"
    if not answered:
        return f"No list answered.{rest}"
    if not listed:
        return f"{what} none of the {answered} lists that answered.{rest}"
    names = ", ".join(row.blocklist.name for row in listed)
    return f"{what} {len(listed)} of the {answered} lists that answered: {names}.{rest}"


def result_of_content_filter(outcome: FilterOutcome) -> str:
    """Give one word for the content filter: by the points that count, as they are charged."""
    if isinstance(outcome, FilterUnavailable):
        return UNKNOWN
    is_spam = outcome.counted_points >= outcome.threshold
    return AuthResult.FAIL.value if is_spam else AuthResult.PASS.value


def describe_content_filter(outcome: FilterOutcome) -> str:
    """Say what the content filter made of the mail."""
    if isinstance(outcome, FilterUnavailable):
        return outcome.reason
    counted = outcome.counted_points
    part = f", of which {counted:.1f} count here" if counted != outcome.points else ""
    rest = f"; {outcome.left_out} octets of attachments were left out" if outcome.left_out else ""
    return (
        f"{outcome.engine}: {outcome.points:.1f} points{part}; spam from"
        f" {outcome.threshold:.1f}{rest}."
    )
