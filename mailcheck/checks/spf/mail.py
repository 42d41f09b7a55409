"""SPF results of one received mail, with an explanation and advice (RFC 7208 2)."""

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding, RecordToPublish, Severity, worst
from mailcheck.checks.findings_table import FINDINGS, make_finding, undetermined
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain
from mailcheck.checks.spf.repair import add_term, make_ip_term, propose_new_record, repair_text
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.network_addresses import IpAddress

if TYPE_CHECKING:
    from mailcheck.checks.spf.pyspf_query import MailQuery


class SpfIdentity(Enum):
    """The two identities that SPF checks (RFC 7208 2.3, 2.4)."""

    MAIL_FROM = "mailfrom"
    HELO = "helo"


class SpfOfIdentity(Struct, frozen=True):
    """The SPF result for one identity.

    ``domain`` is the domain whose record was read. ``record`` is the text of that record, or
    `None`. ``mechanism`` is the term that matched, or empty. ``explanation`` is a sentence with
    the reason for the result: the term that matched, the error, or the name without an answer.
    ``unanswered_names`` are the names for which DNS gave no usable answer.
    """

    identity: SpfIdentity
    domain: str
    result: AuthResult
    record: str | None
    mechanism: str
    explanation: str
    unanswered_names: tuple[str, ...] = ()


class SpfOfMail(Struct, frozen=True):
    """The SPF results for both identities of one mail.

    With the null reverse-path, ``mail_from`` is about ``postmaster@<helo>`` (RFC 7208 2.4).
    If the HELO name is an address literal or not a domain name, its result is ``none``.
    """

    client_ip: IpAddress
    mail_from: SpfOfIdentity
    helo: SpfOfIdentity

    @property
    def has_pass(self) -> bool:
        """Whether the MAIL FROM identity passes; DMARC uses this identity."""
        return self.mail_from.result is AuthResult.PASS

    @property
    def mail_from_uses_helo(self) -> bool:
        """Whether MAIL FROM was checked with the HELO name, as for the null reverse-path."""
        return replace(self.mail_from, identity=SpfIdentity.HELO) == self.helo


MAX_SHOWN = 80  # maximum number of characters of a quoted text


def explain_result(query: "MailQuery", result: AuthResult) -> str:
    """Return a sentence with the reason for the result: the matching term or the error."""
    if result is AuthResult.NONE:
        return f"There is no SPF record at {excerpt(query.o)}."
    if result is AuthResult.TEMPERROR:
        if query.silent is None:
            return "DNS gave no answer in time."
        name, rdtype = query.silent
        return f"DNS gave no usable answer about {excerpt(name)} ({rdtype})."
    if result is AuthResult.PERMERROR:
        assert query.fault is not None, "every permerror is raised with a fault"
        where = f"SPF record of {excerpt(query.fault.domain)}"
        if query.fault.domain != query.o:
            where = f"{where}, which the record of {excerpt(query.o)} leads to,"
        problem = query.fault.problem
        if problem is not None:
            return f'"{excerpt(problem.term)}" in the {where} {problem.reason}.'
        details = ""
        if query.void_terms and query.fault.fault.name == "VOIDS":
            terms = ", ".join(f'"{excerpt(term)}"' for term in query.void_terms)
            details = f" {query.c}: {terms}"
        return f"The {where} {query.fault.fault.value}{details}."
    if query.mechanism:
        term, domain = excerpt(query.mechanism), excerpt(query.o)
        return f'"{term}" in the SPF record of {domain} matches {query.c}.'
    return f"No term in the SPF record of {excerpt(query.o)} matches {query.c}."


def excerpt(text: str) -> str:
    """Return the start of an untrusted text, with unprintable characters replaced by ``?``."""
    cut = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    if cut.isprintable():
        return cut
    return "".join(letter if letter.isprintable() else "?" for letter in cut)


POSTMASTER = "postmaster"
"""The local part to use if there is none (RFC 7208 2.4, 4.3)."""


