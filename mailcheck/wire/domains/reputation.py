"""A reputation as JSON (SPEC.md 2.3, DECISIONS.md section 2)."""

from typing import Any

from mailcheck.checks.dnsbl.listings import ListingStatus, count
from mailcheck.checks.findings import Severity
from mailcheck.checks.lookups import Presence
from mailcheck.checks.scoring.evidence import Evidence
from mailcheck.checks.scoring.score import Factor
from mailcheck.checks.scoring.weights import SCORING_VERSION
from mailcheck.checks.starttls import StarttlsGrade
from mailcheck.core.instants import format_instant
from mailcheck.operations.domains.compute_reputation import Reputation
from mailcheck.wire.domains.findings import render_finding
from mailcheck.wire.json_values import JsonObject


def render_reputation(found: Reputation) -> JsonObject:
    """Give the score with its factors and details."""
    first = found.hosts.first_address
    return {
        "domain": found.domain,
        "ip": "" if first is None else str(first),
        "score": found.score.score,
        "grade": found.score.grade,
        "factors": [_factor(factor) for factor in found.score.factors],
        "details": _details(found.evidence),
        "checkedAt": format_instant(found.checked_at),
        "cached": found.is_cached,
        "scoringVersion": SCORING_VERSION,
        "undetermined": [name.value for name in found.score.undetermined],
    }


def render_ungradable(found: Reputation) -> JsonObject:
    """Give the error for a check of which too little is known to give a grade."""
    names = ", ".join(name.value for name in found.score.undetermined)
    partial = dict(render_reputation(found))
    for meaningless in ("score", "grade"):
        del partial[meaningless]
    return {
        "error": f"too much about {found.domain} could not be determined to give a grade"
        f" ({names}); try again in a minute",
        "partial": partial,
    }


def _factor(factor: Factor) -> JsonObject:
    return {
        "name": factor.name.value,
        "status": factor.status.value,
        "detail": factor.detail,
        "impact": factor.impact,
        "determined": factor.is_determined,
        "maximum": factor.maximum,
        "gain": factor.gain,
        "fix": None if factor.fix is None else render_finding(factor.fix),
    }


def _details(evidence: Evidence) -> JsonObject:
    """Give what was found; ``determined`` tells "no" from "could not be found out"."""
    return {
        "mx": _mx(evidence),
        "spf": {
            "valid": evidence.spf.record is not None and not evidence.spf.is_broken,
            "record": evidence.spf.record or "",
            "determined": evidence.spf.is_complete,
        },
        "dkim": {
            "valid": bool(evidence.dkim.usable_keys),
            "selectors": [key.selector for key in evidence.dkim.keys],
            "determined": evidence.dkim.presence is not Presence.UNDETERMINED,
        },
        "dmarc": _dmarc(evidence),
        "blacklists": _blacklists(evidence),
        "tls": {
            "valid": evidence.starttls.grade is StarttlsGrade.VERIFIED,
            "starttls": evidence.starttls.is_offered,
            "determined": evidence.starttls.grade is not StarttlsGrade.UNDETERMINED,
        },
        "domainAge": _age(evidence),
        "rdns": _reverse_dns(evidence),
    }


def _mx(evidence: Evidence) -> JsonObject:
    mx = evidence.mx
    return {
        "valid": any(host.is_usable for host in mx.hosts),
        "count": len(mx.hosts),
        "primary": mx.hosts[0].exchange if mx.hosts else "",
        "determined": mx.presence is not Presence.UNDETERMINED,
    }


def _dmarc(evidence: Evidence) -> JsonObject:
    dmarc = evidence.dmarc
    return {
        "valid": dmarc.presence is Presence.FOUND,
        "policy": dmarc.policy.value if dmarc.policy is not None else "",
        "rua": [uri.text for uri in dmarc.record.rua] if dmarc.record is not None else [],
        "determined": dmarc.presence is not Presence.UNDETERMINED,
    }


def _blacklists(evidence: Evidence) -> JsonObject:
    listed = count(evidence.listings, ListingStatus.LISTED)
    clean = count(evidence.listings, ListingStatus.CLEAN)
    return {"checked": listed + clean, "listed": listed, "clean": clean > 0 and listed == 0}


def _age(evidence: Evidence) -> JsonObject:
    registration = evidence.registration
    shown: dict[str, Any] = {
        "valid": registration.registered_at is not None,
        "determined": registration.presence is not Presence.UNDETERMINED,
    }
    if registration.registration_date is not None:
        shown["years"] = registration.years
        shown["registrationDate"] = registration.registration_date.isoformat()
    return shown


def _reverse_dns(evidence: Evidence) -> JsonObject:
    found = evidence.reverse_dns
    if found is None:
        return {"valid": False, "hostname": ""}
    return {
        "valid": found.is_confirmed is True,
        "hostname": found.host_name or "",
        "ip": str(found.address),
        "determined": not any(
            finding.severity is Severity.UNDETERMINED for finding in found.findings
        ),
    }
