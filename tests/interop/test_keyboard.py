"""Every task with the keyboard alone, in real Chromium: Tab, Space, Enter and typed text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import browser, one_browser
from tests.browser.keyboard import enter, follow, press, reach
from tests.browser.people import Person, make_account
from tests.browser.tool_world import RECORDS
from tests.browser.watching import Watched, watched_page
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.house import mail
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.name_server import publishing_name_server

__all__ = ["browser", "one_browser"]

pytestmark = pytest.mark.end_to_end

DOMAIN = "good.test"


@dataclass(frozen=True, slots=True)
class World:
    """A daemon, and a DNS zone whose changes `publish` makes visible."""

    daemon: Daemon
    zone: MemoryZone
    publish: Callable[[], None]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the daemon and its name server."""
    zone = MemoryZone(RECORDS)
    publish_list_test_entries(zone)
    with (
        publishing_name_server(zone) as (server, publish),
        running_daemon(
            tmp_path_factory.mktemp("keyboard"),
            dns_resolvers=[f"{server.host}:{server.port}"],
            dns_allow_special_use=True,
            spamassassin_spamd="off",
            accounts_password_cost=10,
            limits_waits_per_key=1_000,
            web_trusted_proxies=[HOST],
        ) as daemon,
    ):
        yield World(daemon, zone, publish)


@pytest.fixture
def watched(browser: Browser, world: World) -> Iterator[Watched]:
    """Open a page in its own browser context."""
    with watched_page(browser, world.daemon.http_port) as watched:
        yield watched
        watched.require_quiet()


@pytest.fixture
def person(watched: Watched, world: World) -> Person:
    """Create an account and sign the browser in."""
    return make_account(watched, world.daemon)


@pytest.fixture
def page(watched: Watched, person: Person) -> Page:
    """The page of the signed-in person."""
    return watched.page


def test_a_domain_is_checked_watched_and_its_alert_answered(
    watched: Watched, page: Page, world: World
) -> None:
    """A domain is checked from the overview, watched by its switch, and its alert acknowledged."""
    watched.go("/")
    enter(page, page.get_by_label("Check a domain"), DOMAIN)
    switch = page.locator("#checked").get_by_role("switch", name=f"Watch {DOMAIN}")
    expect(page.locator("#checked .score-of")).to_be_visible()
    follow(page, switch)
    expect(page.get_by_role("switch", name=f"Watch {DOMAIN}")).to_be_checked()
    expect(page.locator(".domains .score-of")).to_be_visible()  # the watch has run
    world.zone.publish(f"_dmarc.{DOMAIN}", "TXT")
    world.publish()
    follow(page, page.get_by_role("link", name=DOMAIN, exact=True))
    follow(page, page.get_by_role("link", name="History"))
    follow(page, page.get_by_role("button", name="Check now"))
    watched.go("/")
    follow(page, page.locator("#alerts a").first)
    follow(page, page.get_by_role("link", name="History"))
    while page.get_by_role("button", name="Acknowledge").count():
        follow(page, page.get_by_role("button", name="Acknowledge").first)
    watched.go("/")
    expect(page.locator("#status")).not_to_contain_text("open alert")


def test_a_webhook_is_created_tested_and_deleted(watched: Watched, page: Page) -> None:
    """A webhook is created by its form, tested, and deleted after a confirmation."""
    watched.go("/webhooks")
    enter(page, page.get_by_label("URL", exact=True), f"http://hooks.{DOMAIN}/mail")
    follow(page, page.get_by_role("link", name="I have copied it"))
    follow(page, page.get_by_role("button", name="Send a test"))
    expect(page.locator(".webhook h2")).to_contain_text("last delivery failed")
    press(page, page.locator(".webhook summary", has_text="Delete"))
    follow(page, page.get_by_role("button", name="Delete permanently"))
    expect(page.get_by_text("No webhooks yet.")).to_be_visible()


def test_a_key_is_created_and_revoked(watched: Watched, page: Page) -> None:
    """A limited key is created, its snippets are read, and it is revoked."""
    watched.go("/keys")
    press(page, page.locator("summary", has_text="Limit what the key may do"))
    press(page, page.get_by_label("inbox:read"), "Space")
    watched.go("/keys")
    enter(page, page.get_by_label("Name", exact=True), "typed")
    press(page, page.locator("summary", has_text="pytest"))
    follow(page, page.get_by_role("link", name="I have copied it"))
    press(page, page.locator("summary", has_text="Revoke typed"))
    follow(page, page.get_by_role("button", name="Revoke permanently"))
    expect(page.get_by_text("No API keys yet.")).to_be_visible()


def test_a_test_is_run_and_its_report_read(
    watched: Watched, page: Page, world: World, person: Person
) -> None:
    """A test is created, its report opens by itself, and issues, checks and menus are unfolded."""
    watched.go("/tests")
    follow(page, page.get_by_role("button", name="Create test address"))
    mailbox = page.locator("#address").inner_text().partition("@")[0]
    Person(person.name, f"{mailbox}@mailcheck.example", world.daemon).get_mail(mail("Typed"))
    expect(page.locator("#issues-title")).to_be_visible()
    press(page, page.locator(".issue summary").nth(1))
    expect(page.locator(".issue").nth(1)).to_contain_text("Fix:")
    press(page, page.locator(".checks summary").first)
    press(page, page.locator("summary", has_text="Share"))
    reach(page, page.locator("#share-link"))
    follow(page, page.get_by_role("link", name="Try DNS records"))
    reach(page, page.get_by_label("Name").first)
    page.keyboard.type("example.com")
    enter(page, page.get_by_label("Value").first, "v=spf1 -all")
    expect(page.locator("#proposed-issues-title")).to_be_visible()


def test_messages_are_deleted_and_restored(watched: Watched, page: Page, person: Person) -> None:
    """A message is selected with Space and deleted, and Undo brings it back."""
    for subject in ("First", "Second"):
        person.get_mail(mail(subject))
    watched.go("/inbox")
    rows = page.locator("#mails li:visible")
    expect(rows).to_have_count(2)
    press(page, page.get_by_label("Select Second"), "Space")
    press(page, page.locator("#delete-selected"))
    expect(rows).to_have_count(1)
    press(page, page.locator("#undo-delete"))
    expect(rows).to_have_count(2)


def test_a_project_is_used(watched: Watched, page: Page) -> None:
    """A project is created, a person is invited, and the project is renamed and deleted."""
    watched.go("/account")
    follow(page, page.get_by_role("link", name="Projects"))
    enter(page, page.get_by_label("Name", exact=True), "typed-shop")
    watched.go("/project")
    reach(page, page.get_by_label("Role", exact=True))
    page.keyboard.press("ArrowUp")
    follow(page, page.get_by_role("button", name="Create invitation link"))
    reach(page, page.get_by_role("button", name="Copy").first)
    enter(page, page.get_by_label("Name", exact=True), "typed-store")
    enter(page, page.get_by_label("Enter typed-store to confirm"), "typed-store")
    expect(page.get_by_text("The project has been deleted")).to_be_visible()
