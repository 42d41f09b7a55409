"""What DMARC costs, and a mail that nothing vouches for."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.charging import charge, remark, unknown
from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dmarc.mail_verdicts import DmarcOfMail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.findings import RecordToPublish, Severity, worst
from mailcheck.checks.spf.mail_verdicts import SpfOfMail

_POLICY_WORDS = {
    Policy.QUARANTINE: "asks receivers to put such mail aside (quarantine)",
    Policy.REJECT: "asks receivers to refuse such mail (reject)",
}


def charge_dmarc(dmarc: DmarcOfMail) -> tuple[ChargedFinding, ...]:
    """Charge the result for the author domain (RFC 9989)."""
    found = {
        AuthResult.PASS: lambda _: (),
        AuthResult.NONE: _without_record,
        AuthResult.FAIL: _failing,
        AuthResult.PERMERROR: _without_author,
        AuthResult.TEMPERROR: _undetermined,
    }[dmarc.result](dmarc)
    if dmarc.result in (AuthResult.PASS, AuthResult.FAIL) and dmarc.verdict is not None:
        known = [f for f in dmarc.verdict.findings if f.severity is not Severity.UNDETERMINED]
        return (*found, *(remark(Area.DMARC, finding) for finding in known))
    return tuple(found)


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
            "Publish an SPF record for the sending host and sign with DKIM; one of the two ends"
            " this, both are better.",
        ),
    )


def _without_record(dmarc: DmarcOfMail) -> tuple[ChargedFinding, ...]:
    """Say why there is no usable record, as the check of the domain does."""
    domain = dmarc.organizational_domain or dmarc.author_domain or ""
    known = worst(dmarc.verdict.findings) if dmarc.verdict is not None else None
    if known is not None:
        return (charge("dmarc.no-record", known.meaning, known.fix, known.record),)
    return (
        charge(
            "dmarc.no-record",
            f"{dmarc.author_domain} has no DMARC record, so receivers are not told what to do with"
            " forged mail.",
            "Publish this record; p=none changes nothing for your mail.",
            RecordToPublish(f"_dmarc.{domain}", "TXT", "v=DMARC1; p=none"),
        ),
    )


def _failing(dmarc: DmarcOfMail) -> tuple[ChargedFinding, ...]:
    fix = (
        f"Send with an envelope sender of {dmarc.author_domain} for which SPF passes, or have the"
        f" mail signed with a key of {dmarc.author_domain}."
    )
    policy = dmarc.policy or Policy.NONE
    if policy is Policy.NONE:
        return (charge("dmarc.fails-none", f"DMARC fails: {dmarc.explanation}", fix),)
    words = f"DMARC fails, and {dmarc.author_domain} {_POLICY_WORDS[policy]}: {dmarc.explanation}"
    return (charge("dmarc.fails-enforced", words, fix),)


def _without_author(dmarc: DmarcOfMail) -> tuple[ChargedFinding, ...]:
    return (
        charge(
            "dmarc.no-author",
            f"DMARC can't be applied: {dmarc.explanation}",
            "Send with exactly one From field that names one address of your domain.",
        ),
    )


def _undetermined(dmarc: DmarcOfMail) -> tuple[ChargedFinding, ...]:
    return (
        unknown(
            Area.DMARC,
            "dmarc.undetermined",
            f"DMARC could not be determined: {dmarc.explanation}",
            "Check the test again in a minute.",
        ),
    )
