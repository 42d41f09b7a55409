"""Two tabs of one person in two projects: no page acts on a project that its URL does not name."""

from collections.abc import Callable
from typing import Any

import pytest

from mailcheck.core.projects import Role
from mailcheck.store.accounts.project_store import Held
from mailcheck.web.dashboard.addresses import MINE, address_in
from mailcheck.web.dashboard.door import HELD
from mailcheck.web.dashboard.visits import Page
from tests.fakes.report_senders import signed_report
from tests.house import House, mail, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import fetch
from tests.web.dashboard.test_dashboard_projects import PATHS, account_of, filled, pages_of

FORM = {
    "name": "walked",
    "all": "true",
    "role": "editor",
    "url": "https://hooks.example/walked",
    "on": "true",
    "every": "30",
    "day": "2026-11-20",
    "sender": "198.51.100.7",
    "decision": "mine",
    "next": "/",
}
"""Fields of forms. A page does not read those that it does not know."""

UNOBSERVED = ("dashboard_session", "audit", "check_usage")
"""Tables about people, and counters of the use."""

Ids = dict[str, str]


@pytest.fixture
def tabs(house: House) -> tuple[Browser, Browser]:
    """Return two sessions of one person, in two projects with an object of each kind."""
    first = Browser(house)
    first.sign_up("ann")
    for name in ("alpha", "beta"):
        first.submit("/projects", name=name)
    second = Browser(house)
    second.sign_in("ann")
    first.project, second.project = (account_of(house, name).id for name in ("alpha", "beta"))
    return first, second


def fill(browser: Browser, number: int) -> Ids:
    """Add an object of each kind by the pages of the project, and return their ids."""
    house = browser.house
    account = run(house.assembly.accounts.keep.get(browser.project))
    person = house.add_account(f"member {number}")
    run(house.assembly.accounts.projects.set_member(account, person, Role.READER))
    house.receive(house.address(account=account), raw=mail("walked"))
    reports = browser.read("/reports").partition("DMARC reports go to ")[2].partition(",")[0]
    house.receive(reports, raw=signed_report("google.xml", reports), sender="")
    browser.submit("/tests")
    browser.submit("/keys", name="walked")
    browser.submit("/webhooks", url="https://hooks.example/")
    browser.submit(
        "/inbound", to="support@*", format="mailcheck", url="https://app.example/", speed="60"
    )
    route_id = _id_of(house, Held.ROUTE.value, browser.project)
    browser.submit(f"/inbound/routes/{route_id}/ready", ready="empty")
    browser.submit("/domains/good.example/settings")
    tables = {name: kind.value for name, kind in HELD.items()}
    found = {name: _id_of(house, table, browser.project) for name, table in tables.items()}
    return {**PATHS, **found, "operation_id": "generateTest", "account_id": person.id}


def _id_of(house: House, table: str, account_id: str) -> str:
    sql = f"SELECT id FROM {table} WHERE account_id = ?"
    found: str = house.sqlite.connection.execute(sql, (account_id,)).fetchone()[0]
    return found


def observer(house: House) -> Callable[[str], dict[str, Any]]:
    """Return what reads the rows of an account in all tables."""
    execute = house.sqlite.connection.execute
    tables = [one[0] for one in execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {
        table: column
        for table in tables
        for column in ("account_id", "project_id")
        if not table.startswith(UNOBSERVED)
        and column in [one[1] for one in execute(f"PRAGMA table_info({table})")]
    } | {"account": "id"}

    def observe(account_id: str) -> dict[str, Any]:
        return {
            table: execute(f"SELECT * FROM {table} WHERE {column} = ?", (account_id,)).fetchall()
            for table, column in columns.items()
        }

    return observe


def last_deletes(page: Page) -> tuple[bool, bool, int]:
    """Order pages, so that those that delete come last, and the whole project at the very end."""
    deletes = page.path.endswith(("/delete", "/revoke", "/remove"))
    return deletes, page.path == "/project/delete", -page.path.count("<")


def test_nothing_acts_on_another_project(house: House, tabs: tuple[Browser, Browser]) -> None:
    """Each page is used in one tab while the other tab shows the other project."""
    first, second = tabs
    ids, others = fill(first, 1), fill(second, 2)
    token_of = {}
    for tab in tabs:
        tab.open("/project")
        token_of[tab.project] = tab.page.form_token
    observe, changed = observer(house), set()
    accounts = (first.project, second.project, account_of(house, "ann").id)
    before = [observe(one) for one in accounts]
    for page in sorted(pages_of(house), key=last_deletes):
        if not page.is_of_project or page.path.endswith("/live"):
            continue
        second.open("/project")
        is_form = page.method == "POST"
        form = {**FORM, "id": ids["message_id"], "form-token": token_of[first.project]}
        address = filled(page, **ids).replace("/me/", f"/{first.project}/", 1)
        answer = first.post(address, **form) if is_form else fetch(first, address)
        assert answer.status < 500, address
        after = [observe(one) for one in accounts]
        assert after[1:] == before[1:], address
        if after != before:
            changed.add(page.path)
        before = after
    assert len(changed) > 25
    assert {"/inbox/delete", "/keys", "/webhooks", "/tests", "/project/delete"} <= changed
    assert others["message_id"] in second.open("/inbox").body.decode()


def test_no_object_of_another_project_is_acted_on(
    house: House, tabs: tuple[Browser, Browser]
) -> None:
    """An object below the address of another project opens in its own one, and no form finds it."""
    first, second = tabs
    fill(first, 1)
    others = fill(second, 2)
    first.open("/project")
    token, observe = first.page.form_token, observer(house)
    before = observe(second.project)
    for page in pages_of(house):
        names_object = any(f"<{name}>" in page.path for name in HELD)
        if not page.is_of_project or not names_object or page.path.endswith("/live"):
            continue
        address = filled(page, **others).replace("/me/", f"/{first.project}/", 1)
        if page.method == "POST":
            answer = first.post(address, **{**FORM, "form-token": token})
            assert answer.status in (303, 400, 403, 404, 409), address
        else:
            answer = fetch(first, address)
            there = filled(page, **others).replace("/me/", f"/{second.project}/", 1)
            moved = (answer.status, answer.headers.get("location"))
            assert moved == (303, there), address
        assert observe(second.project) == before, address


def test_each_object_of_a_path_has_a_holder(house: House) -> None:
    """A new kind of object in a path is looked for in all projects of the person, or named here."""
    named = {
        name
        for page in pages_of(house)
        if page.is_of_project
        for name in PATHS
        if f"<{name}>" in page.path
    }
    within = {"attachment_id", "other_id", "alert_id", "account_id"}
    assert named - within - set(HELD) == {"domain", "operation_id", "group", "heartbeat_name"}
    assert address_in(MINE, "/inbox") == "/p/me/inbox"
