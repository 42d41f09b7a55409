"""The domain report as JSON (`GET /tools/domain`; docs/reference/contract.md)."""

from base64 import b64encode
from typing import Annotated

from mailcheck.api.domains.findings import DomainFinding, render_findings
from mailcheck.api.domains.mx import MailHost, render_hosts
from mailcheck.api.shapes import Count, Shape, Texts, Timestamp, doc, shape_from
from mailcheck.checks.bimi.certificate import ChainState, MarkCertificate, MarkKind
from mailcheck.checks.bimi.record import Preference
from mailcheck.checks.bimi.svg import MEDIA_TYPE, Logo
from mailcheck.checks.dkim import evaluate as dkim_verdicts
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.caa import ISSUE, ISSUE_MAIL, ISSUE_MARK
from mailcheck.checks.hosts.dane import DnssecStatus, HostTlsa
from mailcheck.checks.hosts.mta_sts import PolicyMode
from mailcheck.checks.spf import tree as spf_verdicts
from mailcheck.checks.spf.record import (
    Qualifier,
)
from mailcheck.core.instants import DAY, Instant
from mailcheck.operations.domains import describe_domain

Found = Annotated[Presence, doc("undetermined: DNS gave no usable answer, which is not absent")]

Findings = Annotated[tuple[DomainFinding, ...], doc("the most severe first")]


class MxReport(Shape):
    """The MX records."""

    presence: Found
    records: tuple[MailHost, ...]
    null_mx: bool
    implicit_mx: bool
    findings: Findings


class SpfNode(Shape):
    """An SPF record, with the records that it includes."""

    domain: Annotated[str, doc("domain of the record")]
    term: Annotated[str | None, doc("the term that refers to this record; null at the top")]
    record: str | None
    problem: spf_verdicts.NodeProblem | None
    lookups: Annotated[int, doc("DNS lookups of this record and those below it", ge=0)]
    void_terms: Annotated[Texts, doc("terms whose lookup returns no records")]
    children: "tuple[SpfNode, ...]"


class SpfReport(Shape):
    """The SPF record with all records that it includes."""

    presence: Found
    records: Texts
    lookups: Annotated[int, doc("at most 10 are allowed (RFC 7208 4.6.4)", ge=0)]
    void_lookups: Annotated[int, doc("void lookups for every client; 2 are allowed", ge=0)]
    void_lookups_ipv4: Annotated[
        int, doc("void lookups for a client whose IPv4 address matches no term", ge=0)
    ]
    void_lookups_ipv6: Annotated[
        int, doc("void lookups for a client whose IPv6 address matches no term", ge=0)
    ]
    complete: Annotated[bool, doc("false: part of the tree could not be looked up")]
    all: Annotated[Qualifier | None, doc("qualifier of the all mechanism, for all other hosts")]
    tree: SpfNode | None
    findings: Findings


class DkimKey(Shape):
    """A published DKIM key."""

    selector: str
    name: Annotated[str, doc("DNS name of the record")]
    type: Annotated[str, doc("rsa or ed25519")]
    bits: Count | None
    usable: bool
    testing: Annotated[bool, doc("t=y")]
    revoked: Annotated[bool, doc("p= is empty")]
    record: str
    alias_of: Annotated[str | None, doc("target of the CNAME record")]


class DkimReport(Shape):
    """The published DKIM keys."""

    presence: Found
    hidden: Annotated[bool, doc("keys exist, but under unknown selectors")]
    keys: tuple[DkimKey, ...]
    tried: Annotated[Texts, doc("selectors that were looked up")]
    findings: Findings


class ReportAuthorization(Shape):
    """Whether another domain accepts the reports about this one."""

    uri: str
    name: str
    presence: Found


class DmarcReport(Shape):
    """The DMARC record that applies to the domain."""

    presence: Found
    found_at: Annotated[str | None, doc("domain where the tree walk found it")]
    record: str | None
    policy: Annotated[Policy | None, doc("policy that applies to this domain")]
    policy_tag: Annotated[str | None, doc("p, sp or np")]
    testing: Annotated[bool, doc("t=y")]
    organizational_domain: str | None
    rua: Annotated[Texts, doc("addresses for aggregate reports")]
    report_authorizations: Annotated[
        tuple[ReportAuthorization, ...], doc("whether other domains accept the reports (RFC 9990)")
    ]
    findings: Findings


class MtaStsPolicy(Shape):
    """The MTA-STS policy file."""

    mode: PolicyMode | None
    max_age: Annotated[int | None, doc("seconds")]
    mx: Texts
    valid: bool


class MtaStsReport(Shape):
    """The MTA-STS record and policy (RFC 8461)."""

    presence: Found
    record: str | None
    policy: MtaStsPolicy | None
    findings: Findings


class TlsRptReport(Shape):
    """The TLS reporting record (RFC 8460)."""

    presence: Found
    record: str | None
    rua: Texts
    findings: Findings


