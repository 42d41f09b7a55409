"""Scoring a received mail. All lookups and checks run concurrently.

Afterwards its advice is verified: the mail is evaluated again with the proposed records.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import succeed
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.authentication import Authentication, judge_origin
from mailcheck.checks.deliverability.charging import total
from mailcheck.checks.deliverability.content_filter import FilterOutcome
from mailcheck.checks.deliverability.identities import Identities
from mailcheck.checks.deliverability.quality import (
    Handover,
    collect_receiver_evidence,
    judge_quality,
    was_starttls_offered,
)
from mailcheck.checks.deliverability.score import (
    DeliverabilityReport,
    DnsCharges,
    MailEvidence,
    MailScore,
    charge_other_evidence,
    score_mail,
)
from mailcheck.checks.deliverability.sender import SenderDomain, evaluate_sender
from mailcheck.checks.deliverability.trace_fields import TraceFacts, with_trace_fields
from mailcheck.checks.dkim.arc import ArcOfMail, evaluate_arc_keys, verify_chain
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureKey
from mailcheck.checks.dkim.verify import replace_keys
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dnsbl.catalogue import Blocklist, Catalogue, TargetKind
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    UnknownReason,
    target_address,
    target_domain,
    unknown_listing,
)
from mailcheck.checks.findings import PERFECT, ChargedFinding, RecordToPublish, sorted_by_cost
from mailcheck.checks.hosts.helo import HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain, registrable_domain
from mailcheck.checks.overlay import build_zone
from mailcheck.checks.proofs import CachedConclusion, Outcome, Proofs
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.receiver_replies import simulate_replies
from mailcheck.checks.quality.receivers import judge_by_receivers
from mailcheck.checks.quality.topics import topic_of
from mailcheck.checks.scoring.domain_outcome import policies_of, trees_of
from mailcheck.checks.spf.mail import HELO_IDS, SpfOfMail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.domains.domain_names import is_within
from mailcheck.core.instants import instant_of
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.deliverability.authenticate_mail import AuthenticationCache, MailEvaluator
from mailcheck.operations.deliverability.check_progress import BEGUN, ReportProgress
from mailcheck.operations.dns_evaluation import DEADLINE, MAX_ROUNDS, QuestionBudget
from mailcheck.operations.domains.check_blocklists import QueryBlocklists
from mailcheck.operations.verify_fixes import verify_fixes
from mailcheck.operations.worker_calls import read_mail_for_score
from mailcheck.ports.probes import ContentFilter
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker

MAX_NAMES = 10
"""Maximum number of domains of a mail that are looked up on blocklists. Each costs 12 questions."""


class MailBlocklists(Struct, frozen=True, eq=False):
    """Checks a mail on the lists of the address profile, and on all lists of domain names.

    The two halves are separate because the address is known before the mail has been read.
    """

    catalogue: Catalogue
    lists: QueryBlocklists

    async def query_address(self, address: IpAddress | None) -> tuple[Listing, ...]:
        """Check the sending address. Without a public address, no list is asked."""
        lists = self.catalogue.address_profile
        if address is None:
            return tuple(map(_unasked, lists))
        return tuple(await self.lists.query(lists, [target_address(address)]))

    async def query_domains(self, names: Iterable[str]) -> tuple[Listing, ...]:
        """Check domains, the most important first. Domains over the limit are left out."""
        targets = [target_domain(name) for name in list(dict.fromkeys(names))[:MAX_NAMES]]
        profile = self.catalogue.domain_profile
        lists = [blocklist for blocklist in profile if blocklist.supports(TargetKind.DOMAIN)]
        return tuple(await self.lists.query(lists, targets))


def domains_to_query(
    author_domains: Iterable[str], envelope_domain: str, link_hosts: Iterable[str]
) -> tuple[str, ...]:
    """Return the domains of a mail in A-labels, each with its registrable domain.

    Links contribute only the registrable domain. Blocklists list those, and the host of a link is
    often unique to one mail.
    """
    own = [*author_domains, envelope_domain]
    named = [name for domain in own if domain for name in (domain, registrable_domain(domain))]
    return tuple(dict.fromkeys((*named, *(registrable_domain(host) for host in link_hosts))))


def _unasked(blocklist: Blocklist) -> Listing:
    if not blocklist.is_enabled:
        return Listing(blocklist, ListingStatus.DISABLED)
    return unknown_listing(blocklist, UnknownReason.NOT_PUBLIC)


if TYPE_CHECKING:
    from mailcheck.checks.deliverability.reading import MailReading

Result = TypeVar("Result")

FilterOutcomes = tuple[FilterOutcome, FilterOutcome | None]
"""The outcomes of SpamAssassin and of rspamd; `None` without an rspamd."""

Senders = tuple[SenderDomain | None, SenderDomain | None]
"""The mail domains of the envelope sender and of the author; `None` without a domain."""

PATIENCE = 100.0
"""Seconds for work on a mail's bytes, including the wait for other mails. It is less than the
deadline of an analysis, so a mail whose signatures had no turn still gets a report."""

RECIPIENT = "test"
"""Local part of the recipient in the added trace fields. It is constant so that equal mails are
filtered equally."""

_BY_YOUR_SERVER = (
    "send the test through the server that sends your real mail: that server signs the mail, and"
    " receivers judge its address"
)


class ScoringSettings(Struct, frozen=True):
    """Settings of an analysis.

    ``host_name`` is the name of this server in its greeting. ``offers_tls`` returns whether a
    session could have been encrypted, for mails without a stored transcript.
    """

    host_name: str
    allow_private: bool
    offers_tls: Callable[[Session], bool]


class ScoreMail(Struct, frozen=True, eq=False):
    """Scores mails, for the daemon and for the command line.

    :param rspamd: a second content filter; `None` without one.
    :param worker: where mails are parsed and signatures are verified.
    :param known: cache of authentication results, shared with all other views of a mail.
    :param tell: called for each step of the work that has ended.
    """

    resolver: Resolver
    blocklists: MailBlocklists
    content_filter: ContentFilter
    rspamd: ContentFilter | None
    worker: Worker
    known: AuthenticationCache
    settings: ScoringSettings
    tell: ReportProgress
    clock: IReactorTime

    async def score(
        self, mail: ReceivedMail, records: Sequence[RecordToPublish] = ()
    ) -> DeliverabilityReport:
        """Score a mail. The report contains what could not be determined; failures are bugs.

        :param records: proposed records, which replace those in DNS for this run.
        """
        evaluator = self._inquire(mail, records)
        self.tell(mail.delivery_id, BEGUN)
        host, content = await run_all(self._judge_host(evaluator), self._judge_content(evaluator))
        reverse_dns, helo, (outcome, rspamd), of_address = host
        reading, authentication, arc, (envelope, author), of_names = content
        if not records:
            authentication = self._settle(evaluator, authentication)
        offered = was_starttls_offered(mail.transcript)
        if offered is None:
            offered = self.settings.offers_tls(mail.session)
        handover = Handover(mail, offered)
        evidence = MailEvidence(
            authentication=authentication,
            spf_record=await _look_at_record(evaluator, authentication.spf),
            reverse_dns=reverse_dns,
            helo=helo,
            arc=arc,
            listings=(*of_address, *of_names),
            content_filter=outcome,
            rspamd=rspamd,
            quality=judge_quality(reading.facts, handover, authentication.dkim),
            envelope=envelope,
            author=author,
            dkim2=reading.dkim2,
            logo_selector=reading.logo_selector,
        )
        evidence = replace(evidence, is_own_host=_is_own_host(evidence))
        score = score_mail(evidence)
        of_receivers = collect_receiver_evidence(reading.facts, evidence, handover)
        proving = verify_fixes_of_mail(evaluator, reading.identities, evidence, score)
        return DeliverabilityReport(
            mail=mail,
            facts=reading.facts,
            evidence=evidence,
            score=score,
            checklists=judge_by_receivers(of_receivers),
            replies=simulate_replies(of_receivers),
            notes=tuple(self._notes(evaluator, reading, score)),
            records=tuple(records),
            proofs=await self._part(evaluator, "fixes", proving),
        )

    def _inquire(self, mail: ReceivedMail, records: Sequence[RecordToPublish]) -> MailEvaluator:
        session, settings, now = mail.session, self.settings, self.clock.seconds()
        allow_private = settings.allow_private
        return MailEvaluator(
            mail,
            judge_origin(session.client_ip, session.helo_name, allow_private=allow_private),
            settings.host_name,
            self.resolver,
            self.worker,
            clock=self.clock,
            budget=QuestionBudget(now + DEADLINE, rounds_left=2 * MAX_ROUNDS),
            ends_at=now + PATIENCE,
            zone=build_zone(records),
        )

    async def _part(self, evaluator: MailEvaluator, part: str, work: Awaitable[Result]) -> Result:
        """Await a step of the work and report that it has ended."""
        result = await work
        self.tell(evaluator.mail.delivery_id, part)
        return result

    async def _judge_host(
        self, evaluator: MailEvaluator
    ) -> tuple[ReverseDnsVerdict | None, HeloVerdict | None, FilterOutcomes, Sequence[Listing]]:
        """Check the names and listings of the host, and run the content filters."""
        (reverse_dns, outcomes), helo, listings = await run_all(
            self._judge_name_and_content(evaluator),
            _judge_helo(evaluator),
            self._part(
                evaluator,
                "address-lists",
                self.blocklists.query_address(evaluator.origin.judged_address),
            ),
        )
        return reverse_dns, helo, outcomes, listings

    async def _judge_name_and_content(
        self, evaluator: MailEvaluator
    ) -> tuple[ReverseDnsVerdict | None, FilterOutcomes]:
        """Find the host's name, and pass it to the content filters as a receiver would."""
        found, address = None, evaluator.origin.judged_address
        if address is not None:
            found = await evaluator.evaluate(evaluator.verdicts.reverse_dns, address)
        self.tell(evaluator.mail.delivery_id, "host")
        names = found.validated_names if found is not None else ()
        filtered = with_trace_fields(evaluator.mail.raw_message, _trace_facts(evaluator, names))
        return found, await self._part(evaluator, "filter", self._filter(filtered))

    async def _filter(self, filtered: bytes) -> FilterOutcomes:
        async def judge(content_filter: ContentFilter | None) -> FilterOutcome | None:
            return None if content_filter is None else await content_filter.judge(filtered)

        outcome, rspamd = await run_all(judge(self.content_filter), judge(self.rspamd))
        return outcome, rspamd

    async def _judge_content(
        self, evaluator: MailEvaluator
    ) -> tuple["MailReading", Authentication, ArcOfMail, Senders, Sequence[Listing]]:
        """Parse the mail, then verify signatures and query DNS and blocklists concurrently."""
        mail = evaluator.mail
        reading = await evaluator.run(partial(read_mail_for_score, mail.raw_message))
        self.tell(mail.delivery_id, "mail")
        facts = reading.facts
        names = domains_to_query(facts.author_domains, evaluator.sender_domain, facts.link_hosts)
        authentication, arc, senders, listings = await run_all(
            self._part(
                evaluator, "authentication", evaluator.authenticate(succeed(reading.identities))
            ),
            _verify_chain(evaluator, reading),
            self._ask_about_senders(evaluator, facts),
            self._part(evaluator, "name-lists", self.blocklists.query_domains(names)),
        )
        return reading, authentication, arc, senders, listings

    async def _ask_about_senders(self, evaluator: MailEvaluator, facts: MailFacts) -> Senders:
        """Find where bounces and replies go. Replies need exactly one author domain."""
        authors = facts.author_domains
        author = next(iter(authors)) if len(authors) == 1 else ""
        envelope, of_author = await run_all(
            self._ask_about_sender(evaluator, evaluator.sender_domain),
            self._ask_about_sender(evaluator, author),
        )
        return envelope, of_author

    async def _ask_about_sender(self, evaluator: MailEvaluator, domain: str) -> SenderDomain | None:
        allow_private = self.settings.allow_private
        if not domain:
            return None
        return await evaluator.evaluate(
            partial(evaluate_sender, domain, allow_private=allow_private)
        )

    def _settle(self, evaluator: MailEvaluator, found: Authentication) -> Authentication:
        """Store the results in the cache of the delivery, and return the combined results."""
        delivery_id = evaluator.mail.delivery_id
        if delivery_id is None:
            return found
        now = instant_of(self.clock.seconds())
        return self.known.take(delivery_id, found, now, is_settled=evaluator.is_settled)

    def _notes(
        self, evaluator: MailEvaluator, reading: "MailReading", score: MailScore
    ) -> list[str]:
        note = evaluator.origin.note_for_report
        notes = [note, _BY_YOUR_SERVER] if note else []
        if score.undetermined:
            names = ", ".join(topic_of(summary.area.value).title for summary in score.undetermined)
            notes.append(f"could not be determined, so no points were deducted for it: {names}")
        if self.settings.host_name.lower() in reading.claimed_by:
            notes.append(
                f"the mail arrived with an Authentication-Results field in the name of"
                f" {self.settings.host_name}, which this server did not add; it was ignored"
            )
        return notes


