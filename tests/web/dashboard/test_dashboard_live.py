"""New messages as server-sent events: none missed, none repeated, no wait left behind."""

from mailcheck.assembly.workers import Workers
from mailcheck.core.accounts import Account
from mailcheck.core.errors import StoreUnavailable
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, mail
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.inbox_visit import receive, sign_up
from tests.web.event_stream import EventStream
from tests.web.workers import FaultyWorker


def waits(house: House) -> int:
    """Return the number of waiting requests."""
    return house.assembly.mail.feeds.count()


def test_new_mail_is_announced(browser: Browser, account: Account) -> None:
    """Each new message is an event with its row and its address."""
    receive(browser.house, account, mail("Before"))
    cursor = browser.open("/inbox").body.decode().partition('data-after="')[2].partition('"')[0]
    stream = browser.stream(f"/inbox/live?after={cursor}")
    assert "text/event-stream" in stream.head
    assert stream.named("mail") == []
    ids = [receive(browser.house, account, mail(f"Mail {n}"), "x") for n in range(3)]
    assert [one["subject"] for one in stream.named("mail")] == ["Mail 0", "Mail 1", "Mail 2"]
    assert [one["id"] for one in stream.named("mail")] == ids
    listed = browser.open("/inbox").body.decode()
    for one in stream.named("mail"):
        assert f'href="/p/me/inbox/messages/{one["id"]}"' in one["row"]
        assert one["row"] in listed
    first, *_ = stream.named("mail")
    assert "482913" in first["row"]
    assert "+x" in first["row"]
    assert first["about"].endswith("\n482913")
    assert not stream.has_ended
    stream.connection.hang_up()


def test_a_deletion_is_an_event(house: House, browser: Browser, account: Account) -> None:
    """A deletion by any client is an event in the open lists of the account only."""
    other = Browser(house, "192.0.2.11")
    bob = sign_up(other, "bob")
    ids = [receive(house, account) for _ in range(3)]
    own, strange = browser.stream("/inbox/live"), other.stream("/inbox/live")
    receive(house, bob)

    def told(stream: EventStream) -> int:
        return sum(event.get("event") == "removed" for event in stream.events)

    browser.submit("/inbox/delete", id=ids[0])
    assert told(own) == 1
    key = house.issue_key(account)
    house.ask("DELETE", f"/inbox/messages/{ids[1]}", key)
    assert told(own) == 2
    house.ask("DELETE", "/inbox/messages", key)
    assert (told(own), told(strange)) == (3, 0)
    receive(house, account, mail("Late"))
    assert own.named("mail")[-1]["subject"] == "Late"
    own.connection.hang_up()
    strange.connection.hang_up()


def test_a_reconnecting_browser_misses_no_event(browser: Browser, account: Account) -> None:
    """A browser that reconnects continues after its last event, not at the cursor in its URL."""
    stream = browser.stream("/inbox/live")
    receive(browser.house, account, mail("Seen"))
    last = stream.events[-1]["id"]
    stream.connection.hang_up()
    receive(browser.house, account, mail("Missed"))
    again = browser.stream("/inbox/live?after=c0", f"Last-Event-ID: {last}")
    assert [one["subject"] for one in again.named("mail")] == ["Missed"]
    again.connection.hang_up()


def test_an_idle_stream_is_kept_alive_and_ends(browser: Browser, account: Account) -> None:
    """A stream without events sends keep-alives, and ends after some minutes."""
    stream = browser.stream("/inbox/live")
    for _ in range(3):
        browser.house.pass_time(20)
    assert stream.text.count(": nothing new") == 1 + 3  # at first, and each 20 s
    receive(browser.house, account, mail("Late"))
    assert [one["subject"] for one in stream.named("mail")] == ["Late"]
    for _ in range(16):
        browser.house.pass_time(20)
    assert stream.has_ended
    assert waits(browser.house) == 0


def test_a_stopping_daemon_ends_its_streams(ann: Browser) -> None:
    """A stopping daemon ends its streams, and browsers reconnect to the next daemon."""
    stream = ann.stream("/inbox/live")
    ann.house.assembly.mail.feeds.close()
    assert stream.events[-1]["event"] == "problem"
    assert stream.has_ended


def test_a_failing_store_ends_a_stream() -> None:
    """A stream whose store fails reports the failure and ends."""
    reader = FaultyWorker()
    workers = Workers(DirectWorker(), reader, DirectWorker(), DirectWorker())
    house = House(config_in_memory(accounts=CHEAP), workers)
    browser = Browser(house)
    account = sign_up(browser)
    stream = browser.stream("/inbox/live")
    reader.fault = StoreUnavailable("the disk is gone")
    house.assembly.mail.notifications.publish(account.id)
    assert stream.events[-1]["event"] == "problem"
    assert stream.has_ended
    reader.fault = None


@rows("?after=nonsense", "?tag=a%20b")
def test_invalid_parameters(ann: Browser, query: str) -> None:
    """A stream with invalid parameters is answered with 400."""
    assert " 400 " in ann.stream(f"/inbox/live{query}").head.splitlines()[0]
