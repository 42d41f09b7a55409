"""DMARC and TLS reports as different reporters write them, and the summaries of senders."""

import json
import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mailcheck.checks.receiver_reports.aggregate import (
    AggregateReport,
    ReportedRow,
    Row,
    Signature,
    SpfCheck,
    rows_of_report,
)
from mailcheck.checks.receiver_reports.aggregate_xml import parse_aggregate_report
from mailcheck.checks.receiver_reports.limits import MAX_COUNT
from mailcheck.checks.receiver_reports.overview import overview_of
from mailcheck.checks.receiver_reports.reading import (
    RejectedDocument,
    read_report_file,
    read_report_files,
    read_report_mail,
)
from mailcheck.checks.receiver_reports.sender_texts import advise, explain
from mailcheck.checks.receiver_reports.senders import Cause, Sender, find_cause
from mailcheck.checks.receiver_reports.tls import TlsReport, parse_tls_report, sessions_of
from mailcheck.core.errors import ReportRefused
from mailcheck.core.instants import Instant
from tests.corpus.report_files import document, gzipped, report_mail, zipped
from tests.table import rows

Pack = Callable[[bytes], bytes]


def as_it_is(data: bytes) -> bytes:
    """Return the data unpacked."""
    return data


def with_line_end(data: bytes) -> bytes:
    """Compress with gzip as Mimecast does, with a line end after the data."""
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
    """Return a parsed report of the corpus."""
    return parse_aggregate_report(document(name))


@rows(*REPORTERS)
def test_each_reporter_is_read(
    name: str,
    organisation: str,
    messages: int,
    failing: int,
    pack: Pack,
    content_type: str,
    text: str | None,
) -> None:
    """A report is the same from its mail, its packed file and its XML, with any media type."""
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
    """Results, scopes, selectors and reasons of a row are kept in a single spelling."""
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
    """Fastmail sends the file as an inline part; its name says that it is a report."""
    mail = report_mail(gzipped(document("fastmail.xml")), "application/gzip", "f.xml.gz")
    assert b"Content-Disposition: attachment" in mail
    inline = mail.replace(b"Content-Disposition: attachment", b"Content-Disposition: inline")
    assert read_report_mail(inline) == [parsed("fastmail.xml")]


def test_the_largest_count() -> None:
    """A row may have a billion messages; a larger count is rejected."""
    text = document("google.xml").decode()
    large = parse_aggregate_report(text.replace(">120<", f">{MAX_COUNT}<").encode())
    assert large.messages == MAX_COUNT + 3
    over = parse_aggregate_report(text.replace(">120<", f">{MAX_COUNT + 1}<").encode())
    assert over.messages == 3


def test_equal_rows_are_counted_together() -> None:
    """Rows that differ only in their count are merged; a mail with two reports has two."""
    text = document("seznam.xml").decode()
    start, end = text.index("<record>"), text.index("</record>") + len("</record>")
    twice = (text[:end] + text[start:end] + text[end:]).encode()
    report = parse_aggregate_report(twice)
    assert list(report.rows.values()) == [6]
    assert len(read_report_file(zipped(gzipped(twice), "report.xml.gz"))) == 1


@rows(b"", b"\n", b"\n\n<?xml version='1.0'?>\n")
def test_reports_behind_each_other_are_read_apart(between: bytes) -> None:
    """A file with two reports has two, each with its own rows; too many are rejected."""
    one = document("seznam.xml").strip()
    body = one[one.index(b"<feedback") :]
    alone = parse_aggregate_report(one)
    assert read_report_file(one + between + body) == [alone, alone]
    with pytest.raises(ReportRefused, match="over 10 reports"):
        read_report_file(one + (between + body) * 10)


