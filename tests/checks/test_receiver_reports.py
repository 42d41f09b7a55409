"""Reports of receivers, as each of them writes them: what is read, and what is said about it."""

import json
from collections.abc import Callable

import pytest

from mailcheck.checks.receiver_reports.aggregate import (
    AggregateReport,
    Row,
    Signature,
    SpfCheck,
    parse_aggregate_report,
)
from mailcheck.checks.receiver_reports.limits import MAX_COUNT
from mailcheck.checks.receiver_reports.reading import read_report_file, read_report_mail
from mailcheck.checks.receiver_reports.senders import (
    Cause,
    Sender,
    advise,
    explain,
    find_cause,
    overview_of,
    seen_in,
)
from mailcheck.checks.receiver_reports.tls import TlsReport, parse_tls_report, sessions_of
from mailcheck.core.errors import ReportRefused
from mailcheck.core.instants import Instant
from tests.corpus.report_files import document, gzipped, report_mail, zipped

Pack = Callable[[bytes], bytes]


def as_it_is(data: bytes) -> bytes:
    """Pack nothing."""
    return data


def with_line_end(data: bytes) -> bytes:
    """Pack with gzip as Mimecast does: a line end is behind it."""
    return gzipped(data) + b"\r\n"


REPORTERS: list[tuple[str, str, int, int, Pack, str, str | None]] = [
    # file, organisation, messages, of these failing, packed, sent as, text beside it
    ("google.xml", "google.com", 123, 3, zipped, "application/zip", None),
    ("yahoo.xml", "Yahoo", 41, 41, gzipped, "application/gzip", "This is a report\n"),
    ("microsoft.xml", "Enterprise Outlook", 19, 2, gzipped, "application/gzip", "<html>hi</html>"),
    ("aol.xml", "AOL", 5, 0, as_it_is, "text/xml", "a report\n"),
    ("fastmail.xml", "FastMail Pty Ltd", 4, 4, gzipped, "application/gzip", "a report\n"),
    ("mailru.xml", "Mail.Ru", 10, 1, gzipped, "application/gzip", "a report\n"),
    ("comcast.xml", "comcast.net", 22, 0, gzipped, "application/x-gzip", "a report\n"),
    ("linkedin.xml", "LinkedIn", 6, 6, gzipped, "text/xml", "a report\n"),
    ("amazonses.xml", "AMAZON-SES", 2, 0, gzipped, "application/octet-stream", "a report\n"),
    ("gmx.xml", "GMX", 43, 12, gzipped, "application/gzip", "a report\n"),
    ("mailru_old.xml", "Mail.Ru", 4, 0, zipped, "application/x-zip-compressed", "a report\n"),
    ("mimecast.xml", "mimecast.org", 9, 1, with_line_end, "application/gzip", None),
    ("zoho.xml", "zoho.com", 3, 0, zipped, "application/zip", "a report\n"),
    ("rackspace.xml", "emailsrvr.com", 2, 0, gzipped, "application/gzip", "a report\n"),
    ("gateway.xml", "", 1, 0, gzipped, "application/gzip", "a report\n"),
    ("proofpoint.xml", "Proofpoint", 14, 0, gzipped, "application/x-gzip-compressed", "x\n"),
    ("seznam.xml", "seznam.cz a.s.", 3, 0, zipped, "application/octet-stream", "a report\n"),
    ("odd_case.xml", "Old Appliance", 7, 0, as_it_is, "application/xml", None),
    ("rfc9990.xml", "Sample Reporter", 127, 4, gzipped, "application/gzip", "a report\n"),
]


def parsed(name: str) -> AggregateReport:
    """Read a report of the corpus."""
    return parse_aggregate_report(document(name))


