"""The inbox page: address, list, filters, pages, test mail and deletion."""

import re
from html import unescape
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from mailcheck.config.options import InboxOptions
from mailcheck.core.accounts import Account
from mailcheck.core.searches import EXAMPLES
from mailcheck.operations.inbox.messages import OVERVIEW_TAGS
from mailcheck.web.dashboard.inbox.view import OFFERED_FILTERS
from tests.house import House, config_in_memory, mail, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.inbox_visit import fetch, receive, sign_up


def subjects(browser: Browser, path: str = "/inbox") -> list[str]:
    """Return the subjects of a list, in order."""
    text = browser.open(path).body.decode()
    return re.findall(r'<span class="subject">([^<]*)</span>', text)


def test_an_empty_inbox_says_what_to_do(browser: Browser, account: Account) -> None:
    """An empty inbox shows its address, and commands that send to it."""
    browser.open("/inbox")
    address = browser.house.address("", account)
    assert "No messages yet" in browser.page.text
    assert "swaks --server 127.0.0.1:2525 --from shop@example.com" in browser.page.text
    assert f"--to {address} " in browser.page.text
    assert f"--mail-rcpt {address}" in browser.page.text


def test_mail_is_listed_newest_first(browser: Browser, account: Account) -> None:
    """Each message is a row with sender, subject, code and tag, the newest first."""
    receive(browser.house, account, mail("First"), "signup")
    browser.house.pass_time(1)
    receive(browser.house, account, mail("Second"))
    assert subjects(browser) == ["Second", "First"]
    for words in ("Shop", "482913", "+signup", "1 to 2 of 2"):
        assert words in browser.page.text


def test_without_a_script_the_list_is_polled(ann: Browser) -> None:
    """Without scripts the newest page reloads itself, but a search does not."""
    refresh = b'<noscript><meta http-equiv="refresh" content="30"></noscript>'
    assert refresh in ann.open("/inbox").body
    assert refresh not in ann.open("/inbox?q=x").body


def test_the_tag_field_makes_an_address(browser: Browser, account: Account) -> None:
    """Without scripts the form shows the tagged address; an invalid tag is explained."""
    assert browser.house.address("try-1", account) in browser.read("/inbox?for=try-1")
    assert "A tag is a dot-atom" in browser.read("/inbox?for=a%20b")
    assert browser.house.address("", account) in browser.page.text


def test_a_list_is_filtered_by_tag(browser: Browser, account: Account) -> None:
    """A list is filtered by tag, ignoring case, or by no tag; tags show their counts."""
    for subject, tag in (("One", "Red"), ("Two", "red"), ("Three", "blue"), ("Four", "")):
        receive(browser.house, account, mail(subject), tag)
    assert subjects(browser, "/inbox?tag=RED") == ["Two", "One"]
    assert subjects(browser, "/inbox?tag=") == ["Four"]
    assert subjects(browser, "/inbox?tag=green") == []
    assert "No messages match" in browser.page.text
    browser.open("/inbox")
    assert {"/p/me/inbox?tag=blue", "/p/me/inbox?tag="} <= set(browser.page.addresses)


def test_many_tags_are_folded_away(browser: Browser, account: Account) -> None:
    """Tags beyond the newest are folded, unless one of them is selected."""
    for number in range(12):
        browser.house.pass_time(1)
        receive(browser.house, account, tag=f"t{number}")
    body = browser.open("/inbox").body.decode()
    assert re.search(r"<details>\s*<summary>More tags", body)
    assert "<details open>" in browser.open("/inbox?tag=t0").body.decode()
    assert "These are the newest" not in body


def test_tags_that_are_not_listed(browser: Browser, account: Account) -> None:
    """With more than 200 tags the page says so, and how to find the others."""
    for number in range(OVERVIEW_TAGS + 1):
        receive(browser.house, account, tag=f"t{number}")
    assert "These are the newest 200 of 201 tags." in browser.read("/inbox")
    assert "search for tag:NAME" in browser.page.text


