"""SpamAssassin's answers, the rules that count, and the mail that is sent to the filter."""

import email
import re
from datetime import UTC, datetime
from email import policy
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from mailcheck.checks.deliverability.content_filter import (
    MAX_DESCRIPTION,
    MAX_RULES,
    FilterProblem,
    FilterRule,
    FilterVerdict,
    ReportUnreadable,
    read_verdict,
    unavailable,
    why_not_counted,
)
from mailcheck.checks.deliverability.filtered_mail import shrink_for_filter
from mailcheck.checks.deliverability.trace_fields import TraceFacts, with_trace_fields
from mailcheck.core.instants import instant_of
from tests.table import rows

RULE_FILES = Path("/usr/share/spamassassin")

REPORT = """\
Spam detection software, running on the system "vm",
has identified this incoming email as possible spam.

Content preview:  Hello, shall we meet
   ---- ---------------------- ------------------------------------------
   9.0 FORGED_BY_TEXT         never a rule

Content analysis details:   (1003.0 points, 5.0 required)

 pts rule name              description
---- ---------------------- --------------------------------------------------
 2.7 MISSING_DATE           Missing Date: header
-0.0 NO_RELAYS              Informational: message was not relayed via SMTP
1000 GTUBE                  BODY: Generic Test for Unsolicited Bulk Email
 0.2 NORMAL_HTTP_TO_IP      URI: URI host has a public dotted-decimal IPv4
                            address
                            [URI: 1.2.3.4]
 1.0 CONTENT_AFTER_HTML_WEAK More content after HTML close tag
-1.0 ALL_TRUSTED            Passed through trusted hosts only via SMTP


"""


def table(*lines: str) -> str:
    """Return a report with these lines in its table."""
    return "\n".join(["---- ---------------------- -----------------------", *lines, "", ""])


class TestReadingReports:
    """The table of rules."""

    def test_a_report(self) -> None:
        """Points, names and descriptions are parsed, including continued and long names."""
        verdict = read_verdict("True ; 1003.0 / 5.0", REPORT)
        assert (verdict.points, verdict.threshold, verdict.is_spam) == (1003.0, 5.0, True)
        assert [(rule.points, rule.name) for rule in verdict.rules] == [
            (2.7, "MISSING_DATE"),
            (0.0, "NO_RELAYS"),
            (1000.0, "GTUBE"),
            (0.2, "NORMAL_HTTP_TO_IP"),
            (1.0, "CONTENT_AFTER_HTML_WEAK"),
            (-1.0, "ALL_TRUSTED"),
        ]
        assert verdict.rules[3].description == (
            "URI: URI host has a public dotted-decimal IPv4 address [URI: 1.2.3.4]"
        )
        assert verdict.rules[4].description == "More content after HTML close tag"

    def test_what_is_counted(self) -> None:
        """Rules that repeat another check are shown with the reason, without their points."""
        verdict = read_verdict("True ; 1003.0 / 5.0", REPORT)
        assert verdict.counted_points == 1001.2
        uncounted = [rule.name for rule in verdict.rules if not rule.counts]
        assert uncounted == ["MISSING_DATE", "NO_RELAYS", "ALL_TRUSTED"]
        assert all(rule.not_counted.endswith(".") for rule in verdict.rules if not rule.counts)

    def test_no_rule_hits(self) -> None:
        """A mail without a matching rule has no rules and no points."""
        verdict = read_verdict("False ; 0.0 / 5.0", table())
        assert verdict == FilterVerdict(0.0, 5.0, False, ())
        assert verdict.counted_points == 0

    @rows(
        ("", table()),
        ("Perhaps ; 0.0 / 5.0", table()),
        ("False ; nan / 5.0", table()),
        ("False ; 0.0", table()),
        ("False ; 99999999.0 / 5.0", table()),
        ("False ; 0.0 / 5.0", ""),
        ("False ; 0.0 / 5.0", "Hello\n"),
        ("False ; 0.0 / 5.0", table("some text")),
        ("False ; 1.0 / 5.0", table("some text", " 1.0 SUBJ_ALL_CAPS  Subject")),
        ("False ; 4.0 / 5.0", table(" 1.0 SUBJ_ALL_CAPS  Subject")),
        ("False ; 1.0 / 5.0", table(" 1.0 SUBJ_ALL_CAPS  Subject", " 9.0 FORGED  text")),
        ("False ; 0.0 / 5.0", table(*[" 0.0 A  text"] * (MAX_RULES + 1))),
    )
    def test_what_is_no_report(self, spam: str, report: str) -> None:
        """An answer that is not SpamAssassin's, or contradicts itself, is rejected."""
        with pytest.raises(ReportUnreadable):
            read_verdict(spam, report)

    def test_rounding_is_no_contradiction(self) -> None:
        """Rules with thousandths are shown as 0.0, and rules from 10 points on without tenths."""
        rules = [f" 0.0 SMALL_{number}  text" for number in range(8)]
        assert read_verdict("False ; 0.3 / 5.0", table(*rules)).points == 0.3
        assert read_verdict("True ; 12.4 / 5.0", table("  12 LARGE  text")).points == 12.4

    def test_descriptions_are_bounded_and_printable(self) -> None:
        """A quotation of the mail has no control characters and a limited length."""
        lines = [" 1.0 URI_HEX  text \x1b[31m\x00", " " * 28 + "x\x85y", *["z" * 70] * 100]
        (rule,) = read_verdict("False ; 1.0 / 5.0", table(*lines)).rules
        assert rule.description.startswith("text [31m x y zzz")
        assert len(rule.description) == MAX_DESCRIPTION

    @given(st.text(), st.text())
    def test_any_text(self, spam: str, report: str) -> None:
        """Any text is parsed or rejected, without another exception."""
        for words in (report, table(report), table(" 1.0 URI_HEX  text", report)):
            for line in (spam, "False ; 1.0 / 5.0"):
                try:
                    verdict = read_verdict(line, words)
                except ReportUnreadable:
                    continue
                assert len(verdict.rules) <= MAX_RULES

    @given(
        st.lists(
            st.tuples(
                st.integers(-99, 99).map(lambda tenths: tenths / 10),
                st.from_regex(r"[A-Z][A-Z0-9_]{1,40}", fullmatch=True),
                st.from_regex(r"[a-z][a-z ,:.]{0,60}", fullmatch=True),
            ),
            max_size=30,
        )
    )
    def test_style_sheets_round_trip(self, rules: list[tuple[float, str, str]]) -> None:
        """Parsing a table as SpamAssassin prints it returns its rules."""
        lines = [f"{points:4.1f} {name:<22} {text}" for points, name, text in rules]
        total = sum(points for points, _, _ in rules)
        verdict = read_verdict(f"False ; {total:.1f} / 5.0", table(*lines))
        read = [(rule.points, rule.name, rule.description) for rule in verdict.rules]
        assert read == [(points, name, " ".join(text.split())) for points, name, text in rules]


