"""The words for how DMARC came to its result for a mail."""

from collections.abc import Sequence

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dmarc.verdicts import DmarcVerdict
from mailcheck.checks.lookups import Presence
from mailcheck.checks.spf.mail_explanations import shown
from mailcheck.checks.spf.mail_verdicts import SpfOfMail

MAX_NAMED = 3  # of several domains


def explain_author(authors: Sequence[str]) -> str:
    """Say why there is no author domain (RFC 9989 5.3.1)."""
    if not authors:
        return "The mail has no From address with a full domain name."
    if len(authors) > 1:
        return (
            f"The mail has authors of {len(authors)} domains ({_list(authors)}), so no policy is"
            " that of its author."
        )
    if not authors[0]:
        return "The From address has no domain."
    return f'"{shown(authors[0])}" in the From address is no domain name.'


def explain_result(
    result: AuthResult,
    verdict: DmarcVerdict,
    spf: SpfOfMail | None,
    dkim: DkimOfMail | None,
    is_spf_aligned: bool | None,
    is_dkim_aligned: bool | None,
) -> str:
    """Say in a sentence what passed, for whom, and whether that is the author."""
    author = verdict.domain
    if result is AuthResult.NONE:
        return f"No DMARC record applies to {author}."
    if verdict.presence is Presence.UNDETERMINED:
        names = _list(verdict.walk.silent_names)
        return f"The name servers gave no answer about {names} (TXT)."
    of_spf = _explain_spf(verdict, spf, is_spf_aligned)
    of_dkim = _explain_dkim(verdict, dkim, is_dkim_aligned)
    if result is AuthResult.PASS:
        of_spf = of_spf if is_spf_aligned else ""
        of_dkim = of_dkim if is_dkim_aligned else ""
    words = "; ".join(filter(None, (of_spf, of_dkim)))
    return f"{words[:1].upper()}{words[1:]}."


def _explain_spf(verdict: DmarcVerdict, spf: SpfOfMail | None, is_aligned: bool | None) -> str:
    if spf is None:
        return "SPF was not judged"
    domain = shown(spf.mail_from.domain)
    result = spf.mail_from.result
    if result is AuthResult.TEMPERROR:
        return f"SPF of {domain} could not be determined"
    if result is not AuthResult.PASS:
        return f"SPF does not pass for {domain}" if domain else "SPF does not pass"
    is_strict = verdict.record is not None and verdict.record.has_strict_spf
    relation = _relate(verdict, [domain], is_aligned, is_strict, "aspf")
    return f"SPF passes for {domain}, {relation}"


def _explain_dkim(verdict: DmarcVerdict, dkim: DkimOfMail | None, is_aligned: bool | None) -> str:
    if dkim is None:
        return "DKIM was not judged"
    if not dkim.signatures:
        return "the mail has no DKIM signature"
    if not dkim.passing:
        is_known = dkim.is_determined
        return "no DKIM signature is valid" if is_known else "DKIM could not be determined"
    signers = [one.header.signing_domain for one in dkim.passing]
    is_strict = verdict.record is not None and verdict.record.has_strict_dkim
    relation = _relate(verdict, signers, is_aligned, is_strict, "adkim")
    return f"the mail is validly signed by {_list(signers)}, {relation}"


def _relate(
    verdict: DmarcVerdict,
    domains: Sequence[str],
    is_aligned: bool | None,
    is_strict: bool,
    tag: str,
) -> str:
    """Say how the domains just named stand to that of the author."""
    author = verdict.domain
    if is_aligned is None:
        return f"and whether that belongs to {author} could not be determined"
    if is_aligned and set(domains) == {author}:
        return "the domain in From"
    if is_aligned:
        return f"which belongs to {author}"
    if is_strict:
        return f"which is not {author} itself, as {tag}=s demands"
    return f"which does not belong to {author}"


def _list(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(map(shown, names)))
    rest = len(distinct) - MAX_NAMED
    return ", ".join(distinct[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