@pytest.mark.parametrize(
    ("name", "organisation", "messages", "failing", "pack", "content_type", "text"), REPORTERS
)
def test_each_reporter_is_read(
    name: str,
    organisation: str,
    messages: int,
    failing: int,
    pack: Pack,
    content_type: str,
    text: str | None,
) -> None:
    """A report is the same from its mail, its packed file and itself, whatever its type is."""
    packed = pack(document(name))
    mail = report_mail(packed, content_type, name + ".gz", text=text)
    (report,) = read_report_mail(mail)
    assert isinstance(report, AggregateReport)
    assert read_report_file(mail) == read_report_file(packed) == [report] == [parsed(name)]
    assert (report.organisation, report.domain, report.messages) == (
        organisation,
        "example.org",
        messages,
    )
    assert sum(count for row, count in report.rows.items() if not row.passes) == failing
    assert {row.header_from for row in report.rows} == {"example.org"}
    assert report.begins_at < report.ends_at
    assert report.report_id
    assert not report.problems


def test_all_of_a_row_is_kept() -> None:
    """Results, scopes, selectors and reasons of a row are there, in one spelling."""
    by_source = {row.source: row for row in parsed("rfc9990.xml").rows}
    assert by_source["192.0.2.10"] == Row(
        source="192.0.2.10",
        disposition="none",
        dkim="pass",
        spf="fail",
        header_from="example.org",
        envelope_from="example.org",
        signatures=(Signature("example.org", "abc123", "pass"),),
        spf_checks=(SpfCheck("example.org", "mfrom", "fail"),),
    )
    reasons = by_source["203.0.113.66"].reasons
    assert reasons == ("policy_test_mode", "local_policy: known sender")
    policy = parsed("rfc9990.xml").policy
    assert (policy.policy, policy.testing, policy.discovery) == ("quarantine", "n", "treewalk")
    (odd,) = parsed("odd_case.xml").rows
    assert odd.source == "192.0.2.10"
    assert odd.signatures == (Signature("example.org", "S2026", "pass"),)
    assert odd.spf_checks == (SpfCheck("example.org", "", "fail"),)
    (gateway,) = parsed("gateway.xml").rows
    assert (gateway.reasons, gateway.signatures) == ((), (Signature("", "", "fail"),))
    assert gateway.spf_checks == (SpfCheck("", "", "none"),)
    (zoho,) = parsed("zoho.xml").rows
    assert zoho.signatures == (Signature("example.org", "s2026", "pass"),)
    assert zoho.spf_checks == (SpfCheck("", "helo", "none"),)
    gmx = parsed("gmx.xml").policy
    assert (gmx.discovery, gmx.testing, gmx.percent) == ("psl", "n", "")
    (comcast,) = parsed("comcast.xml").rows
    assert [one.selector for one in comcast.signatures] == ["s2026", "s2025"]


def test_a_report_that_is_shown_in_its_mail() -> None:
    """Fastmail sends the file as a part that is to be shown inline; its name says what it is."""
    mail = report_mail(gzipped(document("fastmail.xml")), "application/gzip", "f.xml.gz")
    assert b"Content-Disposition: attachment" in mail
    inline = mail.replace(b"Content-Disposition: attachment", b"Content-Disposition: inline")
    assert read_report_mail(inline) == [parsed("fastmail.xml")]


def test_counts_as_large_as_they_get() -> None:
    """A billion messages of one row are believed, more are no count that anybody has."""
    text = document("google.xml").decode()
    large = parse_aggregate_report(text.replace(">120<", f">{MAX_COUNT}<").encode())
    assert large.messages == MAX_COUNT + 3
    over = parse_aggregate_report(text.replace(">120<", f">{MAX_COUNT + 1}<").encode())
    assert over.messages == 3


def test_equal_rows_are_counted_together() -> None:
    """Rows that differ in nothing but their count are one; a mail with two reports has two."""
    text = document("seznam.xml").decode()
    start, end = text.index("<record>"), text.index("</record>") + len("</record>")
    twice = (text[:end] + text[start:end] + text[end:]).encode()
    report = parse_aggregate_report(twice)
    assert list(report.rows.values()) == [6]
    assert len(read_report_file(zipped(gzipped(twice), "report.xml.gz"))) == 1