@rows(
    ("pass", "pass"),
    ("hardfail", "fail"),
    ("unknown", "temperror"),
    ("Unknown", "temperror"),
    ("error", "permerror"),
    ("temp_error", "temperror"),
    ("PermError", "permerror"),
    ("none", "none"),
    ("nonsense", ""),
)
def test_results_are_read_as_they_are_meant(written: str, read: str) -> None:
    """`unknown` is a temporary and `error` a permanent error (RFC 7489 appendix C)."""
    text = document("seznam.xml").decode()
    start = text.index("<auth_results>")
    evidence = (
        f"<auth_results><dkim><domain>example.org</domain><result>{written}</result></dkim>"
        f"<spf><domain>example.org</domain><result>{written}</result></spf></auth_results>"
    )
    end = text.index("</auth_results>") + len("</auth_results>")
    (row,) = parse_aggregate_report((text[:start] + evidence + text[end:]).encode()).rows
    assert [one.result for one in row.signatures] == [read]
    assert [one.result for one in row.spf_checks] == [read]


@rows(
    ("forwarded", ("forwarded",)),
    ("mailing_list: a list", ("mailing_list: a list",)),
    ("somebody's rule", ("other: somebody's rule",)),
    ("<type>local_policy</type><comment>arc=pass</comment>", ("local_policy: arc=pass",)),
    ("", ()),
)
def test_a_reason_may_be_text(written: str, read: tuple[str, ...]) -> None:
    """A reason counts whether it is written with elements or as text."""
    text = (
        document("seznam.xml")
        .decode()
        .replace("</policy_evaluated>", f"<reason>{written}</reason></policy_evaluated>")
    )
    assert {row.reasons for row in parse_aggregate_report(text.encode()).rows} == {read}


def test_names_outside_ascii_are_those_of_dns() -> None:
    """A domain in Unicode is converted to A-labels everywhere."""
    text = document("google.xml").decode().replace("example.org", "Bücher.example")
    report = parse_aggregate_report(text.encode())
    name = "xn--bcher-kva.example"
    assert report.domain == name
    for found in report.rows:
        assert found.header_from == name
        assert {one.domain for one in found.signatures} <= {name, "lists.example.net"}
        assert {one.domain for one in found.spf_checks} <= {name, "lists.example.net"}


@rows(
    ("302832000", "before 2012, when DMARC did not exist"),
    ("-1", "before 2012, when DMARC did not exist"),
    ("1795046400000", "after 2100; it must be in seconds since 1970"),
    ("yesterday", "not a number of seconds since 1970"),
)
def test_invalid_times_have_a_reason(begin: str, reason: str) -> None:
    """An impossible time is rejected with its value and the reason."""
    text = re.sub("<begin>.*</begin>", f"<begin>{begin}</begin>", document("google.xml").decode())
    with pytest.raises(ReportRefused) as refused:
        parse_aggregate_report(text.encode())
    assert str(refused.value) == f'the begin of its period is "{begin}", {reason}'


def by_spf(result: str, domain: str = "example.org") -> dict[str, object]:
    """Return the SPF result of a row."""
    return {"spf_checks": (SpfCheck(domain, "mfrom", result),)}


def by_dkim(result: str, domain: str = "example.org", selector: str = "k") -> dict[str, object]:
    """Return the only signature of a row."""
    return {"signatures": (Signature(domain, selector, result),)}


def reason_and_advice(**changes: object) -> tuple[str, str]:
    """Return why the mail of a row fails, and what to do."""
    seen = ReportedRow(row(**changes), 3, "r.example", Instant(0), Instant(0))
    (sender,) = overview_of("example.org", [seen], "none", {}).senders
    return explain(sender), advise(sender)


