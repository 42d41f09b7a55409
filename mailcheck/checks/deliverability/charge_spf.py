"""What SPF, the name of the sending address and its HELO cost: all that vouches for the host."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.deliverability.charging import charge_known, remark, unknown
from mailcheck.checks.findings import ELSEWHERE
from mailcheck.checks.hosts.helo import HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.mail import SpfOfMail
from mailcheck.checks.spf.mail_findings import describe_spf_of_helo, describe_spf_of_mail
from mailcheck.checks.spf.tree import SpfVerdict


def charge_spf(spf: SpfOfMail, record: SpfVerdict | None) -> tuple[ChargedFinding, ...]:
    """Charge the result of the MAIL FROM identity (RFC 7208 2.4); that of HELO costs nothing.

    :param record: what is known of the domain's record, where that was looked at.
    """
    identity = spf.mail_from
    if identity.result is AuthResult.TEMPERROR and not identity.silent_names:
        # DNS is not to blame: nobody could tell.
        meaning = f"SPF could not be determined. {identity.explanation}"
        return (unknown(Area.SPF, "spf.undetermined", meaning, ELSEWHERE),)
    of_sender, of_helo = describe_spf_of_mail(spf, record), describe_spf_of_helo(spf)
    return (
        *(() if of_sender is None else (charge_known(Area.SPF, of_sender),)),
        *(() if of_helo is None else (remark(Area.SPF, of_helo),)),
    )


def charge_host(
    reverse_dns: ReverseDnsVerdict | None, helo: HeloVerdict | None
) -> tuple[ChargedFinding, ...]:
    """Charge the name of the sending address and the name in HELO."""
    found = [verdict.findings for verdict in (reverse_dns, helo) if verdict is not None]
    return tuple(charge_known(Area.SPF, finding) for findings in found for finding in findings)
