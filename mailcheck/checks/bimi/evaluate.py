"""Evaluation of BIMI: the record, its logo and its certificate, and the DMARC policy."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from mailcheck.checks.bimi.certificate import (
    MAX_FILE,
    ChainState,
    KnownRoots,
    MarkCertificate,
    MarkKind,
    UnreadableCertificate,
    read_certificate,
)
from mailcheck.checks.bimi.record import BimiRecord, record_name
from mailcheck.checks.bimi.svg import MAX_READ, MEDIA_TYPE, Logo, check_logo
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dmarc.record import Policy, PolicyRecord
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import PROBLEMS, Finding, Severity
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.hosts.caa import ISSUE_MARK, CaaVerdict
from mailcheck.checks.hosts.mta_sts import FetchOutcome
from mailcheck.checks.tags.tag_lists import parse_tag_list
from mailcheck.core.instants import DAY, Instant, format_instant

ENDING_SOON = 30 * DAY
"""Time before the end of a certificate; a new one takes its issuer days or weeks."""

_NOT_FETCHED = {
    FetchOutcome.MISSING: "its web server does not answer with a file",
    FetchOutcome.BAD_CERTIFICATE: "the certificate of its web server is not valid",
    FetchOutcome.REDIRECTED: "its web server redirects too often, or to a URL without https",
}


class FileFetch(Struct, frozen=True):
    """The result of fetching a file. ``octets`` are empty unless it was fetched."""

    outcome: FetchOutcome
    octets: bytes = b""
    media_type: str = ""


class LogoFile(Struct, frozen=True):
    """The file at the URL of the logo; ``logo`` is `None` if it could not be fetched."""

    outcome: FetchOutcome
    logo: Logo | None
    media_type: str


class CertificateFile(Struct, frozen=True):
    """The file at the URL of the certificate.

    ``certificate`` is `None` if there is none. ``problem`` then completes the sentence
    "The file ...", or is empty if it could not be fetched.
    """

    outcome: FetchOutcome
    certificate: MarkCertificate | None
    problem: str = ""


class BimiFiles(Struct, frozen=True):
    """The files that were fetched, by the URLs in the published record."""

    location: str = ""
    logo: LogoFile | None = None
    evidence: str = ""
    certificate: CertificateFile | None = None


class BimiVerdict(Struct, frozen=True):
    """The record with its logo and its certificate, each `None` if it was not read."""

    record: BimiRecord
    logo: Logo | None
    certificate: MarkCertificate | None
    findings: tuple[Finding, ...]

    @property
    def is_ready(self) -> bool | None:
        """Whether receivers can show the logo, as far as the domain decides.

        `None` if it could not be determined.
        """
        if any(finding.severity in PROBLEMS for finding in self.findings):
            return False
        if any(finding.severity is Severity.UNDETERMINED for finding in self.findings):
            return None
        return self.logo is not None


def read_logo(url: str, fetch: FileFetch) -> LogoFile:
    """Check the file at the URL of a logo."""
    is_there = fetch.outcome is FetchOutcome.FETCHED
    logo = check_logo(fetch.octets, url) if is_there else None
    return LogoFile(fetch.outcome, logo, fetch.media_type)


def read_evidence(fetch: FileFetch, roots: KnownRoots | None = None) -> CertificateFile:
    """Read the file at the URL of a certificate, as `read_certificate` does."""
    if fetch.outcome is not FetchOutcome.FETCHED:
        return CertificateFile(fetch.outcome, None)
    try:
        return CertificateFile(fetch.outcome, read_certificate(fetch.octets, roots))
    except UnreadableCertificate as fault:
        return CertificateFile(fetch.outcome, None, str(fault))


def evaluate_bimi(
    files: BimiFiles, now: Instant, record: BimiRecord, dmarc: DmarcVerdict, caa: CaaVerdict
) -> BimiVerdict:
    """Evaluate everything about the logo of a domain."""
    if record.presence is Presence.UNDETERMINED or record.is_declined or not record.text:
        return BimiVerdict(record, None, None, record.findings)
    logo = files.logo if record.location == files.location else None
    certificate = files.certificate if record.evidence == files.evidence else None
    mark = None if certificate is None else certificate.certificate
    findings = [*record.findings, *_judge_policy(record, dmarc)]
    if record.location:
        findings += _judge_logo(record, logo)
        findings += _judge_evidence(record, certificate)
    if mark is not None:
        names = (record.domain, record.found_at, dmarc.organizational_domain)
        findings += _judge_certificate(record, mark, names)
        findings += _judge_time(record.evidence, mark, now)
        findings += _judge_issuers(record.evidence, mark, caa)
        findings += _compare(record, None if logo is None else logo.logo, mark)
    return BimiVerdict(record, None if logo is None else logo.logo, mark, tuple(findings))


def _judge_policy(record: BimiRecord, dmarc: DmarcVerdict) -> Iterator[Finding]:
    """Compare the DMARC policies with the requirements of BIMI (section 7.1).

    Both the record that applies and that of the organizational domain must be enforced.
    """
    if dmarc.presence is Presence.UNDETERMINED:
        return
    if dmarc.record is None:
        yield _too_weak(record.domain, "no DMARC record")
        return
    yield from _judge_policy_record(record.domain, dmarc.record, dmarc.policy)
    above = dmarc.organizational_domain or record.domain
    step = None if above == dmarc.found_at else dmarc.walk.step_at(above)
    if step is not None and step.record is not None:
        yield from _judge_policy_record(above, step.record, step.record.policy)


def _judge_policy_record(
    domain: str, published: PolicyRecord, policy: Policy | None
) -> Iterator[Finding]:
    if published.is_testing:
        yield _too_weak(domain, "a DMARC record that is marked as a test (t=y)")
        return
    if policy in (None, Policy.NONE):
        yield _too_weak(domain, "the DMARC policy none")
        return
    percentage = parse_tag_list(published.text).get("pct")
    if policy is Policy.QUARANTINE and percentage not in (None, "100"):
        yield make_finding(
            "bimi.dmarc-partial", domain=domain, percentage=percentage[:20] if percentage else ""
        )
    if published.subdomain_policy is Policy.NONE:
        yield make_finding("bimi.dmarc-subdomains", domain=domain)


def _too_weak(domain: str, what: str) -> Finding:
    return make_finding("bimi.dmarc-policy", domain=domain, what=what)


def _judge_logo(record: BimiRecord, file: LogoFile | None) -> Iterator[Finding]:
    url = record.location
    if file is None or file.outcome is FetchOutcome.NO_ANSWER:
        yield undetermined("bimi.undetermined", [url])
        return
    if file.outcome is FetchOutcome.TOO_LARGE:
        yield make_finding("bimi.logo-too-large", case="not-read", url=url, most=MAX_READ // 1024)
        return
    if file.logo is None:
        yield make_finding("bimi.logo-missing", url=url, reason=_NOT_FETCHED[file.outcome])
        return
    if file.media_type != MEDIA_TYPE:
        shown = file.media_type[:60] or "no type"
        yield make_finding("bimi.logo-type", url=url, shown=shown, media_type=MEDIA_TYPE)
    yield from file.logo.findings


def _judge_evidence(record: BimiRecord, file: CertificateFile | None) -> Iterator[Finding]:
    url = record.evidence
    if not url:
        if not parse_tag_list(record.text).get("a"):
            yield make_finding("bimi.no-certificate", name=record.name)
        return
    if file is None or file.outcome is FetchOutcome.NO_ANSWER:
        yield undetermined("bimi.undetermined", [url])
    elif file.outcome is FetchOutcome.TOO_LARGE:
        problem = f"has more than {MAX_FILE // 1024} KiB"
        yield make_finding("bimi.certificate-unreadable", url=url, problem=problem)
    elif file.problem:
        yield make_finding("bimi.certificate-unreadable", url=url, problem=file.problem)
    elif file.certificate is None:
        yield make_finding("bimi.certificate-missing", url=url, reason=_NOT_FETCHED[file.outcome])


def _judge_certificate(
    record: BimiRecord, mark: MarkCertificate, domains: Iterable[str | None]
) -> Iterator[Finding]:
    """Judge the certificate itself, which must be for one of the domains or its selector."""
    url = record.evidence
    if not mark.is_first:
        yield make_finding("bimi.certificate-order", url=url)
    if not mark.has_purpose:
        yield make_finding("bimi.certificate-purpose", url=url)
    elif mark.kind is MarkKind.UNKNOWN:
        yield make_finding("bimi.mark-type", url=url, mark_type=mark.mark_type[:60])
    accepted = {
        name
        for domain in domains
        if domain
        for name in (domain, record_name(record.selector, domain))
    }
    if accepted.isdisjoint(mark.domains):
        names = ", ".join(mark.domains[:5]) or "no domain"
        yield make_finding(
            "bimi.certificate-domain", url=url, names=names, found_at=record.found_at
        )
    if not mark.has_timestamps:
        yield make_finding("bimi.no-timestamps", url=url)


def _judge_time(url: str, mark: MarkCertificate, now: Instant) -> Iterator[Finding]:
    day = format_instant(mark.issuers_end_at)[:10]
    whose = "" if mark.issuers_end_at == mark.ends_at else "an issuer of "
    if mark.begins_at > now:
        begins = format_instant(mark.begins_at)[:10]
        yield make_finding("bimi.certificate-expired", case="not-yet", url=url, day=begins)
    elif mark.issuers_end_at <= now:
        yield make_finding("bimi.certificate-expired", whose=whose, url=url, day=day)
    elif mark.issuers_end_at - now < ENDING_SOON:
        days = (mark.issuers_end_at - now) // DAY
        yield make_finding("bimi.certificate-ending", whose=whose, url=url, day=day, days=days)


def _judge_issuers(url: str, mark: MarkCertificate, caa: CaaVerdict) -> Iterator[Finding]:
    root = mark.root
    if mark.chain is ChainState.BROKEN:
        yield make_finding("bimi.certificate-chain", case="not-signed", url=url)
    elif mark.chain is ChainState.INCOMPLETE:
        yield make_finding("bimi.certificate-chain", url=url, issuer=mark.issuer)
    elif root is None:
        yield make_finding("bimi.issuer-undetermined", url=url, issuer=mark.issuer)
    elif root.distrusted_after and format_instant(mark.begins_at)[:10] >= root.distrusted_after:
        yield make_finding(
            "bimi.issuer-distrusted",
            by=root.by,
            name=root.name,
            distrusted_after=root.distrusted_after,
        )
    allowed = caa.issuers(ISSUE_MARK)
    if root is not None and allowed is not None and not set(allowed) & set(root.caa):
        yield make_finding("bimi.caa-forbids", found_at=caa.found_at, name=root.name)


def _compare(record: BimiRecord, logo: Logo | None, mark: MarkCertificate) -> Iterator[Finding]:
    """Compare the logo at its URL with the one in the certificate."""
    url = record.evidence
    if mark.logotype is None:
        yield make_finding("bimi.certificate-logo", url=url, problem=mark.problem)
        return
    if not mark.logotype.has_valid_hash:
        yield make_finding("bimi.certificate-logo", case="hash", url=url)
    if logo is not None and logo.svg and logo.svg != mark.logotype.svg:
        yield make_finding("bimi.logo-differs", location=record.location, url=url)
