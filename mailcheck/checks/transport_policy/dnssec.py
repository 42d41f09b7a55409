"""Is the domain signed with DNSSEC: only a validating resolver can tell (RFC 4035 3.2.3)."""

from dataclasses import dataclass
from enum import Enum

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding, Severity, undetermined
from mailcheck.checks.lookups import look_up


class DnssecStatus(Enum):
    """What is known; a domain whose signatures are wrong gives no answer at all."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class DnssecVerdict:
    """Whether answers about the domain are authenticated."""

    domain: str
    status: DnssecStatus
    findings: tuple[Finding, ...]


def evaluate_dnssec(domain: str, answers: Answers, *, is_validating: bool) -> DnssecVerdict:
    """Judge by the AD bit of an answer about the domain.

    :param is_validating: the operator says that the resolver validates and
        the way to it is safe; else the bit means nothing.
    """
    answer = look_up(answers, domain, "SOA")
    if not is_validating:
        return DnssecVerdict(domain, DnssecStatus.UNDETERMINED, (_no_validator(),))
    if not answer.status.is_determined:
        silence = undetermined("dnssec", [domain])
        return DnssecVerdict(domain, DnssecStatus.UNDETERMINED, (silence,))
    if answer.is_authenticated:
        return DnssecVerdict(domain, DnssecStatus.SIGNED, ())
    return DnssecVerdict(domain, DnssecStatus.UNSIGNED, (_unsigned(domain),))


def _no_validator() -> Finding:
    return Finding(
        "dnssec.undetermined",
        Severity.UNDETERMINED,
        "Could not be determined: no resolver of this service is said to validate DNSSEC.",
        "Run a validating resolver and say so in the configuration of mailcheck.",
    )


def _unsigned(domain: str) -> Finding:
    return Finding(
        "dnssec.unsigned",
        Severity.NOTE,
        f"{domain} is not signed (DNSSEC), so forged answers about its mail cannot be told from"
        " real ones, and DANE cannot be used.",
        "Switch DNSSEC on at the provider of your name servers.",
    )
