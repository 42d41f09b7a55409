"""A real browser and a real daemon for the tests of the pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.people import Person, make_account
from tests.browser.tool_world import ToolWorld, running_tool_world
from tests.browser.watching import AXE, CHROMIUM, OneBrowser, Watched, running_browser, watched_page
from tests.servers.daemon import HOST, Daemon, running_daemon


@pytest.fixture(scope="session")
def one_browser() -> Iterator[OneBrowser]:
    """Provide one browser for all tests."""
    if not CHROMIUM.exists():
        pytest.skip("chromium-headless-shell is missing: run scripts/install-test-needs as root")
    if not AXE.exists():
        pytest.skip("axe-core is missing: run scripts/install-test-needs")
    with running_browser() as one_browser:
        yield one_browser


@pytest.fixture
def browser(one_browser: OneBrowser) -> Iterator[Browser]:
    """Lend the browser to a test."""
    with one_browser.lent() as browser:
        yield browser


@pytest.fixture(scope="session")
def pages_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Run one daemon for all tests of pages; each test uses its own account."""
    folder = tmp_path_factory.mktemp("pages")
    with running_daemon(
        folder,
        accounts_password_cost=10,
        limits_waits_per_key=1_000,
        web_trusted_proxies=[HOST],
    ) as daemon:
        yield daemon


@pytest.fixture
def watched(browser: Browser, pages_daemon: Daemon) -> Iterator[Watched]:
    """Open a page in its own browser context."""
    with watched_page(browser, pages_daemon.http_port) as watched:
        yield watched


@pytest.fixture
def person(watched: Watched, pages_daemon: Daemon) -> Person:
    """Create an account and sign the browser in."""
    return make_account(watched, pages_daemon)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolWorld]:
    """Run the environment of the tools once for all tests of a module."""
    with running_tool_world(tmp_path_factory.mktemp("tools")) as world:
        yield world


@pytest.fixture
def visitor(browser: Browser, world: ToolWorld) -> Iterator[Watched]:
    """Open a page of the tools as a signed-in account."""
    with watched_page(browser, world.daemon.http_port) as watched:
        make_account(watched, world.daemon)
        yield watched
        watched.require_quiet()
