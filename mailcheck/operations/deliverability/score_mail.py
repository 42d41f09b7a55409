"""From a received mail to its report: everything that can be asked is asked at once.

Then its advice is proven: the mail is judged once more, with records that are proposed.
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
    judge_quality,
    judge_receivers,
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
from mailcheck.checks.quality.topics import topic_of
from mailcheck.checks.scoring.domain_outcome import policies_of
from mailcheck.checks.spf.mail import SpfOfMail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.domain_names import is_within
from mailcheck.core.instants import instant_of
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.deliverability.authenticate_mail import AuthenticationCache, MailEvaluator
from mailcheck.operations.deliverability.check_progress import BEGUN, ReportProgress
from mailcheck.operations.dns_evaluation import DEADLINE, MAX_ROUNDS, QuestionBudget
from mailcheck.operations.domains.check_blocklists import QueryBlocklists
from mailcheck.operations.lazy_functions import read_mail_for_score
from mailcheck.operations.verify_fixes import verify_fixes
from mailcheck.ports.probes import ContentFilter
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker

MAX_NAMES = 10
"""Domains of one mail that lists are asked about: each costs twelve questions."""


class MailBlocklists:
    """Asks about a mail: one row for each list of the address profile, and each that knows names.

    The two halves are asked apart, since the address is known before the mail
    has been read.
    """

    def __init__(self, catalogue: Catalogue, lists: QueryBlocklists) -> None:
        self._lists = lists
        self._address_lists = catalogue.address_profile
        self._name_lists = tuple(
            one for one in catalogue.domain_profile if one.supports(TargetKind.DOMAIN)
        )

    async def query_address(self, address: IpAddress | None) -> tuple[Listing, ...]:
        """Ask about the sending address; without one, which no list can know, nobody is asked."""
        if address is None:
            return tuple(_unasked(one) for one in self._address_lists)
        return tuple(await self._lists.query(self._address_lists, [target_address(address)]))

    async def query_domains(self, names: Iterable[str]) -> tuple[Listing, ...]:
        """Ask about domains, the most important first; those beyond the limit are left out."""
        targets = [target_domain(name) for name in list(dict.fromkeys(names))[:MAX_NAMES]]
        return tuple(await self._lists.query(self._name_lists, targets))


def domains_to_query(
    author_domains: Iterable[str], envelope_domain: str, link_hosts: Iterable[str]
) -> tuple[str, ...]:
    """Give the domains of a mail, each with the one that was registered; A-labels all of them.

    Of links only the registered domain: lists hold those, and a link's host
    is often made for one mail.
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

Senders = tuple[SenderDomain | None, SenderDomain | None]
"""Where mail to the envelope sender and to the author goes; `None` without a domain."""

PATIENCE = 100.0
"""Seconds for work on a mail's bytes, behind that on others': less than an analysis may take, so
that one whose signatures had no turn still has a report."""

RECIPIENT = "test"
"""The local part in our trace fields; the same for all, so that the same mail gets the same."""

_BY_YOUR_SERVER = (
    "send the test through the server that sends your real mail: it is that server which signs the"
    " mail, and whose address receivers judge"
)


class ScoringSettings(Struct, frozen=True):
    """What an analysis depends on besides the mail.

    ``host_name`` is ours, as in the greeting. ``offers_tls`` tells whether a
    session could have been encrypted, where its conversation was not kept.
    """

    host_name: str
    allow_private: bool
    offers_tls: Callable[[Session], bool]


