"""Forms of reports that real receivers send, and the conclusions from them."""

import json

import pytest

from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.receiver_reports.aggregate import (
    AggregateReport,
    ReportedRow,
    Row,
    Signature,
    SpfCheck,
    pack_row,
    pack_rows,
)
from mailcheck.checks.receiver_reports.aggregate_xml import parse_aggregate_report
from mailcheck.checks.receiver_reports.feedback import NoReport, read_feedback_mail
from mailcheck.checks.receiver_reports.origins import count_mail, find_together
from mailcheck.checks.receiver_reports.overview import Overview, overview_of
from mailcheck.checks.receiver_reports.plan import Proposal, StepKind, find_steps
from mailcheck.checks.receiver_reports.report_builder import read_address
from mailcheck.checks.receiver_reports.sender_texts import advise, advise_owner, explain
from mailcheck.checks.receiver_reports.senders import Cause
from mailcheck.checks.receiver_reports.tls import parse_tls_report, sessions_of
from mailcheck.core.domains.receiver_reports import OTHER_SENDERS, SenderDecision
from mailcheck.core.instants import BEGINNING
from mailcheck.operations.reports.plan_policy import SetUp, explain_step
from tests.checks.test_dmarc_plan import failing, mail_of
from tests.table import rows

HEAD = (
    "<feedback><report_metadata><org_name>r.example</org_name><email>d@r.example</email>"
    "<report_id>1</report_id><date_range><begin>1795737600</begin><end>1795823999</end>"
    "</date_range></report_metadata><policy_published><domain>d.example</domain>{tags}"
    "<p>none</p></policy_published>"
)
ROW = "<row><source_ip>{source}</source_ip><count>{count}</count>{evaluated}</row>"
EVALUATED = "<policy_evaluated><disposition>{0}</disposition><dkim>{1}</dkim><spf>{1}</spf>"
EVALUATED += "</policy_evaluated>"
FAILS = EVALUATED.format("none", "fail")
RESULTS = (
    "<auth_results><dkim><domain>{0}</domain><selector>s</selector><result>pass</result></dkim>"
    "<spf><domain>{1}</domain><result>pass</result></spf></auth_results>"
)


def report(rows: str, results: str = "", tags: str = "") -> AggregateReport:
    """Parse a report with one record."""
    author = "<identifiers><header_from>d.example</header_from></identifiers>"
    record = f"<record>{rows}{author}{results}</record>"
    return parse_aggregate_report(f"{HEAD.format(tags=tags)}{record}</feedback>".encode())


def one_row(**values: str) -> str:
    """Return a row as XML."""
    return ROW.format(**{"source": "192.0.2.1", "count": "1", "evaluated": FAILS, **values})


def summary(*rows: Row, messages: int = 30, hosts: dict[str, str] | None = None) -> Overview:
    """Summarize rows."""
    seen = [ReportedRow(one, messages, "r.example", BEGINNING, BEGINNING) for one in rows]
    return overview_of("d.example", seen, "none", hosts or {})


@rows(
    ("192.0.2.1:25", "192.0.2.1"),
    ("192.0.2.1/32", "192.0.2.1"),
    ("[192.0.2.1]:25", "192.0.2.1"),
    ("[2001:db8::1]:25", "2001:db8::1"),
    ("2001:db8::1/128", "2001:db8::1"),
    ("192.0.2.1:25/32", "192.0.2.1"),
    ("192.0.2.0/24", None),
    ("2001:db8::/64", None),
    ("2001:db8::1/32", None),
    ("192.0.2:25", None),
    ("[2001:db8::1", None),
    ("mail.example:25", None),
    ("", None),
)
def test_addresses_with_a_port_or_a_length(text: str, address: str | None) -> None:
    """A port, and the length of a prefix that is one address, are left out."""
    assert read_address(text) == address
    found = report(one_row(source=text))
    assert [one.source for one in found.rows] == ([] if address is None else [address])