class DaneHost(Shape):
    """The TLSA records of a mail host."""

    exchange: str
    name: Annotated[str, doc("DNS name of the records")]
    presence: Found
    records: Texts
    secure: Annotated[bool | None, doc("signed with DNSSEC; null: no validating resolver")]


class DaneReport(Shape):
    """DANE of the mail hosts (RFC 7672)."""

    presence: Found
    protecting: Annotated[bool, doc("every mail host has usable, signed TLSA records")]
    hosts: tuple[DaneHost, ...]
    findings: Findings


class DnssecReport(Shape):
    """Whether the domain is signed with DNSSEC."""

    status: Annotated[DnssecStatus, doc("undetermined without a validating resolver")]
    findings: Findings


class CaaReport(Shape):
    """The certificate authorities that may issue (RFC 8659)."""

    presence: Found
    found_at: Annotated[str | None, doc("the domain or the nearest one above it with records")]
    records: Texts
    host_issuers: Annotated[
        Texts | None, doc("authorities for hosts; null: any may issue, unless undetermined")
    ]
    mail_issuers: Annotated[Texts | None, doc("the same for S/MIME (RFC 9495)")]
    mark_issuers: Annotated[Texts | None, doc("the same for the logo (BIMI)")]
    findings: Findings


class LogoReport(Shape):
    """The logo that the BIMI record names."""

    size: Annotated[int, doc("octets, uncompressed", ge=0)]
    title: str
    valid: Annotated[bool, doc("follows SVG Tiny PS")]
    image: Annotated[
        str | None,
        doc("data: URL for an img element; null: the file may be harmful, so do not show it"),
    ]


class CertificateReport(Shape):
    """The mark certificate of the logo."""

    kind: Annotated[MarkKind, doc("VMC: a registered mark; CMC: a mark in use")]
    mark_type: Annotated[str | None, doc("as written in the certificate")]
    organization: str
    issuer: str
    root: Annotated[str | None, doc("null: the issuer could not be determined")]
    chain: ChainState
    domains: Texts
    valid_from: Timestamp
    valid_until: Annotated[Timestamp, doc("of the certificate, or an issuer whose end is earlier")]
    days_left: Annotated[int, doc("negative after the end")]
    timestamps: Annotated[bool, doc("has timestamps of certificate logs (SCT)")]
    unchecked: Annotated[
        Texts,
        doc("not verified: revocation (its lists are not fetched), timestamps (their signatures)"),
    ]
    logo_matches: Annotated[
        bool | None, doc("it contains the published logo; null: one of them could not be read")
    ]


class BimiReport(Shape):
    """The logo of the domain (draft-brand-indicators-for-message-identification)."""

    presence: Found
    name: Annotated[str, doc("DNS name of the record")]
    record: str | None
    declined: Annotated[bool, doc("the domain declares that it has no logo")]
    location: Annotated[str | None, doc("URL of the logo; null: none that can be fetched")]
    evidence: Annotated[str | None, doc("URL of the certificate; null: none")]
    preference: Preference | None
    ready: Annotated[bool | None, doc("receivers can show the logo; null: undetermined")]
    logo: LogoReport | None
    certificate: CertificateReport | None
    findings: Findings


class DomainReport(Shape):
    """The complete report about the mail set-up of a domain."""

    domain: str
    exists: Annotated[bool, doc("false: the domain does not exist (NXDOMAIN)")]
    checked_at: Timestamp
    mx: MxReport
    spf: SpfReport
    dkim: DkimReport
    dmarc: DmarcReport
    mta_sts: MtaStsReport
    tls_rpt: TlsRptReport
    dane: DaneReport
    dnssec: DnssecReport
    caa: CaaReport
    bimi: BimiReport


def render_domain_report(report: describe_domain.DomainReport) -> DomainReport:
    """Render each mechanism with its findings. ``presence`` distinguishes absent, undetermined."""
    return shape_from(
        DomainReport,
        report,
        exists=report.records.mx.exists,
        mx=_mx(report),
        spf=_spf(report),
        dkim=_dkim(report),
        dmarc=_dmarc(report),
        mta_sts=_mta_sts(report),
        tls_rpt=_tls_rpt(report),
        dane=_dane(report),
        dnssec=shape_from(
            DnssecReport, report.records.dnssec, findings=_findings(report, "dnssec")
        ),
        caa=_caa(report),
        bimi=_bimi(report),
    )


def _findings(report: describe_domain.DomainReport, topic: str) -> tuple[DomainFinding, ...]:
    return render_findings(report.findings[topic], report.proofs)


def _mx(report: describe_domain.DomainReport) -> MxReport:
    mx = report.records.mx
    return shape_from(
        MxReport, mx, records=render_hosts(mx.hosts), findings=_findings(report, "mx")
    )


