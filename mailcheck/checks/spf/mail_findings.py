"""What to do about the SPF result of a mail."""

from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.findings import Finding, RecordToPublish, Severity, undetermined, worst
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain
from mailcheck.checks.spf.evaluate import propose_new_record, propose_record
from mailcheck.checks.spf.mail import SpfOfIdentity, SpfOfMail
from mailcheck.checks.spf.record import VERSION, is_spf_record
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.network_addresses import IpAddress

_ALLOW = (
    'If {ip} is a host of yours or of a service that sends for you, let it send: put "{term}" into'
    " the SPF record of {domain}, before its end. If not, the mail was forwarded or somebody else"
    " sent it: leave the record as it is."
)

_ALLOW_OWN = (
    'Let {ip} send, a host of {domain} by its name or MX: put "{term}" into the SPF record of'
    " {domain}."
)

_IDS = {
    AuthResult.FAIL: "spf.result-fail",
    AuthResult.SOFTFAIL: "spf.result-softfail",
    AuthResult.NEUTRAL: "spf.result-neutral",
    AuthResult.NONE: "spf.result-none",
    AuthResult.PERMERROR: "spf.result-permerror",
}

_HELO_IDS = {
    AuthResult.FAIL: "spf.helo-fail",
    AuthResult.SOFTFAIL: "spf.helo-softfail",
    AuthResult.PERMERROR: "spf.helo-permerror",
}

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
    verdict: SpfOfMail, domain_verdict: SpfVerdict | None = None, *, is_own_host: bool = False
) -> Finding | None:
    """Say what the MAIL FROM result means and what to publish; nothing for ``pass``.

    A record that lets the client send is proposed only for a host that the domain itself
    vouches for: a forged mail must not bring its sender into the record.

    :param domain_verdict: what is known of the records of that domain: it mends what is
        wrong with them at the same time.
    """
    identity = verdict.mail_from
    if domain_verdict is not None and domain_verdict.domain != identity.domain:
        domain_verdict = None
    if identity.result is AuthResult.PASS:
        return None
    if identity.result is AuthResult.TEMPERROR:
        return undetermined("spf.undetermined", identity.silent_names or (identity.domain,))
    name = read_mail_domain(identity.domain)
    if identity.result is AuthResult.NONE and (name is None or is_local_name(name)):
        return _without_name(verdict)
    if identity.result is AuthResult.PERMERROR:
        return _broken(verdict, domain_verdict, is_own_host=is_own_host)
    ignored = _find_ignored(domain_verdict) if identity.result is AuthResult.NONE else None
    if ignored is not None:
        ignored = replace(ignored, id="spf.result-none")
        return _let_client_in(ignored, verdict) if is_own_host else ignored
    meaning = _MEANINGS[identity.result].format(domain=identity.domain, ip=verdict.client_ip)
    if identity.result is not AuthResult.NONE:
        meaning = f"{meaning} {identity.explanation}"
    return Finding(
        _IDS[identity.result],
        Severity.WARNING if identity.result is AuthResult.NEUTRAL else Severity.ERROR,
        meaning,
        _allow(verdict.client_ip, identity.domain, is_own_host=is_own_host),
        _record_for_address(identity, verdict.client_ip, domain_verdict) if is_own_host else None,
    )


def _allow(address: IpAddress, domain: str, *, is_own_host: bool) -> str:
    words = _ALLOW_OWN if is_own_host else _ALLOW
    return words.format(ip=address, domain=domain, term=term_for(address))


def _record_for_address(
    identity: SpfOfIdentity, address: IpAddress, domain_verdict: SpfVerdict | None = None
) -> RecordToPublish:
    value = propose_for_address(identity, address, domain_verdict)
    return RecordToPublish(identity.domain, "TXT", value)