class TestCounting:
    """Which rules count."""

    @rows(
        "RCVD_IN_ZEN_BLOCKED",
        "URIBL_BLOCKED",
        "SPF_FAIL",
        "T_SPF_TEMPERROR",
        "SPF_HELO_NONE",
        "DKIM_INVALID",
        "DKIM_ADSP_ALL",
        "T_DKIM_INVALID",
        "DMARC_REJECT",
        "RDNS_NONE",
        "RDNS_DYNAMIC",
        "MISSING_DATE",
        "MISSING_MID",
        "MIME_HTML_ONLY",
        "HELO_DYNAMIC_IPADDR",
        "RCVD_FAKE_HELO_DOTCOM",
        "DYN_RDNS_AND_INLINE_IMAGE",
        "MISSING_FROM",
        "HEADER_FROM_DIFFERENT_DOMAINS",
        "SPOOFED_FREEMAIL",
        "FROM_MISSP_SPF_FAIL",
        "TO_EQ_FM_HTML_ONLY",
        "TO_NO_BRKTS_HTML_ONLY",
        "FSL_BULK_SIG",
        "FROM_FMBLA_NDBLOCKED",
        "ALL_TRUSTED",
        "AWL",
    )
    def test_what_repeats_a_check(self, name: str) -> None:
        """Rules that repeat another check, and similar rules, are not counted."""
        assert why_not_counted(name)

    @rows(
        "GTUBE",
        "SUBJ_ALL_CAPS",
        "HTML_IMAGE_ONLY_04",
        "URI_HEX",
        "MISSING_SUBJECT",
        "MISSING_HEADERS",
        "INVALID_DATE",
        "DATE_IN_PAST_96_XX",
        "INVALID_MSGID",
        "HTML_MIME_NO_HTML_TAG",
        "FROM_MISSPACED",
        "FREEMAIL_FORGED_REPLYTO",
        "BAYES_99",
        "FREEMAIL_FROM",
        "MY_SPF_FAIL",
        "SPF",
        "URIBL",
        "ORDNS_NONE",
        "USER_IN_WELCOMELIST",
    )
    def test_what_is_about_the_content(self, name: str) -> None:
        """Other rules count, even if their names are similar."""
        assert not why_not_counted(name)

    @pytest.mark.interop
    @pytest.mark.skipif(not RULE_FILES.exists(), reason="apt-get install spamassassin")
    def test_every_name_exists(self) -> None:
        """The table contains no rule that SpamAssassin does not have."""
        text = "\n".join(path.read_text("latin-1") for path in RULE_FILES.glob("*.cf"))
        single = [
            "FORGED_SPF_HELO",
            "FROM_MISSP_SPF_FAIL",
            "MISSING_FROM",
            "HEADER_FROM_DIFFERENT_DOMAINS",
            "FREEMAIL_FORGED_FROMDOMAIN",
            "SPOOFED_FREEMAIL",
            "SPOOFED_FREEMAIL_NO_RDNS",
            "FROM_FMBLA_NDBLOCKED",
            "RCVD_FAKE_HELO_DOTCOM",
            "NSL_RCVD_HELO_USER",
            "FSL_NEW_HELO_USER",
            "DYN_RDNS_SHORT_HELO_IMAGE",
            "SHORT_HELO_AND_INLINE_IMAGE",
            "FROM_MISSP_DYNIP",
            "TO_EQ_FM_HTML_ONLY",
            "TO_NO_BRKTS_HTML_ONLY",
            "TO_NO_BRKTS_NORDNS_HTML",
            "FSL_BULK_SIG",
        ]
        assert [name for name in single if not re.search(rf"\b{name}\b", text)] == []
        assert [name for name in single if not why_not_counted(name)] == []

    @pytest.mark.interop
    @pytest.mark.skipif(not RULE_FILES.exists(), reason="apt-get install spamassassin")
    def test_every_family_exists(self) -> None:
        """The table contains all installed rules about lists and authentication."""
        text = "\n".join(path.read_text("latin-1") for path in RULE_FILES.glob("*.cf"))
        names = set(re.findall(r"^\s*(?:header|meta|body|full)\s+([A-Z]\w+)", text, re.MULTILINE))
        family = re.compile(r"(T_)?(RCVD_IN|URIBL|SPF|DKIM|DMARC|RDNS|HELO|ARC)_\w+", re.ASCII)
        found = {name for name in names if family.fullmatch(name)}
        assert len(found) > 100
        assert {name for name in found if not why_not_counted(name)} == set()

    @given(st.lists(st.tuples(st.integers(-50, 500), st.booleans())))
    def test_the_sum_is_that_of_what_counts(self, rules: list[tuple[int, bool]]) -> None:
        """The counted points are the sum of the rules that count, in tenths."""
        verdict = FilterVerdict(
            0.0,
            5.0,
            False,
            tuple(
                FilterRule("A", tenths / 10, "", "" if counts else "x") for tenths, counts in rules
            ),
        )
        expected = sum(tenths for tenths, counts in rules if counts)
        assert round(verdict.counted_points * 10) == expected