def test_a_list_is_searched(browser: Browser, account: Account) -> None:
    """``q`` searches the messages and stays in the field."""
    receive(browser.house, account, mail("Needle in it"))
    receive(browser.house, account, mail("Hay"))
    assert subjects(browser, "/inbox?q=needle") == ["Needle in it"]
    assert 'value="needle"' in browser.open("/inbox?q=needle").body.decode()
    assert subjects(browser, "/inbox?q=needle+from:shop+newer:1h+subject:it") == ["Needle in it"]
    assert subjects(browser, "/inbox?q=needle+tag:x") == []
    assert subjects(browser, "/inbox?q=-needle") == ["Hay"]
    assert subjects(browser, "/inbox?q=subject:needle+OR+subject:hay+-from:nobody") == [
        "Hay",
        "Needle in it",
    ]
    for example, _ in EXAMPLES:
        assert example in browser.page.text, example


def test_a_search_that_cannot_be_read(browser: Browser, account: Account) -> None:
    """An invalid search is explained beside the field, which keeps its text.

    No message is listed or deleted.
    """
    receive(browser.house, account)
    answer = browser.open("/inbox?q=newer%3Ayesterday")
    assert answer.status == 400
    assert "you sent newer:yesterday" in browser.page.text
    assert 'value="newer:yesterday"' in answer.body.decode()
    browser.open("/inbox?q=subjct%3Awelcome")
    assert "Did you mean subject:?" in browser.page.text
    assert subjects(browser, "/inbox?q=newer%3Ayesterday") == []
    assert subjects(browser, "/inbox?q=is:unread") == ["Welcome"]
    refused = browser.submit("/inbox/delete", q="newer:yesterday")
    assert refused.status == 400
    assert len(subjects(browser, "/inbox")) == 1


def test_a_message_that_was_opened_is_read(browser: Browser) -> None:
    """A message is unread until it is opened on the dashboard.

    The API, downloads, share links and HEAD do not mark it as read.
    """
    house = browser.house
    account = sign_up(browser)
    message_id = receive(house, account, mail("First"))
    receive(house, account, mail("Second"))
    assert subjects(browser, "/inbox?q=is:unread") == ["Second", "First"]
    assert browser.open("/inbox").body.count(b'class="unread"') == 2
    key = house.issue_key(account)
    listed = house.get("/inbox/messages?q=subject:first", key=key).json["messages"]
    house.get(f"/inbox/messages/{message_id}", key=key)
    house.get(f"/inbox/messages/{message_id}/raw", key=key)
    house.get("/inbox/wait?after=c0", key=key)
    browser.open(urlsplit(listed[0]["shareUrl"]).path)
    fetch(browser, f"/inbox/messages/{message_id}/raw")
    fetch(browser, f"/inbox/messages/{message_id}/frame")
    browser.send("HEAD", f"/inbox/messages/{message_id}", b"")
    assert subjects(browser, "/inbox?q=is:read") == []
    browser.open(f"/inbox/messages/{message_id}")
    assert subjects(browser, "/inbox?q=is:read") == ["First"]
    assert subjects(browser, "/inbox?q=is:unread") == ["Second"]
    assert browser.open("/inbox").body.count(b'class="unread"') == 1
    messages = house.get("/inbox/messages", key=key).json["messages"]
    assert [one["isRead"] for one in messages] == [False, True]


def test_all_mail_of_a_list_is_marked_as_read(browser: Browser) -> None:
    """Without a selection, the button marks the listed messages as read, and no later ones."""
    house = browser.house
    account = sign_up(browser)
    receive(house, account, mail("One"), "a")
    receive(house, account, mail("Two"))
    assert "Unread 2" in browser.read("/inbox")
    assert "Unread 1" in browser.read("/inbox?tag=a")
    fields = list_form(browser, "/inbox?tag=a")
    receive(house, account, mail("Later"), "a")
    answer = browser.submit("/inbox/read", **fields)
    assert answer.headers["location"] == "/p/me/inbox?tag=a&done=messages-read"
    assert subjects(browser, "/inbox?q=is:unread") == ["Later", "Two"]
    browser.submit("/inbox/read", **list_form(browser, "/inbox"))
    assert subjects(browser, "/inbox?q=is:unread") == []
    assert "Unread 0" not in browser.read("/inbox")


