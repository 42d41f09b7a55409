"""Heartbeats over REST: created, met, late, back, changed and deleted."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mailcheck.core.domains.heartbeats import HeartbeatSettings, HeartbeatState, Schedule
from mailcheck.core.domains.watches import WatchSettings
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import SECOND, parse_instant
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, run
from tests.operations.scored_mails import PERFECT, received
from tests.web.scored_house import ScoredHouse

MINUTE = 60
HOUR = 3_600


class Beating:
    """A house with a runner of heartbeats, which looks when time passes."""

    def __init__(self) -> None:
        self.scored = ScoredHouse(MemoryZone(PERFECT), config_in_memory())
        self.house: House = self.scored.house
        self.runner = self.house.assembly.watches.beats
        run(self.runner.start())

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a request that must have the given status, and return its body."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.house.ask(method, path, data=data).answer()
        assert answer.status == status, answer.body
        return answer.json

    def create(self, name: str = "backup", **choice: Any) -> str:
        """Create a heartbeat, and return its address."""
        made = self.ask("POST", "/heartbeats", {"name": name, **choice})
        return str(made["address"])

    def look(self, seconds: float = 0) -> Any:
        """Let time pass, look for due heartbeats, and return the first one."""
        step = 30.0
        while seconds > 0:
            self.house.pass_time(min(step, seconds))
            seconds -= step
            run(self.runner.poll())
        run(self.runner.poll())
        self.house.pass_time(0)
        return self.ask("GET", "/heartbeats/backup")

    def close(self) -> None:
        """Stop the runner, and close the house."""
        run(self.runner.stop())
        self.scored.close()

    def until(self, instant: str) -> float:
        """Return the seconds from now until an instant."""
        return (parse_instant(instant) - self.house.assembly.runtime.now()) / SECOND


@pytest.fixture
def beating() -> Beating:
    """A house without heartbeats."""
    return Beating()


def test_a_heartbeat_is_met_missed_and_back(beating: Beating) -> None:
    """Mail to its address is scored and counted; without it there is an alert within a minute."""
    address = beating.create(everyMinutes=60, graceMinutes=5)
    assert "+beat.backup@" in address
    shown = beating.look()
    assert (shown["state"], shown["lastAt"], shown["history"]) == ("new", None, [])
    beating.scored.deliver(address)
    shown = beating.look()
    (beat,) = shown["beats"]
    assert (shown["state"], shown["lateSeconds"], shown["score"]) == ("on-time", -60 * MINUTE, 10.0)
    assert (beat["spf"], beat["dkim"], beat["dmarc"], beat["verdict"]) == (True,) * 3 + ("on-time",)
    beating.scored.deliver(address)
    shown = beating.look(10 * MINUTE)
    verdicts = sorted(one["verdict"] for one in shown["beats"])
    assert (shown["state"], verdicts) == ("on-time", ["extra", "on-time"])
    assert len(beating.ask("GET", "/inbox/messages?tag=beat.backup")["messages"]) == 2
    assert beating.look(beating.until(shown["dueAt"]) + 5 * MINUTE)["state"] == "on-time"
    shown = beating.look(MINUTE)
    assert shown["state"] == "late"
    (alert,) = beating.ask("GET", "/heartbeats")["openAlerts"]
    assert alert["sentence"].startswith("The heartbeat is late: its mail was due at ")
    told = f"/heartbeats/backup/alerts/{alert['id']}/acknowledge"
    assert beating.ask("POST", told)["acknowledgedAt"]
    beating.scored.deliver(address)
    shown = beating.look()
    assert (shown["state"], shown["missed"]) == ("on-time", 0)
    assert shown["alerts"][0]["ending"].startswith("The heartbeat is back: its mail came 6 minutes")
    assert sum(day["late"] for day in shown["history"]) == 1


def test_an_alert_is_sent_within_a_minute_of_the_grace(beating: Beating) -> None:
    """The mail about a missed beat does not wait for the pause after another alert."""
    tell = beating.house.assembly.watches.send_alerts
    beating.create(everyMinutes=60, graceMinutes=5)
    beating.create("relay", everyMinutes=61, graceMinutes=5)
    assert beating.look(65 * MINUTE)["state"] == "new"

    def subjects() -> list[str]:
        run(tell.send_pending())
        found = beating.ask("GET", "/inbox/messages?tag=watch-alerts")["messages"]
        return [mail["subject"].partition(":")[0] for mail in found]

    assert subjects() == []
    for _ in range(6):
        beating.house.pass_time(5)
        run(beating.runner.poll())
        subjects()
    assert subjects() == ["backup"]
    for _ in range(14):
        beating.house.pass_time(5)
        run(beating.runner.poll())
        subjects()
    assert subjects() == ["relay", "backup"]


def test_a_worse_beat_raises_an_alert(beating: Beating) -> None:
    """A record that is gone is told by the next beat: SPF and the score, and their return."""
    address = beating.create(everyMinutes=60)
    beating.house.pass_time(HOUR)
    beating.scored.deliver(address)
    beating.look()
    mail = received()
    domain = mail.envelope_sender.rpartition("@")[2]
    records = beating.scored.zone.published(domain, "TXT")
    beating.scored.zone.publish(domain, "TXT", "v=spf1 -all")
    beating.house.pass_time(HOUR)
    beating.scored.deliver(address)
    shown = beating.look()
    assert {one["sentence"] for one in shown["alerts"] if one["endedAt"] is None} >= {
        "SPF no longer passes for the heartbeat."
    }
    beating.scored.zone.publish(domain, "TXT", *records)
    beating.house.pass_time(HOUR)
    beating.scored.deliver(address)
    assert beating.look()["problemCount"] == 0


def test_a_forged_beat_does_not_count(beating: Beating) -> None:
    """With a required signature, mail of anybody else leaves the heartbeat missing."""
    signer = received().envelope_sender.rpartition("@")[2]
    address = beating.create(everyMinutes=60, signedBy=signer)
    beating.house.pass_time(HOUR)
    beating.house.receive(address)
    shown = beating.look()
    assert (shown["state"], shown["beats"][0]["verdict"]) == ("new", "refused")
    beating.scored.deliver(address)
    assert beating.look()["state"] == "on-time"


def test_after_a_stop_senders_may_try_again(beating: Beating) -> None:
    """A daemon that was stopped at the time of a beat does not report it at its start."""
    address = beating.create(everyMinutes=60, graceMinutes=5)
    beating.look()
    run(beating.runner.stop())
    beating.house.pass_time(2 * HOUR)
    run(beating.runner.start())
    assert beating.look(10 * MINUTE)["state"] == "new"
    beating.scored.deliver(address)
    assert beating.look(10 * MINUTE)["state"] == "on-time"
    run(beating.runner.stop())
    beating.house.pass_time(2 * HOUR)
    run(beating.runner.start())
    assert beating.look(76 * MINUTE)["state"] in ("late", "missing")


def test_a_clock_that_jumps_raises_no_alarm(beating: Beating) -> None:
    """A time of day that is set ahead and back neither reports a beat nor forgets one."""
    beating.create(at="15:30", timeZone="Europe/Berlin", graceMinutes=5)
    due = beating.look()["dueAt"]
    beating.house.set_ahead = 2 * 24 * HOUR
    assert beating.look(5 * MINUTE)["state"] == "new"
    beating.house.set_ahead = 0.0
    assert beating.look(MINUTE)["dueAt"] == due
    assert beating.look(beating.until(due) + 5 * MINUTE)["state"] == "new"
    assert beating.look(MINUTE)["state"] == "late"


def test_a_heartbeat_is_changed_paused_and_deleted(beating: Beating) -> None:
    """Each setting can be changed alone; a pause and another schedule begin anew."""
    address = beating.create(at="06:00", days=["mon", "fri"], alertTo=[])
    assert beating.ask("PATCH", "/heartbeats/backup", {"timeZone": "Asia/Tokyo"})["schedule"] == (
        "Mon, Fri at 06:00 Asia/Tokyo"
    )
    changed = beating.ask("PATCH", "/heartbeats/Backup", {"everyMinutes": 90, "slowMinutes": 0})
    assert (changed["at"], changed["everyMinutes"], changed["slowMinutes"]) == (None, 90, 0)
    paused = beating.ask("PATCH", "/heartbeats/backup", {"paused": True, "quiet": "22:00-06:00"})
    assert (paused["state"], paused["dueAt"]) == (HeartbeatState.PAUSED.value, None)
    assert beating.look(5 * HOUR)["state"] == "paused"
    beating.scored.deliver(address)
    assert beating.look()["beats"] == []
    resumed = beating.ask("PATCH", "/heartbeats/backup", {"paused": False})
    assert beating.until(resumed["dueAt"]) == 90 * MINUTE
    assert beating.look(MINUTE)["state"] == "new"
    beating.ask("DELETE", "/heartbeats/backup")
    beating.ask("GET", "/heartbeats/backup", status=404)
    beating.scored.deliver(address)
    assert beating.ask("GET", "/heartbeats")["heartbeats"] == []
    assert len(beating.ask("GET", "/inbox/messages?tag=beat.backup")["messages"]) == 2


def test_a_heartbeat_is_saved_as_it_should_be(beating: Beating) -> None:
    """Saving creates a heartbeat or changes it. The same settings again begin nothing anew."""
    keep, account_id = beating.house.assembly.watches.heartbeats, beating.house.account.id
    wanted = WatchSettings(heartbeat=HeartbeatSettings(Schedule(every=HOUR * SECOND)))
    first = run(keep.save(account_id, "Backup", wanted)).heartbeat
    beating.look(MINUTE)
    again = run(keep.save(account_id, "backup", wanted)).heartbeat
    assert again.watch.settings == first.watch.settings
    assert (again.watch.id, again.beats.expected) == (first.watch.id, first.beats.expected)
    paused = run(keep.save(account_id, "backup", replace(wanted, is_paused=True))).heartbeat
    assert paused.state is HeartbeatState.PAUSED
    with pytest.raises(InvalidParameter):
        run(keep.save(account_id, "backup", WatchSettings()))


INVALID = (
    ({"name": "a"}, "at or everyMinutes is missing"),
    ({"name": "a", "at": "06:00", "everyMinutes": 5}, "cannot be combined"),
    ({"name": "a", "everyMinutes": 60, "days": ["mon"]}, "cannot be combined"),
    ({"name": "a", "timeZone": "UTC"}, "belongs to at"),
    ({"name": "a", "at": "24:00"}, "at"),
    ({"name": "a.b", "at": "06:00"}, "name must be"),
    ({"name": "a", "at": "06:00", "days": ["someday"]}, "days"),
    ({"name": "a", "at": "06:00", "timeZone": "Mars/Olympus"}, "must be a time zone"),
    ({"name": "a", "everyMinutes": 4}, "from 5 to"),
    ({"name": "a", "everyMinutes": 5, "graceMinutes": 0}, "from 1 to"),
    ({"name": "a", "everyMinutes": 5, "slowMinutes": -1}, "from 0"),
    ({"name": "a", "everyMinutes": 5, "signedBy": "no domain"}, "signedBy"),
    ({"name": "a", "everyMinutes": 5, "alertTo": ["nowhere"]}, "alertTo"),
)


def test_an_invalid_heartbeat(beating: Beating) -> None:
    """A heartbeat that cannot be kept is refused with the parameter and what to send."""
    for body, says in INVALID:
        assert says in beating.ask("POST", "/heartbeats", body, 400)["error"]
    assert beating.ask("GET", "/heartbeats")["heartbeats"] == []
