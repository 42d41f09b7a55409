"""Failure reports and complaints about single mails, as receivers write them."""

import msgspec
import pytest

from mailcheck.checks.receiver_reports.complaints import FeedbackRow, sum_feedback
from mailcheck.checks.receiver_reports.feedback import read_feedback_mail
from mailcheck.core.domains.receiver_reports import Feedback, FeedbackType, ReportKind
from mailcheck.core.errors import ReportRefused
from mailcheck.core.instants import Instant, parse_instant
from tests.corpus.feedback_mails import FIELDS, REPORTED, feedback_file, feedback_mail
from tests.table import rows


def test_the_example_of_rfc_9991() -> None:
    """A failure report has the type of failure, the alignment, the address and the signature."""
    report = read_feedback_mail(feedback_file("rfc9991.eml"))
    assert report.feedback == Feedback(
        FeedbackType.AUTH_FAILURE,
        source="192.0.2.2",
        author_domain="consumer.example",
        envelope_domain="forwarder.example",
        signing_domain="consumer.example",
        selector="epsilon",
        campaign="users.forwarder.example",
        campaign_field="List-Id",
        failure="dmarc",
        alignment="dkim",
        results=("dmarc=fail",),
        arrived_at=parse_instant("2022-07-19T05:57:33Z"),
        program="DMARC-Filter/1.2.3",
    )
    assert report.domains == ("consumer.example", "forwarder.example")
    assert report.problems == ()
    assert report.feedback.type.kind is ReportKind.FAILURE


def test_the_example_of_rfc_5965() -> None:
    """A complaint of the standard form is read."""
    found = read_feedback_mail(feedback_file("rfc5965.eml")).feedback
    assert (found.type, found.source) == (FeedbackType.ABUSE, "192.0.2.1")
    assert (found.author_domain, found.envelope_domain) == ("example.net", "example.net")
    assert (found.campaign, found.signing_domain, found.results) == ("", "", ("spf=fail",))


def test_a_complaint_of_yahoo() -> None:
    """Yahoo names no address, so the one in its topmost Received field with one counts."""
    found = read_feedback_mail(feedback_file("yahoo.eml")).feedback
    assert found.source == "192.0.2.25"
    assert (found.campaign_field, found.campaign) == (
        "Feedback-ID",
        "autumn-2026:8841:newsletter:newsmill",
    )
    assert (found.signing_domain, found.selector) == ("example.org", "news2026")
    assert found.results == ("dkim=pass", "spf=pass", "dmarc=pass")


def test_a_complaint_of_microsoft() -> None:
    """Microsoft attaches the mail only, and names the address in the subject."""
    found = read_feedback_mail(feedback_file("microsoft.eml")).feedback
    assert (found.type, found.source, found.program) == (
        FeedbackType.ABUSE,
        "192.0.2.25",
        "Microsoft JMRP",
    )
    assert (found.author_domain, found.campaign) == ("example.org", "offers.example.org")


@rows("rfc9991.eml", "rfc5965.eml", "yahoo.eml", "microsoft.eml", "")
def test_personal_data_is_left_out(name: str) -> None:
    """No local part, subject, name or text of the reported mail is returned by default."""
    raw = feedback_file(name) if name else feedback_mail()
    text = msgspec.json.encode(read_feedback_mail(raw)).decode().lower()
    for secret in (
        "reader",
        "secret",
        "autumn sale",
        "somespammer",
        "users@",
        "original subject",
    ):
        assert secret not in text, text
    assert "@" not in text


def test_personal_data_is_kept_on_request() -> None:
    """With the option, addresses, subject and the beginning of the text are returned."""
    mail = read_feedback_mail(feedback_mail(reported=REPORTED + "x" * 9_000), True).feedback.mail
    assert mail is not None
    assert mail.sender == "bounce+ann@news.example.org"
    assert mail.recipients == ("bob.secret@receiver.example",)
    assert mail.author == "Ann Secret <ann.secret@example.org>"
    assert mail.subject == "A secret subject"
    assert mail.text.startswith("A secret text.\n")
    assert len(mail.text) == 4_000
    microsoft = read_feedback_mail(feedback_file("microsoft.eml"), True).feedback.mail
    assert microsoft is not None
    assert microsoft.recipients == ("grace.reader@hotmail.com",)


@rows(
    ("abuse", FeedbackType.ABUSE),
    ("FRAUD", FeedbackType.FRAUD),
    ("opt-out", FeedbackType.OPT_OUT),
    ("opt-out-list", FeedbackType.OPT_OUT),
    ("not-spam", FeedbackType.NOT_SPAM),
    ("virus", FeedbackType.VIRUS),
    ("auth-failure", FeedbackType.AUTH_FAILURE),
    ("dislike", FeedbackType.OTHER),
)
def test_types_of_feedback(value: str, expected: FeedbackType) -> None:
    """Types of RFC 5965 and 6591 are known in any case; another one is read as "other"."""
    fields = FIELDS.replace("auth-failure", value)
    assert read_feedback_mail(feedback_mail(fields)).feedback.type is expected