def test_rows_that_cannot_be_true_are_left_out_and_said() -> None:
    """A negative count or an address that is none loses its row, and no other."""
    text = document("google.xml").decode()
    report = parse_aggregate_report(text.replace(">120<", ">-120<").encode())
    assert report.messages == 3
    assert report.problems == ("row 1 is left out: it counts -120 messages",)
    report = parse_aggregate_report(text.replace("192.0.2.10", "192.0.2.999").encode())
    assert report.problems == ('row 1 is left out: "192.0.2.999" is no IP address',)


@pytest.mark.parametrize(
    ("name", "domain", "successful", "failures"),
    [
        ("google.json", "example.org", 40, [("certificate-expired", 2)]),
        ("microsoft.json", "example.org", 12, []),
        (
            "mailru.json",
            "example.org",
            0,
            [("sts-policy-fetch-error", 1), ("sts-policy-fetch-error", 2)],
        ),
        (
            "rfc8460.json",
            "company-y.example",
            5326,
            [
                ("certificate-expired", 100),
                ("starttls-not-supported", 200),
                ("validation-failure", 3),
            ],
        ),
    ],
)
def test_tls_reports_are_read(
    name: str, domain: str, successful: int, failures: list[tuple[str, int]]
) -> None:
    """A TLS report is read from its mail, packed or not; hosts and numbers as each writes them."""
    mail = report_mail(gzipped(document(name)), "application/tlsrpt+gzip", "x.json.gz")
    (report,) = read_report_mail(mail)
    assert [report] == read_report_file(document(name))
    assert isinstance(report, TlsReport)
    (policy,) = report.policies
    assert (policy.domain, policy.successful) == (domain, successful)
    assert [(one.result, one.sessions) for one in policy.failures] == failures


