"""Ingesting reports: parse them in a child process, authenticate them and count their rows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.defer import Deferred, succeed
from twisted.internet.defer import TimeoutError as DeferredTimeout

from mailcheck.checks.deliverability.authentication import judge_origin
from mailcheck.checks.deliverability.identities import header_of, read_identities
from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.hosts.tls_rpt import evaluate_tls_rpt
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.counting import (
    StoredRow,
    claimed_reporter,
    fill_feedback,
    fill_report,
    row_of_feedback,
    rows_of,
)
from mailcheck.checks.receiver_reports.feedback import NO_REPORT, FeedbackReport, read_feedback_mail
from mailcheck.checks.receiver_reports.limits import MAX_SPAN
from mailcheck.checks.receiver_reports.reading import (
    RejectedDocument,
    Report,
    read_report_file,
    read_report_mail,
)
from mailcheck.checks.receiver_reports.tls import TlsReport
from mailcheck.checks.receiver_reports.trust import (
    Judgement,
    Trust,
    find_reporter,
    judge_claim,
    judge_dmarc_request,
    judge_failure_request,
    judge_tls_request,
)
from mailcheck.core.domains.receiver_reports import (
    MAX_AHEAD,
    Letter,
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportState,
    day_of,
)
from mailcheck.core.errors import ReportRefused, WorkerDied, WorkTooSlow
from mailcheck.core.identifiers import AccountId, new_time_ordered_id
from mailcheck.core.instants import MINUTE, SECOND, Instant
from mailcheck.operations.deliverability.authenticate_mail import MailEvaluator
from mailcheck.operations.deliverability.score_mail import ScoringSettings
from mailcheck.operations.dns_evaluation import DnsEvaluator, QuestionBudget
from mailcheck.operations.queue_worker import QueueWorker
from mailcheck.operations.reports.receive_reports import ReportAddresses
from mailcheck.operations.worker_calls import read_complaint_mail
from mailcheck.ports.resolver import Resolver
from mailcheck.ports.workers import Worker
from mailcheck.store.domains.report_quotas import (
    MAX_ROWS_OF_ACCOUNT,
    Admission,
    Claim,
    Outcome,
    ReportDomains,
    Tally,
    measure,
)
from mailcheck.store.domains.report_store import CountedRow, ReportStore, WaitingReport

LEASE = 5 * MINUTE
"""Duration of a lease. The slowest report needs a tenth of it."""

READING_DEADLINE = 60.0
"""Seconds for parsing a report, including the wait for the child process."""

AUTHENTICATION_DEADLINE = 10.0
"""Seconds for authenticating the mail of a report."""

RETRY_AFTER = 10 * MINUTE
"""Time until an undetermined result is determined again, since name servers recover."""

MAX_ATTEMPTS = 12
"""Attempts until a report is stored without being counted: two hours."""

PIECE = 1_000
"""Maximum number of rows counted in one transaction, so that incoming mail waits only briefly."""

MAX_ROWS_OF_DAY = 60_000
"""Maximum number of different rows of a domain counted for a day, from all reporters."""

POSTED = "it was posted over HTTPS, so its sender is not authenticated"


NOT_AUTHENTICATED = (
    "its mail is not authenticated: neither DKIM nor SPF passes for its author domain"
)

Document = Report | FeedbackReport | Letter | RejectedDocument

READABLE = "it is not a report. Its text is shown, since it may ask you to confirm the address"

Found = TypeVar("Found")


class UndeterminedYet(Exception):
    """Something could not be determined now."""


class _Judged(Struct, frozen=True):
    """A document to be stored, and the rows that it counts.

    ``sender`` is the organization that authenticates it; empty without one. A foreign document
    is not about a domain of the account, and only its number is stored.
    """

    kept: ReceiverReport
    rows: tuple[CountedRow, ...] = ()
    sender: str = ""
    is_foreign: bool = False


class IngestReports(QueueWorker[ReportId, WaitingReport], eq=False):
    """Reads waiting reports: several at a time, one of each account.

    A name server that answers slowly delays the reports of one account only.

    :param worker: the child process that reads them.
    :param keeps_mail: whether personal data of the mails in reports about one mail is stored.
    """

    jobs = "reports"
    max_jobs = 8
    lease = LEASE

    store: ReportStore
    addresses: ReportAddresses
    resolver: Resolver
    worker: Worker
    analysis: Worker
    settings: ScoringSettings
    keeps_mail: bool
    _accounts: set[AccountId] = field(default_factory=set)

    async def claim(self, limit: int) -> Sequence[WaitingReport]:
        """Claim the reports that have waited longest, of accounts without one under way."""
        claimed: dict[AccountId, WaitingReport] = {}
        while len(claimed) < limit:
            others = {*self._accounts, *claimed}
            waiting = await self.store.claim(self.new_lease(), self.clocks.now(), others)
            if waiting is None:
                break
            claimed[waiting.account_id] = waiting
        return list(claimed.values())

    async def release(self, *, is_attempt: bool) -> None:
        """Release the reports of this daemon. They count as not begun."""
        await self.store.release(self.holder)

    async def process(self, job: WaitingReport) -> None:
        """Read a report, and then look for the next one of its account."""
        self._accounts.add(job.account_id)
        try:
            await self._read(job)
        finally:
            self._accounts.discard(job.account_id)
            self._has_hint = True

    async def _read(self, job: WaitingReport) -> None:
        """Read a report, count its authenticated rows, and record the outcome."""
        why = ""
        try:
            judged = await self._judge(job)
        except ReportRefused as refusal:
            judged = [_Judged(self._kept(job, ReportState.REFUSED, str(refusal)))]
        except WorkTooSlow as failure:
            # Another attempt would take as long, and delay the reports of others.
            judged = [
                _Judged(self._kept(job, ReportState.APART, f"reading it was given up: {failure}"))
            ]
        except UndeterminedYet as doubt:
            judged, why = [], str(doubt)
        except (WorkerDied, DeferredTimeout):
            judged, why = [], "it could not be read: the process that reads reports has died"
        if not judged:
            if job.attempts < MAX_ATTEMPTS:
                retry_at = Instant(self.clocks.now() + RETRY_AFTER)
                await self.store.postpone(job.id, self.holder, retry_at)
                self.outcomes.add("put off")
                return
            judged = [_Judged(self._kept(job, ReportState.APART, why))]
        admitted = [await self._admit(report) for report in judged]
        kept = [report for report in admitted if report is not None]
        for report in kept:
            for start in range(0, len(report.rows), PIECE):
                await self.store.count(report.rows[start : start + PIECE])
        await self.store.finish(job.id, self.holder, [report.kept for report in kept])
        for report in kept:
            self.outcomes.add(report.kept.state.value)

    async def _admit(self, judged: _Judged) -> _Judged | None:
        """Return as much of a report as the quotas have room for, and count the rest."""
        kept, day = judged.kept, day_of(judged.kept.received_at)
        if judged.is_foreign:
            tally = Tally(day, "", Outcome.FOREIGN, 1, 0, octets=0, domain=kept.domain)
            await self.store.tally(kept.account_id, tally)
            self.outcomes.add(Outcome.FOREIGN.value)
            return None
        content = "".join(
            msgspec.json.encode(feedback).decode()
            for feedback in (kept.feedback, kept.letter)
            if feedback
        )
        listed = measure((kept.reason, kept.organisation, kept.report_id, content, *kept.problems))
        octets = listed + sum(measure((row.reporter, row.result)) for row in judged.rows)
        claim = Claim(kept, day, judged.sender, len(judged.rows), octets, listed_octets=listed)
        admission = await self.store.admit(claim)
        if admission is Admission.WHOLE:
            return judged
        if admission is Admission.NOTHING:
            self.outcomes.add(Outcome.OVER_QUOTA.value)
            return None
        if admission is Admission.REPEATED:
            return replace(judged, rows=())
        who = judged.sender or "unauthenticated senders"
        reason = f"reports of {who} exceeded their quota for a day"
        kept = replace(kept, state=ReportState.APART, reason=reason)
        return replace(judged, kept=kept, rows=())

    async def _judge(self, waiting: WaitingReport) -> list[_Judged]:
        """Judge all documents of a report.

        :raises ReportRefused: it contains no document.
        :raises UndeterminedYet: DNS did not answer.
        """
        documents = await self._documents(waiting)
        known = await self.store.domains_of(waiting.account_id)
        own = [_own_part(report, known) for report in documents]
        is_asked = any(report is not None for report in own)
        reporter = await self._find_reporter(waiting) if is_asked else ""
        sender = registrable_domain(reporter) if reporter else ""
        judged = []
        for document, part in zip(documents, own, strict=True):
            if part is None:
                kept = replace(self._kept(waiting, ReportState.APART, ""), domain=_about(document))
                judged.append(_Judged(kept, is_foreign=True))
            elif isinstance(part, Letter):
                judged.append(self._judge_letter(waiting, part, sender, known))
            else:
                one = await self._judge_document(waiting, part, reporter)
                judged.append(replace(one, sender=sender))
        return judged

    async def _documents(self, waiting: WaitingReport) -> Sequence[Document]:
        """Return the documents of a report.

        :raises ReportRefused: it contains none.
        """
        mail = waiting.mail
        if mail is not None and waiting.kind.is_feedback:
            is_failure = waiting.kind is ReportKind.FAILURE
            read: Callable[[bytes, bool], FeedbackReport | Letter]
            read = read_feedback_mail if is_failure else read_complaint_mail
            return [await self._run(partial(read, mail.raw_message, self.keeps_mail), waiting)]
        if mail is None:
            return await self._run(partial(read_report_file, waiting.body), waiting)
        return await self._run(partial(read_report_mail, mail.raw_message), waiting)

    def _run(self, read: Callable[[], Found], waiting: WaitingReport) -> Deferred[Found]:
        """Run a parser in the child process, with a deadline."""
        work = self.worker.run(read, waiting.account_id)
        return work.addTimeout(READING_DEADLINE, self.clocks.clock)

    async def _find_reporter(self, waiting: WaitingReport) -> str:
        """Return the domain that authenticates the mail, or an empty string."""
        mail = waiting.mail
        if mail is None:
            return ""
        session = mail.session
        origin = judge_origin(
            session.client_ip, session.helo_name, allow_private=self.settings.allow_private
        )
        budget = QuestionBudget.starting_now(self.clocks.clock, AUTHENTICATION_DEADLINE)
        evaluator = MailEvaluator(
            mail,
            origin,
            self.settings.host_name,
            self.resolver,
            self.analysis,
            clock=self.clocks.clock,
            budget=budget,
            ends_at=budget.ends_at,
        )
        read = partial(read_identities, header_of(mail.raw_message))
        identities = await evaluator.work(read)
        if identities is None:
            raise UndeterminedYet("the authentication of its mail could not be determined")
        reporter = find_reporter(await evaluator.authenticate(succeed(identities)))
        if reporter.trust is Trust.UNDETERMINED:
            raise UndeterminedYet("the authentication of its mail could not be determined")
        return reporter.domain

    async def _judge_document(
        self,
        waiting: WaitingReport,
        document: Report | FeedbackReport | RejectedDocument,
        reporter: str,
    ) -> _Judged:
        if isinstance(document, RejectedDocument):
            return _Judged(self._kept(waiting, ReportState.REFUSED, document.why))
        if isinstance(document, FeedbackReport):
            return await self._judge_feedback(waiting, document, reporter)
        is_tls = isinstance(document, TlsReport)
        if is_tls is not (waiting.kind is ReportKind.TLS):
            why = "it is a TLS report" if is_tls else "it is a DMARC report"
            return _Judged(
                self._kept(waiting, ReportState.REFUSED, f"{why}, and this address takes others")
            )
        kept = self._counted(waiting, document, reporter)
        doubt = (
            _doubt_source(waiting, document, reporter)
            or await self._doubt_request(waiting, document)
            or await self._doubt_room(kept, day_of(document.begins_at))
        )
        if doubt:
            return _Judged(replace(kept, state=ReportState.APART, reason=doubt))
        return _Judged(kept, tuple(_counted_row(kept, row) for row in rows_of(kept, document)))

    def _judge_letter(
        self, waiting: WaitingReport, letter: Letter, sender: str, known: ReportDomains
    ) -> _Judged:
        """Judge a mail that is not a report: keep its text if it is authenticated.

        One of the account's own domains is a complaint that only forwards the reported mail.
        """
        if not sender or known.has(sender):
            return _Judged(self._kept(waiting, ReportState.REFUSED, NO_REPORT), sender=sender)
        kept = self._kept(waiting, ReportState.REFUSED, READABLE)
        return _Judged(replace(kept, reporter=sender, letter=letter), sender=sender)

    async def _judge_feedback(
        self, waiting: WaitingReport, report: FeedbackReport, reporter: str
    ) -> _Judged:
        """Judge a report about one mail of a domain of the account."""
        feedback = report.feedback
        is_failure = feedback.type.kind is ReportKind.FAILURE
        (domain,), happened_at = report.domains, _moment_of(waiting, feedback.arrived_at)
        kept = fill_feedback(
            self._kept(waiting, ReportState.COUNTED, ""), report, domain, reporter, happened_at
        )
        doubt = "" if reporter else NOT_AUTHENTICATED
        if is_failure and not doubt:
            doubt = await self._doubt_failure(waiting, feedback.author_domain or domain)
        doubt = doubt or await self._doubt_room(kept, day_of(happened_at))
        if doubt:
            return _Judged(replace(kept, state=ReportState.APART, reason=doubt))
        row = row_of_feedback(kept, feedback, happened_at)
        return _Judged(kept, (_counted_row(kept, row),))

    async def _doubt_failure(self, waiting: WaitingReport, domain: str) -> str:
        """Return why a domain does not ask for failure reports; empty if it does.

        :raises UndeterminedYet: DNS did not answer.
        """
        addresses = self.addresses.mail_address(ReportKind.FAILURE, waiting.mailbox_name)
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock)
        dmarc = await evaluator.evaluate(partial(evaluate_dmarc, domain))
        return _settle([judge_failure_request(dmarc, address) for address in addresses], domain)

    def _counted(self, waiting: WaitingReport, report: Report, reporter: str) -> ReceiverReport:
        """Return a report as it is stored when its rows are counted."""
        reason = POSTED if waiting.mail is None and isinstance(report, TlsReport) else ""
        kept = self._kept(waiting, ReportState.COUNTED, reason)
        if isinstance(report, TlsReport):
            reporter = reporter or claimed_reporter(report)
        return fill_report(kept, report, reporter)

    async def _doubt_request(self, waiting: WaitingReport, report: Report) -> str:
        """Return why a domain of a report does not ask for it; empty if all of them do.

        :raises UndeterminedYet: DNS did not answer.
        """
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clocks.clock)
        if isinstance(report, AggregateReport):
            addresses = self.addresses.mail_address(ReportKind.DMARC, waiting.mailbox_name)
            dmarc = await evaluator.evaluate(partial(evaluate_dmarc, report.domain))
            return _settle(
                [judge_dmarc_request(dmarc, address) for address in addresses], report.domain
            )
        places = self.addresses.tls_places(waiting.mailbox_name)
        for domain in report.domains:
            tls = await evaluator.evaluate(partial(evaluate_tls_rpt, domain))
            doubt = _settle([judge_tls_request(tls, places)], domain)
            if doubt:
                return doubt
        return ""

    async def _doubt_room(self, kept: ReceiverReport, day: Instant) -> str:
        """Return why the rows of a report cannot be counted; empty if they can."""
        most = MAX_ROWS_OF_ACCOUNT
        if await self.store.count_all_rows(kept.account_id, most) >= most:
            return f"the account has {most} rows of reports: delete old reports"
        known = await self.store.count_rows(kept.account_id, kept.kind, kept.domain, day)
        if known < MAX_ROWS_OF_DAY:
            return ""
        return f"{known} different rows were counted for its day already"

    def _kept(self, waiting: WaitingReport, state: ReportState, reason: str) -> ReceiverReport:
        return ReceiverReport(
            ReportId(new_time_ordered_id(waiting.received_at, self.clocks.random_bytes)),
            waiting.account_id,
            waiting.kind,
            state,
            waiting.received_at,
            reason=reason,
        )


def _own_part(document: Document, known: ReportDomains) -> Document | None:
    """Return the part of a document about domains of the account, or `None` without one."""
    if isinstance(document, FeedbackReport):
        home = known.find_home(document.domains)
        return None if home is None else replace(document, domains=(home,))
    if isinstance(document, AggregateReport):
        return document if known.take(document.domain) else None
    if isinstance(document, TlsReport):
        own = {domain for domain in document.domains if known.take(domain)}
        policies = tuple(policy for policy in document.policies if policy.domain in own)
        return replace(document, policies=policies) if policies else None
    return document


def _about(document: Document) -> str:
    """Return the first domain that a report is about."""
    if isinstance(document, AggregateReport):
        return document.domain
    if isinstance(document, RejectedDocument | Letter):
        return ""
    return document.domains[0]


def _moment_of(waiting: WaitingReport, arrived_at: Instant | None) -> Instant:
    """Return when a reported mail arrived, or if that is implausible, when its report arrived."""
    received_at = waiting.received_at
    if arrived_at is None or not -MAX_SPAN * SECOND < arrived_at - received_at < MAX_AHEAD:
        return received_at
    return arrived_at


def _doubt_source(waiting: WaitingReport, report: Report, reporter: str) -> str:
    """Return why the sender or the time of a report is implausible; empty if they are not."""
    if waiting.kind is ReportKind.DMARC or waiting.mail is not None:  # a TLS report may be posted
        if not reporter:
            return NOT_AUTHENTICATED
        claimed = report.email if isinstance(report, AggregateReport) else report.contact
        claim = judge_claim(reporter, claimed)
        if claim.trust is Trust.DOUBTED:
            return claim.reason
    is_ahead = report.ends_at > waiting.received_at + MAX_AHEAD
    return "it ends in the future" if is_ahead else ""


def _settle(judgements: Sequence[Judgement], domain: str) -> str:
    """Return why a domain does not ask for reports to any address; empty if it asks for one.

    :raises UndeterminedYet: DNS did not answer.
    """
    found = {judgement.trust for judgement in judgements}
    if Trust.TRUSTED in found:
        return ""
    if Trust.UNDETERMINED in found:
        raise UndeterminedYet(f"whether {domain} requests reports here could not be determined")
    return judgements[0].reason


def _counted_row(kept: ReceiverReport, row: StoredRow) -> CountedRow:
    return CountedRow(
        kept.account_id,
        kept.kind,
        row.domain,
        row.day,
        row.digest,
        reporter=kept.reporter,
        result=row.result,
        amount=row.amount,
    )