def evaluate_spf_of_mail(
    client_ip: IpAddress,
    helo_name: str,
    envelope_sender: str,
    receiver: str,
    answers: Answers,
) -> SpfOfMail:
    """Evaluate both identities of a mail from the known answers.

    While ``answers.missing`` is not empty, the result is provisional: send these queries, then
    evaluate again.

    :param envelope_sender: empty for the null reverse-path.
    :param receiver: the name of the host that received the mail.
    """
    from mailcheck.checks.spf.pyspf_query import MailQuery  # few processes need pyspf

    def judge(identity: SpfIdentity, local_part: str, domain: str) -> SpfOfIdentity:
        name = read_mail_domain(domain)
        if name is None or "." not in name:
            where = "HELO" if identity is SpfIdentity.HELO else "the envelope sender"
            words = (
                f'"{excerpt(domain)}" in {where} is not a full domain name, so SPF cannot check it.'
            )
            return SpfOfIdentity(
                identity, excerpt(domain), AuthResult.NONE, None, "", explanation=words
            )
        helo = read_mail_domain(helo_name) or helo_name
        query = MailQuery(client_ip, local_part, name, helo, receiver, answers)
        result = AuthResult(query.check()[0])
        has_match = result not in (AuthResult.TEMPERROR, AuthResult.PERMERROR)
        return SpfOfIdentity(
            identity=identity,
            domain=name,
            result=result,
            record=query.record,
            mechanism=(query.mechanism or "") if has_match else "",
            explanation=explain_result(query, result),
            unanswered_names=() if query.silent is None else (query.silent[0],),
        )

    helo = judge(SpfIdentity.HELO, POSTMASTER, helo_name)
    if not envelope_sender:
        return SpfOfMail(client_ip, replace(helo, identity=SpfIdentity.MAIL_FROM), helo)
    local_part, domain = _split_sender(envelope_sender)
    return SpfOfMail(client_ip, judge(SpfIdentity.MAIL_FROM, local_part, domain), helo)


def _split_sender(envelope_sender: str) -> tuple[str, str]:
    """Return local part and domain; split a text that is not an address at its last ``@``."""
    try:
        mailbox = parse_mailbox(envelope_sender)
    except ValueError:
        local_part, _, domain = envelope_sender.rpartition("@")
        return local_part or POSTMASTER, domain
    return mailbox.local_part, mailbox.domain


_IDS = {
    AuthResult.FAIL: "spf.result-fail",
    AuthResult.SOFTFAIL: "spf.result-softfail",
    AuthResult.NEUTRAL: "spf.result-neutral",
    AuthResult.NONE: "spf.result-none",
    AuthResult.PERMERROR: "spf.result-permerror",
}

_FINDINGS_OF_HELO = {
    AuthResult.FAIL: "spf.helo-fail",
    AuthResult.SOFTFAIL: "spf.helo-softfail",
    AuthResult.PERMERROR: "spf.helo-permerror",
}

HELO_IDS = tuple(_FINDINGS_OF_HELO.values())
"""Ids of the findings about the HELO identity."""


def describe_spf_of_mail(
    verdict: SpfOfMail, domain_verdict: SpfVerdict | None = None, *, is_own_host: bool = False
) -> Finding | None:
    """Return a finding for the MAIL FROM result, or `None` for ``pass``.

    A record that permits the client is proposed only for a host of the domain itself.
    Otherwise a forged mail could bring its sender into the record.

    :param domain_verdict: the SPF check of that domain; the proposed record also fixes what it
        found.
    """
    identity = verdict.mail_from
    if domain_verdict is not None and domain_verdict.domain != identity.domain:
        domain_verdict = None
    if identity.result is AuthResult.PASS:
        return None
    if identity.result is AuthResult.TEMPERROR:
        return undetermined("spf.undetermined", identity.unanswered_names or (identity.domain,))
    name = read_mail_domain(identity.domain)
    if identity.result is AuthResult.NONE and (name is None or is_local_name(name)):
        return make_finding(
            "spf.result-none",
            case="no-domain" if name is None else "local-name",
            domain=identity.domain,
            explanation=identity.explanation,
            where="HELO and the envelope sender"
            if verdict.mail_from_uses_helo
            else "the envelope sender",
        )
    if identity.result is AuthResult.PERMERROR:
        return _describe_permerror(verdict, domain_verdict, is_own_host=is_own_host)
    found = domain_verdict.findings if domain_verdict is not None else ()
    # The domain has a record, but receivers do not find it or cannot read it.
    ignored = next(
        (finding for finding in found if finding.id in ("spf.unreadable", "spf.misplaced")), None
    )
    if identity.result is AuthResult.NONE and ignored is not None:
        row = FINDINGS["spf.result-none"]
        ignored = replace(ignored, id=row.id, severity=row.severity)
        return _add_client(ignored, verdict) if is_own_host else ignored
    return make_finding(
        _IDS[identity.result],
        case="own-host" if is_own_host else "any-host",
        proposed=_record_for_address(identity, verdict.client_ip, domain_verdict)
        if is_own_host
        else None,
        ip=verdict.client_ip,
        domain=identity.domain,
        term=make_ip_term(verdict.client_ip),
        explanation=identity.explanation,
    )


