"""Outcomes of SPF, DKIM and DMARC, each with a sentence."""

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dkim.key_record import RSA
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.scoring.outcomes import DkimOutcome, DmarcOutcome, SpfOutcome
from mailcheck.checks.spf.record import (
    Qualifier,
)
from mailcheck.checks.spf.tree import MAX_LOOKUPS, SpfVerdict

PARKED = "Not needed: the domain declares that it sends no mail."


def classify_spf(spf: SpfVerdict) -> tuple[SpfOutcome, str]:
    """Return the outcome of SPF; a proven problem counts even if other parts are undetermined."""
    if spf.presence is Presence.UNDETERMINED:
        return SpfOutcome.UNDETERMINED, "DNS gave no usable answer about the SPF record."
    if spf.presence is Presence.ABSENT:
        return SpfOutcome.ABSENT, "There is no SPF record."
    if spf.reach.is_open:
        terms = ", ".join(f'"{term}"' for term in spf.wide_terms)
        return SpfOutcome.OPEN, f"It lets {spf.reach} send as {spf.domain} ({terms})."
    if spf.is_broken:
        first = next((f for f in spf.findings if f.id != "spf.void"), spf.findings[0])
        return SpfOutcome.BROKEN, first.meaning
    if not spf.is_complete:
        return SpfOutcome.UNDETERMINED, "part of the SPF record could not be looked up."
    if spf.reach.is_wide:
        return SpfOutcome.WIDE, f"The SPF record lets {spf.reach} send as {spf.domain}."
    used = f"It needs {spf.lookup_count} of {MAX_LOOKUPS} DNS lookups."
    if spf.all_qualifier in (Qualifier.FAIL, Qualifier.SOFTFAIL):
        ending = f"{spf.all_qualifier.value}all"
        return SpfOutcome.CLOSED, f"One valid SPF record that ends in {ending}. {used}"
    return SpfOutcome.UNENDED, f"The SPF record makes no statement about other hosts. {used}"


def classify_dkim(dkim: DkimVerdict, *, is_parked: bool) -> tuple[DkimOutcome, str]:
    """Return the outcome of DKIM: the best key counts, keys marked as tests do not."""
    if is_parked:
        return DkimOutcome.NOT_NEEDED, PARKED
    if dkim.is_hidden:
        return DkimOutcome.HIDDEN, (
            "there are DKIM records, but under none of the usual selectors. Enter your selector."
        )
    if dkim.presence is Presence.UNDETERMINED:
        return DkimOutcome.UNDETERMINED, "DNS gave no usable answer about DKIM keys."
    if dkim.presence is Presence.ABSENT:
        return DkimOutcome.ABSENT, "There is no DKIM key."
    keys = [key for key in dkim.usable_keys if not key.record.is_testing]
    if not keys:
        selectors = ", ".join(key.selector for key in dkim.keys)
        return DkimOutcome.WEAK, (
            f"Only keys that receivers do not accept were found (selectors {selectors})."
        )
    best = max(keys, key=lambda key: (key.record.is_strong, key.record.bits or 0))
    kind = "RSA" if best.record.key_type == RSA else "Ed25519"
    detail = f"{kind} key of {best.record.bits} bits at selector {best.selector}."
    return (DkimOutcome.STRONG if best.record.is_strong else DkimOutcome.FAIR), detail


def classify_dmarc(dmarc: DmarcVerdict) -> tuple[DmarcOutcome, str]:
    """Return the outcome of DMARC: the policy, and reports that can be delivered."""
    if dmarc.presence is Presence.UNDETERMINED:
        return DmarcOutcome.UNDETERMINED, "DNS gave no usable answer about DMARC."
    if dmarc.record is None or dmarc.policy is None:
        if dmarc.broken_texts:
            return DmarcOutcome.BROKEN, dmarc.findings[0].meaning
        return DmarcOutcome.ABSENT, "There is no DMARC record."
    place = "" if dmarc.found_at == dmarc.domain else f" (from {dmarc.found_at})"
    reports = "with reports" if dmarc.report_uris else "without reports"
    detail = f"The policy is {dmarc.policy.value}{place}, {reports}."
    if not dmarc.is_enforcing:
        has_reports = bool(dmarc.report_uris)
        return (DmarcOutcome.NONE_WITH_REPORTS if has_reports else DmarcOutcome.NONE), detail
    if dmarc.record.is_testing:
        return DmarcOutcome.TESTING, f"{detail} It is marked as a test (t=y)."
    if dmarc.report_uris:
        return DmarcOutcome.ENFORCED_WITH_REPORTS, detail
    return DmarcOutcome.ENFORCED, detail
