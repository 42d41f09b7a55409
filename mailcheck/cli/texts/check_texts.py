"""Results of checks as text."""

from collections.abc import Iterable, Mapping

from mailcheck.api.domains.blocklists import explain_unqueried
from mailcheck.checks.bimi.evaluate import BimiVerdict
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.dnsbl.listings import ListingStatus, count, describe_listings
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.proofs import NO_PROOFS, Proofs, proof_of
from mailcheck.checks.quality.topics import Topic, topic_of
from mailcheck.checks.scoring.outcomes import Status
from mailcheck.cli.commands import BLUE, BOLD, GREEN, RED, YELLOW, Line, Painted
from mailcheck.core.instants import format_instant
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.check_mx import MxCheck
from mailcheck.operations.domains.compute_reputation import Reputation
from mailcheck.operations.domains.describe_domain import DomainReport

_SEVERITIES: Mapping[Severity, tuple[str, str]] = {
    Severity.ERROR: ("error  ", RED),
    Severity.WARNING: ("warning", YELLOW),
    Severity.UNDETERMINED: ("unknown", BLUE),
    Severity.NOTE: ("note   ", BOLD),
}
_STATUSES = {Status.PASS: GREEN, Status.WARN: YELLOW, Status.FAIL: RED}


def describe_mx(check: MxCheck) -> list[Line]:
    """Return the lines of an MX check; only the finding if the name does not exist."""
    lines: list[Line] = [Painted(check.domain, BOLD)]
    if not check.exists:
        return [*lines, *describe_findings(check.findings, check.proofs)]
    for host in check.mx.hosts:
        addresses = ", ".join(map(str, host.addresses)) or "no address known"
        lines.append(f"  MX     {host.preference:>3} {host.exchange} ({addresses})")
    if not check.mx.hosts:
        null = "null MX: the domain accepts no mail" if check.mx.is_null_mx else ""
        lines.append(f"  MX     {null or _absence(check.mx.presence)}")
    spf = check.spf
    found = f"{spf.record} ({spf.lookup_count} of 10 lookups)" if spf.record is not None else ""
    lines.append(f"  SPF    {found or _absence(spf.presence)}")
    record = check.dmarc.record
    found = f"{record.text} (at {check.dmarc.found_at})" if record is not None else ""
    lines.append(f"  DMARC  {found or _absence(check.dmarc.presence)}")
    for name, texts in (("SPF", check.spf.broken_texts), ("DMARC", check.dmarc.broken_texts)):
        lines += [f"  {name:<6} ignored by receivers: {text}" for text in texts]
    return [*lines, *describe_findings(check.findings, check.proofs)]


def describe_blocklists(check: BlocklistCheck) -> list[Line]:
    """Return the lines of a blocklist check: each blocklist and the totals."""
    lines: list[Line] = [Painted(check.query, BOLD)]
    if check.addresses:
        lines.append(f"  addresses of its mail hosts: {', '.join(check.addresses)}")
    for listing in check.listings:
        colour = {ListingStatus.LISTED: RED, ListingStatus.CLEAN: GREEN}.get(listing.status, BLUE)
        status = Painted(f"{listing.status.value:<11}", colour)
        lines.append(("  ", status, f" {listing.blocklist.name:<28} {listing.blocklist.zone}"))
    totals = (
        f"{count(check.listings, listing_status)} {listing_status.value}"
        for listing_status in ListingStatus
    )
    lines.append("  " + ", ".join(total for total in totals if not total.startswith("0 ")))
    if hint := explain_unqueried(check):
        lines.append(f"  {hint}")
    return [*lines, *describe_findings(describe_listings(check.listings), NO_PROOFS)]


def describe_reputation(found: Reputation) -> list[Line]:
    """Return the lines of a score: the factors, and what to do about each."""
    score, mx = found.score, found.evidence.mx
    name = Painted(found.domain, BOLD)
    if not mx.exists:
        return [name, *describe_findings(mx.findings, found.proofs)]
    lines: list[Line] = [name]
    if score.is_gradable:
        worst = max((f.status for f in score.factors), key=list(Status).index)
        lines = [(name, "  ", Painted(f"{score.score}/100 {score.grade}", _STATUSES[worst]))]
    else:
        lines.append("  too much could not be determined for a grade; try again in a minute")
    for factor in score.factors:
        colour = _STATUSES[factor.status] if factor.is_determined else BLUE
        status = factor.status.value if factor.is_determined else "unknown"
        points = f"{factor.impact:>3}/{factor.maximum:<2}"
        title = topic_of(factor.name.value).title
        rest = f" {points} {title:<11} {factor.detail}"
        lines.append(("  ", Painted(f"{status:<7}", colour), rest))
        if factor.fix is not None:
            lines += [f"{'':17}{line}" for line in _fix(factor.fix, found.proofs)]
    topics = [topic_of(f.name.value) for f in score.factors if f.fix]
    refused = [f for f in describe_listings(found.evidence.listings) if f.id == "dnsbl.refused"]
    lines += describe_findings(refused, NO_PROOFS)
    return lines + describe_topics(topics)


