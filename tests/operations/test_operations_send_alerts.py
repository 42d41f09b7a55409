"""Alerts in the inbox: grouped in one mail, with a pause between two, and quiet hours."""

import json
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import SMTP
from typing import Any

import pytest

from mailcheck.core.domains.watches import ALERT_TAG, Alert, AlertId, WatchId, parse_quiet_time
from mailcheck.core.errors import RecipientUnknown
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.webhooks import Attempt
from mailcheck.operations.domains.watches.send_alerts import (
    MOST_IN_MAIL,
    PAUSE,
    MailHead,
    write_alert_mail,
)
from tests.engines.deliveries import NOON, at
from tests.fakes.scripted_receivers import ScriptedReceivers
from tests.house import run
from tests.table import rows
from tests.web.test_web_watches import Watching

NOBODY = "nobody@example.com"


@pytest.fixture
def watching() -> Watching:
    """A house without watches."""
    return Watching()


def mails(watching: Watching) -> list[Any]:
    """Send pending alerts, and return all mails, oldest first."""
    run(watching.house.assembly.watches.send_alerts.send_pending())
    listed = watching.house.get(f"/inbox/messages?tag={ALERT_TAG}").json["messages"]
    return list(reversed(listed))


def test_a_problem_and_its_end_are_sent(watching: Watching) -> None:
    """The first run sends no alert; a problem is one mail, and its end another."""
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
    assert over["subject"].startswith("good.example: Resolved: ")
    text = watching.house.get(f"/inbox/messages/{over['id']}").json["text"]
    assert "for 1 hour)" in text


def test_a_webhook_gets_alerts(watching: Watching) -> None:
    """A webhook for the tag of alerts gets each alert as signed mail, and nothing else."""
    house, receivers = watching.house, watching.house.receivers
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


@pytest.fixture
def receivers(watching: Watching) -> Iterator[ScriptedReceivers]:
    """Receivers of alerts, and the task that delivers to them."""
    webhooks = watching.house.assembly.webhooks
    run(webhooks.deliver.start())
    yield watching.house.receivers
    run(webhooks.deliver.stop())


def break_and_tell(watching: Watching, *paths: str) -> None:
    """Let the watch of each address find that its reverse DNS is gone, and send the alert."""
    for number, path in enumerate(paths):
        watching.ask("POST", f"{path}/run")
        watching.zone.publish(f"{10 + number}.4.8.8.in-addr.arpa", "PTR")
        watching.ask("POST", f"{path}/run")
    mails(watching)


def test_a_watch_has_webhooks_of_its_own(watching: Watching, receivers: ScriptedReceivers) -> None:
    """They get only its alerts, signed with the secret that was shown when it was created."""
    ask, urls = watching.ask, [f"https://{name}.example.com/alerts" for name in ("ops", "night")]
    new = {"target": "8.8.4.10", "alertTo": [*urls, urls[0]]}
    one = ask("POST", "/watches", new)
    assert one["alertTo"] == urls
    assert [made["url"] for made in one["newWebhooks"]] == urls
    both = ask("POST", "/watches", {"target": "good.example", "alertTo": urls[:1]})
    assert both["newWebhooks"] == []
    break_and_tell(watching, f"/watches/{one['id']}", watching.watch("8.8.4.11"))
    assert [post.url for post in receivers.posts] == urls
    assert [subject[:9] for subject in receivers.subjects] == ["8.8.4.10:", "8.8.4.10:"]
    for post, made in zip(receivers.posts, one["newWebhooks"], strict=True):
        assert post.secrets == (made["secret"],)
    told = ask("GET", f"/watches/{one['id']}")["receivers"]
    assert [(who["to"], who["state"], who["problem"]) for who in told] == [
        (url, "active", "") for url in urls
    ]
    ask("DELETE", f"/watches/{one['id']}")
    left = ask("GET", "/inbox/webhooks")["webhooks"]
    assert [webhook["url"] for webhook in left] == urls[:1]
    changed = ask("PATCH", f"/watches/{both['id']}", {"alertTo": urls[1:]})
    assert [made["url"] for made in changed["newWebhooks"]] == urls[1:]
    left = ask("GET", "/inbox/webhooks")["webhooks"]
    assert [webhook["url"] for webhook in left] == urls[1:]


def test_chats_get_the_alerts_of_their_kind(
    watching: Watching, receivers: ScriptedReceivers
) -> None:
    """A chat gets an alert in its format at its URL, without a secret, if it is of its kind."""
    chat = "slack:https://hooks.slack.com/services/T/B/x"
    other = {"error": "warning", "warning": "error"}
    path = watching.watch("8.8.4.10", alertTo=[chat])
    assert watching.ask("GET", path)["alertTo"] == [chat]
    break_and_tell(watching, path)
    (post,) = receivers.posts
    assert (post.url, post.provider) == ("https://hooks.slack.com/services/T/B/x", "slack")
    said = json.loads(post.body)
    assert said["text"].startswith("8.8.4.10: ")
    (alert,) = watching.ask("GET", path)["alerts"]
    only = f"{other[alert['severity']]}={chat}"
    changed = watching.ask("PATCH", path, {"alertTo": [only]})
    assert (changed["alertTo"], changed["newWebhooks"]) == ([only], [])
    watching.house.clock.advance(PAUSE)
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR", "out.good.example.")
    watching.ask("POST", f"{path}/run")
    mails(watching)
    assert receivers.posts == [post]
    assert [who["to"] for who in watching.ask("GET", path)["receivers"]] == [chat]


