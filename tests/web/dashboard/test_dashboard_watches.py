"""The tab History of a domain: watch, view, acknowledge and delete."""

import json
import re

import pytest

from tests.fakes.memory_zone import MemoryZone
from tests.house import run
from tests.table import rows
from tests.web.checking import zone_with
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.tools_visit import visit_tools

DMARC = "_dmarc.good.example"


@pytest.fixture
def zone() -> MemoryZone:
    """Return the zone of a good domain."""
    return zone_with({})


PAGE = "/p/me/domains/good.example/history"


@pytest.fixture
def owner(zone: MemoryZone) -> Browser:
    """Open the history of a domain that is not watched yet, as a signed-in account."""
    browser = visit_tools(zone)
    browser.open(PAGE)
    return browser


def watch(owner: Browser, **form: str) -> str:
    """Create a watch by the form and return the path of its domain."""
    answer = owner.submit("/domains/good.example/settings", **{"every": "15", **form})
    assert (answer.status, answer.headers["location"]) == (303, f"{PAGE}?done=watch-saved")
    owner.open(PAGE)
    return "/domains/good.example"


def test_the_life_of_a_watch(owner: Browser, zone: MemoryZone) -> None:
    """The tab shows the score, alerts that can be acknowledged, and the history."""
    assert "Not watched" in owner.read(PAGE)
    path = watch(owner, selectors="default", quiet="22:00-06:00")
    assert "Not checked yet" in owner.read(PAGE)
    owner.submit(f"{path}/run")
    assert "Score 100 of 100, grade A+" in owner.read(PAGE)
    assert "No alerts since monitoring began." in owner.page.text
    zone.publish(DMARC, "TXT")
    owner.house.pass_time(3_600)
    owner.submit(f"{path}/run")
    page = owner.read(PAGE)
    assert "The score fell from 100" in page
    body = owner.open(PAGE).body.decode()
    assert body.count('class="score-line"') == 9
    assert re.findall(r'<circle class="(\w+)"', body)[-1] == "bad"  # it lies on top
    (action,) = re.findall(rf'action="(/p/me{path}/alerts/\w+/acknowledge)"', body)
    owner.submit(action)
    assert ", acknowledged" in owner.read(PAGE)
    assert "good.example" in owner.read("/domains")
    table = owner.open(f"{path}/history.csv")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert "DMARC" in table.body.decode()
    assert json.loads(owner.open(f"{path}/history.json").body)["target"] == "good.example"
    owner.submit(f"{path}/delete")
    assert "Not watched" in owner.read(PAGE)
    assert owner.open(f"{path}/history.csv").status == 404
    assert "good.example" not in owner.read("/domains")


def test_an_old_address_of_a_watch(owner: Browser) -> None:
    """The former address of a watch, as in sent alerts, leads to the tab."""
    watch(owner)
    account = run(owner.house.assembly.accounts.keep.find("ann"))
    found = run(owner.house.assembly.watches.keep.of_target(account.id, "good.example"))
    assert owner.open(f"/watches/{found.id}").headers["location"] == PAGE
    assert owner.open("/watches/unknown").status == 404


def test_a_switch_keeps_the_history(owner: Browser) -> None:
    """The switch pauses the checks and continues them; settings and history are kept."""
    path = watch(owner, quiet="22:00-06:00")
    owner.submit(f"{path}/run")
    owner.submit(f"{path}/watch", on="false", next=PAGE)
    assert "Paused" in owner.read(PAGE)
    assert "Score 100 of 100" in owner.read(PAGE)
    owner.submit(f"{path}/settings", every="30", quiet="22:00-06:00")
    assert "Paused" in owner.read(PAGE)
    owner.submit(f"{path}/watch", on="true", next=PAGE)
    assert "Next check" in owner.read(PAGE)
    body = owner.open(PAGE).body.decode()
    assert 'value="22:00-06:00"' in body
    assert 'name="every" value="30"' in body


@rows(
    ({"every": "5"}, "every must be an integer from 15 to 1440"),
    ({"quiet": "late"}, "quiet must be two times of day"),
    ({"ips": "10.0.0.1"}, "private"),
)
def test_an_invalid_form(owner: Browser, form: dict[str, str], problem: str) -> None:
    """An invalid form is shown again with its values and the problem."""
    answer = owner.submit("/domains/good.example/settings", **{"every": "60", **form})
    assert answer.status == 400
    assert problem.lower() in answer.body.decode().lower()
    assert all(f'value="{value}"' in answer.body.decode() for value in form.values())


def test_a_shorter_period(owner: Browser, zone: MemoryZone) -> None:
    """A shorter period leaves out older changes, but the plot begins with the last score."""
    path = watch(owner)
    owner.submit(f"{path}/run")
    zone.publish(DMARC, "TXT")
    owner.house.pass_time(3_600)
    owner.submit(f"{path}/run")
    owner.house.pass_time(8 * 86_400)
    owner.sign_in()
    assert "No changes in this period." in owner.read(f"{PAGE}?days=7")
    assert "<polyline" in owner.open(f"{PAGE}?days=7").body.decode()
    assert "The score fell" in owner.read(f"{PAGE}?days=30")
    assert owner.open(f"{PAGE}?days=0").status == 400


def test_a_switch_keeps_the_selectors_of_a_check(owner: Browser) -> None:
    """A domain that is checked with selectors is watched with them."""
    body = owner.open("/domains?check=good.example&selectors=default&whole=true").body.decode()
    assert 'name="selectors" value="default"' in body
    owner.submit("/domains/good.example/watch", on="true", selectors="default", next="/domains")
    assert 'name="selectors" value="default"' in owner.open(PAGE).body.decode()


def test_the_recipients_of_alerts(owner: Browser) -> None:
    """A new webhook shows its secret once, and the recipients can be changed."""
    save = "/domains/good.example/settings"
    answer = owner.submit(save, every="15", alert_to="https://ops.example.com/alerts")
    assert re.search(r"whsec_[A-Za-z0-9+/]+", answer.body.decode())
    assert f'href="{PAGE}"' in answer.body.decode()
    page = owner.read(PAGE)
    assert "https://ops.example.com/alerts active" in page
    assert "whsec_" not in page
    assert "Receives alerts of watches" in owner.read("/webhooks")
    wrong = owner.submit(save, every="15", alert_to="ops@mailcheck.example")
    assert wrong.status == 400
    assert "no mail to ops@mailcheck.example" in wrong.body.decode()
    assert 'value="ops@mailcheck.example"' in wrong.body.decode()
    assert "https://ops.example.com/alerts active" in owner.read(PAGE)
    changed = owner.submit(save, every="15", alert_to="ops@example.com, night@example.com")
    assert changed.status == 303
    page = owner.read(PAGE)
    assert "ops@example.com active" in page
    assert "night@example.com active" in page
    assert "https://ops.example.com" not in page
    owner.submit(save, every="15", alert_to="")
    assert "Your inbox gets every alert (+watch-alerts)." in owner.read(PAGE)
