"""The page of DMARC and TLS reports: senders of a domain, and how to receive reports."""

import re

import pytest

from tests.corpus.feedback_mails import FIELDS, feedback_mail
from tests.corpus.report_files import document, gzipped
from tests.fakes.dmarc_year import Year, year_zone
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.report_senders import (
    DOMAIN,
    RECEIVERS,
    ask_for_reports,
    reports_zone,
    signed_letter,
    signed_report,
    signer_of,
)
from tests.house import run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.tools_visit import visit_tools
from tests.web.reporting import count_days


@pytest.fixture
def zone() -> MemoryZone:
    """Return a zone with the receivers, and with a domain that requests no reports yet."""
    return reports_zone()


@pytest.fixture
def owner(zone: MemoryZone) -> Browser:
    """Open the pages as a signed-in account."""
    return visit_tools(zone)


def address(owner: Browser) -> str:
    """Return the address for DMARC reports that the page shows."""
    text = owner.read("/reports")
    return text.partition("DMARC reports go to ")[2].partition(",")[0]


@pytest.fixture
def local(owner: Browser) -> str:
    """Return the address of the reports."""
    return address(owner)


def test_files_are_imported(owner: Browser) -> None:
    """The result has the outcome of each file, and the pages say how the reports came."""
    owner.open("/reports")
    form = [
        ("form-token", "", owner.page.form_token.encode()),
        ("file", "google.xml", document("google.xml")),
        ("file", "notes.txt", b"hello"),
    ]
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
        % (name.encode(), f'; filename="{file}"'.encode() if file else b"", data)
        for name, file, data in form
    )
    media_type = "Content-Type: multipart/form-data; boundary=b"
    owner.send("POST", "/reports/import", body + b"--b--\r\n", media_type)
    assert "1 new, 0 known, 1 rejected." in owner.words
    assert "notes.txt: It contains no report" in owner.words
    assert "Uploaded from google.com" in owner.read("/reports")
    for tab in ("reports", "plan"):
        page = owner.read(f"/domains/{DOMAIN}/{tab}")
        assert "uploaded: 123 messages" in page
        assert f"not proven {DOMAIN} has not requested reports" in page


def test_the_records_to_receive_reports(owner: Browser, local: str, zone: MemoryZone) -> None:
    """Both records are shown until the domain requests its reports here."""
    assert local.startswith("dmarc-")
    page = owner.read(f"/domains/{DOMAIN}/reports")
    assert f"v=DMARC1; p=none; rua=mailto:{local}" in page
    host = local.partition("@")[2]
    assert f"{DOMAIN}._report._dmarc.{host}" in page
    ask_for_reports(zone, local)
    zone.publish(f"{DOMAIN}._report._dmarc.{host}", "TXT", "v=DMARC1;")
    tls = local.replace("dmarc-", "tls-")
    assert f"_smtp._tls.{DOMAIN}" in page
    assert f"v=TLSRPTv1; rua=mailto:{tls}" in page
    zone.publish(f"_smtp._tls.{DOMAIN}", "TXT", f"v=TLSRPTv1; rua=mailto:{tls}")
    page = owner.read(f"/domains/{DOMAIN}/reports")
    for kind in ("DMARC", "TLS"):
        assert f"already requests {kind} reports to this service" in page


def test_the_forgotten_newsletter_service(owner: Browser, local: str, zone: MemoryZone) -> None:
    """After a week of reports the failing service comes first, with the record that fixes it."""
    ask_for_reports(zone, local)
    run(owner.house.assembly.reports.runner.start())
    for name in RECEIVERS:
        owner.house.receive(local, raw=signed_report(name, local), sender="")
        owner.house.pass_time(1)
    assert "processed" in owner.read("/reports")
    assert "74 %" in owner.read("/domains")
    page = owner.read(f"/domains/{DOMAIN}/reports")
    assert "Messages268Yours199Unknown66Forwarded3Forged0" in page.replace(" ", "")
    assert "p=reject would stop 66 messages today." in page
    assert page.index("newsmill.example") < page.index("203.0.113.66")
    assert "v=spf1 ip4:192.0.2.10 include:newsmill.example ~all" in page


