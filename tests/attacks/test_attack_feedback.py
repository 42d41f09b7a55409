"""Failure reports and complaints that are built to fill memory, to block, or to break pages."""

import base64
import re
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.receiver_reports.feedback import read_feedback_mail
from mailcheck.checks.receiver_reports.limits import MAX_FEEDBACK, MAX_FEEDBACK_FIELDS, MAX_TEXT
from mailcheck.core.domains.receiver_reports import FeedbackType
from mailcheck.core.errors import ReportRefused
from tests.corpus.feedback_mails import FIELDS, REPORTED, feedback_mail
from tests.fakes.report_senders import DOMAIN, reports_zone
from tests.house import run
from tests.table import rows
from tests.web.dashboard.tools_visit import visit_tools

pytestmark = pytest.mark.attack

MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=y>{{7*7}}\x1b[31m\u202e"
SECONDS = 5.0
"""Far more than any of these mails takes, and far less than without limits."""


def size_of(raw: bytes, *, keeps_mail: bool = True) -> int:
    """Read a report, and return the octets of what is stored."""
    start = time.process_time()
    report = read_feedback_mail(raw, keeps_mail)
    assert time.process_time() - start < SECONDS
    return len(msgspec.json.encode(report))


def test_a_huge_report_is_refused() -> None:
    """A mail above the limit is not read; one just below takes no more room than any other."""
    with pytest.raises(ReportRefused, match="it is over 10 MB"):
        read_feedback_mail(feedback_mail(reported=REPORTED + "x" * MAX_FEEDBACK))
    assert size_of(feedback_mail(reported=REPORTED + "x" * (MAX_FEEDBACK - 9_000))) < 6_000


@rows(
    "".join(f"Reported-Domain: d{n}.example.org\n" for n in range(20_000)),
    "".join(f"X-{n}: y\n" for n in range(100_000)),
    "Authentication-Results: mx;" + " dkim=fail;" * 100_000 + "\n",
    "Identity-Alignment: " + "dkim," * 100_000 + "\n",
    "User-Agent: " + "=?utf-8?b?QQ==?= " * 50_000 + "\n",
    "User-Agent: " + "a@" * 100_000 + "\n",
    "Original-Rcpt-To: " + "<a@b.example>, " * 50_000 + "\n",
    "Source-IP: " + ":" * 100_000 + "\n",
    " \n" * 100_000,
)
def test_thousands_of_fields_and_values(fields: str) -> None:
    """Many or long fields are read in linear time, and the result stays small."""
    assert size_of(feedback_mail(FIELDS + fields)) < 12_000
    report = read_feedback_mail(feedback_mail(FIELDS + fields))
    if fields.count("\n") > MAX_FEEDBACK_FIELDS and fields.strip():
        assert any("the rest is left out" in one for one in report.problems)


@rows(
    "Received: " + "1.2.3." * 50_000 + "\n",
    "".join(f"Received: from 10.0.0.{n % 250} by x\n" for n in range(20_000)),
    "DKIM-Signature: " + "d=a;" * 50_000 + "\n",
    "".join(f"DKIM-Signature: v=1; d=d{n}.example; s=s\n" for n in range(5_000)),
    "List-Id: " + "<" * 100_000 + "\n",
    "From: " + "(" * 100_000 + "\n",
    "To: " + '"' * 100_000 + "\n",
)
def test_headers_of_reported_mails(header: str) -> None:
    """A hostile header of the reported mail is read in linear time, and the result stays small."""
    assert size_of(feedback_mail(reported=header + REPORTED)) < 12_000


def test_a_report_within_a_report() -> None:
    """Only the outer report is read, however deep others are attached."""
    inner = feedback_mail(FIELDS.replace("auth-failure", "virus"), "From: a@inner.example\n\n")
    for _ in range(4):
        inner = feedback_mail(FIELDS.replace("auth-failure", "fraud"), inner)
    report = read_feedback_mail(feedback_mail(reported=inner))
    assert report.feedback.type is FeedbackType.AUTH_FAILURE
    assert "inner.example" not in report.domains
    assert report.domains[0] == "google.com"
    only = b"From: a@b.example\r\nContent-Type: message/rfc822\r\n\r\n" + inner
    with pytest.raises(ReportRefused):
        read_feedback_mail(only)


def test_parts_nested_too_deep() -> None:
    """A report below hundreds of multiparts is not found."""
    head, body = "", FIELDS
    for level in range(300):
        head += f"Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n"
    raw = f"From: a@b.example\n{head}Content-Type: message/feedback-report\n\n{body}".encode()
    with pytest.raises(ReportRefused):
        read_feedback_mail(raw)


@rows(
    b"\xff\xfe\x00\xd8",
    "\ud800".encode("utf-8", "surrogatepass"),
    b"=?utf-16?b?2AA=?=",
    b"=?no-such?q?=FF=FE?=",
    b"=?utf-7?q?+2AA-?=",
    b"\x00\x1b[2J",
    "\u202egnp.exe".encode(),
    "\u0445\u0443".encode("koi8-r"),
)
def test_wrong_charsets(octets: bytes) -> None:
    """Octets in no charset, in a wrong one and without a meaning become text that can be stored."""
    fields = FIELDS.encode().replace(b"Filter/1.0", b"Filter " + octets)
    reported = REPORTED.encode().replace(b"A secret", octets).replace(b"autumn", octets)
    reported = b"Content-Type: text/plain; charset=utf-16\n" + reported
    report = read_feedback_mail(feedback_mail(fields, reported), True)
    stored = msgspec.json.encode(report).decode()
    assert "\x00" not in stored
    assert report.feedback.program.isprintable()
    assert report.feedback.campaign.isprintable()
    assert len(report.feedback.program) <= MAX_TEXT


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1_500),
            st.integers(0, 20),
            st.sampled_from((b"@", b"<", b'"', b"\r\n", b":", b"=?utf-8?q?=ff?=", b"\xff", b"\0")),
        ),
        max_size=10,
    )
)
def test_damaged_reports(changes: list[tuple[int, int, bytes]]) -> None:
    """A report that is damaged anywhere is read without an address in it, or refused."""
    raw = feedback_mail()
    for place, removed, added in changes:
        raw = raw[:place] + added + raw[place + removed :]
    try:
        report = read_feedback_mail(raw)
    except ReportRefused:
        return
    assert b"@" not in msgspec.json.encode(report)


