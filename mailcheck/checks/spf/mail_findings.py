"""What to do about the SPF result of a mail."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.findings import Finding, RecordToPublish, Severity, undetermined, worst
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.spf.mail_verdicts import SpfOfIdentity, SpfOfMail
from mailcheck.checks.spf.parse import VERSION, is_spf_record
from mailcheck.checks.spf.proposal import propose_new_record, propose_record
from mailcheck.checks.spf.verdicts import SpfVerdict
from mailcheck.core.network_addresses import IpAddress

_ALLOW = (
    "If {ip} is a host of yours or of a service that sends for you, let it send: publish this"
    " record. If not, somebody else sent the mail."
)

_MEANINGS = {
    AuthResult.FAIL: (
        "The SPF record of {domain} says that {ip} may not send for it; receivers may refuse such"
        " mail."
    ),
    AuthResult.SOFTFAIL: (
        "The SPF record of {domain} says that {ip} probably may not send for it; receivers treat"
        " such mail with suspicion."
    ),
    AuthResult.NEUTRAL: (
        "The SPF record of {domain} says neither that {ip} may send for it nor that it may not, so"
        " it does not help the mail."
    ),
    AuthResult.NONE: (
        "{domain} has no SPF record, so receivers can't tell whether {ip} may send for it."
    ),
    AuthResult.PERMERROR: (
        "Receivers can't use the SPF record of {domain}, and many count that as a fail."
    ),
}


def describe_spf_of_mail(
    verdict: SpfOfMail, domain_verdict: SpfVerdict | None = None
) -> Finding | None:
    """Say what the MAIL FROM result means and what to publish; nothing for ``pass``.

    :param domain_verdict: what is known of the records of that domain: it mends what is
        wrong with them at the same time.
    """
    identity = verdict.mail_from
    if domain_verdict is not None and domain_verdict.domain != identity.domain:
        domain_verdict = None
    if identity.result is AuthResult.PASS:
        return None
    if identity.result is AuthResult.TEMPERROR:
        return undetermined("spf", identity.silent_names or (identity.domain,))
    name = read_mail_domain(identity.domain)
    if name is None or "." not in name:
        return _without_name(verdict)
    if identity.result is AuthResult.PERMERROR:
        return _broken(verdict, domain_verdict)
    meaning = _MEANINGS[identity.result].format(domain=identity.domain, ip=verdict.client_ip)
    value = propose_for_address(identity, verdict.client_ip, domain_verdict)
    return Finding(
        f"spf.result-{identity.result.value}",
        Severity.WARNING if identity.result is AuthResult.NEUTRAL else Severity.ERROR,
        f"{meaning} {identity.explanation}",
        _ALLOW.format(ip=verdict.client_ip),
        RecordToPublish(identity.domain, "TXT", value),
    )


def describe_spf_of_helo(verdict: SpfOfMail) -> Finding | None:
    """Say that the domain of the HELO name does not let the client use it; it costs nothing."""
    identity = verdict.helo
    is_refused = identity.result in (AuthResult.FAIL, AuthResult.SOFTFAIL, AuthResult.PERMERROR)
    if not is_refused or verdict.is_by_helo:
        return None
    record = None
    if identity.result is not AuthResult.PERMERROR:
        value = propose_for_address(identity, verdict.client_ip)
        record = RecordToPublish(identity.domain, "TXT", value)
    return Finding(
        f"spf.helo-{identity.result.value}",
        Severity.NOTE,
        f"SPF of the HELO name {identity.domain} says {identity.result.value}; a few receivers look"
        f" at it. {identity.explanation}",
        "Publish an SPF record for the HELO name that lets the server send, or greet with another"
        " name.",
        record,
    )


def propose_for_address(
    identity: SpfOfIdentity, address: IpAddress, domain_verdict: SpfVerdict | None = None
) -> str:
    """Write the record that lets an address send, without changing who else may.

    The address goes before ``all`` or the redirect; to the front where another term keeps it
    out.
    """
    known = domain_verdict.records if domain_verdict is not None else ()
    texts = known or ((identity.record,) if identity.record is not None else ())
    tree = domain_verdict.tree if domain_verdict is not None else None
    text = propose_record(texts, tree) if texts else propose_new_record()
    terms = text.split(" ")[1:]
    name = identity.mechanism.lstrip("+-~?").lower()
    ends = [n for n, term in enumerate(terms) if _is_end(term)]
    is_kept_out = name not in ("", "all")
    place = 0 if is_kept_out else min(ends, default=len(terms))
    terms.insert(place, f"ip{address.version}:{address}")
    return " ".join([VERSION, *terms])


def _is_end(term: str) -> bool:
    return term.lstrip("+-~?").lower() == "all" or term.lower().startswith(("redirect=", "exp="))


def _without_name(verdict: SpfOfMail) -> Finding:
    where = "HELO" if verdict.is_by_helo else "the envelope sender"
    return Finding(
        "spf.result-none",
        Severity.ERROR,
        f"{verdict.mail_from.explanation} Receivers can't tell whether the host may send the mail.",
        f"Use a full domain name in {where}, one of your own, and publish an SPF record for it.",
    )


def _broken(verdict: SpfOfMail, domain_verdict: SpfVerdict | None) -> Finding:
    """Say what is wrong with the record: with the fix of the domain's check if it found one."""
    identity = verdict.mail_from
    meaning = _MEANINGS[AuthResult.PERMERROR].format(domain=identity.domain)
    found = domain_verdict.findings if domain_verdict is not None else ()
    known = worst(one for one in found if one.severity is Severity.ERROR)
    fix = f"Mend the SPF record of {identity.domain}."
    record = None
    if known is not None:
        fix, record = known.fix, known.record
    elif identity.record is not None and is_spf_record(identity.record):
        mended = propose_record([identity.record], None)
        if mended != identity.record:
            record = RecordToPublish(identity.domain, "TXT", mended)
    return Finding(
        "spf.result-permerror", Severity.ERROR, f"{meaning} {identity.explanation}", fix, record
    )
