"""The page of a message, its frame, downloads, share link and deletion."""

import base64
import re
from html import escape

import pytest

from mailcheck.core.accounts import Account
from mailcheck.web.dashboard.inbox.message_view import MAX_TEXT
from tests.house import House, mail
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import fetch, html_mail, receive, share_path, sign_up
from tests.web.provider_requests import post

PNG = b"\x89PNG\r\n\x1a\nrest"

POLICY = (
    "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox; "
    "default-src 'none'; img-src {}; "
    "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)


def with_attachment(kind: str, name: str, data: bytes) -> bytes:
    """Return an HTML mail with one attachment."""
    head = b"From: a@example.com\r\nSubject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    html = b'--b\r\nContent-Type: text/html\r\n\r\n<img src="cid:one"> hello\r\n'
    part = f"--b\r\nContent-Type: {kind}\r\nContent-ID: <one>\r\n"
    part += "Content-Transfer-Encoding: base64\r\n"
    part += f'Content-Disposition: attachment; filename="{name}"\r\n\r\n'
    return head + html + part.encode() + base64.encodebytes(data) + b"--b--\r\n"


def test_a_message_shows_what_was_found(browser: Browser, account: Account) -> None:
    """The page shows code, link, sender, recipient, server and share link."""
    message_id = receive(browser.house, account, tag="signup")
    browser.open(f"/inbox/messages/{message_id}")
    for words in (
        *("Welcome", "482913", "https://example.com/confirm?t=7f3a", "Shop <shop@example.com>"),
        *("192.0.2.7", "mx.example.com", "+signup", "/share/", "Open the link"),
    ):
        assert words in browser.page.text


def test_a_message_shows_the_request_that_was_posted(browser: Browser) -> None:
    """The page of a mail that came over a provider's API names it and shows the posted JSON."""
    house = browser.house
    key = house.issue_key(sign_up(browser))
    post(house, "/providers/resend/emails", key=key)
    (message,) = house.get("/inbox/messages", key=key).json["messages"]
    browser.open(f"/inbox/messages/{message['id']}")
    for words in ("Resend API", "posted to the Resend API", '"to": ['):
        assert words in browser.page.text


@rows(("text", "Your code is"), ("headers", "Subject"), ("source", "Subject: Welcome"))
def test_the_views_of_a_message(browser: Browser, account: Account, view: str, words: str) -> None:
    """Text, headers and source each have their own address."""
    message_id = receive(browser.house, account)
    path = f"/inbox/messages/{message_id}?view={view}"
    assert words in browser.read(path)
    assert f"/p/me{path}" in browser.page.addresses


def test_html_is_the_first_view_where_there_is_any(browser: Browser, account: Account) -> None:
    """A mail with HTML is shown in a frame; a mail without HTML has only its text."""
    rich = receive(browser.house, account, html_mail("<p>Hello</p>"))
    body = browser.open(f"/inbox/messages/{rich}").body.decode()
    assert 'sandbox="allow-same-origin allow-popups allow-popups-to-escape-sandbox"' in body
    assert f"/p/me/inbox/messages/{rich}/frame" in browser.page.addresses
    plain = receive(browser.house, account)
    for view in ("", "?view=html", "?view=nonsense"):
        assert "<iframe" not in browser.open(f"/inbox/messages/{plain}{view}").body.decode()


def test_links_of_a_text_can_be_clicked(browser: Browser, account: Account) -> None:
    """Web addresses in a text are links without a referrer."""
    raw = mail(body='see https://e.example/?a=1&b="><script> or javascript:alert(1)')
    message_id = receive(browser.house, account, raw)
    body = browser.open(f"/inbox/messages/{message_id}?view=text").body.decode()
    assert (
        '<a href="https://e.example/?a=1&amp;b=" target="_blank" '
        'rel="noopener noreferrer nofollow">https://e.example/?a=1&amp;b=</a>'
    ) in body
    assert "<script>" not in body
    assert 'href="javascript' not in body


@rows(("", "data:"), ("?remote=true", "data: https: http:"))
def test_a_frame_is_under_its_own_policy(
    browser: Browser, account: Account, query: str, images: str
) -> None:
    """The HTML document can neither run scripts nor load anything but requested images."""
    html = '<img src="https://t.example/1.gif"><script>alert(1)</script>Hello'
    message_id = receive(browser.house, account, html_mail(html))
    answer = fetch(browser, f"/inbox/messages/{message_id}/frame{query}")
    assert answer.headers["content-security-policy"] == POLICY.format(images)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"
    text = answer.body.decode()
    assert "Hello" in text
    assert "<script" not in text
    assert ("t.example" in text) == bool(query)


def test_remote_content_is_offered_where_there_is_any(browser: Browser, account: Account) -> None:
    """The page says how many images were not loaded, and links to a view with them."""
    tracked = receive(browser.house, account, html_mail('<img src="https://t.example/1.gif">'))
    page = f"/p/me/inbox/messages/{tracked}"
    assert "1 image from other servers not loaded" in browser.read(page)
    assert f"{page}?view=html&remote=true" in browser.page.addresses
    browser.open(f"{page}?view=html&remote=true")
    assert f"{page}/frame?remote=true" in browser.page.addresses
    clean = receive(browser.house, account, html_mail("<p>x</p>"))
    browser.open(f"/inbox/messages/{clean}")
    assert "other servers" not in browser.page.text


@rows("cross-site", "same-site", "none")
def test_other_sites_can_not_request_remote_content(
    browser: Browser, account: Account, site: str
) -> None:
    """A link from another site cannot request remote content."""
    tracked = receive(browser.house, account, html_mail('<img src="https://t.example/1.gif">'))
    for base in (f"/inbox/messages/{tracked}", share_path(browser, tracked)):
        browser.open(f"{base}?view=html&remote=true", f"Sec-Fetch-Site: {site}")
        assert "not loaded" in browser.page.text
        frame = f"{base}/frame?remote=true"
        assert b"t.example" not in fetch(browser, frame, f"Sec-Fetch-Site: {site}").body
        assert b"t.example" in fetch(browser, frame, "Sec-Fetch-Site: same-origin").body


def test_an_inline_image_is_no_attachment(browser: Browser, account: Account) -> None:
    """Images shown in the HTML are not listed as attachments; others are, with their size."""
    shown = receive(browser.house, account, with_attachment("image/png", "a.png", PNG))
    browser.open(f"/inbox/messages/{shown}")
    assert "a.png" not in browser.page.text
    raw = with_attachment("application/pdf", "a.pdf", b"x" * 2_500)
    for one in (raw, raw.replace(b"cid:one", b"cid:two")):
        listed = receive(browser.house, account, one)
        assert "a.pdf application/pdf, 2.5 kB" in browser.read(f"/inbox/messages/{listed}")


def test_the_list_is_shown_beside_a_message(browser: Browser, account: Account) -> None:
    """A message is shown beside its list, with the newer and the older message of that list."""
    ids = [receive(browser.house, account, mail(one), one[:1]) for one in ("a1", "b1", "a2")]
    browser.open(f"/inbox/messages/{ids[2]}?tag=a")
    assert f"/p/me/inbox/messages/{ids[0]}?tag=a" in browser.page.addresses
    assert f"/p/me/inbox/messages/{ids[1]}?tag=a" not in browser.page.addresses
    alone = fetch(browser, f"/inbox/messages/{ids[2]}?tag=a&pane=mail").body.decode()
    assert alone.lstrip().startswith("<article")
    assert ids[0] in alone
    assert ids[1] not in alone


def test_the_list_has_the_page_of_the_message(browser: Browser, account: Account) -> None:
    """Beside a message is the page of the list that has it, with neighbours on other pages too."""
    ids = [receive(browser.house, account, mail(f"Mail {number}")) for number in range(6)]
    text = browser.open(f"/inbox/messages/{ids[1]}?limit=2").body.decode()
    assert f'<li id="m-{ids[1]}" class=" current">' in text
    assert f"m-{ids[4]}" not in text
    assert "3 to 4 of 6" not in text
    assert "5 to 6 of 6" in text
    for at in range(6):
        browser.open(f"/inbox/messages/{ids[at]}?limit=2")
        link = r'id="(newer|older)-mail" href="/p/me/inbox/messages/([^?"]+)'
        names = dict(re.findall(link, browser.page.source))
        assert names == {
            name: ids[other]
            for name, other in (("newer", at + 1), ("older", at - 1))
            if 0 <= other < 6
        }


def test_a_message_that_left_its_list_has_neighbours(browser: Browser, account: Account) -> None:
    """A message opened from the list of unread mail is read, and its neighbours are unread."""
    ids = [receive(browser.house, account, mail(f"Mail {number}")) for number in range(3)]
    browser.open(f"/inbox/messages/{ids[1]}?q=is:unread")
    text = browser.page.source
    assert f"m-{ids[1]}" not in text
    assert f'id="newer-mail" href="/p/me/inbox/messages/{ids[2]}' in text
    assert f'id="older-mail" href="/p/me/inbox/messages/{ids[0]}' in text


def test_an_invitation_is_shown(browser: Browser) -> None:
    """The event of a calendar part is shown above the text, with its markup escaped."""
    raw = (
        b"Subject: Invitation\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"
        b"--b\r\n\r\nCome!\r\n--b\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\n"
        b"BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\n"
        b"DTSTART;TZID=Europe/Berlin:20261201T100000\r\nDTEND;TZID=Europe/Berlin:20261201T113000"
        b"\r\nSUMMARY:<b>Plan</b>\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n--b--\r\n"
    )
    message_id = receive(browser.house, sign_up(browser), raw)
    for path in (f"/inbox/messages/{message_id}", share_path(browser, message_id)):
        browser.open(path)
        text = browser.words
        assert "Invitation: <b>Plan</b>" in text
        assert "2026-12-01 10:00 to 11:30 Europe/Berlin" in text


def test_a_private_sender_is_named_once(ann: Browser) -> None:
    """A mail from a private address has one line instead of undetermined results."""
    ann.submit("/inbox/sample")
    (message_id,) = re.findall(r'id="m-([^"]+)"', ann.open("/inbox").body.decode())
    ann.open(f"/inbox/messages/{message_id}")
    assert "temperror" not in ann.page.text
    assert "came from a private address (127.0.0.1)" in ann.page.text


def test_cc_and_reply_to_are_shown(browser: Browser) -> None:
    """Cc and Reply-To are shown if a mail has them."""
    raw = b"From: a@example.com\r\nCc: b@example.com\r\nReply-To: c@example.com\r\n\r\nx\r\n"
    message_id = receive(browser.house, sign_up(browser), raw)
    browser.open(f"/inbox/messages/{message_id}")
    for words in ("Cc", "b@example.com", "Reply-To", "c@example.com"):
        assert words in browser.page.text


def test_the_source_of_html_is_shown_decoded(browser: Browser) -> None:
    """The source of HTML is shown decoded."""
    head = "From: a@example.com\r\nContent-Type: text/html; charset=utf-8\r\n"
    encoded = base64.encodebytes('<p title="é">Hello</p>'.encode()).decode()
    raw = f"{head}Content-Transfer-Encoding: base64\r\n\r\n{encoded}".encode()
    message_id = receive(browser.house, sign_up(browser), raw)
    assert '<p title="é">Hello</p>' in browser.read(f"/inbox/messages/{message_id}?view=markup")


@rows(
    ("<html lang=ar dir=rtl>", b'<html lang="ar" dir="rtl">'),
    ('<html lang="x onload=1" dir="&quot;">', b"<html>"),
    ("", b"<html>"),
)
def test_language_and_direction_survive(
    browser: Browser, account: Account, said: str, written: bytes
) -> None:
    """Language and direction of <html> are kept, and no other attribute."""
    message_id = receive(browser.house, account, html_mail(f"{said}<body>x</body>"))
    assert written in fetch(browser, f"/inbox/messages/{message_id}/frame").body


def test_an_image_of_the_mail_itself_is_shown(browser: Browser, account: Account) -> None:
    """An image attached to the mail is shown; an HTML page declared as an image is not."""
    picture = receive(browser.house, account, with_attachment("text/html", "a.png", PNG))
    frame = fetch(browser, f"/inbox/messages/{picture}/frame").body
    assert b'<img src="data:image/png;base64,iVBORw0KGgpyZXN0">' in frame
    page = with_attachment("image/png", "a.png", b"<script>alert(1)</script>")
    fake = receive(browser.house, account, page)
    assert b"<img> hello" in fetch(browser, f"/inbox/messages/{fake}/frame").body


@rows("text/html", "image/svg+xml", "application/pdf", "x/<y>")
def test_an_attachment_is_a_download(browser: Browser, account: Account, kind: str) -> None:
    """An attachment of any declared type is downloaded."""
    raw = with_attachment(kind, '<b>".html', b"<script>alert(1)</script>")
    message_id = receive(browser.house, account, raw)
    for base in (f"/inbox/messages/{message_id}", share_path(browser, message_id)):
        answer = fetch(browser, f"{base}/attachments/1")
        assert answer.body == b"<script>alert(1)</script>"
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert fetch(browser, f"{base}/attachments/9").status == 404


def test_the_exact_bytes_are_a_download(browser: Browser) -> None:
    """The source is downloaded byte for byte, also if it is not text."""
    raw = b"Subject: x\r\n\r\n\xff\xfe\r\n"
    message_id = receive(browser.house, sign_up(browser), raw)
    answer = fetch(browser, f"/inbox/messages/{message_id}/raw")
    assert answer.body == raw
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert browser.open(f"/inbox/messages/{message_id}?view=source").status == 200


def test_long_mail_is_cut_on_the_page(browser: Browser, account: Account) -> None:
    """Very long text, HTML or source is cut, and the page says so."""
    text = receive(browser.house, account, mail(body="word " * 120_000))
    for view in ("text", "source"):
        answer = browser.open(f"/inbox/messages/{text}?view={view}")
        assert "Only the beginning is shown" in browser.page.text
        assert len(answer.body) < 700_000
    html = receive(browser.house, account, html_mail("<p>word</p>" * 30_000))
    shown = browser.read(f"/inbox/messages/{html}")
    assert "Only the first 66 % of this HTML is shown" in shown


def test_share_links_are_renewed(browser: Browser) -> None:
    """The form revokes the old link and shows a new one."""
    message_id = receive(browser.house, sign_up(browser))
    old = share_path(browser, message_id)
    browser.follow(browser.submit(f"/inbox/messages/{message_id}/share"))
    assert "The old share link no longer works" in browser.page.text
    new = share_path(browser, message_id)
    assert new != old
    assert [browser.open(path).status for path in (old, new)] == [404, 200]


def test_a_deleted_message_is_gone(browser: Browser) -> None:
    """The form deletes the message, its frame, its downloads and its share link."""
    message_id = receive(browser.house, sign_up(browser), html_mail("<p>x</p>"))
    share = share_path(browser, message_id)
    page = f"/inbox/messages/{message_id}"
    browser.follow(browser.submit(f"{page}/delete"))
    assert "1 message deleted" in browser.page.text
    for path in (page, f"{page}/frame", f"{page}/raw", share, f"{share}/frame"):
        assert browser.open(path).status == 404, path


@pytest.mark.parametrize("rest", ["", "/frame", "/raw", "/attachments/1", "/attachments/1/preview"])
def test_messages_of_other_accounts(
    house: House, browser: Browser, rest: str, bob: Browser
) -> None:
    """A message of another account is 404, like an unknown one."""
    raw = with_attachment("text/plain", "a.txt", b"x")
    message_id = receive(browser.house, sign_up(browser), raw)
    assert bob.open(f"/inbox/messages/{message_id}{rest}").status == 404
    for form in ("share", "delete"):
        assert bob.submit(f"/inbox/messages/{message_id}/{form}").status == 404
    assert fetch(browser, f"/inbox/messages/{message_id}{rest}").status == 200


def test_html_is_sanitized_once(browser: Browser) -> None:
    """Page, frame and reloads sanitize the HTML once."""
    message_id = receive(browser.house, sign_up(browser), html_mail("<p>Hello</p>"))
    frames = {
        fetch(browser, f"/inbox/messages/{message_id}/frame").body
        for _ in (browser.open(f"/inbox/messages/{message_id}") for _ in range(3))
    }
    assert len(frames) == 1
    assert re.search(rb"<body><p>Hello</p>\s*</body>", frames.pop())


def test_a_message_needs_no_dns_lookup(browser: Browser) -> None:
    """The message is returned without DNS lookups; its authentication is loaded separately."""
    message_id = receive(browser.house, sign_up(browser))
    page = f"/inbox/messages/{message_id}"
    assert b"The mail is not signed." not in fetch(browser, f"{page}?pane=mail").body
    assert b"The mail is not signed." in fetch(browser, f"{page}/authentication").body


def test_the_authentication_of_a_message(browser: Browser) -> None:
    """The results of SPF, DKIM and DMARC are shown, each with its reason."""
    message_id = receive(browser.house, sign_up(browser))
    browser.open(f"/inbox/messages/{message_id}")
    text = browser.page.text
    assert "Authentication" in text
    assert "SPF of example.com" in text
    assert "DMARC of example.com" in text
    assert "The mail is not signed." in text


def unshown(kind: str, data: bytes) -> bytes:
    """Return a mail with an attachment that its HTML does not show."""
    return with_attachment(kind, "a", data).replace(b"cid:one", b"cid:two")


PREVIEWED = [
    ("image/png", b"\x89PNG\r\n\x1a\nrest", "image/png"),
    ("image/jpeg", b"\x89PNG\r\n\x1a\nrest", "image/png"),
    ("image/webp", b"RIFF1234WEBPVP8 ", "image/webp"),
    ("text/plain", "Gr\u00fc\u00dfe <b>".encode(), "text/html; charset=utf-8"),
    ("text/html", b"<script>alert(1)</script>", "text/html; charset=utf-8"),
    ("application/json", b"{}", "text/html; charset=utf-8"),
]


@rows(*PREVIEWED)
def test_previews_of_images_and_text(
    browser: Browser, account: Account, kind: str, data: bytes, served: str
) -> None:
    """Previews have the type of their bytes and a sandbox without permissions."""
    message_id = receive(browser.house, account, unshown(kind, data))
    preview = f"/p/me/inbox/messages/{message_id}/attachments/1/preview"
    assert f'src="{preview}"' in browser.open(f"/inbox/messages/{message_id}").body.decode()
    answer = fetch(browser, preview)
    assert (answer.status, answer.headers["content-type"]) == (200, served)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'; ")
    assert "script" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    if served.startswith("text/html"):
        assert f"<pre>{escape(data.decode())}</pre>" in answer.body.decode()


@rows(
    ("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>"),
    ("application/pdf", b"%PDF-1.4"),
    ("application/octet-stream", b"\x89PNG\r\n\x1a\n"),
    ("text/plain", b"x" * (MAX_TEXT + 1)),
)
def test_other_attachments_have_no_preview(
    browser: Browser, account: Account, kind: str, data: bytes
) -> None:
    """Other types and large attachments have no preview."""
    message_id = receive(browser.house, account, unshown(kind, data))
    path = f"/inbox/messages/{message_id}"
    assert "/preview" not in browser.open(path).body.decode()
    assert fetch(browser, f"{path}/attachments/1/preview").status == 404


def test_a_declared_image_that_is_not_an_image(browser: Browser, account: Account) -> None:
    """An HTML page declared as an image is not shown."""
    raw = unshown("image/png", b"<script>alert(1)</script>")
    message_id = receive(browser.house, account, raw)
    answer = fetch(browser, f"/inbox/messages/{message_id}/attachments/1/preview")
    assert b"not an image" in answer.body
    assert b"alert" not in answer.body
