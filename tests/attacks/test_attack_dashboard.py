"""Attacks on the dashboard: forged cookies, injected headers, open redirects, scripts in names."""

import hmac
from base64 import urlsafe_b64encode
from html import escape
from urllib.parse import quote

import pytest

from mailcheck.core.accounts import Account
from mailcheck.web.dashboard.visits import FormSecret, local_path
from tests.house import House, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import browser as browser
from tests.web.dashboard.conftest import house as house

pytestmark = pytest.mark.attack

ELSEWHERE = [
    "https://evil.example/",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "\t//evil.example",
    " //evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "http:evil.example",
    "/a\r\nSet-Cookie: x=y",
    "/a\nLocation: //evil.example",
    "/%0d%0a\u2028",
    "/keys\\..\\",
    "?next=//evil.example",
    "/" + "a" * 4_001,
    "/\u202eevil",
    "",
]


@pytest.fixture
def ann(browser: Browser) -> Browser:
    """The browser of a person who is signed in."""
    browser.sign_up("ann")
    return browser


@rows(*ELSEWHERE)
def test_signing_in_leads_nowhere_else(ann: Browser, wanted: str) -> None:
    """The sign-in never leads to another site, and ``next`` cannot inject a header."""
    ann.house.pass_time(60)
    other = Browser(ann.house, "192.0.2.11")
    other.open("/sign-in")
    answer = other.submit("/sign-in", name="ann", password="correct horse", next=wanted)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert answer.headers["set-cookie"].startswith("mailcheck-session=")
    shown = ann.open(f"/sign-in?next={quote(wanted)}")
    assert (shown.status, shown.headers["location"]) == (303, "/p/me/")


@rows("/", "/keys", "/keys?a=b&c=%0d%0a", "/inbox/x#y", "/@evil")
def test_our_own_pages_are_reached(wanted: str) -> None:
    """A path of this site is kept as it was given."""
    assert local_path(wanted) == wanted


def test_an_address_that_reads_as_another_site(browser: Browser) -> None:
    """A path that begins with two slashes leads to the start page after the sign-in."""
    for path in ("//evil.example/%2e%2e", "//evil.example/keys", "/%2fevil.example/"):
        answer = browser.open(path)
        assert answer.status == 404
        assert "location" not in answer.headers


FORGED = [
    *("a" * 32, "A" * 32, "", "'", '"; DROP', "\xff\xfe", "a" * 6000, "../../etc/passwd"),
    *("mailcheck-session", "%00", "0", "null"),
]


@rows(*FORGED)
def test_forged_cookies(ann: Browser, forged: str) -> None:
    """A forged cookie opens no page and causes no error."""
    ann.house.pass_time(60)
    stranger = Browser(ann.house, "192.0.2.66")
    stranger.cookies["mailcheck-session"] = stranger.cookies["mailcheck-project"] = forged
    stranger.project = ""
    assert stranger.open("/account").status == 303
    assert stranger.open("/p/me/").status == 303
    assert stranger.open("/").status == 200
    stranger.cookies = {"mailcheck-visitor": forged}
    assert stranger.open("/sign-in").status == 200
    assert stranger.sign_in("ann", "wrong horse!").status == 403


@pytest.mark.parametrize("path", ["/sign-in", "/sign-up"])
def test_a_token_for_who_has_no_cookie(browser: Browser, path: str) -> None:
    """A token cannot be forged for a visitor without a cookie, who has no secret."""
    Browser(browser.house, "192.0.2.11").sign_up("ann")
    for secret in ("", "None", "a" * 32):
        proofs = b"".join(
            hmac.digest(secret.encode(), b"mailcheck form token of a " + what, "sha256")[:16]
            for what in (b"session", b"project ")
        )
        token = urlsafe_b64encode(bytes(len(proofs)) + proofs).decode().rstrip("=")
        if secret:
            assert token == FormSecret(secret, bytes).token(), "tokens are derived like this"
        answer = browser.post(path, name="ann", password="correct horse", **{"form-token": token})
        assert answer.status == 403
        assert "mailcheck-session" not in browser.cookies


def test_a_cookie_beside_the_real_one(browser: Browser) -> None:
    """A request with two different sessions has none, because mailcheck never sets two."""
    browser.sign_up("ann")
    other = Browser(browser.house, "192.0.2.11")
    other.sign_up("bob")
    mine, theirs = (one.cookies["mailcheck-session"] for one in (browser, other))
    stranger = Browser(browser.house)
    pair = f"Cookie: mailcheck-session={mine}; mailcheck-session={theirs}"
    assert stranger.open("/account", pair).status == 303
    assert stranger.open("/account", f"Cookie: mailcheck-session={mine}").status == 200


