"""Webhooks: deliveries in order and at least once, retries, pauses, ends and restarts."""

from typing import Any

import pytest
from msgspec.structs import replace

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config, InboxOptions
from mailcheck.core.audit import COMMAND_LINE
from mailcheck.core.cursors import START
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.instants import DAY, HOUR, MINUTE, SECOND
from mailcheck.core.messages import Recipient
from mailcheck.core.webhooks import (
    GIVEN_UP_AFTER,
    LONGEST_RETRY,
    PAUSED_AFTER,
    Attempt,
    Webhook,
)
from mailcheck.operations.inbox.webhooks import deliver_webhooks
from mailcheck.operations.inbox.webhooks.deliver_webhooks import (
    LEASE,
    MOST_AHEAD,
    RENEWAL,
    TROUBLE,
)
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import delivery
from tests.fakes.scripted_receivers import BROKEN, TAKEN, body_of
from tests.house import House, config_in_memory, mail, result_of, run
from tests.web.workers import FaultyWorker

URL = "https://ci.example.com/mail"


class Told:
    """A house with webhooks, and receivers whose answers the test controls."""

    def __init__(self, config: Config) -> None:
        self.writer, self.reader = FaultyWorker(), FaultyWorker()
        self.house = House(config, Workers(self.writer, self.reader, DirectWorker()))
        self.receivers = self.house.receivers
        self.deliver = self.house.assembly.webhooks.deliver
        self.keep = self.house.assembly.webhooks.keep
        run(self.deliver.start())

    def create(self, path: str = "", **wanted: Any) -> Webhook:
        """Create a webhook of the first account."""
        made: Webhook = run(
            self.keep.create(
                self.house.account.id, URL + path, MessageFilter(**wanted), COMMAND_LINE
            )
        )
        return made

    def shown(self, webhook: Webhook) -> Webhook:
        """Return the stored webhook."""
        found: Webhook = run(self.keep.show(webhook.account_id, webhook.id)).webhook
        return found

    def receive(self, *subjects: str, tag: str = "") -> None:
        """Receive mails."""
        for subject in subjects:
            self.house.receive(self.house.address(tag), raw=mail(subject))

    def pass_time(self, seconds: float, step: float = RENEWAL) -> None:
        """Advance the clock in steps, and renew the lease after each."""
        while seconds > 0:
            self.house.pass_time(min(step, seconds))
            seconds -= step
            run(self.deliver.renew())


@pytest.fixture
def told() -> Told:
    """A house with receivers, and without a webhook."""
    return Told(config_in_memory())


@pytest.fixture
def webhook(told: Told) -> Webhook:
    """Return a webhook of the first account."""
    return told.create()


def test_messages_are_sent_in_order(told: Told) -> None:
    """Messages are posted in the order in which they arrived, in the same form as in a list."""
    told.receive("before")
    webhook = told.create()
    told.receive("one", "two")
    told.receive("three", tag="a")
    assert told.receivers.subjects == ["one", "two", "three"]
    listed = told.house.get("/inbox/messages").json["messages"]
    assert [body_of(post) for post in told.receivers.posts] == listed[2::-1]
    assert told.receivers.ids == [f"msg_{one['id']}" for one in listed[2::-1]]
    assert told.shown(webhook).position == 4


def test_other_messages_are_not_sent(told: Told) -> None:
    """A webhook has the filters of a wait, including those for contents."""
    told.create("/tag", tag="signup")
    told.create("/text", text="482913")
    told.receive("other")
    told.receive("sign-up", tag="signup")
    told.house.receive(raw=mail("no code", body="nothing"))
    told_to = [
        (post.url.removeprefix(URL), body_of(post)["subject"]) for post in told.receivers.posts
    ]
    assert sorted(told_to) == [("/tag", "sign-up"), ("/text", "other"), ("/text", "sign-up")]


def test_it_may_begin_before_its_creation(told: Told) -> None:
    """A webhook with a cursor gets all messages after that cursor."""
    told.receive("one", "two")
    told.create(after=START)
    assert told.receivers.subjects == ["one", "two"]


def test_retries_have_the_same_id(told: Told, webhook: Webhook) -> None:
    """No later message is sent before a failed one, and each retry has the same id."""
    told.receivers.answers = [BROKEN, Attempt(None, "its host refuses connections")]
    told.receive("one", "two")
    assert told.receivers.subjects == ["one"]
    failing = told.shown(webhook)
    assert (failing.failures, failing.problem, failing.state.value) == (
        1,
        "it answered 500",
        "active",
    )
    told.pass_time(6)
    assert told.receivers.subjects == ["one", "one"]
    told.pass_time(20)
    assert told.receivers.subjects == ["one", "one", "one", "two"]
    assert len(set(told.receivers.ids)) == 2
    assert told.shown(webhook) == replace(webhook, position=told.shown(webhook).position)


