"""What the signatures cost."""

from collections.abc import Iterator

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.charging import charge, charge_known, remark, unknown
from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.dkim.mail_findings import describe_signature, describe_signatures
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail, SignatureOfMail
from mailcheck.checks.dmarc.mail_verdicts import DmarcOfMail
from mailcheck.checks.findings import Finding, Severity

_AGAIN = "Check the test again in a minute."


def charge_dkim(dkim: DkimOfMail, dmarc: DmarcOfMail) -> tuple[ChargedFinding, ...]:
    """Charge the best of what the signatures have to offer: one good one is enough.

    What else there is to say about them follows, at no cost.
    """
    charged = tuple(_charge(dkim, dmarc))
    ids = {one.finding.id for one in charged}
    first = _findings_of_first(dkim) if "dkim.invalid" in ids else ()
    rest = [
        finding
        for finding in describe_signatures(dkim)
        if finding.id not in ids
        and finding not in first
        and finding.severity is not Severity.UNDETERMINED
    ]
    return (*charged, *(remark(Area.DKIM, finding) for finding in rest))


def _charge(dkim: DkimOfMail, dmarc: DmarcOfMail) -> Iterator[ChargedFinding]:
    if dkim.passing:
        yield from _charge_passing(dkim, dmarc)
    elif not dkim.is_determined:
        silent = [s for s in dkim.signatures if s.result is AuthResult.TEMPERROR]
        reasons = " ".join(dict.fromkeys(one.explanation for one in silent))
        meaning = f"DKIM could not be determined: {reasons}"
        yield unknown(Area.DKIM, "dkim.undetermined", meaning, _AGAIN)
    elif dkim.signatures:
        yield _charge_invalid(dkim)
    else:
        yield from (charge_known(Area.DKIM, finding) for finding in describe_signatures(dkim))


def _charge_passing(dkim: DkimOfMail, dmarc: DmarcOfMail) -> Iterator[ChargedFinding]:
    """Charge signatures that verify: whose they are, and how strong their keys."""
    best = dkim.passing
    author = dmarc.author_domain
    if dmarc.author_domain is None:
        pass  # nobody whose signature it could be, which DMARC charges
    elif dmarc.is_dkim_aligned is None:
        yield unknown(
            Area.DKIM,
            "dkim.alignment-undetermined",
            f"A signature is valid, but it could not be determined whether it belongs to {author}.",
            _AGAIN,
        )
    elif dmarc.is_dkim_aligned:
        best = tuple(s for s in best if s.header.index in dmarc.aligned_signatures) or best
    else:
        domains = ", ".join(dict.fromkeys(one.header.signing_domain for one in best))
        yield charge(
            "dkim.unaligned",
            f"The valid signature is that of {domains}, not of {author}: DMARC does not count it.",
            f"Have the mail signed with a key of {author} (d={author}).",
        )
    if all(one.is_weak for one in best):
        yield _charge_weak(best[0])


def _charge_weak(signature: SignatureOfMail) -> ChargedFinding:
    bits = signature.key.bits if signature.key is not None else None
    name = signature.header.key_name
    return charge(
        "dkim.weak-key",
        f"The key at {name} has {bits} bits; 2048 are advised, and short keys can be forged.",
        f"Make an RSA key of 2048 bits, publish it under a new selector beside {name}, and sign"
        " with it.",
    )


def _charge_invalid(dkim: DkimOfMail) -> ChargedFinding:
    first, count = dkim.signatures[0], len(dkim.signatures)
    what = (
        "The only signature is not valid" if count == 1 else f"None of {count} signatures is valid"
    )
    fixes = [finding.fix for finding in _findings_of_first(dkim)]
    return charge("dkim.invalid", f"{what}: {first.explanation}", " ".join(fixes))


def _findings_of_first(dkim: DkimOfMail) -> tuple[Finding, ...]:
    return tuple(describe_signature(dkim.signatures[0], has_passing=False))
