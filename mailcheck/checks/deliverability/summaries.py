"""How each of the five checks ended (SPEC.md 2.5), in one word and one sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.charging import GRAVE, total
from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterUnavailable
from mailcheck.checks.deliverability.report import Area, ChargedFinding, CheckStatus
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus, count
from mailcheck.checks.findings import Finding, Severity

UNKNOWN = "unknown"
"""The result of blocklists and content filter where they could not be determined."""


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """One check: ``tenths`` is what all of its findings take off.

    ``reason`` says for what, empty where nothing is taken off; ``fix`` is what
    to do first, of the finding that costs most.
    """

    area: Area
    status: CheckStatus
    is_determined: bool
    result: str
    detail: str
    tenths: int
    reason: str
    fix: str
    findings: tuple[ChargedFinding, ...]


def summarize(
    area: Area, result: str, detail: str, charged: Iterable[ChargedFinding]
) -> CheckSummary:
    """Put together what a check has found."""
    findings = tuple(one for one in charged if one.area is area)
    taken = sorted((one for one in findings if one.tenths), key=lambda one: -one.tenths)
    silent = [one.finding for one in findings if _leaves_open(one)]
    fixes: list[Finding] = [one.finding for one in taken] or silent
    tenths = total(findings)
    return CheckSummary(
        area=area,
        status=_status(tenths, is_determined=not silent),
        is_determined=not silent,
        result=result,
        detail=detail,
        tenths=tenths,
        reason=" ".join(one.finding.meaning for one in taken),
        fix=fixes[0].fix if fixes else "",
        findings=findings,
    )


def _leaves_open(one: ChargedFinding) -> bool:
    """Tell whether it leaves the check undetermined: a single silent list does not."""
    finding = one.finding
    return finding.severity is Severity.UNDETERMINED and not finding.id.startswith("dnsbl.")


def _status(tenths: int, *, is_determined: bool) -> CheckStatus:
    if tenths >= GRAVE:
        return CheckStatus.FAIL
    return CheckStatus.WARN if tenths or not is_determined else CheckStatus.PASS


def result_of_dkim(dkim: DkimOfMail) -> str:
    """Give one word for all signatures: the best of them."""
    if dkim.passing:
        return AuthResult.PASS.value
    if not dkim.is_determined:
        return AuthResult.TEMPERROR.value
    return next((one.result.value for one in dkim.signatures), AuthResult.NONE.value)


def describe_dkim(dkim: DkimOfMail) -> str:
    """Say how many signatures there are and whose are valid."""
    count_of_all = len(dkim.signatures)
    if not count_of_all:
        return "The mail has no DKIM signature."
    signatures = "1 signature" if count_of_all == 1 else f"{count_of_all} signatures"
    rest = f" {dkim.unchecked} more were not looked at." if dkim.unchecked else ""
    if not dkim.passing:
        return f"The mail has {signatures}; {dkim.signatures[0].explanation}{rest}"
    valid = ", ".join(
        dict.fromkeys(f"{s.header.signing_domain} ({s.header.selector})" for s in dkim.passing)
    )
    return f"The mail has {signatures}; valid: {valid}.{rest}"


def result_of_blocklists(listings: Sequence[Listing], charged: Iterable[ChargedFinding]) -> str:
    """Give one word for all lists."""
    if count(listings, ListingStatus.LISTED):
        return AuthResult.FAIL.value
    is_open = any(one.area is Area.BLACKLIST and _leaves_open(one) for one in charged)
    return UNKNOWN if is_open else AuthResult.PASS.value


def describe_blocklists(listings: Sequence[Listing]) -> str:
    """Say how many lists answered, and which have the mail."""
    listed = sorted((row for row in listings if row.is_listed), key=lambda row: -row.weight)
    answered = len(listed) + count(listings, ListingStatus.CLEAN)
    unknown = count(listings, ListingStatus.UNKNOWN)
    rest = f" Nothing is known of {unknown}." if unknown else ""
    if not answered:
        return f"No list answered.{rest}"
    if not listed:
        return f"On none of the {answered} lists that answered.{rest}"
    names = ", ".join(row.blocklist.name for row in listed)
    return f"On {len(listed)} of the {answered} lists that answered: {names}.{rest}"


def result_of_content_filter(outcome: FilterOutcome) -> str:
    """Give one word for the content filter."""
    if isinstance(outcome, FilterUnavailable):
        return UNKNOWN
    return AuthResult.FAIL.value if outcome.is_spam else AuthResult.PASS.value


def describe_content_filter(outcome: FilterOutcome) -> str:
    """Say what the content filter made of the mail."""
    if isinstance(outcome, FilterUnavailable):
        return outcome.reason
    counted = outcome.counted_points
    rest = f", of which {counted:.1f} count here" if counted != outcome.points else ""
    rest += f"; {outcome.left_out} octets of attachments were left out" if outcome.left_out else ""
    return (
        f"{outcome.engine}: {outcome.points:.1f} points, spam from {outcome.threshold:.1f}{rest}."
    )