@rows(("1,024", 1024), ("12 345", 12345), ("1'234'567", 1234567), ("1,02", 0), ("-1,000", 0))
def test_counts_with_separators(text: str, count: int) -> None:
    """Thousands may be separated; an unclear number is left out and reported."""
    found = report(one_row(count=text))
    assert found.messages == count
    assert bool(found.problems) is (count == 0)


def test_two_rows_in_a_record() -> None:
    """Each row counts, with the domain and the results of the record."""
    rows = one_row(count="3") + one_row(
        source="192.0.2.2", count="4", evaluated=EVALUATED.format("reject", "pass")
    )
    found = report(rows, RESULTS.format("d.example", "d.example"))
    assert [(one.source, one.disposition, one.dkim, n) for one, n in found.rows.items()] == [
        ("192.0.2.1", "none", "fail", 3),
        ("192.0.2.2", "reject", "pass", 4),
    ]
    assert {one.header_from for one in found.rows} == {"d.example"}
    assert all(one.signatures and one.spf_checks for one in found.rows)


def test_a_disposition_softfail_is_quarantine() -> None:
    """Some receivers write the result of SPF as the disposition."""
    (row,) = report(one_row(evaluated=EVALUATED.format("softfail", "fail"))).rows
    assert row.disposition == "quarantine"


@pytest.mark.parametrize("evaluated", ["", EVALUATED.format("none", "unreadable")])
@rows(
    ("d.example", "", ("pass", "pass")),
    ("mail.d.example", "", ("pass", "pass")),
    ("mail.d.example", "<adkim>s</adkim>", ("fail", "pass")),
    ("mail.d.example", "<adkim>s</adkim><aspf>s</aspf>", ("fail", "fail")),
    ("other.example", "", ("fail", "fail")),
)
def test_a_missing_result_is_evaluated(
    evaluated: str, signer: str, tags: str, results: tuple[str, str]
) -> None:
    """Without a verdict of the reporter, its results of SPF and DKIM decide, and it is said."""
    found = report(one_row(evaluated=evaluated), RESULTS.format(signer, signer), tags)
    (row,) = found.rows
    assert (row.dkim, row.spf) == results
    assert found.problems == (
        "1 row has no result for DMARC; it is evaluated from the results of SPF and DKIM",
    )


def test_a_row_without_any_result_blames_no_sender() -> None:
    """Without a result of the reporter, the mail is neither forged nor to be mended."""
    (row,) = report(one_row(evaluated="")).rows
    (sender,) = summary(row).senders
    assert sender.cause is Cause.NO_RESULT
    assert explain(sender) == "The receivers of 30 messages report no result."
    assert "forged" not in advise(sender)
    assert not list(find_steps(REJECT, mail_of((row, 30)), {}, 1_000))


REJECT = Proposal(Policy.REJECT, RecordToPublish("_dmarc.example.org", "TXT", ""), {})

STRICT = Row(
    "50.116.1.9",
    "none",
    "fail",
    "fail",
    "d.example",
    signatures=(Signature("mail.d.example", "s1", "pass"),),
    spf_checks=(SpfCheck("bounce.d.example", "mfrom", "pass"),),
)


@rows(
    (STRICT, "mail.d.example, bounce.d.example", "adkim=s, aspf=s"),
    (
        Row("50.116.1.9", "none", "fail", "fail", "d.example", signatures=STRICT.signatures),
        "mail.d.example",
        "adkim=s",
    ),
    (
        Row("50.116.1.9", "none", "fail", "fail", "d.example", spf_checks=STRICT.spf_checks),
        "bounce.d.example",
        "aspf=s",
    ),
)
def test_strict_alignment_is_the_cause(row: Row, names: str, tags: str) -> None:
    """A name of the domain passes: the record is at fault, and the mail is not forged."""
    (sender,) = summary(row).senders
    assert sender.cause is Cause.STRICT_ALIGNMENT
    assert explain(sender) == (
        f"30 messages passed for {names}, but the DMARC record requires d.example itself ({tags})."
    )
    assert advise(sender).startswith(f"Remove {tags} from the DMARC record")
    assert advise_owner(sender) == advise(sender)
    (step,) = find_steps(REJECT, mail_of((row, 30)), {}, 1_000)
    assert (step.kind, step.messages) == (StepKind.SET_UP, 30)
    assert "Remove" in explain_step(step, SetUp()).fix


