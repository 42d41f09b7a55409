"""Tests for the evaluation of STARTTLS probes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import HostAddresses, Presence
from mailcheck.checks.hosts.mx import MailHost, MxVerdict
from mailcheck.checks.hosts.starttls import (
    ProbeOutcome,
    StarttlsGrade,
    StarttlsProbe,
    evaluate_starttls,
)
from mailcheck.core.network_addresses import parse_ip_address
from tests.table import rows


def mail_host(name: str) -> MailHost:
    """Return a mail host with an address."""
    address = parse_ip_address("8.8.8.8")
    assert address is not None
    return MailHost(name, 10, HostAddresses(name, (address,), Presence.FOUND, True, name), None)


MX = MxVerdict("d.example", Presence.FOUND, (mail_host("mx.d.example"),), False, None, ())
NULL_MX = MxVerdict("d.example", Presence.FOUND, (), True, None, ())
NOWHERE = MxVerdict(
    "d.example",
    Presence.ABSENT,
    (),
    False,
    HostAddresses("d.example", (), Presence.ABSENT, True, "d.example"),
    (),
)
SILENT = MxVerdict("d.example", Presence.UNDETERMINED, (), False, None, ())


def probe(outcome: ProbeOutcome, version: str = "TLSv1.3", **facts: Any) -> StarttlsProbe:
    """Return the probe of the mail host."""
    if outcome is not ProbeOutcome.ENCRYPTED:
        return StarttlsProbe("mx.d.example", outcome)
    return StarttlsProbe("mx.d.example", outcome, version, **facts)


GOOD = probe(ProbeOutcome.ENCRYPTED, is_certificate_trusted=True, is_name_matching=True)
SELF_SIGNED = probe(ProbeOutcome.ENCRYPTED, is_name_matching=True)
OTHER_NAME = probe(ProbeOutcome.ENCRYPTED, is_certificate_trusted=True)
OLD = probe(ProbeOutcome.ENCRYPTED, "TLSv1", is_certificate_trusted=True, is_name_matching=True)


@rows(
    (GOOD, StarttlsGrade.VERIFIED, []),
    (SELF_SIGNED, StarttlsGrade.UNVERIFIED, ["starttls.unverified"]),
    (OTHER_NAME, StarttlsGrade.UNVERIFIED, ["starttls.unverified"]),
    (OLD, StarttlsGrade.OUTDATED, ["starttls.outdated"]),
    (probe(ProbeOutcome.NOT_OFFERED), StarttlsGrade.MISSING, ["starttls.missing"]),
    (probe(ProbeOutcome.HANDSHAKE_FAILED), StarttlsGrade.BROKEN, ["starttls.broken"]),
    (probe(ProbeOutcome.REJECTED), StarttlsGrade.UNDETERMINED, ["starttls.undetermined"]),
    (probe(ProbeOutcome.NO_SMTP), StarttlsGrade.UNDETERMINED, ["starttls.undetermined"]),
    (probe(ProbeOutcome.UNREACHABLE), StarttlsGrade.UNDETERMINED, ["starttls.undetermined"]),
    (probe(ProbeOutcome.NOT_PROBED), StarttlsGrade.UNDETERMINED, ["starttls.undetermined"]),
)
def test_every_outcome_has_a_grade_and_a_finding(
    one: StarttlsProbe, grade: StarttlsGrade, finding: list[str]
) -> None:
    """Known outcomes are graded; unknown ones are undetermined, never missing."""
    verdict = evaluate_starttls(MX, [one])
    assert (verdict.grade, [f.id for f in verdict.findings]) == (grade, finding)


@rows(
    (NULL_MX, StarttlsGrade.NOT_APPLICABLE),
    (NOWHERE, StarttlsGrade.NO_HOST),
    (SILENT, StarttlsGrade.UNDETERMINED),
    (MX, StarttlsGrade.UNDETERMINED),
)
def test_without_probes_the_mx_decides(mx: MxVerdict, grade: StarttlsGrade) -> None:
    """A domain that receives no mail needs no encryption; one without hosts has none."""
    assert evaluate_starttls(mx, []).grade is grade


def test_certificate_problems_are_told_apart() -> None:
    """A certificate for another name differs from a self-signed one."""
    assert "another name" in evaluate_starttls(MX, [OTHER_NAME]).findings[0].meaning
    assert "known authority" in evaluate_starttls(MX, [SELF_SIGNED]).findings[0].meaning


PROBES = st.lists(
    st.builds(
        lambda number, outcome, version, trusted, matching: StarttlsProbe(
            f"mx{number}.d.example", outcome, version, trusted, matching
        ),
        st.integers(0, 9),
        st.sampled_from(ProbeOutcome),
        st.sampled_from(["TLSv1", "TLSv1.2", "TLSv1.3"]),
        st.booleans(),
        st.booleans(),
    ),
    max_size=4,
    unique_by=lambda one: one.exchange,
)


@given(probes=PROBES)
def test_the_worst_host_that_was_seen_decides(probes: list[StarttlsProbe]) -> None:
    """Another host never improves the grade, unless no host had a result."""
    order = list(StarttlsGrade)
    for count in range(len(probes)):
        before = evaluate_starttls(MX, probes[:count]).grade
        after = evaluate_starttls(MX, probes[: count + 1]).grade
        if before is not StarttlsGrade.UNDETERMINED:
            assert order.index(after) >= order.index(before)
