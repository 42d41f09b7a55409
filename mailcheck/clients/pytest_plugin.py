"""The fixtures of pytest for suites that test mail, in every environment with mailcheck and pytest.

    def test_sign_up(mailcheck_inbox):
        sign_up(mailcheck_inbox.address)
        assert mailcheck_inbox.wait().code == "482913"

The first test that asks for a fixture starts a daemon, which all workers of xdist share. It ends
with the last of them. With ``MAILCHECK_URL`` and ``MAILCHECK_API_KEY``, the fixtures use that
daemon.

pytest loads this module in every run, so the fixtures import what they need.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from mailcheck.clients.pytest_daemon import Inbox, Server

INBOX = "mailcheck_inbox"
"""Name of the fixture with an address of a test's own."""


@pytest.fixture(scope="session")
def mailcheck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The daemon: its ``url`` and ``key``, its ports, and all calls of the client library."""
    from mailcheck.clients.pytest_daemon import Server, shared_daemon

    if os.environ.get("MAILCHECK_URL"):
        yield Server()
        return
    folder = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    with shared_daemon((folder.parent if is_worker else folder) / "mailcheck") as server:
        yield server


@pytest.fixture
def mailcheck_inbox(mailcheck: Server, request: pytest.FixtureRequest) -> Inbox:
    """An address for this test only, and the mail to it."""
    from mailcheck.clients.pytest_daemon import Inbox

    return Inbox(mailcheck, request.node.name)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Add the mail that has arrived to the report of a failed test."""
    outcome = yield
    inbox = getattr(item, "funcargs", {}).get(INBOX)
    if inbox is None:
        return
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        report.sections.append((f"mail of {INBOX}", inbox.describe()))
