"""What SPF, the name of the sending address and its HELO cost: all that vouches for the host."""

from collections.abc import Iterable

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.charging import charge, charge_known, unknown
from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.mail_verdicts import SpfOfIdentity, SpfOfMail
from mailcheck.checks.spf.proposal import propose_new_record
from mailcheck.core.network_addresses import IpAddress, parse_ip_address

_CONSEQUENCES = {
    AuthResult.NEUTRAL: (
        "The SPF record of {domain} says nothing about {ip}, so it does not help your mail."
    ),
    AuthResult.NONE: (
        "{domain} has no SPF record, so receivers can't tell whether {ip} may send for it."
    ),
    AuthResult.SOFTFAIL: (
        "The SPF record of {domain} says that {ip} probably may not send for it;"
        " receivers treat the mail with suspicion."
    ),
    AuthResult.FAIL: (
        "The SPF record of {domain} says that {ip} may not send for it; receivers may refuse it."
    ),
    AuthResult.PERMERROR: (
        "Receivers can't use the SPF record of {domain}, and many count that as a fail."
    ),
}

_ALLOW = "If {ip} is a host of yours or of your provider, let it send: publish this record."


def charge_spf(spf: SpfOfMail) -> tuple[ChargedFinding, ...]:
    """Charge the result of the MAIL FROM identity (RFC 7208 2.4)."""
    identity = spf.mail_from
    if identity.result is AuthResult.PASS:
        return ()
    if identity.result is AuthResult.TEMPERROR:
        return (
            unknown(
                Area.SPF,
                "spf.undetermined",
                f"SPF could not be determined: {identity.explanation}",
                "Check the test again in a minute.",
            ),
        )
    meaning = _CONSEQUENCES[identity.result].format(domain=identity.domain, ip=spf.client_ip)
    if identity.explanation:
        meaning = f"{meaning} {identity.explanation}"
    finding_id = f"spf.result-{identity.result.value}"
    return (charge(finding_id, meaning, _fix(spf), _record(identity, spf.client_ip)),)


def charge_host(
    reverse_dns: ReverseDnsVerdict | None, helo: Iterable[Finding]
) -> tuple[ChargedFinding, ...]:
    """Charge the name of the sending address and the name in HELO."""
    findings = (*(reverse_dns.findings if reverse_dns is not None else ()), *helo)
    return tuple(charge_known(Area.SPF, finding) for finding in findings)


def allow_address(record: str | None, address: IpAddress) -> str:
    """Write an SPF record that lets an address send; all else in it stays."""
    version, _, rest = (record or propose_new_record()).partition(" ")
    return f"{version} ip{address.version}:{address} {rest}".rstrip()


def _fix(spf: SpfOfMail) -> str:
    if spf.mail_from.result is AuthResult.PERMERROR:
        return f"Mend the SPF record of {spf.mail_from.domain}: {spf.mail_from.explanation}"
    if not _can_publish(spf.mail_from.domain):
        return "Send with the name of your mail server in HELO, and with an address of your domain."
    return _ALLOW.format(ip=spf.client_ip)


def _record(identity: SpfOfIdentity, address: IpAddress) -> RecordToPublish | None:
    if identity.result is AuthResult.PERMERROR or not _can_publish(identity.domain):
        return None
    return RecordToPublish(identity.domain, "TXT", allow_address(identity.record, address))


def _can_publish(domain: str) -> bool:
    """Tell whether records can stand at this name: a HELO may be an address, or one word."""
    return "." in domain and parse_ip_address(domain.strip("[]")) is None