@rows(
    ("spf fail", "does not authorize", "add its addresses to the SPF record of example.org"),
    ("spf permerror", "cannot use the SPF record of example.org", "Correct the SPF record of"),
    ("spf none", "there is no SPF record at example.org", "publish an SPF record at example.org"),
    ("spf temperror", "no DNS answer about example.org", "No record needs to change"),
    ("dkim fail", "cannot verify with k._domainkey.example.org", "publish its DKIM key at k."),
    ("dkim permerror", "cannot use the key at k._domainkey.example.org", "its complete DKIM key"),
    ("dkim none", "had no DKIM signature", "turn on DKIM signing for example.org"),
    ("dkim temperror", "no DNS answer about k._domainkey", "No record needs to change"),
)
def test_each_failure_has_its_own_sentence(failure: str, cause: str, fix: str) -> None:
    """A broken, missing or unanswered record is not a record without the host or another key."""
    mechanism, result = failure.split()
    meaning, advice = reason_and_advice(
        **(by_spf(result) if mechanism == "spf" else by_dkim(result))
    )
    assert cause in meaning
    assert fix in advice


def test_invalid_rows_are_left_out_and_reported() -> None:
    """A row with a negative count or an invalid address is left out; the others count."""
    text = document("google.xml").decode()
    report = parse_aggregate_report(text.replace(">120<", ">-120<").encode())
    assert report.messages == 3
    assert report.problems == ("row 1 is left out: it counts -120 messages",)
    report = parse_aggregate_report(text.replace("192.0.2.10", "192.0.2.999").encode())
    assert report.problems == ('row 1 is left out: "192.0.2.999" is not an IP address',)


FETCH_ERROR = "sts-policy-fetch-error"


@rows(
    ("google.json", "example.org", 40, [("certificate-expired", 2)]),
    ("microsoft.json", "example.org", 12, []),
    ("mailru.json", "example.org", 0, [(FETCH_ERROR, 1), (FETCH_ERROR, 2)]),
    (
        "rfc8460.json",
        "company-y.example",
        5326,
        [("certificate-expired", 100), ("starttls-not-supported", 200), ("validation-failure", 3)],
    ),
)
def test_tls_reports_are_read(
    name: str, domain: str, successful: int, failures: list[tuple[str, int]]
) -> None:
    """A TLS report is read from its mail, packed or not, with each reporter's number format."""
    mail = report_mail(gzipped(document(name)), "application/tlsrpt+gzip", "x.json.gz")
    (report,) = read_report_mail(mail)
    assert [report] == read_report_file(document(name))
    assert isinstance(report, TlsReport)
    (policy,) = report.policies
    assert (policy.domain, policy.successful) == (domain, successful)
    assert [(one.result, one.sessions) for one in policy.failures] == failures


def row(**changes: object) -> Row:
    """Return a failing row."""
    known = {
        "source": "192.0.2.1",
        "disposition": "none",
        "dkim": "fail",
        "spf": "fail",
        "header_from": "example.org",
    }
    return Row(**{**known, **changes})  # type: ignore[arg-type]


@rows(
    (Cause.PASSES, {"dkim": "pass"}),
    (Cause.NOTHING, {}),
    (Cause.NOTHING, by_spf("fail", "other.example")),
    (Cause.OTHER_DOMAIN, by_dkim("pass", "mailer.example")),
    (Cause.OTHER_DOMAIN, by_spf("pass", "b.mailer.example")),
    (Cause.OWN_SPF, by_spf("softfail", "bounce.example.org")),
    (Cause.OWN_SIGNATURE, by_dkim("fail")),
    (Cause.OWN_KEY, by_dkim("permerror")),
    (Cause.NO_ANSWER, by_dkim("temperror")),
    (Cause.UNSIGNED, by_dkim("none", selector="")),
    (Cause.OWN_SPF_BROKEN, by_spf("permerror")),
    (Cause.OWN_SPF_ABSENT, by_spf("none")),
    (Cause.NO_ANSWER, by_spf("temperror")),
    (
        Cause.NO_ANSWER,
        {
            "signatures": (
                Signature("example.org", "k", "temperror"),
                Signature("bounce.example", "p", "pass"),
            ),
            **by_spf("pass", "bounce.example"),
        },
    ),
    (Cause.OWN_SPF, {**by_dkim("temperror"), **by_spf("fail")}),
    (Cause.FORWARDED, {"reasons": ("mailing_list: known",)}),
    (Cause.FORWARDED, {"reasons": ("local_policy: arc=pass as.1.list.example=pass",)}),
    (Cause.MAYBE_FORWARDED, {**by_dkim("fail"), **by_spf("pass", "forwarder.example")}),
)
def test_why_mail_fails(cause: Cause, changes: dict[str, object]) -> None:
    """The cause of a failure follows from the results of the receiver."""
    assert find_cause(row(**changes)) is cause


