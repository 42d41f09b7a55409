"""The welcome page: a domain is checked at once, within the limits of people without an account."""

from mailcheck.config.options import LimitsOptions
from mailcheck.operations.accounts.authenticate import STRANGER_PER_MINUTE, STRANGERS_PER_MINUTE
from tests.fakes.memory_zone import MemoryZone
from tests.house import config_in_memory
from tests.table import rows
from tests.web.checking import checking_house, zone_with
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP


def visit(zone: MemoryZone, per_day: int = 20) -> Browser:
    """Return the browser of a stranger on the welcome page."""
    limits = LimitsOptions(stranger_checks_per_day=per_day)
    browser = Browser(checking_house(zone, config_in_memory(accounts=CHEAP, limits=limits)))
    browser.open("/")
    return browser


def check(browser: Browser, domain: str) -> int:
    """Check a domain on the welcome page, and return the status."""
    browser.open("/")
    return browser.submit("/check", domain=domain).status


def test_a_stranger_gets_a_report() -> None:
    """A stranger enters a domain, and gets its score without an account. Nothing is stored."""
    browser = visit(zone_with({}))
    answer = browser.submit("/check", domain=" https://Good.Example/ ")
    assert answer.status == 200
    assert 'aria-label="Score 100 of 100, grade A+"' in answer.body.decode()
    assert browser.page.text.lstrip().startswith("good.example: Will your mail arrive?")
    browser.sign_up()
    assert "good.example" not in browser.read("/domains")


@rows("192.0.2.1", "no domain", "", "localhost")
def test_what_is_not_a_domain(typed: str) -> None:
    """Another text than a domain is rejected with a reason and without a DNS question."""
    zone = zone_with({})
    browser = visit(zone)
    answer = browser.submit("/check", domain=typed)
    assert answer.status == 400
    assert 'role="alert"' in answer.body.decode()
    assert zone.asked == []


def test_the_limits_of_an_address() -> None:
    """An address has few checks in a minute and in a day. Other addresses are not affected."""
    browser = visit(zone_with({}), per_day=STRANGER_PER_MINUTE + 1)
    statuses = [check(browser, "good.example") for _ in range(STRANGER_PER_MINUTE + 1)]
    assert statuses == [200] * STRANGER_PER_MINUTE + [429]
    assert f"the limit of {STRANGER_PER_MINUTE} checks per minute without an account".lower() in (
        browser.words.lower()
    )
    assert check(Browser(browser.house, "192.0.2.77"), "good.example") == 200
    browser.house.pass_time(60)
    assert [check(browser, "good.example") for _ in range(2)] == [200, 429]
    assert "per day without an account is reached" in browser.words


def test_the_limit_of_all_strangers() -> None:
    """Many addresses together have a common limit."""
    browser = visit(zone_with({}))
    statuses = [
        check(Browser(browser.house, f"192.0.2.{number}"), "good.example")
        for number in range(20, 20 + STRANGERS_PER_MINUTE + 1)
    ]
    assert statuses == [200] * STRANGERS_PER_MINUTE + [429]


def test_the_operator_turns_the_checks_off() -> None:
    """Without checks for strangers, the page has no form, and a sent one is rejected."""
    zone = zone_with({})
    browser = visit(zone, per_day=0)
    assert "Check a domain" not in browser.words
    browser.open("/sign-in")
    assert browser.submit("/check", domain="good.example").status == 403
    assert zone.asked == []


def test_a_person_checks_on_the_own_page() -> None:
    """Someone who has signed in meanwhile is led to the page of domains."""
    browser = visit(zone_with({}))
    browser.sign_up_by_form()
    answer = browser.submit("/check", domain="good.example")
    assert answer.headers["location"].endswith("/domains?check=good.example")