def test_encoded_parts() -> None:
    """A report in base64 is read, and an invalid encoding is no error."""
    raw = feedback_mail(base64.encodebytes(FIELDS.encode())).replace(
        b"message/feedback-report\r\n",
        b"message/feedback-report\r\nContent-Transfer-Encoding: base64\r\n",
    )
    assert read_feedback_mail(raw).feedback.source == "203.0.113.66"
    with pytest.raises(ReportRefused):
        read_feedback_mail(raw.replace(b"RmVl", b"\xff\xff!!"))


def test_markup_in_every_field() -> None:
    """Pages show markup in any field of a report as text."""
    browser = visit_tools(zone := reports_zone())
    house = browser.house
    run(house.assembly.reports.runner.start())
    names = ("Feedback-Type", "User-Agent", "Auth-Failure", "Identity-Alignment", "Source-IP")
    more = ("Delivery-Result", "Authentication-Results", "Reported-Domain", "Original-Mail-From")
    fields = "".join(f"{name}: {MARKUP}\n" for name in (*names, *more)) + "DKIM-Domain: a\n"
    header = "".join(f"{name}: {MARKUP}\n" for name in ("Feedback-ID", "List-Id", "Subject"))
    raw = feedback_mail(fields, f"{header}From: {MARKUP} <a@{DOMAIN}>\n\n{MARKUP}\n")
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", "v=DMARC1; p=none")
    browser.open("/reports")
    (place,) = set(re.findall(r"fbl-\S+@\S+[a-z]", browser.page.text))
    house.receive(place, raw=raw, sender="")
    house.pass_time(1)
    for path in ("/reports", f"/domains/{DOMAIN}/reports?days=365"):
        body = browser.open(path).body
        assert b"<img src=x" not in body
        assert b"<script>alert" not in body
        assert "not authenticated" in browser.page.text
    assert b"&lt;img src=x" in body
