"""Proving the advice of a report: the mail judged once more, with records that are proposed."""

from functools import partial

from msgspec.structs import replace

from mailcheck.checks.deliverability.charging import total
from mailcheck.checks.deliverability.identities import Identities
from mailcheck.checks.deliverability.score import DnsCharges, MailEvidence, MailScore, charge_rest
from mailcheck.checks.dkim.mail import DkimOfMail, KeyOfSignature
from mailcheck.checks.dkim.verify import with_keys
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import PERFECT, ChargedFinding, in_order
from mailcheck.checks.proofs import Outcome, Proofs, Same
from mailcheck.checks.scoring.outcome import policies_of
from mailcheck.operations.deliverability.authenticate_mail import MailInquiry
from mailcheck.operations.prove_fixes import prove_fixes


async def prove_fixes_of_mail(
    inquiry: MailInquiry, identities: Identities, evidence: MailEvidence, score: MailScore
) -> Proofs:
    """Try every record that the findings propose; what lists and the filter say stays as it is."""
    rest, dns = charge_rest(evidence), DnsCharges(is_own_host=evidence.is_own_host)
    exchange_keys = Same(partial(with_keys, evidence.authentication.dkim))

    def judge(answers: Answers) -> Outcome:
        changed = _judge_again(inquiry, identities, evidence, answers, exchange_keys)
        return _outcome_of(changed, (*dns.of(changed), *rest))

    return await prove_fixes(_outcome_of(evidence, score.charged), judge, inquiry.dns)


def _outcome_of(evidence: MailEvidence, charged: tuple[ChargedFinding, ...]) -> Outcome:
    """Count below 0 too: what a record brings is seen where much else is wrong."""
    findings = tuple(one.finding for one in in_order(charged))
    dmarc = evidence.authentication.dmarc
    policies = policies_of(evidence.spf_record, dmarc.verdict)
    is_vouched_for = bool(dmarc.is_spf_aligned or dmarc.is_dkim_aligned)
    return Outcome(findings, PERFECT - total(charged), policies, is_vouched_for)


def _judge_again(
    inquiry: MailInquiry,
    identities: Identities,
    evidence: MailEvidence,
    answers: Answers,
    exchange_keys: Same[DkimOfMail, tuple[KeyOfSignature, ...]],
) -> MailEvidence:
    """Judge what DNS says of host, author and keys; the mail's bytes are not read again."""
    found, address, verdicts = (
        evidence.authentication,
        inquiry.origin.judged_address,
        inquiry.verdicts,
    )
    spf, dmarc, record = found.spf, found.dmarc, evidence.spf_record
    reverse_dns, helo = evidence.reverse_dns, evidence.helo
    if address is not None:
        spf = verdicts.spf(answers, address)
        reverse_dns = verdicts.reverse_dns(answers, address)
        helo = verdicts.helo(answers, address)
    dkim = exchange_keys(verdicts.keys(answers, identities.signatures))
    if identities.is_read:
        dmarc = verdicts.dmarc(answers, identities, None if address is None else spf, dkim)
    if record is not None:
        record = verdicts.spf_record(answers, record.domain)
    return replace(
        evidence,
        authentication=replace(found, spf=spf, dkim=dkim, dmarc=dmarc),
        spf_record=record,
        reverse_dns=reverse_dns,
        helo=helo,
    )