def test_others_are_not_held_up(told: Told) -> None:
    """A receiver that hangs or fails does not delay other webhooks."""
    told.create("/hangs")
    told.receivers.hangs = True
    told.receive("one")
    told.receivers.hangs = False
    told.create("/well")
    told.receive("two", "three")
    assert [(post.url[-4:], body_of(post)["subject"]) for post in told.receivers.posts] == [
        ("angs", "one"),
        ("well", "two"),
        ("well", "three"),
    ]
    told.receivers.answer()
    assert told.receivers.subjects[3:] == ["two", "three"]


def test_failures_pause_and_then_stop_a_webhook() -> None:
    """After an hour, retries become rare. After a day, they stop until the webhook is resumed."""
    told = Told(config_in_memory(inbox=InboxOptions(retention_hours=72)))
    webhook = told.create()
    told.receivers.answers = [BROKEN] * 1_000
    told.receive("one")
    told.pass_time(PAUSED_AFTER / SECOND - 60, step=60)
    assert told.shown(webhook).state.value == "active"
    told.pass_time(2 * LONGEST_RETRY / SECOND, step=60)
    paused = told.shown(webhook)
    assert paused.state.value == "paused"
    assert paused.retry_at is not None
    tries = len(told.receivers.posts)
    assert 10 <= tries <= 30
    told.pass_time(GIVEN_UP_AFTER / SECOND, step=600)
    assert told.shown(webhook).retry_at is None
    tries = len(told.receivers.posts)
    assert tries <= 90
    told.pass_time(2 * HOUR / SECOND, step=600)
    told.house.receive(raw=mail("two"))
    assert len(told.receivers.posts) == tries
    told.receivers.answers = []
    run(told.keep.restart(webhook.account_id, webhook.id))
    assert told.receivers.subjects[tries:] == ["one", "two"]
    assert told.shown(webhook).state.value == "active"


def test_an_expired_message_delays_nothing(told: Told) -> None:
    """A failing message that expires is skipped, and the next one is sent."""
    told.create()
    told.receivers.answers = [BROKEN] * 1_000
    told.receive("one")
    told.pass_time(told.house.assembly.runtime.retention / SECOND, step=600)
    told.receivers.answers = []
    tries = len(told.receivers.posts)
    told.receive("two")
    told.pass_time(HOUR / SECOND, step=600)
    assert told.receivers.subjects[tries:] == ["two"]


def test_a_success_ends_the_pause(told: Told, webhook: Webhook) -> None:
    """The first success ends the pause."""
    told.receivers.answers = [BROKEN] * 1_000
    told.receive("one")
    told.pass_time(2 * HOUR / SECOND, step=60)
    assert told.shown(webhook).state.value == "paused"
    told.receivers.answers = []
    told.receive("two")
    told.pass_time(HOUR / SECOND, step=60)
    assert told.receivers.subjects[-2:] == ["one", "two"]
    assert told.shown(webhook).state.value == "active"


def test_gone_ends_it(told: Told, webhook: Webhook) -> None:
    """After status 410, a webhook is never used again."""
    told.receivers.answers = [Attempt(410, "it answered 410")]
    told.receive("one", "two")
    told.pass_time(DAY / SECOND / 24, step=60)
    assert told.receivers.subjects == ["one"]
    assert told.shown(webhook).state.value == "ended"
    refused = told.house.ask("POST", f"/inbox/webhooks/{webhook.id}/resume").answer()
    assert refused.status == 409


def test_a_deleted_message_is_not_sent(told: Told) -> None:
    """A message that is deleted while it waits for a retry is not sent again."""
    told.create()
    told.receivers.answers = [BROKEN]
    told.receive("one", "two")
    first = told.receivers.ids[0].removeprefix("msg_")
    assert told.house.ask("DELETE", f"/inbox/messages/{first}").answer().status == 200
    told.pass_time(20)
    assert told.receivers.subjects == ["one", "two"]


def test_a_message_deleted_while_it_is_parsed_is_not_sent(told: Told) -> None:
    """After its content was derived, a message is read once more before it is sent."""
    told.create(text="code")
    told.receivers.answers = [BROKEN]
    told.receive("one")
    house = told.house
    house.sqlite.connection.execute("DELETE FROM content")
    first = told.receivers.ids[0].removeprefix("msg_")
    assert house.ask("DELETE", f"/inbox/messages/{first}").answer().status == 200
    told.pass_time(20)
    assert len(told.receivers.posts) == 1