def test_what_the_store_holds_opens_nothing(browser: Browser) -> None:
    """A copy of the database contains no usable session, invitation or password."""
    browser.sign_up("ann")
    secret = browser.cookies["mailcheck-session"]
    writer = browser.house.sqlite.connection
    dump = "\n".join(writer.iterdump())
    assert secret not in dump
    assert "correct horse" not in dump
    ((digest,),) = writer.execute("SELECT digest FROM dashboard_session").fetchall()
    stranger = Browser(browser.house)
    for forged in (digest.hex(), digest.hex()[:32]):
        stranger.cookies["mailcheck-session"] = forged
        assert not stranger.is_signed_in


SCRIPTS = [
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)"),
    *("</title><svg onload=alert(1)>", "{{ 7*7 }}{% raw %}", "javascript:alert(1)", "<!--", "]]>"),
    *("&lt;b&gt;", "</pre></textarea></style>"),
]


@rows(*SCRIPTS)
def test_scripts_in_names(browser: Browser, name: str) -> None:
    """A name of an account or a key is shown as text everywhere, and pages stay well-formed."""
    browser.sign_up(name)
    browser.open("/keys")
    created = browser.submit("/keys", name=name)
    assert created.status == 200
    for path in ("/", "/keys", "/account"):
        body = browser.open(path).body.decode()
        assert name in browser.page.text
        if escape(name) != name:
            assert name not in body
    taken = Browser(browser.house, "192.0.2.11")
    taken.open("/sign-up")
    assert taken.submit("/sign-up", name=name, password="other horse").status == 409
    assert taken.sign_in(name, "wrong horse!").status == 403


@rows(*SCRIPTS)
def test_scripts_in_addresses(browser: Browser, text: str) -> None:
    """Text in a path or a parameter is shown as text on the page that answers."""
    for path in (
        f"/{quote(text, safe='')}",
        f"/sign-in?next={quote(text)}",
        "/sign-in?done=" + quote(text),
    ):
        answer = browser.open(path)
        assert text not in answer.body.decode() or escape(text) == text
    browser.open(f"/sign-up?invitation={quote(text)}")


def test_names_of_operators_are_text_too(house: House, browser: Browser) -> None:
    """An account that was created on the command line may have any name, which is shown as text."""
    name = "<b>\x1b[31m\u202e\ud83d</b>".encode("utf-8", "replace").decode()
    account: Account = run(house.assembly.accounts.keep.add(name))
    run(house.assembly.accounts.keep.issue_key(account, "\x00<i>\x7f"))
    run(house.assembly.accounts.sign_in.set_password(account, "correct horse"))
    assert browser.sign_in(name).status == 303
    for path in ("/", "/keys", "/account"):
        assert browser.open(path).status == 200


@rows(
    "Host: evil.example",
    'Host: evil.example"><script>',
    "X-Forwarded-Host: evil.example",
    "X-Forwarded-Proto: https",
    "X-Forwarded-For: 1.2.3.4",
    "Forwarded: host=evil.example",
    "X-Original-URL: /account",
)
def test_headers_of_strangers_are_not_believed(browser: Browser, field: str) -> None:
    """Header fields about a request's own address have no effect on pages."""
    for path in ("/", "/sign-in", "/nowhere"):
        body = browser.open(path, field).body
        assert b"evil.example" not in body
    assert "https" not in browser.open("/keys", field).headers.get("location", "")


def test_the_token_does_not_leave_by_a_referrer(browser: Browser) -> None:
    """No address of a page contains a secret except that of an invitation."""
    browser.sign_up("ann")
    browser.open("/keys")
    secrets = {browser.page.form_token, *browser.cookies.values()}
    assert not any(secret in address for secret in secrets for address in browser.page.addresses)


@rows("/sign-in", "/sign-up")
def test_long_fields(browser: Browser, path: str) -> None:
    """Fields that are too long are rejected without being hashed or stored."""
    browser.open(path)
    for form in ({"name": "x" * 20_000, "password": "y"}, {"name": "x", "password": "y" * 60_000}):
        assert browser.submit(path, **form).status in (400, 403)