def test_the_tabs_of_a_domain(owner: Browser) -> None:
    """The pages of a domain share a menu entry, and are tabs of one page."""
    titles = {"": "Fix", "/checks": "Checks", "/blocklists": "Blocklists"}
    titles |= {"/reports": "Reports", "/plan": "Plan", "/history": "History"}
    for end in titles:
        body = owner.open(f"/domains/{DOMAIN}{end}?whole=true").body.decode()
        assert '<a href="/p/me/domains" aria-current="page">Domains</a>' in body
        for other, title in titles.items():
            mark = ' aria-current="page"' if other == end else ""
            assert f'<a href="/p/me/domains/{DOMAIN}{other}"{mark}>{title}</a>' in body
    assert '<a href="/p/me/domains" aria-current="page">' in owner.open("/reports").body.decode()


def test_complaints_beside_the_sender(owner: Browser, local: str, zone: MemoryZone) -> None:
    """Complaints stand beside the sender, by campaign, and in a list; the list can be filtered."""
    ask_for_reports(zone, local)
    run(owner.house.assembly.reports.runner.start())
    complaint = FIELDS.replace("auth-failure", "abuse").replace("203.0.113.66", "198.51.100.7")
    signed = signer_of("google.com").sign(feedback_mail(complaint))
    forged = feedback_mail(complaint, message_id="2@google.com")
    for place, raw in (
        (local, signed_report("yahoo.xml", local)),
        (local.replace("dmarc-", "fbl-"), signed),
        (local.replace("dmarc-", "fbl-"), forged),
    ):
        owner.house.receive(place, raw=raw, sender="")
        owner.house.pass_time(1)
    page = owner.read(f"/domains/{DOMAIN}/reports")
    assert "1 complaint about mail from its addresses." in page
    assert f"1 complaint about mail of {DOMAIN}." in page
    assert "1 more report is not counted, because anyone can send such a report." in page
    assert "autumn:8841:newsletter:newsmill Feedback-ID" in page
    assert "The recipient marked the mail as spam." in page
    assert "secret" not in page.lower()
    listed = owner.read("/reports?kind=complaint")
    assert "Received reports (2)" in listed
    assert re.search(r"example\.org \d{4}-\d\d-\d\d Complaint from google\.com 1 message", listed)
    assert "By reporter (1)" in listed
    assert "By reporter (2)" in owner.read("/reports")
    assert "No reports yet." in owner.read("/reports?kind=tls")
    assert owner.open("/reports?kind=other").status == 400


def test_a_mail_that_confirms_the_address(owner: Browser) -> None:
    """Its text and links are shown in its row, as text and without a link that is followed."""
    place = address(owner).replace("dmarc-", "fbl-")
    run(owner.house.assembly.reports.runner.start())
    owner.house.receive(place, raw=signed_letter(), sender="")
    owner.house.pass_time(1)
    body = owner.open("/reports").body.decode()
    assert "<h3>Confirm your address</h3>" in body
    assert "Your code is 482913." in body
    assert "\nhttps://google.com/confirm?t=7f3a</pre>" in body
    assert 'href="https://google.com' not in body


def test_failure_reports_are_offered_on_request(
    owner: Browser, local: str, zone: MemoryZone
) -> None:
    """The record with `ruf=` is shown only on request, with a warning, and keeps other tags."""
    ruf = local.replace("dmarc-", "ruf-")
    ask_for_reports(zone, local)
    page = owner.read(f"/domains/{DOMAIN}/reports")
    assert "ruf=" not in page
    assert "Show the record that requests them" in page
    page = owner.read(f"/domains/{DOMAIN}/reports?ask=failures")
    assert "These reports contain addresses, subjects and often the text of mails" in page
    record = f"v=DMARC1; p=none; rua=mailto:{local}; ruf=mailto:{ruf}"
    assert record in page
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", record)
    zone.publish(f"{DOMAIN}._report._dmarc.{local.partition('@')[2]}", "TXT", "v=DMARC1;")
    page = owner.read(f"/domains/{DOMAIN}/reports?ask=failures")
    assert f"{DOMAIN} already requests failure reports to this service." in page