def _is_own_host(evidence: MailEvidence) -> bool:
    """Return whether the client belongs to the sender's domain, by its names or the MX."""
    found = evidence.authentication
    address, sender = found.origin.judged_address, found.spf.mail_from.domain
    names = list(evidence.reverse_dns.validated_names) if evidence.reverse_dns is not None else []
    if evidence.helo is not None and evidence.helo.resolves_to_client:
        names.append(read_mail_domain(evidence.helo.helo_name) or "")
    mx = evidence.author.mx if evidence.author is not None else None
    hosts = mx.hosts if mx is not None and mx.domain == sender else ()
    is_named = any(name and is_within(name, registrable_domain(sender)) for name in names)
    return is_named or any(address in host.addresses for host in hosts)


async def _judge_helo(evaluator: MailEvaluator) -> HeloVerdict | None:
    address = evaluator.origin.judged_address
    if address is None:
        return None
    return await evaluator.evaluate(evaluator.verdicts.helo, address)


async def _look_at_record(evaluator: MailEvaluator, spf: SpfOfMail) -> SpfVerdict | None:
    """Evaluate the whole SPF record of a domain: its errors, and how much a pass is worth."""
    domain = spf.mail_from.domain
    name = read_mail_domain(domain) or ""
    if spf.mail_from.result is AuthResult.TEMPERROR or is_local_name(name):
        return None
    return await evaluator.evaluate(evaluator.verdicts.spf_record, domain)