def describe_spf_of_helo(verdict: SpfOfMail, *, is_own_host: bool = False) -> Finding | None:
    """Say that the domain of the HELO name does not let the client use it; it costs nothing."""
    identity = verdict.helo
    if identity.result not in _HELO_IDS or verdict.is_by_helo:
        return None
    record = None
    if is_own_host and identity.result is not AuthResult.PERMERROR:
        record = _record_for_address(identity, verdict.client_ip)
    return Finding(
        _HELO_IDS[identity.result],
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
    trees = () if tree is None else (tree,)
    text = propose_record(texts, trees) if texts else propose_new_record()
    name = identity.mechanism.lstrip("+-~?").lower()
    return add_term(text, term_for(address), is_kept_out=name not in ("", "all"))


def add_term(text: str, added: str, *, is_kept_out: bool = False) -> str:
    """Add a term to a record that does not have it, before its end.

    :param is_kept_out: another term matches first: it goes to the front.
    """
    terms = text.split(" ")[1:]
    ends = [n for n, term in enumerate(terms) if _is_end(term)]
    place = 0 if is_kept_out else min(ends, default=len(terms))
    if added not in terms:
        terms.insert(place, added)
    return " ".join([VERSION, *terms])


def term_for(address: IpAddress) -> str:
    """Write the term that lets an address send."""
    return f"ip{address.version}:{address}"


def _is_end(term: str) -> bool:
    return term.lstrip("+-~?").lower() == "all" or term.lower().startswith(("redirect=", "exp="))


def _without_name(verdict: SpfOfMail) -> Finding:
    where = "HELO and the envelope sender" if verdict.is_by_helo else "the envelope sender"
    identity = verdict.mail_from
    reason = identity.explanation
    if read_mail_domain(identity.domain) is not None:
        reason = f"{identity.domain} is a name that only your network knows."
    return Finding(
        "spf.result-none",
        Severity.ERROR,
        f"{reason} Receivers can't tell whether the host may send the mail.",
        f"Use a full domain name in {where}, one of your own, and publish an SPF record for it.",
    )


def _broken(verdict: SpfOfMail, domain_verdict: SpfVerdict | None, *, is_own_host: bool) -> Finding:
    """Say what is wrong with the record: with the fix of the domain's check if it found one.

    A record that is proposed also names a client that is known as the domain's own: mended
    alone, it might keep the mail out.
    """
    identity = verdict.mail_from
    meaning = _MEANINGS[AuthResult.PERMERROR].format(domain=identity.domain)
    found = domain_verdict.findings if domain_verdict is not None else ()
    known = worst(one for one in found if one.severity is Severity.ERROR)
    fix = f"Mend the SPF record of {identity.domain}."
    record: RecordToPublish | None = None
    alternatives: tuple[RecordToPublish, ...] = ()
    if known is not None:
        fix, record, alternatives = known.fix, known.proposed, known.alternatives
    elif identity.record is not None and is_spf_record(identity.record):
        mended = propose_record([identity.record], ())
        if mended != identity.record:
            record = RecordToPublish(identity.domain, "TXT", mended)
    meaning = f"{meaning} {identity.explanation}"
    finding = Finding(
        "spf.result-permerror", Severity.ERROR, meaning, fix, record, alternatives=alternatives
    )
    return _let_client_in(finding, verdict) if is_own_host else finding


def _find_ignored(domain_verdict: SpfVerdict | None) -> Finding | None:
    """Give what the domain's check says of a record that is there, but that no receiver sees."""
    found = domain_verdict.findings if domain_verdict is not None else ()
    return next((one for one in found if one.id in ("spf.unreadable", "spf.misplaced")), None)


def _let_client_in(finding: Finding, verdict: SpfOfMail) -> Finding:
    """Put the client into the records that are proposed, and say so."""
    place, address = (verdict.mail_from.domain, "TXT"), verdict.client_ip

    def let_in(record: RecordToPublish) -> RecordToPublish:
        is_here = (record.name, record.rdtype) == place
        if not is_here:
            return record
        return replace(record, value=add_term(record.value, term_for(address)))

    changed = tuple(map(let_in, finding.records_to_try))
    if not changed or changed == finding.records_to_try:
        return finding
    fix = f"{finding.fix} Let {address} send as well, a host of {place[0]}."
    return replace(finding, fix=fix, proposed=changed[0], alternatives=changed[1:])