def test_many_forging_addresses_are_one_step() -> None:
    """They are decided about together, apart from a named sender for which a domain passes."""
    forged = [(failing(f"203.0.113.{n}", spf_checks=()), 40) for n in range(30)]
    mail = mail_of(*forged, (failing("198.51.100.1"), 60))
    named, together = find_steps(REJECT, mail, {}, 2_000)
    assert named.sender is not None
    assert named.sender.key == "mailer.example"
    assert (together.kind, together.sender, together.messages) == (StepKind.DECIDE, None, 1_200)
    assert len(together.others) == 30
    assert "1200 messages of 30 unknown senders" in explain_step(together, SetUp()).meaning
    decided = {OTHER_SENDERS: SenderDecision.NOT_MINE, "mailer.example": SenderDecision.NOT_MINE}
    assert not list(find_steps(REJECT, mail, decided, 2_000))
    few = mail_of(*forged[:5])
    assert not find_together(few, 2_000)
    assert len(list(find_steps(REJECT, few, {}, 2_000))) == 5


@pytest.mark.parametrize("signed", [(), (Signature("d.example", "", "none"),)])
@rows(
    ("209.85.220.41", "mail-sor-f41.google.com", "gmail.com"),
    ("209.85.220.41", "mail-sor-f41.google.com", "d.example"),
    ("40.107.1.1", "mail-vi1.outbound.protection.outlook.com", "tenant.example"),
    ("40.92.1.1", "mail-oln.outbound.protection.outlook.com", "outlook.com"),
)
def test_unsigned_mail_that_mailboxes_forward(
    signed: tuple[Signature, ...], source: str, host: str, envelope: str
) -> None:
    """Gmail and Outlook sign all mail of their customers, so unsigned mail was forwarded."""
    check = SpfCheck(envelope, "mfrom", "fail" if envelope == "d.example" else "pass")
    row = Row(source, "none", "fail", "fail", "d.example", signatures=signed, spf_checks=(check,))
    (sender,) = summary(row, hosts={source: host}).senders
    assert sender.cause is Cause.FORWARDED
    packed = pack_rows([pack_row(ReportedRow(row, 30, "r.example", BEGINNING, BEGINNING))])
    mail = count_mail(packed, {source: host})
    assert not list(find_steps(REJECT, mail, {}, 1_000))


def test_signed_mail_of_a_mailbox_is_asked_about() -> None:
    """A customer of Google without a key of its own has the signature of Google."""
    row = failing(
        "209.85.220.41",
        "d.example",
        signatures=(Signature("d-example.20230601.gappssmtp.com", "20230601", "pass"),),
        spf_checks=(SpfCheck("gmail.com", "mfrom", "pass"),),
    )
    (step,) = find_steps(REJECT, mail_of((row, 30)), {}, 1_000)
    assert step.sender is not None
    assert (step.kind, step.sender.key) == (StepKind.DECIDE, "google")


JMRP = """\
From: staff@hotmail.com
Subject: Fw: Offers
Message-ID: <1@hotmail.com>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="bb"

--bb
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: JMRP/1.0
Version: 1

--bb
Content-Type: message/rfc822

X-HmXmrOriginalRecipient: reader@hotmail.com
Received: from A.PROD.OUTLOOK.COM (2603:10a6:10:2c1::5) by B.PROD.OUTLOOK.COM with HTTPS
{fields}From: News <news@d.example>
Subject: Offers

Hello
--bb--
"""


@rows(
        ("X-Sender-IP: 50.116.1.9\n", "50.116.1.9"),
        ("Received-SPF: Pass (x: d designates\n 50.116.1.9 as permitted) client-ip=50.116.1.9;\n",
         "50.116.1.9"),
        ("Authentication-Results: spf=pass (sender IP is 50.116.1.9)\n", "50.116.1.9"),
        ("X-Sender-IP: 10.0.0.1\n", "2603:10a6:10:2c1::5"),
        ("", "2603:10a6:10:2c1::5"),
    )  # fmt: skip