async def _verify_chain(evaluator: MailEvaluator, reading: "MailReading") -> ArcOfMail:
    """Verify the ARC seals of forwarding hosts."""
    chain, mail = reading.chain, evaluator.mail
    if not chain.sets:
        return verify_chain(mail.raw_message, chain, {}, mail.received_at)
    keys = await evaluator.evaluate(partial(evaluate_arc_keys, chain))
    return await evaluator.run(
        partial(verify_chain, mail.raw_message, chain, keys, mail.received_at)
    )


def _trace_facts(evaluator: MailEvaluator, names: tuple[str, ...]) -> TraceFacts:
    mail, session = evaluator.mail, evaluator.mail.session
    protocol = "ESMTP" if session.is_extended else "SMTP"
    return TraceFacts(
        envelope_sender=mail.envelope_sender,
        recipient=f"{RECIPIENT}@{evaluator.host_name}",
        helo_name=session.helo_name,
        client_ip=session.client_ip,
        client_name=names[0] if names else "",
        receiving_host=evaluator.host_name,
        protocol=f"{protocol}S" if session.tls is not None else protocol,
        mail_id=RECIPIENT,
        received_at=mail.received_at,
    )


async def verify_fixes_of_mail(
    evaluator: MailEvaluator, identities: Identities, evidence: MailEvidence, score: MailScore
) -> Proofs:
    """Try every record that the findings propose. Blocklists and the content filter are fixed."""
    rest, dns = charge_other_evidence(evidence), DnsCharges(is_own_host=evidence.is_own_host)
    exchange_keys = CachedConclusion(partial(replace_keys, evidence.authentication.dkim))
    find_record = evaluator.verdicts.spf_record
    # A record for the HELO name must keep the other hosts of that name, too.
    greeted = _domain_of_helo_record(score.charged)
    of_helo = await evaluator.evaluate(find_record, greeted) if greeted else None

    def judge(answers: Answers) -> Outcome:
        changed = _judge_again(evaluator, identities, evidence, answers, exchange_keys)
        record = find_record(answers, greeted) if greeted else None
        return _outcome_of(changed, record, (*dns.charge(changed), *rest))

    return await verify_fixes(_outcome_of(evidence, of_helo, score.charged), judge, evaluator.dns)