class ScoreMail:
    """Scores mails: for the daemon and for the command line alike.

    :param worker: where mails are read and signatures verified.
    :param known: what is known of deliveries, by whoever asked before.
    :param tell: is told of each part of the work that has ended.
    """

    def __init__(
        self,
        resolver: Resolver,
        blocklists: MailBlocklists,
        content_filter: ContentFilter,
        worker: Worker,
        known: AuthenticationCache,
        settings: ScoringSettings,
        tell: ReportProgress,
        clock: IReactorTime,
    ) -> None:
        self._resolver = resolver
        self._blocklists = blocklists
        self._content_filter = content_filter
        self._worker = worker
        self._known = known
        self._settings = settings
        self._tell = tell
        self._clock = clock

    async def score(
        self, mail: ReceivedMail, records: Sequence[RecordToPublish] = ()
    ) -> DeliverabilityReport:
        """Judge a mail. What could not be determined stands in the report; a crash is ours.

        :param records: proposed ones, which for this run take the place of those in DNS.
        """
        evaluator = self._inquire(mail, records)
        self._tell(mail.delivery_id, BEGUN)
        host, content = await run_all(self._judge_host(evaluator), self._judge_content(evaluator))
        reverse_dns, helo, outcome, of_address = host
        reading, authentication, arc, (envelope, author), of_names = content
        if not records:
            authentication = self._settle(evaluator, authentication)
        offered = was_starttls_offered(mail.transcript)
        if offered is None:
            offered = self._settings.offers_tls(mail.session)
        handover = Handover(mail, offered)
        evidence = MailEvidence(
            authentication=authentication,
            spf_record=await _look_at_record(evaluator, authentication.spf),
            reverse_dns=reverse_dns,
            helo=helo,
            arc=arc,
            listings=(*of_address, *of_names),
            content_filter=outcome,
            quality=judge_quality(reading.facts, handover, authentication.dkim),
            envelope=envelope,
            author=author,
        )
        evidence = replace(evidence, is_own_host=_is_own_host(evidence))
        score = score_mail(evidence)
        proving = verify_fixes_of_mail(evaluator, reading.identities, evidence, score)
        return DeliverabilityReport(
            mail=mail,
            facts=reading.facts,
            evidence=evidence,
            score=score,
            checklists=judge_receivers(reading.facts, evidence, handover),
            notes=tuple(self._notes(evaluator, reading, score)),
            records=tuple(records),
            proofs=await self._part(evaluator, "fixes", proving),
        )

    def _inquire(self, mail: ReceivedMail, records: Sequence[RecordToPublish]) -> MailEvaluator:
        session, settings, now = mail.session, self._settings, self._clock.seconds()
        allow_private = settings.allow_private
        return MailEvaluator(
            mail,
            judge_origin(session.client_ip, session.helo_name, allow_private=allow_private),
            settings.host_name,
            self._resolver,
            self._worker,
            self._clock,
            QuestionBudget(now + DEADLINE, rounds_left=2 * MAX_ROUNDS),
            now + PATIENCE,
            zone=build_zone(records),
        )

    async def _part(self, evaluator: MailEvaluator, part: str, work: Awaitable[Result]) -> Result:
        """Await a part of the work, and tell that it has ended."""
        result = await work
        self._tell(evaluator.mail.delivery_id, part)
        return result

    async def _judge_host(
        self, evaluator: MailEvaluator
    ) -> tuple[ReverseDnsVerdict | None, HeloVerdict | None, FilterOutcome, Sequence[Listing]]:
        """Judge names and listings of the host, and have the content filter judge the mail."""
        (reverse_dns, outcome), helo, listings = await run_all(
            self._judge_name_and_content(evaluator),
            _judge_helo(evaluator),
            self._part(
                evaluator,
                "address-lists",
                self._blocklists.query_address(evaluator.origin.judged_address),
            ),
        )
        return reverse_dns, helo, outcome, listings

    async def _judge_name_and_content(
        self, evaluator: MailEvaluator
    ) -> tuple[ReverseDnsVerdict | None, FilterOutcome]:
        """Find the host's name, and pass the mail on with it, as a receiver would."""
        found, address = None, evaluator.origin.judged_address
        if address is not None:
            found = await evaluator.evaluate(evaluator.verdicts.reverse_dns, address)
        self._tell(evaluator.mail.delivery_id, "host")
        names = found.validated_names if found is not None else ()
        filtered = with_trace_fields(evaluator.mail.raw_message, _trace_facts(evaluator, names))
        return found, await self._part(evaluator, "filter", self._content_filter.judge(filtered))

    async def _judge_content(
        self, evaluator: MailEvaluator
    ) -> tuple["MailReading", Authentication, ArcOfMail, Senders, Sequence[Listing]]:
        """Read the mail, then verify, walk and ask lists at the same time."""
        mail = evaluator.mail
        reading = await evaluator.run(partial(read_mail_for_score, mail.raw_message))
        self._tell(mail.delivery_id, "mail")
        facts = reading.facts
        names = domains_to_query(facts.author_domains, evaluator.sender_domain, facts.link_hosts)
        authentication, arc, senders, listings = await run_all(
            self._part(
                evaluator, "authentication", evaluator.authenticate(succeed(reading.identities))
            ),
            _verify_chain(evaluator, reading),
            self._ask_about_senders(evaluator, facts),
            self._part(evaluator, "name-lists", self._blocklists.query_domains(names)),
        )
        return reading, authentication, arc, senders, listings

    async def _ask_about_senders(self, evaluator: MailEvaluator, facts: MailFacts) -> Senders:
        """Find where bounces and answers go; answers need exactly one author."""
        authors = facts.author_domains
        author = next(iter(authors)) if len(authors) == 1 else ""
        envelope, of_author = await run_all(
            self._ask_about_sender(evaluator, evaluator.sender_domain),
            self._ask_about_sender(evaluator, author),
        )
        return envelope, of_author

    async def _ask_about_sender(self, evaluator: MailEvaluator, domain: str) -> SenderDomain | None:
        allow_private = self._settings.allow_private
        if not domain:
            return None
        return await evaluator.evaluate(
            partial(evaluate_sender, domain, allow_private=allow_private)
        )

    def _settle(self, evaluator: MailEvaluator, found: Authentication) -> Authentication:
        """Give what holds for the delivery now, and let those who show its message know."""
        delivery_id = evaluator.mail.delivery_id
        if delivery_id is None:
            return found
        now = instant_of(self._clock.seconds())
        return self._known.take(delivery_id, found, now, is_settled=evaluator.is_settled)

    def _notes(
        self, evaluator: MailEvaluator, reading: "MailReading", score: MailScore
    ) -> list[str]:
        note = evaluator.origin.note_for_report
        notes = [note, _BY_YOUR_SERVER] if note else []
        if score.undetermined:
            names = ", ".join(topic_of(one.area.value).title for one in score.undetermined)
            notes.append(f"could not be determined, and nothing was deducted for it: {names}")
        if self._settings.host_name.lower() in reading.claimed_by:
            notes.append(
                f"the mail came with an Authentication-Results field in the name of"
                f" {self._settings.host_name}, which is not ours: it was not believed"
            )
        return notes


