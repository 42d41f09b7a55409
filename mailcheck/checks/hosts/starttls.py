"""What a probe of port 25 found out about encryption, and what it means (RFC 3207).

Probing is somebody else's; only what a host offers to those who send to it
can be seen, never what it does when it sends.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.core.instants import Instant

GOOD_TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
"""RFC 8996 forbids TLS 1.0 and 1.1; OpenSSL's spellings."""


class ProbeOutcome(Enum):
    """How the probe of one host ended."""

    ENCRYPTED = "encrypted"
    NOT_OFFERED = "not-offered"
    """It speaks SMTP, without STARTTLS."""
    HANDSHAKE_FAILED = "handshake-failed"
    """It offers STARTTLS, but no encrypted connection comes about."""
    REJECTED = "turned-away"
    """It greets with a refusal: what it offers to others is not known."""
    NO_SMTP = "no-smtp"
    """What it says is not SMTP, or it hangs up or stalls."""
    UNREACHABLE = "unreachable"
    """No connection; perhaps port 25 is closed to us only."""
    NOT_PROBED = "not-probed"
    """Not tried: no public address, or no time left."""

    @property
    def is_determined(self) -> bool:
        """Tell whether it is a fact about the host."""
        return self in (
            ProbeOutcome.ENCRYPTED,
            ProbeOutcome.NOT_OFFERED,
            ProbeOutcome.HANDSHAKE_FAILED,
        )


class StarttlsProbe(Struct, frozen=True):
    """What one host showed. The TLS facts are there when it is ``ENCRYPTED``.

    ``is_certificate_trusted``: the chain leads to a known authority and is in
    its time; ``is_name_matching``: the certificate is for the MX name. ``certificate_digest`` is
    its SHA-256 in hexadecimal; that and its end are empty where it can't be read.
    """

    exchange: str
    outcome: ProbeOutcome
    tls_version: str = ""
    is_certificate_trusted: bool = False
    is_name_matching: bool = False
    certificate_digest: str = ""
    certificate_ends_at: Instant | None = None

    @property
    def is_verified(self) -> bool:
        """Tell whether a sender who checks certificates delivers over it."""
        return self.is_certificate_trusted and self.is_name_matching


class StarttlsGrade(Enum):
    """How well mail to the domain is encrypted, best first."""

    NOT_APPLICABLE = "not-applicable"
    """The domain receives no mail."""
    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    UNDETERMINED = "undetermined"
    OUTDATED = "outdated"
    BROKEN = "broken"
    MISSING = "missing"
    NO_HOST = "no-host"


class StarttlsVerdict(Struct, frozen=True):
    """The grade of the worst host that could be seen, since mail may go to any of them."""

    grade: StarttlsGrade
    probes: tuple[StarttlsProbe, ...]
    findings: tuple[Finding, ...]

    @property
    def is_offered(self) -> bool:
        """Tell whether every host that could be seen offers encryption that works."""
        return self.grade in (
            StarttlsGrade.VERIFIED,
            StarttlsGrade.UNVERIFIED,
            StarttlsGrade.OUTDATED,
        )


def evaluate_starttls(mx: MxVerdict, probes: Sequence[StarttlsProbe]) -> StarttlsVerdict:
    """Judge the probes of a domain's mail hosts (or of the domain itself without MX)."""
    if mx.is_null_mx:
        return StarttlsVerdict(StarttlsGrade.NOT_APPLICABLE, tuple(probes), ())
    graded = {probe.exchange: _grade(probe) for probe in probes}
    seen = [grade for grade in graded.values() if grade is not StarttlsGrade.UNDETERMINED]
    own = mx.implicit_host
    may_have_hosts = mx.hosts or own is None or own.presence is not Presence.ABSENT
    unseen = StarttlsGrade.UNDETERMINED if may_have_hosts else StarttlsGrade.NO_HOST
    grade = max(seen, key=list(StarttlsGrade).index, default=unseen)
    findings = tuple(
        finding for probe in probes if (finding := _find(probe, _grade(probe))) is not None
    )
    return StarttlsVerdict(grade, tuple(probes), findings)


def _grade(probe: StarttlsProbe) -> StarttlsGrade:
    if probe.outcome is ProbeOutcome.NOT_OFFERED:
        return StarttlsGrade.MISSING
    if probe.outcome is ProbeOutcome.HANDSHAKE_FAILED:
        return StarttlsGrade.BROKEN
    if not probe.outcome.is_determined:
        return StarttlsGrade.UNDETERMINED
    if probe.tls_version not in GOOD_TLS_VERSIONS:
        return StarttlsGrade.OUTDATED
    return StarttlsGrade.VERIFIED if probe.is_verified else StarttlsGrade.UNVERIFIED


def _find(probe: StarttlsProbe, grade: StarttlsGrade) -> Finding | None:
    host = probe.exchange
    match grade:
        case StarttlsGrade.MISSING:
            meaning = (
                f"{host} does not offer encryption (STARTTLS): mail to it can be read on its way."
            )
            return make_finding("starttls.missing", meaning)
        case StarttlsGrade.BROKEN:
            meaning = (
                f"{host} offers encryption (STARTTLS), but it fails: mail to it may not arrive."
            )
            return make_finding("starttls.broken", meaning)
        case StarttlsGrade.OUTDATED:
            meaning = (
                f"{host} encrypts with {probe.tls_version}, which is forbidden by now (RFC 8996)."
            )
            return make_finding("starttls.outdated", meaning)
        case StarttlsGrade.UNVERIFIED:
            return _unverified(probe)
        case StarttlsGrade.UNDETERMINED:
            return _unknown(probe)
        case _:
            return None


def _unverified(probe: StarttlsProbe) -> Finding:
    problem = "is not from a known authority or out of date"
    if probe.is_certificate_trusted:
        problem = "is for another name"
    return make_finding(
        "starttls.unverified",
        f"The certificate of {probe.exchange} {problem}, so a sender cannot be sure to talk to the"
        " right server.",
        f"Install a certificate for {probe.exchange}, for example from Let's Encrypt.",
    )


def _unknown(probe: StarttlsProbe) -> Finding:
    reasons = {
        ProbeOutcome.REJECTED: "refuses to talk to this service",
        ProbeOutcome.NO_SMTP: "did not answer as a mail server does",
        ProbeOutcome.UNREACHABLE: "could not be reached on port 25 from here",
        ProbeOutcome.NOT_PROBED: "was not asked",
    }
    return make_finding(
        "starttls.undetermined",
        f"Could not be determined: {probe.exchange} {reasons[probe.outcome]}.",
    )
