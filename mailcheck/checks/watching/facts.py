"""What one run of a watch found out, as flat facts that two runs can be compared by.

Each topic has facts by name. One of which not everything could be found out is not complete:
what it lacks is not known, and never taken for gone.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    describe_listings,
    has_usable_answer,
)
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.hosts.mta_sts import MtaStsVerdict
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe, evaluate_starttls
from mailcheck.checks.hosts.tls_rpt import TlsRptVerdict
from mailcheck.checks.scoring.domain_outcome import policies_of
from mailcheck.checks.scoring.evidence import Evidence
from mailcheck.checks.scoring.score import Score
from mailcheck.core.instants import DAY, Instant, format_instant

LONGEST_VALUE = 2_000
"""Characters of a value that are kept; a key record of RSA has 400."""

ENDING_SOON = 14 * DAY
"""Before a certificate ends: those that renew themselves do so at 30 days."""

RECORD = "record"
"""Name of the fact that is a published record, or several."""

ANSWERS = "answers"
"""Name of the fact whether a mail host takes connections."""

CERTIFICATE = "certificate"

CERTIFICATE_ENDS = "certificate ends"

LISTS = "blocklists"
"""The topic of all lists together: whether any of them answers."""

_LIST, _HOST = "list ", "mail host "

_PROBLEMS = (Severity.ERROR, Severity.WARNING)


class Fact(Struct, frozen=True, omit_defaults=True):
    """A value; for a problem also its severity and its meaning.

    ``strength`` orders the policies that records of one kind ask for.
    """

    value: str
    severity: Severity | None = None
    says: str = ""
    strength: int = 0


class Topic(Struct, frozen=True):
    """Facts by name; ``is_single`` is one of many like it, whose silence alone is no news."""

    facts: Mapping[str, Fact]
    is_complete: bool = True
    is_single: bool = False


class Points(Struct, frozen=True):
    """What a factor of the score contributes; not determined, it is a stopgap."""

    points: int
    is_determined: bool


class Facts(Struct, frozen=True):
    """All topics of a run; without ``points`` where nothing is scored.

    ``is_whole``: a mail host or list that is not among them is none any more; else the run
    says nothing of it.
    """

    topics: Mapping[str, Topic]
    points: Mapping[str, Points]
    is_whole: bool = True


def list_topic(zone: str) -> str:
    """Name the topic of a list."""
    return _LIST + zone


def host_topic(exchange: str) -> str:
    """Name the topic of a mail host."""
    return _HOST + exchange


def host_of(topic: str) -> str | None:
    """Give the mail host that a topic is about; nothing for others."""
    return topic.removeprefix(_HOST) if topic.startswith(_HOST) else None


def is_list(topic: str) -> bool:
    """Tell whether a topic is one list."""
    return topic.startswith(_LIST)


class UnscoredVerdicts(Struct, frozen=True):
    """What no score counts."""

    mta_sts: MtaStsVerdict
    tls_rpt: TlsRptVerdict


def facts_of_domain(
    evidence: Evidence,
    score: Score,
    aside: UnscoredVerdicts,
    selectors: Sequence[str],
    *,
    is_port_open: bool,
    now: Instant,
) -> Facts:
    """Make facts of what is known of a domain.

    :param selectors: those that its owner has named: a key that is missing there is a problem.
    :param is_port_open: connections to port 25 leave here, so that who can't be reached is down.
    """
    mx = evidence.mx
    points = {
        factor.name.value: Points(factor.impact, factor.is_determined) for factor in score.factors
    }
    if not mx.exists:
        # Nothing can be below a name that does not exist: all else is as it was, as far as known.
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
    }


def facts_of_address(listings: Sequence[Listing], names: ReverseDnsVerdict) -> Facts:
    """Make facts of what is known of an address."""
    return Facts({"reverse DNS": _reverse_dns(names), **_lists(listings)}, {})


def _problems(findings: Iterable[Finding]) -> dict[str, Fact]:
    """Give a fact for each kind of problem; of several of a kind the worst one stands for all."""
    facts: dict[str, Fact] = {}
    for finding in sorted(findings, key=lambda one: one.severity.rank):
        if finding.severity in _PROBLEMS:
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
            says = f"There is no DKIM key at {name}: what is signed with it fails."
            facts[f"missing {selector}"] = Fact("found", Severity.ERROR, says)
    return Topic(facts, is_complete=not dkim.silent)


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
        says = f"{probe.exchange} takes no connections on port 25: mail to it waits or bounces."
        # What it offers can't be seen: not complete, though this much is known.
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
        says = f"The certificate of {exchange} has ended on {day}."
        return Fact(day, Severity.ERROR, says)
    if ends_at - now < ENDING_SOON:
        days = ENDING_SOON // DAY
        says = f"The certificate of {exchange} ends on {day}, in less than {days} days."
        return Fact(day, Severity.WARNING, says)
    return Fact(day)


_KNOWN = (ListingStatus.LISTED, ListingStatus.CLEAN)


def _lists(listings: Sequence[Listing]) -> dict[str, Topic]:
    topics = {LISTS: Topic({}, is_complete=has_usable_answer(listings))}
    for row in listings:
        if row.status in _KNOWN or row.status is ListingStatus.UNKNOWN:
            name = list_topic(row.blocklist.zone)
            topics[name] = Topic(_listing(row), is_complete=row.status in _KNOWN, is_single=True)
    return topics


def _listing(row: Listing) -> dict[str, Fact]:
    if not row.is_listed:
        return {}
    (finding,) = describe_listings([row])
    severity = finding.severity if finding.severity in _PROBLEMS else None
    codes = f" ({', '.join(row.codes)})" if row.codes else ""
    return {"listed": Fact(_value([", ".join(row.matched) + codes]), severity, finding.meaning)}