def _is_own_host(evidence: MailEvidence) -> bool:
    """Tell whether the sender's domain vouches for the client: by a name of its own, or its MX."""
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
    """Judge the whole record of a domain: its faults, and how much a pass is worth."""
    domain = spf.mail_from.domain
    name = read_mail_domain(domain) or ""
    if spf.mail_from.result is AuthResult.TEMPERROR or is_local_name(name):
        return None
    return await evaluator.evaluate(evaluator.verdicts.spf_record, domain)


async def _verify_chain(evaluator: MailEvaluator, reading: "MailReading") -> ArcOfMail:
    """Verify the seals of those who passed the mail on."""
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
    """Try every record that the findings propose; what lists and the filter say stays as it is."""
    rest, dns = charge_other_evidence(evidence), DnsCharges(is_own_host=evidence.is_own_host)
    exchange_keys = CachedConclusion(partial(replace_keys, evidence.authentication.dkim))

    def judge(answers: Answers) -> Outcome:
        changed = _judge_again(evaluator, identities, evidence, answers, exchange_keys)
        return _outcome_of(changed, (*dns.charge(changed), *rest))

    return await verify_fixes(_outcome_of(evidence, score.charged), judge, evaluator.dns)


def _outcome_of(evidence: MailEvidence, charged: tuple[ChargedFinding, ...]) -> Outcome:
    """Count below 0 too: what a record brings is seen where much else is wrong."""
    findings = tuple(one.finding for one in sorted_by_cost(charged))
    dmarc = evidence.authentication.dmarc
    policies = policies_of(evidence.spf_record, dmarc.verdict)
    can_authenticate = bool(dmarc.is_spf_aligned or dmarc.is_dkim_aligned)
    named = () if evidence.spf_record is None else evidence.spf_record.named
    return Outcome(findings, PERFECT - total(charged), policies, can_authenticate, named)


def _judge_again(
    evaluator: MailEvaluator,
    identities: Identities,
    evidence: MailEvidence,
    answers: Answers,
    exchange_keys: CachedConclusion[DkimOfMail, tuple[SignatureKey, ...]],
) -> MailEvidence:
    """Judge what DNS says of host, author and keys; the mail's bytes are not read again."""
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
