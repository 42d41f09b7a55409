"""Summaries of the senders in DMARC reports: their host names, blocklists and possible fixes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct, field

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.dnsbl.listings import ListingStatus
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.hosts.mx import evaluate_mx
from mailcheck.checks.hosts.reverse_dns import evaluate_reverse_dns
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.overlay import Change, Overlay, build_zone
from mailcheck.checks.proofs import Outcome
from mailcheck.checks.receiver_reports.aggregate import pack_rows
from mailcheck.checks.receiver_reports.complaints import (
    NO_FEEDBACK,
    FeedbackSums,
    PackedFeedback,
    sum_packed_feedback,
)
from mailcheck.checks.receiver_reports.overview import (
    Overview,
    OverviewRequest,
    summarize_page,
)
from mailcheck.checks.receiver_reports.sender_texts import advise, explain
from mailcheck.checks.receiver_reports.senders import Cause, Sender, find_addresses_to_resolve
from mailcheck.checks.receiver_reports.services import RecordUse, SendingService
from mailcheck.checks.scoring.domain_outcome import policies_of, trees_of
from mailcheck.checks.scoring.no_mail import uses_no_mail
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.mail import SpfOfMail, evaluate_spf_of_mail
from mailcheck.checks.spf.repair import add_term, make_ip_term, propose_new_record, repair_text
from mailcheck.core.domains.receiver_reports import MailOfWays, SenderDecision, SumOfDay
from mailcheck.core.instants import HOUR
from mailcheck.core.memory.recent import Recent
from mailcheck.core.network_addresses import IpAddress, parse_ip_address
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.domains.check_blocklists import CheckBlocklists
from mailcheck.operations.verify_fixes import is_harmless
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker
from mailcheck.store.domains.report_sums import SumOfRows

NAMING_DEADLINE = 4.0
"""Seconds for looking up host names. The page is shown without missing ones."""

MOST_LOOKED_UP = 5
"""Maximum number of unknown failing senders whose most active address is checked on blocklists.
This takes 160 queries, as many as five checks."""

LISTS_FRESHNESS = HOUR
"""Milliseconds for which the blocklist results of an address are cached."""

MOST_MENDED, MOST_ADDRESSES = 5, 10
"""Maximum number of senders for which a record is tried, and of their addresses to authorise."""

Listed = Mapping[str, tuple[str, ...]]
"""Names of the blocklists that list an address, for addresses with a usable result."""


class ShownSender(Struct, frozen=True):
    """A sender with its explanation.

    ``listed``: the blocklists of its most active address; `None` if they were not queried.
    ``record``: authorises the sender; our own SPF evaluation passes for its addresses with it.
    ``decision``: whether it is the owner's own; `None` if nobody has decided.
    """

    sender: Sender
    meaning: str
    fix: str
    listed: tuple[str, ...] | None = None
    record: RecordToPublish | None = None
    decision: SenderDecision | None = None


class ShownOverview(Struct, frozen=True):
    """An overview with the explanations of the senders of a page, in its order.

    ``total`` counts the senders of all pages. ``feedback`` are the reports about single mails.
    ``ways`` is `None` for reports that are not stored. ``earlier`` are the days before those whose
    rows are kept.
    """

    overview: Overview
    senders: tuple[ShownSender, ...]
    total: int
    feedback: FeedbackSums = NO_FEEDBACK
    ways: MailOfWays | None = None
    earlier: tuple[SumOfDay, ...] = ()


class NamedHosts(Struct, frozen=True):
    """Forward-confirmed names by address. ``is_complete``: all lookups had an answer."""

    hosts: Mapping[str, str]
    is_complete: bool


def pack_sums(found: Iterable[SumOfRows]) -> bytes:
    """Return sums of rows, packed for another process."""
    return pack_rows(
        [
            (total.result, total.amount, total.reporter, total.first_day, total.last_day)
            for total in found
        ]
    )


class SummarizeSenders(Struct, frozen=True, eq=False):
    """Adds DNS and blocklist results to the senders in reports.

    :param worker: computes the summary away from the reactor.
    :param blocklists: checks addresses; `None` to query no blocklists.
    """

    worker: Worker
    resolver: Resolver
    blocklists: CheckBlocklists | None
    clocks: ClockAndRandomness
    _listed: Recent[str, tuple[str, ...]] = field(
        default_factory=partial(Recent, 1_000, LISTS_FRESHNESS)
    )

    async def summarize(self, request: OverviewRequest, account_id: str = "") -> ShownOverview:
        """Return the report results of a domain, with the known facts about each sender.

        :param account_id: the account of the request; empty for a command.
        """
        named = await self.hosts_of(request.rows, account_id)
        summing_up = partial(summarize_page, request, named.hosts)
        overview, total = await self.worker.run(summing_up, account_id)
        listed, records = await run_all(
            self._ask_lists(overview.senders), self._find_records(overview.senders)
        )
        return ShownOverview(
            overview,
            tuple(
                show_sender(
                    sender,
                    listed.get(sender.sources[0].address),
                    records.get(sender.key),
                    request.decisions.get(sender.key),
                )
                for sender in overview.senders
            ),
            total,
        )

    async def hosts_of(self, packed: bytes, account_id: str) -> NamedHosts:
        """Return the forward-confirmed names of the addresses that matter most."""
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock, NAMING_DEADLINE)
        named = await self.worker.run(partial(find_addresses_to_resolve, packed), account_id)
        addresses = [address for address in map(parse_ip_address, named) if address is not None]

        def name(answers: Answers) -> NamedHosts:
            verdicts = [evaluate_reverse_dns(address, answers) for address in addresses]
            return NamedHosts(
                {
                    str(verdict.address): verdict.validated_names[0]
                    for verdict in verdicts
                    if verdict.validated_names  # anyone can claim a name, but not confirm it
                },
                all(
                    verdict.presence is not Presence.UNDETERMINED
                    and verdict.is_confirmed is not None
                    for verdict in verdicts
                ),
            )

        return await evaluator.evaluate(name)

    async def uses_no_mail(self, domain: str) -> bool:
        """Return whether a domain declares that it uses no mail."""
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock, NAMING_DEADLINE)

        def judge(answers: Answers) -> bool:
            mx = evaluate_mx(domain, answers, allow_private=True)
            return uses_no_mail(evaluate_spf(domain, answers), mx)

        return await evaluator.evaluate(judge)

    async def sum_feedback(self, rows: Sequence[PackedFeedback], account_id: str) -> FeedbackSums:
        """Return the numbers of failure reports and complaints."""
        if not rows:
            return NO_FEEDBACK
        summing_up = partial(sum_packed_feedback, msgspec.msgpack.encode(rows))
        return await self.worker.run(summing_up, account_id)

    async def _ask_lists(self, senders: Iterable[Sender]) -> Listed:
        wanted = [
            sender.sources[0].address
            for sender in senders
            if sender.failing and not sender.is_known
        ]
        found = await run_all(*(self._ask_about(address) for address in wanted[:MOST_LOOKED_UP]))
        return {
            address: names
            for address, names in zip(wanted, found, strict=False)
            if names is not None
        }

    async def _ask_about(self, text: str) -> tuple[str, ...] | None:
        address = parse_ip_address(text)
        if self.blocklists is None or address is None:
            return None
        known = self._listed.get(text, self.clocks.now())
        if known is not None:
            return known
        check = await self.blocklists.check(address)
        if check.has_no_answer:
            return None
        names = tuple(
            row.blocklist.name for row in check.listings if row.status is ListingStatus.LISTED
        )
        self._listed.put(text, names, self.clocks.now())
        return names

    async def _find_records(self, senders: Iterable[Sender]) -> Mapping[str, RecordToPublish]:
        wanted = [sender for sender in senders if _may_be_let_in(sender)][:MOST_MENDED]
        found = await run_all(*(self.find_record(sender) for sender in wanted))
        return {
            sender.key: record
            for sender, record in zip(wanted, found, strict=True)
            if record is not None
        }

    async def find_record(
        self, sender: Sender, earlier: Iterable[RecordToPublish] = ()
    ) -> RecordToPublish | None:
        """Return a record with which SPF passes for the addresses of a sender, if it is verified.

        Return `None` for a sender whose failures have another cause.

        :param earlier: records that are published before this one; the last one of a name counts.
        """
        if not _may_be_let_in(sender):
            return None
        domain = sender.envelope_domains[0]
        failing = [source.address for source in sender.sources if source.failing][:MOST_ADDRESSES]
        addresses = [parsed for parsed in map(parse_ip_address, failing) if parsed is not None]
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock, NAMING_DEADLINE)
        evaluator.zone = build_zone(
            {earlier_record.name: earlier_record for earlier_record in earlier}.values()
        )
        before = await evaluator.evaluate(lambda answers: _judge(addresses, domain, answers))
        first = before[0].mail_from
        if any(spf.mail_from.result is AuthResult.TEMPERROR for spf in before):
            return None  # the current record is unknown
        if all(spf.has_pass for spf in before):
            return None  # it has been published since
        text = propose_new_record() if first.record is None else repair_text(first.record)
        if not text:
            return None  # the meaning of the current record is unclear
        names = ("", "_spf.", "spf.")
        named = [] if sender.service is not None else [sender.name]
        terms = [f"include:{begin}{name}" for name in named for begin in names]
        terms = [*_terms_of(sender.service), *terms]
        by_address = text
        for address in addresses:
            by_address = add_term(by_address, make_ip_term(address))
        for value in (*(add_term(text, term) for term in terms), by_address):
            record = RecordToPublish(domain, "TXT", value)
            change = (Change(record),)

            def judge(answers: Answers, change: tuple[Change, ...] = change) -> list[SpfOfMail]:
                return _judge(addresses, domain, Overlay(answers, change))

            after = await evaluator.evaluate(judge)
            # The other senders of the record must still pass.
            if all(spf.has_pass for spf in after) and await is_harmless(
                change, partial(_judge_record, domain), evaluator
            ):
                return record
        return None


def _judge_record(domain: str, answers: Answers) -> Outcome:
    """Evaluate the SPF record of a domain, so that an offered one keeps its other senders."""
    spf = evaluate_spf(domain, answers)
    policies, trees = policies_of(spf, None), trees_of(spf)
    return Outcome(spf.findings, 0, policies, named=spf.named, spf=trees)


def show_sender(
    sender: Sender,
    listed: tuple[str, ...] | None = None,
    record: RecordToPublish | None = None,
    decision: SenderDecision | None = None,
) -> ShownSender:
    """Return a sender with its explanation."""
    return ShownSender(sender, explain(sender), advise(sender), listed, record, decision=decision)


def _terms_of(service: SendingService | None) -> list[str]:
    """Return the terms that a service asks its customers to add to their SPF records."""
    records = () if service is None else service.records
    return [record.value for record in records if record.use is RecordUse.SPF and record.is_exact]


def _may_be_let_in(sender: Sender) -> bool:
    """Return whether a record may be shown, which needs a host name that forgers seldom have."""
    if sender.cause is not Cause.OWN_SPF or parse_ip_address(sender.name) is not None:
        return False
    hosts = {registrable_domain(source.host) for source in sender.sources if source.host}
    if sender.service is not None:
        return not hosts.isdisjoint(sender.service.hosts)
    return sender.name in sender.vouched_for or sender.name in hosts


def _judge(addresses: Iterable[IpAddress], domain: str, answers: Answers) -> list[SpfOfMail]:
    return [
        evaluate_spf_of_mail(address, domain, f"postmaster@{domain}", domain, answers)
        for address in addresses
    ]
