"""The form that releases a mail, in a real browser."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.people import make_account
from tests.browser.watching import watched_page
from tests.house import mail
from tests.servers.daemon import HOST, running_daemon
from tests.servers.mail_relay import running_relay

OPS = "ops@there.example"


def test_a_person_releases_a_mail(browser: Browser, tmp_path: Path) -> None:
    """The form is loaded when it is opened, and shows what was released and why it was not."""
    with (
        running_relay() as relay,
        running_daemon(
            tmp_path,
            accounts_password_cost=10,
            web_trusted_proxies=[HOST],
            release_relay=f"{HOST}:{relay.port}",
            release_tls="never",
            release_sender="release@here.example",
            release_allow_recipients=[f"*={OPS}"],
        ) as daemon,
        watched_page(browser, daemon.http_port) as watched,
    ):
        person, page = make_account(watched, daemon), watched.page
        person.get_mail(mail("Confirm it"))
        watched.go("/inbox")
        page.get_by_role("link", name="Confirm it").click()
        page.locator("#release > summary").click()
        form = page.locator("#release-form")
        expect(form).to_contain_text(f"Allowed: {OPS}")
        watched.require_accessible()
        form.get_by_label("To").fill("x@elsewhere.example")
        form.get_by_role("button", name="Release").click()
        expect(form.get_by_role("alert")).to_contain_text("does not allow")
        form.get_by_label("To").fill(OPS)
        form.get_by_role("button", name="Release").click()
        expect(form.get_by_role("status")).to_contain_text(f"{OPS}: given to the relay")
        watched.require_accessible()
        assert relay.wait_for(1)[0].recipient == OPS
