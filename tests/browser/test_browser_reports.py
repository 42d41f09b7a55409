"""Reports of receivers in a real browser: requested in DNS, sent by mail, shown on a page."""

import smtplib
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.people import make_account
from tests.browser.watching import watched_page
from tests.corpus.feedback_mails import FIELDS, feedback_file, feedback_mail
from tests.fakes.report_senders import (
    DOMAIN,
    RECEIVERS,
    ask_for_reports,
    reports_zone,
    signed_report,
    signer_of,
)
from tests.servers.daemon import HOST, running_daemon
from tests.servers.name_server import publishing_name_server


def test_a_week_of_reports_names_the_forgotten_service(browser: Browser, tmp_path: Path) -> None:
    """The zone publishes the address, eight receivers send reports, and one change fixes SPF."""
    zone = reports_zone()
    of_service = FIELDS.replace("auth-failure", "abuse").replace("203.0.113.66", "198.51.100.7")
    complaint = feedback_mail(of_service)
    with (
        publishing_name_server(zone) as (server, publish),
        running_daemon(
            tmp_path, dns_resolvers=[f"{server.host}:{server.port}"], dns_allow_special_use=True
        ) as daemon,
        watched_page(browser, daemon.http_port) as watched,
    ):
        make_account(watched, daemon)
        page = watched.page
        watched.go("/reports")
        address = page.locator("main").inner_text().partition("DMARC reports go to ")[2]
        address = address.partition(",")[0]
        ask_for_reports(zone, address)
        publish()
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            for name in RECEIVERS:
                client.sendmail("", [address], signed_report(name, address))
            for raw in (signer_of("google.com").sign(complaint), feedback_file("microsoft.eml")):
                client.sendmail("", [address.replace("dmarc-", "fbl-")], raw)
        counted = page.get_by_text("counted", exact=True)
        watched.go_until("/reports", lambda: counted.count() == len(RECEIVERS) + 1)
        watched.go(f"/domains/{DOMAIN}/reports")
        text = page.locator("main").inner_text()
        assert "268 messages, 199 passed" in text
        assert text.index("newsmill.example") < text.index("203.0.113.66")
        expect(
            page.get_by_text("v=spf1 ip4:192.0.2.10 include:newsmill.example ~all")
        ).to_be_visible()
        expect(page.get_by_text("already names this address")).to_be_visible()
        expect(page.get_by_text(f"{DOMAIN}._report._dmarc.")).to_be_visible()
        expect(page.get_by_role("link", name="1 complaint")).to_be_visible()
        expect(page.get_by_text("1 more report is not counted")).to_be_visible()
        page.get_by_text("Details of the report of type abuse").first.click()
        expect(page.get_by_text("Microsoft JMRP")).to_be_visible()
        expect(page.get_by_text("reader@hotmail.com")).to_have_count(0)
        page.get_by_role("link", name="Show the record that requests them").click()
        expect(page.get_by_text("; ruf=mailto:ruf-")).to_be_visible()
        watched.require_accessible()
        watched.require_quiet()
        watched.go(f"/domains/{DOMAIN}/reports")
        page.get_by_role("link", name="Plan the next DMARC policy").click()
        expect(page.get_by_text("3 steps are missing before p=quarantine")).to_be_visible()
        page.get_by_role("button", name="It sends for me : newsmill.example").click()
        expect(page.get_by_role("heading", name="Set up: newsmill.example")).to_be_visible()
        expect(page.get_by_text("There are reports about 1 of the last 30 days.")).to_be_visible()
        watched.require_accessible()
        watched.require_quiet()
