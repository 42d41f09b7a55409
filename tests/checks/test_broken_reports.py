"""DMARC reports that are not well-formed XML: an error loses only its field or its row."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.aggregate_xml import parse_aggregate_report
from mailcheck.core.errors import ReportRefused
from tests.corpus.report_files import document
from tests.linear import assert_linear
from tests.table import rows

GOOD = document("rfc9990.xml").decode()
WHOLE = parse_aggregate_report(GOOD.encode())
ORGANISATION = f"<org_name>{WHOLE.organisation}</org_name>"


def broken(old: str, new: str, text: str = GOOD) -> bytes:
    """Return the good report with one part replaced."""
    assert old in text
    return text.replace(old, new, 1).encode()


NOTHING_LOST: dict[str, bytes] = {
    "ampersand": broken(ORGANISATION, "<org_name>Reporter & Sons</org_name>"),
    "angle brackets": broken(ORGANISATION, "<org_name><></org_name>"),
    "an address in angle brackets": broken(ORGANISATION, "<org_name><a@b.example></org_name>"),
    "a Latin-1 octet": broken(ORGANISATION, "<org_name>Rep@rter</org_name>").replace(
        b"Rep@rter", b"Rep\xf1rter"
    ),
    "a control character": broken(ORGANISATION, "<org_name>Rep\x0brter</org_name>"),
    "a NUL": broken(ORGANISATION, "<org_name>Rep\0rter</org_name>"),
    "no end of a field": broken(ORGANISATION, "<org_name>Reporter"),
    "no end of the file": broken("</feedback>", ""),
    "half an end of the file": broken("</feedback>", "</feedb"),
    "no end of the metadata": broken("</report_metadata>", ""),
    "no end of the policy": broken("</policy_published>", ""),
    "no end of a row": broken("</row>", ""),
    "no end of a record": broken("</record>", ""),
    "no end of the results": broken("</auth_results>", ""),
    "no end of a result": broken("</result>", ""),
    "an end of nothing": broken("</report_metadata>", "</nothing></report_metadata>"),
    "a wrong character set": broken("UTF-8", "windows-31j-x"),
    "another wrong character set": broken("UTF-8", "UTF-16"),
    "a declaration without quotes": re.sub(rb"<\?xml.*?\?>", b"<?xml version=1.0?>", GOOD.encode()),
    "text before the declaration": b"Here is your report:\n" + GOOD.encode(),
    "text behind the end": GOOD.encode() + b"\n-- \nfooter & more",
    "a schema that is not closed": re.sub(
        rb"<feedback",
        b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><feedback',
        GOOD.encode(),
    ),
    "a comment without an end": broken("<record>", "<record><!-- a comment ", GOOD),
    "an attribute without quotes": broken("<record>", "<record number=1>"),
    "a prefix that nobody declared": GOOD.replace("<feedback", "<d:feedback").encode(),
}


def read(data: bytes) -> AggregateReport:
    """Parse a malformed report; it must have a problem, because strict parsers reject it."""
    report = parse_aggregate_report(data)
    assert report.problems
    assert "the readable part is counted" in report.problems[0]
    return report


@rows(*NOTHING_LOST.values())
def test_no_row_is_lost(data: bytes) -> None:
    """All messages are counted for the domain, and the error is a problem of the report."""
    report = read(data) if b"d:feedback" not in data else parse_aggregate_report(data)
    assert (report.domain, report.messages) == (WHOLE.domain, WHOLE.messages)
    assert {row.source for row in report.rows} == {row.source for row in WHOLE.rows}


def test_a_fault_costs_its_row_alone() -> None:
    """A row without a readable count is left out and reported; the others count."""
    count = re.search("<count>(.*?)</count>", GOOD)
    assert count is not None
    for spoilt in ("<co\0unt>5</count>", "<count>&#0;</count>", "<count>5&</count>"):
        report = read(broken(count[0], spoilt))
        assert report.messages == WHOLE.messages - int(count[1])
        assert any("row 1 is left out" in one for one in report.problems)


def test_a_report_that_is_cut_off_has_its_whole_rows() -> None:
    """The row in which the file ends is left out; the rows before it count."""
    place = GOOD.rindex("<header_from>")
    report = read(GOOD[:place].encode())
    assert 0 < report.messages < WHOLE.messages
    assert any("the report ends within it" in one for one in report.problems)


def test_only_xml_entities_are_decoded() -> None:
    """Characters and XML's five entities are decoded; all other references stay unchanged."""
    text = "<org_name>a &amp; b &lt; &#233; &nbsp; &xxe; & c</org_name>"
    report = read(broken(ORGANISATION, text))
    assert report.organisation == "a & b < \u00e9 &nbsp; &xxe; & c"


@rows(b"", b"<", b"<feedback", b"<html><p>&</html>", b"<<<<", b"\0<", b"<a><b></a>")
def test_other_documents_are_rejected(data: bytes) -> None:
    """If the document contains no part of a report, the XML error is the reason."""
    with pytest.raises(ReportRefused):
        parse_aggregate_report(data)


@given(
    st.integers(0, len(GOOD)), st.integers(0, 40), st.sampled_from(["", "&", "<", ">", "\0", "</"])
)
def test_any_cut_is_read_or_refused(place: int, length: int, between: str) -> None:
    """After any cut, the parser returns no more messages than there are, or a reason."""
    try:
        report = parse_aggregate_report((GOOD[:place] + between + GOOD[place + length :]).encode())
    except ReportRefused:
        return
    assert all(count >= 0 for count in report.rows.values())


PIECES = {
    "openings": ("", "<"),
    "comments": ("", "<!--"),
    "sections of text": ("", "<![CDATA["),
    "instructions": ("", "<?"),
    "ends": ("", "</record>"),
    "fields": ("", "<count>"),
    "ampersands": ("", "&"),
    "references": ("", "&#"),
    "names": ("<", "a"),
    "blanks": ("<a", " "),
}


@rows(*PIECES.values())
def test_hostile_faults_take_linear_time(before: str, piece: str) -> None:
    """An error that repeats is parsed in one pass."""

    def read(fault: str) -> None:
        with suppress(ReportRefused):
            parse_aggregate_report(GOOD.replace("<record>", "<record>" + fault, 1).encode())

    assert_linear(read, piece, before)
