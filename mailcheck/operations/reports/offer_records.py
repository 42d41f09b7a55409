"""Records with which a domain requests its reports here, verified before they are shown."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.dmarc.evaluate import (
    DmarcVerdict,
    SuggestedReportAddress,
    change_tags,
    evaluate_dmarc,
    suggest_report_address,
)
from mailcheck.checks.dmarc.record import (
    PREFIX,
    VERSION,
    PolicyRecord,
    ReportUri,
    parse_policy_record,
)
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.hosts.tls_rpt import evaluate_tls_rpt, propose_tls_rpt
from mailcheck.checks.overlay import Change, Overlay
from mailcheck.checks.receiver_reports.trust import Trust, judge_tls_request
from mailcheck.core.domains.receiver_reports import ReportPlaces
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.domains.compute_reputation import make_records_judge
from mailcheck.operations.verify_fixes import is_harmless
from mailcheck.ports.resolver import Resolver

DEADLINE = 5.0
"""Seconds for all lookups, since a user waits for the page."""


class RecordOffer(Struct, frozen=True):
    """The records to publish for reports of one kind; none if they could not be verified.

    ``is_asking``: whether the domain requests reports here already. ``own`` is the domain's
    record, or `None` if it names the address already. With ``authorization`` the operator agrees to
    receive reports about the domain (RFC 9990 4).
    """

    is_asking: bool = False
    own: RecordToPublish | None = None
    authorization: RecordToPublish | None = None


NOT_PROVEN = RecordOffer()
ASKING = RecordOffer(is_asking=True)


class OfferedRecords(Struct, frozen=True):
    """The records to publish, for both kinds of reports."""

    dmarc: RecordOffer
    tls: RecordOffer


class OfferRecords(Struct, frozen=True, eq=False):
    """Determines the records to publish."""

    resolver: Resolver
    clock: IReactorTime

    async def offer(self, domain: str, places: ReportPlaces) -> OfferedRecords:
        """Return what to publish so that reports about a domain are sent to an account."""
        dmarc, tls = await run_all(
            self._offer_dmarc(domain, places.dmarc), self._offer_tls(domain, places)
        )
        return OfferedRecords(dmarc, tls)

    async def offer_failures(self, domain: str, places: ReportPlaces) -> RecordOffer:
        """Return what to publish so that failure reports about a domain are sent to an account.

        It is only offered on request, because these reports contain mail.
        """
        return await self._offer_dmarc(domain, places.failures, "ruf")

    async def _offer_dmarc(self, domain: str, address: str, tag: str = "rua") -> RecordOffer:
        """Return the records for reports to an address; ``tag`` is the tag that names it."""
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clock, DEADLINE)

        def look(answers: Answers) -> tuple[DmarcVerdict, SuggestedReportAddress | None]:
            verdict = evaluate_dmarc(domain, answers, address)
            place = verdict.found_at or domain
            return verdict, suggest_report_address(place, address, verdict.walk, answers)

        before, offer = await evaluator.evaluate(look)
        if before.presence is Presence.UNDETERMINED or offer is None:
            return NOT_PROVEN
        if _is_sent(before, offer.uri, tag):
            return ASKING
        own = _with_address(before, offer.uri, tag)
        changes = tuple(
            Change(record) for record in (own, offer.authorization) if record is not None
        )

        def judge(answers: Answers) -> DmarcVerdict:
            return evaluate_dmarc(domain, Overlay(answers, changes))

        after = await evaluator.evaluate(judge)
        is_proven = _is_sent(after, offer.uri, tag)
        if is_proven and _strictness(after) > _strictness(before):
            # The corrected record has a policy that receivers do not apply now.
            is_proven = await is_harmless(changes, make_records_judge(domain), evaluator)
        return RecordOffer(own=own, authorization=offer.authorization) if is_proven else NOT_PROVEN

    async def _offer_tls(self, domain: str, places: ReportPlaces) -> RecordOffer:
        evaluator = DnsEvaluator.starting_now(self.resolver, self.clock, DEADLINE)
        uri = f"mailto:{places.tls}"
        before = await evaluator.evaluate(partial(evaluate_tls_rpt, domain))
        asked = judge_tls_request(before, (uri, places.tls_url)).trust
        if asked is not Trust.DOUBTED:
            return NOT_PROVEN if asked is Trust.UNDETERMINED else ASKING
        own = propose_tls_rpt(domain, (*before.rua, uri))
        if own is None:
            return NOT_PROVEN
        overlay = partial(Overlay, changes=(Change(own),))
        after = await evaluator.evaluate(lambda answers: evaluate_tls_rpt(domain, overlay(answers)))
        return RecordOffer(own=own) if uri in after.rua else NOT_PROVEN


def _strictness(verdict: DmarcVerdict) -> int:
    return 0 if verdict.policy is None else verdict.policy.strictness


def _is_sent(verdict: DmarcVerdict, uri: str, tag: str) -> bool:
    """Return whether it is certain that receivers send reports to an address."""
    unknown = {
        authorization.uri.text
        for authorization in verdict.authorizations
        if authorization.presence is Presence.UNDETERMINED
    }
    asked = any(
        wanted.text.lower() == uri for wanted in verdict.usable_uris(_uris(verdict.record, tag))
    )
    return asked and uri not in unknown


def _uris(record: PolicyRecord | None, tag: str) -> Sequence[ReportUri]:
    if record is None:
        return ()
    return record.rua if tag == "rua" else record.ruf


def _with_address(verdict: DmarcVerdict, uri: str, tag: str) -> RecordToPublish | None:
    """Return the domain's record with an address for reports, or `None` if it has the address.

    If receivers ignore the published record, start from the corrected one.
    """
    place, text = verdict.found_at or verdict.domain, f"v={VERSION}; p=none"
    meant = [finding.proposed for finding in verdict.findings if finding.proposed is not None]
    if verdict.record is not None:
        text = verdict.record.text
    elif meant:
        text = meant[0].value
    named = [written.text for written in _uris(parse_policy_record(text), tag) if written.is_usable]
    if verdict.record is not None and uri in map(str.lower, named):
        return None
    value = change_tags(text, **{tag: ",".join(dict.fromkeys([*named, uri]))})
    return RecordToPublish(PREFIX + place, "TXT", value)