def describe_domain(report: DomainReport) -> list[Line]:
    """Return the lines of a domain report."""
    records = report.records
    mx = MxCheck(report.domain, records.mx, records.spf, records.dmarc, report.proofs)
    lines = describe_mx(mx)
    if not mx.exists:
        return lines
    keys = [f"{k.selector} ({k.record.key_type}, {k.record.bits} bits)" for k in records.dkim.keys]
    policy = report.mta_sts.policy
    mode = policy.mode.value if policy is not None and policy.mode is not None else ""
    more = {
        "DKIM": ", ".join(keys) or _absence(records.dkim.presence),
        "MTA-STS": mode or _absence(report.mta_sts.record.presence),
        "TLS-RPT": ", ".join(records.tls_rpt.rua) or _absence(records.tls_rpt.presence),
        "DANE": "protects every mail host" if records.dane.is_protecting else "not in effect",
        "DNSSEC": records.dnssec.status.value,
        "CAA": ", ".join(entry.text for entry in records.caa.properties)
        or _absence(records.caa.presence),
        "BIMI": _describe_logo(report.bimi),
    }
    lines += [f"  {name:<8} {text}" for name, text in more.items()]
    shown = ("dkim", "mtaSts", "tlsRpt", "dane", "dnssec", "caa", "bimi")
    rest = [finding for name in shown for finding in report.findings[name]]
    lines += describe_findings(rest, report.proofs)
    wrong = (Severity.ERROR, Severity.WARNING)
    topics = (
        topic_of(name)
        for name, found in report.findings.items()
        if any(finding.severity in wrong for finding in found)
    )
    return lines + describe_topics(topics)


def _describe_logo(bimi: BimiVerdict) -> str:
    record, mark = bimi.record, bimi.certificate
    if record.is_declined:
        return "declined: the domain has no logo"
    if not record.location:
        return _absence(record.presence)
    if mark is None:
        fault = "a certificate that could not be read" if record.evidence else "no certificate"
        return f"{record.location}, {fault}"
    day = format_instant(mark.issuers_end_at)[:10]
    shown = f"{record.location}, {mark.kind.value} of {mark.issuer} until {day}"
    return f"{shown} (revocation is not checked)"


def describe_topics(topics: Iterable[Topic]) -> list[Line]:
    """Return why topics matter, with links; empty without topics."""
    lines = []
    for topic in dict.fromkeys(topics):
        lines.append(f"  {topic.title:<11} {topic.why}")
        lines += [f"{'':14}{link.title}: {link.url}" for link in topic.links]
    return ["", Painted("why it matters", BOLD), *lines] if lines else []


def describe_findings(findings: Iterable[Finding], proofs: Proofs) -> list[Line]:
    """Return the lines of findings, most severe first, with their advice."""
    lines: list[Line] = []
    for finding in sorted(findings, key=lambda one: one.severity.rank):
        word, colour = _SEVERITIES[finding.severity]
        lines.append((Painted(word, colour), f" {finding.meaning}"))
        lines += [f"{'':8}{line}" for line in _fix(finding, proofs)]
    return ["", *lines] if lines else []


def _fix(finding: Finding, proofs: Proofs) -> list[str]:
    proven = proof_of(finding, proofs)
    if proven is None:
        return [f"fix: {finding.fix}"]
    gain = f" (+{proven.gain} of 100 points)" if proven.gain else ""
    record = proven.record
    lines = [f"fix{gain}: {finding.fix}"]
    lines += [f"replace {value}" for value in proven.removed]
    lines += [f"left out: {sender.term}, which {sender.reason}" for sender in proven.left_out]
    return [*lines, f"{record.name}  {record.rdtype}  {record.value}"]


def _absence(presence: Presence) -> str:
    return "could not be determined" if presence is Presence.UNDETERMINED else "none"
