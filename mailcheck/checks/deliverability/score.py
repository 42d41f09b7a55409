"""The score of a mail from 0.0 to 10.0, with the reason for each deduction, and five summaries.

The score is computed in tenths. The deductions add up to the difference from 10.0, or to more if
the score is 0. Worse evidence never raises a score. An undetermined result costs nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct, field

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.bimi.selector import LogoSelector, describe_logo_selector
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.deliverability.charging import (
    WEAK_RECORD_IDS,
    charge_authentication,
    charge_blocklists,
    charge_content_filter,
    charge_dkim,
    charge_dmarc,
    charge_host,
    charge_rspamd,
    charge_spf,
    total,
)
from mailcheck.checks.deliverability.content_filter import (
    FilterOutcome,
    FilterUnavailable,
    counted_outcome,
)
from mailcheck.checks.deliverability.sender import (
    SenderDomain,
    charge_sender,
    without_absent_zones,
)
from mailcheck.checks.dkim.arc import ArcOfMail, describe_arc
from mailcheck.checks.dkim.dkim2 import Dkim2OfMail, describe_dkim2
from mailcheck.checks.dkim.mail import DkimOfMail, choose_signature_to_fix
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
from mailcheck.checks.quality.receiver_replies import SimulatedReply
from mailcheck.checks.quality.receivers import Checklist
from mailcheck.checks.spf.mail import SpfOfMail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.checks.weights import uncharged
from mailcheck.core.deliverability_tests import ReceivedMail


class MailEvidence(Struct, frozen=True):
    """Results of all checks of a mail.

    ``spf_record`` is `None` if SPF could not be determined. ``reverse_dns`` and ``helo`` are
    `None` for an address that cannot be checked. ``quality`` are the priced findings about the
    format, within their cap. ``is_own_host`` is whether the sender's domain identifies the client
    as its own: a name in the domain, or an MX, has the address. ``envelope`` and ``author`` say
    whether mail to the domains of the sender can be delivered. ``rspamd`` is `None` if this server
    has none.
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
    dkim2: Dkim2OfMail = Dkim2OfMail()
    logo_selector: LogoSelector = LogoSelector()
    rspamd: FilterOutcome | None = None

    @property
    def is_rspamd_counted(self) -> bool:
        """Whether the score uses the verdict of rspamd."""
        return counted_outcome(self.content_filter, self.rspamd) is self.rspamd