def _record_for_address(
    identity: SpfOfIdentity, address: IpAddress, domain_verdict: SpfVerdict | None = None
) -> RecordToPublish | None:
    value = propose_for_address(identity, address, domain_verdict)
    return RecordToPublish(identity.domain, "TXT", value) if value else None


def describe_spf_of_helo(verdict: SpfOfMail, *, is_own_host: bool = False) -> Finding | None:
    """Return a finding if SPF does not pass for the HELO name. The finding costs no points."""
    identity = verdict.helo
    if identity.result not in _FINDINGS_OF_HELO or verdict.mail_from_uses_helo:
        return None
    record = None
    if is_own_host and identity.result is not AuthResult.PERMERROR:
        record = _record_for_address(identity, verdict.client_ip)
    return make_finding(
        _FINDINGS_OF_HELO[identity.result],
        domain=identity.domain,
        result=identity.result.value,
        explanation=identity.explanation,
        proposed=record,
    )


def propose_for_address(
    identity: SpfOfIdentity, address: IpAddress, domain_verdict: SpfVerdict | None = None
) -> str:
    """Return the record that also permits an address and permits the same senders as before.

    The address goes before ``all`` or the redirect, or to the front if another term keeps it
    out. Return an empty string if the intention of the present record is not certain.
    """
    if domain_verdict is not None and domain_verdict.records:
        text = domain_verdict.repaired
    elif identity.record is None:
        text = _first_record(domain_verdict)
    else:
        text = repair_text(identity.record)
    name = identity.mechanism.lstrip("+-~?").lower()
    put_first = name not in ("", "all")
    return add_term(text, make_ip_term(address), put_first=put_first) if text else ""


def _first_record(verdict: SpfVerdict | None) -> str:
    """Return a first record with the hosts that the check of the domain found."""
    found = () if verdict is None else verdict.findings
    absent = next((finding for finding in found if finding.id == "spf.absent"), None)
    if absent is None:
        return propose_new_record()
    return absent.proposed.value if absent.proposed is not None else propose_new_record("")


def _describe_permerror(
    verdict: SpfOfMail, domain_verdict: SpfVerdict | None, *, is_own_host: bool
) -> Finding:
    """Return a finding for a record that cannot be used, with the fix of the domain's check.

    A proposed record also permits the client if it is a host of the domain. Otherwise the
    repaired record could reject the mail.
    """
    identity = verdict.mail_from
    found = domain_verdict.findings if domain_verdict is not None else ()
    known = worst(finding for finding in found if finding.severity is Severity.ERROR) or next(
        (finding for finding in found if finding.id == "spf.voids-before-senders"), None
    )
    record: RecordToPublish | None = None
    if known is not None:
        record = known.proposed
        if (
            record is None
            and is_own_host
            and domain_verdict is not None
            and domain_verdict.repaired
        ):
            # Without the client, the record would permit no host.
            record = RecordToPublish(identity.domain, "TXT", domain_verdict.repaired)
    elif domain_verdict is None and identity.record is not None:
        repaired = repair_text(identity.record)
        if repaired not in ("", identity.record):
            record = RecordToPublish(identity.domain, "TXT", repaired)
    finding = make_finding(
        "spf.result-permerror",
        case="found" if known is None else "known",
        proposed=record,
        domain=identity.domain,
        explanation=identity.explanation,
        fix="" if known is None else known.fix,
    )
    put_first = known is not None and "voids" in known.id
    return _add_client(finding, verdict, put_first=put_first) if is_own_host else finding


def _add_client(finding: Finding, verdict: SpfOfMail, *, put_first: bool = False) -> Finding:
    """Add the client to the proposed records and to the advice.

    :param put_first: put its term first, since the check may end at a term with DNS queries.
    """
    place, address = (verdict.mail_from.domain, "TXT"), verdict.client_ip

    def permit(record: RecordToPublish) -> RecordToPublish:
        if (record.name, record.rdtype) != place:
            return record
        value = add_term(record.value, make_ip_term(address), put_first=put_first)
        return replace(record, value=value)

    changed = tuple(map(permit, finding.candidate_records))
    if not changed or changed == finding.candidate_records:
        return finding
    fix = f"{finding.fix} Also add {address}, a host of {place[0]}."
    return replace(finding, fix=fix, proposed=changed[0], alternatives=changed[1:])