def test_the_plan_of_the_next_policy() -> None:
    """Decisions are made on the page, and the plan ends in a record or in missing steps."""
    zone = year_zone()
    owner, year = visit_tools(zone), Year(zone)
    account = run(owner.house.assembly.accounts.keep.find("ann"))
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", f"v=DMARC1; p=none; rua=mailto:{address(owner)}")
    path = f"/p/me/domains/{DOMAIN}/plan"
    assert "There are no reports about the last 30 days." in owner.read(path)
    count_days(owner.house, year, 20, account.id)
    owner.sign_in()
    page = owner.read(path)
    assert "quarantine Mail that fails goes to spam 5 decisions left" in page
    assert "Is it yours? Mailchimp 1,000 messages" in page
    assert "unknown senders" in page
    for sender, decision in (
        ("mailchimp", "mine"),
        ("hoster.example", "mine"),
        ("improvmx", "not-mine"),
        ("bad.example", "not-mine"),
        ("others", "not-mine"),
    ):
        sent = owner.submit(
            f"/p/me/domains/{DOMAIN}/senders",
            sender=sender,
            decision=decision,
            days="30",
            next="plan",
        )
        assert sent.headers["location"] == f"{path}?done=sender-decided&days=30"
    page = owner.read(path)
    assert "Set up Mailchimp 1,000 messages" in page
    assert f"k2._domainkey.{DOMAIN}" in page
    assert "PolicyYoursUnknownForwardedForgedquarantine1,40000381" in page.replace(" ", "")
    senders = owner.read(f"/domains/{DOMAIN}/reports")
    assert "Mailchimp yours" in senders
    assert "forwarded messages passed with an intact signature" in senders
    assert owner.submit(f"/domains/{DOMAIN}/senders", sender="mailchimp").status == 400
    wrong = owner.submit(f"/domains/{DOMAIN}/senders", sender="a b", decision="mine")
    assert wrong.status == 400
    assert owner.open("/domains/192.0.2.1/plan").status == 303


def test_an_invalid_domain(owner: Browser) -> None:
    """An invalid domain is explained."""
    assert owner.open("/reports?domain=a b").status == 400


def test_reports_are_deleted_by_their_owner(owner: Browser, local: str, zone: MemoryZone) -> None:
    """Reports are deleted one by one, by reporter or by day, but not without a choice."""
    ask_for_reports(zone, local)
    run(owner.house.assembly.reports.runner.start())
    for name in ("google.xml", "yahoo.xml", "gmx.xml"):
        owner.house.receive(local, raw=signed_report(name, local), sender="")
        owner.house.pass_time(1)
    owner.open("/reports")
    newest = next(
        one for one in owner.page.addresses if re.fullmatch("/p/me/reports/.+/delete", one)
    )
    gone = owner.submit(newest)
    assert (gone.status, gone.headers["location"]) == (303, "/p/me/reports?done=report-deleted")
    assert "Received reports (2)" in owner.read("/reports?done=report-deleted")
    assert owner.submit("/reports/delete", reporter=" ", day="").status == 400
    assert owner.submit("/reports/delete", reporter="google.com", day="").status == 303
    assert "Received reports (1)" in owner.read("/reports")
    assert owner.submit("/reports/delete", reporter="", day="2026-11-19").status == 303
    assert "Received reports (0)" in owner.read("/reports")


def test_rejected_reports_are_counted(owner: Browser, local: str, zone: MemoryZone) -> None:
    """Reports about domains that the account neither watches nor owns are counted as rejected."""
    assert "Rejected reports" not in owner.read("/reports")
    run(owner.house.assembly.reports.runner.start())
    data = document("google.xml").replace(b"<domain>example.org<", b"<domain>x.wild.example<")
    raw = signed_report("google.xml", local, data=gzipped(data))
    owner.house.receive(local, raw=raw, sender="")
    owner.house.pass_time(1)
    page = owner.read("/reports")
    assert "1 report were about domains" not in page
    assert "neither watches nor owns, the last about x.wild.example. Watch a domain" in page
    assert "Received reports (0)" in page
