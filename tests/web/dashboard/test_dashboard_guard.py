"""Protection of all pages: sessions, form tokens, headers and error pages."""

import gzip
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from twisted.logger import LogEvent

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import WebOptions
from mailcheck.ops.watch import DISK
from mailcheck.web.dashboard.addresses import first_segment
from mailcheck.web.site.requests import MAX_BODY
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, result_of
from tests.table import rows
from tests.web.dashboard.browser import OPEN_TOO, Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.dashboard.test_dashboard_projects import filled, pages_of
from tests.web.raw_http import RawHttp, read_answer, request
from tests.web.workers import FaultyWorker

PRIVATE = ["/account", "/keys"]
"""Pages that require a signed-in account."""

OPEN = ["/", "/sign-in", "/sign-up"]


def test_every_page_needs_a_session_unless_it_is_open(house: House, browser: Browser) -> None:
    """A page that requires an account redirects visitors to the sign-in page."""
    for page in pages_of(house):
        plain = filled(page).removeprefix("/p/me")
        is_open_too = first_segment(plain) in OPEN_TOO
        for path in {filled(page)} if is_open_too else {filled(page), plain}:
            answer = browser.send(page.method, path, b"")
            assert (answer.status, answer.body) == (303, b""), (page.method, path)
            wanted = f"?next={quote(browser.address(path), safe='')}"
            place = wanted if page.method == "GET" else ""
            assert answer.headers["location"] == f"/sign-in{place}"


def test_every_form_needs_its_token(house: House, ann: Browser, bob: Browser) -> None:
    """A POST to any page without the token, or with another visitor's, is rejected."""
    for page in pages_of(house):
        if page.method == "POST":
            for token in ("", bob.page.form_token):
                answer = ann.post(filled(page), **{"form-token": token}, name="forged")
                assert answer.status == 403, page.path
    assert ann.is_signed_in


def test_a_full_disk(browser: Browser) -> None:
    """While the server rejects mail because its disk is full, pages of accounts say so."""
    said = b"accepts no mail at the moment"
    conditions = browser.house.assembly.runtime.conditions
    conditions.set(DISK, "it is full, or nearly so: mail is refused")
    for path in OPEN:
        assert said not in browser.open(path).body
    browser.sign_up()
    for path in (*PRIVATE, "/"):
        assert said in browser.open(path).body
    conditions.set(DISK, "")
    for path in (*PRIVATE, "/"):
        assert said not in browser.open(path).body


@pytest.mark.parametrize("path", [*PRIVATE, *OPEN])
def test_every_page_is_well_formed(browser: Browser, path: str) -> None:
    """Every page has the policy, labels, no inline script and no external resource."""
    if path in PRIVATE:
        browser.sign_up()
    assert browser.open(path).status == 200
    assert browser.send("HEAD", path, b"").status == 200


def test_a_very_long_address(browser: Browser) -> None:
    """A very long address redirects to a sign-in page that works."""
    for path in (f"/keys?x={'a' * 4_000}", f"/keys?{'%0a' * 1_400}"):
        answer = browser.open(path)
        assert answer.headers["location"] == "/sign-in"
        assert browser.follow(answer).status == 200


def test_a_program_gets_401(house: House) -> None:
    """A client that does not accept HTML gets a JSON 401 without a challenge."""
    connection = RawHttp(house)
    connection.send(request("/account", "Accept: application/json"))
    answer, _ = read_answer(connection.received(), "GET")
    assert (answer.status, answer.json) == (401, {"error": "your session has ended: sign in again"})


def test_a_forged_token_is_refused(ann: Browser) -> None:
    """A token of any form that is not the visitor's own is rejected, with advice."""
    for forged in ("", "A" * 86, "\xff", "x" * 400):
        assert ann.post("/keys", **{"form-token": forged}, name="forged").status == 403
        assert "reload the page" in ann.page.text
    assert "forged" not in ann.open("/keys").body.decode()