def test_complaints_of_microsoft_name_the_client(fields: str, source: str) -> None:
    """The address is the client's, as Microsoft recorded it, and not its relay's."""
    assert read_feedback_mail(JMRP.format(fields=fields).encode()).feedback.source == source
    # Such a field in a complaint of another receiver may be the sender's own.
    other = JMRP.replace("JMRP/1.0", "x").replace("X-HmXmr", "X-")
    found = read_feedback_mail(other.format(fields=fields).encode())
    assert found.feedback.source == "2603:10a6:10:2c1::5"


EXIM = """\
From: no-reply@gate.example
Subject: DMARC Forensic Report for d.example from IP 203.0.113.68
Message-ID: <2@gate.example>
Content-Type: text/plain

A message claiming to be from you has failed the published DMARC policy for your domain.

  Sender Domain: d.example
  Sender IP Address: 203.0.113.68
  Received Date: Fri, 27 Nov 2026 10:00:00 +0000
  SPF Alignment: {spf}
  DKIM Alignment: no
  DMARC Results: {result}

------ This is a copy of the headers that were received before the error was detected.

Received: from [203.0.113.68] (helo=client.example)
From: <user@d.example>
To: <reader@gate.example>
Subject: Payment
"""


@rows(
    ("no", "Quarantine", "none", "spam"),
    ("yes", "Reject", "spf", "reject"),
    ("", "", "none", ""),
)
def test_failure_reports_of_exim(spf: str, result: str, aligned: str, delivery: str) -> None:
    """The text has the address, the domain and the alignment, and the header of the mail."""
    found = read_feedback_mail(EXIM.format(spf=spf, result=result).encode(), True)
    feedback = found.feedback
    assert found.domains == ("d.example",)
    assert (feedback.source, feedback.type.value) == ("203.0.113.68", "auth-failure")
    assert (feedback.alignment, feedback.delivery) == (aligned, delivery)
    assert feedback.mail is not None
    assert (feedback.mail.subject, feedback.mail.recipients) == (
        "Payment",
        ("reader@gate.example",),
    )


def test_another_text_is_no_report() -> None:
    """A letter with some of these words is a letter."""
    with pytest.raises(NoReport):
        read_feedback_mail(EXIM.replace("Sender IP Address", "Address").encode())


def dane(domain: str, named: str = "", *more: tuple[str, str]) -> dict[str, list[tuple[str, int]]]:
    """Return the failures by domain of a report with a policy for a mail host."""
    policies = [
        {
            "policy": {"policy-type": kind, "policy-domain": where},
            "summary": {"total-successful-session-count": 4, "total-failure-session-count": 1},
            "failure-details": [{"result-type": "tlsa-invalid", "failed-session-count": 1}],
        }
        for kind, where in (("tlsa", domain), *more)
    ]
    span = {"start-datetime": "2026-11-27T00:00:00Z", "end-datetime": "2026-11-27T23:59:59Z"}
    text = json.dumps({"date-range": span, "report-id": "u", "policies": policies})
    found = parse_tls_report(text.encode(), named)
    return {
        one: [(each.host, count) for each, count in sessions_of(found, one) if each.result]
        for one in found.domains
    }


def test_dane_policies_belong_to_the_domain_that_the_report_names() -> None:
    """The policy domain of DANE is the mail host (RFC 8460 1.1)."""
    host = "mx1.hoster.example"
    assert dane(host, "d.example") == {"d.example": [(host, 1)]}
    assert dane("mx.d.example", "d.example") == {"d.example": [("mx.d.example", 1)]}
    assert dane("d.example", "d.example") == {"d.example": [("", 1)]}
    assert dane(host, "", ("sts", "d.example")) == {"d.example": [(host, 1), ("", 1)]}
    assert dane(host) == {host: [("", 1)]}
    assert set(dane(host, "", ("sts", "a.example"), ("sts", "b.example"))) == {
        *(host, "a.example", "b.example")
    }
