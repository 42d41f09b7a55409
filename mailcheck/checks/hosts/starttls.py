"""Evaluation of STARTTLS probes of mail hosts on port 25 (RFC 3207).

The probes are made elsewhere. They show what a host offers to senders, but not what the host does
when it sends mail.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.core.instants import Instant

GOOD_TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
"""Accepted versions in OpenSSL's spelling; RFC 8996 forbids TLS 1.0 and 1.1."""


class ProbeOutcome(Enum):
    """The outcome of the probe of one host."""

    ENCRYPTED = "encrypted"
    NOT_OFFERED = "not-offered"
    """The host speaks SMTP without STARTTLS."""
    HANDSHAKE_FAILED = "handshake-failed"
    """The host offers STARTTLS, but the TLS handshake fails."""
    REJECTED = "turned-away"
    """The host rejects the session, so what it offers to other clients is unknown."""
    NO_SMTP = "no-smtp"
    """The host does not speak SMTP, closes the connection or does not answer."""
    UNREACHABLE = "unreachable"
    """There is no connection; port 25 may be blocked from here only."""
    NOT_PROBED = "not-probed"
    """The host has no public address, or there was no time left."""

    @property
    def is_determined(self) -> bool:
        """Whether the outcome is a fact about the host."""
        return self in (
            ProbeOutcome.ENCRYPTED,
            ProbeOutcome.NOT_OFFERED,
            ProbeOutcome.HANDSHAKE_FAILED,
        )


class StarttlsProbe(Struct, frozen=True):
    """The result of the probe of one host; the TLS fields are set if it is ``ENCRYPTED``.

    ``is_certificate_trusted`` is true if the chain leads to a known authority and is not expired.
    ``is_name_matching`` is true if the certificate is for the MX name. ``certificate_digest`` is
    its SHA-256 in hexadecimal. Digest and end are empty if the certificate cannot be read.
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
        """Whether a sender that verifies certificates delivers to it."""
        return self.is_certificate_trusted and self.is_name_matching


class StarttlsGrade(Enum):
    """The quality of encryption of mail to the domain, best first."""

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
    """The grade of the worst host with a known result, since mail may go to any host."""

    grade: StarttlsGrade
    probes: tuple[StarttlsProbe, ...]
    findings: tuple[Finding, ...]

    @property
    def is_offered(self) -> bool:
        """Whether every host with a known result offers encryption that works."""
        return self.grade in (
            StarttlsGrade.VERIFIED,
            StarttlsGrade.UNVERIFIED,
            StarttlsGrade.OUTDATED,
        )


def evaluate_starttls(mx: MxVerdict, probes: Sequence[StarttlsProbe]) -> StarttlsVerdict:
    """Evaluate the probes of the mail hosts, or of the domain itself without MX records."""
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


UNDETERMINED: Mapping[ProbeOutcome, str] = {
    ProbeOutcome.REJECTED: "rejects connections of this service",
    ProbeOutcome.NO_SMTP: "did not answer like a mail server",
    ProbeOutcome.UNREACHABLE: "could not be reached on port 25 from here",
    ProbeOutcome.NOT_PROBED: "was not probed",
}
"""What a host did whose encryption could not be determined."""


def _find(probe: StarttlsProbe, grade: StarttlsGrade) -> Finding | None:
    host = probe.exchange
    match grade:
        case StarttlsGrade.MISSING:
            return make_finding("starttls.missing", host=host)
        case StarttlsGrade.BROKEN:
            return make_finding("starttls.broken", host=host)
        case StarttlsGrade.OUTDATED:
            return make_finding("starttls.outdated", host=host, tls_version=probe.tls_version)
        case StarttlsGrade.UNVERIFIED:
            problem = "is not from a known authority, or it has expired"
            if probe.is_certificate_trusted:
                problem = "is for another name"
            return make_finding("starttls.unverified", exchange=host, problem=problem)
        case StarttlsGrade.UNDETERMINED:
            reason = UNDETERMINED[probe.outcome]
            return make_finding("starttls.undetermined", exchange=host, reason=reason)
        case _:
            return None
