"""The failing senders in reports as facts of a watch."""

from mailcheck.checks.findings import Severity
from mailcheck.checks.receiver_reports.aggregate import ReportedRow, SpfCheck, pack_row, pack_rows
from mailcheck.checks.receiver_reports.origins import SenderMail, count_mail
from mailcheck.checks.watching.facts import MAX_FAILING_SENDERS, facts_of_senders
from mailcheck.core.domains.receiver_reports import SenderDecision
from mailcheck.core.instants import Instant
from tests.checks.test_receiver_reports import OWN_MAIL, row

DAY = Instant(1_794_960_000_000)
MINE, NOT_MINE = SenderDecision.MINE, SenderDecision.NOT_MINE


def mail_of(*senders: tuple[str, int]) -> list[SenderMail]:
    """Return own mail that passes, and failing mail for which other domains are authenticated."""
    failing = [
        (row(source=f"198.51.100.{n}", spf_checks=(SpfCheck(name, "mfrom", "pass"),)), messages)
        for n, (name, messages) in enumerate(senders)
    ]
    rows = [ReportedRow(one, count, "google.com", DAY, DAY) for one, count in (OWN_MAIL, *failing)]
    return count_mail(pack_rows([pack_row(one) for one in rows]), {})


def test_new_and_own_senders_are_facts() -> None:
    """An own sender that fails is a problem, and so is a new one with a name and enough mail."""
    mail = mail_of(("em1.sendgrid.net", 30), ("new.example", 40), ("few.example", 2))
    topic = facts_of_senders(mail, {"sendgrid": MINE}, is_complete=True)
    assert {one.severity for one in topic.facts.values()} == {Severity.WARNING}
    assert topic.facts["new.example"].says.startswith("New sender: new.example. 40 messages passed")
    assert topic.facts["sendgrid"].says.startswith("Mail of SendGrid fails DMARC. 30 messages")
    assert len(topic.facts) == 2
    assert topic.is_complete
    both = {"sendgrid": NOT_MINE, "new.example": NOT_MINE}
    assert not facts_of_senders(mail, both, is_complete=True).facts


def test_addresses_without_a_name_are_no_facts() -> None:
    """Forgers use many addresses, so an alert for each would hide the others."""
    rows = [
        ReportedRow(row(source=f"203.0.113.{n}"), 50, "google.com", DAY, DAY) for n in range(30)
    ]
    strangers = count_mail(pack_rows([pack_row(one) for one in rows]), {})
    assert not facts_of_senders(strangers, {}, is_complete=True).facts
    named = {f"203.0.113.{n}": f"host.s{n}.example" for n in range(30)}
    many = count_mail(pack_rows([pack_row(one) for one in rows]), named)
    topic = facts_of_senders(many, {}, is_complete=True)
    assert len(topic.facts) == MAX_FAILING_SENDERS
    assert not topic.is_complete