@rows(
    ("203.0.113.66", "IPv6:2001:db8::7", "source", "2001:db8::7"),
    ("203.0.113.66", "[203.0.113.9]", "source", "203.0.113.9"),
    ("203.0.113.66", "a host", "source", ""),
    ("dmarc\nIdentity", "bodyhash\nIdentity", "failure", "bodyhash"),
    ("dmarc\nIdentity", "<b>\nIdentity", "failure", ""),
    ("Alignment: none", "Alignment: DKIM , spf", "alignment", "dkim, spf"),
    ("Version: 1", "Incidents: 7", "incidents", 7),
    ("Version: 1", "Incidents: 0", "incidents", 1),
    ("Version: 1", "Incidents: 99999999999", "incidents", 1),
    ("Version: 1", "Incidents: \u0667", "incidents", 1),
    ("Version: 1", "Delivery-Result: reject", "delivery", "reject"),
    (
        "Version: 1",
        "DKIM-Domain: b\u00fccher.example",
        "signing_domain",
        "xn--bcher-kva.example",
    ),
    (
        "Version: 1",
        "Arrival-Date: Fri, 20 Nov 2026 02:59:00 +0000",
        "arrived_at",
        1795143540000,
    ),
    ("Version: 1", "Arrival-Date: yesterday", "arrived_at", None),
    ("Filter/1.0", "Filter by ann.secret@mx.example/1", "program", "mx.example/1"),
)
def test_values_of_fields(old: str, new: str, field: str, expected: object) -> None:
    """Each field is read in the forms that reporters use; an invalid value is left out."""
    assert old in FIELDS
    feedback = read_feedback_mail(feedback_mail(FIELDS.replace(old, new))).feedback
    assert getattr(feedback, field) == expected


@rows(
    ("Feedback-ID: a:b:c:d\nList-Id: <l.example.org>", ("Feedback-ID", "a:b:c:d")),
    ("Feedback-ID: ann.secret@example.org", ("Feedback-ID", "example.org")),
    ("Feedback-ID: x:ann.secret%40example.org:c", ("Feedback-ID", "example.org:c")),
    ("List-Id: Ann's list <l.example.org>", ("List-Id", "l.example.org")),
    ("List-Id: l.example.org", ("List-Id", "l.example.org")),
    ("DKIM-Signature: v=1; d=esp.example; s=a; b=", ("DKIM", "esp.example")),
    (
        "DKIM-Signature: d=esp.example; s=a\nDKIM-Signature: d=example.org; s=b",
        ("DKIM", "example.org"),
    ),
    ("DKIM-Signature: ;;=", ("", "")),
)
def test_campaigns(header: str, expected: tuple[str, str]) -> None:
    """A campaign is named by Feedback-ID, else List-Id, else the domain of the signature."""
    raw = feedback_mail(reported=f"{header}\nFrom: a@example.org\n\n")
    found = read_feedback_mail(raw).feedback
    assert (found.campaign_field, found.campaign) == expected


@rows("text/rfc822-headers", "message/rfc822-headers", "message/global")
def test_a_report_with_the_header_only(media_type: str) -> None:
    """The reported mail may be its header only; without it the report says so."""
    header = REPORTED.partition("\n\n")[0]
    whole = read_feedback_mail(feedback_mail(reported=header, attached_as=media_type))
    assert (whole.feedback.author_domain, whole.problems) == ("example.org", ())
    none = read_feedback_mail(feedback_mail(attached_as="text/x-unknown"))
    assert none.domains == ("example.org", "news.example.org")
    assert none.problems == ("it does not contain the reported mail or its header",)


@rows(
    (b"Subject: hello\r\n\r\nhello", "the mail contains no failure report or complaint"),
    (b"", "the mail contains no failure report or complaint"),
    (feedback_mail(""), "it has no field Feedback-Type"),
    (feedback_mail("Feedback-Type: \n"), "it has no field Feedback-Type"),
    (
        feedback_mail("Feedback-Type: abuse\n", "Subject: x\n\n"),
        "it names no domain: neither in From nor in Reported-Domain",
    ),
    (
        feedback_mail("Feedback-Type: abuse\nReported-Domain: <b>.org\n", "From: a@[::1]\n\n"),
        "it names no domain",
    ),
)
def test_mails_that_are_not_reports(raw: bytes, reason: str) -> None:
    """A mail without a valid report is refused with the reason."""
    with pytest.raises(ReportRefused) as refused:
        read_feedback_mail(raw)
    assert str(refused.value).startswith(reason)


def test_keys_of_reports() -> None:
    """A report that is sent twice has the same key; a report about another mail has another."""
    first, again = (read_feedback_mail(feedback_mail()).key for _ in range(2))
    other = read_feedback_mail(feedback_mail(message_id="2@google.com")).key
    assert first == again != other
    assert "google" not in first
    bare = feedback_mail().replace(b"Message-ID: <1@google.com>\r\n", b"")
    changed = bare.replace(b"203.0.113.66", b"203.0.113.67")
    assert read_feedback_mail(bare).key != read_feedback_mail(changed).key


def test_sums_by_address_and_campaign() -> None:
    """Mails are summed by address and campaign; a mail reported as not spam is no complaint."""
    kinds = FeedbackType
    rows = [
        FeedbackRow(
            Feedback(kind, source=source, campaign=name, campaign_field="DKIM"), mails, r, d
        )
        for kind, source, name, mails, r, d in (
            (kinds.ABUSE, "192.0.2.1", "a", 5, "yahoo.com", Instant(1)),
            (kinds.NOT_SPAM, "192.0.2.1", "a", 7, "gmx.net", Instant(3)),
            (kinds.AUTH_FAILURE, "192.0.2.2", "", 2, "gmx.net", Instant(2)),
            (kinds.VIRUS, "", "b", 1, "gmx.net", Instant(2)),
        )
    ]
    sums = sum_feedback(rows)
    assert (sums.failures, sums.complaints) == (2, 6)
    assert [(one.name, one.failures, one.complaints) for one in sums.sources] == [
        ("192.0.2.1", 0, 5),
        ("192.0.2.2", 2, 0),
    ]
    first, second = sums.campaigns
    assert (first.name, first.complaints, first.reporters) == ("a", 5, ("gmx.net", "yahoo.com"))
    assert (first.last_day, second.name, second.complaints) == (3, "b", 1)
    assert sums.about(["192.0.2.1", "192.0.2.2", "192.0.2.3"]) == (2, 5)