def test_selected_messages_are_marked_as_read(browser: Browser, account: Account) -> None:
    """With a selection, the button marks those messages of the account alone."""
    chosen = receive(browser.house, account, mail("One"))
    receive(browser.house, account, mail("Two"))
    browser.submit("/inbox/read", **list_form(browser, "/inbox"), id=chosen)
    assert subjects(browser, "/inbox?q=is:unread") == ["Two"]


def list_form(browser: Browser, path: str) -> dict[str, str]:
    """Return the hidden fields of the form around a list."""
    browser.open(path)
    form = browser.find(r'<form[^>]*id="selection">(.*?)<ol')
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


def test_a_long_list_has_pages(browser: Browser, account: Account) -> None:
    """Pages keep the filter and link to each other. A number beyond the end shows the last."""
    for number in range(5):
        receive(browser.house, account, mail(f"Mail {number}"), "x")
    assert subjects(browser, "/inbox?tag=x&limit=2") == ["Mail 4", "Mail 3"]
    assert "/p/me/inbox?tag=x&limit=2&page=2" in browser.page.addresses
    assert subjects(browser, "/inbox?tag=x&limit=2&page=3") == ["Mail 0"]
    assert "5 to 5 of 5" in browser.page.text
    assert "/p/me/inbox?tag=x&limit=2&page=2" in browser.page.addresses
    assert subjects(browser, "/inbox?limit=2&page=9") == ["Mail 0"]
    assert "5 to 5 of 5" in browser.page.text


@rows("limit=0", "limit=501", "page=0", "page=x", "tag=a%20b", "q=%ff")
def test_invalid_parameters(ann: Browser, query: str) -> None:
    """A parameter out of its range is a 400 page."""
    assert ann.open(f"/inbox?{query}").status == 400


def test_a_test_mail_is_received(browser: Browser, account: Account) -> None:
    """The test mail has text, HTML, a link and a code, and is received like any other mail."""
    answer = browser.submit("/inbox/sample", tag="try")
    assert answer.headers["location"] == "/p/me/inbox?done=sample-sent&tag=try"
    browser.follow(answer)
    assert "on its way" in browser.page.text
    message_id = receive(browser.house, account, mail("Later"))
    assert subjects(browser, "/inbox?tag=try") == ["Confirm your address (a sample)"]
    sample = browser.open("/inbox").body.decode()
    path = re.findall(r'href="(/p/me/inbox/messages/[^"]+)"', sample)[1]
    assert message_id not in path
    page = browser.open(path).body.decode()
    assert 'src="' + path + '/frame"' in page
    assert re.search(r'id="code-1"[^>]*>[0-9]{6}<', page)
    assert "https://example.com/confirm?token=" in browser.page.text


def test_a_test_mail_needs_a_valid_tag(ann: Browser) -> None:
    """A test mail to an invalid tag is rejected with an explanation."""
    assert ann.submit("/inbox/sample", tag="a b").status == 400


def test_a_full_inbox_rejects_the_test_mail() -> None:
    """A test mail to a full inbox is rejected with an explanation."""
    small = InboxOptions(max_messages=1)
    browser = Browser(House(config_in_memory(accounts=CHEAP, inbox=small)))
    sign_up(browser)
    assert browser.submit("/inbox/sample", tag="").status == 303
    assert browser.submit("/inbox/sample", tag="").status == 409
    assert "inbox is full" in browser.page.text


def test_the_listed_messages_are_deleted(browser: Browser, account: Account) -> None:
    """The selection of all deletes the messages that match the filter, and no others."""
    receive(browser.house, account, mail("Keep"), "a")
    receive(browser.house, account, mail("Drop"), "b")
    fields = list_form(browser, "/inbox?tag=b&all=true")
    assert "1 selected" in browser.page.text
    browser.follow(browser.submit("/inbox/delete", **fields))
    assert "1 message deleted" in browser.page.text
    assert subjects(browser) == ["Keep"]
    browser.submit("/inbox/delete", **list_form(browser, "/inbox?all=true"))
    assert subjects(browser) == []


@pytest.mark.parametrize("value", ["", " ", "false", "0", "none"])
def test_an_empty_selection_deletes_nothing(browser: Browser, account: Account, value: str) -> None:
    """Only ``all=true`` selects all messages of the list."""
    receive(browser.house, account, mail("Keep"))
    fields = list_form(browser, "/inbox?all=true") | {"all": value}
    browser.submit("/inbox/delete", **fields)
    assert subjects(browser) == ["Keep"]