def corpus_overview(hosts: dict[str, str]) -> tuple[Sender, ...]:
    """Return the senders of the whole corpus."""
    seen = [
        one
        for name, organisation, *_ in REPORTERS
        for one in rows_of_report(parsed(name), organisation)
    ]
    overview = overview_of("example.org", seen, "none", hosts)
    assert overview.messages == sum(messages for _, _, messages, *_ in REPORTERS)
    assert overview.failing == sum(failing for _, _, _, failing, *_ in REPORTERS)
    assert overview.mail.forwarded == 4
    assert next(iter(overview.reporters)) == "Sample Reporter"
    return overview.senders


def test_senders_are_named_and_sorted() -> None:
    """Unknown failing senders come first, named by their authenticated domain or host name."""
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
        "51 messages came from addresses that the SPF record of example.org does not authorize."
    )
    assert "add its addresses to the SPF record of example.org" in advise(newsletter)
    assert mailing_list.cause is Cause.FORWARDED
    assert advise(own) == "No action is needed."
    assert "p=reject stops this mail" in advise(forger)
    assert own.is_known
    assert not newsletter.is_known


INTACT = Signature("example.org", "k", "pass")
BROKEN_ONE = Signature("example.org", "k", "fail")
RELAYED = SpfCheck("list.example", "mfrom", "pass")


def overview_of_rows(*rows: tuple[Row, int]) -> dict[str, Sender]:
    """Return the senders of rows by name."""
    day = Instant(1_794_960_000_000)
    seen = [ReportedRow(one, messages, "google.com", day, day) for one, messages in rows]
    return {one.name: one for one in overview_of("example.org", seen, "none", {}).senders}


OWN_MAIL = (
    row(
        dkim="pass",
        spf="pass",
        signatures=(INTACT,),
        spf_checks=(SpfCheck("example.org", "mfrom", "pass"),),
    ),
    100,
)


def test_a_host_that_passes_on_intact_signatures_forwards() -> None:
    """Signatures of another sender that arrive intact show that a broken one was forwarded."""
    broken = row(source="198.51.100.9", signatures=(BROKEN_ONE,), spf_checks=(RELAYED,))
    intact = row(source="198.51.100.9", dkim="pass", signatures=(INTACT,), spf_checks=(RELAYED,))
    relay = overview_of_rows(OWN_MAIL, (broken, 2), (intact, 5))["list.example"]
    assert (relay.forwarded, relay.survived, relay.failing, relay.messages) == (2, 5, 2, 7)
    assert relay.cause is Cause.FORWARDED
    assert relay.is_forwarder
    assert not relay.is_known


def test_a_broken_signature_alone_is_neither_forwarded_nor_forged() -> None:
    """Anyone can add a broken signature, so nothing is claimed about the sender."""
    broken = row(source="198.51.100.9", signatures=(BROKEN_ONE,), spf_checks=(RELAYED,))
    stranger = overview_of_rows(OWN_MAIL, (broken, 2))["list.example"]
    assert stranger.cause is Cause.MAYBE_FORWARDED
    assert (stranger.forwarded, stranger.is_forwarder) == (0, False)
    assert "could not be determined" in explain(stranger)
    known = replace(broken, spf_checks=(SpfCheck("srs.improvmx.com", "mfrom", "pass"),))
    forwarder = overview_of_rows(OWN_MAIL, (known, 2))["ImprovMX"]
    assert (forwarder.key, forwarder.cause) == ("improvmx", Cause.FORWARDED)
    assert forwarder.is_forwarder


