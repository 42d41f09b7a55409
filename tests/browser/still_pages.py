"""Pages in states that a daemon reaches only by failures, or with other servers.

They are rendered in this process, and shown with the style sheets and scripts of a daemon.
"""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import LimitsOptions, WebOptions
from mailcheck.core.errors import StoreUnavailable
from mailcheck.web.site.requests import MAX_BODY
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.company import Company
from tests.house import House, config_in_memory, run
from tests.operations.scored_mails import zone_with
from tests.web.checking import zone_with as checked_zone
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.test_dashboard_company import company_house
from tests.web.dashboard.test_dashboard_passkeys import PUBLIC, add, authenticator
from tests.web.dashboard.test_dashboard_traffic import MILTER, count_a_mail
from tests.web.dashboard.tools_visit import visit_tools
from tests.web.oauth.program import Program, add_client, oauth_house
from tests.web.workers import FaultyWorker


def _broken(fault: Exception) -> bytes:
    reader = FaultyWorker()
    workers = Workers(DirectWorker(), reader, DirectWorker(), DirectWorker())
    browser = Browser(House(config_in_memory(accounts=CHEAP), workers))
    browser.sign_up()
    reader.fault = fault
    return browser.open("/keys").body


def _too_large() -> bytes:
    browser = Browser(House(config_in_memory(accounts=CHEAP)))
    browser.sign_up()
    return browser.submit("/keys", name="x" * MAX_BODY).body


def _too_many() -> bytes:
    browser = visit_tools(checked_zone({}), limits=LimitsOptions(requests_per_minute=1))
    browser.open("/domains/good.example?whole=true")
    return browser.open("/domains/poor.example?whole=true").body


def _forbidden() -> bytes:
    browser = Browser(House(config_in_memory(accounts=CHEAP)))
    browser.sign_up()
    return browser.open("/account/people").body


def _consent() -> bytes:
    house = oauth_house()
    browser = Browser(house)
    browser.sign_up()
    client, _ = add_client(house, name="Desktop Agent")
    return Program(browser, client.id).ask().body


def _company() -> bytes:
    return Browser(company_house(Company(), title="Example Inc.")).open("/sign-in").body


def _passkeys() -> bytes:
    config = config_in_memory(web=WebOptions(public_url=PUBLIC), accounts=CHEAP)
    browser = Browser(House(config))
    browser.sign_up()
    add(browser, authenticator())
    return browser.open("/account").body


def _traffic(path: str) -> bytes:
    house = House(config_in_memory(milter=MILTER, accounts=CHEAP), zone=zone_with())
    run(house.assembly.accounts.sign_in.set_password(house.account, "correct horse"))
    browser = Browser(house)
    browser.sign_in("first")
    count_a_mail(house)
    return browser.open(path).body


STILL_PAGES: Mapping[str, Callable[[], bytes]] = {
    "error-403": _forbidden,
    "error-413": _too_large,
    "error-429": _too_many,
    "error-500": lambda: _broken(RuntimeError("a fault")),
    "error-503": lambda: _broken(StoreUnavailable("the database cannot answer now: locked")),
    "consent": _consent,
    "sign-in-company": _company,
    "account-passkeys": _passkeys,
    "traffic-counted": lambda: _traffic("/traffic?days=30"),
    "traffic-sources": lambda: _traffic(
        f"/traffic/sources?{urlencode({'domain': 'sender.example', 'days': 30})}"
    ),
}
"""Functions that render the pages, by name."""