def row(**changes: object) -> Row:
    """Make a row that fails."""
    known = {
        "source": "192.0.2.1",
        "disposition": "none",
        "dkim": "fail",
        "spf": "fail",
        "header_from": "example.org",
    }
    return Row(**{**known, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cause", "changes"),
    [
        (Cause.PASSES, {"dkim": "pass"}),
        (Cause.NOTHING, {}),
        (Cause.NOTHING, {"spf_checks": (SpfCheck("other.example", "mfrom", "fail"),)}),
        (Cause.OTHER_DOMAIN, {"signatures": (Signature("mailer.example", "a", "pass"),)}),
        (Cause.OTHER_DOMAIN, {"spf_checks": (SpfCheck("b.mailer.example", "mfrom", "pass"),)}),
        (Cause.OWN_SPF, {"spf_checks": (SpfCheck("bounce.example.org", "mfrom", "softfail"),)}),
        (Cause.OWN_SIGNATURE, {"signatures": (Signature("example.org", "k", "permerror"),)}),
        (Cause.FORWARDED, {"reasons": ("mailing_list: known",)}),
        (Cause.FORWARDED, {"reasons": ("local_policy: arc=pass as.1.list.example=pass",)}),
        (
            Cause.FORWARDED,
            {
                "signatures": (Signature("example.org", "k", "fail"),),
                "spf_checks": (SpfCheck("forwarder.example", "mfrom", "pass"),),
            },
        ),
    ],
)
def test_why_mail_fails(cause: Cause, changes: dict[str, object]) -> None:
    """The cause of a failure follows from what the receiver saw."""
    assert find_cause(row(**changes)) is cause


def corpus_overview(hosts: dict[str, str]) -> tuple[Sender, ...]:
    """Put the whole corpus together."""
    seen = [
        one for name, organisation, *_ in REPORTERS for one in seen_in(parsed(name), organisation)
    ]
    overview = overview_of("example.org", seen, "none", hosts)
    assert overview.messages == sum(messages for _, _, messages, *_ in REPORTERS)
    assert overview.failing == sum(failing for _, _, _, failing, *_ in REPORTERS)
    assert overview.forwarded == 4
    assert next(iter(overview.reporters)) == "Sample Reporter"
    return overview.senders


def test_who_sends_is_named_and_sorted() -> None:
    """Unknown senders that fail come first, called by what vouches for them, then by name."""
    senders = corpus_overview(
        {"203.0.113.66": "host66.bad.example", "192.0.2.10": "mx.example.org"}
    )
    assert [(one.name, one.failing, one.messages) for one in senders] == [
        ("newsmill.example", 51, 51),
        ("bad.example", 18, 18),
        ("example.net", 3, 3),
        ("203.0.113.80", 1, 1),
        ("forwarder.example", 1, 1),
        ("example.org", 0, 371),
    ]
    newsletter, forger, mailing_list, *_, own = senders
    assert newsletter.cause is Cause.OWN_SPF
    assert newsletter.reporters == ("Yahoo", "LinkedIn", "FastMail Pty Ltd")
    assert explain(newsletter) == (
        "51 messages came from addresses that the SPF record of example.org does not let send."
    )
    assert "let its addresses send in the SPF record of example.org" in advise(newsletter)
    assert mailing_list.cause is Cause.FORWARDED
    assert advise(own) == "Nothing is to be done."
    assert "p=reject stops them" in advise(forger)
    assert own.is_known
    assert not newsletter.is_known


def test_days_are_whole() -> None:
    """A report counts for the day in which it begins, also where it begins within it."""
    (seen,) = seen_in(parsed("seznam.xml"), "seznam.cz")
    assert seen.first_day == seen.last_day == Instant(1_794_960_000_000)


def tls_report(**changes: object) -> bytes:
    """Write Google's TLS report with other values."""
    return json.dumps({**json.loads(document("google.json")), **changes}).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no JSON", "it is no JSON"),
        (b"[]", "it is JSON, but no TLS report: it is no object"),
        (tls_report(policies=[]), "it does not say which domain it is about"),
        (tls_report(policies=None), "it does not say which domain it is about"),
        (tls_report(**{"date-range": 5}), 'its start-datetime is "", no time'),
        (
            tls_report(**{"date-range": {"start-datetime": "yesterday", "end-datetime": "today"}}),
            'its start-datetime is "yesterday", no time',
        ),
        (
            tls_report(
                **{
                    "date-range": {
                        "start-datetime": "2026-11-19T00:00:00Z",
                        "end-datetime": "2026-11-18T00:00:00Z",
                    }
                }
            ),
            "its time does not end after it begins, or is over a month",
        ),
    ],
)
def test_what_is_no_tls_report(data: bytes, reason: str) -> None:
    """It is refused with what is wrong with it."""
    with pytest.raises(ReportRefused) as refused:
        parse_tls_report(data)
    assert str(refused.value) == reason


def test_parts_of_a_tls_report_that_make_no_sense() -> None:
    """They are left out and named; numbers as text, single items and failures that are only
    counted are read.
    """
    policy = {"policy-type": "tlsa", "policy-domain": "example.org"}
    failures = [{"failed-session-count": "2", "result-type": "starttls-not-supported"}, 7]
    counted = {"total-successful-session-count": "40", "total-failure-session-count": 5}
    report = parse_tls_report(
        tls_report(
            policies=[
                {"policy": policy, "summary": counted, "failure-details": failures},
                {"policy": {"policy-domain": "no domain"}, "summary": counted},
                {"policy": policy, "summary": {"total-successful-session-count": True}},
                {
                    "policy": policy,
                    "summary": {"total-failure-session-count": 1},
                    "failure-details": {"failed-session-count": -1},
                },
                "nothing",
            ]
        )
    )
    assert report.problems == (
        "policy 2 is left out: it names no domain",
        "policy 3 is left out: its sessions are no number",
        "a failure of policy 4 is left out: its sessions are no number",
        "policy 5 is left out: it names no domain",
    )
    ended = [(one.result, count) for one, count in sessions_of(report, "example.org")]
    assert ended == [("", 40), ("starttls-not-supported", 2), ("unknown", 3), ("unknown", 1)]
    assert list(sessions_of(report, "other.example")) == []