def _spf(report: describe_domain.DomainReport) -> SpfReport:
    spf = report.records.spf
    return shape_from(
        SpfReport,
        spf,
        lookups=spf.lookup_count,
        void_lookups=spf.void_count,
        void_lookups_ipv4=len(spf.void_terms_for(4)),
        void_lookups_ipv6=len(spf.void_terms_for(6)),
        complete=spf.is_complete and not spf.is_truncated,
        all=spf.all_qualifier,
        tree=None if spf.tree is None else _spf_node(spf.tree),
        findings=_findings(report, "spf"),
    )


def _spf_node(node: spf_verdicts.SpfNode) -> SpfNode:
    return shape_from(
        SpfNode,
        node,
        record=None if node.record is None else node.record.text,
        void_terms=node.voids,
        children=tuple(map(_spf_node, node.children)),
    )


def _dkim(report: describe_domain.DomainReport) -> DkimReport:
    dkim = report.records.dkim
    return shape_from(
        DkimReport, dkim, keys=tuple(map(_key, dkim.keys)), findings=_findings(report, "dkim")
    )


def _key(key: dkim_verdicts.DkimKey) -> DkimKey:
    return shape_from(
        DkimKey,
        key.record,
        selector=key.selector,
        name=key.record_name,
        type=key.record.key_type,
        usable=key.is_usable,
        record=key.record.text,
        alias_of=key.alias_of,
    )


def _dmarc(report: describe_domain.DomainReport) -> DmarcReport:
    dmarc = report.records.dmarc
    record = dmarc.record
    return shape_from(
        DmarcReport,
        dmarc,
        record=None if record is None else record.text,
        testing=record is not None and record.is_testing,
        rua=() if record is None else tuple(uri.text for uri in record.rua),
        report_authorizations=tuple(
            shape_from(ReportAuthorization, asked, uri=asked.uri.text, name=asked.record_name)
            for asked in dmarc.authorizations
        ),
        findings=_findings(report, "dmarc"),
    )


def _mta_sts(report: describe_domain.DomainReport) -> MtaStsReport:
    verdict = report.mta_sts
    policy = verdict.policy
    return MtaStsReport(
        presence=verdict.record.presence,
        record=verdict.record.text or None,
        policy=None if policy is None else shape_from(MtaStsPolicy, policy, mx=policy.mx_patterns),
        findings=_findings(report, "mtaSts"),
    )


def _tls_rpt(report: describe_domain.DomainReport) -> TlsRptReport:
    found = report.records.tls_rpt
    return shape_from(TlsRptReport, found, record=found.text, findings=_findings(report, "tlsRpt"))


def _dane(report: describe_domain.DomainReport) -> DaneReport:
    dane = report.records.dane
    return DaneReport(
        presence=_dane_presence(dane.hosts),
        protecting=dane.is_protecting,
        hosts=tuple(shape_from(DaneHost, host, name=host.record_name) for host in dane.hosts),
        findings=_findings(report, "dane"),
    )


def _dane_presence(hosts: tuple[HostTlsa, ...]) -> Presence:
    found = {host.presence for host in hosts}
    for presence in (Presence.FOUND, Presence.UNDETERMINED):
        if presence in found:
            return presence
    return Presence.ABSENT


def _caa(report: describe_domain.DomainReport) -> CaaReport:
    caa = report.records.caa
    return shape_from(
        CaaReport,
        caa,
        records=tuple(entry.text for entry in caa.properties),
        host_issuers=caa.issuers(ISSUE),
        mail_issuers=caa.issuers(ISSUE_MAIL),
        mark_issuers=caa.issuers(ISSUE_MARK),
        findings=_findings(report, "caa"),
    )


def _bimi(report: describe_domain.DomainReport) -> BimiReport:
    bimi, record = report.bimi, report.bimi.record
    certificate = bimi.certificate
    return shape_from(
        BimiReport,
        record,
        record=record.text,
        ready=bimi.is_ready,
        logo=None if bimi.logo is None else _logo(bimi.logo),
        certificate=None
        if certificate is None
        else _certificate(certificate, bimi.logo, report.checked_at),
        findings=_findings(report, "bimi"),
    )


def _logo(logo: Logo) -> LogoReport:
    image = f"data:{MEDIA_TYPE};base64,{b64encode(logo.svg).decode()}" if logo.is_shown else None
    return shape_from(LogoReport, logo, image=image)


def _certificate(mark: MarkCertificate, logo: Logo | None, now: Instant) -> CertificateReport:
    matches = None
    if logo is not None and logo.svg and mark.logotype is not None:
        matches = mark.logotype.svg == logo.svg
    return shape_from(
        CertificateReport,
        mark,
        root=None if mark.root is None else mark.root.name,
        valid_from=mark.begins_at,
        valid_until=mark.issuers_end_at,
        days_left=(mark.issuers_end_at - now) // DAY,
        timestamps=mark.has_timestamps,
        unchecked=("revocation", "timestamps") if mark.has_timestamps else ("revocation",),
        logo_matches=matches,
    )