@rows(*FilterProblem)
def test_the_filter_is_named(problem: FilterProblem) -> None:
    """The sentences about another filter name it, unless the server has no filter at all."""
    said = unavailable(problem, "rspamd")
    assert said.is_absent == ("SpamAssassin" in said.reason or "turned off" in said.reason)


@rows(*FilterProblem)
def test_every_problem_is_explained(problem: FilterProblem) -> None:
    """Every reason for a missing verdict has a sentence and advice."""
    said = unavailable(problem)
    assert said.problem is problem
    for sentence in (said.reason, said.fix):
        assert sentence[0].isupper()
        assert sentence.endswith(".")


def test_how_to_install_it_is_said() -> None:
    """If SpamAssassin is missing, the report contains the command that installs it."""
    assert "apt install spamassassin spamd" in unavailable(FilterProblem.NOT_INSTALLED).fix


FACTS = TraceFacts(
    envelope_sender="a@example.com",
    recipient="test-abc@mailcheck.example",
    helo_name="mail.example.com",
    client_ip="192.0.2.1",
    client_name="mail.example.com",
    receiving_host="mx.mailcheck.example",
    protocol="ESMTPS",
    mail_id="abc123",
    received_at=instant_of(1_795_300_000),
)

HOSTILE = "x\r\nSubject: forged\r\n\r\nbody"


