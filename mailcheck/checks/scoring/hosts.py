"""Outcomes of MX, STARTTLS, domain age and reverse DNS, each with a sentence."""

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.mx import HostProblem, MxVerdict
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.hosts.starttls import StarttlsGrade, StarttlsVerdict
from mailcheck.checks.quality.wording import count_of
from mailcheck.checks.scoring.awards import AGE_FROM_DAYS
from mailcheck.checks.scoring.outcomes import (
    AgeOutcome,
    MxOutcome,
    ReverseDnsOutcome,
    StarttlsOutcome,
)
from mailcheck.checks.scoring.spf_dkim_dmarc import PARKED

NO_MAIL = "Not needed: the domain declares that it receives no mail."


def classify_mx(mx: MxVerdict, *, is_parked: bool) -> tuple[MxOutcome, str]:
    """Return the outcome of the MX records."""
    if mx.presence is Presence.UNDETERMINED:
        return MxOutcome.UNDETERMINED, "DNS gave no usable answer about MX records."
    if mx.is_null_mx:
        detail = "The domain declares that it receives no mail."
        return (MxOutcome.DECLARED_NONE if is_parked else MxOutcome.NULL), detail
    if not mx.hosts:
        return _classify_without_mx(mx)
    problems = {host.problem for host in mx.hosts} - {None}
    more = f" and {len(mx.hosts) - 1} more" if len(mx.hosts) > 1 else ""
    names = f"Mail goes to {mx.hosts[0].exchange}{more}."
    if not any(host.is_usable for host in mx.hosts):
        if HostProblem.UNDETERMINED in problems:
            return MxOutcome.UNDETERMINED, "DNS gave no usable answer about the mail hosts."
        return MxOutcome.ABSENT, f"No mail host works: {mx.findings[0].meaning}"
    if problems - {HostProblem.UNDETERMINED} or mx.has_null_record:
        return MxOutcome.FLAWED, f"{names} {mx.findings[0].meaning}"
    return MxOutcome.USABLE, names


def _classify_without_mx(mx: MxVerdict) -> tuple[MxOutcome, str]:
    own = mx.implicit_host
    if own is not None and own.presence is Presence.FOUND:
        return MxOutcome.IMPLICIT, "There is no MX record; mail goes to the domain's own address."
    if own is not None and own.presence is Presence.ABSENT:
        return MxOutcome.ABSENT, "There is neither an MX record nor an address."
    return MxOutcome.UNDETERMINED, "DNS gave no usable answer about the domain's address."


_STARTTLS = {
    StarttlsGrade.NOT_APPLICABLE: (StarttlsOutcome.NOT_NEEDED, NO_MAIL),
    StarttlsGrade.VERIFIED: (
        StarttlsOutcome.VERIFIED,
        "Encryption is offered, with a valid certificate for the mail host.",
    ),
    StarttlsGrade.UNVERIFIED: (
        StarttlsOutcome.UNVERIFIED,
        "Encryption is offered, but the certificate cannot be verified.",
    ),
    StarttlsGrade.UNDETERMINED: (
        StarttlsOutcome.UNDETERMINED,
        "no mail host could be reached to check encryption.",
    ),
    StarttlsGrade.OUTDATED: (
        StarttlsOutcome.OUTDATED,
        "Encryption is offered only in outdated versions.",
    ),
    StarttlsGrade.BROKEN: (StarttlsOutcome.ABSENT, "Encryption is offered, but it fails."),
    StarttlsGrade.MISSING: (StarttlsOutcome.ABSENT, "Encryption is not offered."),
    StarttlsGrade.NO_HOST: (StarttlsOutcome.ABSENT, "There is no mail host to offer encryption."),
}


def classify_starttls(starttls: StarttlsVerdict) -> tuple[StarttlsOutcome, str]:
    """Return the outcome of the STARTTLS probes."""
    return _STARTTLS[starttls.grade]


def classify_age(registration: RegistrationVerdict) -> tuple[AgeOutcome, str]:
    """Return the outcome of the age of the registration."""
    if registration.presence is Presence.ABSENT:
        return AgeOutcome.UNREGISTERED, registration.findings[0].meaning
    days = registration.age_days
    if days is None:
        reason = registration.findings[0].meaning.removeprefix("Could not be determined: ")
        return AgeOutcome.UNDETERMINED, reason
    outcome = next(outcome for reached, outcome in AGE_FROM_DAYS if days >= reached)
    return outcome, f"Registered on {registration.registration_date}, {count_of(days, 'day')} ago."


def classify_reverse_dns(
    reverse_dns: ReverseDnsVerdict | None, mx: MxVerdict, *, is_parked: bool
) -> tuple[ReverseDnsOutcome, str]:
    """Return the outcome of the sending host's reverse DNS name."""
    if is_parked:
        return ReverseDnsOutcome.NOT_NEEDED, PARKED
    if reverse_dns is None:
        return _classify_without_address(mx)
    address, name = reverse_dns.address, reverse_dns.host_name
    if reverse_dns.presence is Presence.ABSENT:
        return ReverseDnsOutcome.ABSENT, f"{address} has no reverse DNS name."
    if reverse_dns.presence is Presence.UNDETERMINED or reverse_dns.is_confirmed is None:
        return ReverseDnsOutcome.UNDETERMINED, f"DNS gave no usable answer about {address}."
    if not reverse_dns.is_confirmed:
        detail = f"{address} has the name {name}, which does not lead back to it."
        return ReverseDnsOutcome.UNCONFIRMED, detail
    if reverse_dns.is_generic:
        return ReverseDnsOutcome.GENERIC, f"{address} has the name {name}, which looks generic."
    return ReverseDnsOutcome.CONFIRMED, f"{address} has the name {name}, which leads back to it."


def _classify_without_address(mx: MxVerdict) -> tuple[ReverseDnsOutcome, str]:
    own = mx.implicit_host
    is_own_unknown = own is not None and own.presence is Presence.UNDETERMINED
    if mx.has_unknown_hosts or is_own_unknown:
        return ReverseDnsOutcome.UNDETERMINED, "the addresses of the mail hosts are unknown."
    return ReverseDnsOutcome.ABSENT, "There is no address whose reverse DNS name can be checked."
