"""The pages of watches: create, view, acknowledge and delete."""

import json
import re
from html import unescape

import pytest

from tests.fakes.memory_zone import MemoryZone
from tests.web.checking import zone_with
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.tools_visit import visit_tools

DMARC = "_dmarc.good.example"


@pytest.fixture
def zone() -> MemoryZone:
    """Return the zone of a good domain."""
    return zone_with({})


@pytest.fixture
def owner(zone: MemoryZone) -> Browser:
    """Open the page of watches as a signed-in account."""
    browser = visit_tools(zone)
    browser.open("/watches")
    return browser


def watch(owner: Browser, **form: str) -> str:
    """Create a watch by the form and return the path of its page."""
    fields = {"target": "good.example", "every": "15", **form}
    answer = owner.submit("/watches", **fields)
    assert answer.status == 303, answer.body
    path = answer.headers["location"].partition("?")[0]
    assert re.fullmatch(r"/watches/\w+", path)
    owner.open(path)
    return path


def words(owner: Browser, path: str) -> str:
    """Return the text of a page in one line."""
    owner.open(path)
    return " ".join(owner.page.text.split())


def test_the_life_of_a_watch(owner: Browser, zone: MemoryZone) -> None:
    """The page shows the score, alerts that can be acknowledged, and the history."""
    assert "No watches yet." in words(owner, "/watches")
    path = watch(owner, selectors="default", quiet="22:00-06:00")
    assert "Not checked yet" in words(owner, path)
    owner.submit(f"{path}/run")
    assert "Score 100 of 100, grade A+" in words(owner, path)
    assert "No alerts since monitoring began." in owner.page.text
    zone.publish(DMARC, "TXT")
    owner.house.pass_time(3_600)
    owner.submit(f"{path}/run")
    page = words(owner, path)
    assert "The score fell from 100" in page
    body = owner.open(path).body.decode()
    assert body.count('class="score-line"') == 9
    assert re.findall(r'<circle class="(\w+)"', body)[-1] == "bad"  # it lies on top
    (action,) = re.findall(rf'action="({path}/alerts/\w+/acknowledge)"', body)
    owner.submit(action)
    assert ", acknowledged" in words(owner, path)
    assert "good.example" in words(owner, "/watches")
    table = owner.open(f"{path}/history.csv")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert "DMARC" in table.body.decode()
    assert json.loads(owner.open(f"{path}/history.json").body)["target"] == "good.example"
    owner.open(path)
    owner.submit(f"{path}/delete")
    assert owner.open(path).status == 404
    assert "No watches yet." in words(owner, "/watches")


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"target": "no domain"}, "no domain"),
        ({"target": ""}, "Enter the domain or the IP address to watch"),
        ({"every": "5"}, "every must be an integer from 15 to 1440"),
        ({"quiet": "late"}, "quiet must be two times of day"),
    ],
)
def test_an_invalid_form(owner: Browser, form: dict[str, str], problem: str) -> None:
    """An invalid form is shown again with its values and the problem."""
    answer = owner.submit("/watches", **{"target": "good.example", "every": "60", **form})
    assert answer.status == 400
    assert problem.lower() in answer.body.decode().lower()


def test_a_shorter_period(owner: Browser, zone: MemoryZone) -> None:
    """A shorter period leaves out older changes, but the plot begins with the last score."""
    path = watch(owner)
    owner.submit(f"{path}/run")
    zone.publish(DMARC, "TXT")
    owner.house.pass_time(3_600)
    owner.open(path)
    owner.submit(f"{path}/run")
    owner.house.pass_time(8 * 86_400)
    owner.sign_in()
    assert "No changes in this period." in words(owner, f"{path}?days=7")
    assert "<polyline" in owner.open(f"{path}?days=7").body.decode()
    assert "The score fell" in words(owner, f"{path}?days=30")
    assert owner.open(f"{path}?days=0").status == 400


def test_from_a_check_to_a_watch(owner: Browser) -> None:
    """The page of a domain check links to the form, filled in with its values."""
    checked = owner.open("/domain?domain=good.example&selectors=default&whole=true").body.decode()
    (link,) = re.findall(r'href="(/watches\?[^"]+)"', checked)
    body = owner.open(unescape(link)).body.decode()
    assert 'name="target" value="good.example"' in body
    assert 'name="selectors" value="default"' in body


def test_the_recipients_of_alerts(owner: Browser) -> None:
    """A new webhook shows its secret once, and the recipients can be changed."""
    answer = owner.submit(
        "/watches", target="good.example", every="15", alert_to="https://ops.example.com/alerts"
    )
    assert re.search(r"whsec_[A-Za-z0-9+/]+", answer.body.decode())
    (path,) = set(re.findall(r'href="(/watches/\w+)"', answer.body.decode()))
    page = words(owner, path)
    assert "https://ops.example.com/alerts active" in page
    assert "whsec_" not in page
    assert "Receives alerts of watches" in words(owner, "/keys")
    owner.open(path)
    wrong = owner.submit(f"{path}/alert-to", alert_to="ops@mailcheck.example")
    assert wrong.status == 400
    assert "no mail to ops@mailcheck.example" in wrong.body.decode()
    assert 'value="ops@mailcheck.example"' in wrong.body.decode()
    assert "https://ops.example.com/alerts active" in words(owner, path)
    changed = owner.submit(f"{path}/alert-to", alert_to="ops@example.com, night@example.com")
    assert changed.status == 303
    page = words(owner, path)
    assert "ops@example.com active" in page
    assert "night@example.com active" in page
    assert "https://ops.example.com" not in page
    owner.submit(f"{path}/alert-to", alert_to="")
    assert "Only your inbox (+watch-alerts)." in words(owner, path)
