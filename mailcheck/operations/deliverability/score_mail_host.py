"""The part of an analysis that the envelope is enough for: who sent the mail, and from where."""

from dataclasses import dataclass

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.content_filter import FilterOutcome
from mailcheck.checks.deliverability.origin import spf_of_unjudged
from mailcheck.checks.deliverability.trace_fields import TraceFacts, with_trace_fields
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.helo import HeloVerdict, evaluate_helo
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain
from mailcheck.checks.reverse_dns import ReverseDnsVerdict, evaluate_reverse_dns
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.mail import evaluate_spf_of_mail
from mailcheck.checks.spf.mail_verdicts import SpfOfMail
from mailcheck.checks.spf.verdicts import SpfVerdict
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.deliverability.score_mail_run import ScoringRun
from mailcheck.operations.domains.ask_blocklists import TimedListing
from mailcheck.operations.fan_out import run_all

RECIPIENT = "test"
"""The local part in our trace fields; the same for all, so that the same mail gets the same."""

_SETTLED = (AuthResult.PASS, AuthResult.TEMPERROR)
"""Results for which there is nothing to mend in the record."""


@dataclass(frozen=True, slots=True)
class HostOfMail:
    """What is known of the host; ``reverse_dns`` and ``helo`` are nothing for one not judged."""

    spf: SpfOfMail
    spf_record: SpfVerdict | None
    reverse_dns: ReverseDnsVerdict | None
    helo: HeloVerdict | None
    listings: tuple[TimedListing, ...]
    filter_outcome: FilterOutcome


async def judge_host_of_mail(run: ScoringRun) -> HostOfMail:
    """Judge SPF, names and listings of the host, and have the content filter judge the mail."""
    address = run.origin.judged_address
    (spf, record, helo), (reverse_dns, outcome), listings = await run_all(
        _judge_identities(run, address),
        _judge_name_and_content(run, address),
        run.blocklists.ask_about_address(address),
    )
    return HostOfMail(spf, record, reverse_dns, helo, listings, outcome)


async def _judge_identities(
    run: ScoringRun, address: IpAddress | None
) -> tuple[SpfOfMail, SpfVerdict | None, HeloVerdict | None]:
    """Judge envelope sender and HELO name; a record that did not do, from end to end."""
    if address is None:
        return spf_of_unjudged(run.origin, run.sender_domain), None, None
    helo_name, sender = run.origin.helo_name, run.mail.envelope_sender

    def evaluate(answers: Answers) -> tuple[SpfOfMail, SpfVerdict | None, HeloVerdict]:
        spf = evaluate_spf_of_mail(address, helo_name, sender, run.host_name, answers)
        helo = evaluate_helo(helo_name, address, answers)
        identity = spf.mail_from
        name = read_mail_domain(identity.domain) or ""
        if answers.missing or identity.result in _SETTLED or is_local_name(name):
            return spf, None, helo
        return spf, evaluate_spf(identity.domain, answers), helo

    return await run.ask(evaluate)


async def _judge_name_and_content(
    run: ScoringRun, address: IpAddress | None
) -> tuple[ReverseDnsVerdict | None, FilterOutcome]:
    """Find the host's name, and pass the mail on with it, as a receiver would."""
    found = None
    if address is not None:
        # To be proposed as the name of the address, where it can be one.
        host_name = read_mail_domain(run.origin.helo_name) or ""
        host_name = "" if is_local_name(host_name) else host_name
        found = await run.ask(
            lambda answers: evaluate_reverse_dns(address, answers, host_name=host_name)
        )
    names = found.validated_names if found is not None else ()
    filtered = with_trace_fields(run.mail.raw_message, _trace_facts(run, names))
    return found, await run.content_filter.judge(filtered)


def _trace_facts(run: ScoringRun, names: tuple[str, ...]) -> TraceFacts:
    session = run.mail.session
    protocol = "ESMTP" if session.is_extended else "SMTP"
    return TraceFacts(
        envelope_sender=run.mail.envelope_sender,
        recipient=f"{RECIPIENT}@{run.host_name}",
        helo_name=session.helo_name,
        client_ip=session.client_ip,
        client_name=names[0] if names else "",
        receiving_host=run.host_name,
        protocol=f"{protocol}S" if session.tls is not None else protocol,
        mail_id=RECIPIENT,
        received_at=run.mail.received_at,
    )