def test_alerts_by_mail(watching: Watching, receivers: ScriptedReceivers) -> None:
    """An alert is plain text with a date, an id and a way to stop it.

    A permanent rejection is shown with the watch. Delivery stops until the owner resumes it.
    """
    path = watching.watch("8.8.4.10", alertTo=["Ops@Example.COM"])
    receivers.answers = [Attempt(550, "the relay answered 550 no such user", is_permanent=True)]
    break_and_tell(watching, path)
    (who,) = watching.ask("GET", path)["receivers"]
    assert who["to"] == "Ops@example.com"
    assert (who["state"], who["nextAttemptAt"]) == ("paused", None)
    assert who["problem"] == "the relay answered 550 no such user"
    watching.ask("POST", f"/inbox/webhooks/{who['webhookId']}/resume")
    refused, sent = (message_from_bytes(post.body, policy=SMTP) for post in receivers.posts)
    assert sent.as_bytes() == refused.as_bytes()
    assert sent["To"] == "Ops@example.com"
    assert sent["From"] == "mailcheck <alerts@mailcheck.example>"
    assert sent["Subject"].startswith("8.8.4.10: ")
    assert sent["Auto-Submitted"] == "auto-generated"
    assert sent["Message-ID"].endswith("@mailcheck.example>")
    assert sent["Date"].datetime.timestamp() == watching.house.clock.seconds()
    assert sent.get_content_type() == "text/plain"
    assert "mailcheck-alert-to" not in sent
    text = "\n".join(sent.get_content().splitlines())
    assert "Open problems:\n\n* 8.8.4.10: " in text
    assert "You get this since watches of the account first name your address." in text
    assert watching.ask("GET", path)["receivers"][0]["problem"] == ""


def test_alerts_cannot_be_forged(watching: Watching) -> None:
    """Mail from other sources to the tag of alerts is rejected, even from signed-in accounts."""
    house = watching.house
    for tag in (ALERT_TAG, ALERT_TAG.upper()):
        with pytest.raises(RecipientUnknown, match="mail from this service"):
            house.receive(house.address(tag))


@rows(
    ("ops", "an http or https address"),
    ("ftp://ops.example.com", "an http or https address"),
    ("https://mailcheck.example/", "this service itself"),
    ("ops@mailcheck.example", "no mail to"),
    ("ops@localhost", "is not a mail address"),
    ("ops@example.com\r\nRCPT TO:<a@example.com>", "is not a mail address"),
    ('"a b"@example.com', "is not a mail address"),
)
def test_invalid_receivers(watching: Watching, named: str, wrong: str) -> None:
    """Invalid and forbidden receivers are rejected, and no watch is created."""
    new = {"target": "good.example", "alertTo": ["https://ops.example.com/", named]}
    assert wrong in watching.ask("POST", "/watches", new, 400)["error"]
    assert watching.ask("GET", "/watches")["total"] == 0
    assert watching.ask("GET", "/inbox/webhooks")["webhooks"] == []


def test_many_alerts_are_one_mail(watching: Watching) -> None:
    """Alerts soon after a mail are sent together in the next one."""
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


def test_no_alert_is_sent_in_quiet_hours(watching: Watching) -> None:
    """Alerts are sent after the quiet hours. Problems that ended meanwhile are sent as resolved."""
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
    assert told["subject"].startswith("8.8.4.10: Resolved: ")


def test_the_end_of_an_acknowledged_alert_is_sent(watching: Watching) -> None:
    """The end of an acknowledged alert is sent, and only that."""
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
    """The alert is sent when the inbox has room again."""
    house = watching.house
    one = watching.watch("8.8.4.10")
    watching.ask("POST", f"{one}/run")
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR")
    watching.ask("POST", f"{one}/run")
    house.sqlite.connection.execute("UPDATE account SET max_messages = 0")
    assert mails(watching) == []
    house.sqlite.connection.execute("UPDATE account SET max_messages = NULL")
    house.pass_time(PAUSE)
    assert len(mails(watching)) == 1


def alert(target: str, sentence: str, **facts: Any) -> Alert:
    """Create an alert."""
    return Alert(AlertId("a"), WatchId("w"), target, "key", "error", sentence, NOON, **facts)


@rows(
    "The record is x\r\nBcc: all@example.com\r\n\r\n* b.example: fine",
    "The record is =?utf-8?q?=0D=0ABcc=3A_all=40example.com?=",
)
def test_published_text_stays_on_its_line(sentence: str) -> None:
    """A record with line breaks adds neither a header field nor a line to the mail."""
    evil = alert("a.example", sentence)
    written = write_alert_mail([evil], MailHead(NOBODY, NOBODY, "1", NOON)).decode()
    head, _, text = written.partition("\r\n\r\n")
    assert "\r\nBcc:" not in head
    assert "\r\n* b.example" not in text


def test_quiet_hours_over_midnight() -> None:
    """They apply before and after midnight, and end on the minute."""
    quiet = parse_quiet_time("22:00-06:30")
    hours = [Instant(int(hour * HOUR)) for hour in (21.99, 22, 0, 6.49, 6.5)]
    assert [quiet.holds(one) for one in hours] == [False, True, True, True, False]
    assert str(quiet) == "22:00-06:30"
    assert MOST_IN_MAIL < 1_000
    assert at(0) == NOON
