"""The page behind a share link, for everybody who has the link."""

import pytest

from tests.house import House, mail
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import fetch, html_mail, receive, share_path, sign_up
from tests.web.raw_http import RawHttp

HTML = '<p>Hello</p><img src="https://t.example/1.gif"><script>alert(1)</script>'


@pytest.fixture
def stranger(house: House) -> Browser:
    """Return a browser without an account."""
    return Browser(house, "192.0.2.99")


def test_anybody_with_the_link_sees_the_mail(browser: Browser, stranger: Browser) -> None:
    """The page shows the mail, without the actions of its owner."""
    message_id = receive(browser.house, sign_up(browser), tag="signup")
    answer = stranger.open(share_path(browser, message_id))
    for words in ("Welcome", "482913", "shared with you", "https://example.com/confirm?t=7f3a"):
        assert words in stranger.page.text
    body = answer.body.decode()
    for words in ("<form", "Delete", "Revoke", '/share"', "/raw"):
        assert words not in body
    assert '<meta name="robots" content="noindex, nofollow">' in body
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("accept", ["application/json", "*/*", ""])
def test_programs_get_json(browser: Browser, accept: str) -> None:
    """A client that does not accept HTML gets JSON from the same address."""
    message_id = receive(browser.house, sign_up(browser))
    path = share_path(browser, message_id)
    fields = [f"Accept: {accept}"] if accept else []
    answer = RawHttp(browser.house).ask(path, *fields)
    assert answer.json["id"] == message_id
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"
    assert answer.headers["vary"].startswith("Accept")


def test_remote_content_is_off_until_asked_for(browser: Browser, stranger: Browser) -> None:
    """The frame of a shared mail contains no remote addresses unless they are requested."""
    message_id = receive(browser.house, sign_up(browser), html_mail(HTML))
    path = share_path(browser, message_id)
    stranger.open(path)
    assert f"{path}/frame" in stranger.page.addresses
    assert "not loaded" in stranger.page.text
    off = fetch(stranger, f"{path}/frame")
    on = fetch(stranger, f"{path}/frame?remote=true")
    assert b"t.example" not in off.body
    assert b"t.example" in on.body
    for answer in (off, on):
        assert b"<script" not in answer.body
        assert answer.headers["content-security-policy"].startswith(
            "sandbox allow-same-origin allow-popups"
        )


def test_an_invalid_link_is_404(stranger: Browser) -> None:
    """An invalid link is 404, with every path below it."""
    for rest in ("", "/frame", "/attachments/1", "/attachments/1/preview"):
        assert stranger.open("/share/" + "a" * 52 + rest).status == 404
        assert "is not valid" in stranger.page.text


def test_the_source_is_not_shared(browser: Browser, stranger: Browser) -> None:
    """The raw mail is not shared: there is neither a view nor a download."""
    message_id = receive(browser.house, sign_up(browser), mail("Secret"))
    path = share_path(browser, message_id)
    assert stranger.open(f"{path}/raw").status == 404
    assert "Source" not in stranger.open(f"{path}?view=source").body.decode()


def test_nothing_behind_a_share_link_is_listed(browser: Browser) -> None:
    """No search engine lists the page, the frame or the files of a shared mail."""
    raw = (
        b"From: a@example.com\r\nSubject: Files\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n"
        b"<p>Hi</p>\r\n--b\r\nContent-Type: text/plain\r\n"
        b"Content-Disposition: attachment; filename=a.txt\r\n\r\nsecret\r\n--b--\r\n"
    )
    message_id = receive(browser.house, sign_up(browser), raw)
    path = share_path(browser, message_id)
    for rest in ("", "/frame", "/attachments/1", "/attachments/1/preview"):
        answer = fetch(browser, path + rest)
        assert (answer.status, answer.headers["x-robots-tag"]) == (200, "noindex, nofollow")


def test_a_share_link_leads_to_the_own_mail(browser: Browser, stranger: Browser) -> None:
    """A person who has the mail in a project can open it there; other visitors cannot."""
    message_id = receive(browser.house, sign_up(browser))
    path = share_path(browser, message_id)
    own = f"/p/me/inbox/messages/{message_id}"
    browser.open(path)
    assert own in browser.page.addresses
    stranger.open(path)
    assert own not in stranger.page.addresses
    stranger.sign_up("bob")
    stranger.open(path)
    assert own not in stranger.page.addresses