class CheckSummary(Struct, frozen=True):
    """Summary of one check. ``tenths`` is the sum of the prices of all its findings.

    ``reason`` explains the deductions and is empty without any. ``first`` is the finding with the
    highest price, which should be fixed first.
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
        """Advice for the first finding; empty without one."""
        return "" if self.first is None else self.first.fix


class MailScore(Struct, frozen=True):
    """A score with its findings. ``checks`` are the five of the API, in its order."""

    tenths: int
    charged: tuple[ChargedFinding, ...]
    checks: tuple[CheckSummary, ...]

    @property
    def deductions(self) -> tuple[ChargedFinding, ...]:
        """Findings that take points off, those with the highest price first."""
        return tuple(sorted_by_cost(finding for finding in self.charged if finding.tenths))

    @property
    def undetermined(self) -> tuple[CheckSummary, ...]:
        """Checks with a result that could not be determined."""
        return tuple(check for check in self.checks if not check.is_determined)


class DeliverabilityReport(Struct, frozen=True):
    """A score and everything that it is based on.

    ``notes`` are sentences for the top of the report. With ``records`` the report is a preflight:
    the score that the mail would get if these records were published.
    """

    mail: ReceivedMail
    facts: MailFacts
    evidence: MailEvidence
    score: MailScore
    checklists: tuple[Checklist, ...]
    replies: tuple[SimulatedReply, ...]
    notes: tuple[str, ...]
    records: tuple[RecordToPublish, ...] = ()
    proofs: Proofs = field(default_factory=dict)

    @property
    def is_preflight(self) -> bool:
        """Whether some of the DNS records were only proposed."""
        return bool(self.records)


def score_mail(evidence: MailEvidence) -> MailScore:
    """Score a mail."""
    dns = DnsCharges(is_own_host=evidence.is_own_host)
    charged = (*dns.charge(evidence), *charge_other_evidence(evidence))
    tenths = max(0, PERFECT - total(charged))
    return MailScore(tenths, charged, tuple(_summarize(evidence, charged)))


class DnsCharges:
    """Prices the findings that depend on DNS records; each part is cached by its verdicts."""

    def __init__(self, *, is_own_host: bool) -> None:
        self._spf = CachedConclusion(partial(charge_spf, is_own_host=is_own_host))
        self._host = CachedConclusion(partial(charge_host, is_own_host=is_own_host))
        self._dkim = CachedConclusion(charge_dkim)
        self._dmarc = CachedConclusion(charge_dmarc)
        self._authentication = CachedConclusion(charge_authentication)

    def charge(self, evidence: MailEvidence) -> tuple[ChargedFinding, ...]:
        """Price a mail, or the same mail with other records."""
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
    """Price the results of blocklists, content filter, format, ARC, DKIM2 and BIMI."""
    author = evidence.authentication.dmarc.author_domain or ""
    logo = describe_logo_selector(evidence.logo_selector, author)
    return (
        *charge_blocklists(evidence.listings),
        *charge_content_filter(evidence.content_filter),
        *charge_rspamd(evidence.rspamd, counts=evidence.is_rspamd_counted),
        *evidence.quality,
        *(uncharged(finding) for finding in describe_arc(evidence.arc)),
        *(uncharged(finding) for finding in describe_dkim2(evidence.dkim2)),
        *(uncharged(finding) for finding in logo),
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
"""Result of blocklists and content filter if they could not be determined."""

_MATCHED = {
    AuthResult.PASS: "passes",
    AuthResult.FAIL: "says fail",
    AuthResult.SOFTFAIL: "says softfail",
    AuthResult.NEUTRAL: "says neutral",
}
"""Results that come from a term of the record or from its end."""


SPF_AREAS = (Area.SPF, Area.RDNS, Area.HELO)
"""Areas of the check `spf`: everything about the sending host."""


def summarize(
    area: Area, result: str, detail: str, charged: Iterable[ChargedFinding]
) -> CheckSummary:
    """Summarize the findings of a check."""
    areas = SPF_AREAS if area is Area.SPF else (area,)
    findings = tuple(finding for finding in charged if finding.area in areas)
    taken = sorted_by_cost(finding for finding in findings if finding.tenths)
    silent = [finding.finding for finding in findings if _makes_undetermined(finding)]
    to_fix: list[Finding] = [finding.finding for finding in taken] or silent
    tenths = total(findings)
    return CheckSummary(
        area=area,
        status=_status(tenths, is_determined=not silent),
        is_determined=not silent,
        result=result,
        detail=detail,
        tenths=tenths,
        reason=" ".join(finding.finding.meaning for finding in taken),
        first=to_fix[0] if to_fix else None,
        findings=findings,
    )


def _makes_undetermined(one: ChargedFinding) -> bool:
    """Return whether a finding makes its check undetermined; a single silent list does not."""
    finding = one.finding
    return finding.severity is Severity.UNDETERMINED and not finding.id.startswith("dnsbl.")


def _status(tenths: int, *, is_determined: bool) -> CheckStatus:
    if tenths >= ERROR_TENTHS:
        return CheckStatus.FAIL
    return CheckStatus.WARN if tenths or not is_determined else CheckStatus.PASS


def describe_spf(spf: SpfOfMail, charged: Iterable[ChargedFinding]) -> str:
    """Describe how SPF came to its result, and the other findings about the host."""
    identity = spf.mail_from
    words = identity.explanation
    if identity.result in _MATCHED:
        first = words if words.startswith('"') else words[:1].lower() + words[1:]
        words = f"SPF {_MATCHED[identity.result]}: {first}"
    others = [
        FINDINGS[finding.finding.id].title
        for finding in charged
        if finding.area in SPF_AREAS and finding.tenths and _adds_to_result(finding.finding.id)
    ]
    return " ".join([words, *(f"{title}." for title in others)])


def _adds_to_result(finding_id: str) -> bool:
    """Return whether a finding adds information to the SPF result."""
    return finding_id in WEAK_RECORD_IDS or not finding_id.startswith("spf.")


def result_of_dkim(dkim: DkimOfMail, author_domain: str | None) -> str:
    """Return one result for all signatures: pass, or the most informative failure."""
    if dkim.passing:
        return AuthResult.PASS.value
    if not dkim.is_determined:
        return AuthResult.TEMPERROR.value
    telling = choose_signature_to_fix(dkim, author_domain)
    return AuthResult.NONE.value if telling is None else telling.result.value


def describe_dkim(dkim: DkimOfMail, author_domain: str | None) -> str:
    """Describe the number of signatures, and the domains of the valid ones."""
    count_of_all, telling = len(dkim.signatures), choose_signature_to_fix(dkim, author_domain)
    if telling is None:
        return "The mail has no DKIM signature."
    signatures = "1 signature" if count_of_all == 1 else f"{count_of_all} signatures"
    rest = f" {dkim.unchecked} more were not checked." if dkim.unchecked else ""
    if not dkim.passing:
        if not dkim.is_determined:
            telling = next(
                signature for signature in dkim.signatures if not signature.result.is_determined
            )
        return f"The mail has {signatures}. {telling.explanation}{rest}"
    valid = ", ".join(
        dict.fromkeys(f"{s.header.signing_domain} ({s.header.selector})" for s in dkim.passing)
    )
    return f"The mail has {signatures}; valid: {valid}.{rest}"


def result_of_blocklists(charged: Iterable[ChargedFinding]) -> str:
    """Return one result for all lists; a listing without a price is not a fail."""
    found = [finding for finding in charged if finding.area is Area.BLACKLIST]
    if total(found):
        return AuthResult.FAIL.value
    return UNKNOWN if any(map(_makes_undetermined, found)) else AuthResult.PASS.value


def describe_blocklists(listings: Sequence[Listing]) -> str:
    """Describe how many lists answered, and which ones list the mail."""
    listed = sorted((row for row in listings if row.is_listed), key=lambda row: -row.weight)
    answered = len(listed) + count(listings, ListingStatus.CLEAN)
    unasked = sum(row.unknown_reason is UnknownReason.NOT_PUBLIC for row in listings)
    silent = count(listings, ListingStatus.UNKNOWN) - unasked
    rest = f" No result from {silent}." if silent else ""
    rest += " No list was queried about the address." if unasked else ""
    subject = "The domains are" if unasked else "The mail is"
    if not answered:
        return f"No list answered.{rest}"
    if not listed:
        return f"{subject} on none of the {answered} lists that answered.{rest}"
    names = ", ".join(row.blocklist.name for row in listed)
    return f"{subject} on {len(listed)} of the {answered} lists that answered: {names}.{rest}"


def result_of_content_filter(outcome: FilterOutcome) -> str:
    """Return one result for the content filter, based on the points that are charged."""
    if isinstance(outcome, FilterUnavailable):
        return UNKNOWN
    is_spam = outcome.counted_points >= outcome.threshold
    return AuthResult.FAIL.value if is_spam else AuthResult.PASS.value


def describe_content_filter(outcome: FilterOutcome) -> str:
    """Describe the verdict of the content filter."""
    if isinstance(outcome, FilterUnavailable):
        return outcome.reason
    counted = outcome.counted_points
    part = f", of which {counted:.1f} count here" if counted != outcome.points else ""
    rest = f"; {outcome.left_out} octets of attachments were left out" if outcome.left_out else ""
    return (
        f"{outcome.engine}: {outcome.points:.1f} points{part}; spam from"
        f" {outcome.threshold:.1f}{rest}."
    )
