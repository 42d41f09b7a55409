"""What DMARC costs, and a mail that nothing vouches for."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.charges import Area, ChargedFinding
from mailcheck.checks.deliverability.charging import charge, charge_known, remark
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dmarc.mail import DmarcOfMail
from mailcheck.checks.dmarc.mail_findings import describe_dmarc_of_mail
from mailcheck.checks.findings import Severity
from mailcheck.checks.spf.mail import SpfOfMail

_STRICTER = ("dmarc.policy-none", "dmarc.testing")
"""Findings that advise a stricter policy."""


def charge_dmarc(
    dmarc: DmarcOfMail, spf: SpfOfMail, dkim: DkimOfMail
) -> tuple[ChargedFinding, ...]:
    """Charge the result for the author domain (RFC 9989).

    What there is to say about a record that applies follows, at no cost; while
    own mail fails, nobody is told to ask for more.
    """
    finding = describe_dmarc_of_mail(dmarc, spf, dkim)
    charged = () if finding is None else (charge_known(Area.DMARC, finding),)
    if dmarc.verdict is None or dmarc.result not in (AuthResult.PASS, AuthResult.FAIL):
        return charged
    left_out = _STRICTER if dmarc.result is AuthResult.FAIL else ()
    known = (f for f in dmarc.verdict.findings if f.severity is not Severity.UNDETERMINED)
    return (*charged, *(remark(Area.DMARC, one) for one in known if one.id not in left_out))


def charge_authentication(spf: SpfOfMail, dkim: DkimOfMail) -> tuple[ChargedFinding, ...]:
    """Charge a mail for which neither passes, where both are known."""
    is_known = spf.mail_from.result.is_determined and dkim.is_determined
    if not is_known or spf.has_pass or dkim.passing:
        return ()
    return (
        charge(
            "authentication.nothing-passes",
            "Neither SPF nor DKIM passes, so nothing shows that the mail comes from where it says;"
            " Gmail refuses such mail.",
            "Make SPF or DKIM pass: one of the two ends this, both are better.",
        ),
    )