def test_two_secrets_sign_for_a_day(told: Told, webhook: Webhook) -> None:
    """After a rotation, both secrets sign deliveries. A day later, only the new one does."""
    rotated = run(told.keep.rotate(webhook.account_id, webhook.id, COMMAND_LINE))
    assert rotated.secret != webhook.secret
    told.receive("one")
    told.pass_time(DAY / SECOND + 1, step=HOUR / SECOND)
    told.receive("two")
    assert [post.secrets for post in told.receivers.posts] == [
        (rotated.secret, webhook.secret),
        (rotated.secret,),
    ]


def test_a_replay_sends_stored_messages(told: Told, webhook: Webhook) -> None:
    """All messages after the cursor are sent again with the same ids. A later cursor skips."""
    told.receive("one", "two", "three")
    told.receivers.posts.clear()
    path = f"/inbox/webhooks/{webhook.id}/replay"
    assert told.house.ask("POST", path, data=b'{"after": "c1"}').answer().status == 200
    assert told.receivers.subjects == ["two", "three"]
    told.receivers.answers = [BROKEN]
    told.receive("four", "five")
    told.house.ask("POST", path, data=b'{"after": "c4"}').answer()
    assert told.receivers.subjects == ["two", "three", "four", "five"]


def test_a_replay_during_a_delivery_counts(told: Told, webhook: Webhook) -> None:
    """A change by the owner wins over the result of a running delivery."""
    told.receive("one")
    told.receivers.hangs = True
    told.receive("two")
    run(told.keep.restart(webhook.account_id, webhook.id, START))
    told.receivers.hangs = False
    told.receivers.answer()
    assert told.receivers.subjects == ["one", "two", "one", "two"]


def test_a_deleted_webhook_gets_nothing_more(told: Told, webhook: Webhook) -> None:
    """Its running delivery is cancelled, and no other follows."""
    told.receivers.hangs = True
    told.receive("one")
    run(told.keep.delete(webhook.account_id, webhook.id, COMMAND_LINE))
    assert told.receivers.hung_up == 1
    told.receive("two")
    assert told.receivers.subjects == ["one"]


def test_a_test_changes_nothing(told: Told) -> None:
    """A test sends a sample message and records the result. The webhook's state is unchanged."""
    webhook = told.create(tag="signup")
    told.receivers.answers = [BROKEN, TAKEN]
    path = f"/inbox/webhooks/{webhook.id}/test"
    first, second = (told.house.ask("POST", path).answer().json for _ in range(2))
    assert (first["delivered"], first["status"], second["delivered"]) == (False, 500, True)
    assert set(body_of(told.receivers.posts[0])) >= {"id", "from", "subject", "codes", "cursor"}
    assert told.shown(webhook) == webhook
    kept = told.house.get(f"/inbox/webhooks/{webhook.id}").json["deliveries"]
    assert [one["id"] for one in kept] == [second["id"], first["id"]]


def test_a_rate_limited_target_waits(told: Told, webhook: Webhook) -> None:
    """An address over its rate limit delays the webhook without counting a failure."""
    told.receivers.answers = [Attempt(problem="too much", wait=MINUTE)]
    told.receive("one")
    assert told.shown(webhook).failures == 0
    told.pass_time(59)
    assert len(told.receivers.posts) == 1
    told.pass_time(2)
    assert told.receivers.subjects == ["one", "one"]
    assert told.shown(webhook).position == 1


def test_a_result_is_recorded_later(told: Told, webhook: Webhook) -> None:
    """If the store fails after a delivery, the result is recorded later without a new delivery."""
    told.receivers.hangs = True
    told.receive("one")
    told.writer.fault = StoreUnavailable("away")
    told.receivers.answer()
    told.receivers.hangs = False
    told.writer.fault = None
    told.pass_time(TROUBLE + 1)
    assert told.receivers.subjects == ["one"]
    assert told.shown(webhook).position == 1
    told.receive("two")
    assert told.receivers.subjects == ["one", "two"]


def test_another_daemon_takes_over(told: Told, webhook: Webhook) -> None:
    """Without the lease, a daemon sends nothing. The next holder continues."""
    told.receive("one")
    store = told.deliver.store
    told.house.pass_time(LEASE / SECOND + 1)
    assert result_of(store.claim("another", told.house.assembly.runtime.now(), LEASE))
    told.receive("two")
    assert told.receivers.subjects == ["one"]
    run(told.deliver.renew())
    told.receive("three")
    assert told.receivers.subjects == ["one"]
    result_of(store.release("another"))
    run(told.deliver.renew())
    assert told.receivers.subjects == ["one", "two", "three"]
    assert told.shown(webhook).position == 3


