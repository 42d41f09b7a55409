"""Webhooks on their page: create, show once, test, resume and delete."""

import re
from html import unescape

import pytest

from mailcheck.core.webhooks import Attempt
from tests.fakes.scripted_receivers import BROKEN, ScriptedReceivers
from tests.house import House, mail, run
from tests.web.dashboard.browser import Browser

URL = "https://ci.example.com/mail"


@pytest.fixture
def receivers(house: House) -> ScriptedReceivers:
    """Run a daemon with scripted webhook receivers."""
    run(house.assembly.webhooks.deliver.start())
    return house.receivers


@pytest.fixture
def owner(browser: Browser, receivers: ScriptedReceivers) -> Browser:
    """Sign up an account without a webhook."""
    browser.sign_up("ann")
    browser.open("/webhooks")
    return browser


def create(owner: Browser, **form: str) -> str:
    """Create a webhook by the form and return its secret."""
    assert owner.submit("/webhooks", **{"url": URL, **form}).status == 200
    secret = owner.find(r'id="webhook-secret">(whsec_[^<]+)<')
    owner.open("/webhooks")
    return unescape(secret)


def webhook_of(owner: Browser) -> str:
    """Return the path of the only webhook on the page."""
    owner.open("/webhooks")
    return owner.find(r'action="(/p/me/webhooks/\w+)/test"')


def receive(owner: Browser, subject: str = "Welcome", tag: str = "") -> None:
    """Receive a mail for the account."""
    house = owner.house
    account = run(house.assembly.accounts.keep.find("ann"))
    house.receive(house.address(tag, account), raw=mail(subject))


def test_a_webhook_is_created(owner: Browser, receivers: ScriptedReceivers) -> None:
    """The secret is shown once; then the webhook is listed with its filter."""
    assert "No webhooks yet" in owner.page.text
    secret = create(owner, tag="signup")
    receive(owner)
    receive(owner, "Sign-up", tag="signup")
    assert receivers.subjects == ["Sign-up"]
    assert receivers.posts[0].secrets == (secret,)
    page = owner.open("/webhooks").body.decode()
    assert secret not in page
    for words in (URL, "active", "tag: signup", receivers.ids[0], "200"):
        assert words in page


def test_deliveries_show_subject_and_response(owner: Browser, receivers: ScriptedReceivers) -> None:
    """A delivery links to its message by subject, and shows what the receiver answered."""
    create(owner)
    receivers.answers = [Attempt(202, response="queued <b>1</b>")]
    receive(owner, "Sign-up <b>")
    page = owner.open("/webhooks").body.decode()
    assert re.search(r'<a href="/p/me/inbox/messages/[^"]+" dir="auto">Sign-up &lt;b&gt;</a>', page)
    assert "queued &lt;b&gt;1&lt;/b&gt;" in page
    message_id = owner.find(r'href="/p/me/inbox/messages/([^"]+)"')
    owner.submit(f"/inbox/messages/{message_id}/delete")
    assert "(deleted message)" in owner.read("/webhooks")
    assert "Sign-up" not in owner.page.text


def test_an_invalid_form(owner: Browser) -> None:
    """An invalid form is shown again with its values and the problem."""
    answer = owner.submit("/webhooks", url="ftp://ci.example.com", tag="a<b")
    assert answer.status == 400
    assert "a&lt;b" in answer.body.decode()
    answer = owner.submit("/webhooks", url="ftp://ci.example.com/")
    assert "Url must be an http or https address" in owner.page.text


def test_failures_are_shown_and_resumed(owner: Browser, receivers: ScriptedReceivers) -> None:
    """A failure is shown with its start and the next attempt; resuming retries at once."""
    create(owner)
    receivers.answers = [BROKEN, BROKEN]
    receive(owner)
    assert "It answered 500. Failing since" in owner.read("/webhooks")
    path = webhook_of(owner)
    owner.follow(owner.submit(f"{path}/resume"))
    assert len(receivers.posts) == 2
    owner.house.pass_time(6)
    owner.open("/webhooks")
    assert len(receivers.posts) == 3
    assert "Failing since" not in owner.page.text


def test_a_test_delivery(owner: Browser, receivers: ScriptedReceivers) -> None:
    """A test delivery reports its outcome, and counts as a check."""
    create(owner)
    path = webhook_of(owner)
    receivers.answers = [BROKEN]
    owner.follow(owner.submit(f"{path}/test"))
    assert "The test delivery failed" in owner.page.text
    owner.follow(owner.submit(f"{path}/test"))
    assert "The test delivery was accepted by your receiver" in owner.page.text
    assert receivers.ids[0].startswith("test_")
    assert receivers.ids[0] in owner.page.text
    assert "2 of 1,000 checks today" in owner.page.text


def test_an_ended_webhook(owner: Browser, receivers: ScriptedReceivers) -> None:
    """An ended webhook is listed and can only be deleted."""
    create(owner)
    receivers.answers = [Attempt(410, "it answered 410")]
    receive(owner)
    page = owner.open("/webhooks").body.decode()
    assert "ended" in page
    assert "/resume" not in page
    assert "/replay" not in page


def test_rotate_replay_and_delete(owner: Browser, receivers: ScriptedReceivers) -> None:
    """A new secret signs beside the old one, a replay sends again, and deletion is final."""
    first = create(owner)
    receive(owner, "one")
    path = webhook_of(owner)
    owner.submit(f"{path}/rotate")
    newer = owner.find(r'id="webhook-secret">(whsec_[^<]+)<')
    owner.follow(owner.submit(f"{path}/replay"))
    assert receivers.subjects == ["one", "one"]
    assert receivers.posts[1].secrets == (unescape(newer), first)
    owner.follow(owner.submit(f"{path}/delete"))
    assert "No webhooks yet" in owner.page.text
    receive(owner, "two")
    assert len(receivers.posts) == 2


@pytest.mark.parametrize("what", ["rotate", "test", "resume", "replay", "delete"])
def test_webhooks_of_other_accounts(
    owner: Browser, receivers: ScriptedReceivers, bob: Browser, what: str
) -> None:
    """Actions on a webhook of another account are 404."""
    create(owner)
    path = webhook_of(owner)
    assert bob.submit(f"{path}/{what}").status == 404
    assert receivers.posts == []
