"""What to do about the DMARC result of a mail."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dmarc.evaluate import _say_absent, change_tags
from mailcheck.checks.dmarc.mail import DmarcOfMail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dmarc.tree_walk import PREFIX
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import ELSEWHERE, Finding, RecordToPublish, Severity, worst
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain
from mailcheck.checks.spf.mail import SpfOfMail
from mailcheck.core.domain_names import is_within

_AGAIN = (
    "Check the test again in a minute; if it stays, the name servers of that domain or"
    " the resolver of this service don't answer."
)

_REQUESTS = {
    Policy.NONE: "asks for nothing to be done about it (none)",
    Policy.QUARANTINE: "asks receivers to put such mail aside (quarantine)",
    Policy.REJECT: "asks receivers to refuse such mail (reject)",
}


def describe_dmarc_of_mail(
    dmarc: DmarcOfMail, spf: SpfOfMail | None, dkim: DkimOfMail | None
) -> Finding | None:
    """Say what the result means and what to do; nothing for ``pass``."""
    if dmarc.result is AuthResult.PASS:
        return None
    if dmarc.result is AuthResult.PERMERROR:
        return Finding(
            "dmarc.no-author",
            Severity.ERROR,
            f"DMARC can't be applied. {dmarc.explanation}",
            "Send with exactly one From field that names one address of your domain.",
        )
    if dmarc.result is AuthResult.TEMPERROR:
        return Finding(
            "dmarc.undetermined",
            Severity.UNDETERMINED,
            f"DMARC could not be determined. {dmarc.explanation}",
            _AGAIN if _is_dns_silent(dmarc, spf, dkim) else ELSEWHERE,
        )
    return _without_record(dmarc) if dmarc.result is AuthResult.NONE else _failing(dmarc, spf, dkim)


def _is_dns_silent(dmarc: DmarcOfMail, spf: SpfOfMail | None, dkim: DkimOfMail | None) -> bool:
    """Tell whether an answer is missing; else the sending host is one that can't be judged."""
    is_dkim_open = dkim is not None and not dkim.is_determined
    return bool(dmarc.silent_names or is_dkim_open or (spf and spf.mail_from.silent_names))


def _without_record(dmarc: DmarcOfMail) -> Finding:
    """Say why no record applies, as the check of the domain does."""
    author = dmarc.author_domain or ""
    if is_local_name(author):
        return Finding(
            "dmarc.no-record",
            Severity.ERROR,
            f"The From address is at {author}, a name that only your network knows, so no receiver"
            " can check the author; many refuse such mail.",
            "Send from an address of a domain of your own.",
        )
    known = worst(dmarc.verdict.findings) if dmarc.verdict is not None else None
    if known is None:
        known = _say_absent(dmarc.organizational_domain or dmarc.author_domain or "")
    return Finding("dmarc.no-record", Severity.ERROR, known.meaning, known.fix, known.proposed)


def _failing(dmarc: DmarcOfMail, spf: SpfOfMail | None, dkim: DkimOfMail | None) -> Finding:
    policy = dmarc.policy or Policy.NONE
    finding_id = "dmarc.fails-none" if policy is Policy.NONE else "dmarc.fails-enforced"
    fixes, record = _fix_alignment(dmarc, spf, dkim)
    return Finding(
        finding_id,
        Severity.ERROR,
        f"DMARC fails, and {dmarc.author_domain} {_REQUESTS[policy]}: {dmarc.explanation}",
        fixes,
        record,
    )


def _fix_alignment(
    dmarc: DmarcOfMail, spf: SpfOfMail | None, dkim: DkimOfMail | None
) -> tuple[str, RecordToPublish | None]:
    """Say which of envelope, signature and record to change; best the signature."""
    author = dmarc.author_domain
    signers = [one.header.signing_domain for one in dkim.passing] if dkim is not None else []
    sender = spf.mail_from.domain if spf is not None and spf.has_pass else None
    loose = {"adkim": "r"} if any(_is_related(dmarc, name) for name in signers) else {}
    if sender is not None and _is_related(dmarc, sender):
        loose["aspf"] = "r"
    record = _loosen(dmarc, loose)
    if record is not None:
        tags = " and ".join(f"{tag}=s" for tag in loose)
        fix = (
            f"Take {tags} out of the DMARC record, so that other names of"
            f" {dmarc.organizational_domain} count, or sign with d={author}."
        )
        return fix, record
    ways = []
    if signers:
        ways.append(f"have the mail signed with a key of {author} (d={author}) too")
    else:
        ways.append(f"sign the mail with a DKIM key of {author} (d={author})")
    if sender is not None:
        ways.append(f"use an envelope sender (bounce address) at {author} or a subdomain of it")
    else:
        ways.append(f"make SPF pass for an envelope sender at {author}")
    words = ", or ".join(ways)
    return f"{words[:1].upper()}{words[1:]}.", None


def _is_related(dmarc: DmarcOfMail, domain: str) -> bool:
    """Tell whether a domain that does not align would in relaxed mode."""
    name, home = read_mail_domain(domain), dmarc.organizational_domain
    return name is not None and home is not None and is_within(name, home)


def _loosen(dmarc: DmarcOfMail, tags: dict[str, str]) -> RecordToPublish | None:
    verdict = dmarc.verdict
    if not tags or verdict is None or verdict.record is None:
        return None
    if verdict.presence is not Presence.FOUND or verdict.found_at is None:
        return None
    strict = {"adkim": verdict.record.has_strict_dkim, "aspf": verdict.record.has_strict_spf}
    if not any(strict[tag] for tag in tags):
        return None
    text = change_tags(verdict.record.text, **dict.fromkeys(tags))
    return RecordToPublish(PREFIX + verdict.found_at, "TXT", text)