def test_newer_messages_are_not_deleted(browser: Browser, account: Account) -> None:
    """The form deletes what the page showed, but not messages that arrived later."""
    receive(browser.house, account, mail("Seen"))
    fields = list_form(browser, "/inbox?all=true")
    receive(browser.house, account, mail("Unseen"))
    browser.submit("/inbox/delete", **fields)
    assert subjects(browser) == ["Unseen"]


def test_nothing_is_deleted_without_a_selection(browser: Browser) -> None:
    """The form deletes nothing if no message is selected, and says so."""
    receive(browser.house, sign_up(browser), mail("Keep"))
    browser.follow(browser.submit("/inbox/delete", **list_form(browser, "/inbox")))
    assert "Select messages first" in browser.page.text
    assert subjects(browser) == ["Keep"]


def test_selected_mails_are_deleted(browser: Browser, account: Account) -> None:
    """Selected messages are deleted, missing ones are ignored, and the filter stays."""
    dropped = receive(browser.house, account, mail("Drop"), "a")
    receive(browser.house, account, mail("Keep"), "a")
    receive(browser.house, account, mail("Other"))
    fields = list_form(browser, "/inbox?tag=a")
    answer = browser.submit("/inbox/delete", **fields, id=dropped)
    assert answer.headers["location"].startswith("/p/me/inbox?tag=a&undo=")
    assert answer.headers["location"].endswith("&deleted=1")
    answer = browser.submit("/inbox/delete", **fields, id=dropped)
    assert answer.headers["location"].endswith("&deleted=0")
    assert subjects(browser) == ["Other", "Keep"]


def test_a_deletion_is_undone(
    house: House, browser: Browser, account: Account, bob: Browser
) -> None:
    """For 30 seconds a deletion can be undone by the account; until then the mail is hidden.

    Nobody else sees the mail meanwhile, and its expiry is the same afterwards.
    """
    key = house.issue_key(account)
    ids = [receive(house, account, mail(f"Mail {number}"), "a") for number in range(2)]
    before = house.get(f"/inbox/messages/{ids[0]}", key=key).json
    browser.follow(browser.submit("/inbox/delete", **list_form(browser, "/inbox?all=true")))
    assert "2 messages deleted" in browser.page.text
    assert house.get("/inbox/messages", key=key).json["total"] == 0
    assert house.get("/inbox", key=key).json["total"] == 0
    assert house.get(f"/inbox/messages/{ids[0]}", key=key).status == 404
    fields = undo_form(browser)
    bob.submit("/inbox/undo", **fields)
    house.pass_time(29)
    run(house.assembly.mail.retention.sweep())
    assert subjects(browser) == []
    browser.follow(browser.submit("/inbox/undo", **fields))
    assert "The messages are back" in browser.page.text
    assert subjects(browser) == ["Mail 1", "Mail 0"]
    assert house.get(f"/inbox/messages/{ids[0]}", key=key).json == before


def undo_form(browser: Browser) -> dict[str, str]:
    """Return the fields of the form on the shown page that undoes a deletion."""
    form = browser.find(r'<form[^>]*id="undo">(.*?)</form>')
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_messages_of_others_are_not_deleted(house: House, browser: Browser, bob: Browser) -> None:
    """A selected id of another account is ignored."""
    message_id = receive(house, sign_up(browser))
    assert bob.submit("/inbox/delete", id=message_id).status == 303
    assert len(subjects(browser)) == 1


def test_a_list_is_filtered_by_recipient(browser: Browser, account: Account) -> None:
    """``?to=`` shows the messages to one address, as a filter that can be removed."""
    receive(browser.house, account, mail("One"), "a")
    receive(browser.house, account, mail("Two"), "b")
    wanted = quote(browser.house.address("a", account))
    assert subjects(browser, f"/inbox?to={wanted}") == ["One"]
    assert "To " in browser.page.text
    assert browser.open("/inbox?to=nonsense").status == 400