def test_a_stopping_daemon_releases_its_lease(told: Told) -> None:
    """The next daemon continues at once. A delivery that was running is sent once more."""
    told.create()
    told.receivers.hangs = True
    told.receive("one")
    run(told.deliver.stop())
    assert told.receivers.hung_up == 1
    now = told.house.assembly.runtime.now()
    assert result_of(told.deliver.store.is_wanted("another", now))
    assert result_of(told.deliver.store.claim("another", now, LEASE))


def test_lost_hints_delay_briefly(told: Told) -> None:
    """Messages whose hints were lost are found at the next poll."""
    told.create()
    elsewhere = Recipient(told.house.address(), told.house.account.id, "")
    store = told.house.assembly.mail.store
    result_of(store.deliver(delivery(elsewhere, raw=mail("one"))))
    assert told.receivers.posts == []
    told.pass_time(RENEWAL)
    assert told.receivers.subjects == ["one"]


def reads_of_a_mail(told: Told) -> int:
    """Return the number of reads of the store for one mail."""
    before = told.reader.calls
    told.receive("one", tag="a")
    return told.reader.calls - before


def test_mail_that_matches_no_webhook_is_not_read(told: Told) -> None:
    """Mail that matches no webhook is not read."""
    told.receive("the first one")  # now the receiver has cached the inbox
    without_webhooks = reads_of_a_mail(told)
    for number in range(9):
        told.create(tag=f"other{number}")
    assert reads_of_a_mail(told) == without_webhooks
    assert told.receivers.subjects == []
    told.receive("for it", tag="other3")
    assert told.receivers.subjects == ["for it"]
    told.create()
    assert reads_of_a_mail(told) > without_webhooks


def test_webhooks_are_not_parked_waits(told: Told) -> None:
    """Webhooks are notified of mail as waits are, but do not count as waits."""
    told.create()
    assert told.house.assembly.mail.feeds.count() == 0


def test_a_message_deleted_after_its_read_is_not_sent(told: Told, webhook: Webhook) -> None:
    """Messages are read in batches. One that is deleted after the read is not sent."""
    told.receivers.answers = [BROKEN]
    told.receive("one", "two", "three")
    told.receivers.hangs = True
    told.pass_time(6)
    listed = told.house.get("/inbox/messages").json["messages"]
    assert told.house.ask("DELETE", f"/inbox/messages/{listed[1]['id']}").answer().status == 200
    told.receivers.hangs = False
    told.receivers.answer()
    assert told.receivers.subjects == ["one", "one", "three"]
    assert told.shown(webhook).position == 3


def test_a_message_that_expires_after_its_read_is_not_sent(told: Told) -> None:
    """An expired message is skipped, however long the deliveries before it took."""
    told.create()
    told.receivers.answers = [BROKEN]
    told.receive("one", "two")
    told.receivers.hangs = True
    told.pass_time(6)
    told.house.pass_time(told.house.assembly.runtime.retention / SECOND)
    run(told.deliver.renew())
    told.receivers.hangs = False
    told.receivers.answer()
    told.receive("three")
    assert told.receivers.subjects == ["one", "one", "three"]


def test_a_long_queue_is_sent_in_order(told: Told, webhook: Webhook) -> None:
    """Messages are read in growing batches, and each is sent once."""
    told.receivers.answers = [BROKEN]
    subjects = [str(number) for number in range(3 * MOST_AHEAD)]
    told.receive(*subjects)
    told.pass_time(6)
    assert told.receivers.subjects == ["0", *subjects]
    assert told.shown(webhook).position == 3 * MOST_AHEAD


def test_without_messages_no_lease_is_taken(told: Told) -> None:
    """The lease is only taken when there are messages to deliver."""
    told.pass_time(60)
    assert told.house.sqlite.connection.execute("SELECT * FROM lease").fetchall() == []


def test_concurrent_deliveries_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of concurrent deliveries is limited, and the others follow in turn."""
    monkeypatch.setattr(deliver_webhooks, "AT_ONCE", 20)
    told = Told(config_in_memory())
    house = told.house
    told.receivers.hangs = True
    accounts = [house.add_account(f"a{number}") for number in range(3)]
    for account in accounts:
        for _ in range(10):
            run(told.keep.create(account.id, URL, ANY, COMMAND_LINE))
        house.receive(house.address(account=account))
    assert len(told.receivers.posts) == 20
    told.receivers.answer()
    assert len(told.receivers.posts) == 21


def test_deliveries_continue_after_a_failure_of_the_store(told: Told) -> None:
    """While the store is unavailable, no message is sent. All are sent afterwards."""
    told.create()
    told.reader.fault = StoreUnavailable("away")
    run(told.deliver.renew())
    told.reader.fault = None
    told.receive("one")
    told.pass_time(RENEWAL)
    assert told.receivers.subjects == ["one"]
