"""Tests for MTA-STS, TLS-RPT, DANE and DNSSEC of a domain."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import DnsStatus, Presence
from mailcheck.checks.findings import Severity
from mailcheck.checks.hosts.dane import DaneVerdict, DnssecStatus, evaluate_dane, evaluate_dnssec
from mailcheck.checks.hosts.mta_sts import (
    FetchOutcome,
    MtaStsRecord,
    PolicyFetch,
    PolicyMode,
    evaluate_mta_sts,
    evaluate_mta_sts_record,
    parse_mta_sts_policy,
)
from mailcheck.checks.hosts.mx import MxVerdict, evaluate_mx
from mailcheck.checks.hosts.tls_rpt import evaluate_tls_rpt
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

HOSTS = {
    "d.example": {"MX": ["10 mx1.d.example.", "20 mx2.d.example."]},
    "mx1.d.example": {"A": ["8.8.8.8"]},
    "mx2.d.example": {"A": ["8.8.4.4"]},
}
FAILURES = [DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED]
POLICY = "version: STSv1\r\nmode: enforce\r\nmx: *.d.example\r\nmax_age: 604800\r\n"


def mx_of(zone: MemoryZone) -> MxVerdict:
    """Evaluate the MX of d.example."""
    return settle(zone, lambda answers: evaluate_mx("d.example", answers))


MX = mx_of(MemoryZone(HOSTS))


def read_record(*texts: str, failing: DnsStatus | None = None) -> MtaStsRecord:
    """Evaluate the MTA-STS record of d.example."""
    zone = MemoryZone({}, failing={"_mta-sts.d.example": failing} if failing else None)
    zone.publish("_mta-sts.d.example", "TXT", *texts)
    return settle(zone, lambda answers: evaluate_mta_sts_record("d.example", answers))


@rows(
    (["v=STSv1; id=20260831T010101Z;"], Presence.FOUND, []),
    (["v=STSv1;id=a", "something else"], Presence.FOUND, []),
    ([], Presence.ABSENT, ["mta-sts.absent"]),
    (["v=spf1 -all"], Presence.ABSENT, ["mta-sts.absent"]),
    (["v=STSv1; id=1", "v=STSv1; id=2"], Presence.ABSENT, ["mta-sts.several"]),
    (["v=STSv1"], Presence.ABSENT, ["mta-sts.syntax"]),
    (["v=STSv1; id=2026-08-31"], Presence.ABSENT, ["mta-sts.syntax"]),
    (["v=STSv1; id=" + "a" * 33], Presence.ABSENT, ["mta-sts.syntax"]),
)
def test_mta_sts_records(texts: list[str], presence: Presence, expected: list[str]) -> None:
    """One record with an id announces a policy (RFC 8461 3.1)."""
    record = read_record(*texts)
    assert (record.presence, [finding.id for finding in record.findings]) == (presence, expected)


@rows(
    (" v=STSv1; id=a1", "v=STSv1; id=a1;"),
    ("v=stsv1; id=2026", "v=STSv1; id=2026;"),
    ("v=STSV1; id=2026", "v=STSv1; id=2026;"),
    ("v = STSv1; id=2026", "v=STSv1; id=2026;"),
    ("v=STSv1 id=2026", "v=STSv1; id=2026;"),
    ("v=STSv1\\; id=2026", "v=STSv1; id=2026;"),
    ("v=STS1; id=2026-01-02", "v=STSv1; id=20260102;"),
    ("STSv1; ID=2026", "v=STSv1; id=2026;"),
    ("v=MTA-STSv1; id=2026", "v=STSv1; id=2026;"),
    ("id=2026; v=STSv1", "v=STSv1; id=2026;"),
)
def test_near_misses_of_mta_sts_are_named(text: str, value: str) -> None:
    """An ignored record has a finding, and the repaired one keeps its id."""
    record = read_record(text)
    assert (record.presence, record.text) == (Presence.ABSENT, text)
    (finding,) = record.findings
    assert finding.id == "mta-sts.unreadable"
    assert finding.proposed is not None
    assert finding.proposed.value == value
    assert read_record(value).findings == ()


@rows(*FAILURES)
def test_no_answer_is_never_no_record(status: DnsStatus) -> None:
    """Without an answer, MTA-STS and TLS-RPT are undetermined."""
    assert read_record(failing=status).presence is Presence.UNDETERMINED
    zone = MemoryZone({}, failing={"_smtp._tls.d.example": status})
    reports = settle(zone, lambda answers: evaluate_tls_rpt("d.example", answers))
    assert reports.presence is Presence.UNDETERMINED


def test_a_policy_is_read() -> None:
    """Mode, age and patterns are parsed; a star covers one label only (RFC 8461 4.1)."""
    policy = parse_mta_sts_policy(POLICY + "future: yes\n\n")
    assert (policy.mode, policy.max_age, policy.problems) == (PolicyMode.ENFORCE, 604800, ())
    assert policy.covers("mx1.d.example")
    assert not policy.covers("a.mx1.d.example")
    assert not policy.covers("d.example")


@rows(
    ("", "version"),
    ("mode: enforce\nmx: a.example\nmax_age: 1", "version"),
    (POLICY.replace("enforce", "strict"), "mode"),
    (POLICY.replace("604800", "soon"), "max_age"),
    (POLICY.replace("604800", "31557601"), "max_age"),
    (POLICY.replace("mx: *.d.example\r\n", ""), "names no mail host"),
    (POLICY.replace("*.d.example", "*.*.example"), "not a host name"),
    (POLICY + "<html>", "key: value"),
    (POLICY.replace("mode", "Mode"), '"Mode" must be written "mode"'),
    (POLICY.replace("mx:", "MX:"), '"MX" must be written "mx"'),
    (POLICY.replace("version", "VERSION"), '"VERSION" must be written "version"'),
    (POLICY.replace("*.d.example", "2001:db8::1"), "IP address"),
    (POLICY.replace("*.d.example", "[192.0.2.1]"), "IP address"),
)
def test_a_broken_policy_says_why(text: str, problem: str) -> None:
    """The reason why senders ignore a policy is named."""
    policy = parse_mta_sts_policy(text)
    assert not policy.is_valid
    assert any(problem in one for one in policy.problems)


@given(st.text(max_size=300))
def test_any_policy_text_can_be_read(text: str) -> None:
    """The parser accepts any text."""
    parse_mta_sts_policy(text).covers("mx.example")


def fetched(old: str = "", new: str = "") -> PolicyFetch:
    """Return a policy in which a text is replaced."""
    return PolicyFetch(FetchOutcome.FETCHED, POLICY.replace(old, new) if old else POLICY + new)


@rows(
    (fetched(), [], True),
    (fetched("enforce", "testing"), ["mta-sts.testing"], False),
    (fetched("*.d", "mx1.d"), ["mta-sts.uncovered-host"], True),
    (fetched(new="mx: 8.8.8.8\r\n"), ["mta-sts.ip-address"], True),
    (fetched("604800", "3600"), ["mta-sts.short-age"], True),
    (PolicyFetch(FetchOutcome.FETCHED, "hello"), ["mta-sts.policy-syntax"], False),
    (PolicyFetch(FetchOutcome.MISSING), ["mta-sts.policy-missing"], False),
    (PolicyFetch(FetchOutcome.BAD_CERTIFICATE), ["mta-sts.policy-missing"], False),
    (PolicyFetch(FetchOutcome.REDIRECTED), ["mta-sts.policy-missing"], False),
    (PolicyFetch(FetchOutcome.TOO_LARGE), ["mta-sts.policy-missing"], False),
    (PolicyFetch(FetchOutcome.NO_ANSWER), ["mta-sts.undetermined"], False),
)
def test_a_policy_is_judged_with_the_mx(
    fetch: PolicyFetch, expected: list[str], is_enforced: bool
) -> None:
    """A policy that is missing, broken or lacks a mail host has a finding."""
    verdict = evaluate_mta_sts(read_record("v=STSv1; id=1"), fetch, MX)
    assert [finding.id for finding in verdict.findings] == expected
    assert verdict.is_enforced is is_enforced


def test_without_a_record_no_policy_is_judged() -> None:
    """Without a valid record, only the finding of the record is returned."""
    verdict = evaluate_mta_sts(read_record(), None, MX)
    assert [finding.id for finding in verdict.findings] == ["mta-sts.absent"]


@rows(
    (["v=TLSRPTv1; rua=mailto:t@d.example"], 1, []),
    (["v=TLSRPTv1;rua=mailto:t@d.example, https://r.example/v1?x=1"], 2, []),
    ([], 0, ["tls-rpt.absent"]),
    (["v=TLSRPTv1; rua=t@d.example"], 0, ["tls-rpt.syntax"]),
    (["v=TLSRPTv1"], 0, ["tls-rpt.syntax"]),
    (["v=TLSRPTv1; rua=mailto:a@b.example", "v=TLSRPTv1;"], 0, ["tls-rpt.several"]),
)
def test_tls_rpt_records(texts: list[str], rua: int, expected: list[str]) -> None:
    """One record has report addresses (RFC 8460 3); only the suggested address is proposed."""
    zone = MemoryZone({})
    zone.publish("_smtp._tls.d.example", "TXT", *texts)
    verdict = settle(zone, lambda answers: evaluate_tls_rpt("d.example", answers))
    assert (len(verdict.rua), [finding.id for finding in verdict.findings]) == (rua, expected)
    offered = settle(zone, lambda answers: evaluate_tls_rpt("d.example", answers, "t@r.example"))
    for one, other in zip(verdict.findings, offered.findings, strict=True):
        record = other.proposed
        assert record is not None
        assert record.name == "_smtp._tls.d.example"
        is_kept = "@" in "".join(texts)
        assert (one.proposed is not None) is is_kept
        assert is_kept or record.value == "v=TLSRPTv1; rua=mailto:t@r.example"


@rows(
    " v=TLSRPTv1; rua=mailto:t@d.example",
    "v=tlsrptv1; rua=mailto:t@d.example",
    "v = TLSRPTv1; rua=mailto:t@d.example",
    "v=TLSRPTv1 rua=mailto:t@d.example",
    "v=TLSRPTv1, rua=t@d.example",
    "v=TLSRPT1; rua=mailto:t@d.example",
    "v=TLS-RPTv1; rua=mailto:t@d.example",
    "v=TLSRPTv1\\; rua=mailto:t@d.example",
    "TLSRPTv1; RUA=mailto:t@d.example",
)
def test_near_misses_of_tls_rpt_are_named(text: str) -> None:
    """An ignored record has a finding, and the repaired one keeps its address."""
    zone = MemoryZone({})
    zone.publish("_smtp._tls.d.example", "TXT", text)
    verdict = settle(zone, lambda answers: evaluate_tls_rpt("d.example", answers, "o@r.example"))
    (finding,) = verdict.findings
    assert (finding.id, verdict.presence) == ("tls-rpt.unreadable", Presence.ABSENT)
    assert finding.proposed is not None
    assert finding.proposed.value == "v=TLSRPTv1; rua=mailto:t@d.example"
    zone.publish("_smtp._tls.d.example", "TXT", finding.proposed.value)
    assert settle(zone, lambda answers: evaluate_tls_rpt("d.example", answers)).findings == ()


@rows("_smtp._tls.d.example", "_mta-sts.d.example")
def test_beside_an_alias_nothing_is_advised(name: str) -> None:
    """A record is proposed at an own target of a CNAME only; otherwise the advice is text."""
    for target, is_own in (("tls.d.example", True), ("d.tls.other.example", False)):
        zone = MemoryZone({name: {"CNAME": [f"{target}."]}})
        zone.publish(
            target, "TXT", "v=STSv1; id=-" if "sts" in name else "v=tlsrptv1; rua=a@d.example"
        )
        record = settle(zone, lambda answers: evaluate_mta_sts_record("d.example", answers))
        reports = settle(zone, lambda answers: evaluate_tls_rpt("d.example", answers))
        (finding,) = record.findings if "sts" in name else reports.findings
        assert (finding.proposed.name if finding.proposed else None) == (target if is_own else None)
        assert target in finding.fix


GOOD_TLSA = "3 1 1 " + "ab" * 32


def judge_dane(
    records: dict[str, list[str]],
    *,
    is_validating: bool = True,
    is_authenticated: bool = True,
    failing: dict[str | tuple[str, str], DnsStatus] | None = None,
) -> DaneVerdict:
    """Evaluate DANE of d.example with TLSA records by host."""
    zone = MemoryZone(HOSTS, failing=failing, is_authenticated=is_authenticated)
    for host, texts in records.items():
        zone.publish(f"_25._tcp.{host}.d.example", "TLSA", *texts)
    mx = mx_of(zone)
    return settle(zone, lambda answers: evaluate_dane(mx, answers, is_validating=is_validating))


@rows(
    ({"mx1": [GOOD_TLSA], "mx2": [GOOD_TLSA, "2 0 1 " + "cd" * 32]}, [], True),
    ({}, ["dane.absent"], False),
    ({"mx1": [GOOD_TLSA]}, ["dane.partial"], False),
    ({"mx1": [GOOD_TLSA], "mx2": ["1 0 1 " + "ab" * 32]}, ["dane.unusable"], False),
    ({"mx1": [GOOD_TLSA], "mx2": ["3 2 1 " + "ab" * 32]}, ["dane.unusable"], False),
    ({"mx1": [GOOD_TLSA], "mx2": ["3 1 9 " + "ab" * 32]}, ["dane.unusable"], False),
)
def test_dane_needs_usable_records_at_every_host(
    records: dict[str, list[str]], expected: list[str], is_protecting: bool
) -> None:
    """Usages 2 and 3 with known selectors and digests count for mail (RFC 7672 3.1)."""
    verdict = judge_dane(records)
    assert [finding.id for finding in verdict.findings] == expected
    assert verdict.is_protecting is is_protecting


def test_dane_needs_dnssec() -> None:
    """Unsigned TLSA records do not protect; without a validator this is undetermined."""
    both = {"mx1": [GOOD_TLSA], "mx2": [GOOD_TLSA]}
    unsigned = judge_dane(both, is_authenticated=False)
    assert [finding.id for finding in unsigned.findings] == ["dane.insecure", "dane.insecure"]
    unknown = judge_dane(both, is_validating=False)
    assert [host.is_secure for host in unknown.hosts] == [None, None]
    assert (unknown.findings, unknown.is_protecting) == ((), False)


def test_tlsa_without_an_answer_is_undetermined() -> None:
    """A host whose TLSA records have no answer is undetermined."""
    verdict = judge_dane({}, failing={"_25._tcp.mx1.d.example": DnsStatus.TIMEOUT})
    assert [finding.id for finding in verdict.findings] == ["dane.undetermined"]


@rows(
    (True, True, None, DnssecStatus.SIGNED),
    (True, False, None, DnssecStatus.UNSIGNED),
    (False, True, None, DnssecStatus.UNDETERMINED),
    (True, True, {"d.example": DnsStatus.SERVFAIL}, DnssecStatus.UNDETERMINED),
)
def test_only_a_validating_resolver_tells_dnssec(
    is_validating: bool,
    is_authenticated: bool,
    failing: dict[str | tuple[str, str], DnsStatus] | None,
    status: DnssecStatus,
) -> None:
    """The AD bit counts only if the operator trusts the resolver."""
    zone = MemoryZone(HOSTS, failing=failing, is_authenticated=is_authenticated)
    verdict = settle(
        zone, lambda answers: evaluate_dnssec("d.example", answers, is_validating=is_validating)
    )
    assert verdict.status is status
    assert all(finding.severity is not Severity.ERROR for finding in verdict.findings)