def test_a_sender_with_a_signature_of_its_own_does_not_forward() -> None:
    """A service that signs for the domain with its own selector sends, and is authorized."""
    own = Signature("example.org", "service", "pass")
    sent = row(source="198.51.100.9", dkim="pass", signatures=(own,), spf_checks=(RELAYED,))
    failed = row(source="198.51.100.9", signatures=(), spf_checks=(RELAYED,))
    sender = overview_of_rows(OWN_MAIL, (sent, 9), (failed, 1))["list.example"]
    assert (sender.survived, sender.is_known, sender.is_forwarder) == (0, True, False)
    assert sender.cause is Cause.OTHER_DOMAIN


def test_services_have_their_names() -> None:
    """A sender is a service of the catalogue, by its envelope sender or its host name."""
    envelope = SpfCheck("em7.sendgrid.net", "mfrom", "pass")
    by_envelope = overview_of_rows((row(spf_checks=(envelope,)), 1))
    assert [one.key for one in by_envelope.values()] == ["sendgrid"]
    assert "If SendGrid sends for you" in advise(by_envelope["SendGrid"])
    day = Instant(1_794_960_000_000)
    seen = [ReportedRow(row(), 1, "google.com", day, day)]
    hosts = {"192.0.2.1": "mail-1.mcsv.net"}
    (sender,) = overview_of("example.org", seen, "none", hosts).senders
    assert (sender.key, sender.name) == ("mailchimp", "Mailchimp")


def test_days_are_whole() -> None:
    """A report counts for the day on which it begins, even if it begins in the middle."""
    (seen,) = rows_of_report(parsed("seznam.xml"), "seznam.cz")
    assert seen.first_day == seen.last_day == Instant(1_794_960_000_000)


NO_POLICY_DOMAIN = "it has no policy-domain, and neither its mail nor the name of its file has one"


def tls_report(**changes: object) -> bytes:
    """Return Google's TLS report with other values."""
    return json.dumps({**json.loads(document("google.json")), **changes}).encode()


def of_policy(policy: dict[str, str]) -> bytes:
    """Return a TLS report with one policy."""
    return tls_report(policies=[{"policy": policy}])


def of_days(start: str, end: str) -> bytes:
    """Return a TLS report with a period."""
    return tls_report(**{"date-range": {"start-datetime": start, "end-datetime": end}})


@rows(
    (b"no JSON", "it is not JSON"),
    (b"[]", "it is JSON, but not a TLS report: it is not an object"),
    (tls_report(policies=[]), "it has no policies"),
    (tls_report(policies=None), "it has no policies"),
    (of_policy({"policy-type": "no-policy-found"}), f"policy 1 is left out: {NO_POLICY_DOMAIN}"),
    (
        of_policy({"policy-domain": "b d"}),
        'policy 1 is left out: its policy-domain is "b d", not a domain',
    ),
    (tls_report(**{"date-range": 5}), 'its start-datetime is "", not a time'),
    (of_days("yesterday", "today"), 'its start-datetime is "yesterday", not a time'),
    (
        of_days("2026-11-19T00:00:00Z", "2026-11-18T00:00:00Z"),
        "its period ends before it begins, or is longer than a month",
    ),
)
def test_invalid_tls_reports_are_rejected(data: bytes, reason: str) -> None:
    """An invalid TLS report is rejected with the reason."""
    with pytest.raises(ReportRefused) as refused:
        parse_tls_report(data)
    assert str(refused.value) == reason


NO_DOMAIN = tls_report(
    policies=[
        {
            "policy": {"policy-type": "no-policy-found"},
            "summary": {"total-successful-session-count": 2, "total-failure-session-count": 0},
        }
    ]
)


