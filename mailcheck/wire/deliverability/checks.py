"""The five checks of a deliverability test as JSON (SPEC.md 2.5, DECISIONS.md section 3)."""

from mailcheck.checks.deliverability.content_filter import FilterUnavailable
from mailcheck.checks.deliverability.report import Area
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.deliverability.summaries import CheckSummary
from mailcheck.checks.dkim.mail_verdicts import SignatureOfMail
from mailcheck.checks.dmarc.mail_verdicts import DmarcOfMail
from mailcheck.checks.dnsbl.listings import ListingStatus, count
from mailcheck.checks.spf.mail_verdicts import SpfOfIdentity, SpfOfMail
from mailcheck.wire.deliverability.findings import points, render_charged
from mailcheck.wire.domains.blocklists import render_listing
from mailcheck.wire.domains.findings import render_record
from mailcheck.wire.json_values import JsonObject


def render_checks(report: DeliverabilityReport) -> JsonObject:
    """Give the five checks, each with its own fields."""
    own = {
        Area.SPF: _spf,
        Area.DKIM: _dkim,
        Area.DMARC: _dmarc,
        Area.BLACKLIST: _blacklist,
        Area.SPAMASSASSIN: _spamassassin,
    }
    return {
        check.area.value: {**_summary(check), **own[check.area](report)}
        for check in report.score.checks
    }


def _summary(check: CheckSummary) -> JsonObject:
    taken = sorted((one for one in check.findings if one.tenths), key=lambda one: -one.tenths)
    record = next((one.finding.record for one in taken if one.finding.record), None)
    return {
        "status": check.status.value,
        "result": check.result,
        "detail": check.detail,
        "deduction": points(check.tenths),
        "reason": check.reason or None,
        "fix": check.fix or None,
        "publish": None if record is None else render_record(record),
        "determined": check.is_determined,
        "findings": [render_charged(one) for one in check.findings],
    }


def _spf(report: DeliverabilityReport) -> JsonObject:
    found = report.evidence.authentication
    return render_spf(found.spf, found.origin.client_ip)


def render_spf(spf: SpfOfMail, client_ip: str) -> JsonObject:
    """Give both identities; ``client_ip`` as the session had it."""
    return {
        **_identity(spf.mail_from),
        "ip": client_ip,
        "helo": {**_identity(spf.helo), "result": spf.helo.result.value},
    }


def _identity(identity: SpfOfIdentity) -> JsonObject:
    return {
        "domain": identity.domain,
        "identity": identity.identity.value,
        "record": identity.record,
        "mechanism": identity.mechanism or None,
    }


def _dkim(report: DeliverabilityReport) -> JsonObject:
    found = report.evidence.authentication
    return {
        "signatures": [render_signature(one, found.dmarc) for one in found.dkim.signatures],
        "unchecked": found.dkim.unchecked,
    }


def render_signature(signature: SignatureOfMail, dmarc: DmarcOfMail) -> JsonObject:
    """Give a signature with its result, and whether it counts for DMARC."""
    header, key = signature.header, signature.key
    return {
        "domain": header.signing_domain,
        "selector": header.selector,
        "algorithm": header.algorithm,
        "keyType": None if key is None else key.key_type,
        "keyBits": None if key is None else key.bits,
        "result": signature.result.value,
        "detail": signature.explanation,
        "aligned": _is_aligned(signature, dmarc),
        "identity": header.agent_id or None,
        "canonicalization": header.canonicalization or None,
        "signedFields": list(header.signed_fields),
        "bodyLength": header.body_length,
        "recordName": header.key_name if header.selector else None,
    }


def _is_aligned(signature: SignatureOfMail, dmarc: DmarcOfMail) -> bool | None:
    """Tell whether it counts for DMARC; null where that could not be determined."""
    if signature.header.index in dmarc.aligned_signatures:
        return True
    is_open = dmarc.author_domain is not None and dmarc.is_dkim_aligned is None
    return None if is_open else False


def _dmarc(report: DeliverabilityReport) -> JsonObject:
    return render_dmarc(report.evidence.authentication.dmarc)


def render_dmarc(dmarc: DmarcOfMail) -> JsonObject:
    """Give the policy that was found, and what aligns with the author domain."""
    verdict = dmarc.verdict
    record = verdict.record if verdict is not None else None
    return {
        "domain": dmarc.author_domain,
        "policy": None if dmarc.policy is None else dmarc.policy.value,
        "organizationalDomain": dmarc.organizational_domain,
        "record": None if record is None else record.text,
        "recordDomain": None if verdict is None else verdict.found_at,
        "spfAligned": dmarc.is_spf_aligned,
        "dkimAligned": dmarc.is_dkim_aligned,
    }


def _blacklist(report: DeliverabilityReport) -> JsonObject:
    listings = report.evidence.listings
    listed = count(listings, ListingStatus.LISTED)
    return {
        "checked": listed + count(listings, ListingStatus.CLEAN),
        "listed": listed,
        "unknown": count(listings, ListingStatus.UNKNOWN),
        "listings": [render_listing(row) for row in listings],
    }


def _spamassassin(report: DeliverabilityReport) -> JsonObject:
    outcome = report.evidence.content_filter
    if isinstance(outcome, FilterUnavailable):
        return {
            "score": None,
            "threshold": None,
            "countedScore": None,
            "spam": None,
            "engine": None,
            "rules": [],
            "problem": outcome.problem.value,
        }
    return {
        "score": outcome.points,
        "threshold": outcome.threshold,
        "countedScore": outcome.counted_points,
        "spam": outcome.is_spam,
        "engine": outcome.engine,
        "rules": [
            {
                "name": rule.name,
                "points": rule.points,
                "description": rule.description,
                "counted": rule.counts,
                "notCounted": rule.not_counted or None,
            }
            for rule in outcome.rules
        ],
        "problem": None,
    }
