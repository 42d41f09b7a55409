"""Prices for the format of a mail: bounds, the cap, and more faults never raise a score."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.deliverability.charging import cap, total
from mailcheck.checks.deliverability.quality import judge_transport
from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.findings_table import ROWS
from mailcheck.checks.quality.content import judge_content
from mailcheck.checks.quality.header import judge_headers
from mailcheck.checks.quality.links import judge_links
from mailcheck.checks.quality.reading import read_mail
from mailcheck.checks.quality.unsubscribe import MUST_BE_SIGNED, judge_unsubscribe
from mailcheck.checks.weights import MAX_QUALITY, QUALITY_AREAS
from mailcheck.core.instants import parse_instant
from mailcheck.core.messages import TlsFacts
from tests.fakes.sample_mails import HTML, make_mail

NOW = parse_instant("2026-11-21T10:00:05Z")
TLS = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384")
TENTHS = {row.id: row.price for row in ROWS if row.price and row.area in QUALITY_AREAS}
FAULTS = sorted(TENTHS)


def judge_with(faults: frozenset[str]) -> tuple[ChargedFinding, ...]:
    """Judge a mail that has exactly these charged faults."""
    without = {
        "headers.date-missing": "Date",
        "headers.message-id-missing": "Message-ID",
        "unsubscribe.no-one-click": "List-Unsubscribe-Post",
    }
    left_out = tuple(name for fault, name in without.items() if fault in faults)
    if "content.html-only" in faults:
        raw = make_mail(without=left_out, content_type="text/html", body=HTML)
    else:
        raw = make_mail(without=left_out)
    facts = read_mail(raw)
    tls = None if "transport.no-tls" in faults else TLS
    return (
        *judge_transport(tls, is_extended=True, tls_was_offered=True),
        *judge_headers(facts, NOW),
        *judge_content(facts),
        *judge_links(facts),
        *judge_unsubscribe(facts, MUST_BE_SIGNED),
    )


@given(st.frozensets(st.sampled_from(FAULTS)))
def test_each_fault_costs_its_points_and_all_at_most_the_cap(faults: frozenset[str]) -> None:
    """The sum is that of the table, limited by the cap."""
    found = judge_with(faults)
    assert {one.finding.id for one in found if one.tenths} == faults
    assert total(found) == sum(TENTHS[fault] for fault in faults)
    assert total(cap(found, MAX_QUALITY)) == min(total(found), MAX_QUALITY)


@given(st.frozensets(st.sampled_from(FAULTS)), st.sampled_from(FAULTS))
def test_one_more_fault_never_costs_less(faults: frozenset[str], fault: str) -> None:
    """A further fault never lowers the price of a mail."""
    before = cap(judge_with(faults), MAX_QUALITY)
    assert total(cap(judge_with(faults | {fault}), MAX_QUALITY)) >= total(before)


@given(st.binary(max_size=600))
def test_any_mail_costs_at_most_the_cap(raw: bytes) -> None:
    """Any bytes are accepted within the cap, and the order of the findings is stable."""
    facts = read_mail(raw)
    found = (
        *judge_headers(facts, NOW),
        *judge_content(facts),
        *judge_links(facts),
        *judge_unsubscribe(facts, frozenset()),
    )
    assert 0 <= total(cap(found, MAX_QUALITY)) <= MAX_QUALITY
    assert len({one.finding.id for one in found}) >= len(found) - len(facts.authors)