def test_the_theme_is_stored_in_a_cookie(ann: Browser) -> None:
    """The chosen theme is stored, redirects to a page of this site, and can be reset.

    Error pages offer it, too, and lead to the overview.
    """
    assert b'name="theme" value="dark"' in fetch(ann, "/p/me/tests/missing").body
    answer = ann.submit("/theme", theme="dark", next="/keys")
    assert answer.headers["location"] == "/p/me/keys"
    assert ann.cookies["mailcheck-theme"] == "dark"
    assert 'data-theme="dark"' in fetch(ann, "/p/me/keys").body.decode()
    ann.cookies["mailcheck-theme"] = "pink"
    ann.open("/keys")
    for elsewhere in ("//evil.example", "https://evil.example/"):
        answer = ann.submit("/theme", theme="system", next=elsewhere)
        assert answer.headers["location"] == "/p/me/"
    assert "mailcheck-theme" not in ann.cookies
    assert ann.submit("/theme", theme="pink").status == 400


HOSTILE = "</span><script>alert(1)</script>\"'>{{7*7}}"


def test_markup_in_fields_is_escaped(browser: Browser, account: Account) -> None:
    """Markup in subject, sender and tag is escaped."""
    raw = mail(HOSTILE, author=f'"{HOSTILE.replace(chr(34), "")}" <x@example.com>')
    receive(browser.house, account, raw, "'-alert-'")
    body = browser.open("/inbox").body.decode()
    assert "<script>alert" not in body
    assert HOSTILE in browser.page.text


def test_search_terms_can_be_removed(browser: Browser, account: Account) -> None:
    """Each search term is a chip that links to the list without it."""
    receive(browser.house, account, mail("Welcome"), "a")
    query = urlencode({"tag": "a", "q": 'has:code "your code" from:shop'})
    assert subjects(browser, f"/inbox?{query}") == ["Welcome"]
    page = browser.open(f"/inbox?{query}").body.decode()
    chips = re.findall(r'<li><a href="([^"]+)" aria-current="true">(.+?) <svg', page)
    shown = [(unescape(term), parse_qs(urlsplit(unescape(href)).query)) for href, term in chips]
    assert shown == [
        ("Has code", {"tag": ["a"], "q": ['"your code" from:shop']}),
        ('"your code"', {"tag": ["a"], "q": ["has:code from:shop"]}),
        ("from:shop", {"tag": ["a"], "q": ['has:code "your code"']}),
    ]


def test_filters_are_offered(browser: Browser, account: Account) -> None:
    """Unread mail, mail with a code and mail with an attachment are one link away."""
    receive(browser.house, account, mail("Welcome"), "a")
    browser.open("/inbox?tag=a")
    offered = [f"/p/me/inbox?tag=a&q={quote(term)}" for term in OFFERED_FILTERS]
    assert set(offered) <= set(browser.page.addresses)
    assert subjects(browser, offered[1]) == ["Welcome"]
    assert subjects(browser, offered[2]) == []


def test_a_row_shows_how_the_mail_begins(browser: Browser, account: Account) -> None:
    """A row shows the beginning of the message and the number of attachments."""
    raw = (
        b"Subject: Bill\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
        b"--b\r\n\r\nDear <Ann>,\r\n\r\nyour bill.\r\n"
        b"--b\r\nContent-Type: application/pdf\r\n\r\nx\r\n--b--\r\n"
    )
    receive(browser.house, account, raw)
    page = browser.open("/inbox").body.decode()
    assert ">Dear &lt;Ann&gt;, your bill.</span>" in page
    assert 'title="1 attachment"' in page
    assert subjects(browser, "/inbox?q=has:attachment") == ["Bill"]


def test_a_deletion_is_final_after_half_a_minute(
    house: House, browser: Browser, account: Account
) -> None:
    """After 30 seconds the mail is removed, and undoing says that it is too late."""
    receive(house, account)
    browser.follow(browser.submit("/inbox/delete", **list_form(browser, "/inbox?all=true")))
    fields = undo_form(browser)
    house.pass_time(30)
    browser.follow(browser.submit("/inbox/undo", **fields))
    assert "have been removed" in browser.page.text
    assert subjects(browser) == []
    run(house.assembly.mail.retention.sweep())
    inbox = run(house.assembly.inbox.read.state(account.id))
    assert (inbox.message_count, inbox.byte_count) == (0, 0)
