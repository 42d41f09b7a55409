"""SPF of one received mail: who let the client send it (RFC 7208 2)."""

from dataclasses import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.spf.mail_explanations import explain_result, shown
from mailcheck.checks.spf.mail_verdicts import SpfIdentity, SpfOfIdentity, SpfOfMail
from mailcheck.checks.spf.pyspf_query import MailQuery
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.network_addresses import IpAddress

POSTMASTER = "postmaster"
"""The local part where there is none (RFC 7208 2.4, 4.3)."""


def evaluate_spf_of_mail(
    client_ip: IpAddress,
    helo_name: str,
    envelope_sender: str,
    receiver: str,
    answers: Answers,
) -> SpfOfMail:
    """Judge both identities of a mail, from the answers that are known.

    While ``answers.missing`` is not empty afterwards, the verdict is
    provisional: ask, and evaluate again.

    :param envelope_sender: empty for the null reverse-path.
    :param receiver: the name of the host that received the mail.
    """

    def judge(identity: SpfIdentity, local_part: str, domain: str) -> SpfOfIdentity:
        name = read_mail_domain(domain)
        if name is None or "." not in name:
            return _without_domain(identity, domain)
        helo = read_mail_domain(helo_name) or helo_name
        query = MailQuery(client_ip, local_part, name, helo, receiver, answers)
        return _run(query, identity, name)

    helo = judge(SpfIdentity.HELO, POSTMASTER, helo_name)
    if not envelope_sender:
        return SpfOfMail(client_ip, replace(helo, identity=SpfIdentity.MAIL_FROM), helo)
    local_part, domain = _split_sender(envelope_sender)
    return SpfOfMail(client_ip, judge(SpfIdentity.MAIL_FROM, local_part, domain), helo)


def _split_sender(envelope_sender: str) -> tuple[str, str]:
    """Give local part and domain; of what is no address, what stands where they would."""
    try:
        mailbox = parse_mailbox(envelope_sender)
    except ValueError:
        local_part, _, domain = envelope_sender.rpartition("@")
        return local_part or POSTMASTER, domain
    return mailbox.local_part, mailbox.domain


def _without_domain(identity: SpfIdentity, domain: str) -> SpfOfIdentity:
    where = "HELO" if identity is SpfIdentity.HELO else "the envelope sender"
    words = f'"{shown(domain)}" in {where} is no full domain name, so there is no SPF for it.'
    return SpfOfIdentity(identity, shown(domain), AuthResult.NONE, None, "", words)


def _run(query: MailQuery, identity: SpfIdentity, domain: str) -> SpfOfIdentity:
    result = AuthResult(query.check()[0])
    has_match = result not in (AuthResult.TEMPERROR, AuthResult.PERMERROR)
    return SpfOfIdentity(
        identity=identity,
        domain=domain,
        result=result,
        record=query.record,
        mechanism=(query.mechanism or "") if has_match else "",
        explanation=explain_result(query, result),
        silent_names=() if query.silent is None else (query.silent[0],),
    )
