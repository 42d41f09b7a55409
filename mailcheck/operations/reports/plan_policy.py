"""The plan for the next DMARC policy of a domain, with the steps that are missing before it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.dkim.evaluate import evaluate_dkim
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import RecordToPublish, Severity
from mailcheck.checks.overlay import Change, Overlay, build_zone
from mailcheck.checks.receiver_reports.origins import (
    MailSplit,
    SenderMail,
    count_mail,
    decide_without_mail,
    find_origins,
    split_mail,
)
from mailcheck.checks.receiver_reports.plan import (
    PlanState,
    PlanStep,
    Proposal,
    Simulation,
    StepKind,
    effective_policy,
    find_authors,
    find_doubts,
    find_steps,
    next_policy,
    propose_record,
    simulate_policy,
    simulate_record,
    state_of,
)
from mailcheck.checks.receiver_reports.sender_texts import advise_owner, explain
from mailcheck.checks.receiver_reports.senders import Cause, Sender
from mailcheck.checks.receiver_reports.services import RecordUse, ServiceRecord
from mailcheck.checks.receiver_reports.trust import Trust, judge_dmarc_request
from mailcheck.checks.spf.mail import evaluate_spf_of_mail
from mailcheck.core.domains.receiver_reports import (
    Coverage,
    MailOfWays,
    ReportKind,
    ReportPlaces,
    SenderDecision,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.reports.decide_senders import DecideSenders
from mailcheck.operations.reports.offer_records import OfferRecords, RecordOffer
from mailcheck.operations.reports.show_reports import MOST_ROWS, ShowReports
from mailcheck.operations.reports.summarize_senders import (
    MOST_ADDRESSES,
    NAMING_DEADLINE,
    SummarizeSenders,
    pack_sums,
)
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker
from mailcheck.store.domains.report_store import ReportStore

_AGAIN = "Try again in a minute; if it persists, `mailcheck doctor` says why."

MOST_SET_UP = 10
"""Maximum number of steps whose records are looked up. The steps come in the order of their
messages, so the next plan has the others."""

MOST_NAMED = 5
"""Maximum number of small senders that a step names."""


_BY_SPF = (Cause.OWN_SPF, Cause.OWN_SPF_BROKEN, Cause.OWN_SPF_ABSENT)

_OF_POLICY = ("dmarc.policy-none", "dmarc.testing", "dmarc.weaker-subdomains", "dmarc.no-reports")
"""Findings that the plan itself resolves."""


class SetUp(Struct, frozen=True):
    """How a domain authorizes a sender.

    ``records`` are verified: with them, our own evaluation passes. Values of ``patterns`` have
    parts in angle brackets, which the service shows. ``is_published``: SPF passes by now, or a key
    of the service is published.
    """

    records: tuple[RecordToPublish, ...] = ()
    patterns: tuple[RecordToPublish, ...] = ()
    is_published: bool = False


class ShownStep(Struct, frozen=True):
    """A missing step with its explanation, its advice and its records."""

    step: PlanStep
    meaning: str
    fix: str
    set_up: SetUp = SetUp()


class PolicyPlan(Struct, frozen=True):
    """The plan of a domain.

    ``policy`` is the policy that receivers apply now, and ``target`` the next one; `None` if they
    could not be determined or there is none. ``mail`` are all messages. ``record`` is set if it is
    safe to publish.
    ``doubts`` say why the reports do not show enough. ``ways`` says how the reports came.
    """

    domain: str
    days: int
    coverage: Coverage
    messages: int
    failing: int
    mail: MailSplit
    state: PlanState
    policy: Policy | None
    target: Policy | None
    record: RecordToPublish | None
    simulations: tuple[Simulation, ...]
    steps: tuple[ShownStep, ...]
    doubts: tuple[str, ...]
    ways: MailOfWays


class CountedMail(Struct, frozen=True):
    """The mail of each sender of a domain since a day, and the owner's decisions.

    ``is_cut``: the reports have more different rows than are read. ``is_named``: the names of all
    addresses could be looked up.
    """

    mail: list[SenderMail]
    decisions: Mapping[str, SenderDecision]
    messages: int
    is_cut: bool
    is_named: bool


class ReportedMail(Struct, frozen=True, eq=False):
    """Counts the mail in the reports of an account by sender.

    :param worker: counts rows away from the reactor.
    """

    store: ReportStore
    senders: SummarizeSenders
    decisions: DecideSenders
    worker: Worker

    async def count(self, account_id: AccountId, domain: str, since: Instant) -> CountedMail:
        """Return the mail in the reports about a domain since a day."""
        found = await self.store.sums(account_id, ReportKind.DMARC, domain, since, MOST_ROWS)
        packed = pack_sums(found)
        named = await self.senders.hosts_of(packed, account_id)
        mail = await self.worker.run(partial(count_mail, packed, named.hosts), account_id)
        return CountedMail(
            mail,
            await self.decisions.of_domain(account_id, domain),
            sum(total.amount for total in found),
            len(found) == MOST_ROWS,
            named.is_complete,
        )


class PlanPolicy(Struct, frozen=True, eq=False):
    """Simulates stricter policies on the reports of an account."""

    store: ReportStore
    show: ShowReports
    senders: SummarizeSenders
    reported: ReportedMail
    offer: OfferRecords
    resolver: Resolver
    clocks: ClockAndRandomness

    async def plan(self, account_id: AccountId, domain: str, days: int) -> PolicyPlan:
        """Return the plan for a domain from the reports about the last days."""
        now = self.clocks.now()
        since = self.show.since(days)
        found = await self.reported.count(account_id, domain, since)
        mail, decisions, total = found.mail, found.decisions, found.messages
        coverage = await self.store.coverage(account_id, domain, since)
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock)
        verdict = await evaluator.evaluate(partial(evaluate_dmarc, domain))
        is_silent = not any(sender.sender.passing for sender in mail)
        is_silent = is_silent and await self.senders.uses_no_mail(domain)
        doubts = [] if is_silent else list(find_doubts(coverage, total, days, now))
        if is_silent:
            decisions = decide_without_mail(mail, decisions)
        if found.is_cut:
            doubts.append(f"The reports have over {MOST_ROWS} different rows: choose fewer days.")
        places = await self.show.to_offer(account_id)
        ways = await self.store.ways(account_id, domain, since)
        if places.dmarc and judge_dmarc_request(verdict, places.dmarc).trust is Trust.TRUSTED:
            ways = replace(ways, is_proven=True)
        steps = await self._find_record_steps(domain, verdict, places)
        # Reports that are imported from elsewhere need no further address.
        if is_silent or (ways.imported and verdict.record is not None and verdict.record.rua):
            steps = [step for step in steps if step.step.kind is not StepKind.REQUEST_REPORTS]
        if verdict.presence is Presence.UNDETERMINED:
            doubts.append(f"DNS gave no usable answer about the DMARC record. {_AGAIN}")
        target = next_policy(verdict)
        if is_silent and target is not None:
            target = Policy.REJECT
        proposals = await self._propose(evaluator, verdict, mail, target)
        is_known = verdict.presence is not Presence.UNDETERMINED
        # It is unknown what a record means beside one that is not known.
        simulations = [
            simulate_policy(proposal, mail, decisions, total) for proposal in proposals if is_known
        ]
        chosen = proposals[0]
        if None in chosen.policies.values():
            doubts.append(f"DNS gave no usable answer about the policies of subdomains. {_AGAIN}")
        missing = list(find_steps(chosen, mail, decisions, total))
        steps += await self._explain(missing)
        state = state_of(target, steps, doubts)
        if state is PlanState.SAFE and not await self._is_proven(evaluator, verdict, chosen):
            state = PlanState.UNDETERMINED
            doubts.append("Our own evaluation does not confirm the record.")
        return PolicyPlan(
            domain=domain,
            days=days,
            coverage=coverage,
            messages=total,
            failing=sum(sender.sender.failing for sender in mail),
            mail=split_mail(mail, find_origins(mail, decisions)),
            state=state,
            policy=effective_policy(verdict) if is_known else None,
            target=target if is_known else None,
            record=chosen.record if state is PlanState.SAFE else None,
            simulations=tuple(simulations),
            steps=tuple(steps),
            doubts=tuple(doubts),
            ways=ways,
        )

    async def _propose(
        self,
        evaluator: DnsEvaluator,
        verdict: DmarcVerdict,
        mail: Sequence[SenderMail],
        target: Policy | None,
    ) -> list[Proposal]:
        """Return the simulated records: of the next policy first, and of the other one."""
        authors = find_authors(mail)
        first = target or Policy.REJECT
        other = Policy.QUARANTINE if first is Policy.REJECT else Policy.REJECT
        proposals = []
        for policy in (first, other):
            simulate = partial(
                simulate_record, propose_record(verdict, policy), verdict.domain, authors
            )
            proposals.append(await evaluator.evaluate(simulate))
        return proposals

    async def _is_proven(
        self, evaluator: DnsEvaluator, before: DmarcVerdict, proposal: Proposal
    ) -> bool:
        """Return whether the record has its policy, keeps its reports, and causes no error."""
        changes = (Change(proposal.record),)

        def judge(answers: Answers) -> DmarcVerdict:
            return evaluate_dmarc(before.domain, Overlay(answers, changes))

        after = await evaluator.evaluate(judge)

        def errors(verdict: DmarcVerdict) -> set[str]:
            return {
                finding.id for finding in verdict.findings if finding.severity is Severity.ERROR
            }

        return (
            effective_policy(after) is proposal.policy
            and set(before.report_uris) <= set(after.report_uris)
            and errors(after) <= errors(before)
        )

    async def _find_record_steps(
        self, domain: str, verdict: DmarcVerdict, places: ReportPlaces
    ) -> list[ShownStep]:
        """Return the steps for the DMARC record itself."""
        if verdict.presence is Presence.UNDETERMINED:
            return []
        broken = [
            finding
            for finding in verdict.findings
            if finding.severity is Severity.ERROR and finding.id not in _OF_POLICY
        ]
        if verdict.broken_texts and broken:
            return [ShownStep(PlanStep(StepKind.REPAIR, 0), broken[0].meaning, broken[0].fix)]
        if not places.dmarc:
            return []
        offered: RecordOffer = (await self.offer.offer(domain, places)).dmarc
        records = tuple(
            record for record in (offered.own, offered.authorization) if record is not None
        )
        if not records:
            return []
        meaning = f"The DMARC record of {domain} does not request reports here."
        if verdict.presence is Presence.ABSENT:
            meaning = f"{domain} has no DMARC record, so receivers send no reports."
        step = PlanStep(StepKind.REQUEST_REPORTS, 0)
        fix = "Publish the record, and wait for two weeks of reports."
        return [ShownStep(step, meaning, fix, SetUp(records))]

    async def _explain(self, steps: Sequence[PlanStep]) -> list[ShownStep]:
        """Return steps with explanations, and with the records of the first ones."""
        wanted = [
            step.sender
            for step in steps
            if step.sender is not None and step.kind in (StepKind.SET_UP, StepKind.SIGN)
        ][:MOST_SET_UP]
        records = await self._find_own_records(wanted)
        found = await run_all(
            *(self._find_set_up(sender, records.get(sender.key)) for sender in wanted)
        )
        set_ups = dict(zip((sender.key for sender in wanted), found, strict=True))
        return [
            explain_step(
                step, SetUp() if step.sender is None else set_ups.get(step.sender.key, SetUp())
            )
            for step in steps
        ]

    async def _find_own_records(self, senders: Iterable[Sender]) -> dict[str, RecordToPublish]:
        """Return the SPF record that authorizes each sender, by its key.

        Each record contains the senders of the earlier ones, since a domain has one SPF record.
        """
        found: dict[str, RecordToPublish] = {}
        for sender in senders:
            record = await self.senders.find_record(sender, found.values())
            if record is not None:
                found[sender.key] = record
        return found

    async def _find_set_up(self, sender: Sender, own: RecordToPublish | None) -> SetUp:
        """Return how to authorize a sender, with the records that our evaluation confirms.

        :param own: the SPF record that authorizes the sender.
        """
        records = [] if own is None else [own]
        patterns: list[RecordToPublish] = []
        is_published = own is None and await self._is_authorized(sender)
        service = sender.service
        for record in () if service is None else service.records:
            if record.use is RecordUse.SPF:
                continue  # found above, for an envelope sender in the domain
            shown = _fill_in(record, sender.domain)
            if not record.is_exact:
                patterns.append(shown)
                continue
            is_there, is_proven = await self._try(record, shown, sender)
            is_published |= is_there and record.use is RecordUse.DKIM
            if is_proven and not is_there:
                records.append(shown)
        return SetUp(tuple(records), tuple(patterns), is_published)

    async def _is_authorized(self, sender: Sender) -> bool:
        """Return whether the SPF record that failed authorizes the sender by now."""
        if sender.cause not in _BY_SPF or not sender.envelope_domains:
            return False
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock, NAMING_DEADLINE)
        return await evaluator.evaluate(partial(_passes, sender, sender.envelope_domains[0]))

    async def _try(
        self, one: ServiceRecord, shown: RecordToPublish, sender: Sender
    ) -> tuple[bool, bool]:
        """Return whether a record works now, and whether it works once it is published."""
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock, NAMING_DEADLINE)
        zone = build_zone([shown])

        def judge(answers: Answers) -> bool:
            if one.use is RecordUse.DKIM:
                return _has_key(one, sender.domain, answers)
            return _passes(sender, shown.name, answers)

        is_there = await evaluator.evaluate(judge)
        if is_there:
            return True, True
        return False, await evaluator.evaluate(lambda answers: judge(Overlay(answers, zone=zone)))


def _fill_in(record: ServiceRecord, domain: str) -> RecordToPublish:
    return RecordToPublish(record.name_at(domain), record.type, record.value_for(domain))


def _has_key(record: ServiceRecord, domain: str, answers: Answers) -> bool:
    """Return whether receivers can use the key of a service at a domain."""
    selector = record.name.partition("._domainkey")[0]
    keys = evaluate_dkim(domain, (selector,), answers).usable_keys
    return any(key.selector == selector for key in keys)


def _passes(sender: Sender, envelope: str, answers: Answers) -> bool:
    """Return whether SPF passes for the addresses of a sender with an envelope domain."""
    failing = [source.address for source in sender.sources if source.failing] or [
        source.address for source in sender.sources
    ]
    addresses = [parse_ip_address(text) for text in failing[:MOST_ADDRESSES]]
    results = [
        evaluate_spf_of_mail(address, envelope, f"postmaster@{envelope}", envelope, answers)
        for address in addresses
        if address is not None
    ]
    return all(result.has_pass for result in results)


def explain_step(step: PlanStep, set_up: SetUp) -> ShownStep:
    """Return a step about senders with its explanation.

    :param set_up: how the domain authorizes the sender.
    """
    sender = step.sender
    if sender is None:
        names = ", ".join(step.others[:MOST_NAMED])
        rest = len(step.others) - MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        return ShownStep(
            step,
            f"{_messages(step.messages)} of {len(step.others)} unknown"
            f" sender{'s' * (len(step.others) != 1)} would be stopped:"
            f" {names}{more}.",
            "Decide about all of them together. If you know one of them, decide about it first.",
        )
    if step.kind is StepKind.DECIDE:
        return ShownStep(step, explain(sender), _advise_decision(sender))
    if step.kind is StepKind.SIGN:
        return ShownStep(
            step,
            f"{_messages(step.messages)} pass by SPF alone. Forwarding breaks SPF, and a"
            " stricter policy then stops this mail.",
            _advise_service(sender, set_up)
            or f"Sign the mail of {sender.name} with a DKIM key of {sender.domain}.",
            set_up,
        )
    fix = _advise_service(sender, set_up) or advise_owner(sender)
    if set_up.is_published and sender.cause in _BY_SPF:
        fix = (
            f"The SPF record of {sender.envelope_domains[0]} authorizes {sender.name} now. The step"
            " ends when no failing mail is left in the period."
        )
    return ShownStep(step, explain(sender), fix, set_up)


def _advise_service(sender: Sender, set_up: SetUp) -> str:
    """Return the advice for a service of the catalogue; empty without records of it."""
    if sender.service is None:
        return ""
    if set_up.is_published:
        return (
            f"The DKIM keys of {sender.name} are published. Turn on DKIM for {sender.domain} in its"
            " settings if it is off. The step ends when no failing mail is left in the period."
        )
    if set_up.patterns:
        return (
            f"Set up {sender.domain} in the settings of {sender.name}. Publish the records that it"
            " shows; they have this form."
        )
    if set_up.records:
        return (
            f"Publish these records, and turn on DKIM for {sender.domain} in the settings of"
            f" {sender.name}."
        )
    return ""


def _advise_decision(sender: Sender) -> str:
    if sender.is_forwarder:
        return (
            f"{sender.name} forwards your mail. Choose “not mine” to accept that receivers may"
            " stop what it forwards without an intact signature."
        )
    return f"Decide whether {sender.name} sends for you."


def _messages(count: int) -> str:
    return f"{count} message" if count == 1 else f"{count} messages"