@pytest.mark.parametrize("path", ["/sign-in", "/sign-up"])
def test_sign_in_and_sign_up_need_their_token_too(browser: Browser, path: str) -> None:
    """Signing in and up require the visitor's own token, so other sites cannot submit them."""
    Browser(browser.house, "192.0.2.11").sign_up("ann")
    stranger = Browser(browser.house, "192.0.2.12")
    stranger.open(path)
    form = {"name": "ann", "password": "correct horse"}
    assert browser.post(path, **form).status == 403
    browser.open(path)
    token = {"form-token": stranger.page.form_token}
    assert browser.post(path, **form, **token).status == 403
    cookies, browser.cookies = browser.cookies, {}
    assert browser.submit(path, **form).status == 403
    browser.cookies = cookies
    assert "mailcheck-session" not in browser.cookies


@rows(
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site",
    "Origin: http://evil.example",
    "Origin: http://127.0.0.1:8081",
    "Origin: http://127.0.0.1:8080.evil.example",
)
def test_forms_from_other_sites_are_rejected(ann: Browser, field: str) -> None:
    """A POST from another site according to the browser is rejected, even with the right token."""
    answer = ann.submit("/keys", field, name="x")
    assert answer.status == 403
    assert "from another site" in ann.page.text


@rows("Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:8080", "Origin: null")
def test_own_forms_are_accepted(ann: Browser, field: str) -> None:
    """Origins that browsers send for the site's own forms are accepted, including null."""
    assert ann.submit("/keys", field, name="x").status == 200


def test_a_script_sends_the_token_in_a_header(browser: Browser) -> None:
    """The token in the page is accepted in the header X-Form-Token too."""
    browser.sign_up_by_form()
    token = browser.find(r'<meta name="form-token" content="([^"]+)">')
    assert browser.post("/keys", f"X-Form-Token: {token}", name="x").status == 200


def test_tokens_are_masked(ann: Browser) -> None:
    """Each page has another masked token, so that compression cannot reveal the secret."""
    tokens = set()
    for _ in range(5):
        ann.open("/keys")
        tokens.add(ann.page.form_token)
    assert len(tokens) == 5


def test_a_form_after_the_session_ended(ann: Browser) -> None:
    """A form submitted after the session ended redirects to the sign-in page."""
    token = ann.page.form_token
    ann.cookies.clear()
    answer = ann.post("/keys", **{"form-token": token}, name="x")
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in")


@pytest.mark.parametrize("path", ["/nowhere", "/keys/", "/static/x/y.css", "/keys/%00", "/%ff"])
def test_an_unknown_path_is_a_page(browser: Browser, path: str) -> None:
    """An unknown path is a 404 page for browsers and JSON for programs."""
    assert browser.open(path).status == 404
    assert "Not found" in browser.page.text
    browser.sign_up()
    assert browser.open(path).status == 404
    assert "Sign out" in browser.page.text
    assert 'aria-current="page"' not in browser.open(path).body.decode()
    assert browser.send("HEAD", path, b"").status == 404
    answer = RawHttp(browser.house).ask(path)
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("application/json")


@rows(("PUT", "/keys", "GET, HEAD, POST"), ("GET", "/sign-out", "POST"), ("POST", "/", "GET, HEAD"))
def test_a_wrong_method_is_a_page(browser: Browser, method: str, path: str, allowed: str) -> None:
    """A wrong method is a 405 page that names the allowed ones."""
    answer = browser.send(method, path, b"")
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert f"supports {allowed}" in browser.page.text


def test_a_body_that_is_too_large(ann: Browser) -> None:
    """A form over 64 KiB is answered with a 413 page and not read."""
    token = ann.page.form_token
    answer = ann.post("/keys", **{"form-token": token}, name="x" * MAX_BODY)
    assert answer.status == 413
    assert "Request too large" in ann.page.text


@rows(b"name=%ff", b"name=%00", b"form-token=a&form-token=b", b"&&=&")
def test_a_form_that_can_not_be_read(ann: Browser, body: bytes) -> None:
    """A form with invalid encoding or a repeated field is rejected."""
    assert ann.send("POST", "/keys", body).status in (400, 403)


def test_a_query_that_can_not_be_read(browser: Browser) -> None:
    """A query with invalid encoding is rejected, on open pages too."""
    assert browser.open("/sign-in?next=%ff").status == 400
    assert browser.open("/sign-in?next=a&next=b").status == 400


