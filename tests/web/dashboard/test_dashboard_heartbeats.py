"""The pages of heartbeats: create, look at the days, change, pause, acknowledge and delete."""

import pytest

from mailcheck.checks.watching.heartbeats import begin
from mailcheck.core.domains.heartbeats import DayOfBeats, HeartbeatSettings, Schedule
from mailcheck.core.domains.watches import Watch, WatchId, WatchKind, WatchSettings
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, HOUR, Instant, parse_instant
from mailcheck.operations.domains.watches.manage_heartbeats import SHOWN_DAYS, Heartbeat
from mailcheck.web.dashboard.domains.heartbeat_pages import draw_days
from tests.house import run
from tests.web.dashboard.browser import Browser
from tests.web.test_web_heartbeats import Beating

FORM = {
    **dict.fromkeys(("days", "every", "signed_by", "quiet", "alert_to"), ""),
    "at": "06:00",
    "zone": "Europe/Berlin",
    "grace": "30",
    "slow": "10",
}


@pytest.fixture
def beating() -> Beating:
    """A house without heartbeats."""
    return Beating()


@pytest.fixture
def owner(beating: Beating) -> Browser:
    """The first account, signed in."""
    run(
        beating.house.assembly.accounts.sign_in.set_password(beating.house.account, "correct horse")
    )
    browser = Browser(beating.house, "192.0.2.7")
    browser.sign_in("first")
    return browser


def send(owner: Browser, path: str, **form: str) -> None:
    """Send a form, and follow the redirect."""
    answer = owner.submit(path, **form)
    if answer.status == 303:
        owner.follow(answer)


def test_a_heartbeat_on_its_pages(beating: Beating, owner: Browser) -> None:
    """A form creates a heartbeat; its page has the address, the days, the mails and the alerts."""
    assert "No mail is expected yet" in owner.read("/heartbeats")
    send(owner, "/heartbeats", **FORM | {"name": "backup", "at": "", "every": "60"})
    assert "The heartbeat has been created" in owner.words
    assert "+beat.backup@" in owner.words
    beating.house.pass_time(HOUR / 1_000)
    beating.scored.deliver(beating.ask("GET", "/heartbeats/backup")["address"])
    beating.look(2 * HOUR / 1_000)
    answer = owner.open("/heartbeats/backup")
    assert "The heartbeat is late: its mail was due at" in owner.words
    assert answer.body.count(b'title="2026-') == SHOWN_DAYS
    assert "backup: The heartbeat is late" in owner.read("/")
    owner.open("/heartbeats/backup")
    (alert,) = beating.ask("GET", "/heartbeats")["openAlerts"]
    send(owner, f"/heartbeats/backup/alerts/{alert['id']}/acknowledge")
    assert "acknowledged" in owner.words
    send(owner, "/heartbeats/backup/settings", **FORM | {"days": "Mon fri"})
    assert "Mon, Fri at 06:00 Europe/Berlin" in owner.words
    send(owner, "/heartbeats/backup/settings", **FORM | {"zone": "Europe/Berlni"})
    assert "did you mean Europe/Berlin?" in owner.words
    send(owner, "/heartbeats/backup/pause", paused="yes")
    assert "Expect mail again" in owner.words
    send(owner, "/heartbeats/backup/delete")
    assert "No mail is expected yet" in owner.words


WRONG = (
    ({"name": "a.b"}, "Name must be"),
    ({"at": ""}, "At must be a time of day"),
    ({"every": "60"}, "cannot be combined"),
    ({"grace": "soon"}, "must be a number of minutes"),
    ({"signed_by": "no domain"}, "signedBy"),
)


def test_a_wrong_form_is_shown_again(owner: Browser) -> None:
    """The page says what is wrong, and keeps what was entered."""
    for wrong, says in WRONG:
        owner.open("/heartbeats")
        answer = owner.submit("/heartbeats", **FORM | {"name": "backup"} | wrong)
        assert says.lower() in owner.words.lower()
        assert b'value="Europe/Berlin"' in answer.body


def test_a_day_has_the_worst_of_its_mails() -> None:
    """Missing mail is worse than late mail, and a day without mail has no level."""
    today = parse_instant("2026-11-29T12:00:00Z")
    days = [
        DayOfBeats(Instant(today // DAY * DAY - number * DAY), **counts)
        for number, counts in enumerate(
            [{"on_time": 2}, {"on_time": 1, "late": 1}, {"late": 1, "missing": 1}, {"problems": 1}]
        )
    ]
    settings = HeartbeatSettings(Schedule(every=HOUR))
    watch = Watch(
        WatchId("w"),
        AccountId("a"),
        WatchKind.HEARTBEAT,
        "backup",
        WatchSettings(heartbeat=settings),
        today,
        today,
    )
    squares = draw_days(Heartbeat(watch, "", begin(settings, today), tuple(days)), today)
    assert [one.level for one in squares[-5:]] == ["", "warn", "bad", "warn", "good"]
    assert (squares[-2].day, squares[-2].text) == ("2026-11-28", "1 on time, 1 late")
