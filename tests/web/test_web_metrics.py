"""The metrics of an account for Prometheus."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mailcheck.core.rights import make_rights
from mailcheck.operations.collect_metrics import OTHER, PREFIX
from tests.house import House
from tests.web.test_web_heartbeats import HOUR, Beating
from tests.web.test_web_watches import Watching

Series = dict[tuple[str, ...], float]


def scrape(house: House, query: str = "", key: str | None = "") -> dict[str, Series]:
    """Return the series of each metric, by the values of their labels."""
    answer = house.ask("GET", f"/metrics{query}", key=key).answer()
    assert answer.status == 200, answer.body
    return {
        family.name.removeprefix(PREFIX): {
            tuple(sample.labels.values()): sample.value for sample in family.samples
        }
        for family in text_string_to_metric_families(answer.body.decode())
    }


@pytest.fixture
def beating() -> Beating:
    """A house without heartbeats."""
    return Beating()


def test_watches_and_their_lists() -> None:
    """A watch has its score, its problems, its certificate, and its lists by result."""
    watching = Watching()
    one, _ = watching.watch(), watching.watch("8.8.4.10")
    assert scrape(watching.house)["watch_problems"] == {}
    watching.ask("POST", f"{one}/run")
    watching.zone.publish("10.4.8.8.zen.spamhaus.org", "A", "127.0.0.2")
    watching.house.pass_time(HOUR)
    shown = watching.ask("POST", f"{one}/run")
    found = scrape(watching.house)
    target = ("good.example",)
    assert found["watch_score"] == {target: shown["score"]}
    assert found["watch_problems"] == {target: shown["problemCount"]}
    assert found["open_alerts"]["error", "watch"] == len(shown["alerts"]) > 0
    lists = found["watch_blocklists"]
    assert lists["listed", "good.example"] == 1
    assert lists["undetermined", "good.example"] == 0
    assert lists["clean", "good.example"] > 30
    assert found["watch_certificate_expiry_timestamp_seconds"][target] > 1.79e9


def test_heartbeats(beating: Beating) -> None:
    """A heartbeat has what came and what is missing; a paused one has no series."""
    address = beating.create(everyMinutes=60, graceMinutes=5)
    beating.create("other-one", everyMinutes=60)
    beating.ask("PATCH", "/heartbeats/other-one", {"paused": True})
    backup = ("backup",)
    assert scrape(beating.house)["heartbeat_missed"] == {backup: 0}
    beating.house.pass_time(HOUR)
    beating.scored.deliver(address)
    beating.look()
    found = scrape(beating.house)
    assert found["heartbeat_score"] == {backup: 10}
    assert found["heartbeat_late_seconds"] == {backup: 0}
    assert (
        found["heartbeat_due_timestamp_seconds"][backup]
        - found["heartbeat_last_timestamp_seconds"][backup]
        == HOUR
    )
    beating.look(2 * HOUR)
    found = scrape(beating.house)
    assert (found["heartbeat_missed"], found["heartbeat_problems"]) == ({backup: 1}, {backup: 1})
    assert found["open_alerts"]["warning", "heartbeat"] == 1


def test_the_number_of_series_is_bounded(beating: Beating) -> None:
    """Targets over the limit are one series, and their number is told."""
    for number in range(5):
        beating.create(f"beat-{number}", everyMinutes=60)
    found = scrape(beating.house, "?most=2")
    assert {*found["heartbeat_missed"]} == {("beat-0",), ("beat-1",), (OTHER,)}
    assert found["other_targets"]["heartbeat",] == 3


def test_a_key_needs_the_scope(beating: Beating) -> None:
    """A key with only this scope reads metrics and nothing else; others do not see them."""
    house = beating.house
    beating.create(everyMinutes=60)
    key = house.issue_key(house.account, rights=make_rights(["metrics:read"]))
    assert scrape(house, key=key)["heartbeat_missed"] == {("backup",): 0}
    assert house.ask("GET", "/heartbeats", key=key).answer().status == 403
    other = house.issue_key(house.account, rights=make_rights(["watches"]))
    assert house.ask("GET", "/metrics", key=other).answer().status == 403
    assert scrape(house, key=beating.scored.stranger())["heartbeat_missed"] == {}


def test_names_and_texts_follow_the_conventions(beating: Beating) -> None:
    """Each metric has a text, and a unit at the end of its name where it has one."""
    text = beating.house.ask("GET", "/metrics").answer().body.decode()
    names = re.findall(r"^# TYPE (\S+) gauge$", text, re.M)
    assert len(names) > 15
    assert all(name.startswith(PREFIX) for name in names)
    assert re.findall(r"^# HELP (\S+) \S", text, re.M) == names
    assert not re.search(r"^\S+_(minutes|days|ms|percent)\b", text, re.M)
