"""The page with the results of ``mailcheck doctor``."""

from mailcheck.config.options import Config, ProbeOptions, SpamassassinOptions
from tests.house import House, config_in_memory, run
from tests.web.checking import checking_house, zone_with
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP


def config_with_dns_only() -> Config:
    """Return a configuration that sends requests to DNS only."""
    return config_in_memory(
        accounts=CHEAP,
        probes=ProbeOptions(rdap_bootstrap="registries.json"),
        spamassassin=SpamassassinOptions(spamd="off"),
    )


def visitor(house: House, *, is_operator: bool) -> Browser:
    """Sign in as the operator or as another account."""
    browser = Browser(house)
    account = run(house.assembly.accounts.keep.add("ann", is_operator=is_operator))
    run(house.assembly.accounts.sign_in.set_password(account, "correct horse"))
    browser.sign_in()
    return browser


def test_the_operator_sees_what_the_doctor_finds() -> None:
    """Each examination is shown with its fix; what cannot be determined is unknown."""
    house = checking_house(zone_with({}), config_with_dns_only())
    browser = visitor(house, is_operator=True)
    assert "/account/doctor" in browser.open("/account").body.decode()
    assert browser.open("/account/doctor").status == 200
    shown = browser.page.text
    for topic in ("dns", "port-in", "port-out", "blocklists", "clock", "disk", "rights"):
        assert topic in shown
    assert "other mail servers cannot" in shown
    assert "unknown" in shown
    assert "there is no database" in shown.lower()


def test_other_accounts_are_rejected() -> None:
    """Other accounts get 403 and no link to the page."""
    house = checking_house(zone_with({}), config_with_dns_only())
    browser = visitor(house, is_operator=False)
    assert "/account/doctor" not in browser.open("/account").body.decode()
    assert browser.open("/account/doctor").status == 403