def _domain_of_helo_record(charged: Iterable[ChargedFinding]) -> str:
    """Return the domain for which a SPF record of the HELO name is proposed, or an empty string."""
    found = (finding.finding for finding in charged if finding.finding.id in HELO_IDS)
    return next((finding.proposed.name for finding in found if finding.proposed is not None), "")


def _outcome_of(
    evidence: MailEvidence, of_helo: SpfVerdict | None, charged: tuple[ChargedFinding, ...]
) -> Outcome:
    """Return the outcome. Its score may be negative, so that each record's gain is visible."""
    findings = tuple(finding.finding for finding in sorted_by_cost(charged))
    dmarc = evidence.authentication.dmarc
    policies = policies_of(evidence.spf_record, dmarc.verdict)
    can_authenticate = bool(dmarc.is_spf_aligned or dmarc.is_dkim_aligned)
    named = () if evidence.spf_record is None else evidence.spf_record.named
    return Outcome(
        findings,
        PERFECT - total(charged),
        policies,
        can_authenticate,
        named,
        spf=trees_of(evidence.spf_record, of_helo),
        passing=evidence.authentication.passing,
    )


def _judge_again(
    evaluator: MailEvaluator,
    identities: Identities,
    evidence: MailEvidence,
    answers: Answers,
    exchange_keys: CachedConclusion[DkimOfMail, tuple[SignatureKey, ...]],
) -> MailEvidence:
    """Repeat the DNS evaluations of host, author and keys without reading the mail again."""
    found, address, verdicts = (
        evidence.authentication,
        evaluator.origin.judged_address,
        evaluator.verdicts,
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