def test_a_policy_without_a_domain_has_that_of_its_report() -> None:
    """The domain comes from the mail, the file name, or the other policies."""
    name = "sender.example!example.org!1795046400!1795132799!001.json.gz"
    mail = report_mail(gzipped(NO_DOMAIN), "application/tlsrpt+gzip", "x.json.gz")
    field = b"TLS-Report-Domain: example.org\r\n"
    whole = json.loads(document("google.json"))
    both = tls_report(policies=[*whole["policies"], *json.loads(NO_DOMAIN)["policies"]])
    for found in (
        read_report_file(gzipped(NO_DOMAIN), f"/tmp/{name}"),
        read_report_mail(report_mail(gzipped(NO_DOMAIN), "application/gzip", name)),
        read_report_mail(field + mail),
        read_report_file(both),
    ):
        (report,) = found
        assert isinstance(report, TlsReport)
        assert {one.domain for one in report.policies} == {"example.org"}
        assert report.policies[-1].successful == 2
        assert not report.problems
    (refused,) = read_report_mail(mail)
    assert isinstance(refused, RejectedDocument)
    assert "no policy-domain" in refused.why


@rows(
    (None, 0, "is null, and counts as 0"),
    (3.0, 3, ""),
    ("3", 3, ""),
    ("3.5", None, "is 3.5, not a number"),
    (3.5, None, "is 3.5, not a number"),
    (-1, None, "is -1, not a number"),
)
def test_counts_of_sessions(count: object, read: int | None, problem: str) -> None:
    """A null count or a fraction of zero is accepted; other values are reported."""
    (policy,) = json.loads(document("google.json"))["policies"]
    summary = {"total-successful-session-count": count, "total-failure-session-count": 1}
    data = tls_report(policies=[{**policy, "summary": summary}])
    if read is None:
        with pytest.raises(ReportRefused) as refused:
            parse_tls_report(data)
        assert problem in str(refused.value)
        return
    report = parse_tls_report(data)
    assert (report.policies[0].successful, report.policies[0].failed) == (read, 1)
    assert len(report.problems) == bool(problem)
    assert problem in "".join(report.problems)


@rows("utf-8-sig", "utf-16")
def test_a_byte_order_mark_is_skipped(encoding: str) -> None:
    """JSON is decoded in every encoding of Unicode with a byte order mark."""
    text = document("google.json").decode()
    assert read_report_file(text.encode(encoding)) == read_report_file(text.encode())


def test_every_mail_of_a_mailbox_counts() -> None:
    """An mbox file has the reports of all its mails, and names a mail without one."""
    reports = ["google.xml", "gmx.xml", "seznam.xml"]
    mails = [
        report_mail(gzipped(document(name)), "application/gzip", f"{name}.gz") for name in reports
    ]
    mails.insert(1, b"Subject: hello\r\n\r\n>From here no report.\r\n")
    box = b"".join(b"From r@r.example Fri Nov 20 03:00:00 2026\r\n" + m + b"\r\n" for m in mails)
    for data in (box, box.replace(b"\r\n", b"\n")):
        found = read_report_files(data)
        assert [one for one in found if not isinstance(one, RejectedDocument)] == list(
            map(parsed, reports)
        )
        (refused,) = [one for one in found if isinstance(one, RejectedDocument)]
        assert refused.why.startswith("mail 2: ")
    assert read_report_files(mails[0]) == [parsed("google.xml")]


def test_invalid_parts_of_a_tls_report() -> None:
    """Invalid parts are left out and reported.

    Numbers as text, single items without a list, and failures without details are accepted.
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
        'policy 2 is left out: its policy-domain is "no domain", not a domain',
        "policy 3 is left out: its total-successful-session-count is true, not a number",
        "a failure of policy 4 is left out: its failed-session-count is -1, not a number",
        "policy 5 is left out: it is not an object",
    )
    ended = [(one.result, count) for one, count in sessions_of(report, "example.org")]
    assert ended == [("", 40), ("starttls-not-supported", 2), ("unknown", 3), ("unknown", 1)]
    assert list(sessions_of(report, "other.example")) == []
