"""Results of one run of a watch, as flat facts that can be compared.

Each topic has facts by name. A topic is incomplete if part of it could not be determined. A fact
that is missing from it is unknown, and never counts as removed.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.bimi.evaluate import BimiVerdict
from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    describe_listings,
    has_usable_answer,
)
from mailcheck.checks.findings import PROBLEMS, Finding, Severity
from mailcheck.checks.hosts.caa import CaaVerdict
from mailcheck.checks.hosts.mta_sts import MtaStsVerdict
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe, evaluate_starttls
from mailcheck.checks.hosts.tls_rpt import TlsRptVerdict
from mailcheck.checks.receiver_reports.origins import (
    Decisions,
    SenderMail,
    decision_about,
    find_together,
    is_small,
)
from mailcheck.checks.receiver_reports.sender_texts import explain
from mailcheck.checks.scoring.domain_outcome import policies_of
from mailcheck.checks.scoring.evidence import Evidence
from mailcheck.checks.scoring.outcomes import Mark
from mailcheck.checks.scoring.score import Score
from mailcheck.core.domains.receiver_reports import SenderDecision
from mailcheck.core.instants import DAY, Instant, format_instant
from mailcheck.core.network_addresses import parse_ip_address

LONGEST_VALUE = 2_000
"""Maximum number of characters of a value; an RSA key record has 400."""

ENDING_SOON = 14 * DAY
"""Time before the end of a certificate; automatic renewal happens 30 days before."""

RECORD = "record"
"""Name of the fact for one or more published records."""

ANSWERS = "answers"
"""Name of the fact for whether a mail host accepts connections."""

CERTIFICATE = "certificate"

CERTIFICATE_ENDS = "certificate ends"

LISTS = "blocklists"
"""Topic of all lists together: whether any of them answers."""

_LIST, _HOST = "list ", "mail host "


class Fact(Struct, frozen=True, omit_defaults=True):
    """A value; for a problem also its severity and its meaning.

    ``strength`` orders the policies in records of one kind.
    """

    value: str
    severity: Severity | None = None
    says: str = ""
    strength: int = 0


class Topic(Struct, frozen=True):
    """Facts by name; ``is_single`` if one of many similar topics, whose failure is not reported."""

    facts: Mapping[str, Fact]
    is_complete: bool = True
    is_single: bool = False


class Points(Struct, frozen=True):
    """Contribution of a factor to the score, or a placeholder if it is undetermined."""

    points: int
    mark: Mark

    @property
    def is_determined(self) -> bool:
        """Whether the factor could be determined."""
        return self.mark is not Mark.UNDETERMINED


class Facts(Struct, frozen=True):
    """All topics of a run; ``points`` are empty if the watch has no score.

    If ``is_whole`` is true, a mail host or list that is missing was removed. Otherwise its
    state is unknown.
    """

    topics: Mapping[str, Topic]
    points: Mapping[str, Points]
    is_whole: bool = True


def list_topic(zone: str) -> str:
    """Return the topic of a list."""
    return _LIST + zone


def host_topic(exchange: str) -> str:
    """Return the topic of a mail host."""
    return _HOST + exchange


def host_of(topic: str) -> str | None:
    """Return the mail host of a topic, or `None` for other topics."""
    return topic.removeprefix(_HOST) if topic.startswith(_HOST) else None


def is_list(topic: str) -> bool:
    """Return whether a topic is a single list."""
    return topic.startswith(_LIST)


class UnscoredVerdicts(Struct, frozen=True):
    """Verdicts that are not part of the score."""

    mta_sts: MtaStsVerdict
    tls_rpt: TlsRptVerdict
    caa: CaaVerdict
    bimi: BimiVerdict


def facts_of_domain(
    evidence: Evidence,
    score: Score,
    aside: UnscoredVerdicts,
    selectors: Sequence[str],
    *,
    is_port_open: bool,
    now: Instant,
) -> Facts:
    """Return the facts about a domain.

    :param selectors: selectors that the owner entered; a missing key is a problem.
    :param is_port_open: whether this host can connect to port 25, so that an unreachable mail
        host is down.
    """
    mx = evidence.mx
    points = {factor.name.value: Points(factor.impact, factor.mark) for factor in score.factors}
    if not mx.exists:
        # The name does not exist, so there are no names below it; keep all other topics.
        return Facts({"MX": Topic(_problems(mx.findings))}, points, is_whole=False)
    names = evidence.reverse_dns
    topics = {
        **_records(evidence, aside, () if evidence.is_parked else selectors),
        "registration": _registration(evidence.registration),
        **_hosts(mx, evidence.starttls.probes, is_port_open=is_port_open, now=now),
        **_lists(evidence.listings),
        **({} if names is None else {"reverse DNS": _reverse_dns(names)}),
    }
    return Facts(topics, points)


def _records(
    evidence: Evidence, aside: UnscoredVerdicts, selectors: Sequence[str]
) -> dict[str, Topic]:
    spf, dmarc, mta_sts, tls_rpt = evidence.spf, evidence.dmarc, aside.mta_sts, aside.tls_rpt
    policy = () if dmarc.record is None else (dmarc.record.text,)
    strictness = policies_of(spf, dmarc)
    return {
        "MX": _mx(evidence.mx),
        "SPF": _published(spf.presence, spf.records, spf.findings, strictness.get("SPF", 0)),
        "DKIM": _dkim(evidence.dkim, selectors),
        "DMARC": _published(dmarc.presence, policy, dmarc.findings, strictness.get("DMARC", 0)),
        "MTA-STS": _published(mta_sts.record.presence, (mta_sts.record.text,), mta_sts.findings),
        "TLS-RPT": _published(tls_rpt.presence, (tls_rpt.text,), tls_rpt.findings),
        "CAA": _published(
            aside.caa.presence, [entry.text for entry in aside.caa.properties], aside.caa.findings
        ),
        "BIMI": _bimi(aside.bimi),
    }


def facts_of_address(listings: Sequence[Listing], names: ReverseDnsVerdict) -> Facts:
    """Return the facts about an address."""
    return Facts({"reverse DNS": _reverse_dns(names), **_lists(listings)}, {})


SENDERS = "DMARC senders"
"""Topic of the senders whose mail fails according to DMARC reports."""

MIN_FAILING = 5
"""Minimum number of failing messages of a sender that is reported, with one in a hundred."""

MAX_FAILING_SENDERS = 20
"""Maximum number of failing senders in a topic, those with most failing messages."""


def facts_of_senders(
    mail: Sequence[SenderMail], decisions: Decisions, *, is_complete: bool
) -> Topic:
    """Return the senders whose mail fails: own ones, and new ones that have a name.

    Addresses without a name are left out, because forgers use thousands.

    :param is_complete: whether all names could be looked up.
    """
    total = sum(sender.sender.messages for sender in mail)
    together = find_together(mail, total)
    failing = [sender for sender in mail if _is_failing(sender, decisions, together, total)]
    return Topic(
        {
            sender.sender.key: _failing(sender, decisions)
            for sender in failing[:MAX_FAILING_SENDERS]
        },
        is_complete=is_complete and len(failing) <= MAX_FAILING_SENDERS,
        is_single=True,
    )


def _is_failing(
    one: SenderMail, decisions: Decisions, together: Container[str], total: int
) -> bool:
    if decision_about(one, decisions, together) is SenderDecision.NOT_MINE:
        return False
    if one.lost < max(MIN_FAILING, one.sender.messages // 100):
        return False
    is_own = one.sender.is_known or one.sender.key in decisions
    is_named = parse_ip_address(one.sender.key) is None
    return is_own or (is_named and not is_small(one, total))


def _failing(one: SenderMail, decisions: Decisions) -> Fact:
    sender = one.sender
    is_own = sender.is_known or sender.key in decisions
    what = f"Mail of {sender.name} fails DMARC." if is_own else f"New sender: {sender.name}."
    return Fact("failing", Severity.WARNING, f"{what} {explain(sender)}")


def _problems(findings: Iterable[Finding]) -> dict[str, Fact]:
    """Return a fact for each id of a problem; the worst finding stands for all with its id."""
    facts: dict[str, Fact] = {}
    for finding in sorted(findings, key=lambda one: one.severity.rank):
        if finding.severity in PROBLEMS:
            facts.setdefault(finding.id, Fact("found", finding.severity, finding.meaning))
    return facts


def _is_complete(findings: Iterable[Finding]) -> bool:
    return all(finding.severity is not Severity.UNDETERMINED for finding in findings)


def _value(texts: Iterable[str]) -> str:
    return "\n".join(texts)[:LONGEST_VALUE]


def _published(
    presence: Presence, records: Sequence[str], findings: Sequence[Finding], strength: int = 0
) -> Topic:
    facts = _problems(findings)
    text = _value(filter(None, records))
    if text:
        facts[RECORD] = Fact(text, strength=strength)
    is_known = presence is not Presence.UNDETERMINED
    return Topic(facts, is_complete=is_known and _is_complete(findings))


def _mx(mx: MxVerdict) -> Topic:
    records = sorted((host.preference, host.exchange) for host in mx.hosts)
    if mx.is_null_mx:
        records = [(0, "")]
    texts = [f"{preference} {exchange}." for preference, exchange in records]
    return _published(mx.presence, texts, mx.findings)


def _dkim(dkim: DkimVerdict, selectors: Sequence[str]) -> Topic:
    facts = _problems(dkim.findings)
    for key in dkim.keys:
        facts[f"key {key.selector}"] = Fact(_value([key.record.text]))
    for selector in selectors:
        name = f"{selector}._domainkey.{dkim.domain}"
        if f"key {selector}" not in facts and name not in dkim.silent:
            says = f"There is no DKIM key at {name}, so mail signed with it fails."
            facts[f"missing {selector}"] = Fact("found", Severity.ERROR, says)
    return Topic(facts, is_complete=not dkim.silent)


def _bimi(bimi: BimiVerdict) -> Topic:
    topic = _published(bimi.record.presence, (bimi.record.text,), bimi.findings)
    if bimi.certificate is None:
        return topic
    day = format_instant(bimi.certificate.issuers_end_at)[:10]
    return replace(topic, facts={**topic.facts, CERTIFICATE_ENDS: Fact(day)})


def _registration(registration: RegistrationVerdict) -> Topic:
    facts = _problems(registration.findings)
    if registration.registered_at is not None:
        facts["registered"] = Fact(format_instant(registration.registered_at)[:10])
    return Topic(facts, is_complete=registration.presence is not Presence.UNDETERMINED)


def _reverse_dns(names: ReverseDnsVerdict) -> Topic:
    texts = sorted(names.ptr_names)
    return _published(names.presence, texts, names.findings)


def _hosts(
    mx: MxVerdict, probes: Iterable[StarttlsProbe], *, is_port_open: bool, now: Instant
) -> dict[str, Topic]:
    return {
        host_topic(probe.exchange): _host(mx, probe, is_port_open=is_port_open, now=now)
        for probe in probes
    }


def _host(mx: MxVerdict, probe: StarttlsProbe, *, is_port_open: bool, now: Instant) -> Topic:
    if probe.outcome is ProbeOutcome.UNREACHABLE and is_port_open:
        says = (
            f"{probe.exchange} accepts no connections on port 25, so mail to it waits or bounces."
        )
        # Its encryption is unknown, so the topic is incomplete.
        return Topic({ANSWERS: Fact("no", Severity.ERROR, says)}, False, is_single=True)
    if not probe.outcome.is_determined:
        is_there = probe.outcome is ProbeOutcome.REJECTED
        return Topic({ANSWERS: Fact("yes")} if is_there else {}, is_complete=False)
    facts = {ANSWERS: Fact("yes"), **_problems(evaluate_starttls(mx, [probe]).findings)}
    encryption = probe.tls_version or "none"
    if probe.outcome is ProbeOutcome.HANDSHAKE_FAILED:
        encryption = "broken"
    facts["encryption"] = Fact(encryption)
    if probe.certificate_ends_at is not None:
        facts[CERTIFICATE] = Fact(probe.certificate_digest)
        facts[CERTIFICATE_ENDS] = _ending(probe.exchange, probe.certificate_ends_at, now)
    return Topic(facts)


def _ending(exchange: str, ends_at: Instant, now: Instant) -> Fact:
    day = format_instant(ends_at)[:10]
    if ends_at <= now:
        says = f"The certificate of {exchange} expired on {day}."
        return Fact(day, Severity.ERROR, says)
    if ends_at - now < ENDING_SOON:
        days = ENDING_SOON // DAY
        says = f"The certificate of {exchange} expires on {day}, in less than {days} days."
        return Fact(day, Severity.WARNING, says)
    return Fact(day)


def _lists(listings: Sequence[Listing]) -> dict[str, Topic]:
    topics = {LISTS: Topic({}, is_complete=has_usable_answer(listings))}
    for row in listings:
        if row.is_known or row.status is ListingStatus.UNKNOWN:
            name = list_topic(row.blocklist.zone)
            topics[name] = Topic(_listing(row), is_complete=row.is_known, is_single=True)
    return topics


def _listing(row: Listing) -> dict[str, Fact]:
    if not row.is_listed:
        return {}
    (finding,) = describe_listings([row])
    severity = finding.severity if finding.severity in PROBLEMS else None
    codes = f" ({', '.join(row.codes)})" if row.codes else ""
    return {"listed": Fact(_value([", ".join(row.matched) + codes]), severity, finding.meaning)}