@pytest.fixture
def broken() -> Iterator[tuple[House, FaultyWorker]]:
    """Create a house whose reads can fail."""
    reader = FaultyWorker()
    house = House(
        config_in_memory(accounts=CHEAP),
        Workers(DirectWorker(), reader, DirectWorker(), DirectWorker()),
    )
    yield house, reader
    reader.fault = None
    result_of(house.assembly.runtime.engine.close())


def test_an_internal_error_is_a_page(
    broken: tuple[House, FaultyWorker], logged_failures: list[LogEvent]
) -> None:
    """An internal error is a page with a reference, and only the log has the cause."""
    house, reader = broken
    browser = Browser(house)
    browser.sign_up()
    reader.fault = RuntimeError("a secret of ours")
    answer = browser.open("/keys")
    assert answer.status == 500
    (event,) = logged_failures
    assert event["reference"] in browser.page.text
    assert "secret of ours" not in answer.body.decode()


def test_static_files(browser: Browser) -> None:
    """Static files are compressed, and cached forever at an address with their digest."""
    browser.open("/")
    paths = [one for one in browser.page.addresses if one.startswith("/static/")]
    assert {path.rpartition(".")[2] for path in paths} == {"css", "js", "svg"}
    for path in paths:
        plain = browser.open(path)
        assert plain.status == 200
        assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert plain.headers["vary"] == "Accept-Encoding"
        assert plain.headers["x-content-type-options"] == "nosniff"
        small = browser.open(path, "Accept-Encoding: br, gzip;q=0.5")
        assert small.headers["content-encoding"] == "gzip"
        assert gzip.decompress(small.body) == plain.body
        assert browser.open(path, "Accept-Encoding: gzip;q=0").body == plain.body
        other = re.sub("/static/[0-9a-f]+/", "/static/000000000000/", path)
        assert browser.open(other).status == 404


@rows(False, True)
def test_the_first_page_is_small(house: House, signed_in: bool) -> None:
    """The first page with all its files is under 60 KB."""
    browser = Browser(house)
    if signed_in:
        browser.sign_up()
    plain = browser.open("/")
    total = 0
    for path in [
        browser.address("/"),
        *{one for one in browser.page.addresses if one.startswith("/static/")},
    ]:
        connection = RawHttp(house)
        fields = ("Accept: text/html", "Accept-Encoding: gzip", *browser.cookie_fields)
        connection.send(request(path, *fields))
        total += len(connection.received())
    assert total < 30_000, "well under the promised 60 KB, with room for growth"
    assert len(plain.body) > 1_000


def secure_house(**web: object) -> House:
    """Create a house behind HTTPS."""
    options = WebOptions(**web)  # type: ignore[arg-type]
    return House(config_in_memory(accounts=CHEAP, web=options))


@rows(
    ({"public_url": "https://mail.example"}, ()),
    ({"trusted_proxies": ("10.0.0.0/8",)}, ("X-Forwarded-Proto: https",)),
)
def test_cookies_under_https(web: dict[str, object], fields: tuple[str, ...]) -> None:
    """Behind HTTPS cookies are Secure and bound to the host, and cookies of HTTP are ignored."""
    house = secure_house(**web)
    browser = Browser(house, "10.0.0.1", *fields)
    browser.sign_up_by_form()
    names = ("session", "visitor", "device")
    assert set(browser.cookies) == {f"__Host-mailcheck-{name}" for name in names}
    assert browser.is_signed_in
    browser.cookies = {"mailcheck-session": browser.cookies["__Host-mailcheck-session"]}
    assert not browser.is_signed_in


def test_a_public_url_with_a_path() -> None:
    """If the public URL has a path, all addresses on the pages begin with it."""
    house = secure_house(public_url="https://tools.example/mail")
    browser = Browser(house)
    answer = browser.open("/")
    assert answer.status == 200
    ours = [one for one in browser.page.addresses if not one.startswith("#")]
    assert ours
    assert all(one.startswith("/mail/") for one in ours)
    assert browser.open("/keys").headers["location"].startswith("/mail/sign-in?")
