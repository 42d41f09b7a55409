"""The overview, domain checks and blocklist checks in a real browser."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.people import make_account
from tests.browser.tool_world import SLOW_LISTS, ToolWorld
from tests.browser.watching import Watched, watched_page
from tests.house import mail


def test_a_domain_is_checked_in_its_row(visitor: Watched, world: ToolWorld) -> None:
    """Each factor appears in the row when it is determined; the switch watches the domain."""
    page = visitor.page
    world.lists.hold()
    try:
        visitor.go("/domains")
        visitor.require_accessible()
        page.get_by_label("Domain or IP address", exact=True).fill("unchecked.test")
        page.get_by_role("button", name="Check", exact=True).click()
        expect(page).to_have_url(
            f"{visitor.origin}/p/me/domains?check=unchecked.test&selectors=&ips=&logo="
        )
        row = page.locator("#checked tr")
        expect(row.get_by_title("SPF: pass")).to_be_visible()
        expect(row.get_by_title("Blocklists: checking")).to_be_visible()
        expect(row).to_have_attribute("aria-busy", "true")
    finally:
        world.lists.release()
    expect(row.get_by_title("Blocklists: pass")).to_be_visible()
    expect(row).to_contain_text("A+")
    row.get_by_role("switch", name="Watch unchecked.test").click()
    row = page.locator("#domain-rows tr", has_text="unchecked.test")
    expect(row.get_by_role("switch")).to_be_checked()
    expect(row).to_contain_text("A+")  # the first check of the watch has ended
    visitor.require_accessible()
    row.get_by_role("link", name="unchecked.test").click()
    expect(page.get_by_role("img", name="Score 100 of 100, grade A+")).to_be_visible()
    page.get_by_role("link", name="Checks").click()
    expect(page.locator("#known-spf")).to_contain_text("1 of 10 lookups")
    expect(page.locator("#spf-tree")).to_contain_text("1 of 10 DNS lookups")
    for tab in ("Reports", "History"):
        page.get_by_role("navigation", name="unchecked.test").get_by_role("link", name=tab).click()
        visitor.require_accessible()


def test_blocklists_fill_in(visitor: Watched, world: ToolWorld) -> None:
    """Rows change as lists answer, and listings move to the top at the end."""
    page = visitor.page
    world.lists.hold()
    visitor.go("/domains/listed.test/blocklists")
    expect(page.locator("#rows tr")).to_have_count(32)
    expect(page.locator("#rows tr.pending")).to_have_count(len(SLOW_LISTS))
    expect(page.locator(".total")).to_have_count(0)
    world.lists.release()
    expect(page.locator(".total")).to_have_text(
        "listed.test is on 2 of the 32 lists that answered."
    )
    expect(page.locator("#rows tr.pending")).to_have_count(0)
    statuses = page.locator("#rows tr").evaluate_all("rows => rows.map(row => row.className)")
    assert statuses == ["listed"] * 2 + ["clean"] * 30
    expect(page.locator("#rows tr").nth(1)).to_contain_text("<script>alert(1)</script>")
    visitor.require_accessible()


def test_a_failed_check_is_shown(visitor: Watched, world: ToolWorld) -> None:
    """A failure of the check is shown on the page."""
    page = visitor.page
    page.route("**/domains/*/live?*", lambda route: route.abort())
    visitor.go("/domains/good.test?refresh=true")
    expect(page.locator("#result [role=alert]")).to_contain_text("connection was lost")
    page.unroute_all()
    page.route("**/blocklists/live", lambda route: route.abort())
    visitor.go("/domains/good.test/blocklists")
    expect(page.locator("#totals [role=alert]")).to_contain_text("connection was lost")
    page.unroute_all()
    visitor.complaints.clear()


MAX_REQUESTS = 10
"""Requests of a page, including its event stream and the update after it has opened."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_overview_answers_with_one_key(browser: Browser, world: ToolWorld, theme: str) -> None:
    """From the overview one key copies the newest code, or opens the report or the worst domain."""
    with watched_page(browser, world.daemon.http_port, color_scheme=theme) as watched:
        person = make_account(watched, world.daemon)
        watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = watched.page
        watched.go("/")
        expect(page.locator("#first-steps[open]")).to_be_visible()
        watched.require_accessible()
        page.keyboard.press("n")
        address = page.locator("#tests .mono")
        expect(address).to_contain_text("@mailcheck.example")
        person.get_mail(mail("Your code"), "signup")
        world.send(address.inner_text(), mail("A test", "Hello.", "Ann <ann@poor.test>"))
        expect(page.locator("#mails li")).to_contain_text("Your code")  # without a reload
        expect(page.locator("#tests .score").first).to_contain_text("of 10")
        page.keyboard.press("c")
        expect(page.locator("#mails .code-button")).to_contain_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == "482913"
        watched.require_accessible()
        watched.press_to_leave("t", "**/tests/*")
        expect(page.locator("#issues-title")).to_be_visible()
        watched.go("/domains/poor.test")
        page.get_by_role("switch", name="Watch poor.test").click()
        watched.go("/")
        expect(page.locator(".domain-card")).to_contain_text("problems")  # the watch has run
        page.goto("about:blank")
        watched.requests.clear()
        watched.go("/")
        expect(page.locator(".domain-card")).to_contain_text("problems")
        assert len(watched.requests) <= MAX_REQUESTS, watched.requests
        watched.require_accessible()
        watched.press_to_leave("d", "**/domains/poor.test")
        expect(page.locator(".issue").first).to_contain_text("Fix:")
        watched.require_accessible()
        watched.require_quiet()


def test_a_call_is_tried(visitor: Watched) -> None:
    """On the API page a call shows its response with the data of the account."""
    page = visitor.page
    visitor.go("/api")
    page.get_by_role("link", name="Inbox", exact=True).last.click()
    call = page.locator("#getInbox")
    call.get_by_text("Try it with your account").click()
    call.get_by_role("button", name="Send GET").click()
    place = page.locator("#answer-getInbox")
    expect(place).to_contain_text("GET /inbox")
    expect(place).to_contain_text("@mailcheck.example")
    expect(place.get_by_role("button", name="Copy")).to_be_visible()
    visitor.require_accessible()