class TestTraceFields:
    """Return-Path and Received."""

    def test_the_fields(self) -> None:
        """They are at the top, in the format of RFC 5321 4.4, above the unchanged mail."""
        mail = with_trace_fields(b"From: a@example.com\r\n\r\nHello", FACTS)
        assert mail == (
            b"Return-Path: <a@example.com>\r\n"
            b"Received: from mail.example.com (mail.example.com [192.0.2.1])\r\n"
            b"\tby mx.mailcheck.example with ESMTPS id abc123\r\n"
            b"\tfor <test-abc@mailcheck.example>; Sat, 21 Nov 2026 22:26:40 +0000\r\n"
            b"From: a@example.com\r\n\r\nHello"
        )
        date = email.message_from_bytes(mail)["Received"].rpartition(";")[2]
        assert parsedate_to_datetime(date) == datetime.fromtimestamp(1_795_300_000, UTC)

    def test_what_is_not_known(self) -> None:
        """A null sender and a missing name or HELO are written as receivers do."""
        facts = TraceFacts("", "", "", "", "", "", "", "", instant_of(0))
        assert with_trace_fields(b"", facts).startswith(
            b"Return-Path: <>\r\nReceived: from unknown (unknown [unknown])\r\n"
            b"\tby localhost with SMTP id unknown\r\n"
        )

    @rows(
        ("192.0.2.1", "[192.0.2.1]"),
        ("2001:DB8::1", "[IPv6:2001:db8::1]"),
        ("::ffff:192.0.2.1", "[192.0.2.1]"),
        ("not an address", "[unknown]"),
    )
    def test_the_address(self, address: str, literal: str) -> None:
        """The client's address is a literal of RFC 5321 4.1.3."""
        facts = TraceFacts("", "", "", address, "", "", "", "", instant_of(0))
        assert f"(unknown {literal})".encode() in with_trace_fields(b"", facts)

    @given(st.lists(st.text() | st.just(HOSTILE), min_size=8, max_size=8))
    def test_nothing_is_injected(self, words: list[str]) -> None:
        """Any values of the client result in exactly two fields above the mail."""
        names = [field.name for field in fields(TraceFacts)][:-1]
        said: dict[str, Any] = dict(zip(names, words, strict=True))
        facts = replace(FACTS, **said)
        mail = with_trace_fields(b"From: a@example.com\r\n\r\n", facts)
        parsed = email.message_from_bytes(mail, policy=policy.compat32)
        assert parsed.keys() == ["Return-Path", "Received", "From"]
        lines = mail.split(b"\r\n")
        assert [line[:1] for line in lines] == [b"R", b"R", b"\t", b"\t", b"F", b"", b""]
        assert not any(b"\n" in line or b"\r" in line for line in lines)


def multipart(*parts: tuple[str, bytes]) -> bytes:
    """Return a mail with these parts: header lines and body."""
    pieces = [b"From: a@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"]
    for header, body in parts:
        pieces.append(b"--b\r\n" + header.encode() + b"\r\n\r\n" + body + b"\r\n")
    return b"".join([*pieces, b"--b--\r\n"])


TEXT = ("Content-Type: text/plain", b"Hello")
PDF = 'Content-Type: application/pdf; name="a.pdf"\r\nContent-Disposition: attachment'


class TestFittingMails:
    """The mail that is sent to the filter."""

    def test_a_small_mail(self) -> None:
        """A mail within the limit is sent unchanged, except for a missing final line break."""
        mail = multipart(TEXT, (PDF, b"JVBERi0x"))
        fitted = shrink_for_filter(mail, len(mail))
        assert fitted is not None
        assert (fitted.raw_message, fitted.left_out) == (mail, 0)
        unended = shrink_for_filter(b"a: b\r\n\r\ntext", 100)
        assert unended is not None
        assert unended.raw_message == b"a: b\r\n\r\ntext\r\n"

    def test_attachments_are_left_out(self) -> None:
        """From a large mail the largest attachments are removed; their headers stay."""
        large, small = (PDF, b"L" * 5_000), (PDF, b"s" * 300)
        fitted = shrink_for_filter(multipart(TEXT, small, large), 1_000)
        assert fitted is not None
        assert fitted.raw_message == multipart(TEXT, small, (PDF, b""))
        assert fitted.left_out == 5_000

    def test_text_is_never_left_out(self) -> None:
        """A mail whose text alone is too large is not sent."""
        text = ("Content-Type: text/html", b"x" * 2_000)
        assert shrink_for_filter(multipart(TEXT, text, (PDF, b"y" * 5_000)), 1_000) is None
        assert shrink_for_filter(b"Subject: a\r\n\r\n" + b"x" * 2_000, 1_000) is None

    def test_text_that_is_attached(self) -> None:
        """A text file is an attachment too; a mail that is a single image has no text."""
        text = ("Content-Type: text/csv\r\nContent-Disposition: attachment", b"x" * 2_000)
        fitted = shrink_for_filter(multipart(TEXT, text), 1_000)
        assert fitted is not None
        assert fitted.left_out == 2_000
        picture = shrink_for_filter(
            b"Content-Type: image/png\r\n\r\n" + b"x" * 2_000 + b"\n", 1_000
        )
        assert picture is not None
        assert picture.raw_message == b"Content-Type: image/png\r\n\r\n"

    @given(st.binary(max_size=3_000), st.integers(2, 1_000))
    def test_any_mail(self, mail: bytes, limit: int) -> None:
        """Any result is within the limit, and its removed octets are counted."""
        fitted = shrink_for_filter(mail, limit)
        if fitted is not None:
            assert len(fitted.raw_message) <= limit
            assert 0 <= len(fitted.raw_message) + fitted.left_out - len(mail) <= 2
