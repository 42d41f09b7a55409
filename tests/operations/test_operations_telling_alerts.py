"""Alerts in the inbox: one mail for several, a pause between two, none when it is quiet."""

from typing import Any

import pytest

from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.watches import ALERT_TAG, Alert, AlertId, WatchId, parse_quiet_time
from mailcheck.operations.domains.watches.tell import MOST_IN_MAIL, PAUSE, write_mail
from tests.fakes.scripted_receivers import ScriptedReceivers
from tests.house import run
from tests.storage.deliveries import NOON, at
from tests.web.test_web_watches import Watching

NOBODY = "nobody@example.com"


@pytest.fixture
def watching() -> Watching:
    """A house that watches nothing yet."""
    return Watching()


def mails(watching: Watching) -> list[Any]:
    """Tell what is to be told now, and give the mails that came of all, oldest first."""
    run(watching.house.assembly.watches.tell.tell())
    listed = watching.house.get(f"/inbox/messages?tag={ALERT_TAG}").json["messages"]
    return list(reversed(listed))


def test_what_comes_up_is_told_with_its_end(watching: Watching) -> None:
    """The first run is no news; a problem is one mail, its end another."""
    zone = watching.zone
    one = watching.watch()
    watching.alerts_after_run(one)
    assert mails(watching) == []
    records = zone.published("_dmarc.good.example", "TXT")
    zone.publish("_dmarc.good.example", "TXT")
    watching.alerts_after_run(one)
    (told,) = mails(watching)
    assert told["subject"].startswith("good.example: ")
    assert "DMARC" in told["subject"]
    assert mails(watching) == [told]
    zone.publish("_dmarc.good.example", "TXT", *records)
    watching.alerts_after_run(one)
    *_, over = mails(watching)
    assert over["subject"].startswith("good.example: Over: ")
    text = watching.house.get(f"/inbox/messages/{over['id']}").json["text"]
    assert "for 1 hour)" in text


def test_a_webhook_is_told_of_alerts(watching: Watching) -> None:
    """One that asks for their tag gets each as any other mail, signed, and nothing else."""
    house, receivers = watching.house, ScriptedReceivers()
    house.assembly.webhooks.dialer.made = receivers
    run(house.assembly.webhooks.deliver.start())
    hook = {"url": "https://ops.example.com/alerts", "tag": ALERT_TAG}
    watching.ask("POST", "/inbox/webhooks", hook)
    one = watching.watch("8.8.4.10")
    watching.ask("POST", f"{one}/run")
    house.receive(house.address("other"))
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR")
    watching.ask("POST", f"{one}/run")
    (told,) = mails(watching)
    assert receivers.subjects == [told["subject"]]
    assert receivers.posts[0].secrets
    run(house.assembly.webhooks.deliver.stop())


def test_many_at_a_time_are_one_mail(watching: Watching) -> None:
    """What comes up soon after a mail waits for the next one, which has all of it."""
    house, zone = watching.house, watching.zone
    paths = [watching.watch(target) for target in ("8.8.4.10", "8.8.4.11", "good.example")]
    for path in paths:
        watching.ask("POST", f"{path}/run")
    zone.publish("10.4.8.8.in-addr.arpa", "PTR")
    watching.ask("POST", f"{paths[0]}/run")
    assert len(mails(watching)) == 1
    zone.publish("_dmarc.good.example", "TXT")
    zone.publish("11.4.8.8.zen.spamhaus.org", "A", "127.0.0.2")
    for path in paths[1:]:
        watching.ask("POST", f"{path}/run")
    assert len(mails(watching)) == 1
    house.pass_time(PAUSE)
    _, digest = mails(watching)
    assert digest["subject"].startswith("4 alerts: ")
    assert mails(watching)[-1] == digest


def test_in_quiet_times_nothing_is_told(watching: Watching) -> None:
    """It is told when they are over; what came and went meanwhile is told as over."""
    one = watching.watch("8.8.4.10", quiet="11:00-15:00")
    watching.ask("POST", f"{one}/run")
    names = watching.zone.published("10.4.8.8.in-addr.arpa", "PTR")
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR")
    watching.alerts_after_run(one)
    assert mails(watching) == []
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR", *names)
    watching.alerts_after_run(one)
    assert mails(watching) == []
    watching.house.pass_time(3_600)
    (told,) = mails(watching)
    assert told["subject"].startswith("8.8.4.10: Over: ")


def test_an_acknowledged_alert_is_told_when_it_is_over(watching: Watching) -> None:
    """That it is there is known by then."""
    one = watching.watch("8.8.4.10")
    watching.ask("POST", f"{one}/run")
    names = watching.zone.published("10.4.8.8.in-addr.arpa", "PTR")
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR")
    (alert,) = watching.ask("POST", f"{one}/run")["alerts"]
    known = watching.ask("POST", f"{one}/alerts/{alert['id']}/acknowledge")
    assert known["acknowledgedAt"] is not None
    assert mails(watching) == []
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR", *names)
    watching.alerts_after_run(one)
    assert len(mails(watching)) == 1


def test_a_full_inbox_loses_no_alert(watching: Watching) -> None:
    """It is told when there is room again."""
    house = watching.house
    one = watching.watch("8.8.4.10")
    watching.ask("POST", f"{one}/run")
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR")
    watching.ask("POST", f"{one}/run")
    house.sqlite._connection.execute("UPDATE account SET max_messages = 0")
    assert mails(watching) == []
    house.sqlite._connection.execute("UPDATE account SET max_messages = NULL")
    house.pass_time(PAUSE)
    assert len(mails(watching)) == 1


def alert(target: str, sentence: str, **facts: Any) -> Alert:
    """Make an alert."""
    return Alert(AlertId("a"), WatchId("w"), target, "key", "error", sentence, NOON, **facts)


def test_what_others_publish_stays_on_its_line() -> None:
    """A record with line breaks adds neither a header field nor a line of its own."""
    evil = alert("a.example", "The record is x\r\nBcc: all@example.com\r\n\r\n* b.example: fine")
    written = write_mail([evil], NOBODY, NOBODY, "<1@example.com>", NOON).decode()
    head, _, text = written.partition("\r\n\r\n")
    assert "\r\nBcc:" not in head
    assert "\r\n* b.example" not in text


def test_quiet_times_over_midnight() -> None:
    """They hold on both sides of it, and end on the minute."""
    quiet = parse_quiet_time("22:00-06:30")
    hours = [Instant(int(hour * HOUR)) for hour in (21.99, 22, 0, 6.49, 6.5)]
    assert [quiet.holds(one) for one in hours] == [False, True, True, True, False]
    assert str(quiet) == "22:00-06:30"
    assert MOST_IN_MAIL < 1_000
    assert at(0) == NOON
